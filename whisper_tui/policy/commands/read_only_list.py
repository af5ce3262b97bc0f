"""The built-in list of programs that only read, with their harmless options, and the check of one argv (decision 8)."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from whisper_tui.policy.commands.argv import AllowedOptions, allowed_options, parse_arguments, read_table
from whisper_tui.policy.commands.read_only_programs import SPECIAL, VERSIONS, git_forms, git_only_reads
from whisper_tui.policy.commands.text_tools import named_words, text_tools
from whisper_tui.policy.commands.words_of_input import GivenWords, starter
from whisper_tui.policy.risks.sensitive_paths import names_secret

# Programs that describe the machine, its processes and its packages, with the options that only change the output. A
# line: `programs | letters | names | notes`, as in the table of text tools.
MACHINE = """
pwd | LP | logical physical
cd | LPe
true false : whoami logname groups users lsmod sleep times expr printf
arch | | | most=0
tty | s | silent quiet
nproc | | all ignore=
hostname | sIy | short all-ip-addresses | most=0
uname | asnrvmpio | all kernel-name nodename kernel-release kernel-version machine processor hardware-platform
    operating-system
id | agGnruzZ | group groups name real user zero context
who | abdHlmpqrstTuw | all boot heading login count short users
w | hsfoipu
last | aFiwxn:f:s:t:p: | | numbers
uptime | ps | pretty since
date | Rud:r:I | utc universal date= reference= iso-8601? rfc-3339= rfc-email
cal ncal | 137mjybSswMehn:A:B: | one three monday sunday julian year
which | as | all skip-alias skip-dot skip-tilde show-dot show-tilde tty-only
whereis | bmsluBMS
type | afptP
exit break continue return | | | most=1
help | dms
locale | ackv | all-locales category-name keyword-name
getconf | av:
free | bkmghlotwvs:c: | bytes kilo mega giga tera human lohi line total wide seconds= count= si
vmstat | adfimnstwDS: | active stats disk slabs
lscpu | abceJpxyBs: | all json parse? extended? online
lsblk | abdDfhiJlmMnOpPrsStTze:o:I:x: | all bytes discard fs json list output= paths pairs perms topology nodeps tree?
lspci | bDkmnPtvx | mm
lsusb | tvs:d:
dmesg | kLTtuxwdeprl:f: | kernel ctime level= facility= decode color?
pgrep | acfilnovwxF:g:G:P:s:t:u:U:d:r: | count list-name list-full full inverse newest oldest exact delimiter= parent=
    euid= uid= ignore-case
pidof | csxzo: | single-shot
pstree | aAcghlnpsSTtuUZH: | arguments ascii show-pids show-parents long numeric-sort
lsof | abChKlnNOPRtUvVwXc:d:p:u:g?i?s?F?L?T?
ss | 46aeHilmnoOpstuwxZbEf: | numeric all listening options extended memory processes info summary tcp udp raw
    unix ipv4 ipv6 no-header | most=0
netstat | 46acegilnNopMrstuvwxA: | all listening numeric programs route interfaces statistics tcp udp | needs=n most=0
ifconfig | as | | most=1
journalctl | aqxerfkmNlb?u:t:p:n?o:g:S:U:D:c:F: | all full no-full lines? output= output-fields= utc no-hostname quiet merge
    boot? list-boots dmesg identifier= unit= user-unit= priority= facility= grep= case-sensitive? since= until= cursor=
    after-cursor= show-cursor reverse follow no-tail pager-end no-pager catalog fields header disk-usage user system
    directory= field= verify dump-catalog list-catalog
dpkg | lLsSpC | list listfiles status search print-avail audit get-selections print-architecture verify
dpkg-query | lLsSWpf: | list listfiles status search show showformat=
rpm | qaiflRcd | all info list requires provides whatprovides= whatrequires= changelog scripts queryformat= | needs=q
mount | l | | most=0
findmnt | aAbDeiJlnrRs | all df json list raw tree
nvidia-smi | Lq | query-gpu= format= list-gpus
sw_vers | | -productName -productVersion -buildVersion
ulimit | aHS | | most=0
umask | Sp | | most=0
jobs | lnprs | | most=0
dirs | clpv | | most=0
whatis apropos | rwle
hostnamectl timedatectl localectl loginctl | | | most=0
"""

# Programs with subcommands: those that only show something. A line: `programs: subcommands | letters | names | notes`;
# a subcommand is a pattern for the first words, and commas separate them. Not listed, on purpose:
# - go, terraform, rustup, hg, composer, and the shims of asdf and pyenv: they read programs, plug-ins or settings of
#   the project before they answer;
# - `npm view`, `svn log`, pulumi: they send words or a secret to a server that the project names;
# - `tmux display-message`: it runs what its format says;
# - `docker inspect`, `helm get`, `heroku config`, `az … keys list`: they show what is usually secret.
SUBCOMMANDS = """
docker podman nerdctl: ps, images, version, info, image ls, image list, container ls, container list,
    volume ls, network ls, system df, context ls, context show, compose ls, compose version, buildx ls
    | aqlsf:n: | all quiet no-trunc latest size filter= format= last= digests limit= verbose
