"""TaskList, TaskStatus, TaskOutput, TaskInput and TaskStop."""

import asyncio
import signal
from abc import abstractmethod
from typing import Any

from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import NotRunning, UnknownCall, WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended, Running
from whisper_tui.tools.agent_text import fitted
from whisper_tui.tools.ai_tool import ArgumentError, check_arguments, prompt_block
from whisper_tui.tools.exec_envelope import Envelope, EnvelopedTool, ExecFailure, success
from whisper_tui.tools.exec_tool import DEFAULT_TOKENS, MOST_MS
from whisper_tui.tools.supervised_tool import ToolContext
from whisper_tui.tools.task import (
    EXEC_COMMAND,
    NAMES,
    TaskOutputReader,
    exit_status,
    task_command,
    task_handle,
    task_state,
    task_summary,
)

TASK_ID: dict[str, Any] = {"type": "string", "description": "The task, as ExecCommand named it."}
PAGE = 200
"""How many tasks are requested at once."""


async def find_task(context: ToolContext, task_id: str) -> CallRecord:
    """Return a task of this session. Raises `ExecFailure`, also for tasks of other sessions."""
    # Ids are consecutive, so an agent can guess those of other sessions. They get the same answer as unknown ids.
    hint = "TaskList names the tasks that are active"
    try:
        record = await context.supervision.record(task_id)
    except UnknownCall as error:
        raise ExecFailure("task_not_found", f"there is no task {task_id}", hint=hint) from error
    if record.call.session_id != context.session.id or record.call.tool != EXEC_COMMAND:
        raise ExecFailure("task_not_found", f"there is no task {task_id}", hint=hint)
    return record


def snapshot(record: CallRecord) -> dict[str, Any]:
    """Return the facts about a task without its output."""
    return {
        **task_handle(record),
        "summary": task_summary(record),
        "command": task_command(record),
        "pid": record.process.leader.pid if record.process else None,
        "exit_status": exit_status(record),
        "background_pids": [process.identity.pid for process in record.living_background],
    }


def snapshot_lines(task: dict[str, Any]) -> list[str]:
    """Return a snapshot as text for a model."""
    command = task["command"]
    lines = [
        f"Task: {task['task_id']}",
        f"Status: {task['status'].capitalize()}",
        f"Task summary: {task['summary']}",
        f"Command: {command['cmd']}",
        f"workdir={command['workdir']}",
    ]
    if command["shell"] is not None:
        lines.append(f"shell={command['shell']}")
    if task["background_pids"]:
        lines.append(f"Background PIDs: {', '.join(map(str, task['background_pids']))}")
    return lines


def _seconds(milliseconds: int) -> float:
    if milliseconds > MOST_MS:
        raise ArgumentError(f"The argument 'timeout_ms' must be at most {MOST_MS}; a larger integer was given")
    return milliseconds / 1000


