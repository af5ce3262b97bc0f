"""Notes for an agent beside a result: why there is no result, and what a human or the sandbox changed."""

import shlex
from typing import Literal

from whisper_tui.model.call import CommandSpec, Function
from whisper_tui.model.call_rows import broken_limit
from whisper_tui.model.ending import Denied, HandedOver, Lost, TimedOut, Withdrawn
from whisper_tui.model.errors import Refused, WhisperError
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.model.verdict import whose_rule
from whisper_tui.present.ending_text import denied_for_session

Cause = Literal["denied", "refused", "withdrawn", "lost"]


class ToolFailure(WhisperError):
    """The call fails. The message is for the model, and quotes a human's reason verbatim."""

    kind = "tool_failure"

    def __init__(self, message: str, *, cause: Cause = "refused", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.cause = cause


class UnknownTool(Refused):
    """There is no tool with that name."""

    kind = "unknown_tool"


class DuplicateTool(Refused):
    """A tool with that name is already registered."""

    kind = "duplicate_tool"


_NOTHING = {"edits": "Nothing was changed.", "function": "Nothing was done."}
"""The words for a tool of the agent's own that was not called, by the kind of call."""


def failure_of(ending: Denied | Withdrawn | HandedOver | Lost, kind: str = "") -> ToolFailure:
    """Return the failure that reports an ending without a result to the model.

    `kind`: of the command, if it is a call of a tool of the agent's own.
    """
    nothing = _NOTHING.get(kind, "Nothing ran.")
    match ending:
        case Denied():
            return _denied(ending, nothing)
        case Withdrawn(why=why):
            words = "The call was withdrawn before it ran." if kind not in _NOTHING else "The call was withdrawn."
            return ToolFailure(f"{words} {nothing} {why}".rstrip(), cause="withdrawn")
        case HandedOver():
            # The agent's own shell runs it, so this program sees neither its output nor its exit code.
            return ToolFailure("The agent ran the command itself, so its result is not known here.", cause="lost")
        case Lost(why=why):
            message = (
                f"The command may have run, and how it ended cannot be known: {why}. "
                "It is not run again by itself; look at its effects before you repeat it."
            )
            return ToolFailure(message, cause="lost")


def _denied(ending: Denied, nothing: str) -> ToolFailure:
    if ending.for_session:
        reason = f" Reason: {ending.reason}" if ending.reason else ""
        return ToolFailure(f"{denied_for_session(ending)}. {nothing}{reason}", cause="denied")
    if ending.by.surface == "rule":
        message = f"Refused by {whose_rule(ending.by.who)}. {nothing} Reason: {ending.reason}"
        return ToolFailure(message, cause="refused")
    if not ending.reason:
        return ToolFailure(f"Denied by the human, without a reason. {nothing}", cause="denied")
    return ToolFailure(f"Denied by the human. {nothing} Reason: {ending.reason}", cause="denied")


def agent_note(record: CallRecord) -> str | None:
    """Return the note for the agent. None: its command ran unchanged after a human's approval."""
    parts = (_edit(record), limit_note(record), _memory(record), sandbox_note(record))
    return " ".join(part for part in parts if part is not None) or None


def _edit(record: CallRecord) -> str | None:
    if not record.edited:
        return None
    asked, ran = record.call.spec, record.spec
    if isinstance(ran.command, Function):
        return f"The human changed the arguments before the tool was called. It was called with: {ran.command.text}."
    sentence = f"The human changed the command before it ran. What ran: {command_line(ran)}"
    if ran.cwd != asked.cwd:
        sentence += f" (in {ran.cwd})"
    if ran.timeout_s != asked.timeout_s:
        limit = "no time limit" if ran.timeout_s is None else f"a time limit of {ran.timeout_s:g} seconds"
        sentence += f" (with {limit})"
    if ran.environment != asked.environment:
        added = " ".join(f"{name}={shlex.quote(value)}" for name, value in ran.environment.items())
        sentence += f" (with {added})" if added else " (with no variables added)"
    return sentence + "."


def limit_note(record: CallRecord) -> str | None:
    """Return the note about a limit that the agent did not set. None: no such limit ended the command."""
    # The tools' results do not show whose limit it was, so the agent would retry with the same one.
    unasked = record.decided_by is not None and record.decided_by.surface == "rule"
    match record.state:
        case Ended(ending=TimedOut(after_s=after_s)) if unasked and record.spec.timeout_s != after_s:
            return (
                f"It was ended after {after_s:g} seconds, the limit for read-only commands that run without "
                "a human's approval."
            )
        case Ended(ending=TimedOut(after_s=after_s)) if record.spec.timeout_s != record.call.spec.timeout_s:
            return f"The time limit of {after_s:g} seconds was reached, so it was ended."
        case _:
            words = broken_limit(record)
            return f"It was ended, because {words}." if words else None


def _memory(record: CallRecord) -> str | None:
    if record.decided_by is None or record.decided_by.surface != "memory":
        return None
    return "No human was asked this time: the human had approved this same command for the session."


def sandbox_note(record: CallRecord) -> str | None:
    """Return what the sandbox blocked for a failed command, and what the agent can do about it."""
    sandbox, blocked = record.sandbox, record.blocked
    if sandbox is None or blocked is None or not record.failed_in_sandbox:
        return None
    automatic = record.decided_by is not None and record.decided_by.surface in {"rule", "memory"}
    if automatic:
        return (
            f"This command was approved automatically and ran in a sandbox ({sandbox.words()}), which refused what it "
            f"needed: it {blocked.words()}. Submit the same command again to ask a human to approve it without one."
        )
    return f"The human approved this command in a sandbox ({sandbox.words()}), which refused it: it {blocked.words()}."


def command_line(spec: CommandSpec) -> str:
    """Return the command as a user would type it: the shell's text, or the quoted argv."""
    return spec.command.text