docker podman nerdctl: history *, port *, diff *, image history *, container port *, container diff *,
    volume inspect *, network inspect * | f:sHq | format= size human? no-trunc quiet
docker podman nerdctl: logs *, container logs *, stats, stats *, container stats *
    | ftn:a | follow tail= since= until= timestamps details no-stream all no-trunc format=
kubectl oc: get *, describe *, api-resources, api-versions, cluster-info, version, explain *, top *, config get-contexts,
    config current-context, config get-clusters, auth can-i *, rollout status *, rollout history *, events
    | Ao:l:n:wL: | all-namespaces output= selector= namespace= watch show-labels label-columns= no-headers sort-by=
    field-selector= context= client short recursive containers minify api-group= namespaced? verbs= list revision=
    show-events? show-kind ignore-not-found
kubectl oc: logs * | fpc:n:l: | follow previous container= namespace= tail= since= since-time= timestamps all-containers
    selector= prefix max-log-requests= context=
helm: list, ls, status *, history *, version, search repo *, repo list
    | an:o: | all all-namespaces namespace= output= revision= max= short date filter= | most=3
pip pip3: list, show *, freeze, check, cache dir, cache info, help, help *
    | lv | local user format= exclude= not-required include-editable files all verbose disable-pip-version-check
npm: ls, ls *, list, list *, root, prefix, pkg get, pkg get *
    | aglp | all global json long parseable depth= omit= include= production dev link
conda mamba: list, info, env list | e | json name= export no-pip
gcloud: projects list, compute instances list, compute zones list, compute regions list, compute disks list,
    compute networks list, container clusters list, services list, config list, config get *, config get-value *, info,
    version, auth list
    | q | project= format= filter= limit= region= zone= zones= regions= sort-by= uri quiet page-size= account=
az: account list, account show, account list-locations, group list, group show, vm list, vm show, aks list, acr list,
    network vnet list, storage account list, resource list, version
    | g:n:o: | resource-group= name= output= query= subscription= only-show-errors all
gem: list, list *, info *, environment, which *, contents *, dependency * | aldv | local all versions
apt: list, list *, show *, search *, policy, policy *, depends *, rdepends * | a | installed upgradable all-versions
apt-cache: search *, show *, policy, policy *, depends *, rdepends *, showpkg *, madison *, stats, pkgnames
    | n | names-only installed recurse no-recommends
snap: list, list *, info *, find *, version | | all
flatpak: list, info *, search *, remotes | d | app runtime show-details
systemctl: status, status *, list-units, list-units *, list-unit-files, list-unit-files *, list-timers, list-sockets,
    list-dependencies, list-dependencies *, list-jobs, is-active *, is-enabled *, is-failed *, is-system-running, cat *,
    get-default
    | alqt:n:p:o: | all full quiet user system no-pager no-legend plain type= state= failed lines= property= output=
    value reverse after before
loginctl: list-sessions, list-users, session-status *, user-status *, show-session * | ap: | no-pager property= all
hostnamectl timedatectl localectl: status, show
gh: pr list, pr view, pr view *, pr status, pr diff, pr diff *, pr checks, pr checks *, issue list, issue view *,
    issue status, repo view, repo view *, repo list, repo list *, release list, release view, release view *, run list,
    run view *, workflow list, workflow view *, search *, status, label list, gist list, gist view *,
    secret list, variable list, cache list, ruleset list, ruleset view *, org list, project list, project view *
    | L:R:S:s:A:a?B:H:q:t:l:cedv | limit= repo= search= state= author= assignee= base= head= jq= template= label= json=
    comments draft archived fork language= license= visibility= owner= sort= order= topic= stars= created= updated=
    pushed= followers= size= match= log log-failed job= exit-status verbose attempt= required name-only patch color=
    milestone= mention= app= branch= commit= event= status= user? source active hostname= raw files filename= yaml
    merged reviewed-by= review= review-requested= involves= commenter= interactions= reactions= checks= closed?
    no-assignee no-label no-milestone no-project include-prs include-forks= good-first-issues= help-wanted-issues=
    number-topics= forks= author-date= committer= committer-date= extension= exclude-drafts exclude-pre-releases
