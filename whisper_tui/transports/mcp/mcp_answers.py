"""The messages for an MCP client: the list of tools, the progress of calls, and answers."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types

from whisper_tui.model.api import Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.errors import BrokenHistory, WhisperError
from whisper_tui.model.state import CallRecord, Ended, Held, Queued, Running, Starting, Unjudged, Waiting
from whisper_tui.tools import AITool, Answer, ArgumentError, ToolFailure
from whisper_tui.tools.agent_text import OutputBudget, as_json, shortened
from whisper_tui.tools.wait import pending, pending_text

COUNTED_EVERY_S = 1.0
"""The shortest interval in seconds at which positions in the queue are counted."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends one progress notification: progress, total, message."""


class ProgressReporter:
    """Reports the progress of calls to all connections. It watches the board only while somebody waits."""

    def __init__(self, supervision: Supervision, clock: Callable[[], float] = time.time) -> None:
        self._supervision = supervision
        self._clock = clock
        self._board = Board()
        self._lookers = 0
        self._following: asyncio.Task[None] | None = None
        self._places: dict[str, int] = {}
        self._counted_at = -COUNTED_EVERY_S

    @asynccontextmanager
    async def reporting(self, call_id: str, report: Report, interval_s: float) -> AsyncIterator[None]:
        """Report about a call regularly until the end of the block."""
        self._lookers += 1
        if self._following is None:
            self._board = Board()
            self._following = asyncio.create_task(self._follow())
        reports = asyncio.create_task(self._report(call_id, report, interval_s))
        try:
            yield
        finally:
            reports.cancel()
            self._lookers -= 1
            if self._lookers == 0:
                self._following.cancel()
                self._following = None

    async def _follow(self) -> None:
        async for events in self._supervision.watch():
            self._board.apply_all(events)

    async def _report(self, call_id: str, report: Report, interval_s: float) -> None:
        """Send a report every `interval_s` seconds."""
        # MCP requires growing progress. The time since the submission grows even across a restart of the supervisor.
        record = await self._supervision.record(call_id)
        last = 0.0
        while True:
            last = max(last + 0.001, round(self._clock() - record.call.submitted_at, 3))
            await report(last, None, self.words(call_id, record))
            await asyncio.sleep(interval_s)

    def words(self, call_id: str, otherwise: CallRecord) -> str:
        """Describe the state of a call. `otherwise` is used while the board does not have the call."""
        try:
            record = self._board.record(call_id)
        except BrokenHistory:
            record = otherwise
        match record.state:
            case Unjudged():
                return "received"
            case Waiting():
                return f"waiting for a human ({self._ahead(call_id)} ahead)"
            case Held():
                return "approved, waiting for its ticket"
            case Queued():
                return "approved, waiting for a free worker"
            case Starting():
                return "starting"
            case Running(process=process):
                seconds = max(0, int(self._clock() - process.started_at))
                return f"running, pid {process.leader.pid}, {seconds} s"
            case Ended():
                return "ended"

    def _ahead(self, call_id: str) -> int:
        now = asyncio.get_running_loop().time()
        if now - self._counted_at >= COUNTED_EVERY_S or call_id not in self._places:
            self._places = {waiting: place for place, waiting in enumerate(self._board.waiting)}
            self._counted_at = now
        return self._places.get(call_id, 0)


CALL_ID = "whisper-tui/call-id"
NOTE_KEY = "whisper-tui/told"

READ_PARTS = "ask for a part of it, for example a range of lines with a command like sed -n"
"""Advice to the model about truncated output."""

INSTRUCTIONS = """\
These tools run commands on the user's machine under whisper_tui, where a human watches every command.
- A human may be asked before a command runs. The answer can take minutes: wait for it, and do not send the call again.
- An answer with the status `pending_approval`, `approved` or `running` is not a result: it holds a `ticket`. Call \
`wait` with that ticket until the result is there. `pending_approval` means that nothing ran and nothing was refused.
- A command of your own shell may be held for the human in the same way: if it, or a script that runs it, goes on \
without output, wait for it; do not end it or try another way.
- A denied call fails and says why in the human's own words. Nothing ran. Follow the words; do not try another way to \
do what was denied.
- The human may change a command before it runs. Then the answer says what ran instead.
- Give `run_shell_command` a `description`: the human reads it.
- `ExecCommand` answers when the command ends, or at the end of its foreground window; then the command goes on as a \
task, which `TaskOutput`, `TaskStatus`, `TaskInput` and `TaskStop` are about.
- Each call is independent; `cd` and variables do not last. `timeout` counts from the start of the command, not while \
the human thinks."""


