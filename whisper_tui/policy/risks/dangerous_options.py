"""Options and operands that make a program run something else or write a file (decision 9)."""

import re

from whisper_tui.policy.commands.argv import Danger, Words, letters
from whisper_tui.policy.commands.readings import first_words
from whisper_tui.policy.commands.spellings import shortens_options

_RUNS = """
kubectl oc : --kubeconfig
helm : --post-renderer --post-renderer-args --kubeconfig --plugin
aws : --cli-pager
gcloud : --flags-file --ssh-flag --scp-flag
gh : --pager
apt apt-get apt-cache aptitude : -o --option -c --config-file
dpkg : --pre-invoke --post-invoke
rpm rpmbuild : --pipe --eval -E --rcfile --macros --define -D --predefine --load
go : -vettool -toolexec -exec -overlay --exec --toolexec
bat batcat : --pager --map-syntax= --diff-command
ag ack : --pager --ackrc
rg : --pre --hostname-bin -z --search-zip
fd fdfind : -x -X --exec --exec-batch
tar gtar bsdtar : -I -F --use-compress-program --to-command --info-script --new-volume-script --checkpoint-action --rsh-command --rmt-command
cpio : --rsh-command
npm npx pnpm yarn bun : --script-shell --node-options --userconfig --globalconfig --init-module --git --node-gyp --python --use-yarnrc
gcc g++ cc c++ clang clang++ gfortran : -wrapper -fplugin -B -specs --specs -Xclang -load -fpass-plugin -plugin -fuse-ld
clang clang++ : --config
ld ld.bfd ld.gold ld.lld : -plugin --plugin
nm ar ranlib objdump strip strings size readelf gcc-nm gcc-ar : --plugin
openssl : -engine -provider -provider-path -config -pre -post
ssh : -I -o -F -D -J -L -R -W -w -E -m -S -Q
scp : -S -o -F -D
sftp : -S -o -F -D -b -s
ssh-keygen : -D
ssh-add : -s
ssh-copy-id : -o -F
split csplit : --filter
sort : --compress-program
less more most : -k --lesskey --lesskey-file --lesskey-src -o -O -T
man : -P --pager -C -H --html --config-file --browser --preprocessor
git : --upload-pack --receive-pack --extcmd --open-files-in-pager --sendmail-cmd
pdflatex latex xelatex lualatex tex pdftex xetex luatex latexmk : -shell-escape --shell-escape -enable-write18 --enable-write18 -e -pdflatex -latex -r -output-directory
pylint : --init-hook --load-plugins --rcfile
pip pip3 : --python
pip : --global-option --install-option
ansible ansible-playbook ansible-console ansible-pull : --vault-password-file --vault-id --ssh-common-args --ssh-extra-args --sftp-extra-args --scp-extra-args --connection-password-file --become-password-file
php : -d -c -a -B -R -F -E -r -f -z --define --php-ini --zend-extension
java : -javaagent -agentlib -agentpath -Xbootclasspath -XX:OnError -XX:OnOutOfMemoryError -XX:Flags -XX:VMOptionsFile
perl : -d:
make gmake : --eval
cmake : --toolchain
bazel : --run_under --bazelrc --shell_executable --workspace_status_command --host_jvm_args
rsync : -e --rsh --rsync-path --config -M --remote-option
curl : -K --config
wget : -e --execute --use-askpass --config
sqlite3 : -cmd -init
mysql mariadb : --default-auth --defaults-file --defaults-extra-file --pager --tee --plugin-dir --init-command
mongosh mongo : --eval --shell --file -f
vim vi nvim view vimdiff gvim ex rvim : -c --cmd -S -u -U -s -W --remote-send --remote-expr
vim vi nvim : -s -w
nvim : -l --headless
emacs : --eval --execute --load -l -f --funcall --script -x --init-directory
emacsclient : -e --eval -a --alternate-editor
nano : -s --speller -f --rcfile
zip : -T -TT --unzip-command
gpg gpg2 gpgsm gpgv : --photo-viewer --agent-program --keyserver-options --exec-path --homedir --options --dirmngr-program
ffmpeg ffprobe : -filter_script
convert magick : -script
xargs : -a --arg-file
perf : --objdump --addr2line --pre --post
gdb : -e --args --init-command
gdb lldb : -x --command -ex --eval-command -ix --init-command -iex --init-eval-command -o --one-line -s --source -S --data-directory -data-directory
valgrind : --db-command --tool
tcpdump : -z -w
crontab : -e -r
tshark : -X
nmap : --script --datadir
nc ncat netcat : -e -c --exec --sh-exec --lua-exec
nginx : -c -g -p -e
pandoc : -F --filter -L --lua-filter --pdf-engine -d --defaults
gs : -dNOSAFER -dDELAYSAFER -dALLOWPSTRANSPARENCY
exiftool : -config -if -W -w -o -filename -directory -tagsfromfile -TagsFromFile
hg : -e --ssh --remotecmd
svn : --config-option --config-dir --diff-cmd --diff3-cmd --editor-cmd
journalctl systemctl : --root --image
sudo : -A --askpass
file : -m -f -C -M --magic-file --files-from --compile
diff : --to-file --from-file
screen : -X
code : --install-extension --uninstall-extension --extensionDevelopmentPath
ip : -b --batch
env : -S --split-string
dig : -f
patch : --get -g
fzf sk : --bind --preview --listen --with-shell --history --become
busctl : --address -H --host -M --machine
gnuplot : -e -c -d -s
dc : -e -f --expression --file
bc : -l
lftp lftpget : -c -e -f
aria2c : --on-download-start --on-download-complete --on-download-stop --on-download-error --on-download-pause
aria2c : --on-bt-download-complete --conf-path -i --input-file --save-session --load-cookies --netrc-path
R Rscript : -e -f --file --vanilla-args
bpftrace : -e -c --unsafe --include
guile clisp slsh : -e -x -c -l --eval
puppet : -e --execute
restic : --password-command --password-file -o --option
sshfs : -o
scrot : -e --exec
pidstat : -e
ksu : -e
dhclient : -sf -cf
logrotate : -l --log -s --state -m --mail
minicom : -S --script -C --capturefile
enscript : -I --filter -p --output -o
csvtool : -o
rclone : --password-command --config --rc
yt-dlp youtube-dl : --exec --config-locations --downloader --external-downloader --batch-file -a --plugin-dirs
mpv : --script --scripts --input-ipc-server --include
ctags : --options
cscope : -f
w3m : -config
lynx : -cfg -cmd_script -editor
mutt : -F -e
irssi weechat : -r --run-command --config
tig : -C
htop top : -F
"""
"""Programs, and their options that run or load something, or read further options from a file."""

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
ss : -D --diag -K --kill
tcpdump : -w
bat : --generate-config-file
less more : --log-file --LOG-FILE
ffmpeg ffprobe : -vstats_file -passlogfile -sdp_file -report -progress -dump_attachment
zip : -O --out -lf --logfile-path
vim vi nvim view vimdiff gvim ex rvim : -w --startuptime
"""
"""Programs, and their options that write a file or change a setting."""

_NAMED = """
pip pip3 uv : --config-settings -C --index-url -i --extra-index-url --find-links -f --index --default-index
pip pip3 : --target -t --prefix --root --src --log --report -d --dest -w --wheel-dir --cache-dir
uv : --python -p
terraform tofu : -plugin-dir -chdir -backend-config -from-module
aws : --endpoint-url
go : -modfile -C -ldflags -gcflags -asmflags -cpuprofile -memprofile -coverprofile -trace -blockprofile -outputdir -o
cargo : --config --target-dir --out-dir --artifact-dir --manifest-path --lockfile-path
npm npx pnpm yarn bun : --registry --prefix --cache --logs-dir --pack-destination
node nodejs : -r --require --import --loader --experimental-loader --env-file --cpu-prof-dir --heap-prof-dir --diagnostic-dir --redirect-warnings --report-dir --report-directory --openssl-config --snapshot-blob --trace-event-file-pattern
jest vitest mocha : --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv --runner --testRunner --resolver --transform --config -c --require -r --reporter --reporters --coverageDirectory --outputFile
eslint : --rulesdir --resolve-plugins-relative-to --plugin --parser -c --config -f --format
prettier stylelint : --plugin --plugin-search-dir --config
stylelint : --custom-formatter --custom-syntax
tsc : --plugins --outDir --outFile --declarationDir --generateTrace --generateCpuProfile --tsBuildInfoFile
webpack vite rollup esbuild : --config -c --plugin
pytest py.test : -p -c --rootdir --confcutdir -o --override-ini --pdbcls --debug
tox : -c --conf --workdir --work-dir
nox : -f --noxfile
pre-commit : -c --config
mypy : --python-executable --config-file --custom-typeshed-dir
flake8 : --config --append-config
sphinx-build : -c -D
black ruff : --config
perl : -M -m -I -x -i
ruby : -r -I -C -x --require
javac : -processor -processorpath -J
mvn mvnw : -f --file -s --settings -gs -Dexec.executable -t
gradle gradlew : -I --init-script -b --build-file -c -g -p --project-dir --include-build
make gmake : -f --file --makefile -C --directory -I
cmake : -P -C -E --graphviz --trace-redirect
ctest : -S -SP --script -O --output-log
ninja : -f -C
docker podman : --config -H --host --context -o --output
psql : -f --file -o --output -L --log-file
mysqldump pg_dump : -r --result-file -f --file --defaults-file -T --tab
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
kubectl : --cache-dir --profile --profile-output
helm : --output-dir -d --destination
terraform tofu : -out -state-out -backup -state -generate-config-out
docker podman : --iidfile --cidfile --metadata-file
unzip : -d
7z 7za 7zr 7zz : -o -w
gcc g++ cc c++ clang clang++ gfortran : -MF -aux-info -dumpdir
xsltproc : -o --output --writesubtree
gh : -O --output -D --dir
nmap : -oN -oX -oS -oG -oA
tshark dumpcap : -w
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
"""Everyday options that also run or write. They are no finding for a human, but an allow rule must name them."""