ollama: list, ps, show *
tmux: ls, list-sessions, list-windows, list-panes | ast: |
screen: -ls
rabbitmqctl: status, list_queues, list_exchanges, list_bindings, list_users, list_vhosts, cluster_status | qp: |
redis-cli: info, dbsize, ping
nmcli: device status, device show, connection show, general status, radio, device wifi list | tf: | terse fields=
resolvectl: status, statistics
7z 7za 7zr 7zz: l *, t *, h *, b, i | p | -slt -ba -bb? -bd -r -scrcSHA256 -scrcSHA1 -scrcCRC32 -scrcCRC64 -scrcXXH64 -scrc*
    -mmt? -mm?
ar: t *, tv *, tO *, tvO *
"""


# resolved like the program itself: a helper from the workspace would be a program of the agent
_HELPERS = {
    "zcat": ("sh", "gzip"),
    "gzcat": ("sh", "gzip"),
    "egrep": ("sh", "grep"),
    "fgrep": ("sh", "grep"),
    "rgrep": ("sh", "grep"),
    "tar": ("gzip", "bzip2", "xz", "zstd", "lzip", "lzma", "lzop", "compress"),
    "which": ("sh",),
    "shasum": ("perl",),
    "gh": ("git",),
    "git": ("sh", "ssh", "gpg", "less"),
    "npm": ("node",),
    "pip": ("python3",),
    "pip3": ("python3",),
    "gem": ("ruby",),
    "pygmentize": ("python3",),
    "aws": ("python3",),
    "az": ("python3", "sh"),
    "gcloud": ("python3", "sh"),
    "conda": ("python3",),
    "nohup": ("sh",),
    "dpkg": ("dpkg-query",),
    "apt": ("dpkg",),
    "apt-cache": ("dpkg",),
    "lspci": ("gzip",),
    "apropos": ("man",),
    "whatis": ("man",),
    "timeout": ("sh",),
}


def helpers_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the programs that these may start in turn."""
    return tuple(dict.fromkeys(helper for name in sorted(names) for helper in _HELPERS.get(name, ())))


_NEED_NO_SANDBOX = frozenset(
    ": arch b2sum base32 base64 basename cat cd cksum cmp comm cut date dirname echo expand expr factor false fmt fold "
    "grep head id join logname ls md5sum nl nproc od paste pwd readlink realpath rev seq sha1sum sha224sum "
    "sha256sum sha384sum sha512sum sleep stat sum tac tail tr true tsort tty uname unexpand users wc "
    "whoami".split()
)
"""Programs without subprocesses, plug-ins, project settings or code in their arguments. The checks of the list apply too."""

_FAIL_IN_SANDBOX = frozenset(
    "aws az docker dmesg flatpak gcloud gh helm hostnamectl ifconfig kubectl localectl loginctl nerdctl nmcli nvidia-smi "
    "oc ollama podman rabbitmqctl redis-cli resolvectl screen snap systemctl timedatectl tmux".split()
)
"""Programs that ask another process, another machine or a device, which the sandbox blocks.

In a sandbox they could only fail, and would be asked the second time; so they are asked at once.
"""

_PLAIN_DIRECTORIES = frozenset({"", "/bin", "/usr/bin"})

_HARMLESS_OPTIONS = _NEED_NO_SANDBOX | frozenset("egrep fgrep du hexdump hd".split())
"""Programs with which a file name does no harm that is taken for an option: none of theirs writes or runs anything."""

_CODE_FIRST = frozenset("awk gawk mawk nawk sed gsed jq".split())
"""Programs whose first operand is code, and all others are files."""

_TAKE_FILES = _CODE_FIRST | frozenset("diff fd fdfind find gfind".split())
"""Programs with a check of their own, but for their options and their code, they only read the files that are named."""

_MISCHIEF = ("\x01", "-\x01", "--\x01", "@\x01")
"""Ends of file names that no program knows as an option, so that one in the place of an option is refused.

`@file` is replaced by arguments in that file, by some programs also behind `--`.
"""


