"""Options and operands with which a program that a rule may allow runs something else, or writes where it is told."""

import re

from whisper_tui.policy.dangers.finding import Danger, Words, letters, operands

_RUNS = """
kubectl oc : --kubeconfig
helm : --post-renderer --post-renderer-args --kubeconfig --plugin
aws : --cli-pager
gcloud : --flags-file
gh : --pager
apt apt-get apt-cache aptitude : -o --option -c --config-file
dpkg : --pre-invoke --post-invoke
rpm rpmbuild : --pipe --eval -E --rcfile --macros --define -D --predefine --load
go : -vettool -toolexec -exec -overlay
bat batcat : --pager --map-syntax= --diff-command
ag ack : --pager --ackrc
rg : --pre --hostname-bin
fd fdfind : -x -X --exec --exec-batch
tar gtar bsdtar : -I -F --use-compress-program --to-command --info-script --new-volume-script --checkpoint-action --rsh-command --rmt-command
cpio : --rsh-command
npm npx pnpm yarn bun : --script-shell --node-options --userconfig --globalconfig --init-module
gcc g++ cc c++ clang clang++ gfortran : -wrapper -fplugin -B -specs --specs -Xclang -load -fpass-plugin -plugin -fuse-ld
nm ar ranlib objdump strip strings size readelf gcc-nm gcc-ar : --plugin
openssl : -engine -provider -provider-path -config
split csplit : --filter
sort : --compress-program
less more most : -k --lesskey --lesskey-file --lesskey-src -o -O -T
man : -P --pager -C -H --html
git : --upload-pack --receive-pack --extcmd --open-files-in-pager
pdflatex latex xelatex lualatex tex pdftex xetex luatex latexmk : -shell-escape --shell-escape -enable-write18 --enable-write18 -e -pdflatex -latex -r -output-directory
pylint : --init-hook --load-plugins --rcfile
php : -d -c -a -B -R -F -E -r -f -z --define --php-ini --zend-extension
java : -javaagent -agentlib -agentpath -Xbootclasspath -XX:OnError -XX:OnOutOfMemoryError
make gmake : --eval
bazel : --run_under --bazelrc --shell_executable
rsync : -e --rsh --rsync-path
curl : -K --config
wget : -e --execute --use-askpass --config
sqlite3 : -cmd -init
mysql mariadb : --defaults-file --defaults-extra-file --pager --tee --plugin-dir --init-command
mongosh mongo : --eval --shell --file -f
vim vi nvim view : -c --cmd -S -u -s -W
emacs : --eval --execute --load -l -f --funcall --script
zip : -TT --unzip-command
gpg gpg2 : --photo-viewer --agent-program --keyserver-options --exec-path --homedir --options --dirmngr-program
ffmpeg ffprobe : -filter_script
convert magick : -script
xargs : -a --arg-file
gdb lldb : -x --command -ex --eval-command -ix --init-command -iex --init-eval-command -o --one-line -s --source -S
valgrind : --db-command --tool
tcpdump : -z
svn : --config-option --config-dir --diff-cmd --diff3-cmd --editor-cmd
journalctl systemctl : --root --image
sudo : -A --askpass
dig : -f
patch : --get -g
"""
"""Programs, and the options with which they run, load or take orders from something else."""

_WRITES = """
iconv tree shuf sort : -o --output --output-file
rg : --log-file
tar gtar bsdtar : --index-file
journalctl : --cursor-file --sync --flush --vacuum-size --vacuum-time --rotate --relinquish-var --setup-keys
date : -s --set
sysctl : -w --write -p --load --system
hostname : -F --file -b
jq yq : -i --in-place --inplace
strings nm objdump : --output
ps2pdf convert magick : -write
lsof : -D
dmesg : -C -c --clear --read-clear -D -E -n --console-off
ss : -D --diag
tcpdump : -w
bat : --generate-config-file
"""
"""Programs, and the options with which they write to a file or change a setting."""

