"""Acting on tasks: `TaskInput` and `TaskStop`, which go through the approval queue like commands."""

import asyncio
import signal
from typing import Any

from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import NotRunning, WhisperError
from whisper_tui.model.state import CallRecord, Ended, Running
from whisper_tui.tools.exec_command.envelope import Envelope, success
from whisper_tui.tools.exec_command.failure import ExecFailure
from whisper_tui.tools.exec_command.task import task_state, task_summary
from whisper_tui.tools.exec_command.task_tools import TASK_ID, TaskTool, find_task, snapshot, snapshot_lines
from whisper_tui.tools.prompt_text import prompt_block

INPUT_S = 30.0
"""Seconds in which a task must have taken its input."""
AFTER_GRACE_S = 2.0
"""Seconds beyond the grace in which the end of a stopped task is waited for."""


class TaskInputTool(TaskTool):
    """Writes to the standard input or the terminal of a task."""

    name = "TaskInput"
    description = "Send text to the input of a command task exactly as it is, without a line feed of its own."
    parameters_schema: dict[str, Any] = {  # noqa: RUF012
        "type": "object",
        "properties": {
            "task_id": TASK_ID,
            "text": {
                "type": "string",
                "default": "",
                "description": "What is typed. End it with a line feed to enter.",
            },
            "close_stdin": {
                "type": "boolean",
                "default": False,
                "description": "Whether the input is closed afterwards.",
            },
        },
        "required": ["task_id"],
        "additionalProperties": False,
    }

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool to answer a question of a task that was started with `accepts_input` or `tty`, or "
            "to close its input. A human is asked, as for a command.",
            expected_output='An envelope whose result holds "bytes_written", "stdin_closed" and the "task".',
            examples=(("answer yes", r'`task_id="12"`, `text="yes\n"`'),),
        )

    async def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """Only where there is somebody to read it: anything else fails at once."""
        try:
            _check_takes_input(await find_task(self._context, arguments["task_id"]))
        except WhisperError:
            return False
        return True

    async def answer(self, arguments: dict[str, Any]) -> Envelope:
        """Write it, and close the input where that is asked for."""
        record = await find_task(self._context, arguments["task_id"])
        _check_takes_input(record)
        data, eof = arguments.get("text", "").encode(), arguments.get("close_stdin", False)
        try:
            async with asyncio.timeout(INPUT_S):
                await self._context.supervision.write_stdin(record.id, data, eof=eof)
        except TimeoutError as error:
            message = f"task {record.id} does not read its input; part of the text may have reached it"
            hint = "look at its output before you send anything again"
            raise ExecFailure("tool_execution_failed", message, hint=hint) from error
        record = await self._context.supervision.record(record.id)
        result = {"bytes_written": len(data), "stdin_closed": eof, "task": snapshot(record)}
        return success(self.name, result, f"{len(data)} bytes were sent to task {record.id}")

    def render_result(self, result: dict[str, Any]) -> str:
        """What was sent, and to whom."""
        closed = ", and its input was closed" if result["stdin_closed"] else ""
        return "\n".join((f"Sent {result['bytes_written']} bytes{closed}", *snapshot_lines(result["task"])))


class TaskStopTool(TaskTool):
    """Ends a task."""

    name = "TaskStop"
    description = (
        "Stop a command task: its processes get TERM, and KILL after a grace. A second call kills them at once."
    )
    parameters_schema: dict[str, Any] = {  # noqa: RUF012
        "type": "object",
        "properties": {"task_id": TASK_ID},
        "required": ["task_id"],
        "additionalProperties": False,
    }

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool to end a task that is no longer needed. A task that has not started is taken back "
            "at once; for one that runs, a human is asked, as for a command.",
            expected_output='An envelope whose result holds "outcome" (withdrawn, stopping, stopped, killed or '
            'already_over) and the "task".',
            examples=(("end task 12", '`task_id="12"`'),),
        )

    async def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """Only where something runs that a human has let run."""
        try:
            return isinstance((await find_task(self._context, arguments["task_id"])).state, Running)
        except WhisperError:
            return False

    async def answer(self, arguments: dict[str, Any]) -> Envelope:
        """Take it back, end it, or say that it is over."""
        record = await find_task(self._context, arguments["task_id"])
        outcome = "already_over"
        if not isinstance(record.state, Ended):
            outcome = await self._end(record)
            record = await self._context.supervision.record(record.id)
        result = {"outcome": outcome, "task": snapshot(record)}
        return success(self.name, result, f"task {record.id} is {task_state(record)}. {task_summary(record)}")

    async def _end(self, record: CallRecord) -> str:
        supervision = self._context.supervision
        running, again = isinstance(record.state, Running), record.stopping
        try:
            if again:
                by = Decider(surface="library", who=f"{self._context.session.name} (TaskStop)")
                await supervision.signal(record.id, signal.SIGKILL, "tree", by)
            else:
                await supervision.withdraw(record.id, "the agent stopped it", stop_running=True)
        except NotRunning:
            return "already_over"
        if not running:
            return "withdrawn"
        over = await self._over(record, AFTER_GRACE_S + (0 if again else record.spec.grace_s))
        return ("killed" if again else "stopped") if over else "stopping"

    async def _over(self, record: CallRecord, seconds: float) -> bool:
        outcome = asyncio.ensure_future(self._context.supervision.outcome(record.id))
        try:
            done, _ = await asyncio.wait({outcome}, timeout=seconds)
            return bool(done)
        finally:
            outcome.cancel()

    def render_result(self, result: dict[str, Any]) -> str:
        """What was done, and where the task stands."""
        return "\n".join((f"Outcome: {result['outcome']}", *snapshot_lines(result["task"])))


def _check_takes_input(record: CallRecord) -> None:
    if not isinstance(record.state, Running):
        message = f"task {record.id} is {task_state(record)}, so it reads no input"
        raise ExecFailure("tool_execution_failed", message, hint="send input only to a task that runs")
    if not record.spec.accepts_input:
        message = f"task {record.id} was started without an input"
        hint = "start the command with `accepts_input` or `tty` if it needs input"
        raise ExecFailure("tool_execution_failed", message, hint=hint)