def fails_in_sandbox(argv: Sequence[str]) -> bool:
    """True if the program needs a socket or a device, so that it would fail in the sandbox."""
    return argv[0].rpartition("/")[2] in _FAIL_IN_SANDBOX


_LOOK_UP = frozenset({"[", "command", "test", "type"})
"""Builtins that look at files or search for programs, and do nothing else with the arguments that the list allows."""


def needs_no_sandbox(argv: Sequence[str]) -> bool:
    """True if the program of an allowed command is harmless with any arguments (decision 7)."""
    directory, _, name = argv[0].rpartition("/")
    # what follows links wherever they lead is held by the sandbox alone
    if name == "grep" and any(re.match(r"-[A-Za-z]*R|--d", word) for word in argv[1:]):
        return False
    return argv[0] in _LOOK_UP or (name in _NEED_NO_SANDBOX and directory in _PLAIN_DIRECTORIES)


def harmless_with_any(argv: Sequence[str], beginnings: Sequence[str | None]) -> bool:
    """True if a command only reads, whatever file names take the places of some of its words (decision 29).

    `beginnings`: for each word None, or the text with which every name in its place begins.
    """
    first = next((at for at, beginning in enumerate(beginnings) if beginning is not None), None)
    if first is None:
        return True
    directory, _, name = argv[0].rpartition("/")
    if first == 0 or directory not in _PLAIN_DIRECTORIES:
        return False
    if name in _HARMLESS_OPTIONS:
        return True
    if name not in _TAKE_FILES and name not in text_tools():
        return False
    # the code has to stand before the first name, or a name could be code
    if name in _CODE_FIRST and not only_reads(argv[:first], git_is_neutral=False):
        return False
    return all(
        only_reads(_with_names(argv, beginnings, mischief, times), git_is_neutral=False)
        for mischief in _MISCHIEF
        for times in (0, 1, 2, 5)
    )


_ONE_OPERAND = frozenset("-z -n -e -f -d -r -w -x -s -L -h".split())
_TWO_OPERANDS = frozenset("= == != -eq -ne -lt -le -gt -ge -nt -ot -ef".split())


def tests_one_thing(words: Sequence[str | None], number: int) -> bool:
    """True for `[ -n "$x" ]` and `[ "$x" = y ]`: whatever the unknown words are, which are None, nothing runs.

    With more words, the value of one could be read as an operator, and bash evaluates the operand of `-v`. `number`: of
    all words; if these are fewer, some stand for any number of words.
    """
    if len(words) != number or words[0] not in {"[", "test"} or (words[0] == "[") != (words[-1] == "]"):
        return False
    inside = list(words[1:-1] if words[0] == "[" else words[1:])
    if inside[:1] == ["!"]:
        del inside[0]
    return (len(inside) == 2 and inside[0] in _ONE_OPERAND) or (len(inside) == 3 and inside[1] in _TWO_OPERANDS)


def _with_names(argv: Sequence[str], beginnings: Sequence[str | None], end: str, times: int) -> list[str]:
    """Return the words with some file names in the place of each pattern."""
    pairs = zip(argv, beginnings, strict=True)
    return [each for word, start in pairs for each in ([word] if start is None else [start + end] * times)]


SYSTEM_DIRECTORIES = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/")
"""Directories in which a program given by its path counts as the program of that name."""

_SECRET_WORD = re.compile(r"(?i)\bsecrets?\b|keyvault|password")


class _Subcommand(NamedTuple):
    words: tuple[str, ...]
    form: AllowedOptions


@cache
def _forms() -> dict[str, AllowedOptions]:
    return text_tools() | dict(read_table(MACHINE))


@cache
def _subcommands() -> dict[str, tuple[_Subcommand, ...]]:
    found: dict[str, list[_Subcommand]] = {}
    lines: list[str] = []
    for line in SUBCOMMANDS.strip("\n").splitlines():
        if line.startswith(" "):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    for line in lines:
        programs, _, rest = line.partition(":")
        patterns, *columns = (column.strip() for column in rest.split("|"))
        made = allowed_options(*columns)
        entries = [_Subcommand(tuple(pattern.split()), made) for pattern in patterns.split(",")]
        for program in programs.split():
            found.setdefault(program, []).extend(entries)
    return {program: tuple(entries) for program, entries in found.items()}


