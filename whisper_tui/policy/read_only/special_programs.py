"""Read-only checks for programs whose arguments are a language of their own, such as find, awk and ps."""

import re
from collections.abc import Callable, Sequence

from whisper_tui.policy.commands.awk_sed_jq import awk_has_effects, jq_reaches_further, sed_has_effects
from whisper_tui.policy.read_only.allowed_options import allowed_options, parse_arguments

_FIND_TESTS = frozenset(
    "-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename "
    "-links -lname -mmin -mtime -name -newer -path -perm -regex -samefile -size -type -uid -used -user -wholename "
    "-xtype -context -maxdepth -mindepth -regextype -printf".split()
)
_FIND_FLAGS = frozenset(
    "-empty -executable -false -nogroup -nouser -readable -true -writable -daystart -depth -d -follow -ignore_readdir_race "
    "-mount -noignore_readdir_race -noleaf -nowarn -warn -xdev -print -print0 -ls -prune -quit -a -and -o -or -not ! ( ) , "
    "-H -L -P -E -x -X -s".split()
)


def find(words: Sequence[str]) -> bool:
    """True if every word is a path, a harmless test with its value, or an operator."""
    at = 0
    while at < len(words):
        word = words[at]
        if word in _FIND_TESTS or re.fullmatch(r"-newer[aBcmt][aBcmt]", word):
            at += 2
        elif word in _FIND_FLAGS or not word.startswith("-") or re.fullmatch(r"-O[0-3]", word):
            at += 1
        else:
            return False
    return True


def fd(words: Sequence[str]) -> bool:
    """True if no option runs a command; `--list-details` runs `ls`."""
    allowed = allowed_options(
        "HIuUsigFapL1q0d:e:E:S:c:j:t:",
        "hidden no-ignore no-ignore-vcs no-ignore-parent unrestricted case-sensitive ignore-case glob regex "
        "fixed-strings absolute-path follow full-path max-depth= min-depth= exact-depth= type= extension= "
        "exclude= size= color= threads= max-results= quiet print0 changed-within= changed-before= owner= prune "
        "strip-cwd-prefix and= path-separator= search-path= base-directory= one-file-system show-errors hyperlink?",
    )
    return parse_arguments(words, allowed) is not None


_SED = allowed_options("nErszul:", "quiet silent regexp-extended separate null-data unbuffered debug sandbox")


def sed(words: Sequence[str]) -> bool:
    """True if every command of the script only changes the printed text."""
    given = parse_arguments(words, _SED)
    return given is not None and bool(given.operands) and not sed_has_effects(given.operands[0])


# no long options: one awk takes such a word for an option and its value, another takes it for the program
_AWK = allowed_options("F:v:", "", "first")


def awk(words: Sequence[str]) -> bool:
    """True if the program on the command line neither writes, runs nor loads anything."""
    given = parse_arguments(words, _AWK)
    if given is None or not given.operands or any(value is None for _, value in given.options):
        return False
    return not awk_has_effects(given.operands[0]) and not any("/inet" in word for word in words)


_JQ = allowed_options(
    "acCejMnrRsS",
    "compact-output color-output exit-status join-output monochrome-output null-input raw-input raw-output slurp "
    "sort-keys tab ascii-output",
)


def jq(words: Sequence[str]) -> bool:
    """True if the filter reads nothing but its input."""
    given = parse_arguments(words, _JQ)
    return given is not None and bool(given.operands) and not jq_reaches_further(given.operands[0])


def echo(words: Sequence[str]) -> bool:
    """True: echo only prints."""
    return len(words) >= 0


# without -v, which evaluates a subscript, and -R; to the builtin, `--` is a word like any other
_TEST_WORDS = frozenset(
    "-a -b -c -d -e -f -g -h -k -L -n -N -O -G -p -r -s -S -t -u -w -x -z -eq -ne -lt -le -gt -ge -nt -ot -ef -o".split()
)


def test(words: Sequence[str]) -> bool:
    """True for tests of files, numbers and text."""
    return all(
        word in _TEST_WORDS or re.fullmatch(r"-\d+", word) or not word.startswith("-") for word in words
    ) and not any("[" in word and re.search(r"[$`]", word) for word in words)


