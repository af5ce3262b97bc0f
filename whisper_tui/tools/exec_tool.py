"""`ExecCommand`: a shell command in the workspace. It is answered at its end, or becomes a background task."""

import asyncio
import json
import os
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Self

from whisper_tui.model.call import CallRequest, CommandSpec, Shell, digest
from whisper_tui.model.ending import Denied, FailedToStart, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended, Running
from whisper_tui.present.ending_text import ending_for_agent
from whisper_tui.tools.agent_text import agent_note, fitted
from whisper_tui.tools.ai_tool import ArgumentError, check_arguments, prompt_block
from whisper_tui.tools.exec_envelope import (
    Envelope,
    EnvelopedTool,
    ExecFailure,
    ending_failure,
    failure,
    success,
)
from whisper_tui.tools.supervised_tool import Answer, SupervisedTool
from whisper_tui.tools.task import (
    EXEC_COMMAND,
    TaskOutputReader,
    previews,
    task_command,
    task_handle,
    task_summary,
)

DEFAULT_WINDOW_MS = 10_000
DEFAULT_TOKENS = 8_000
MOST_TOKENS = 64_000
MOST_MS = 2**64 - 1

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "cmd": {"type": "string", "description": "The command line, read by a shell."},
        "workdir": {
            "type": ["string", "null"],
            "description": "Where to run it: a path inside the workspace. Defaults to the workspace itself.",
        },
        "shell": {
            "type": ["string", "null"],
            "description": "The shell that reads it. Defaults to the user's own bash, zsh or sh.",
        },
        "login": {
            "type": ["boolean", "null"],
            "description": "Whether the shell reads the user's login files first. Defaults to true.",
        },
        "tty": {
            "type": ["boolean", "null"],
            "description": "Whether the command gets a terminal. Defaults to false.",
        },
        "duplicate_policy": {
            "type": "string",
            "enum": ["reuse_running", "start_new"],
            "description": "What to do when the same command is waiting or running already: be told about that one, "
            "or start another instance.",
            "default": "reuse_running",
        },
        "accepts_input": {
            "type": ["boolean", "null"],
            "description": "Whether standard input stays open for TaskInput. Defaults to the value of `tty`.",
        },
        "yield_time_ms": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "Milliseconds to wait for the end of the command, counted from the start of its process. "
            f"Then it continues as a background task. Defaults to {DEFAULT_WINDOW_MS}.",
        },
        "max_output_tokens": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MOST_TOKENS,
            "description": "How much output to show, in tokens of four characters. What is longer is cut in the "
            f"middle, and the whole stream is named as a file. Defaults to {DEFAULT_TOKENS}.",
        },
    },
    "required": ["cmd"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class ExecArguments:
    """The arguments with their defaults."""

    cmd: str
    workdir: str | None
    shell: str | None
    login: bool
    tty: bool
    start_new: bool
    accepts_input: bool
    window_s: float
    """Seconds after the start of the process for which its end is awaited."""
    budget: int
    """How many characters of output are shown."""

    @classmethod
    def of(cls, checked: Mapping[str, Any]) -> Self:
        """Read arguments that match the schema. Raises `ArgumentError` for a window above 64 bits."""
        # The schema names no maximum, because clients in JavaScript cannot represent 2**64 - 1.
        window, tokens = checked.get("yield_time_ms"), checked.get("max_output_tokens")
        if window is not None and window > MOST_MS:
            raise ArgumentError(f"The argument 'yield_time_ms' must be at most {MOST_MS}; a larger integer was given")
        tty = _or(checked.get("tty"), False)
        return cls(
            cmd=checked["cmd"],
            workdir=checked.get("workdir"),
            shell=checked.get("shell"),
            login=_or(checked.get("login"), True),
            tty=tty,
            start_new=checked.get("duplicate_policy") == "start_new",
            accepts_input=_or(checked.get("accepts_input"), tty),
            window_s=(DEFAULT_WINDOW_MS if window is None else window) / 1000,
            # Models count about four characters to a token of English or code.
            budget=4 * (DEFAULT_TOKENS if tokens is None else tokens),
        )

    def directory(self, root: str) -> str:
        """Return the resolved working directory. Raises `ExecFailure` if it is missing or outside the workspace."""
        # Both paths are resolved, because the workspace may also be reached through a link.
        path = os.path.realpath(PurePath(root) / (self.workdir or ""))
        workspace = os.path.realpath(root)
        if path != workspace and not path.startswith(workspace.rstrip("/") + "/"):
            raise ExecFailure(
                "execution_root_violation",
                f"the working directory {path} is outside the workspace {workspace}",
                details={"workdir": self.workdir, "execution_root": workspace},
                hint="use a workdir inside the workspace, or leave it out",
            )
        if not os.path.isdir(path):  # noqa: PTH112
            raise ExecFailure(
                "workdir_not_found",
                f"the working directory {path} does not exist",
                details={"workdir": self.workdir},
                hint="create the directory first, or use a workdir that exists",
            )
        return path

    def fingerprint(self, directory: str, place: str = "") -> str:
        """Return the deduplication key of equal calls. It does not include how long to wait and how much to show."""
        same = [self.cmd, directory, self.shell, self.login, self.tty, *filter(None, (place,))]
        return digest(json.dumps(same))


def _or(given: bool | None, default: bool) -> bool:
    return default if given is None else given


INSTRUCTIONS = 'Set duplicate_policy="start_new" to start another instance.'


class ExecCommandTool(EnvelopedTool, SupervisedTool):
    """Runs one shell command. A process that outlives the foreground window becomes a task."""

    title = "Run a shell command or start a task"
    name = EXEC_COMMAND
    description = (
        "Start a shell command inside the workspace. Valid startup input uses `cmd` plus optional `workdir`, "
        "`shell`, `login`, `tty`, `duplicate_policy`, `accepts_input`, `yield_time_ms`, and `max_output_tokens`; "
        "do not pass result or task metadata such as `status` or `task_handle`. `duplicate_policy` defaults to "
        "`reuse_running` and `yield_time_ms` defaults to 10_000 ms when omitted; set it only when intentionally "
        "changing the foreground wait window. Short commands return immediately; long non-interactive commands "
        "become command_task automatically."
    )
    category = "System Execution"
    tags: list[str] = ["command", "shell", "execute", "task", "background", "system"]  # noqa: RUF012
    parameters_schema: dict[str, Any] = SCHEMA

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool to run a command line in the workspace, especially a long one: after "
            "`yield_time_ms` it continues as a task, for TaskList, TaskStatus, TaskOutput, TaskInput and TaskStop. "
            "A human may look at the command before it runs, which can take minutes and does not count.",
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
        match result["disposition"]:
            case "completed":
                return _completed(result)
            case "promoted_to_task":
                return _promoted(result)
            case _:
                return _already_running(result)

    def request(self, arguments: object, *, key: str | None = None) -> CallRequest:
        """Check the arguments and the directory. Unless a new instance is wanted, the call joins an equal open one."""
        checked = check_arguments(self.name, SCHEMA, arguments)
        asked = ExecArguments.of(checked)
        directory = asked.directory(self._context.session.root)
        command = Shell(text=asked.cmd, shell=asked.shell or self._context.shell, login=asked.login)
        spec = CommandSpec(command=command, cwd=directory, tty=asked.tty, accepts_input=asked.accepts_input)
        spec = self._context.at_place(spec)
        return CallRequest(
            session_id=self._context.session.id,
            tool=self.name,
            arguments=checked,
            spec=spec,
            # With the key `follow` knows whether the record is this call or an older one that it joined.
            key=key or uuid.uuid4().hex,
            dedup_key=asked.fingerprint(directory, spec.place),
            join_open=not asked.start_new,
        )

    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for the start, then for the foreground window, and answer with the end or a task."""
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
        """Submit, wait, and return the envelope. Failures are envelopes too."""
        try:
            request = self.request(kwargs)
            call_id = await self._context.supervision.submit(request)
            result: Envelope = (await self.follow(request, call_id)).result
        except WhisperError as error:
            return self.error_result(error)
        return result

    def _answer(self, record: CallRecord, envelope: Envelope) -> Answer:
        return Answer(envelope, self.text(envelope), agent_note(record), failed=self.is_error(envelope))

    async def _window(self, record: CallRecord, window_s: float) -> CallRecord:
        """Return the record after the foreground window. It began with the process and may already be over."""
        begun = record.process.started_at if record.process else self._context.clock()
        # Both limits are needed, because the wall clock may have been changed since the process started.
        left = min(max(begun + window_s - self._context.clock(), 0.0), window_s)
        outcome = asyncio.ensure_future(self._context.supervision.outcome(record.id))
        try:
            done, _ = await asyncio.wait({outcome}, timeout=left)
            return await outcome if done else await self._context.supervision.record(record.id)
        finally:
            # Cancels only this wait. The command continues.
            outcome.cancel()

    async def _ended(self, record: CallRecord, state: Ended, budget: int) -> Envelope:
        ending = state.ending
        if isinstance(ending, Denied | Withdrawn | HandedOver | Lost | FailedToStart):
            return failure(self.name, ending_failure(ending))
        code = ending.code if ending.kind == "exited" else None

        async def made(limit: int | None) -> Envelope:
            parts = await previews(self._context.supervision, record, _least(budget, limit))
            result = {"disposition": "completed", "exit_status": code, **parts}
            return success(self.name, result, ending_for_agent(ending))

        return await self._fitted(record, made)

    async def _promoted(self, record: CallRecord, budget: int) -> Envelope:
        look = TaskOutputReader(self._context.supervision, record, now=self._context.clock())

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
        room = self._context.output_budget()
        envelope: Envelope = await fitted(room.less(agent_note(record)) if room else None, made, self.text)
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


def _completed(result: dict[str, Any]) -> str:
    code = result["exit_status"]
    lines = ["Process exited" if code is None else f"Process exited with code {code}"]
    for name in ("stdout", "stderr"):
        if (text := result[f"{name}_preview"]) and text.strip():
            lines += ["", f"{name}:", text]
    if result.get("artifacts"):
        lines += ["", "Artifacts:", *(artifact["path"] for artifact in result["artifacts"])]
    return "\n".join(lines)


def _promoted(result: dict[str, Any]) -> str:
    text = result.get("initial_output_preview") or ""
    return "\n".join(
        (
            "Command promoted to background task",
            f"Task: {result['task_handle']['task_id']}",
            "",
            "Initial output:",
            text if text.strip() else "(none captured before promotion)",
        )
    )


def _already_running(result: dict[str, Any]) -> str:
    handle, command = result["task_handle"], result["command"]
    lines = [
        "Command is already running",
        f"Task: {handle['task_id']}",
        f"Status: {handle['status'].capitalize()}",
        f"Task summary: {result['summary']}",
    ]
    if command["cmd"].strip():
        lines.append(f"Command: {command['cmd']}")
    lines.append(f"workdir={command['workdir']}")
    if command["shell"] is not None:
        lines.append(f"shell={command['shell']}")
    return "\n".join((*lines, "", result["instructions"]))
