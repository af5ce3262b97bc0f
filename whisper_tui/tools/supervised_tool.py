"""Base classes of tools whose calls go through the approval queue, and of those that run a command."""

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
from whisper_tui.tools.agent_notes import ToolFailure, agent_note, failure_of
from whisper_tui.tools.ai_tool import AITool
from whisper_tui.tools.arguments import check_arguments
from whisper_tui.tools.output_text import OutputBudget, captured_texts, fitted

KNOWN_SHELLS = frozenset({"bash", "zsh", "sh"})


def whole() -> None:
    """Return no budget: answers hold all output."""


@dataclass(frozen=True)
class ToolContext:
    """Shared by the tools of one session."""

    supervision: Supervision
    session: Session
    room: Callable[[], OutputBudget | None] = whole
    """Returns the size of answers that the client shows whole. None: answers are never cut."""
    inline: int | None = None
    """Bytes of output that a result may hold. A result with more holds marks, and the client reads the output itself.
    None: any number."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch, as the supervisor counts them."""
    shell: str = field(default_factory=lambda: shell_of(os.environ))
    """The shell for calls that name none."""


def shell_of(environment: Mapping[str, str]) -> str:
    """Return the user's own shell if it is bash, zsh or sh, and `sh` otherwise."""
    # Models write POSIX syntax, which fish and nushell do not read.
    name = PurePath(environment.get("SHELL", "")).name
    return name if name in KNOWN_SHELLS else "sh"


@dataclass(frozen=True)
class Answer:
    """The result of a call, as data and as text."""

    result: Any
    """The result in the exact shape that the tool documents."""
    text: str
    """The same facts for a model that reads text."""
    told: str | None
    """The note for the agent beside the result; see `agent_note`."""
    failed: bool = False
    """True if the result is a failure."""
    left_out: dict[str, Stream] = field(default_factory=dict)
    """Marks in the result, each in place of a whole stream that the client reads itself."""

    @property
    def for_model(self) -> str:
        """The note and then the result, as one text for a model."""
        return self.text if self.told is None else f"{self.told}\n{self.text}"


class SupervisedTool(AITool):
    """Base class of a tool that submits its call to the supervisor before it does anything."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    async def is_asked(self, arguments: object) -> bool:
        """True if a call with these arguments goes to the supervisor. Raises `ArgumentError`."""
        return True

    @abstractmethod
    def request(self, arguments: object, *, key: str | None = None) -> CallRequest:
        """Check the arguments and make a request of them. Raises `WhisperError`; nothing is submitted."""

    async def call(self, arguments: object) -> Answer:
        """Submit the call and follow it; withdraw it if cancelled. Raises `WhisperError` if there is no result."""
        request = self.request(arguments)
        call_id = await self._context.supervision.submit(request)
        try:
            return await self.follow(request, call_id)
        except asyncio.CancelledError:
            # The call may have ended already, or the supervisor may be gone; the cancellation goes on either way.
            with suppress(WhisperError):
                await self._context.supervision.withdraw(call_id, "the caller gave up")
            raise

    @abstractmethod
    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for the outcome of a submitted call, and answer. Raises `WhisperError` if there is no result."""

    async def execute(self, **kwargs: Any) -> Any:
        """Submit, wait for as long as a human takes, and return the result."""
        return (await self.call(kwargs)).result


Ran = Exited | Signalled | TimedOut | FailedToStart
"""The endings that have a result."""


class CommandTool(SupervisedTool):
    """Base class of a tool that runs a command: turns arguments into a command, and its record into a result."""

    @abstractmethod
    def spec(self, arguments: Mapping[str, Any]) -> CommandSpec:
        """The command that checked arguments mean. Raises `WhisperError` if there can be none."""

    @abstractmethod
    def result(self, record: CallRecord, ending: Ran, stdout: str, stderr: str) -> dict[str, Any]:
        """The result in the tool's own shape."""

    def request(self, arguments: object, *, key: str | None = None) -> CallRequest:
        """Check the arguments and make a request of them. Raises `ArgumentError`; nothing is submitted."""
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
        """Return the result for the agent. Raises `ToolFailure` where nothing ran or the end is not known."""
        if not isinstance(record.state, Ended):
            raise ToolFailure(f"call {record.id} has not ended yet")
        ending = record.state.ending
        if isinstance(ending, Denied | Withdrawn | HandedOver | Lost):
            raise failure_of(ending)
        said, room, most = agent_note(record), self._context.room(), self._context.inline
        if most is not None and record.state.output.out + record.state.output.err > most:
            return self._without_output(record, ending, said)

        async def made(limit: int | None) -> dict[str, Any]:
            return self.result(record, ending, *await captured_texts(self._context.supervision, record, limit))

        result = await fitted(room.less(said) if room else None, made, self.text)
        return Answer(result=result, text=self.text(result), told=said)

    def _without_output(self, record: CallRecord, ending: Ran, said: str | None) -> Answer:
        """Return an answer with a mark in place of each stream."""
        # Random, so that no other field of the result can hold the same text.
        marks: dict[Stream, str] = {"out": f"<stdout {token_hex(16)}>", "err": f"<stderr {token_hex(16)}>"}
        result = self.result(record, ending, marks["out"], marks["err"])
        left_out = {mark: stream for stream, mark in marks.items()}
        return Answer(result=result, text=self.text(result), told=said, left_out=left_out)

    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for the ending, for as long as a human takes, and answer."""
        return await self.answer(await self._context.supervision.outcome(call_id))
