"""Unwrapping: the commands that a command runs, if it runs others."""

import re
from collections.abc import Sequence

from whisper_tui.policy.commands.argv import Argv, ParsedOptions, Unwrapped, parse_options, program_name
from whisper_tui.policy.commands.shells import StandardInput, shell_text
from whisper_tui.policy.commands.special_wrappers import SPECIAL
from whisper_tui.policy.commands.wrappers import FOREIGN_SHELLS, RUNNERS, SHELLS, WRAPPERS, Runner, Wrapper

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PLAIN_TEXT = re.compile(r"[\w./:=@%+, -]+")
_LOADER = re.compile(r"(?:.*/)?ld-?(?:linux[\w.-]*|musl[\w.-]*|[\d.]+)?\.so(?:\.\d+)?")


def unwrap(argv: Argv, given: StandardInput) -> Unwrapped | None:
    """Remove the outermost wrapper. Returns None if the command runs nothing else."""
    first = argv[0] if argv else None
    if first is None:
        return None
    name = program_name(first)
    if name in SHELLS:
        return _shell(argv, given)
    # `/lib64/ld-linux-x86-64.so.2 PROGRAM` starts any program, also one without the executable bit
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


def _shell(argv: Argv, given: StandardInput) -> Unwrapped:
    text, why = shell_text(argv, given)
    return Unwrapped(opaque=why) if text is None else Unwrapped(texts=(text,))


def _foreign_shell(name: str, argv: Argv) -> Unwrapped | None:
    """Unwrap a shell with a syntax of its own: never certain, but searched as if it were bash."""
    for at, word in enumerate(argv[1:], start=1):
        # an unknown word may be the option that takes a script
        if word is None or word.lower() in {"-c", "--command", "-command", "--commands"}:
            text = argv[at + 1] if word is not None and at + 1 < len(argv) else None
            opaque = f"{name} has a syntax of its own"
            return Unwrapped(texts=() if text is None else (text,), opaque=opaque, has_own_effect=True)
    return Unwrapped(opaque=f"{name} runs a script or is interactive") if len(argv) > 1 else None


def _run_by(name: str, argv: Argv, runner: Runner) -> Unwrapped | None:
    """Unwrap a runner with subcommands (decision 9)."""
    verb = _verb(argv, runner)
    if verb is None:
        said = set(argv[1:]) & {each.rpartition(" ")[2] for each in runner.verbs}
        if parse_options(argv, 1, runner.options) is not None:
            return None
        return (
            Unwrapped(opaque=f"the options of {name} are not known well enough to say what it runs") if said else None
        )
    at, wrapper = verb
    if wrapper.only_dashes:
        behind = argv[argv.index("--", at) + 1 :] if "--" in argv[at:] else ()
        return Unwrapped(commands=(behind,), runner=at, has_own_effect=True) if behind else None
    unwrapped = _wrapped(name, argv[at:], wrapper)
    if (
        unwrapped is not None
        and wrapper.joins
        and len(unwrapped.texts) == 1
        and _PLAIN_TEXT.fullmatch(unwrapped.texts[0])
    ):
        words = unwrapped.texts[0].split()
        unwrapped = Unwrapped(commands=((words[0].rpartition(":")[2], *words[1:]),)) if words else None
    if unwrapped is None or not unwrapped.commands:
        return unwrapped
    (command,) = unwrapped.commands
    # `npx eslint@9` runs eslint, so a rule for eslint has to match; `@scope/name` keeps its first @
    if runner.versions and command[0] is not None and "@" in command[0][1:]:
        command = (command[0][0] + command[0][1:].partition("@")[0], *command[1:])
    return unwrapped._replace(commands=(command,), runner=at)


def _verb(argv: Argv, runner: Runner) -> tuple[int, Wrapper] | None:
    """Return the index of the last word of a runner's subcommand and its wrapper, or None if it runs nothing."""
    # such as uvx and npx: the program itself is the runner
    if (itself := runner.verbs.get("")) is not None:
        return 0, itself
    parsed = parse_options(argv, 1, runner.options)
    if parsed is None:
        return None
    for length in (2, 1):
        words = argv[parsed.rest : parsed.rest + length]
        found = runner.verbs.get(" ".join(word or "\0" for word in words))
        if found is not None:
            return parsed.rest + length - 1, found
    return None


