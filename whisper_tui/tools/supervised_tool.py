"""Tools whose calls go through the approval queue: base classes, and a wrapper that puts any other tool behind it."""

import asyncio
import os
import time
import uuid
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import PurePath
from secrets import token_hex
from typing import Any

from whisper_tui.model.api import LONGEST_REASON, Supervision
from whisper_tui.model.call import CallRequest, CommandSpec, Function, Session
from whisper_tui.model.ending import Denied, Exited, FailedToStart, HandedOver, Lost, Signalled, TimedOut, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools.agent_text import OutputBudget, ToolFailure, agent_note, captured_texts, failure_of, fitted
from whisper_tui.tools.ai_tool import AITool, check_arguments, run_tool

KNOWN_SHELLS = frozenset({"bash", "zsh", "sh"})


def unlimited() -> None:
    """Return no budget, so that answers contain all output."""


def unsaid() -> str:
    """Return no place."""
    return ""


@dataclass(frozen=True)
class ToolContext:
    """Shared by the tools of one session."""

    supervision: Supervision
    session: Session
    output_budget: Callable[[], OutputBudget | None] = unlimited
    """Returns the size of answers that the client shows completely. None: answers are never shortened."""
    inline: int | None = None
    """Bytes of output in a result. A larger output is replaced by marks, and the client reads it itself.
    None: there is no limit."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch, on the supervisor's clock."""
    shell: str = field(default_factory=lambda: shell_of(os.environ))
    """The default shell of calls."""
    place: Callable[[], str] = unsaid
    """Returns the place where the current call runs, `here` for this machine. Empty: the call does not say."""

    def at_place(self, spec: CommandSpec) -> CommandSpec:
        """Return a command at the place of the current call, unless its arguments name one."""
        place = self.place()
        return spec if spec.place or not place else spec.model_copy(update={"place": place})

    async def ended_within(self, record: CallRecord, seconds: float | None) -> CallRecord:
        """Return a call at its ending, after so many seconds, or when a human sets it aside."""
        known = record.aside.since if record.aside is not None else 0.0
        outcome = asyncio.ensure_future(self.supervision.outcome(record.id, aside_after=known))
        try:
            done, _ = await asyncio.wait({outcome}, timeout=seconds)
            return await outcome if done else await self.supervision.record(record.id)
        finally:
            # Cancels only this wait. The call continues.
            outcome.cancel()


def shell_of(environment: Mapping[str, str]) -> str:
    """Return the user's own shell if it is bash, zsh or sh, and `sh` otherwise."""
    # Models write POSIX syntax, which fish and nushell do not understand.
    name = PurePath(environment.get("SHELL", "")).name
    return name if name in KNOWN_SHELLS else "sh"


@dataclass(frozen=True)
class Answer:
    """The result of a call, as data and as text."""

    result: Any
    """The result in the tool's documented format."""
    text: str
    """The same facts as text for a model."""
    told: str | None
    """The note for the agent beside the result; see `agent_note`."""
    failed: bool = False
    """True if the result is a failure."""
    left_out: dict[str, Stream] = field(default_factory=dict)
    """Marks in the result. Each replaces a whole stream that the client reads itself."""

    @property
    def for_model(self) -> str:
        """Return the note and the result as one text for a model."""
        return self.text if self.told is None else f"{self.told}\n{self.text}"


class SupervisedTool(AITool):
    """Base class of a tool that submits its calls to the supervisor before it acts."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    async def is_asked(self, arguments: object) -> bool:
        """True if a call with these arguments goes to the supervisor. Raises `ArgumentError`."""
        return True

    @abstractmethod
    def request(self, arguments: object, *, key: str | None = None) -> CallRequest:
        """Check the arguments and return a request with them. Raises `WhisperError`. Submits nothing."""

    async def call(self, arguments: object) -> Answer:
        """Submit the call and wait for it. If cancelled, withdraw it. Raises `WhisperError` if there is no result."""
        request = self.request(arguments)
        call_id = await self._context.supervision.submit(request)
        try:
            return await self.follow(request, call_id)
        except asyncio.CancelledError:
            # Even if the call has already ended, or the supervisor is gone, the cancellation must proceed.
            with suppress(WhisperError):
                await self._context.supervision.withdraw(call_id, "the caller gave up")
            raise

    @abstractmethod
    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for a submitted call, and return the answer. Raises `WhisperError` if there is no result."""

    async def execute(self, **kwargs: Any) -> Any:
        """Submit, wait as long as a human needs, and return the result."""
        return (await self.call(kwargs)).result


