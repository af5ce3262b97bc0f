"""Spellings of the same command: other names of programs and subcommands, and options that mean the same.

For rules that deny and ask, which must not be missed. A spelling too many costs a question, one too few a denial.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from whisper_tui.policy.commands.argv import Words, letters, program_name

_PROGRAMS: dict[str, tuple[str, ...]] = {
    "docker-compose": ("docker", "compose"),
    "podman-compose": ("podman", "compose"),
    "bunx": ("bun", "x"),
    "npx": ("npm", "exec"),
    "uvx": ("uv", "tool", "run"),
    "yarnpkg": ("yarn",),
    "pnpx": ("pnpm", "dlx"),
    "flyctl": ("fly",),
    "sls": ("serverless",),
    "nodejs": ("node",),
    "py.test": ("pytest",),
    "fdfind": ("fd",),
    "batcat": ("bat",),
    "gpg2": ("gpg",),
    **{f"g{name}": (name,) for name in "chmod chown cp find ln make mv rm sed tar".split()},
}
"""Other names of programs, and the words that they stand for."""

_VERSIONED = re.compile(r"(pip|python|pypy|ruby|php|perl|lua|node|gcc|g\+\+|clang|clang\+\+)-?\d[\d.]*")
"""Programs whose names may end in a version: `pip3`, `python3.12`."""

_PLUGGED = re.compile(r"(git|cargo)-([a-z][\w-]*)")
"""Programs that are subcommands of another one: `git-push`."""

_SUBCOMMANDS = """
npm : install = i = add = in = ins = inst = insta = instal = isnt = isnta = isntal = isntall
npm : uninstall = un = unlink = remove = rm = r
npm : update = up = upgrade = udpate
npm : ci = ic = clean-install = install-clean = isntall-clean = cit = clean-install-test = sit = install-ci-test
npm : install = install-test = it
npm : config = c
npm : config set = set
npm : config get = get
npm : run = run-script = rum = urn
npm : test = t = tst = run test = run-script test
npm : start = run start = run-script start
npm : stop = run stop = run-script stop
npm : restart = run restart = run-script restart
npm : exec = x
npm : view = v = info = show
npm : list = ls = la = ll
npm : owner = author
pnpm : install = i
pnpm : remove = rm = uninstall = un
pnpm : update = up = upgrade
pnpm : test = t = tst = run test
bun : install = i
bun : add = a
bun : remove = rm
helm : uninstall = un = del = delete
helm : list = ls
docker podman nerdctl : rm = container rm = container remove
docker podman nerdctl : rmi = image rm = image remove
docker podman nerdctl : run = container run
docker podman nerdctl : exec = container exec
docker podman nerdctl : create = container create
docker podman nerdctl : start = container start
docker podman nerdctl : stop = container stop
docker podman nerdctl : restart = container restart
docker podman nerdctl : kill = container kill
docker podman nerdctl : cp = container cp
docker podman nerdctl : commit = container commit
docker podman nerdctl : attach = container attach
docker podman nerdctl : logs = container logs
docker podman nerdctl : ps = container ls = container list = container ps
docker podman nerdctl : images = image ls = image list
docker podman nerdctl : build = image build = buildx build = buildx b = builder build
docker podman nerdctl : pull = image pull
docker podman nerdctl : push = image push
docker podman nerdctl : tag = image tag
docker podman nerdctl : load = image load
docker podman nerdctl : import = image import
docker podman nerdctl : volume rm = volume remove
docker podman nerdctl : network rm = network remove
docker podman nerdctl : stack rm = stack remove = stack down
docker podman nerdctl : service rm = service remove
docker podman nerdctl : secret rm = secret remove
docker podman nerdctl : config rm = config remove
docker podman nerdctl : context rm = context remove
docker podman nerdctl : plugin rm = plugin remove
gh : pr create = pr new
gh : issue create = issue new
gh : release create = release new
gh : repo create = repo new
gh : secret delete = secret remove
gh : variable delete = variable remove
gh : codespace = cs
cargo : build = b
cargo : check = c
cargo : doc = d
cargo : test = t
cargo : run = r
cargo : remove = rm
dnf yum : remove = erase = rm
dnf yum : install = in
dnf yum : upgrade = update = up
zypper : install = in
zypper : remove = rm
brew : uninstall = remove = rm
conda mamba : remove = uninstall
svn : commit = ci
svn : delete = del = remove = rm
svn : checkout = co
hg : commit = ci
hg : update = up = checkout = co
hg : remove = rm
pulumi : update = up
pulumi : destroy = down
terraform tofu : destroy = apply -destroy
fly : destroy = apps destroy
heroku : apps:destroy = destroy
vercel : remove = rm
git : remote remove = remote rm
git : add = stage
git : push = send-pack = http-push = subtree push
git : pull = subtree pull
dotnet : remove package = package remove
dotnet : add package = package add
bundle : install = i
bundle : exec = e
composer : install = i
composer : require = req = r
composer : update = u = upgrade
composer : remove = rm = uninstall
gem : install = i
"""
"""Programs, and subcommands of them that do the same."""

_RUN_SCRIPTS = frozenset({"yarn", "pnpm", "bun"})
"""Programs that run a script of the project by its name alone: `yarn deploy` is a `yarn run deploy`."""

_ANY_ORDER = frozenset(
    "make ninja just rake gradle gradlew mvn mvnw ant task mage fab inv invoke doit gulp grunt lein scons waf".split()
)
"""Programs that take several targets and make all of them: `make clean deploy` is a `make deploy`."""

_SHORTENS = {
    **dict.fromkeys(
        "ip tc bridge nmcli devlink rdma gem bundle composer php artisan console gradle gradlew".split(), 1
    ),
    **dict.fromkeys("npm hg tmux btrfs zypper opam dune fossil darcs drush".split(), 2),
}
"""Programs that accept the beginning of a subcommand, and from how many letters on."""

_BY_DEFAULT = {"yarn": ("install",), "bundle": ("install",)}
"""Programs that do this if no subcommand is given."""

_PASS_ON = {
    **dict.fromkeys((("yarn", "workspace"), ("pnpm", "workspace")), 1),
    **dict.fromkeys((("pnpm", "recursive"), ("pnpm", "multi"), ("pnpm", "m")), 0),
}
"""Subcommands behind which another one stands, and how many words of their own stand before it."""

_OLD_OPTIONS = frozenset("tar gtar bsdtar star ar".split())
"""Programs whose first word holds options without a dash: `tar xf`."""

_WHOLE = frozenset(
    "kubectl oc helm docker podman nerdctl gh glab terraform tofu go npm npx pnpm yarn bun node deno cargo rustup "
    "pulumi fly heroku vercel firebase wrangler supabase vault nomad packer rclone restic jq find fd rg bat eza".split()
)
"""Programs that accept no beginning of a long option, so that a shorter name is another option."""

_OPTIONS = """
rm : -r -R --recursive | -f --force | -d --dir
cp : -r -R --recursive | -f --force | -a --archive
mv : -f --force
ln : -f --force | -s --symbolic
chmod chown chgrp : -R --recursive
mkdir rmdir : -p --parents
sed : -i --in-place
sort : -o --output
truncate : -s --size
tar : -x --extract --get | -c --create | -C --directory | -I --use-compress-program | -P --absolute-names
rsync : -n --dry-run | -e --rsh
curl : -X --request | -d --data | -o --output | -O --remote-name | -k --insecure | -u --user | -T --upload-file
curl : -F --form | -K --config | -H --header | -L --location
wget : -O --output-document | -o --output-file | -P --directory-prefix | -i --input-file | -e --execute
make : -C --directory | -f --file --makefile | -B --always-make
git push : -f --force | -d --delete | -n --dry-run | -u --set-upstream
git commit : -n --no-verify | -a --all | -m --message | -F --file | -s --signoff
git am : -n --no-verify | -i --interactive
git merge : -n --no-stat | -s --strategy
git pull : -f --force | -r --rebase | -s --strategy
git rebase : -i --interactive | -x --exec
git clean : -f --force | -n --dry-run | -i --interactive
git checkout : -f --force
git switch : -f --force --discard-changes | -c --create | -C --force-create
git branch : -d --delete | -f --force | -m --move
git tag : -d --delete | -f --force | -s --sign
git add : -A --all | -f --force | -u --update
git rm : -f --force
git mv : -f --force
git fetch : -f --force | -p --prune
git clone : -u --upload-pack | -c --config
git stash : -u --include-untracked | -a --all
git restore : -S --staged | -W --worktree | -s --source
git config : -e --edit | -l --list
git archive : -o --output
git format-patch : -o --output-directory
docker podman nerdctl : -f --force | -f --file | -v --volumes | -v --volume | -a --all | -p --publish
docker podman nerdctl : -H --host | -c --context
kubectl oc : -f --filename | -n --namespace | -A --all-namespaces | -l --selector
helm : -n --namespace | -f --values
npm pnpm : -g --global | -f --force | -D --save-dev | -w --workspace | -y --yes
pip : -y --yes | -U --upgrade | -r --requirement | -e --editable | -t --target | -i --index-url
apt apt-get : -y --yes --assume-yes
dnf yum : -y --assumeyes
gh : -R --repo
gh pr : -m --merge | -s --squash | -r --rebase | -d --delete-branch
psql : -c --command | -f --file | -o --output
mysql mariadb : -e --execute
systemctl : -f --force | -H --host
patch : -R --reverse
gpg : -o --output
terraform tofu : -destroy --destroy | -auto-approve --auto-approve | -chdir --chdir
dpkg : -i --install | -r --remove | -P --purge | -a --pending
pacman : -S --sync | -R --remove | -U --upgrade | -Q --query | -D --database | -F --files
rpm : -e --erase | -i --install | -U --upgrade | -F --freshen
iptables ip6tables : -F --flush | -A --append | -D --delete | -I --insert | -X --delete-chain | -P --policy | -t --table
mount : -o --options | -t --types | -a --all | -B --bind | -R --rbind
docker podman nerdctl : --net --network
"""
"""Programs, or subcommands of one, and options that mean the same."""


def canonical(argv: Words) -> tuple[str | None, ...]:
    """Return a command with the usual name of its program: `docker compose` for `docker-compose`."""
    return (*usual_name(program_name(argv[0] or "")), *argv[1:])


@lru_cache(maxsize=4096)
def usual_name(name: str) -> tuple[str, ...]:
    """Return the words by which a program is usually called."""
    versioned = _VERSIONED.fullmatch(name)
    return _PROGRAMS.get(name, (versioned[1] if versioned else name,))


def other_forms(argv: Words) -> Iterator[tuple[str | None, ...]]:
    """Yield what else a command with a usual name means to its program."""
    name, *words = argv
    if plugged := _PLUGGED.fullmatch(name or ""):
        yield (*plugged.groups(), *words)
    if name in _OLD_OPTIONS and words and words[0] and not words[0].startswith("-"):
        yield (name, "-" + words[0], *words[1:])
    elif name == "python":
        yield from _module(words)
    elif name in _BY_DEFAULT and not any(word and not word.startswith("-") for word in words):
        yield (name, *_BY_DEFAULT[name], *words)
    for at, word in enumerate(words):
        own = _PASS_ON.get((name or "", word or ""))
        if own is not None and len(words) > at + 1 + own:
            yield (name, *words[:at], *words[at + 1 + own :])
            return


def may_be_another(name: str) -> bool:
    """True if a program with this usual name may run as another one: `python -m pip`."""
    return name == "python" or _PLUGGED.fullmatch(name) is not None


def _module(words: Words) -> Iterator[tuple[str | None, ...]]:
    """`python3 -Im pip install` and `python3 -mpip install` are a `python -m pip install`, and a `pip install`."""
    for at, word in enumerate(words):
        if word is None or not word.startswith("-"):
            return
        bundle = letters(word, valued="mcWX")
        if bundle.endswith("m"):
            attached = word[len(bundle) + 1 :]
            rest = (attached, *words[at + 1 :]) if attached else tuple(words[at + 1 :])
            yield ("python", "-m", *rest)
            if rest and rest[0]:
                yield rest
            return


@lru_cache(maxsize=1024)
def spellings(name: str, words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the words behind a program and the other subcommands that they may be written as."""
    found = dict.fromkeys([words])
    if name in _RUN_SCRIPTS and words:
        found |= dict.fromkeys([words[1:] if words[0] == "run" else ("run", *words)])
    for group in _groups().get(name, ()):
        for spelling in group:
            if words[: len(spelling)] == spelling:
                found |= dict.fromkeys((*other, *words[len(spelling) :]) for other in group)
    return tuple(found)