def _abbreviated(words: str) -> str:
    """Return a pattern for these words and their abbreviations."""
    return "|".join(word[:length] for word in words.split() for length in range(len(word), 1, -1))


# sqlite3 accepts unambiguous beginnings of its dot commands
_SQLITE_COMMANDS = _abbreviated(
    "shell system load open output once excel import read save backup clone archive log restore"
)

_TEXTS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("tmux",), re.compile(r"#\(")),
    **dict.fromkeys(("less", "more", "most"), re.compile(r"\A\+{1,2}.*[!|sv#]")),
    **dict.fromkeys(("vim", "vi", "nvim", "view", "ex", "gvim"), re.compile(r"\A\+.")),
    **dict.fromkeys(("sqlite3",), re.compile(rf"(?:\A|\n|;)\s*\.(?:{_SQLITE_COMMANDS})\b|load_extension|writefile|edit\(|"
                                             r"\bfts3_tokenizer|readfile|ATTACH\b|vacuum\s+into", re.IGNORECASE)),
    **dict.fromkeys(("psql",), re.compile(r"\\(?:!|g\s*\||g\s+\S|o\s|w\s|copy\b|i\b|ir\b|e\b|setenv\b|watch\b|gexec\b)|`|"
                                          r"\bcopy\b.*\b(?:program|to|from)\b|lo_(?:import|export)|pg_read_file",
                                          re.IGNORECASE | re.DOTALL)),
    **dict.fromkeys(("mysql", "mariadb"), re.compile(r"\\!|(?:\A|\n|;)\s*(?:system|source|pager|tee|edit)\b|"
                                                     r"into\s+(?:outfile|dumpfile)|load_file", re.IGNORECASE)),
    **dict.fromkeys(("nm", "ar", "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "objdump", "strings", "size",
                     "readelf", "strip", "objcopy", "ranlib", "javac", "java", "tsc"), re.compile(r"\A@.|\A-Wl,.*-plugin")),
    **dict.fromkeys(("rustc", "cargo"), re.compile(r"\A@.|(?:\A|\A-C\s*)(?:linker|ar)=")),
    **dict.fromkeys(("duckdb",), re.compile(r"\.shell|\.system|\bcopy\b|\binstall\b|\bload\b", re.IGNORECASE)),
    **dict.fromkeys(("ed", "ex", "gdb", "lldb"), re.compile(r"!|\bshell\b|\bplatform\b|\bpython\b|\bscript\b")),
    **dict.fromkeys(("make", "gmake"), re.compile(r"\A(?:SHELL|MAKE|\.SHELLFLAGS|MAKEFLAGS)\s*[:?!]*=|"
                                                r"\A(?:CC|CXX|CPP|FC|LD|AR|AS|RM|INSTALL|LEX|YACC)\s*[:?!+]*=.*[^\w.+-]")),
    **dict.fromkeys(("cmake",), re.compile(r"\A(?:-D)?CMAKE_\w*(?:COMPILER|LAUNCHER|TOOLCHAIN_FILE|INCLUDE|PROGRAM|LINKER|"
                                           r"EMULATOR)(?::\w+)?=.*/")),
    **dict.fromkeys(("socat",), re.compile(r"\A(?:exec|system|shell)[:,]|!!(?:exec|system|shell):", re.IGNORECASE)),
    **dict.fromkeys(("gs",), re.compile(r"%pipe%|OutputFile=\|")),
    **dict.fromkeys(("ansible", "ansible-playbook", "ansible-console"), re.compile(r"\bansible_\w+\s*[=:]")),
    **dict.fromkeys(("mvn", "gradle", "gradlew"), re.compile(r"\Aexec:|-Dexec\.|-Dmaven\.ext\.class\.path=")),
    **dict.fromkeys(("openssl",), re.compile(r"\Aorg\.openssl\.engine:|\Aengine:|\Apkcs11:")),
    **dict.fromkeys(("convert", "magick", "identify"), re.compile(r"\A(?:\||msl:|ephemeral:|https?:)")),
    **dict.fromkeys(("ffmpeg", "ffprobe"), re.compile(r"\A(?:concat|subfile|https?|tcp|udp|pipe):|"
                                                       r"(?:\A|[\]\[;,])\s*(?:ladspa|frei0r|lv2|movie|amovie)\b")),
}  # fmt: skip
"""Programs, and patterns of arguments that make them run a command or open another file."""

