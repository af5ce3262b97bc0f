"""Taking one wrapper away: what a command runs, if it runs another."""

import re
from collections.abc import Sequence

from whisper_tui.policy.wrappers.options import Parsed, parse
from whisper_tui.policy.wrappers.peeled import Argv, Peeled, program_name
from whisper_tui.policy.wrappers.runners import RUNNERS, Runner
from whisper_tui.policy.wrappers.shells import Input, shell_text
from whisper_tui.policy.wrappers.special import SPECIAL
from whisper_tui.policy.wrappers.table import FOREIGN_SHELLS, SHELLS, WRAPPERS, Wrapper

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PLAIN_TEXT = re.compile(r"[\w./:=@%+, -]+")
_LOADER = re.compile(r"(?:.*/)?ld-?(?:linux[\w.-]*|musl[\w.-]*|[\d.]+)?\.so(?:\.\d+)?")


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
    if name in FOREIGN_SHELLS:
        return _foreign_shell(name, argv)
    special = SPECIAL.get(name)
    if special is not None:
        return special(argv)
    runner = RUNNERS.get(name)
    if runner is not None:
        return _run_by(name, argv, runner)
    wrapper = WRAPPERS.get(name)
    return None if wrapper is None else _wrapped(name, argv, wrapper)


def _shell(argv: Argv, given: Input) -> Peeled:
    text, why = shell_text(argv, given)
    return Peeled(opaque=why) if text is None else Peeled(texts=(text,))


def _foreign_shell(name: str, argv: Argv) -> Peeled | None:
    """A shell of its own grammar: never certain, and looked through as if it were bash all the same."""
    for at, word in enumerate(argv[1:], start=1):
        if word is None or word.lower() in {"-c", "--command", "-command", "--commands"}:
            text = argv[at + 1] if word is not None and at + 1 < len(argv) else None
            opaque = f"{name} reads text by rules of its own"
            return Peeled(texts=() if text is None else (text,), opaque=opaque, stays=True)
    return Peeled(opaque=f"{name} runs a script, or waits for commands") if len(argv) > 1 else None


def _run_by(name: str, argv: Argv, runner: Runner) -> Peeled | None:
    """What a runner's subcommand runs. Where its words are not certain, it runs anything."""
    verb = _verb(argv, runner)
    if verb is None:
        said = set(argv[1:]) & {each.rpartition(" ")[2] for each in runner.verbs}
        if parse(argv, 1, runner.options) is not None:
            return None
        return Peeled(opaque=f"the options of {name} are not known well enough to say what it runs") if said else None
    at, wrapper = verb
    if wrapper.only_dashes:
        behind = argv[argv.index("--", at) + 1 :] if "--" in argv[at:] else ()
        return Peeled(commands=(behind,), runner=at, stays=True) if behind else None
    peeled = _wrapped(name, argv[at:], wrapper)
    if peeled is not None and wrapper.joins and len(peeled.texts) == 1 and _PLAIN_TEXT.fullmatch(peeled.texts[0]):
        words = peeled.texts[0].split()
        peeled = Peeled(commands=((words[0].rpartition(":")[2], *words[1:]),)) if words else None
    if peeled is None or not peeled.commands:
        return peeled
    (command,) = peeled.commands
    if runner.versions and command[0] is not None and "@" in command[0][1:]:
        command = (command[0][0] + command[0][1:].partition("@")[0], *command[1:])
    return peeled._replace(commands=(command,), runner=at)


def _verb(argv: Argv, runner: Runner) -> tuple[int, Wrapper] | None:
    """Index of the last word of a runner's subcommand, and what follows it. None: it is another, or not certain."""
    if (itself := runner.verbs.get("")) is not None:
        return 0, itself
    parsed = parse(argv, 1, runner.options)
    if parsed is None:
        return None
    for length in (2, 1):
        words = argv[parsed.rest : parsed.rest + length]
        found = runner.verbs.get(" ".join(word or "\0" for word in words))
        if found is not None:
            return parsed.rest + length - 1, found
    return None


def _loader(argv: Argv) -> Peeled | None:
    at = 1
    while at < len(argv) and (argv[at] or "").startswith("--"):
        word = argv[at] or ""
        at += 2 if word in {"--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath"} else 1
    return Peeled(commands=(argv[at:],)) if at < len(argv) else None


def _wrapped(name: str, argv: Argv, wrapper: Wrapper) -> Peeled | None:
    if wrapper.only_dashes:
        behind = argv[argv.index("--") + 1 :] if "--" in argv else ()
        return Peeled(commands=(behind,), stays=True) if behind else None
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
    if wrapper.dashes and argv[at : at + 1] == ("--",):
        at += 1
    if name == "script" and at > parsed.rest and at <= len(argv) - 1 and argv[at] == "--":
        at += 1
    rest = argv[at:]
    if not rest:
        return None
    if wrapper.joins or parsed.has(*wrapper.joining):
        return _joined(name, rest, parsed)
    if parsed.has(*wrapper.module):
        return Peeled(commands=(("python", "-m", *rest),))
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
    """`nice -5` is `nice -n 5`, and programs in Go take a long option behind one dash, too."""
    if name == "envconsul":
        return tuple("-" + word if word and re.match(r"-[a-z][\w-]", word) else word for word in argv)
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
