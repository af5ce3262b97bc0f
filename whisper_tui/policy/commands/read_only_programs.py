"""Read-only checks for programs whose arguments are a language of their own, such as find, awk, ps and git."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from whisper_tui.policy.commands.argv import (
    HARMLESS_SETTING,
    like_option,
    parse_arguments,
    reading_form,
)
from whisper_tui.policy.commands.awk_sed_jq import awk_has_effects, jq_reaches_further, sed_has_effects
from whisper_tui.programs.entries import UNKNOWN, ProgramEntry, entry_of


def _form(name: str) -> ProgramEntry:
    """A program with the options with which it only reads."""
    return reading_form(name) or UNKNOWN


@cache
def find_tests() -> frozenset[str]:
    """The tests and actions of find that take a value, and only look at files or print."""
    return frozenset(name for name, each in _form("find").options.items() if each.value == "needed")


def find(words: Sequence[str]) -> bool:
    """True if every word is a path, a harmless test with its value, or an operator."""
    flags = _form("find").options.keys() - find_tests()
    at = 0
    while at < len(words):
        word = words[at]
        if word in find_tests() or re.fullmatch(r"-newer[aBcmt][aBcmt]", word):
            at += 2
        elif word in flags or not word.startswith("-") or re.fullmatch(r"-O[0-3]", word):
            at += 1
        else:
            return False
    return True


def fd(words: Sequence[str]) -> bool:
    """True if no option runs a command; `--list-details` runs `ls`."""
    return parse_arguments(words, _form("fd")) is not None


def sed(words: Sequence[str]) -> bool:
    """True if every command of the script only changes the printed text."""
    given = parse_arguments(words, _form("sed"))
    if given is None:
        return False
    parts = [value for name, value in given.options if name in {"-e", "--expression"}] or list(given.operands[:1])
    # sed joins the parts of its script by line ends
    return bool(parts) and None not in parts and not sed_has_effects("\n".join(part or "" for part in parts))


def awk(words: Sequence[str]) -> bool:
    """True if the program on the command line neither writes, runs nor loads anything."""
    given = parse_arguments(words, _form("awk"))
    if given is None or not given.operands or any(value is None for _, value in given.options):
        return False
    return not awk_has_effects(given.operands[0]) and not any("/inet" in word for word in words)


def jq(words: Sequence[str]) -> bool:
    """True if the filter reads nothing but its input."""
    given = parse_arguments(words, _form("jq"))
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


# ps parses arguments that it does not understand once more as if they had no dash, where e means the environment; so
# -e is only accepted in these words, and beside options that ps certainly understands
_PS_EVERYTHING = re.compile(r"-(?:e|ef|eF|el|elf|efl|eLf|ejH|efH|eH|eo)w*")
_PS_OLD = re.compile(r"[aAcfghjlmnrSTuvwxX]+")


def ps(words: Sequence[str]) -> bool:
    """True if ps does not show the environment of processes, as `e` without a dash does."""
    everything = [word for word in words if _PS_EVERYTHING.fullmatch(word)]
    rest = ["-o" if word == "-eo" else word for word in words if word not in everything or word == "-eo"]
    given = parse_arguments(rest, _form("ps"))
    if given is None or any("env" in (value or "").lower() for _, value in given.options):
        return False
    if not everything:
        return all(_PS_OLD.fullmatch(operand) or operand.isdecimal() for operand in given.operands)
    beside = {"-o", "--sort", "--forest", "--no-headers", "--format", "-w", "--cols", "--width"}
    return len(everything) == 1 and not given.operands and all(name in beside for name, _ in given.options)


def pager(words: Sequence[str]) -> bool:
    """True if a pager prints: without a terminal it does what cat does. `+COMMAND` would be run where there is one."""
    given = parse_arguments(words, _form("less"))
    return given is not None and bool(given.operands) and not any(word.startswith("+") for word in given.operands)


def tput(words: Sequence[str]) -> bool:
    """True for the capabilities that only print a number."""
    # other capabilities may run a program that the description of the terminal names
    return len(words) == 1 and words[0] in {"cols", "lines", "colors"}


def diff(words: Sequence[str]) -> bool:
    """True for options that only change the comparison; the sandbox holds links in directory trees."""
    return parse_arguments(words, _form("diff")) is not None


def date(words: Sequence[str]) -> bool:
    """True if date prints: any operand that is not a format would set the clock."""
    given = parse_arguments(words, _form("date"))
    return given is not None and all(operand.startswith("+") for operand in given.operands)


def sysctl(words: Sequence[str]) -> bool:
    """True if no operand sets a value."""
    given = parse_arguments(words, _form("sysctl"))
    return given is not None and not any("=" in operand for operand in given.operands)


def compressor(words: Sequence[str]) -> bool:
    """True if a program that packs or unpacks files prints or tests instead."""
    given = parse_arguments(words, _form("gzip"))
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
    given = parse_arguments(words, _form("tar"))
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


def openssl(words: Sequence[str]) -> bool:
    """True if openssl shows a version, a certificate or a request."""
    if words[:1] in (["version"], ["ciphers"]):
        return all(re.fullmatch(r"-[avVsoptdm]|[A-Za-z0-9:!+@=-]+", word) for word in words[1:])
    if words[:1] not in (["x509"], ["req"], ["crl"]):
        return False
    given = parse_arguments(words[1:], _form("openssl"))
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
            following = words[at + 1 : at + 2]
            value = "--" if like_option(next(iter(following), None)) else following[0]
        # the aws CLI reads a value such as file:// or https:// from that address
        if "://" in value or value == "--":
            return False
        at += 2 if takes else 1
    return True


_CHECKS: dict[str, Callable[[Sequence[str]], bool]] = {
    "find": find,
    "fd": fd,
    "sed": sed,
    "awk": awk,
    "jq": jq,
    "echo": echo,
    "date": date,
    "test": test,
    "[": bracket,
    "command": command,
    "set": options_of_shell,
    "less": pager,
    "ps": ps,
    "tput": tput,
    "diff": diff,
    "sysctl": sysctl,
    "tar": tar,
    **dict.fromkeys(("gzip", "gunzip", "bzip2", "xz", "zstd"), compressor),
    "ip": ip,
    "openssl": openssl,
    "aws": aws,
}


def check_of(name: str) -> Callable[[Sequence[str]], bool] | None:
    """Return the check whether the arguments of a program are harmless, of one whose arguments are a language."""
    return _CHECKS.get(name) or _CHECKS.get(entry_of(name).name)


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


@cache
def git_forms() -> dict[tuple[str, ...], ProgramEntry]:
    """Return the subcommands of git that only show something, with their options."""
    subcommands = entry_of("git").commands
    words: list[tuple[str, ...]] = [(name,) for name in subcommands]
    words += [(name, below) for name, entry in subcommands.items() for below in entry.commands]
    forms = ((each, reading_form("git", *each)) for each in words)
    return {each: form for each, form in forms if form is not None}


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
    allowed = git_forms().get((subcommand,))
    if behind == ["-h"] and (allowed or subcommand in {"worktree", "stash", "config", "commit", "rebase", "remote"}):
        return True
    # `gpg.program` of the repository would run
    if any(_ASKS_GPG.search(word) or (subcommand in _SHOWS_REFS and "signature" in word) for word in behind):
        return False  # it checks signatures, by running gpg
    if behind and (pair := git_forms().get((subcommand, behind[0]))) is not None:
        return parse_arguments(behind[1:], pair) is not None
    if subcommand == "config":
        return _git_shows_setting(behind)
    if subcommand == "format-patch" and "--stdout" not in behind:
        return False
    if subcommand == "reflog" and behind and behind[0] in {"expire", "delete", "exists", "drop", "write"}:
        return False
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


def _git_lists(words: Sequence[str], allowed: ProgramEntry) -> bool:
    """True if `git branch` or `git tag` lists. Without an option that says so, an operand creates one."""
    # parsed and not searched: `git tag --format --list x` creates a tag x, with --list as the format
    given = parse_arguments(words, replace(allowed, most_operands=None))
    if given is None:
        return False
    return not given.operands or any(name in _GIT_LISTING for name, _ in given.options)