@cache
def _groups() -> dict[str, tuple[tuple[tuple[str, ...], ...], ...]]:
    found: dict[str, list[tuple[tuple[str, ...], ...]]] = {}
    for line in _SUBCOMMANDS.strip().splitlines():
        programs, _, group = line.partition(" : ")
        for program in programs.split():
            found.setdefault(program, []).append(tuple(tuple(each.split()) for each in group.split(" = ")))
    return {program: tuple(groups) for program, groups in found.items()}


def takes_any_order(name: str) -> bool:
    """True if a program takes several targets and makes all of them."""
    return name in _ANY_ORDER


def means(name: str, given: str, wanted: str) -> bool:
    """True if a subcommand as it is given may be the wanted one to this program.

    A rule may name a beginning as well: `ip addr` is meant by `ip address`.
    """
    if given == wanted:
        return True
    shortest = _SHORTENS.get(name)
    if shortest is None:
        return False
    if takes_any_order(name):
        given = given.rpartition(":")[2]  # `:library:publish`
    parts, meant = given.split(":"), wanted.split(":")
    return len(parts) == len(meant) and all(
        _begins_other(part, whole, shortest) for part, whole in zip(parts, meant, strict=True)
    )


def begins_subcommand(name: str, given: str, wanted: str) -> bool:
    """True if a subcommand as it is given is a beginning of the wanted one, which the program accepts."""
    return wanted.startswith(given) and means(name, given, wanted)


