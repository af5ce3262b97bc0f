"""A call as a task: its state, its handle, and what there is to know about it."""

from typing import Any, Literal, assert_never

from whisper_tui.model.command import Shell
from whisper_tui.model.ending import (
    Denied,
    Ending,
    Exited,
    FailedToStart,
    HandedOver,
    Lost,
    Signalled,
    TimedOut,
    Withdrawn,
)
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Running, Starting, Unjudged, Waiting
from whisper_tui.tools.told import command_line

KIND = "command_task"
EXEC_COMMAND = "ExecCommand"
"""The tool whose calls are tasks."""

TaskState = Literal["queued", "running", "cancelling", "completed", "failed", "cancelled", "interrupted", "lost"]


def task_state(record: CallRecord) -> TaskState:
    """Where a task stands. It follows the record, which never goes back and has one ending."""
    match record.state:
        case Unjudged() | Waiting() | Held() | Queued() | Starting():
            return "queued"
        case Running():
            return "cancelling" if record.stopping else "running"
        case Ended(ending=ending):
            return _final_state(ending, stopped=record.stopping)
        case _ as never:
            assert_never(never)


def _final_state(ending: Ending, *, stopped: bool) -> TaskState:
    match ending:
        case Exited(code=0):
            return "completed"
        case Exited():
            return "cancelled" if stopped else "failed"
        case Signalled(by_us=by_us):
            if stopped:
                return "cancelled"
            return "interrupted" if by_us else "failed"
        case TimedOut() | FailedToStart():
            return "failed"
        case HandedOver():
            return "lost"
        case Denied() | Withdrawn():
            return "cancelled"
        case Lost():
            return "lost"
        case _ as never:
            assert_never(never)


def task_handle(record: CallRecord) -> dict[str, Any]:
    """What an agent holds of a task."""
    return {"task_id": record.id, "task_kind": KIND, "status": task_state(record)}


def task_command(record: CallRecord) -> dict[str, Any]:
    """The command as it runs, which a human may have edited; the shell only where the agent named one."""
    asked, command = record.call.arguments.get("shell"), record.spec.command
    read_by = command.shell if isinstance(command, Shell) and record.edited else asked
    return {
        "cmd": command_line(record.spec),
        "workdir": record.spec.cwd,
        "shell": read_by,
        "login": isinstance(command, Shell) and command.login,
        "tty": record.spec.tty,
        "accepts_input": record.spec.accepts_input,
    }


def task_summary(record: CallRecord) -> str:
    """Where a task stands, in a sentence."""
    match record.state:
        case Unjudged() | Waiting():
            return "It waits for a human's approval; nothing has run yet."
        case Held() | Queued() | Starting():
            return "It is approved and about to start."
        case Running(process=process):
            doing = "is being ended" if record.stopping else "runs"
            return f"It {doing} as process {process.leader.pid}."
        case Ended(ending=ending):
            return ending_sentence(ending)
        case _ as never:
            assert_never(never)


def ending_sentence(ending: Ending) -> str:
    """How a command ended."""
    match ending:
        case Exited(code=code):
            return f"command exited with status {code}"
        case Signalled(number=number):
            return f"command was ended by signal {number}"
        case TimedOut(after_s=after_s):
            return f"command was ended because its time of {after_s:g} seconds was over"
        case FailedToStart(message=message):
            return f"command was not started: {message}"
        case Denied(reason=reason):
            return f"command was denied: {reason}" if reason else "command was denied"
        case Withdrawn(why=why):
            return f"command was withdrawn before it ran: {why}"
        case HandedOver():
            return "command was left to the agent, and its end is not known"
        case Lost(why=why):
            return f"command may have run, and its end cannot be known: {why}"
        case _ as never:
            assert_never(never)


def exit_status(record: CallRecord) -> int | None:
    """The exit code. None: it has not ended, or not by itself."""
    match record.state:
        case Ended(ending=Exited(code=code)):
            return code
        case _:
            return None
