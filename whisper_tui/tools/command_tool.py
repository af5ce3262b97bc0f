"""A tool whose calls are commands: it asks the supervisor, waits, and renders what became of them."""

from abc import abstractmethod
from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from whisper_tui.model.call import CallRequest
from whisper_tui.model.command import CommandSpec
from whisper_tui.model.ending import Denied, Exited, FailedToStart, HandedOver, Lost, Signalled, TimedOut, Withdrawn
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools.answer import Answer
from whisper_tui.tools.arguments import check_arguments
from whisper_tui.tools.failure import ToolFailure, failure_of
from whisper_tui.tools.output_text import captured_texts
from whisper_tui.tools.room import fitted
from whisper_tui.tools.supervised_tool import SupervisedTool
from whisper_tui.tools.told import told

Ran = Exited | Signalled | TimedOut | FailedToStart
"""The endings that have a result."""


class CommandTool(SupervisedTool):
    """One face of a run: arguments to a command on the way in, the record to a result on the way out."""

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
        """What the agent is given. Raises `ToolFailure` where nothing ran or the end is not known."""
        if not isinstance(record.state, Ended):
            raise ToolFailure(f"call {record.id} has not ended yet")
        ending = record.state.ending
        if isinstance(ending, Denied | Withdrawn | HandedOver | Lost):
            raise failure_of(ending)
        said, room, most = told(record), self._context.room(), self._context.inline
        if most is not None and record.state.output.out + record.state.output.err > most:
            return self._without_output(record, ending, said)

        async def made(limit: int | None) -> dict[str, Any]:
            return self.result(record, ending, *await captured_texts(self._context.supervision, record, limit))

        result = await fitted(room.less(said) if room else None, made, self.text)
        return Answer(result=result, text=self.text(result), told=said)

    def _without_output(self, record: CallRecord, ending: Ran, said: str | None) -> Answer:
        """An answer that costs the same however much was printed."""
        marks: dict[Stream, str] = {"out": f"<stdout {token_hex(16)}>", "err": f"<stderr {token_hex(16)}>"}
        result = self.result(record, ending, marks["out"], marks["err"])
        left_out = {mark: stream for stream, mark in marks.items()}
        return Answer(result=result, text=self.text(result), told=said, left_out=left_out)

    async def follow(self, request: CallRequest, call_id: str) -> Answer:
        """Wait for the ending, for as long as a human takes, and answer."""
        return await self.answer(await self._context.supervision.outcome(call_id))