def listed_forms() -> Iterator[tuple[tuple[str, ...], AllowedOptions]]:
    """Yield each program or subcommand of the tables with its options; a last `*` stands for more words."""
    yield from (((name,), form) for name, form in _forms().items())
    yield from (((name, *entry.words), entry.form) for name, entries in _subcommands().items() for entry in entries)
    yield from ((("git", *words), form) for words, form in git_forms())


def listed_commands() -> tuple[str, ...]:
    """Return the programs on the list, and the subcommands of others: `ls`, `pip list`; `*` stands for more words."""
    found = {*SPECIAL, *(" ".join(words) for words, _ in listed_forms())}
    return tuple(sorted(each for each in found if not fails_in_sandbox(each.split())))


def only_reads(argv: Sequence[str], *, git_is_neutral: bool, shows_names: bool = False) -> bool:
    """True if a literal command is known to only read and show.

    `shows_names`: nothing in its whole text shows more of a file than its name, so that secret ones may be named.
    """
    name = _program(argv[0])
    if name is None or (not shows_names and any(names_secret(word) for word in named_words(tuple(argv)))):
        return False
    words = argv[1:]
    if name == "lsof" and any("@" in word for word in words):
        return False  # the name of a machine, which another one is asked for
    if name == "git":
        return git_is_neutral and git_only_reads(words)
    if len(words) == 1 and words[0] in {"--version", "--help"} and _tells_about_itself(name):
        return True
    if " ".join(words) in _VERSION_LETTERS.get(name, ()):
        return True
    if name in _GREPS:
        # to grep, such a pattern is an option that it does not know, so it only fails
        words = [word for word in words if not re.fullmatch(r"-{2,}[^A-Za-z-].*|-{3,}", word, re.DOTALL)]
    if name in _READS_ARGUMENTS_FROM_FILES and any(word.startswith("@") for word in words):
        return False
    if (started := starter(argv)) is not None:
        return _starts_only_readers(name, started.own, started.commands)
    if (special := SPECIAL.get(name)) is not None:
        return special(list(words))
    allowed = _forms().get(name)
    if allowed is not None and parse_arguments(words, allowed) is not None:
        return True
    return any(_matches(words, entry) for entry in _subcommands().get(name, ()))


def _starts_only_readers(name: str, own: Sequence[str], commands: Iterable[GivenWords]) -> bool:
    """True if a program only reads, and so does all that it runs, with whatever words it gives to that."""
    # `find . -name '*.pem' -exec cat {} +` names what it reads by patterns
    if any(names_secret(re.sub(r"[*?]", "x", word)) for word in own):
        return False
    return (name == "xargs" or only_reads(own, git_is_neutral=False)) and all(
        only_reads(given.argv, git_is_neutral=False) and harmless_with_any(given.argv, given.beginnings)
        for given in commands
    )


def _program(word: str) -> str | None:
    if "/" not in word:
        return word
    directory, _, name = word.rpartition("/")
    return name if directory + "/" in SYSTEM_DIRECTORIES else None


_GREPS = frozenset({"grep", "egrep", "fgrep"})

_VERSION_LETTERS = {
    "perl": ("-v", "-V"),
    **dict.fromkeys(("python", "python3"), ("-V", "-VV")),
    **dict.fromkeys(("node", "npm", "ruby", "make"), ("-v",)),
    **dict.fromkeys(("gawk", "jq"), ("-V",)),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz"), ("", "-h")),
    "unzip": ("-h", "-hh"),
}
"""By program: its arguments, or none, with which it only tells about itself."""

_READS_ARGUMENTS_FROM_FILES = frozenset("strings nm objdump readelf size ar 7z 7za 7zr 7zz".split())
"""Programs that replace `@file` by the arguments in that file."""


def _tells_about_itself(name: str) -> bool:
    """True if a program answers `--version` before it reads anything of the project."""
    return name in VERSIONS or name in _forms() or name in SPECIAL


def _matches(words: Sequence[str], entry: _Subcommand) -> bool:
    given = parse_arguments(words, entry.form)
    if given is None:
        return False
    wanted = entry.words
    more = wanted[-1:] == ("*",)
    if len(given.operands) < len(wanted) or (len(given.operands) > len(wanted) and not more):
        return False
    # `kubectl get secret` and the like show secrets through a harmless subcommand
    if any(_SECRET_WORD.search(operand) for operand in given.operands[1:]):
        return False
    return all(fnmatch.fnmatchcase(operand, pattern) for operand, pattern in zip(given.operands, wanted, strict=False))