_NAMED = """
pip pip3 uv : --config-settings -C --index-url -i --extra-index-url --find-links -f --index --default-index
terraform tofu : -plugin-dir -chdir -backend-config
aws : --endpoint-url
go : -modfile -C -ldflags -gcflags -asmflags -cpuprofile -memprofile -coverprofile -trace -blockprofile -outputdir -o
cargo : --config
npm npx pnpm yarn bun : --registry --prefix --cache --logs-dir --pack-destination
node nodejs : -r --require --import --loader --experimental-loader --env-file
jest vitest mocha : --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv --runner --testRunner --resolver --transform --config -c --require -r --reporter --reporters
eslint : --rulesdir --resolve-plugins-relative-to --plugin --parser -c --config -f --format
prettier stylelint : --plugin --plugin-search-dir --config
tsc : --plugins --outDir --outFile --declarationDir --generateTrace --tsBuildInfoFile
webpack vite rollup esbuild : --config -c --plugin
pytest py.test : -p -c --rootdir --confcutdir -o --override-ini
mypy : --python-executable --config-file --custom-typeshed-dir
flake8 : --config --append-config
sphinx-build : -c -D
black ruff : --config
perl : -M -m -I -x -i
ruby : -r -I -C -x --require
javac : -processor -processorpath -J
mvn mvnw : -f --file -s --settings -gs -Dexec.executable -t
gradle gradlew : -I --init-script -b --build-file -c -g
make gmake : -f --file --makefile -C --directory -I
cmake : -P -C -E
ninja : -f -C
docker podman : --config -H --host --context
psql : -f --file -o --output
mysqldump pg_dump : -r --result-file -f --file --defaults-file
redis-cli : --eval --rdb --pipe
ansible ansible-playbook : -M --module-path -i --inventory
hg : --config --cwd -R
dnf yum : --setopt -c --config --enableplugin --installroot
pacman : --config --hookdir --root -r
eslint prettier stylelint : -o --output-file --fix --write --cache-location -w
ruff : --fix --output-file -o --fix-only
gofmt goimports : -w -cpuprofile
clang-format : -i
rustfmt : --emit
shfmt : -w --write
mypy : --junit-xml --html-report --txt-report --xml-report --cobertura-xml-report --cache-dir --install-types
pytest py.test : --junitxml --junit-xml --basetemp --resultlog --log-file --report-log --html --cov-report
pandoc : -o --output --extract-media
dot : -O -o
objcopy strip : -o
pylint : --output
flake8 : --output-file --tee
kubectl : --cache-dir --profile-output
helm : --output-dir
terraform : -out -state-out -backup -state
docker podman : --iidfile --cidfile --metadata-file
unzip 7z : -d
ar : --output
perf : -o --output
openssl : -out -keyout -writerand -pubout_file
gpg gpg2 : -o --output
curl : -o -O -c -D --output --remote-name --cookie-jar --dump-header --trace
wget : -O -o -a -P --output-document --output-file
git : --output --output-directory
xmllint : -o --output
jq yq : -L --library-path -f --from-file
less more : -o -O
"""
"""What people do every day with options that nevertheless run or write: no finding, but a rule must name them."""

_TEXTS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("tmux",), re.compile(r"#\(")),
    **dict.fromkeys(("less", "more", "most"), re.compile(r"\A\+{1,2}.*[!|sv#]")),
    **dict.fromkeys(("vim", "vi", "nvim", "view", "ex", "gvim"), re.compile(r"\A\+.")),
    **dict.fromkeys(("sqlite3",), re.compile(r"(?:\A|\n|;)\s*\.(?:shell|system|sh|sy|load|open|output|once|excel|import|"
                                             r"read|save|backup|clone|archive|ar|log)\b|load_extension|writefile|edit\(|"
                                             r"\bfts3_tokenizer|readfile|ATTACH\b", re.IGNORECASE)),
    **dict.fromkeys(("psql",), re.compile(r"\\(?:!|g\s*\||g\s+\S|o\s|w\s|copy\b|i\b|ir\b|e\b|setenv\b|watch\b|gexec\b)|`|"
                                          r"\bcopy\b.*\b(?:program|to|from)\b|lo_(?:import|export)|pg_read_file",
                                          re.IGNORECASE | re.DOTALL)),
    **dict.fromkeys(("mysql", "mariadb"), re.compile(r"\\!|(?:\A|\n|;)\s*(?:system|source|pager|tee|edit)\b|"
                                                     r"into\s+(?:outfile|dumpfile)|load_file", re.IGNORECASE)),
    **dict.fromkeys(("nm", "ar", "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "objdump", "strings", "size",
                     "readelf", "strip", "objcopy", "ranlib", "javac", "java", "tsc", "rustc"), re.compile(r"\A@.")),
    **dict.fromkeys(("duckdb",), re.compile(r"\.shell|\.system|\bcopy\b|\binstall\b|\bload\b", re.IGNORECASE)),
    **dict.fromkeys(("ed", "ex", "gdb", "lldb"), re.compile(r"!|\bshell\b|\bplatform\b|\bpython\b|\bscript\b")),
    **dict.fromkeys(("make", "gmake"), re.compile(r"\A(?:SHELL|MAKE|\.SHELLFLAGS|MAKEFLAGS)\s*[:?!]*=")),
    **dict.fromkeys(("mvn", "gradle", "gradlew"), re.compile(r"\Aexec:|-Dexec\.")),
    **dict.fromkeys(("openssl",), re.compile(r"\Aorg\.openssl\.engine:|\Aengine:|\Apkcs11:")),
    **dict.fromkeys(("convert", "magick", "identify"), re.compile(r"\A(?:\||msl:|ephemeral:|https?:)")),
    **dict.fromkeys(("ffmpeg", "ffprobe"), re.compile(r"\A(?:concat|subfile|https?|tcp|udp|pipe):")),
}  # fmt: skip
"""Programs, and what of their words runs a command or opens a file of its own choosing."""