OWN_SHELL_INSTRUCTIONS = """\
You work on the user's machine under whisper_tui, where a human watches every command. Run commands with your own \
shell: whisper_tui supervises it.
- A human may be asked before a command or another call of a tool. The answer can take minutes: if a command, or a \
script that runs it, goes on without output, wait for it; make the same call again only if its answer tells you to.
- A denied call fails and says why in the human's own words. Nothing was done. Follow the words; do not try another \
way to do what was denied.
- The human may change a call before it is carried out. Then you are told what was done instead.
- An answer of one of these tools with the status `pending_approval`, `approved` or `running` is not a result: it \
holds a `ticket`. Call `wait` with that ticket until the result is there."""
"""The instructions for agents whose own shell is supervised, and which are offered no tools that run commands."""


def declared(tool: AITool) -> types.Tool:
    """Return a tool's entry in the list. It has no output schema (decision 18)."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=not tool.read_only,
            idempotent_hint=tool.read_only,
            open_world_hint=not tool.read_only,
        ),
        # Claude Code only shows a model the names of other tools until it searches for them.
        meta={"anthropic/alwaysLoad": True},
    )


def answered(answer: Answer, call_id: str, budget: OutputBudget) -> types.CallToolResult:
    """Return the answer to a call with a result, as text and as structured content."""
    meta: dict[str, Any] = {CALL_ID: call_id}
    if answer.told is None:
        return _result(answer.result, answer.text, is_error=answer.failed, meta=meta, budget=budget)
    # Only text: clients that prefer structured content would hide the note from the model (decision 18).
    text = shortened(answer.text, budget.less(answer.told), f"`whisper-tui show {call_id}` shows the call")
    content: list[types.ContentBlock] = [_text(answer.told), _text(text)]
    return types.CallToolResult(content=content, is_error=answer.failed, meta=meta | {NOTE_KEY: answer.told})


def still_open(record: CallRecord) -> types.CallToolResult:
    """Return the answer for a client that cannot wait longer: the state of the call, and its ticket."""
    result = pending(record)
    return _result(result, pending_text(result), is_error=False, meta={CALL_ID: record.id})


def plain(tool: AITool, result: Any, budget: OutputBudget) -> types.CallToolResult:
    """Return the answer of a tool that needs no approval."""
    return _result(result, tool.text(result), is_error=tool.is_error(result), meta=None, budget=budget)


def failed_by(tool: AITool, error: WhisperError, call_id: str | None = None) -> types.CallToolResult:
    """Return the answer to a call without a result, in the tool's own error format if it has one."""
    shaped = tool.error_result(error)
    if shaped is None:
        return failure_shown(error, call_id)
    meta = {CALL_ID: call_id} if call_id is not None else None
    return _result(shaped, tool.text(shaped), is_error=True, meta=meta)


def failure_shown(error: WhisperError, call_id: str | None = None) -> types.CallToolResult:
    """Return the answer to a call without a result."""
    # Some clients drop `isError`, so the text also says that it is an error.
    says_so = isinstance(error, ToolFailure) and not isinstance(error, ArgumentError)
    text = error.sentence() if says_so else f"Error: {error.sentence().rstrip('.')}. Nothing ran."
    meta = {CALL_ID: call_id} if call_id is not None else None
    return types.CallToolResult(content=[_text(text)], is_error=True, meta=meta)


def _result(
    result: Any, text: str, *, is_error: bool, meta: dict[str, Any] | None, budget: OutputBudget | None = None
) -> types.CallToolResult:
    """Return text, and the same facts as structured content if they are an object.

    Tools with much output shorten it themselves. If it is still too long, only text is sent.
    """
    structured = result if isinstance(result, dict) else None
    if budget is not None and budget.filled(text, *([] if structured is None else [as_json(structured)])) > 1.0:
        text, structured = shortened(text, budget, READ_PARTS), None
    return types.CallToolResult(content=[_text(text)], structured_content=structured, is_error=is_error, meta=meta)


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)
