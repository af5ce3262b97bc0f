"""Taking one wrapper away: what a command runs, if it runs another."""

import re
from collections.abc import Sequence

from whisper_tui.policy.wrappers.containers import container_command
from whisper_tui.policy.wrappers.git_aliases import git_alias
from whisper_tui.policy.wrappers.options import Parsed, parse
from whisper_tui.policy.wrappers.peeled import Argv, Peeled, program_name
from whisper_tui.policy.wrappers.shells import Input, shell_text
from whisper_tui.policy.wrappers.table import SHELLS, WRAPPERS, Wrapper

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_LOADER = re.compile(r"(?:.*/)?ld-(?:linux[\w.-]*|musl[\w.-]*|[\d.]+)\.so(?:\.\d+)?")


def peel(argv: Argv, given: Input) -> Peeled | None:
    """Take the outermost wrapper away. None: the command runs nothing else."""
    first = argv[0] if argv else None
    if first is None:
        return None
    name = program_name(first)
    if name in SHELLS:
        return _shell(argv, given)
    if _LOADER.fullmatch(first):
        return _loader(argv)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(argv)
    wrapper = WRAPPERS.get(name)
    return None if wrapper is None else _wrapped(name, argv, wrapper)


def _shell(argv: Argv, given: Input) -> Peeled:
    text, why = shell_text(argv, given)
    return Peeled(opaque=why) if text is None else Peeled(texts=(text,))


def _loader(argv: Argv) -> Peeled | None:
    at = 1
    while at < len(argv) and (argv[at] or "").startswith("--"):
        word = argv[at] or ""
        at += 2 if word in {"--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath"} else 1
    return Peeled(commands=(argv[at:],)) if at < len(argv) else None


def _wrapped(name: str, argv: Argv, wrapper: Wrapper) -> Peeled | None:
    argv = _old_style(name, argv)
    parsed = parse(argv, 1, wrapper.options)
    if parsed is None:
        return Peeled(opaque=f"the options of {name} are not known well enough to say what it runs")
    if parsed.has(*wrapper.itself):
        return None
    if wrapper.text and (text := _text_option(argv, parsed, wrapper)) is not None:
        return text
    if name == "env" and (split := parsed.value("-S", "--split-string")) is not None:
        return _split_string(split, argv[parsed.rest :])
    return _rest(name, argv, wrapper, parsed)


def _rest(name: str, argv: Argv, wrapper: Wrapper, parsed: Parsed) -> Peeled | None:
    at = parsed.rest
    assignments: list[str] = []
    while wrapper.assignments and at < len(argv) and _ASSIGNMENT.match(argv[at] or ""):
        assignments.append(argv[at] or "")
        at += 1
    at += wrapper.operands
    if name in {"taskset"} and parsed.has("-c", "--cpu-list"):
        at = parsed.rest + 1
    if name == "script" and at > parsed.rest and at <= len(argv) - 1 and argv[at] == "--":
        at += 1
    rest = argv[at:]
    if not rest:
        return None
    if wrapper.joins:
        return _joined(name, rest, parsed)
    if None in rest[:1]:
        return Peeled(opaque=f"what {name} runs is only known when it runs")
    return Peeled(commands=(rest,), assignments=tuple(assignments))


def _joined(name: str, rest: Argv, parsed: Parsed) -> Peeled:
    if name == "watch" and parsed.has("-x", "--exec"):
        return Peeled(commands=(rest,))
    if name == "hyperfine":
        return _texts(rest)
    if None in rest:
        return Peeled(opaque=f"what {name} runs is only known when it runs")
    return Peeled(texts=(" ".join(word or "" for word in rest),))


def _texts(words: Sequence[str | None]) -> Peeled:
    known = tuple(word for word in words if word is not None)
    return Peeled(texts=known, opaque=None if len(known) == len(words) else "a text for a shell is not known")