_OUTPUT_OPERAND = {"uniq": (2, "ICfsw"), "xxd": (2, "clgos"), "iconv": (99, ""), "ts": (99, "")}
"""Programs that write to their last operand if there are so many, and their letters with a value."""

_SUBCOMMANDS = {
    "git": {"archive": ("-o", "--output", "--remote", "--exec"), "format-patch": ("-o", "--output-directory", "--output"),
            "bundle": ("create",), "bugreport": ("-o",), "diagnose": ("-o",), "difftool": ("-x", "--extcmd"),
            "grep": ("-O", "--open-files-in-pager"), "ls-remote": ("--upload-pack",)},
    "go": {"env": ("-w", "-u"), "vet": ("-vettool",), "test": ("-exec", "-c", "-o"), "build": ("-o",)},
    "openssl": {"req": ("-out", "-keyout"), "rand": ("-out",)},
}  # fmt: skip
"""Words of subcommands that write or run, which mean something else to the program's other subcommands."""

_GENERIC_RUNS = re.compile(
    r"--(?!(?:no|ignore|skip|disable|without)-)(?:[\w]+-)*(?:exec|execute|command|cmd|shell|hooks?|plugins?|pager|editor|"
    r"wrapper|eval|rsh|rcfile|renderer|preprocessor|postprocess|launcher|interpreter|callback|preload|loader|askpass|"
    r"program|prog|browser|viewer|script)(?:-[\w-]+)?(?:=.*)?",
    re.DOTALL,
)
_GENERIC_WRITES = re.compile(
    r"--(?!(?:no|ignore|skip|disable|without)-)(?:[\w]+-)*(?:out(?:put)?-?(?:file|dir|path|directory)|out-?file|log-?file|"
    r"write(?:-[\w-]+)?|save(?:-[\w-]+)?|dump(?:-[\w-]+)?|trace-?file|in-?place|to-file)(?:=.*)?",
    re.DOTALL,
)


