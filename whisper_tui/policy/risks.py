"""What a human should notice about a command before deciding: each finding has a stable id and plain words."""

import posixpath
import re
import shlex

from whisper_tui.model.command import Argv, Command, Shell
from whisper_tui.model.text import BIDI, BLANKS, PLAIN_CONTROLS, hidden_parts, visible
from whisper_tui.model.verdict import Risk
from whisper_tui.policy.dangers.of_inner import forks_without_end
from whisper_tui.policy.deception import deceptions
from whisper_tui.policy.exposure import exposures
from whisper_tui.policy.question import Question
from whisper_tui.policy.view import View, view
from whisper_tui.policy.wrappers.git_aliases import take_apart

LONGEST_JUDGED = 10_000
"""Characters of a command beyond which nobody can be expected to have read it."""

ALWAYS_ASKED = frozenset(
    {
        "control-characters", "deceptive-characters", "outside-workspace", "sensitive-write", "substitution",
        "too-long", "unknown-shell",
    }
)  # fmt: skip
"""Risks that no rule and no memory can answer for."""

SHELLS = frozenset(
    prefix + name
    for prefix in ("", "/bin/", "/usr/bin/", "/usr/local/bin/")
    for name in ("sh", "bash", "dash", "ksh", "zsh")
)
"""What may read a shell's text. Anything else could make of it what it likes."""

MOST_DANGERS = 12
"""Dangers that are listed for one command; nobody reads more."""

_OPENING = re.compile(r"\$\(|`|[<>]\(|\$\{[\s|]")


def command_text(command: Command) -> str:
    """The text that risk spans count in: the shell's text, or the argv joined as a shell would read it."""
    return shlex.join(command.words()) if isinstance(command, Argv) else command.text


def risks_of(question: Question) -> tuple[Risk, ...]:
    """All findings about a command, the most surprising first."""
    command = question.spec.command
    seen = view(command)
    raw = "".join(command.words()) if isinstance(command, Argv) else command.text
    first = (*_hidden_characters(raw, command), *_length(raw))
    if len(raw) > LONGEST_JUDGED and isinstance(command, Shell):
        return (*first, *_unknown_shell(command), *_outside_workspace(question), *_sensitive_write(question))
    return (
        *first,
        *_substitution(seen),
        *_unknown_shell(command),
        *(_outside_workspace(question) or _git_elsewhere(question, seen)),
        *_sensitive_write(question),
        *_dangers(seen),
        *deceptions(question, seen),
        *exposures(question, seen),
    )


def _sensitive_write(question: Question) -> tuple[Risk, ...]:
    for path, kind in question.resolved.sensitive.items():
        sentence = f"It may change {kind}, which decides what runs later, or who may decide: {visible(path)}"
        return (Risk(id="sensitive-write", sentence=sentence),)
    return ()


def _dangers(seen: View) -> tuple[Risk, ...]:
    """One finding for each kind of danger and sentence, at its first place."""
    found: dict[tuple[str, str], Risk] = {}
    for command, danger in seen.dangers:
        at = danger.word
        span = command.places[at] if at < len(command.places) else command.span
        sentence = visible(danger.sentence)
        found.setdefault((danger.id, sentence), Risk(id=danger.id, sentence=sentence, span=span))
    for script in seen.scripts:
        if forks_without_end(script, seen.commands):
            sentence = "A function in it starts itself again and again, until nothing else can start"
            found["ends-processes", sentence] = Risk(id="ends-processes", sentence=sentence)
    return tuple(found.values())[:MOST_DANGERS]


def _hidden_characters(raw: str, command: Command) -> tuple[Risk, ...]:
    harmless = frozenset() if isinstance(command, Argv) else PLAIN_CONTROLS
    parts = hidden_parts(raw, keep=harmless)
    found = list(dict.fromkeys(character for start, end in parts for character in raw[start:end]))
    shown = command_text(command)
    if any(ord(character) in BIDI or ord(character) > 0x9F for character in found):
        first = next(character for character in found if ord(character) > 0x9F)
        what = "blanks that are no spaces" if ord(first) in BLANKS else "characters that hide or reorder text"
        sentence = f"It holds {what} (U+{ord(first):04X})"
        return (Risk(id="deceptive-characters", sentence=sentence, span=_span(shown, first)),)
    if found:
        sentence = f"It holds control characters (U+{ord(found[0]):04X})"
        return (Risk(id="control-characters", sentence=sentence, span=_span(shown, found[0])),)
    return ()


def _span(text: str, part: str) -> tuple[int, int] | None:
    start = text.find(part)
    return None if start < 0 else (start, start + len(part))


def _length(raw: str) -> tuple[Risk, ...]:
    if len(raw) <= LONGEST_JUDGED:
        return ()
    return (Risk(id="too-long", sentence=f"It is {len(raw):,} characters long: more than anybody reads"),)


def _substitution(seen: View) -> tuple[Risk, ...]:
    if not seen.expands:
        return ()
    sentence = "It may run a command inside a substitution before the command itself"
    substitutions = [span for script in seen.scripts[:1] for span in script.substitutions]
    if not substitutions:
        return (Risk(id="substitution", sentence=sentence),)
    start, end = substitutions[0]
    opening = _OPENING.match(seen.text, start)
    return (Risk(id="substitution", sentence=sentence, span=opening.span() if opening else (start, end)),)


def _unknown_shell(command: Command) -> tuple[Risk, ...]:
    if not isinstance(command, Shell) or command.shell in SHELLS:
        return ()
    return (Risk(id="unknown-shell", sentence=f"It is read by {visible(command.shell)}, which is not a known shell"),)


def _outside_workspace(question: Question) -> tuple[Risk, ...]:
    root, cwd = question.session_root.rstrip("/"), question.resolved.cwd or question.spec.cwd
    if cwd == root or cwd.startswith(root + "/") or not root:
        return ()
    return (Risk(id="outside-workspace", sentence=f"It runs outside the workspace {question.session_root}"),)


def _git_elsewhere(question: Question, seen: View) -> tuple[Risk, ...]:
    """`git -C` and the like: git then works, with the settings and hooks of the repository there, outside."""
    root, cwd = question.session_root.rstrip("/"), question.resolved.cwd or question.spec.cwd
    for command in seen.commands:
        if command.name != "git" or not root:
            continue
        apart = take_apart(command.argv)
        for name, value, at in apart.options if apart is not None else ():
            if name not in {"-C", "--git-dir", "--work-tree"} or value is None:
                continue
            place = posixpath.normpath(posixpath.join(cwd, value))
            if place != root and not place.startswith(root + "/"):
                span = command.places[at] if at < len(command.places) else command.span
                sentence = f"git works in {visible(value)}, outside the workspace {question.session_root}"
                return (Risk(id="outside-workspace", sentence=sentence, span=span),)
    return ()