def _text_option(argv: Argv, parsed: Parsed, wrapper: Wrapper) -> Peeled | None:
    """`-c TEXT`, before or behind the operands."""
    found = parsed
    at = parsed.rest
    while not found.has(*wrapper.text) and at < len(argv):
        behind = parse(argv, at, wrapper.options)
        if behind is None:
            return Peeled(opaque="its options are not known well enough to say what it runs")
        if behind.has(*wrapper.text):
            found = behind
        at = behind.rest + 1
    if not found.has(*wrapper.text):
        return None
    text = found.value(*wrapper.text)
    return Peeled(opaque="the text for its shell is not known") if text is None else Peeled(texts=(text,))


def _old_style(name: str, argv: Argv) -> Argv:
    """`nice -5` is `nice -n 5`."""
    if name == "nice" and len(argv) > 1 and re.fullmatch(r"--?\d+", argv[1] or ""):
        return (argv[0], *argv[2:])
    return argv


def _split_string(text: str, behind: Argv) -> Peeled:
    if re.search(r"[\\$'\"]", text):
        return Peeled(opaque="the words that env makes of its text are not certain")
    words: Argv = (*text.split(), *behind)
    assigned = 0
    while assigned < len(words) and _ASSIGNMENT.match(words[assigned] or ""):
        assigned += 1
    return Peeled(commands=(words[assigned:],), assignments=tuple(word or "" for word in words[:assigned]))


def _eval(argv: Argv) -> Peeled | None:
    words = argv[2:] if argv[1:2] == ("--",) else argv[1:]
    if not words:
        return None
    if None in words:
        return Peeled(opaque="the text that eval runs is only known when it runs")
    return Peeled(texts=(" ".join(word or "" for word in words),))


def _trap(argv: Argv) -> Peeled | None:
    words = argv[2:] if argv[1:2] == ("--",) else argv[1:]
    if len(words) < 2 or words[0] in {"", "-", "-l", "-p"}:
        return None
    return Peeled(opaque="what trap runs is not known") if words[0] is None else Peeled(texts=(words[0],))


def _find(argv: Argv) -> Peeled | None:
    commands: list[Argv] = []
    at = 1
    while at < len(argv):
        if argv[at] in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = at + 1
            while end < len(argv) and argv[end] != ";" and not (argv[end] == "+" and argv[end - 1] == "{}"):
                end += 1
            if end > at + 1:
                commands.append(argv[at + 1 : end])
            at = end
        at += 1
    return Peeled(commands=tuple(commands), stays=True) if commands else None


def _fd(argv: Argv) -> Peeled | None:
    for at, word in enumerate(argv):
        if word in {"-x", "-X", "--exec", "--exec-batch"} and at + 1 < len(argv):
            end = argv.index(";", at) if ";" in argv[at:] else len(argv)
            return Peeled(commands=(argv[at + 1 : end],), stays=True)
    return None


def _parallel(argv: Argv) -> Peeled | None:
    at = 1
    while at < len(argv) and (argv[at] or "-").startswith("-"):
        word = argv[at]
        if word is None:
            return Peeled(opaque="what parallel runs is only known when it runs")
        at += 2 if word in {"-j", "--jobs", "-N", "-n", "-a", "-I", "-d", "-S", "--delay", "--timeout"} else 1
    end = next((index for index in range(at, len(argv)) if (argv[index] or "").startswith(":::")), len(argv))
    rest = argv[at:end]
    if not rest:
        return Peeled(opaque="parallel runs the commands of its input")
    if len(rest) == 1 and rest[0] is not None:
        return Peeled(texts=(rest[0],))
    return Peeled(commands=(rest,))


def _command_prompt(argv: Argv) -> Peeled | None:
    for at, word in enumerate(argv[1:], start=1):
        if (word or "").lower() in {"/c", "/k"} and at + 1 < len(argv):
            return Peeled(commands=(argv[at + 1 :],))
    return None


_SPECIAL = {
    "eval": _eval,
    "trap": _trap,
    "find": _find,
    "fd": _fd,
    "fdfind": _fd,
    "parallel": _parallel,
    "cmd": _command_prompt,
    "git": git_alias,
    "docker": container_command,
    "podman": container_command,
    "nerdctl": container_command,
    "kubectl": container_command,
    "oc": container_command,
    "lxc": container_command,
}