_OUTPUT_OPERAND = {"uniq": (2, "ICfsw"), "xxd": (2, "clgos"), "iconv": (99, ""), "ts": (99, "")}
"""Programs that write to their last operand: from how many operands on, and their letters with a value."""

_SETTINGS = {
    "date": (re.compile(r"(?:\d\d){4,6}(?:\.\d\d)?"), "dfrs"),
    "sysctl": (re.compile(r"[\w.*/-]+\s*=.*", re.DOTALL), "pr"),
    "hostname": (re.compile(r".+", re.DOTALL), "F"),
}
"""Programs that change a setting if they get such an operand, and their letters with a value."""

_SUBCOMMANDS: dict[str, dict[str, tuple[str, ...]]] = {
    "git": {"archive": ("-o", "--output", "--remote", "--exec"), "format-patch": ("-o", "--output-directory", "--output"),
            "bundle": ("create",), "bugreport": ("-o",), "diagnose": ("-o",), "difftool": ("-x", "--extcmd"),
            "grep": ("-O", "--open-files-in-pager"), "ls-remote": ("--upload-pack",)},
    "go": {"env": ("-w", "-u"), "vet": ("-vettool",), "test": ("-exec", "-c", "-o"), "build": ("-o",)},
    "perf": {"script": ("-s", "--script")},
    "openssl": {"req": ("-out", "-keyout"), "rand": ("-out",)},
}  # fmt: skip
"""Options of single subcommands that write or run. Other subcommands use the same options differently."""