_PS = allowed_options(
    "aAdNfFjlLHTwMZcp:q:s:t:u:U:g:G:C:o:O:k:",
    "deselect pid= ppid= sid= tty= user= User= group= Group= forest headers no-headers sort= width= cols= columns= rows= "
    "lines= cumulative info context format= quick-pid=",
)
# ps parses arguments that it does not understand once more as if they had no dash, where e means the environment; so
# -e is only accepted in these words, and beside options that ps certainly understands
_PS_EVERYTHING = re.compile(r"-(?:e|ef|eF|el|elf|efl|eLf|ejH|efH|eH|eo)w*")
_PS_OLD = re.compile(r"[aAcfghjlmnrSTuvwxX]+")


def ps(words: Sequence[str]) -> bool:
    """True if ps does not show the environment of processes, as `e` without a dash does."""
    everything = [word for word in words if _PS_EVERYTHING.fullmatch(word)]
    rest = ["-o" if word == "-eo" else word for word in words if word not in everything or word == "-eo"]
    given = parse_arguments(rest, _PS)
    if given is None or any("env" in (value or "").lower() for _, value in given.options):
        return False
    if not everything:
        return all(_PS_OLD.fullmatch(operand) or operand.isdecimal() for operand in given.operands)
    beside = {"-o", "--sort", "--forest", "--no-headers", "--format", "-w", "--cols", "--width"}
    return len(everything) == 1 and not given.operands and all(name in beside for name, _ in given.options)


def tput(words: Sequence[str]) -> bool:
    """True for the capabilities that only print a number."""
    # other capabilities may run a program that the description of the terminal names
    return len(words) == 1 and words[0] in {"cols", "lines", "colors"}


def diff(words: Sequence[str]) -> bool:
    """True unless diff would follow links in directory trees."""
    given = parse_arguments(words, _DIFF)
    names = [name for name, _ in given.options] if given else []
    return given is not None and ("--no-dereference" in names or not {"-r", "--recursive"} & set(names))


_DIFF = allowed_options(
    "abBcdeEiHnNpqrstTuwyC:U:F:I:L:W:x:X:S:",
    "normal brief report-identical-files context? unified? ed rcs side-by-side width= left-column "
    "suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab tabsize= recursive "
    "no-dereference new-file unidirectional-new-file ignore-file-name-case exclude= exclude-from= starting-file= "
    "ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines "
    "ignore-matching-lines= text strip-trailing-cr minimal speed-large-files color? palette=",
    "numbers",
)


def date(words: Sequence[str]) -> bool:
    """True if date prints: any operand that is not a format would set the clock."""
    given = parse_arguments(
        words, allowed_options("Rud:r:I", "utc universal date= reference= iso-8601? rfc-3339= rfc-email")
    )
    return given is not None and all(operand.startswith("+") for operand in given.operands)


def sysctl(words: Sequence[str]) -> bool:
    """True if no operand sets a value."""
    given = parse_arguments(words, allowed_options("anNe", "all names values ignore"))
    return given is not None and not any("=" in operand for operand in given.operands)


def tar(words: Sequence[str]) -> bool:
    """True if tar lists an archive of this machine."""
    if words and not words[0].startswith("-"):
        if "f" in words[0][:-1]:
            return False  # in a first word without a dash, what follows the `f` is no value of it
        words = ["-" + words[0], *words[1:]]
    given = parse_arguments(
        words, allowed_options("tvzjJaf:", "list verbose gzip bzip2 xz zstd auto-compress file= exclude= wildcards")
    )
    # tar fetches an archive with a colon in its name from another machine, by rsh
    if given is None or any(":" in (value or "").partition("/")[0] for _, value in given.options):
        return False
    return any(name in {"-t", "--list"} for name, _ in given.options)


_IP_OBJECTS = re.compile(
    r"a(?:d(?:dr(?:ess)?)?)?|l(?:i(?:nk)?)?|r(?:o(?:ute)?)?|ru(?:le)?|n(?:eigh(?:bou?r)?)?|m(?:addr(?:ess)?)?|mr(?:oute)?|"
    r"t(?:unnel)?|tuntap|nt(?:able)?|st(?:ats)?|netconf|tcp_metrics|token|macsec|vrf|nexthop|monitor\Z"
)