Ran = Exited | Signalled | TimedOut | FailedToStart
"""The endings that have a result."""


class CommandTool(SupervisedTool):
    """Base class of a tool that runs a command: it turns arguments into a command, and a record into a result."""

    @abstractmethod
    def spec(self, arguments: Mapping[str, Any]) -> CommandSpec:
        """Return the command for checked arguments. Raises `WhisperError` if it is impossible."""

    @abstractmethod
    def result(self, record: CallRecord, ending: Ran, stdout: str, stderr: str) -> dict[str, Any]:
        """Return the result in the tool's own format."""

    def request(self, arguments: object, *, key: str | None = None) -> CallRequest:
        """Check the arguments and return a request with them. Raises `ArgumentError`. Submits nothing."""
        checked = check_arguments(self.name, self.parameters_schema, arguments)
        return CallRequest(
            session_id=self._context.session.id,
            tool=self.name,
            arguments=checked,
            spec=self._context.at_place(self.spec(checked)),
            description=checked.get("description", ""),
            key=key,
        )

    async def answer(self, record: CallRecord) -> Answer:
        """Return the result for the agent. Raises `ToolFailure` if nothing ran or the end is unknown."""
        if not isinstance(record.state, Ended):
            raise ToolFailure(f"call {record.id} has not ended yet")
        ending = record.state.ending
        if isinstance(ending, Denied | Withdrawn | HandedOver | Lost):
            raise failure_of(ending)
        said, room, most = agent_note(record), self._context.output_budget(), self._context.inline
        if most is not None and record.state.output.out + record.state.output.err > most:
            return self._without_output(record, ending, said)

        async def made(limit: int | None) -> dict[str, Any]:
            return self.result(
                record, ending, *await captured_texts(self._context.supervision, record, limit, frames=False)
            )

        result = await fitted(room.less(said) if room else None, made, self.text)
        return Answer(result=result, text=self.text(result), told=said)

    def _without_output(self, record: CallRecord, ending: Ran, said: str | None) -> Answer:
        """Return an answer with a mark instead of each stream."""
        # Random, so that no other field of the result can contain the same text.
        marks: dict[Stream, str] = {"out": f"<stdout {token_hex(16)}>", "err": f"<stderr {token_hex(16)}>"}
        result = self.result(record, ending, marks["out"], marks["err"])
        left_out = {mark: stream for stream, mark in marks.items()}
        return Answer(result=result, text=self.text(result), told=said, left_out=left_out)

    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for the ending as long as a human needs, and return the answer."""
        return await self.answer(await self._context.supervision.outcome(call_id))


class AskedTool(SupervisedTool):
    """Looks to a model like the tool that it wraps."""

    def __init__(self, context: ToolContext, tool: AITool) -> None:
        super().__init__(context)
        self._tool = tool

    @property
    def name(self) -> str:
        """The tool's identifier."""
        return self._tool.name

    @property
    def description(self) -> str:
        """The description for the model."""
        return self._tool.description

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self._tool.parameters_schema

    @property
    def category(self) -> str | None:
        """The kind of tool."""
        return self._tool.category

    @property
    def tags(self) -> list[str]:
        """Keywords for finding the tool."""
        return self._tool.tags

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return self._tool.get_ai_prompt_instructions()

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        """The tool's declaration for chat completion APIs."""
        return self._tool.get_openrouter_tool_definition()

    def text(self, result: Any) -> str:
        """Return a result as text for a model."""
        return self._tool.text(result)

    def is_error(self, result: Any) -> bool:
        """True if a result is a failure."""
        return self._tool.is_error(result)

    def error_result(self, error: WhisperError) -> Any | None:
        """Return a failure in the tool's own result format."""
        return self._tool.error_result(error)

    @property
    def read_only(self) -> bool:
        """True if no call of it changes anything."""
        return self._tool.read_only

    @property
    def title(self) -> str | None:
        """The title of the tool."""
        return self._tool.title

    async def is_asked(self, arguments: object) -> bool:
        """True if this call goes through the queue. Raises `ArgumentError`."""
        return await self._tool.needs_approval(check_arguments(self.name, self.parameters_schema, arguments))

    def request(self, arguments: object, *, key: str | None = None) -> CallRequest:
        """Check the arguments and return a request that shows them unchanged."""
        checked = check_arguments(self.name, self.parameters_schema, arguments)
        spec = CommandSpec(command=Function(tool=self.name, arguments=checked), cwd=self._context.session.root)
        return CallRequest(
            session_id=self._context.session.id,
            tool=self.name,
            arguments=checked,
            # Refused with a place: what an agent carries out itself runs on this machine.
            spec=self._context.at_place(spec),
            description=self._tool.approval_description(checked),
            # With a key, a repeated submission after a lost connection is the same call.
            key=key or uuid.uuid4().hex,
        )

    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for the decision, run the tool, and report its end to the supervisor."""
        async with _carried_out(self._context.supervision, call_id) as record:
            function = record.function
            # The human may have edited the arguments, so they are checked again.
            asked = function.arguments if isinstance(function, Function) else request.arguments
            result = await run_tool(self._tool, check_arguments(self.name, self.parameters_schema, asked))
        return Answer(result, self.text(result), agent_note(record), failed=self.is_error(result))

    async def execute(self, **kwargs: Any) -> Any:
        """Ask for approval if the tool needs it, and return the wrapped tool's result."""
        try:
            if not await self.is_asked(kwargs):
                return await run_tool(self._tool, kwargs)
            return await super().execute(**kwargs)
        except WhisperError as error:
            shaped = self.error_result(error)
            if shaped is None:
                raise
            return shaped