def _table(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in text.strip().splitlines():
        programs, _, options = line.partition(" : ")
        for program in programs.split():
            found[program] = (*found.get(program, ()), *options.split())
    return found


_RUNNING, _WRITING, _ONLY_NAMED = _table(_RUNS), _table(_WRITES), _table(_NAMED)
_SHORT_VALUED: dict[str, str] = {
    "tar": "bCfFgHIKLNTVX", "gtar": "bCfFgHIKLNTVX", "rg": "ABCdeEfgjmMrtT", "sort": "kStTo", "git": "CcnLSGUO", "fd": "dtecEoSj",
    "grep": "ABCDdefm", "ssh": "BbcDEeFIiJLlmOopQRSWw", "scp": "cDFiJloPSX", "make": "CfIjloW", "psql": "cdFhLopPRtTUvf",
    "gcc": "oIDLlUxBefmOW", "cc": "oIDLlUxBefmOW", "clang": "oIDLlUxBefmOW", "date": "dfrsI", "perl": "0CDFIlMmxieE", "ruby": "0CEeFIilrTWxX",
    "pytest": "kmopcrnW", "docker": "lHc", "mysql": "uphPDeSr", "less": "bhjkoOpPtTxyz#D", "unzip": "xdP", "npm": "wC",
    "kubectl": "nlocfkv", "pip": "rceif", "cargo": "pjFC", "curl": "AbcCdDeEFhHKmMoPQrtTuUwxXyYz", "wget": "aBDeGhiIlNoOPQRAtTUwX",
    "tree": "LPIHTo", "iconv": "fto", "shuf": "inor", "journalctl": "upnogSUDcFbM", "jq": "Lf", "eslint": "cfo", "apt": "toca", "apt-get": "toca",
}  # fmt: skip
"""Letters whose value may be attached, so that the rest of the word is no option."""


def acting_options(argv: Words, name: str) -> list[Danger]:
    """Options and operands that run or write, of programs of which they are known."""
    found = [
        *_options(argv, name, _RUNNING.get(name, ()), "runs-other-code"),
        *_options(argv, name, _WRITING.get(name, ()), "writes-file"),
    ]
    pattern = _TEXTS.get(name)
    if pattern is not None:
        sentence = f"It holds what makes {name} run a command, or open another file"
        found += [
            Danger("runs-other-code", sentence, at)
            for at, word in enumerate(argv)
            if at and word is not None and pattern.search(word)
        ][:1]
    if name in _OUTPUT_OPERAND:
        most, valued = _OUTPUT_OPERAND[name]
        named = _without_values(argv, valued)
        if len(named) >= most:
            found.append(Danger("writes-file", f"{name} writes to its last word", named[-1]))
    return found + _of_subcommand(argv, name)


def acting_for_rules(argv: Words, name: str) -> list[Danger]:
    """What only rules that allow look at: everyday options, and those that are called like one that runs or writes."""
    found = _options(argv, name, _ONLY_NAMED.get(name, ()), "writes-file")
    for at, word in enumerate(argv):
        if not at or word is None or not word.startswith("--"):
            continue
        if word == "--":
            break
        if _GENERIC_RUNS.fullmatch(word):
            found.append(Danger("runs-other-code", f"{word.partition('=')[0]} may run or load something else", at))
        elif _GENERIC_WRITES.fullmatch(word):
            found.append(Danger("writes-file", f"{word.partition('=')[0]} may write a file", at))
    return found


def _options(argv: Words, name: str, options: tuple[str, ...], kind: str) -> list[Danger]:
    if not options:
        return []
    said = "run or load something else" if kind == "runs-other-code" else "write a file, or change a setting"
    for at, word in enumerate(argv):
        if not at or word is None:
            continue
        if word == "--":
            break
        old = name in {"tar", "ar"} and at == 1 and not word.startswith("-")
        if any(_is(word if not old else "-" + word, option, name) for option in options):
            shown = word.partition("=")[0]
            sentence = f"{shown} makes {name} {said}"
            return [
                Danger("writes-file", sentence, at)
                if kind == "writes-file"
                else Danger("runs-other-code", sentence, at)
            ]
    return []


def _is(word: str, option: str, name: str) -> bool:
    if option.startswith("--"):
        given = word.partition("=")[0]
        return given == option or (len(given) > 4 and given.startswith("--") and option.startswith(given))
    if len(option) == 2:
        return option[1] in letters(word, _SHORT_VALUED.get(name, "")) and (
            word.startswith(option) or name in _SHORT_VALUED
        )
    return word.startswith(option) or (word.startswith("--") and word[1:].partition("=")[0] == option)


def _without_values(argv: Words, valued: str) -> list[int]:
    found: list[int] = []
    takes = False
    for at, word in enumerate(argv):
        if not at:
            continue
        if takes:
            takes = False
        elif word is not None and word.startswith("-") and word != "-":
            takes = len(word) == 2 and word[1] in valued
        else:
            found.append(at)
    return found


def _of_subcommand(argv: Words, name: str) -> list[Danger]:
    table = _SUBCOMMANDS.get(name)
    if table is None:
        return []
    for index, subcommand in operands(argv)[:1]:
        for at in range(index + 1, len(argv)):
            word = argv[at]
            if word is not None and any(
                word == option or (option.startswith("-") and word.startswith(option) and not word.startswith("--"))
                or word.startswith(option + "=")
                for option in table.get(subcommand, ())
            ):  # fmt: skip
                return [Danger("writes-file", f"{word} makes {name} {subcommand} write or run something", at)]
    return []