# for programs that nobody has examined: the name of an option is the only hint; `--no-script` is harmless
_GENERIC_RUNS = re.compile(
    r"--(?!(?:no|ignore|skip|disable|without)-)(?:[\w]+-)*(?:exec|execute|command|cmd|shell|hooks?|plugins?|pager|editor|"
    r"wrapper|eval|rsh|rcfile|renderer|preprocessor|postprocess|launcher|interpreter|callback|preload|loader|askpass|"
    r"program|prog|browser|viewer|script)(?:-[\w-]+)?(?:=.*)?",
    re.DOTALL,
)
_ONLY_NAMED_ALIKE = frozenset(
    "--dereference-command-line --dereference-command-line-symlink-to-dir --program-headers --pager-end "
    "--dump-catalog".split()
)
"""Options of well-known programs that neither run nor write anything, whatever their names say."""
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
    "tar": "bCfFgHIKLNTVX", "gtar": "bCfFgHIKLNTVX", "rg": "ABCdeEfgjmMtT", "sort": "kStTo", "git": "CcnLSGUO", "fd": "dtecEoSj",
    "grep": "ABCDdefm", "ssh": "BbcDEeFIiJLlmOopQRSWw", "scp": "cDFiJloPSX", "make": "CfIjloW", "psql": "cdFhLopPRTUvf",
    "gcc": "oIDLlUxBefmOW", "cc": "oIDLlUxBefmOW", "clang": "oIDLlUxBefmOW", "date": "dfrsI", "perl": "0CDFIlMmxieE", "ruby": "0CEeFIilrTWxX",
    "pytest": "kmopcrnW", "docker": "lHc", "mysql": "uphPDeS", "less": "bhjkoOpPtTxyz#D", "unzip": "dP", "npm": "wC", "nc": "eIiMmOPpqsTVWwXxcGg", "ncat": "cegGiGmopPsw", "hg": "eRrbcmuld", "pandoc": "ftrwodFLMVTHBAc", "nano": "sfCTQrYoJ",
    "nginx": "cgpes", "ss": "fFDAN", "gpg": "oruNR", "gpg2": "oruNR", "zip": "bntx", "tshark": "bcdefijorRswXYzTDa", "7z": "owpmtv",
    "kubectl": "nlocfkv", "pip": "rceiftdwbC", "cargo": "pjFC", "curl": "AbcCdDeEFhHKmMoPQrtTuUwxXyYz", "wget": "aBDeGhiIlNoOPQRAtTUwX",
    "tree": "LPIHTo", "iconv": "fto", "shuf": "inor", "journalctl": "upnogSUDcFbM", "jq": "Lf", "eslint": "cfo", "apt": "toca", "apt-get": "toca",
    "man": "LMPrSseRETpHC", "rsync": "eBfMT", "sftp": "BbcDFiJloPRSsX", "crontab": "u", "vim": "cSsWwTtu", "vi": "cSsWwTtu",
    "nvim": "cSsWwTtul", "emacs": "flu", "file": "mfFePM", "diff": "CUWILFxXDS", "screen": "ceEhpsStT", "gdb": "xdpc",
    "tcpdump": "BcCDEFGirsTVwWyzZ", "ip": "bfn", "env": "uCS",
}  # fmt: skip
"""Letters with a value, after which the rest of the word is that value."""