class ApprovedArguments(dict[str, Any]):
    """The arguments of an approved call, as the human left them."""

    told: str | None
    """The note for the agent: a human has changed the arguments, or nobody was asked. None: there is nothing to say."""

    def __init__(self, arguments: Mapping[str, Any], told: str | None) -> None:
        super().__init__(arguments)
        self.told = told


@asynccontextmanager
async def approved_call(
    context: ToolContext, tool: str, arguments: Mapping[str, Any], description: str = "", hosts: Iterable[str] = ()
) -> AsyncIterator[ApprovedArguments]:
    """Submit a call of any tool, wait until it may be carried out, and record the end of the block as its end.

    If cancelled while it waits, it is withdrawn. Raises `ToolFailure` if it may not be carried out.
    """
    supervision, session, targets = context.supervision, context.session, tuple(hosts)
    command = Function(tool=tool, arguments=dict(arguments), about="web" if targets else "", targets=targets)
    request = CallRequest(
        session_id=session.id,
        tool=tool,
        arguments=command.arguments,
        spec=CommandSpec(command=command, cwd=session.root),
        description=description,
        key=uuid.uuid4().hex,
    )
    call_id = await supervision.submit(request)
    try:
        async with _carried_out(supervision, call_id) as record:
            function = record.function
            changed = function.arguments if isinstance(function, Function) else command.arguments
            yield ApprovedArguments(changed, agent_note(record))
    except asyncio.CancelledError:
        # Even if the call has already ended, or the supervisor is gone, the cancellation must proceed.
        with suppress(WhisperError):
            await supervision.withdraw(call_id, "the caller gave up")
        raise


@asynccontextmanager
async def _carried_out(supervision: Supervision, call_id: str) -> AsyncIterator[CallRecord]:
    """Wait until a call may be carried out, and report its end to the supervisor when the block ends."""
    record = await supervision.begin_function(call_id)
    if isinstance(record.state, Ended):
        raise failure_without_result(record, record.state)
    # This covers what is no exception of a tool, including a cancellation.
    problem: str | None = "it did not return"
    try:
        yield record
        problem = None
    except WhisperError as error:
        problem = error.sentence()[:LONGEST_REASON]
        raise
    except Exception as error:
        # Only its type: the text of an exception may hold secrets.
        problem = f"it raised {type(error).__name__}"
        raise
    finally:
        await supervision.end_function(call_id, problem)


def failure_without_result(record: CallRecord, state: Ended) -> WhisperError:
    """Return the failure of a call that has ended before its tool could be carried out."""
    if isinstance(state.ending, Denied | Withdrawn | HandedOver | Lost):
        return failure_of(state.ending)
    # The journal records that a function ran, but not its result.
    return ToolFailure(f"Call {record.id} ran before, and its result was not kept.", cause="lost")