def _begins_other(given: str, wanted: str, shortest: int) -> bool:
    return min(len(given), len(wanted)) >= shortest and (wanted.startswith(given) or given.startswith(wanted))


def shortens_options(name: str) -> bool:
    """True unless a program is known to accept no beginnings of long options."""
    return name not in _WHOLE


@lru_cache(maxsize=1024)
def same_options(name: str, subcommand: str, option: str) -> frozenset[str]:
    """Return the options that mean the same to a program, or to its subcommand; the option is one of them."""
    found = {option}
    for group in (*_options().get(name, ()), *_options().get(f"{name} {subcommand}", ())):
        if option in group:
            found |= set(group)
    return frozenset(found)


@cache
def _options() -> dict[str, tuple[tuple[str, ...], ...]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for line in _OPTIONS.strip().splitlines():
        programs, _, groups = line.partition(" : ")
        # `git push` is a subcommand of its program, and `cp mv` are two programs
        names = [programs] if programs.startswith(("git ", "gh ")) else programs.split()
        for program in names:
            found.setdefault(program, []).extend(tuple(group.split()) for group in groups.split(" | "))
    return {program: tuple(groups) for program, groups in found.items()}


def option_parts(option: str) -> Iterator[str]:
    """Yield the options in a word of a rule: `-rf` is `-r` and `-f`."""
    if option.startswith("--") or len(option) < 3:
        yield option
    else:
        yield from (f"-{letter}" for letter in option[1:])


def gives_option(argv: Words, option: str, value: str | None) -> bool:
    """True if a command has an option, with this value if there is one."""
    name = argv[0] or ""
    return any(
        _is_option(word, argv[at + 1] if at + 1 < len(argv) else None, option, value, shortens=shortens_options(name))
        for at, word in enumerate(argv)
        if at and word is not None and word.startswith("-") and len(word) > 1
    )


def _is_option(word: str, following: str | None, option: str, value: str | None, *, shortens: bool) -> bool:
    """True if a word of a command is an option of a rule, with this value if there is one."""
    if option.startswith("--") or len(option) > 2:
        given, equals, attached = word.partition("=")
        begins = shortens and given.startswith("--") and len(given) > 2 and option.startswith(given)
        if given != option and not begins:
            return word == option
        return value is None or (attached if equals else following) == value
    bundle = letters(word)
    if option[1] not in bundle:
        return False
    attached = word[bundle.index(option[1]) + 2 :]
    return value is None or value in {attached, attached.removeprefix("=")} or (not attached and following == value)
