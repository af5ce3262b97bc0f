"""Commands that can run held back: in a view of the files, until their effects are known (decision 36).

It is only read off the words whether that is of any use. What a command may do is decided by what it has done.
"""

import re
from collections.abc import Iterator

from whisper_tui.model.verdict import GRAVE, Risk
from whisper_tui.policy.commands.unwrap import InnerCommand
from whisper_tui.policy.commands.wrappers import adds_variables
from whisper_tui.policy.risks.sensitive_paths import contains_home, shows_private
from whisper_tui.policy.view import CommandView, Question
from whisper_tui.programs.entries import entry_of

_SETTLED = frozenset({"empty-variable", "silent-description", "unseen-script"})
"""Severe risks that are none once it is known what a command has changed, and before that is real."""
_OF_OUTSIDE = frozenset({"network", "environment", "outside-workspace", "unknown-shell", "too-long"})
"""Other risks that a view of the files does not settle: it would fail there, or show what nobody should see unasked."""
_GOES_ON = re.compile(
    r"(?:dev|start|serve|server|watch|preview|storybook|http\.server|runserver|nodemon|live-server|browser-sync|"
    r"-w|--watch(?:=.*)?|-f|--follow)\Z"
)


def not_held_back(question: Question, seen: CommandView, risks: tuple[Risk, ...]) -> str:
    """Return why a command is asked about at once instead of being held back, as a clause. Empty: it can be."""
    return next(_doubts(question, seen, risks), "")


def _doubts(question: Question, seen: CommandView, risks: tuple[Risk, ...]) -> Iterator[str]:
    spec, root = question.spec, question.session_root
    if question.by_agent or spec.place:
        yield "it does not run on this machine under the supervisor"
    if spec.tty or spec.accepts_input:
        yield "it waits for input"
    if adds_variables(spec.environment):
        yield "it brings variables of its own"
    if not root or root == "/" or contains_home(root):
        yield "its workspace contains a home directory"
    if question.resolved.problem or (question.resolved.own_shell and question.resolved.own_shell.only_there):
        yield "what it would run is not known"
    if seen.problem or not seen.commands:
        yield "it cannot be read"
    cwd = question.resolved.cwd or spec.cwd
    # Words that are only known when it runs name what is closed to it, if they name anything private.
    words = [tuple(word for word in inner.argv if word is not None) for inner in seen.commands]
    if shows_private(words, cwd, root, question.resolved.places):
        yield "it may show private files outside the workspace"
    for risk in risks:
        if risk.id in _OF_OUTSIDE or (risk.id in GRAVE and not _is_settled(risk, seen)):
            yield risk.sentence
    for command in seen.commands:
        yield from _doubts_about(command)


def _doubts_about(command: InnerCommand) -> Iterator[str]:
    name = command.name
    if command.background:
        yield "a part of it goes on in the background"
    entry = entry_of(name)
    if entry.acts_outside:
        yield f"{name} {entry.acts_outside}"
    says_so = any(word is not None and _GOES_ON.match(word) for word in command.argv[1:])
    if entry.goes_on == "always" or (entry.goes_on == "sometimes" and says_so):
        yield f"{name} goes on until somebody ends it"


def _is_settled(risk: Risk, seen: CommandView) -> bool:
    """True if what a view of the files shows takes a risk away: what it deletes there is counted, and can be undone."""
    if risk.id in _SETTLED:
        return True
    if risk.id != "destructive":
        return False
    names = {command.name for command, danger in seen.dangers if danger.id == "destructive"}
    return bool(names) and all(entry_of(name).names_files for name in names)