def _loader(argv: Argv) -> Unwrapped | None:
    at = 1
    while at < len(argv) and (argv[at] or "").startswith("--"):
        word = argv[at] or ""
        at += 2 if word in {"--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath"} else 1
    return Unwrapped(commands=(argv[at:],)) if at < len(argv) else None


def _wrapped(name: str, argv: Argv, wrapper: Wrapper) -> Unwrapped | None:
    if wrapper.only_dashes:
        behind = argv[argv.index("--") + 1 :] if "--" in argv else ()
        return Unwrapped(commands=(behind,), has_own_effect=True) if behind else None
    argv = _old_style(name, argv)
    parsed = parse_options(argv, 1, wrapper.options)
    if parsed is None:
        return Unwrapped(opaque=f"the options of {name} are not known well enough to say what it runs")
    if parsed.has(*wrapper.itself):
        return None
    if wrapper.text and (text := _text_option(argv, parsed, wrapper)) is not None:
        return text
    if name == "env" and (split := parsed.value("-S", "--split-string")) is not None:
        return _split_string(split, argv[parsed.rest :])
    return _rest(name, argv, wrapper, parsed)


def _rest(name: str, argv: Argv, wrapper: Wrapper, parsed: ParsedOptions) -> Unwrapped | None:
    at = parsed.rest
    assignments: list[str] = []
    while wrapper.assignments and at < len(argv) and _ASSIGNMENT.match(argv[at] or ""):
        assignments.append(argv[at] or "")
        at += 1
    at += wrapper.operands
    # with -c the list of CPUs is the first operand, just as the mask is without it
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
        # `uv run -m pytest` runs python with the module
        return Unwrapped(commands=(("python", "-m", *rest),))
    if None in rest[:1]:
        return Unwrapped(opaque=f"what {name} runs is only known when it runs")
    return Unwrapped(commands=(rest,), assignments=tuple(assignments))


def _joined(name: str, rest: Argv, parsed: ParsedOptions) -> Unwrapped:
    if name == "watch" and parsed.has("-x", "--exec"):
        return Unwrapped(commands=(rest,))
    # hyperfine takes each argument as a command line of its own
    if name == "hyperfine":
        return _texts(rest)
    if None in rest:
        return Unwrapped(opaque=f"what {name} runs is only known when it runs")
    return Unwrapped(texts=(" ".join(word or "" for word in rest),))


def _texts(words: Sequence[str | None]) -> Unwrapped:
    known = tuple(word for word in words if word is not None)
    return Unwrapped(
        texts=known, opaque=None if len(known) == len(words) else "a text for a shell is not known before it runs"
    )


def _text_option(argv: Argv, parsed: ParsedOptions, wrapper: Wrapper) -> Unwrapped | None:
    """Return the text of `-c TEXT`, before or after the operands."""
    found = parsed
    at = parsed.rest
    while not found.has(*wrapper.text) and at < len(argv):
        behind = parse_options(argv, at, wrapper.options)
        if behind is None:
            return Unwrapped(opaque="unknown options hide what it runs")
        if behind.has(*wrapper.text):
            found = behind
        at = behind.rest + 1
    if not found.has(*wrapper.text):
        return None
    text = found.value(*wrapper.text)
    return (
        Unwrapped(opaque="the text for its shell is not known before it runs")
        if text is None
        else Unwrapped(texts=(text,))
    )


def _old_style(name: str, argv: Argv) -> Argv:
    """Rewrite options of an old or foreign style to the usual one."""
    # its parser is that of Go, which takes long options with one dash
    if name == "envconsul":
        return tuple("-" + word if word and re.match(r"-[a-z][\w-]", word) else word for word in argv)
    if name == "nice" and len(argv) > 1 and re.fullmatch(r"--?\d+", argv[1] or ""):
        # `nice -5` means `nice -n 5`
        return (argv[0], *argv[2:])
    return argv


def _split_string(text: str, behind: Argv) -> Unwrapped:
    # `env -S` expands escapes, quotes and ${VARIABLES} by rules of its own
    if re.search(r"[\\$'\"]", text):
        return Unwrapped(opaque="the words that env splits its text into are not certain")
    words: Argv = (*text.split(), *behind)
    assigned = 0
    while assigned < len(words) and _ASSIGNMENT.match(words[assigned] or ""):
        assigned += 1
    return Unwrapped(commands=(words[assigned:],), assignments=tuple(word or "" for word in words[:assigned]))