_ABBREVIATES = frozenset("rg man tar rsync make zip pip vim vi nvim emacs less file diff gdb code ip env".split())
"""Programs whose long options count from their first letter on: getopt_long takes any unambiguous beginning."""


def dangerous_options(argv: Words, name: str) -> list[Danger]:
    """Return the options and operands of a known program that run or write something."""
    found = [
        *_options(argv, name, _RUNNING.get(name, ()), "runs-other-code"),
        *_options(argv, name, _WRITING.get(name, ()), "writes-file"),
    ]
    pattern = _TEXTS.get(name)
    if pattern is not None:
        sentence = f"Its arguments make {name} run a command, or open another file"
        found += [
            Danger("runs-other-code", sentence, at)
            for at, word in enumerate(argv)
            if at and word is not None and pattern.search(word)
        ][:1]
    if name in _OUTPUT_OPERAND:
        most, valued = _OUTPUT_OPERAND[name]
        named = _without_values(argv, valued)
        if len(named) >= most:
            found.append(Danger("writes-file", f"{name} writes to its last argument", named[-1]))
    if name in _SETTINGS:
        setting, valued = _SETTINGS[name]
        found += [
            Danger("writes-file", f"{name} changes a setting of the machine", at)
            for at in _without_values(argv, valued)
            if setting.fullmatch(argv[at] or "")
        ][:1]
    return found + _of_subcommand(argv, name)