def ip(words: Sequence[str]) -> bool:
    """True if ip shows an object."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        if not re.fullmatch(
            r"-(?:[046sdjpoNth]|br(?:ief)?|c(?:olor)?(?:=\w+)?|json|pretty|stat(?:istic)?s|details|oneline)",
            rest[0],
        ):
            return False
        del rest[0]
    if not rest or not _IP_OBJECTS.fullmatch(rest[0]) or rest[0] == "monitor":
        return False
    # abbreviated verbs are not accepted, because `a` may be add
    return len(rest) == 1 or rest[1] in {"show", "list", "lst", "ls", "get"}


_OPENSSL = allowed_options(
    "",
    "-noout -text -subject -issuer -dates -startdate -enddate -fingerprint -serial -modulus -pubkey -purpose -hash "
    "-subject_hash -issuer_hash -email -ocsp_uri -alias -sha1 -sha256 -sha512 -in= -inform= -checkend= -nameopt= -ext= "
    "-certopt= -checkhost= -checkip= -checkemail= -verify",
)


def openssl(words: Sequence[str]) -> bool:
    """True if openssl shows a version, a certificate or a request."""
    if words[:1] in (["version"], ["ciphers"]):
        return all(re.fullmatch(r"-[avVsoptdm]|[A-Za-z0-9:!+@=-]+", word) for word in words[1:])
    if words[:1] not in (["x509"], ["req"], ["crl"]):
        return False
    given = parse_arguments(words[1:], _OPENSSL)
    if given is None or given.operands:
        return False
    # A name with a colon in it is an address, which can name a library to load.
    return not any(name == "-in" and ":" in (value or "") for name, value in given.options)


_AWS_OPTION = re.compile(
    r"--(?:[a-z0-9]+-)*(?:id|ids|name|names|arn|arns|identifier|identifiers|prefix|type|types|status|state|states|key|keys|"
    r"bucket|region|output|query|filters?|profile|owners|max-items|max-results|page-size|starting-token|no-paginate|"
    r"no-cli-pager|start-time|end-time|period|statistics|namespace|dimensions|stack-name|cluster|services|tasks|"
    r"include-all-instances|no-include-all-instances|limit|recursive|human-readable|summarize|attribute|scope|version)\Z"
)
_AWS_FLAGS = re.compile(
    r"--(?:no-paginate|no-cli-pager|(?:no-)?include-all-instances|recursive|human-readable|summarize|owners)\Z"
)


def aws(words: Sequence[str]) -> bool:
    """True if aws describes or lists; `get-…` often returns a secret or writes a file."""
    if words[:2] in (["sts", "get-caller-identity"], ["configure", "list"]):
        return len(words) == 2
    if words[:2] == ["s3", "ls"]:
        rest = words[2:]
        if rest and not rest[0].startswith("-"):
            rest = rest[1:]
    elif len(words) >= 2 and re.fullmatch(r"[a-z0-9-]+", words[0]) and words[1].startswith(("describe-", "list-")):
        rest = words[2:]
    else:
        return False
    return words[0] not in {"lambda", "ssm", "secretsmanager", "configure"} and _aws_options(rest)


def _aws_options(words: Sequence[str]) -> bool:
    """True if all options are known and no value is an address."""
    at = 0
    while at < len(words):
        name, attached, value = words[at].partition("=")
        if not _AWS_OPTION.match(name):
            return False
        takes = not attached and not _AWS_FLAGS.match(name)
        if takes:
            value = words[at + 1] if at + 1 < len(words) else ""
        # the aws CLI reads a value such as file:// or https:// from that address
        if "://" in value:
            return False
        at += 2 if takes else 1
    return True


SPECIAL: dict[str, Callable[[Sequence[str]], bool]] = {
    "find": find,
    "gfind": find,
    "fd": fd,
    "fdfind": fd,
    "sed": sed,
    "gsed": sed,
    "awk": awk,
    "gawk": awk,
    "mawk": awk,
    "nawk": awk,
    "jq": jq,
    "echo": echo,
    "date": date,
    "test": test,
    "ps": ps,
    "tput": tput,
    "diff": diff,
    "sysctl": sysctl,
    "tar": tar,
    "ip": ip,
    "openssl": openssl,
    "aws": aws,
}
"""By program: the check whether its arguments are harmless."""

VERSIONS = frozenset(
    "bash python python2 python3 node ruby perl lua gcc g++ clang clang++ cc make cmake ninja docker podman "
    "kubectl helm pip pip3 uv gh aws psql mysql sqlite3 redis-cli nginx curl wget ssh openssl tar gzip env printenv jq "
    "rm cp mv mkdir touch chmod ln dd sed awk find xargs vim nvim emacs nano tmux screen systemctl apt apt-get dpkg rpm "
    "R Rscript julia zig nim deno bun ffmpeg convert magick pandoc latex xelatex shellcheck shfmt ruff mypy rsync git "
    "svn yq fzf bat fd rg ag tree htop uname".split()
)
"""Programs that answer `--version` and `--help` before they read anything of the project."""
