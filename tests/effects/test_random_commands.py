"""Statements of effects hold for random command lines, each of which is run and compared with what was stated."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.effects.differential import Ground
from tests.effects.random_commands import RandomCommands
from tests.rows import each_row
from whisper_tui.model.effects import Effects

LINES = 100


@pytest.mark.slow
@pytest.mark.one_in(20)
@pytest.mark.parametrize("seed", range(200))
def test_every_file_that_a_random_line_changes_is_stated_or_said_to_be_unknown(seed: int) -> None:
    commands = RandomCommands(seed)
    with Ground.made() as ground:
        wrong = [found for _ in range(LINES) if (found := ground.look_at(commands.line())) is not None]
        assert wrong == []
        assert ground.certain > LINES // 4, "too few of these lines have effects that claim to be complete"


@each_row(
    "line",
    ["touch new", "rm a.txt", "chmod 600 b.txt", "touch ~/rc", "mv sub other", "ln -s x y", "echo x > ../outside/file"],
)
def test_the_comparison_notices_a_change_that_is_not_stated(line: str) -> None:
    with Ground.made() as ground:
        nothing = Effects(directory=str(ground.root / "work"))
        assert ground.look_at("true", nothing) is None
        assert ground.look_at(line, nothing) is not None


@pytest.mark.skipif(shutil.which("strace") is None, reason="only strace sees what happens outside of the tree")
def test_the_comparison_notices_a_file_outside_of_the_tree_that_is_made_and_deleted() -> None:
    with Ground.made() as ground, tempfile.TemporaryDirectory() as elsewhere:
        Path(elsewhere).chmod(0o777)
        wrong = ground.look_at(f"touch {elsewhere}/x; rm {elsewhere}/x", Effects(directory="/"))
        assert wrong is not None
        assert wrong.paths == (f"{elsewhere}/x",)


# Each of these changed a file while its effects said that none is changed that they do not name.
UNTRUE = """
/usr/bin/time -f 'any text' -o ~/rc ls
strace -o ~/rc ls
valgrind --log-file=new ls
chmod 000 sub; cd sub; rm a.txt
chmod -x sub && cd sub/deep; touch new
chmod -R a=r sub; cd sub/deep; touch new
cd dirlink; install -d -m700 /proc/self/cwd/new dirlink/../a.txt
mkdir -p new/../other
cat > /proc/self/cwd/new < <(for NAME in 1 2; do dd if=b.txt of=sub/deep status=none >& dead; cd $PLACE; done)
cat < <(for NAME in 1 2; do touch new; cd; done)
fakeroot -s new ls
flock ~/new ls
flock new -c ls
script -qc 'echo x' new
script new -c ls
timeout 2 /usr/bin/time -a -o a.txt ls
PS4='$(rm a.txt)'; set -x; ls
hash -p ./run.sh ls; ls
BASH_ENV=./run.sh bash -c ls
env BASH_ENV=./run.sh bash -c ls
export PATH=.:$PATH; ls
read PATH <<< .; run.sh
history -w new
history -s x; history -a new
alias ls='touch new'; shopt -s expand_aliases
mapfile -t -C 'touch new #' -c 1 L < a.txt
compgen -C 'touch new'
install -m600 /dev/null a.txt
install -D /dev/null q/w
install -d -m700 sub
cp /dev/null a.txt
cp --remove-destination b.txt link
mv -b a.txt b.txt
shred -z link
shred -n1 -u link
patch -b < bad.patch
patch -p0 < bad.patch
patch -l old/ < change.patch
bzip2 -f link
bzip2 -d -k b.txt
mv a.gz a.tgz; gunzip a.tgz
mv a.gz new.gz; gunzip new
gunzip -N a.gz
gzip -f a.gz
rm *; cp a.txt new
touch *; rm a.txt
gzip *; mv a.txt new
mv -n -tdirlink/ sub empty
mv -t ~ ~ dirlink
mv -T a.txt empty; mv a.txt new
mv -T sub a.txt; mv sub new
builtin xz -f a.txt; bzip2 -f a.txt
sh -c 'xxd a.txt {NAME}> new'
xz --form=lzma a.txt
curl --libcurl new file://$PWD/a.txt
patch -o new a.txt change.patch
xxd a.txt -v
dd if=a.txt of=/dev/stdout of=new
dd if=a.txt of=~/new
curl --no-clobber -o b.txt file://$PWD/a.txt
curl -c link file://$PWD/a.txt
wget --spider -O new http://127.0.0.1:9/x
wget --spider -o new http://127.0.0.1:9/x
wget --spider -q -a a.txt --save-cookies=two http://127.0.0.1:9/x
printf -v NAME %s a.txt; rm "$NAME"
echo "${NAME:=new}"; touch "$NAME"
[[ a.txt =~ (.*) ]]; rm "${BASH_REMATCH}"
cp b.txt /proc/self/cwd/new
cp b.txt ~+/new
rm /proc/self/cwd/a.txt
f() { rm c.txt; }; cd sub; f
for NAME in 1 2; do rm -f c.txt; cd sub; done
false && cd sub; rm a.txt
cd sub && true & wait; rm a.txt
true | { cd sub; touch new; }
true | (cd sub; touch new)
true |& (cd sub && ls > new)
true | if cd sub; then touch new; fi
true | (PLACE=full; rm -r $PLACE)
echo $({ echo a; } > new)
rm {~/rc,a.txt}
f() (cd sub; rm c.txt); f
case a in a|b) cd sub;; esac; rm c.txt
coproc { cd sub; touch new; }; wait
cd sub deep; rm a.txt
return; rm a.txt
set -f; touch *
shopt -s dotglob; rm *
trap 'rm c.txt' EXIT; cd sub
sh -c 'touch {new,two}'
cp b.txt /dev/stdout >&0 < a.txt
git config -f new a.b c
mktemp -p sub -t
mktemp $(echo new).XXX
ln -s full new; rm new/e.txt
ln -s ../outside new; echo x > new/file
ln -s a.txt new; echo x > new
ln dirlink new; echo x > new/c.txt
cp --parents ../outside/file sub
cp --parents ../outside/file dirlink
cp --parents ../outside/new sub/deep
cp --parents full/new sub
mkdir -p new; ln -s ../full new/sub; cp --parents sub/c.txt new
sed --follow-symlinks -i.bak s/a/b/ ~/rc
sed --follow-symlinks -i.bak s/o/b/ link
sed --follow-symlinks --in-place='bak_*' s/a/b/ dirlink/c.txt
sed --in-p=.bak s/a/b/ b.txt
sed --in s/o/b/ a.txt
sort --ou=new a.txt
rm --re full
mkdir --pa q/w
wget -x -O new http://127.0.0.1:9/x
patch -rempty/new b.txt archive.tar; rmdir --ignore-fail-on-non-empty empty
ln a.txt new; echo x > new
link ../outside/file ~/new; echo x > ~/new
cp -P dirlink new; echo x > new/c.txt
cp -as "$PWD/a.txt" new; echo x > new
mv dirlink new; echo x > new/c.txt
ln -s full new; cd new && rm e.txt
ln -sfn full dirlink; rm dirlink/e.txt
cp -r "$PWD" ../new; echo x > ../new/out/z
cp -r "$PWD" ../new; mv ../new ../two; echo x > ../two/out/z
tar cf new .; mkdir two; tar xf new -C two; echo x > two/out/z
rm dirlink; mkdir dirlink; echo x > dirlink/z
for NAME in 1 2; do ln -s sub new; done
while read NAME; do ln dirlink new; done < numbers
f() { ln -s sub new; }; f; f
cat < <(PLACE=full; rm -r $PLACE)
echo $(PLACE=full; rm -r $PLACE)
echo $(true && PLACE=full; rm -r $PLACE)
echo $(HOME=full; rm ~/e.txt)
cp -rl -t dirlink dirlink
cp -rl dirlink new
cp -r --link dirlink full
cp -rH dirlink full
cp -rPL dirlink full
cp -r dirlink/ full
cp -r dirlink/ dirlink
cp -r sub/. linked
cp -a sub/. linked
cp -rT sub linked
cd sub; cp -r . ../linked
cd sub; cp -r --parents . ../linked
mkdir new; ln -s ../../outside/file new/c.txt; cp -r sub/. new
mkdir new; cp a.txt new/c.txt; cp -r new/. linked
cp -r linked new; cp -r sub/. new
tar xf archive.tar -C linked
cd linked; unzip -o ../archive.zip
split -l1 b.txt linked/x
rm -r linked/deep/
find linked/deep/ -delete
ln -sn sub dirlink/
rsync -a a.txt link
rsync -a a.txt dead
cp --t full a.txt
sort --o new a.txt
chmod +x --recu dirlink
chmod --ref=numbers full
chmod --ref numbers full
cp -r --d dirlink full
tar --li --file archive.tar
env --chdir=sub touch new
env --ch=sub touch new
env -iC sub touch new
echo x > a.txt < no-file
cat > new < no-file
unset PLACE > $PLACE/new < no-file
bash -s $((1+1)) <<< 'rm a.txt'
printf -v PLACE full; bash -s "$PWD" <<< 'rm a.txt'
bash -c "$(echo rm a.txt)"
bash <<< ls < run.sh
echo 'rm a.txt' | bash 3<<< ls
exit < no-file; touch new
exit > no/file; touch new
exit --help; touch new
exec ls < no-file; touch new
exit() { true; }; exit; touch new
exec() { true; }; exec ls; touch new
cd sub > no/file; rm a.txt
export PLACE=full < no-file; rm -r $PLACE
cd out; cd ..; rm a.txt
cd out/..; rm a.txt
cd nowhere/../sub; rm a.txt
cat <(builtin cd sub; touch new)
for NAME in 1 2; do touch new; command -p cd sub; done
command eval 'cd sub'; rm a.txt
for PLACE in full; do :; done; bash -c 'rm -r $PLACE'
read PLACE <<< full; bash -c 'rm -r $PLACE'
for PLACE in full; do :; done; eval 'rm -r $PLACE'
NAME=full; bash -c 'touch "new$NAME"'
NAME=full; env bash -c 'touch "new$NAME"'
unset PLACE; bash -c 'touch new$PLACE'
declare NAME=full; bash -c 'bash -c "rm -r $NAME"'
export -n PLACE; bash -c 'touch new$PLACE'
readonly NAME=full; bash -c 'touch new$NAME'
coproc PLACE { :; }; touch new$PLACE
mktemp --tmpdir ../outside/new.XXXX
"""


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with Ground.made() as made:
        yield made


@pytest.mark.slow
@each_row("line", UNTRUE.strip().splitlines())
def test_no_change_is_left_out_where_effects_claim_to_be_complete(line: str, ground: Ground) -> None:
    assert ground.look_at(line) is None


KNOWN = """
chmod 700 sub; cd sub; rm c.txt
chmod -R u=rwX,go-w sub; cd sub/deep; touch new
chmod 000 sub; chmod 711 sub; cd sub; rm c.txt
/usr/bin/time -o new ls
strace -o new true
flock new ls
gunzip a.gz
gzip -f a.txt
script -qc 'echo x' new
install -m600 /dev/null a.txt
install -D /dev/null q/w
cp /dev/null a.txt
shred -n1 link
patch -b -p1 < change.patch
dd if=a.txt of=/dev/stdout of=new
cp b.txt /proc/self/cwd/new
cp --parents sub/deep/d.txt dirlink
echo x > /dev/stderr
echo x | tee /dev/stderr
ls > /dev/stdout 2> /dev/fd/2
history -w new
set -euo pipefail; touch new
PAGER=cat ls
bash -c 'echo x > new'
ln -s a.txt new; rm new; echo x > new
ln -s full new; ls
for NAME in 1 2; do cp a.txt new; done
for NAME in 1 2; do mkdir -p new; cp -r sub new; done
for NAME in 1 2; do mv a.txt full; done
touch {new,two}{1,2}
rm {a.txt,}
coproc cd sub; wait; touch new
case a in a|b) echo x > new;; esac
[[ -f a.txt && (a == a || -d sub) ]] && touch new
rm --re full
mkdir --pa q/w
true | (cd sub; touch new)
cp -r sub new
cp -r sub/. full
cp -r dirlink new
cp -rPL dirlink new
cp -r full linked
tar xf archive.tar -C sub
rm --re full
mkdir --pa q/w
bash -s x <<< 'rm a.txt'
bash 3<<< ls <<< 'rm a.txt'
exit; touch new
cd sub > /dev/null 2>&1; touch new
cd dirlink; cd ..; touch new
PLACE=full; bash -c 'rm -r $PLACE'
export NAME=new; bash -c 'touch $NAME'
NAME=new bash -c 'touch $NAME'
unset PLACE; NAME=new bash -c 'touch $NAME'
unset PLACE; bash -c 'NAME=new; touch $NAME'
"""


@each_row("line", ["chmod 000 sub; cd sub; rm c.txt", "chmod -R a=r sub; cd sub; rm c.txt"])
def test_a_directory_that_may_be_closed_leads_nowhere(line: str, ground: Ground) -> None:
    effects = ground.effects_of(line)
    assert not effects.files_are_certain and not effects.removals


@pytest.mark.slow
@each_row("line", KNOWN.strip().splitlines())
def test_effects_of_ordinary_lines_are_complete(line: str, ground: Ground) -> None:
    effects = ground.effects_of(line)
    assert effects.files_are_certain, effects.unknown
    assert ground.look_at(line) is None


@each_row(
    "line",
    [
        "curl -OJ http://127.0.0.1:9/x",
        "curl --remote-header-n -O http://127.0.0.1:9/x",
        "wget -rP linked http://127.0.0.1:9/x",
    ],
)
def test_effects_that_a_server_decides_are_not_complete(line: str, ground: Ground) -> None:
    assert not ground.effects_of(line).files_are_certain