_RUN_OPERANDS = frozenset(
    "java javaw jshell jrunscript scala kotlin clojure groovy gnuplot dc lftp bpftrace guile clisp slsh sbcl run-parts "
    "puppet logrotate csvtool genie sash R octave maxima stap".split()
)
"""Programs whose operand is code, a script or a program that they run."""


def examined_programs() -> frozenset[str]:
    """Return the programs whose options somebody has examined."""
    tables = (_RUNNING, _WRITING, _ONLY_NAMED, _TEXTS, _OUTPUT_OPERAND, _SETTINGS, _SUBCOMMANDS)
    return _RUN_OPERANDS.union(*tables)


def options_that_rules_must_name(argv: Words, name: str) -> list[Danger]:
    """Return the dangers that only allow rules consider: everyday options, and options with a suspicious name."""
    found = _options(argv, name, _ONLY_NAMED.get(name, ()), "writes-file")
    if name in _RUN_OPERANDS:
        found += [Danger("runs-other-code", "", at) for at, _ in first_words(argv)[:1]]
    for at, word in enumerate(argv):
        if not at or word is None or not word.startswith("--") or word in _ONLY_NAMED_ALIKE:
            continue
        if word == "--":
            break
        if _GENERIC_RUNS.fullmatch(word):
            found.append(Danger("runs-other-code", f"{word.partition('=')[0]} may run or load something else", at))
        elif _GENERIC_WRITES.fullmatch(word):
            found.append(Danger("writes-file", f"{word.partition('=')[0]} may write a file", at))
    return found


def _options(argv: Words, name: str, options: tuple[str, ...], kind: str) -> list[Danger]:
    """Return a danger for each of these options in a command."""
    if not options:
        return []
    found: list[Danger] = []
    # all of them, not the first: a rule that names one option must not cover the next
    effect = "run or load something else" if kind == "runs-other-code" else "write a file, or change a setting"
    for at, word in enumerate(argv):
        if not at or word is None:
            continue
        if word == "--":
            break
        # `tar xIf …`: the first word of tar and ar is a bundle of options even without a dash
        bundled = name in {"tar", "ar"} and at == 1 and not word.startswith("-")
        if any(_is("-" + word if bundled else word, option, name) for option in options):
            # the risk of crontab itself says it better
            sentence = "" if name == "crontab" else f"{word.partition('=')[0]} makes `{name}` {effect}"
            runs = kind == "runs-other-code"
            found.append(Danger("runs-other-code", sentence, at) if runs else Danger("writes-file", sentence, at))
    return found


def _is(word: str, option: str, name: str) -> bool:
    if option.startswith("--"):
        given = word.partition("=")[0]
        shortest = 3 if name in _ABBREVIATES else 5  # dashes included; `npx --no` is no beginning of `--node-options`
        begins = len(given) >= shortest and given.startswith("--") and option.startswith(given)
        return given == option or (begins and shortens_options(name))
    if len(option) == 2:
        return option[1] in letters(word, _SHORT_VALUED.get(name, "")) and (
            word.startswith(option) or name in _SHORT_VALUED
        )
    # options such as `-javaagent:x` or `-exec`; Go accepts them with two dashes as well
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
    for index, subcommand in first_words(argv):
        for at in range(index + 1, len(argv)):
            word = argv[at]
            if word is not None and any(
                word == option or (option.startswith("-") and word.startswith(option) and not word.startswith("--"))
                or word.startswith(option + "=")
                for option in table.get(subcommand, ())
            ):  # fmt: skip
                return [Danger("writes-file", f"{word} makes {name} {subcommand} write or run something", at)]
    return []