class TaskTool(EnvelopedTool):
    """A tool about the tasks of its session."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    @property
    def category(self) -> str:
        """The kind of tool."""
        return "System Execution"

    @property
    def tags(self) -> list[str]:
        """Keywords for finding the tool."""
        return ["task", "background", "system"]

    async def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """False: an agent may always see its own tasks."""
        return False

    async def execute(self, **kwargs: Any) -> Envelope:
        """Check the arguments, answer them, and return failures as envelopes too."""
        try:
            return await self.answer(check_arguments(self.name, self.parameters_schema, kwargs))
        except WhisperError as error:
            return self.error_result(error)

    @abstractmethod
    async def answer(self, arguments: dict[str, Any]) -> Envelope:
        """Return the envelope for checked arguments. Raises `WhisperError`."""


class TaskListTool(TaskTool):
    """Names the tasks that are active."""

    title = "List tasks"

    name = "TaskList"
    description = "List the active command tasks of this session, newest first."
    read_only = True
    parameters_schema: dict[str, Any] = {  # noqa: RUF012
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool to see which of your commands wait, run or are being ended.",
            expected_output='An envelope whose result holds "tasks", newest first.',
            examples=(("see what runs", "no arguments"),),
        )

    async def answer(self, arguments: dict[str, Any]) -> Envelope:
        """Return all active tasks."""
        tasks: list[dict[str, Any]] = []
        before: str | None = None
        while True:
            query = HistoryQuery(limit=PAGE, before=before, session_id=self._context.session.id, open_only=True)
            records = await self._context.supervision.history(query)
            # An ended call stays open while one of its background processes lives, but it is not an active task.
            active = (r for r in records if r.call.tool == EXEC_COMMAND and not isinstance(r.state, Ended))
            tasks += [snapshot(record) for record in active]
            if len(records) < PAGE:
                break
            before = records[-1].id
        return success(self.name, {"tasks": tasks}, f"{len(tasks)} active")

    def render_result(self, result: dict[str, Any]) -> str:
        """Return one block per task."""
        blocks = ["\n".join(snapshot_lines(task)) for task in result["tasks"]]
        return "\n\n".join(blocks) or "No active tasks"


class TaskStatusTool(TaskTool):
    """Returns the state of one task."""

    title = "Show the state of a task"

    name = "TaskStatus"
    description = "Report the status of a command task: its state, its command, its process and its exit status."
    read_only = True
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
            purpose="Use this tool to see whether a task still runs, without waiting and without its output.",
            expected_output='An envelope whose result holds "task" with its "status": queued, running, cancelling, '
            "completed, failed, cancelled, interrupted or lost.",
            examples=(("see the status of task 12", '`task_id="12"`'),),
        )

    async def answer(self, arguments: dict[str, Any]) -> Envelope:
        """Return the current task."""
        record = await find_task(self._context, arguments["task_id"])
        return success(self.name, {"task": snapshot(record)}, f"task {record.id} is {task_state(record)}")

    def render_result(self, result: dict[str, Any]) -> str:
        """Return one block."""
        return "\n".join(snapshot_lines(result["task"]))


class TaskOutputTool(TaskTool):
    """Gives the output of a task, and can wait for its end."""

    title = "Read the output of a task"

    name = "TaskOutput"
    description = (
        "Get the output of a command task so far, in the order in which it arrived on both streams. With `block` it "
        "first waits for the end of the task."
    )
    read_only = True
    parameters_schema: dict[str, Any] = {  # noqa: RUF012
        "type": "object",
        "properties": {
            "task_id": TASK_ID,
            "block": {"type": "boolean", "default": True, "description": "Whether to wait for the end of the task."},
            "timeout_ms": {
                "type": "integer",
                "minimum": 0,
                "default": 30_000,
                "description": "How long to wait at most, in milliseconds.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "Where to begin: the `next_offset` of an earlier answer, so that nothing is read twice.",
            },
        },
        "required": ["task_id"],
        "additionalProperties": False,
    }

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool to read what a task has printed, and to wait for its end.",
            expected_output='An envelope whose result holds "retrieval_status" (success: the task is over; timeout: it '
            'is not, after waiting; not_ready: it is not, and was not waited for), the "task", its "output" and '
            '"next_offset".',
            examples=(
                ("wait up to a minute for task 12", '`task_id="12"`, `timeout_ms=60000`'),
                ("read on without waiting", '`task_id="12"`, `block=false`, `offset=4096`'),
            ),
        )

    async def answer(self, arguments: dict[str, Any]) -> Envelope:
        """Return the output so far, after the end of the task if `block` is set."""
        record = await find_task(self._context, arguments["task_id"])
        block = arguments.get("block", True)
        if block and not isinstance(record.state, Ended):
            record = await self._context.ended_within(record, _seconds(arguments.get("timeout_ms", 30_000)))
        over = isinstance(record.state, Ended)
        look = TaskOutputReader(self._context.supervision, record, now=self._context.clock())

        async def made(limit: int | None) -> Envelope:
            budget = 4 * DEFAULT_TOKENS if limit is None else min(4 * DEFAULT_TOKENS, limit)
            arrived = await look.since(arguments.get("offset", 0), budget)
            result = {
                "retrieval_status": "success" if over else "timeout" if block else "not_ready",
                "task": snapshot(record),
                "output": arrived.text,
                "next_offset": arrived.next_offset,
                "truncated": arrived.cut,
                **({"artifacts": await self._artifacts(record)} if arrived.cut else {}),
            }
            return success(self.name, result, f"task {record.id} is {task_state(record)}")

        envelope: Envelope = await fitted(self._context.output_budget(), made, self.text)
        return envelope

    async def _artifacts(self, record: CallRecord) -> list[dict[str, Any]]:
        streams: tuple[Stream, ...] = ("out", "err")
        paths = {stream: await self._context.supervision.output_file(record.id, stream) for stream in streams}
        return [{"path": path, "stream": NAMES[stream]} for stream, path in paths.items() if path is not None]

    def render_result(self, result: dict[str, Any]) -> str:
        """Return the task, the output and the next offset."""
        lines = [
            *snapshot_lines(result["task"]),
            f"Retrieval: {result['retrieval_status']}",
            f"Next offset: {result['next_offset']}",
            "",
            "Output:",
            result["output"] if result["output"].strip() else "(none)",
        ]
        if result.get("artifacts"):
            lines += ["", "Artifacts:", *(artifact["path"] for artifact in result["artifacts"])]
        return "\n".join(lines)


INPUT_S = 30.0
"""Seconds within which a task must accept its input."""
AFTER_GRACE_S = 2.0
"""Seconds beyond the grace period for which the end of a stopped task is awaited."""


class TaskInputTool(TaskTool):
    """Writes to the standard input or the terminal of a task."""

    title = "Type into a task"

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
        """True if the task runs and takes input."""
        # Any other call fails without an effect, so no human is asked.
        try:
            _check_takes_input(await find_task(self._context, arguments["task_id"]))
        except WhisperError:
            return False
        return True

    async def answer(self, arguments: dict[str, Any]) -> Envelope:
        """Write the text, and close the input if `close_stdin` is set."""
        record = await find_task(self._context, arguments["task_id"])
        # Checked again, because the task may have ended while a human was asked.
        _check_takes_input(record)
        data, eof = arguments.get("text", "").encode(), arguments.get("close_stdin", False)
        try:
            # If the program does not read, the pipe is full and the write would block for ever.
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
        """Return the number of bytes sent, and the task."""
        closed = ", and its input was closed" if result["stdin_closed"] else ""
        return "\n".join((f"Sent {result['bytes_written']} bytes{closed}", *snapshot_lines(result["task"])))


class TaskStopTool(TaskTool):
    """Ends a task."""

    title = "End a task"

    name = "TaskStop"
    description = (
        "Stop a command task: its processes get TERM, and KILL after a grace period. A second call kills them at once."
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
            purpose="Use this tool to end a task that is no longer needed. A task that has not started is withdrawn "
            "at once; for one that runs, a human is asked, as for a command.",
            expected_output='An envelope whose result holds "outcome" (withdrawn, stopping, stopped, killed or '
            'already_over) and the "task".',
            examples=(("end task 12", '`task_id="12"`'),),
        )

    async def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """True if the task runs."""
        # A task that has not started is only withdrawn, which has no effect outside of the queue.
        try:
            return isinstance((await find_task(self._context, arguments["task_id"])).state, Running)
        except WhisperError:
            return False

    async def answer(self, arguments: dict[str, Any]) -> Envelope:
        """Withdraw the task, end it, or report that it is over."""
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
            # The task ended between the check of its state and the signal.
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
        """Return the outcome and the state of the task."""
        return "\n".join((f"Outcome: {result['outcome']}", *snapshot_lines(result["task"])))


def _check_takes_input(record: CallRecord) -> None:
    if not isinstance(record.state, Running):
        message = f"task {record.id} is {task_state(record)}, so it reads no input"
        raise ExecFailure("tool_execution_failed", message, hint="send input only to a task that runs")
    if not record.spec.accepts_input:
        message = f"task {record.id} was started without an input"
        hint = "start the command with `accepts_input` or `tty` if it needs input"
        raise ExecFailure("tool_execution_failed", message, hint=hint)
