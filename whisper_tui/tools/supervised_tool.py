"""Base classes of tools whose calls go through the approval queue, and of tools that run a command."""

import asyncio
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath
from secrets import token_hex
from typing import Any

from whisper_tui.model.api import Supervision
from whisper_tui.model.call import CallRequest, CommandSpec, Session
from whisper_tui.model.ending import Denied, Exited, FailedToStart, HandedOver, Lost, Signalled, TimedOut, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools.agent_text import OutputBudget, ToolFailure, agent_note, captured_texts, failure_of, fitted
from whisper_tui.tools.ai_tool import AITool, check_arguments

KNOWN_SHELLS = frozenset({"bash", "zsh", "sh"})


def unlimited() -> None:
    """Return no budget, so that answers contain all output."""


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
            spec=self.spec(checked),
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
            return self.result(record, ending, *await captured_texts(self._context.supervision, record, limit))

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
