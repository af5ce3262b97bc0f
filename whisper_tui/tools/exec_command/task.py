"""A call as a task: its state, its handle and its summary."""

from typing import Any, Literal, assert_never

from whisper_tui.model.call import Shell
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
from whisper_tui.present.ending_text import ending_for_agent
from whisper_tui.tools.agent_notes import command_line

KIND = "command_task"
EXEC_COMMAND = "ExecCommand"
"""The tool whose calls are tasks."""

TaskState = Literal["queued", "running", "cancelling", "completed", "failed", "cancelled", "interrupted", "lost"]


def task_state(record: CallRecord) -> TaskState:
    """Return the state of a task."""
    match record.state:
        # Agents only see one kind of waiting. Only `summary` says whether it is for a human.
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
            # A program that handles TERM exits with a code of its own, but it was stopped nevertheless.
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
    """Return the handle of a task for agents."""
    return {"task_id": record.id, "task_kind": KIND, "status": task_state(record)}


def task_command(record: CallRecord) -> dict[str, Any]:
    """Return the command that runs, perhaps edited by a human, with its shell only if the agent named one."""
    # This program fills in the default shell. An agent that named no shell must not see one.
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
    """Return the state of a task as a sentence."""
    match record.state:
        case Unjudged() | Waiting():
            return "It waits for a human's approval; nothing has run yet."
        case Held() | Queued() | Starting():
            return "It is approved and about to start."
        case Running(process=process):
            doing = "is being ended" if record.stopping else "runs"
            return f"It {doing} as process {process.leader.pid}."
        case Ended(ending=ending):
            return ending_for_agent(ending)
        case _ as never:
            assert_never(never)


def exit_status(record: CallRecord) -> int | None:
    """Return the exit code. None: the task has not ended, or did not exit by itself."""
    match record.state:
        case Ended(ending=Exited(code=code)):
            return code
        case _:
            return None
