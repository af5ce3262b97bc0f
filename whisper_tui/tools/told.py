"""What an answer must tell an agent beyond the result: that a human changed the command, or had approved it before."""

import shlex

from whisper_tui.model.broken_limit import broken_limit
from whisper_tui.model.command import Argv, CommandSpec
from whisper_tui.model.ending import TimedOut
from whisper_tui.model.state import CallRecord, Ended


def told(record: CallRecord) -> str | None:
    """The sentences for the agent. None: what it asked for ran, and a human was asked."""
    parts = (_edit(record), limit_note(record), _memory(record), sandbox_note(record))
    return " ".join(part for part in parts if part is not None) or None


def _edit(record: CallRecord) -> str | None:
    if not record.edited:
        return None
    asked, ran = record.call.spec, record.spec
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
    """A limit that the agent did not set may have no place in the result."""
    unasked = record.decided_by is not None and record.decided_by.surface == "rule"
    match record.state:
        case Ended(ending=TimedOut(after_s=after_s)) if unasked and record.spec.timeout_s != after_s:
            return (
                f"It was ended after {after_s:g} seconds: no command that only looks, and that no human was asked "
                "about, may run for longer."
            )
        case Ended(ending=TimedOut(after_s=after_s)) if record.spec.timeout_s != record.call.spec.timeout_s:
            return f"Its time was over after {after_s:g} seconds, so it was ended."
        case _:
            words = broken_limit(record)
            return f"It was ended, because {words}." if words else None


def _memory(record: CallRecord) -> str | None:
    if record.decided_by is None or record.decided_by.surface != "memory":
        return None
    return "Nobody was asked this time: the human had approved this same command for the session."


def sandbox_note(record: CallRecord) -> str | None:
    """What a sandbox kept a failed command from, and what the agent can do about that."""
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
    """What runs, as one would type it: the shell's text, or the argv quoted."""
    return shlex.join(spec.command.words()) if isinstance(spec.command, Argv) else spec.command.text
