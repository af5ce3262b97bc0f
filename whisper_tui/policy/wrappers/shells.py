"""Shells as commands: the text that they run, from an option, a here-document or nowhere that can be seen."""

from typing import NamedTuple

from whisper_tui.policy.wrappers.options import known, parse

_LETTERS = "abefhiklmnprstuvxBCDEHPTc"
_OPTIONS = known(
    _LETTERS, "oO",
    "norc noprofile login posix restricted verbose debugger dump-strings dump-po-strings interactive noediting "
    "protected command",
    "init-file rcfile",
)  # fmt: skip

RUNS_FILE = "it runs the script of a file"
RUNS_INPUT = "it runs whatever comes from its input"


class Input(NamedTuple):
    """What a command gets as its standard input."""

    text: str | None = None
    """The text itself, where it stands in the command. None: it is not known."""
    comes: bool = False
    """Whether anything comes at all: a pipe, a file, a document."""


def shell_text(argv: tuple[str | None, ...], given: Input) -> tuple[str | None, str]:
    """The text that a shell would run, or None and why it is not known."""
    words = tuple("-" + word[1:] if word and word.startswith("+") and len(word) > 1 else word for word in argv)
    parsed = parse(words, 1, _OPTIONS)
    if parsed is None:
        return None, "the options of the shell are not known well enough to say what it runs"
    operands = argv[parsed.rest :]
    if operands[:1] == ("-",):
        operands = operands[1:]
    if parsed.has("-c", "--command"):
        if not operands or operands[0] is None:
            return None, "the text that the shell runs is only known when it runs"
        return operands[0], ""
    if operands and not parsed.has("-s"):
        return None, RUNS_FILE
    if given.text is not None:
        return given.text, ""
    if given.comes:
        return None, RUNS_INPUT
    return None, "it is a shell that waits for commands"
