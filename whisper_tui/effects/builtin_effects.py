"""Builtins of the shell: most change no file; some write one, run code, or change what later words mean."""

import re
from collections.abc import Sequence

from whisper_tui.effects.changes import Changes
from whisper_tui.effects.text_walk import Step
from whisper_tui.policy.commands.wrappers import BUILTINS, changes_what_runs
from whisper_tui.policy.risks.command_dangers import EVALUATING

_CODE_OPTIONS = {
    "hash": frozenset("p"),
    "bind": frozenset("fx"),
    "mapfile": frozenset("C"),
    "readarray": frozenset("C"),
    "compgen": frozenset("CFW"),
}
"""Letters of options with which a builtin runs code, or makes a name run something else."""

_SUBSCRIPT = re.compile(r".\[.*[$`]", re.DOTALL)
_NOT_QUIET = frozenset({"source", ".", "eval", "exec", "kill"})
_SET_LETTERS = re.compile(r"[-+][abehmptuvxCEHT]+")
_SET_NAMES = frozenset(
    "allexport errexit errtrace functrace hashall history ignoreeof monitor noclobber notify nounset pipefail verbose "
    "xtrace emacs vi interactive-comments nolog privileged histexpand".split()
)
_HARMLESS_VALUES = frozenset({"", "cat", "true", ":"})
_CHANGES_NAMES = frozenset(
    "POSIXLY_CORRECT SIMPLE_BACKUP_SUFFIX VERSION_CONTROL PATCH_VERSION_CONTROL PATCH_GET HISTFILE".split()
)
"""Variables by which programs name the files that they write."""

QUIET = BUILTINS - _NOT_QUIET


def record_variables(step: Step, changes: Changes) -> None:
    """Say of variables that change what runs that nothing behind them is certain."""
    for name, value in step.assigned:
        if name.endswith(("PAGER", "EDITOR")) and value in _HARMLESS_VALUES:
            continue
        if changes_what_runs(name) or name in _CHANGES_NAMES:
            changes.unknown(step, "everything", f"it sets {name}, which can change what runs")


def record_builtin(step: Step, changes: Changes) -> None:
    """Record what a builtin does that is not quiet by itself."""
    name, words = step.words[0] or "", step.words[1:]
    options = {word for word in words if word is not None and word.startswith(("-", "+"))}
    letters = {letter for word in options for letter in word[1:]}
    if name in EVALUATING and any(word is not None and _SUBSCRIPT.search(word) for word in words):
        changes.unknown(step, "everything", "it evaluates one of its words as code")
    if name == "history":
        if {"w", "a"} & letters:
            _history(step, changes)
    elif letters & _CODE_OPTIONS.get(name, frozenset()) or (name == "fc" and "l" not in letters):
        changes.unknown(step, "everything", "what it runs is only known when it runs")
    elif name == "trap" and words:
        changes.unknown(step, "everything", "what it names runs later, wherever the shell is then")
    elif _reads_otherwise(name, words, letters):
        changes.unknown(step, "everything", "it changes how the words behind it are read")


def _reads_otherwise(name: str, words: Sequence[str | None], letters: set[str]) -> bool:
    """True if the words behind a builtin may mean something else from then on."""
    match name:
        case "alias":
            return any("=" in (word or "=") for word in words)
        case "enable":
            return bool(words)
        case "shopt":
            return bool({"s", "u", "o"} & letters)
        case "set":
            return not _is_plain_set(words)
        case _:
            return False


def _is_plain_set(words: Sequence[str | None]) -> bool:
    """True if `set` changes nothing about how words are read."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word is None:
            return False
        if word in {"--", "-"} or not word.startswith(("-", "+")):
            return True
        if word[1:].endswith("o"):
            named = rest.pop(0) if rest else "pipefail"
            if named not in _SET_NAMES:
                return False
            word = word[:-1]
        if len(word) > 1 and not _SET_LETTERS.fullmatch(word):
            return False
    return True


def _history(step: Step, changes: Changes) -> None:
    operands = [word for word in step.words[1:] if word is None or not word.startswith("-")]
    if len(operands) != 1:
        changes.unknown(step, "files", "it writes the file of its history")
        return
    found = changes.find(step, operands[0])
    if found is not None:
        changes.write(step, found, None, why="it is the history of the shell")
