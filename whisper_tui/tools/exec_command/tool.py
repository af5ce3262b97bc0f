"""`ExecCommand`: a shell command in the workspace that answers when it ends, or goes on as a task."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from whisper_tui.model.call import CallRequest
from whisper_tui.model.command import CommandSpec, Shell
from whisper_tui.model.ending import Denied, FailedToStart, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended, Running
from whisper_tui.tools.answer import Answer
from whisper_tui.tools.arguments import check_arguments
from whisper_tui.tools.exec_command.arguments import SCHEMA, ExecArguments
from whisper_tui.tools.exec_command.arrival import Arrival
from whisper_tui.tools.exec_command.envelope import Envelope, EnvelopedTool, failure, success
from whisper_tui.tools.exec_command.failure import ending_failure
from whisper_tui.tools.exec_command.preview import previews
from whisper_tui.tools.exec_command.rendering import render_result
from whisper_tui.tools.exec_command.task import EXEC_COMMAND, ending_sentence, task_command, task_handle, task_summary
from whisper_tui.tools.prompt_text import prompt_block
from whisper_tui.tools.room import fitted
from whisper_tui.tools.supervised_tool import SupervisedTool
from whisper_tui.tools.told import told

INSTRUCTIONS = 'Set duplicate_policy="start_new" to start another instance.'


class ExecCommandTool(EnvelopedTool, SupervisedTool):
    """Runs one shell command; what outlives the foreground window is the same process as a task."""

    @property
    def name(self) -> str:
        """The tool's identifier."""
        return EXEC_COMMAND

    @property
    def description(self) -> str:
        """What the tool does."""
        return (
            "Start a shell command inside the workspace. Valid startup input uses `cmd` plus optional `workdir`, "
            "`shell`, `login`, `tty`, `duplicate_policy`, `accepts_input`, `yield_time_ms`, and `max_output_tokens`; "
            "do not pass result or task metadata such as `status` or `task_handle`. `duplicate_policy` defaults to "
            "`reuse_running` and `yield_time_ms` defaults to 10_000 ms when omitted; set it only when intentionally "
            "changing the foreground wait window. Short commands return immediately; long non-interactive commands "
            "become command_task automatically."
        )

    @property
    def category(self) -> str:
        """The kind of tool."""
        return "System Execution"

    @property
    def tags(self) -> list[str]:
        """Words to find the tool by."""
        return ["command", "shell", "execute", "task", "background", "system"]

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return SCHEMA

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool to run a command line in the workspace, above all one that may take long: after "
            "`yield_time_ms` it goes on as a task, which TaskList, TaskStatus, TaskOutput, TaskInput and TaskStop are "
            "about. A human may look at the command before it runs, which can take minutes and does not count.",
            expected_output='An envelope with "tool_name", "status" (success or error) and "result" or "error". The '
            'result\'s "disposition" is "completed" (with "exit_status" and previews of both streams; a non-zero exit '
            'is a success of the tool), "promoted_to_task" (with a "task_handle") or "already_running".',
            examples=(
                ("run the tests", '`cmd="make test"`'),
                ("start a server and go on at once", '`cmd="npm run dev"`, `workdir="web"`, `yield_time_ms=0`'),
            ),
        )

    def render_result(self, result: dict[str, Any]) -> str:
        """The exact lines for a model."""
        return render_result(result)

    def request(self, arguments: object, *, key: str | None = None) -> CallRequest:
        """Check the arguments and where they lead. A call that is not a new instance joins the same command."""
        checked = check_arguments(self.name, SCHEMA, arguments)
        asked = ExecArguments.of(checked)
        directory = asked.directory(self._context.session.root)
        command = Shell(text=asked.cmd, shell=asked.shell or self._context.shell, login=asked.login)
        return CallRequest(
            session_id=self._context.session.id,
            tool=self.name,
            arguments=checked,
            spec=CommandSpec(command=command, cwd=directory, tty=asked.tty, accepts_input=asked.accepts_input),
            key=key or uuid.uuid4().hex,
            twin=asked.fingerprint(directory),
            join_twin=not asked.start_new,
        )

    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for the start, then for the foreground window, and answer with what there is."""
        supervision = self._context.supervision
        record = await supervision.record(call_id)
        if record.call.key != request.key and not isinstance(record.state, Ended):
            return self._answer(record, self._already_running(record))
        record = await supervision.started(call_id)
        if isinstance(record.state, Running):
            record = await self._window(record, ExecArguments.of(request.arguments).window_s)
        budget = ExecArguments.of(request.arguments).budget
        if isinstance(record.state, Ended):
            return self._answer(record, await self._ended(record, record.state, budget))
        return self._answer(record, await self._promoted(record, budget))

    async def execute(self, **kwargs: Any) -> Envelope:
        """Submit, wait, and return the envelope; failures are envelopes too."""
        try:
            request = self.request(kwargs)
            call_id = await self._context.supervision.submit(request)
            result: Envelope = (await self.follow(request, call_id)).result
        except WhisperError as error:
            return self.error_result(error)
        return result

    def _answer(self, record: CallRecord, envelope: Envelope) -> Answer:
        return Answer(envelope, self.text(envelope), told(record), failed=self.is_error(envelope))

    async def _window(self, record: CallRecord, window_s: float) -> CallRecord:
        """The record after the foreground window, which began with the process and may be over already."""
        begun = record.process.started_at if record.process else self._context.clock()
        left = min(max(begun + window_s - self._context.clock(), 0.0), window_s)
        outcome = asyncio.ensure_future(self._context.supervision.outcome(record.id))
        try:
            done, _ = await asyncio.wait({outcome}, timeout=left)
            return await outcome if done else await self._context.supervision.record(record.id)
        finally:
            outcome.cancel()

    async def _ended(self, record: CallRecord, state: Ended, budget: int) -> Envelope:
        ending = state.ending
        if isinstance(ending, Denied | Withdrawn | HandedOver | Lost | FailedToStart):
            return failure(self.name, ending_failure(ending))
        code = ending.code if ending.kind == "exited" else None

        async def made(limit: int | None) -> Envelope:
            parts = await previews(self._context.supervision, record, _least(budget, limit))
            result = {"disposition": "completed", "exit_status": code, **parts}
            return success(self.name, result, ending_sentence(ending))

        return await self._fitted(record, made)

    async def _promoted(self, record: CallRecord, budget: int) -> Envelope:
        look = Arrival(self._context.supervision, record, now=self._context.clock())

        async def made(limit: int | None) -> Envelope:
            arrived = await look.since(0, _least(budget, limit))
            preview = {"initial_output_preview": arrived.text} if arrived.text else {}
            result = {
                "disposition": "promoted_to_task",
                "task_handle": task_handle(record),
                **preview,
                "initial_output_truncated": arrived.cut,
            }
            return success(self.name, result, "command promoted to a managed task")

        return await self._fitted(record, made)

    async def _fitted(self, record: CallRecord, made: Callable[[int | None], Awaitable[Envelope]]) -> Envelope:
        room = self._context.room()
        envelope: Envelope = await fitted(room.less(told(record)) if room else None, made, self.text)
        return envelope

    def _already_running(self, record: CallRecord) -> Envelope:
        result = {
            "disposition": "already_running",
            "task_handle": task_handle(record),
            "command": task_command(record),
            "summary": task_summary(record),
            "instructions": INSTRUCTIONS,
        }
        return success(self.name, result, "the same command is waiting or running already")


def _least(budget: int, limit: int | None) -> int:
    return budget if limit is None else min(budget, limit)
