"""Programs whose harmless calls no list of options can tell: their arguments are a language of their own."""

import re
from collections.abc import Callable, Sequence

from whisper_tui.policy.dangers.scripts import awk_acts, sed_acts
from whisper_tui.policy.read_only.forms import form, take_apart

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
    """Every word is a place, a harmless test with its value, or an operator."""
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
    """Nothing that runs a command."""
    allowed = form(
        "HIuUsigFaltpL1qd:e:E:S:c:j:E:0",
        "hidden no-ignore no-ignore-vcs no-ignore-parent unrestricted case-sensitive ignore-case glob regex "
        "fixed-strings absolute-path list-details follow full-path max-depth= min-depth= exact-depth= type= extension= "
        "exclude= size= color= threads= max-results= quiet print0 changed-within= changed-before= owner= prune "
        "strip-cwd-prefix and= path-separator= search-path= base-directory= one-file-system show-errors hyperlink?",
    )
    words = [word for word in words if not re.fullmatch(r"-t[fdlxespbc]?", word)]
    return take_apart(words, allowed) is not None


def sed(words: Sequence[str]) -> bool:
    """Scripts of which every command is understood and only changes what is printed."""
    given = take_apart(
        words, form("nErszu", "quiet silent regexp-extended separate null-data unbuffered posix debug sandbox")
    )
    return given is not None and bool(given.operands) and not sed_acts(given.operands[0])


def awk(words: Sequence[str]) -> bool:
    """A program on the command line that neither writes, runs nor loads anything."""
    given = take_apart(words, form("F:v:", "field-separator= assign= posix traditional re-interval sandbox"))
    if given is None or not given.operands:
        return False
    return not awk_acts(given.operands[0])


def echo(words: Sequence[str]) -> bool:
    """It only ever prints."""
    return len(words) >= 0


def date(words: Sequence[str]) -> bool:
    """An operand that is not a format would set the clock."""
    given = take_apart(words, form("Rud:r:I", "utc universal date= reference= iso-8601? rfc-3339= rfc-email"))
    return given is not None and all(operand.startswith("+") for operand in given.operands)


def sysctl(words: Sequence[str]) -> bool:
    """An operand with a value would set it."""
    given = take_apart(words, form("anNe", "all names values ignore"))
    return given is not None and not any("=" in operand for operand in given.operands)


def tar(words: Sequence[str]) -> bool:
    """Listing what an archive holds. One with a colon in its name would be fetched from another machine."""
    if words and not words[0].startswith("-"):
        words = ["-" + words[0], *words[1:]]
    given = take_apart(
        words, form("tvzjJaf:", "list verbose gzip bzip2 xz zstd auto-compress file= exclude= wildcards")
    )
    if given is None or any(":" in (value or "").partition("/")[0] for _, value in given.options):
        return False
    return any(name in {"-t", "--list"} for name, _ in given.options)


_IP_OBJECTS = re.compile(
    r"a(?:d(?:dr(?:ess)?)?)?|l(?:i(?:nk)?)?|r(?:o(?:ute)?)?|ru(?:le)?|n(?:eigh(?:bou?r)?)?|m(?:addr(?:ess)?)?|mr(?:oute)?|"
    r"t(?:unnel)?|tuntap|nt(?:able)?|st(?:ats)?|netconf|tcp_metrics|token|macsec|vrf|nexthop|monitor\Z"
)


def ip(words: Sequence[str]) -> bool:
    """Showing an object. Abbreviated verbs are not understood, for `a` may be `add`."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        if not re.fullmatch(
            r"-(?:[046sdjpoNtrh]|br(?:ief)?|c(?:olor)?(?:=\w+)?|json|pretty|stat(?:istic)?s|details|oneline|resolve)",
            rest[0],
        ):
            return False
        del rest[0]
    if not rest or not _IP_OBJECTS.fullmatch(rest[0]) or rest[0] == "monitor":
        return False
    return len(rest) == 1 or rest[1] in {"show", "list", "lst", "ls", "get"}


_OPENSSL = form(
    "",
    "-noout -text -subject -issuer -dates -startdate -enddate -fingerprint -serial -modulus -pubkey -purpose -hash "
    "-subject_hash -issuer_hash -email -ocsp_uri -alias -sha1 -sha256 -sha512 -in= -inform= -checkend= -nameopt= -ext= "
    "-certopt= -checkhost= -checkip= -checkemail= -verify",
)


def openssl(words: Sequence[str]) -> bool:
    """Showing a certificate or a request."""
    if words[:1] in (["version"], ["ciphers"]):
        return all(re.fullmatch(r"-[avVsoptdm]|[A-Za-z0-9:!+@=-]+", word) for word in words[1:])
    if words[:1] not in (["x509"], ["req"], ["crl"]):
        return False
    given = take_apart(words[1:], _OPENSSL)
    return given is not None and not given.operands


_AWS_OPTION = re.compile(
    r"--(?:[a-z0-9]+-)*(?:id|ids|name|names|arn|arns|identifier|identifiers|prefix|type|types|status|state|states|key|keys|"
    r"bucket|region|output|query|filters?|profile|owners|max-items|max-results|page-size|starting-token|no-paginate|"
    r"no-cli-pager|start-time|end-time|period|statistics|namespace|dimensions|stack-name|cluster|services|tasks|"
    r"include-all-instances|no-include-all-instances|limit|recursive|human-readable|summarize|attribute|scope|version)\Z"
)
_AWS_VALUES = ("get-object", "get-secret-value", "get-login", "get-authorization-token", "get-session-token",
               "get-federation-token", "get-parameter", "get-random", "get-password", "get-credentials", "get-role-credentials",
               "get-signing", "get-data-key", "get-key-pair", "get-instance-access", "get-id", "get-open-id", "get-export",
               "get-dashboard-embed", "get-sdk", "get-ticket", "get-bucket-notification-x")  # fmt: skip


def aws(words: Sequence[str]) -> bool:
    """Describing, listing and getting what is no secret and goes to no file."""
    if words[:2] in (["sts", "get-caller-identity"], ["configure", "list"]) and len(words) == 2:
        return True
    if words[:2] == ["s3", "ls"]:
        verb = "list-"
    elif len(words) >= 2 and re.fullmatch(r"[a-z0-9-]+", words[0]):
        verb = words[1]
    else:
        return False
    if not verb.startswith(("describe-", "list-", "get-")) or verb.startswith(_AWS_VALUES):
        return False
    return all(_AWS_OPTION.match(word.partition("=")[0]) for word in words[2:] if word.startswith("-"))


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
    "echo": echo,
    "date": date,
    "sysctl": sysctl,
    "tar": tar,
    "ip": ip,
    "openssl": openssl,
    "aws": aws,
}
"""By program: whether the words behind it make a harmless call."""

VERSIONS = frozenset(
    "bash python python2 python3 node java javac ruby perl php lua gcc g++ clang clang++ cc make cmake ninja docker podman "
    "kubectl helm terraform pip pip3 uv gh aws az gcloud psql mysql sqlite3 redis-cli nginx curl wget ssh openssl tar gzip "
    "rm cp mv mkdir touch chmod ln dd sed awk find xargs vim nvim emacs nano tmux screen systemctl brew apt apt-get dpkg rpm "
    "swift ghc kotlin scala R Rscript julia elixir zig nim crystal deno bun ffmpeg convert magick pandoc latex "
    "xelatex make shellcheck shfmt ruff mypy black rsync git svn jq yq fzf bat fd rg ag tree htop uname".split()
)
"""Programs that are only asked for their version or their help, and read no project before they answer."""
