"""Findings about what a command reaches: other places, other machines, secrets, and what its variables change."""

import posixpath

from whisper_tui.model.masking import is_secret_name, secret_spans
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import Risk
from whisper_tui.policy.dangers.network import talks
from whisper_tui.policy.environment import changes_what_runs
from whisper_tui.policy.inner import Inner
from whisper_tui.policy.question import Question
from whisper_tui.policy.view import View


def exposures(question: Question, seen: View) -> tuple[Risk, ...]:
    """All findings of this kind."""
    return (
        *_writes_outside(question, seen),
        *_network(seen),
        *_secrets(seen),
        *_environment(question, seen),
    )


def _writes_outside(question: Question, seen: View) -> tuple[Risk, ...]:
    root = question.session_root.rstrip("/")
    cwd = question.resolved.cwd or question.spec.cwd
    for script in seen.scripts:
        for redirection in script.redirections:
            if redirection.access not in {"write", "net"}:
                continue
            name = redirection.target.value
            span = (redirection.target.start, redirection.target.end) if script is seen.scripts[0] else None
            if name is None:
                sentence = "Which file it writes is only known when it runs"
                return (Risk(id="writes-outside", sentence=sentence, span=span),)
            path = posixpath.normpath(posixpath.join(cwd, name))
            if root and path != root and not path.startswith(root + "/"):
                sentence = f"It writes to {visible(name)}, outside the workspace {root}"
                return (Risk(id="writes-outside", sentence=sentence, span=span),)
    return ()


def _network(seen: View) -> tuple[Risk, ...]:
    for script in seen.scripts:
        for redirection in script.redirections:
            if redirection.access == "net":
                return (Risk(id="network", sentence="It opens a connection to another machine"),)
    for command in seen.commands:
        if command.name is not None and talks(command.argv, command.name):
            sentence = f"{visible(command.name)} talks to other machines"
            return (Risk(id="network", sentence=sentence, span=_word(command, 0)),)
    return ()


def _secrets(seen: View) -> tuple[Risk, ...]:
    sentence = "It seems to hold a secret, which every process on this machine can read while it runs"
    if spans := secret_spans(seen.text):
        return (Risk(id="secret-in-arguments", sentence=sentence, span=spans[0]),)
    for command in seen.commands:
        if any(
            value and is_secret_name(name) for name, _, value in (each.partition("=") for each in command.assignments)
        ):
            return (Risk(id="secret-in-arguments", sentence=sentence, span=command.span),)
    return ()


def _environment(question: Question, seen: View) -> tuple[Risk, ...]:
    added = [name for name in question.spec.environment if changes_what_runs(name)]
    if added:
        sentence = f"{visible(', '.join(added))} can make it run something that its words do not name"
        return (Risk(id="environment", sentence=sentence),)
    for command in seen.commands:
        for assignment in command.assignments:
            name = assignment.partition("=")[0].rstrip("+")
            if changes_what_runs(name):
                sentence = f"{visible(name)} can make it run something that its words do not name"
                return (Risk(id="environment", sentence=sentence, span=command.span),)
    return ()


def _word(command: Inner, at: int) -> tuple[int, int]:
    return command.places[at] if at < len(command.places) else command.span
