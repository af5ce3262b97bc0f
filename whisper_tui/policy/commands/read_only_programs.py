"""Read-only checks for programs whose arguments are a language of their own, such as find, awk, ps and git."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from whisper_tui.policy.commands.argv import (
    HARMLESS_SETTING,
    AllowedOptions,
    allowed_options,
    following_value,
    parse_arguments,
)
from whisper_tui.policy.commands.awk_sed_jq import awk_has_effects, jq_reaches_further, sed_has_effects

FIND_TESTS = frozenset(
    "-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename "
    "-links -lname -mmin -mtime -name -newer -path -perm -regex -samefile -size -type -uid -used -user -wholename "
    "-xtype -context -maxdepth -mindepth -regextype -printf".split()
)
"""The tests and actions of find that take a value, and only look at files or print."""
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
        if word in FIND_TESTS or re.fullmatch(r"-newer[aBcmt][aBcmt]", word):
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


SED = allowed_options(
    "nErszul:e:", "quiet silent regexp-extended separate null-data unbuffered debug sandbox expression="
)
"""The options of sed that only change how its script is read or its output, or that hold a part of it."""


def sed(words: Sequence[str]) -> bool:
    """True if every command of the script only changes the printed text."""
    given = parse_arguments(words, SED)
    if given is None:
        return False
    parts = [value for name, value in given.options if name in {"-e", "--expression"}] or list(given.operands[:1])
    # sed joins the parts of its script by line ends
    return bool(parts) and None not in parts and not sed_has_effects("\n".join(part or "" for part in parts))


# no long options: one awk takes such a word for an option and its value, another takes it for the program
AWK = allowed_options("F:v:", "", "first")
"""The options of awk that run nothing."""


def awk(words: Sequence[str]) -> bool:
    """True if the program on the command line neither writes, runs nor loads anything."""
    given = parse_arguments(words, AWK)
    if given is None or not given.operands or any(value is None for _, value in given.options):
        return False
    return not awk_has_effects(given.operands[0]) and not any("/inet" in word for word in words)


JQ = allowed_options(
    "acCejMnrRsS",
    "compact-output color-output exit-status join-output monochrome-output null-input raw-input raw-output slurp "
    "sort-keys tab ascii-output",
)
"""The options of jq that change its output."""


def jq(words: Sequence[str]) -> bool:
    """True if the filter reads nothing but its input."""
    given = parse_arguments(words, JQ)
    return given is not None and bool(given.operands) and not jq_reaches_further(given.operands[0])


def echo(words: Sequence[str]) -> bool:
    """True: echo only prints."""
    return len(words) >= 0


# without -v, which evaluates a subscript, and -R; to the builtin, `--` is a word like any other
_TEST_WORDS = frozenset(
    "-a -b -c -d -e -f -g -h -k -L -n -N -O -G -p -r -s -S -t -u -w -x -z -eq -ne -lt -le -gt -ge -nt -ot -ef -o".split()
)


def bracket(words: Sequence[str]) -> bool:
    """True for `[ … ]` around a harmless test."""
    return words[-1:] == ["]"] and test(words[:-1])


def options_of_shell(words: Sequence[str]) -> bool:
    """True if `set` makes its shell stop at failures, or show what it runs."""
    return bool(words) and all(
        re.fullmatch(r"[-+][eux]+|-[eux]*o|pipefail|errexit|nounset|xtrace", word) for word in words
    )


def command(words: Sequence[str]) -> bool:
    """True if `command` only says where it would find programs."""
    return words[:1] in (["-v"], ["-V"]) and not any(word.startswith("-") for word in words[1:])


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


def pager(words: Sequence[str]) -> bool:
    """True if a pager prints: without a terminal it does what cat does. `+COMMAND` would be run where there is one."""
    given = parse_arguments(words, allowed_options("eEfFgiIJKmMnNqQrRsSuUwWX", "", ""))
    return given is not None and bool(given.operands) and not any(word.startswith("+") for word in given.operands)


def tput(words: Sequence[str]) -> bool:
    """True for the capabilities that only print a number."""
    # other capabilities may run a program that the description of the terminal names
    return len(words) == 1 and words[0] in {"cols", "lines", "colors"}


def diff(words: Sequence[str]) -> bool:
    """True for options that only change the comparison; the sandbox holds links in directory trees."""
    return parse_arguments(words, _DIFF) is not None


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


_COMPRESSORS = allowed_options(
    "cdfklnNqrtv123456789T:",
    "stdout to-stdout decompress uncompress force keep list no-name name quiet test verbose threads= robot",
)


def compressor(words: Sequence[str]) -> bool:
    """True if a program that packs or unpacks files prints or tests instead."""
    given = parse_arguments(words, _COMPRESSORS)
    names = {name for name, _ in given.options} if given is not None else set[str]()
    # xz, zstd and bzip2 do the last of the things that they are told to do
    unpacks = bool(names & {"-d", "--decompress", "--uncompress"})
    return bool(names & {"-c", "--stdout", "--to-stdout"}) or (
        bool(names & {"-l", "--list", "-t", "--test"}) and not unpacks
    )


def tar(words: Sequence[str]) -> bool:
    """True if tar lists an archive of this machine."""
    if words and not words[0].startswith("-"):
        if "f" in words[0][:-1]:
            return False  # in a first word without a dash, what follows the `f` is no value of it
        words = ["-" + words[0], *words[1:]]
    given = parse_arguments(
        words,
        allowed_options(
            "tvzjJaf:C:", "list verbose gzip bzip2 xz zstd auto-compress file= directory= exclude= wildcards"
        ),
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
            value = following_value(words, at) or "--"
        # the aws CLI reads a value such as file:// or https:// from that address
        if "://" in value or value == "--":
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
    "[": bracket,
    "command": command,
    "set": options_of_shell,
    **dict.fromkeys(("less", "more"), pager),
    "ps": ps,
    "tput": tput,
    "diff": diff,
    "sysctl": sysctl,
    "tar": tar,
    **dict.fromkeys("gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd".split(), compressor),
    "ip": ip,
    "openssl": openssl,
    "aws": aws,
}
"""By program: the check whether its arguments are harmless."""

VERSIONS = frozenset(
    "bash sh dash npm 7z 7za 7zr 7zz python python2 python3 node ruby perl lua gcc g++ clang clang++ cc make cmake ninja docker podman "
    "kubectl helm pip pip3 uv gh aws psql mysql sqlite3 redis-cli nginx curl wget ssh openssl tar gzip env printenv jq "
    "rm cp mv mkdir touch chmod ln dd sed awk find xargs vim nvim emacs nano tmux screen systemctl apt apt-get dpkg rpm "
    "R Rscript julia zig nim deno bun ffmpeg convert magick pandoc latex xelatex shellcheck shfmt ruff mypy rsync git "
    "svn yq fzf bat fd rg ag tree htop uname".split()
)
"""Programs that answer `--version` and `--help` before they read anything of the project."""


_GIT_FORMAT = (
    "oneline pretty? format? abbrev-commit no-abbrev-commit abbrev? decorate? no-decorate graph no-color color? date= "
    "relative-date stat? numstat shortstat summary dirstat? name-only name-status compact-summary raw patch-with-stat "
    "unified? minimal patience histogram diff-algorithm= word-diff? word-diff-regex= color-words? no-prefix "
    "ignore-space-change ignore-all-space ignore-blank-lines ignore-space-at-eol ignore-cr-at-eol inter-hunk-context= "
    "function-context exit-code quiet no-ext-diff no-textconv patch no-patch full-index find-renames? find-copies? "
    "diff-filter= pickaxe-all pickaxe-regex relative? no-relative text src-prefix= dst-prefix= "
    "color-moved? no-renames check cc no-notes notes? encoding= line-prefix= ita-invisible-in-index"
)
_GIT_COMMITS = (
    "max-count= skip= since= after= until= before= author= committer= grep= all-match invert-grep regexp-ignore-case "
    "extended-regexp fixed-strings perl-regexp merges no-merges first-parent all branches? tags? remotes? glob= "
    "exclude= reflog walk-reflogs cherry cherry-pick cherry-mark left-right left-only right-only ancestry-path? "
    "full-history simplify-merges simplify-by-decoration topo-order date-order author-date-order reverse follow "
    "boundary count children parents source min-parents? max-parents? not stdin no-walk? follow log-size "
    "full-diff remove-empty sparse dense show-pulls"
)

_GIT: dict[str, AllowedOptions] = {
    "status": allowed_options("sbvz", "short branch porcelain? long verbose untracked-files? ignored? ignore-submodules null column? "
                   "no-column ahead-behind no-ahead-behind renames no-renames find-renames? show-stash -uno -uall -unormal"),
    "log": allowed_options("n:pusizgcmwbWS:G:L:O:U?M?C?B?EFPi", f"{_GIT_FORMAT} {_GIT_COMMITS}", "numbers"),
    "show": allowed_options("szwbWS:G:O:U?M?C?B?m", f"{_GIT_FORMAT} {_GIT_COMMITS}"),
    "diff": allowed_options("szwbWRaS:G:O:U?M?C?B?pu", f"{_GIT_FORMAT} cached staged merge-base no-index base ours theirs patch diff-merges="),
    "shortlog": allowed_options("nsecw", f"numbered summary email group= {_GIT_COMMITS}".replace(" committer=", " committer?")),
    "rev-list": allowed_options("n:", f"{_GIT_FORMAT} {_GIT_COMMITS} objects no-object-names disk-usage?", "numbers"),
    "rev-parse": allowed_options("q", "abbrev-ref? abbrev? short? verify quiet show-toplevel show-prefix show-cdup git-dir git-common-dir "
                      "is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository absolute-git-dir all "
                      "branches? tags? remotes? symbolic symbolic-full-name show-object-format? show-superproject-working-tree"),
    "ls-files": allowed_options("cdmosiukvztfx:", "cached deleted modified others stage ignored unmerged killed exclude= "
                     "exclude-standard error-unmatch full-name abbrev? eol deduplicate directory "
                     "no-empty-directory format="),
    "ls-tree": allowed_options("drtlz", "long name-only name-status full-name full-tree abbrev? object-only format="),
    "describe": allowed_options("", "all tags contains abbrev? candidates= exact-match debug long match= exclude= always first-parent"),
    "blame": allowed_options("bcefglnpstwCML:", "root show-stats porcelain line-porcelain incremental date= score-debug show-name show-number "
                  "show-email abbrev? since= ignore-rev= color-lines color-by-age"),
    "annotate": allowed_options("lL:"),
    "grep": allowed_options("aiIwvhHEGPFnlLczpqrWoe:m:A:B:C:", "text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp "
                 "perl-regexp fixed-strings line-number column files-with-matches name-only files-without-match count color? "
                 "no-color break heading show-function context= after-context= before-context= function-context and or not "
                 "all-match quiet cached untracked no-index no-exclude-standard exclude-standard max-depth= "
                 "only-matching max-count= threads= null no-recursive recursive", "numbers"),
    "branch": allowed_options("alrvqi", "list all remotes remote verbose show-current contains? no-contains? merged? no-merged? sort= points-at= format= "
                   "column? no-column color? no-color abbrev? no-abbrev ignore-case", "most=0"),
    "tag": allowed_options("ln?i", "list contains? no-contains? merged? no-merged? sort= points-at= format= column? color? ignore-case", "most=0"),
    "remote": allowed_options("v", "verbose", "most=0"),
    "count-objects": allowed_options("vH", "verbose human-readable"),
    "cat-file": allowed_options("tpse", "batch-check? follow-symlinks"),
    "merge-base": allowed_options("a", "all octopus independent is-ancestor fork-point"),
    "name-rev": allowed_options("", "tags refs= exclude= all name-only no-undefined always"),
    "for-each-ref": allowed_options("", "count= sort= format= points-at= merged? no-merged? contains? no-contains? ignore-case color? exclude="),
    "show-ref": allowed_options("hdqs", "head heads tags branches dereference hash? verify abbrev? quiet exists"),
    "show-branch": allowed_options("ar", "all remotes current topo-order date-order list no-name sha1-name color? no-color sparse topics more="),
    "check-ignore": allowed_options("qvzn", "quiet verbose stdin non-matching no-index"),
    "check-attr": allowed_options("az", "all stdin cached source="),
    "diff-tree": allowed_options("rtpsczmu", _GIT_FORMAT + " root no-commit-id merge-base stdin pretty?"),
    "diff-index": allowed_options("pszmu", _GIT_FORMAT + " cached merge-base"),
    "diff-files": allowed_options("pszu0123", _GIT_FORMAT),
    "whatchanged": allowed_options("n:", f"{_GIT_FORMAT} {_GIT_COMMITS}", "numbers"),
    "cherry": allowed_options("v", "abbrev?"),
    "version": allowed_options("", "build-options"),
    "fsck": allowed_options("v", "no-dangling dangling connectivity-only no-progress progress full no-full strict unreachable "
                 "no-reflogs root tags cache verbose name-objects"),
    "format-patch": allowed_options("pknNsv:", "stdout root no-signature subject-prefix= no-numbered numbered stat? no-stat", "numbers"),
    "check-mailmap": allowed_options("", "stdin"),
    "check-ref-format": allowed_options("", "branch normalize allow-onelevel no-allow-onelevel refspec-pattern"),
    "verify-pack": allowed_options("vs", "verbose stat-only"),
    "symbolic-ref": allowed_options("q", "short quiet", "most=1"),
    "range-diff": allowed_options("s", "no-color color? creation-factor= no-dual-color"),
}  # fmt: skip


@cache
def _two_words() -> dict[tuple[str, str], AllowedOptions]:
    return {
        ("stash", "list"): allowed_options("p:n:", f"{_GIT_COMMITS} stat? name-only oneline"),
        ("stash", "show"): allowed_options("up", "stat? name-only name-status include-untracked only-untracked patch"),
        ("worktree", "list"): allowed_options("vz", "verbose porcelain"),
        ("remote", "get-url"): allowed_options("", "push all"),
        ("remote", "show"): allowed_options("n", "", "needs=n"),
        ("reflog", "show"): allowed_options("n:", f"{_GIT_FORMAT} {_GIT_COMMITS}", "numbers"),
        ("notes", "list"): allowed_options(),
        ("notes", "show"): allowed_options(),
        ("sparse-checkout", "list"): allowed_options(),
        ("bundle", "verify"): allowed_options("q", "quiet"),
    }


_LOCAL_SETTING = re.compile(r"(?:remote|branch)\.[^\n]+\.[A-Za-z]+|core\.bare|core\.ignorecase|core\.filemode")
"""Settings that only a repository has, and that usually hold no secret: unasked git runs without global settings."""

_SETTING_OF_REPOSITORY = re.compile(
    r"(?:user|core|init|pull|push|fetch|merge|rebase|color|diff|log|branch|remote|extensions|submodule)\.[^\n]+"
)
"""Settings that usually hold no secret, where the configuration of the repository alone is asked for."""

_ASKS_GPG = re.compile(r"%[-+ ]?G")
"""Placeholders of a format that show a signature, its grade or its key."""

_SHOWS_REFS = frozenset({"branch", "tag", "for-each-ref"})
"""Subcommands whose formats and sort keys can name the field signature."""

_GIT_REFLOG = allowed_options("n:", f"{_GIT_FORMAT} {_GIT_COMMITS}", "numbers")


def git_forms() -> Iterator[tuple[tuple[str, ...], AllowedOptions]]:
    """Yield the subcommands of git that only show something, with their options."""
    yield from (((name,), form) for name, form in _GIT.items())
    yield from _two_words().items()
    yield ("reflog",), _GIT_REFLOG


def reads_submodules(argv: Sequence[str]) -> bool:
    """True if git would start another git in each submodule."""
    # these compare the work trees of submodules, with the configuration that each of them has
    into = {"status", "diff", "diff-files", "diff-index", "describe", "stash", "ls-files", "grep"}
    return not into.isdisjoint(argv)


_GIT_FIRST = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
"""Options before a subcommand that change nothing."""


def _sets_nothing(value: Sequence[str]) -> bool:
    return bool(value) and HARMLESS_SETTING.fullmatch(value[0]) is not None


def git_only_reads(words: Sequence[str]) -> bool:
    """True if the words after `git` only show something."""
    rest = list(words)
    while rest and (rest[0] in _GIT_FIRST or (rest[0] == "-c" and _sets_nothing(rest[1:2]))):
        del rest[: 2 if rest[0] == "-c" else 1]
    if not rest:
        return not words  # its usage
    if rest[0] in {"--version", "--help", "help"}:
        return len(rest) == 1
    subcommand, behind = rest[0], rest[1:]
    if behind == ["-h"] and subcommand in _GIT.keys() | {"worktree", "stash", "config", "commit", "rebase", "remote"}:
        return True
    # `gpg.program` of the repository would run
    if any(_ASKS_GPG.search(word) or (subcommand in _SHOWS_REFS and "signature" in word) for word in behind):
        return False  # it checks signatures, by running gpg
    if behind and (pair := _two_words().get((subcommand, behind[0]))) is not None:
        return parse_arguments(behind[1:], pair) is not None
    if subcommand == "config":
        return _git_shows_setting(behind)
    if subcommand == "format-patch" and "--stdout" not in behind:
        return False
    if subcommand == "reflog":
        return (
            not (behind and behind[0] in {"expire", "delete", "exists", "drop", "write"})
            and parse_arguments(behind, _GIT_REFLOG) is not None
        )
    allowed = _GIT.get(subcommand)
    if allowed is None:
        return False
    if subcommand in {"branch", "tag"}:
        return _git_lists(behind, allowed)
    return parse_arguments(behind, allowed) is not None


def _git_shows_setting(words: Sequence[str]) -> bool:
    """True if `git config` prints a setting, and the same one as without the pins of an unasked git."""
    # To git config, options end at the first operand: behind it, `--get` would be a pattern, and the rest is set.
    if sorted(words) in (["--list", "--local", "--name-only"], ["--local", "--name-only", "-l"]):
        return True
    name, options = (words[-1], list(words[:-1])) if words else ("", [])
    known = _LOCAL_SETTING
    if options[:1] == ["--local"]:
        del options[0]
        known = _SETTING_OF_REPOSITORY
    return options in (["--get"], ["--get-all"]) and known.fullmatch(name) is not None


_GIT_LISTING = frozenset("-l --list --contains --no-contains --merged --no-merged --points-at".split())


def _git_lists(words: Sequence[str], allowed: AllowedOptions) -> bool:
    """True if `git branch` or `git tag` lists. Without an option that says so, an operand creates one."""
    # parsed and not searched: `git tag --format --list x` creates a tag x, with --list as the format
    given = parse_arguments(words, allowed._replace(most=None))
    if given is None:
        return False
    return not given.operands or any(name in _GIT_LISTING for name, _ in given.options)
