"""A supervision that answers every call at once with a prepared record and prepared output."""

from collections.abc import Callable

from whisper_tui.model.call import CallRequest, CommandSpec, Session, ToolCall
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.ending import Ending, Exited, FailedToStart
from whisper_tui.model.run import BackgroundProcess, OutputChunk, OutputSizes, ProcessIdentity, RunProcess, Stream
from whisper_tui.model.state import CallRecord, Ended

HUMAN = Decider(surface="cockpit", who="human")


def identity(pid: int) -> ProcessIdentity:
    return ProcessIdentity(pid=pid, start_time=1, boot_id="boot")


def background(pid: int, *, alive: bool = True) -> BackgroundProcess:
    return BackgroundProcess(identity=identity(pid), pgid=pid, command="sleep 30", alive=alive)


class Recorded:
    """Only what command tools use of the port."""

    def __init__(self, *, out: bytes = b"", err: bytes = b"", finish: Callable[[CallRecord], CallRecord] | None = None):
        self.streams: dict[Stream, bytes] = {"out": out, "err": err}
        self.gaps: dict[Stream, tuple[int, int]] = {}
        self.requests: list[CallRequest] = []
        self._finish = finish or ended(Exited(code=0))

    async def submit(self, request: CallRequest) -> str:
        self.requests.append(request)
        return str(len(self.requests))

    async def outcome(self, call_id: str, *, aside_after: float | None = None) -> CallRecord:
        request = self.requests[int(call_id) - 1]
        call = ToolCall(
            id=call_id, submitted_at=1.0, **{name: getattr(request, name) for name in CallRequest.model_fields}
        )
        record = self._finish(CallRecord(call=call, state=Ended(at=2.0, ending=Exited(code=0))))
        assert isinstance(record.state, Ended)
        sizes = OutputSizes(out=len(self.streams["out"]), err=len(self.streams["err"]))
        return record.model_copy(update={"state": record.state.model_copy(update={"output": sizes})})

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        data = self.streams[stream]
        gap_start, gap_end = self.gaps.get(stream, (0, 0))
        if gap_start <= offset < gap_end:
            offset = gap_end
        end = min(offset + limit, gap_start) if offset < gap_start else offset + limit
        return OutputChunk(data=data[offset:end], start=offset, size=len(data), ended=True)

    async def output_file(self, call_id: str, stream: Stream) -> str | None:
        return None if stream in self.gaps else f"/runs/{call_id}/{stream}"


def ended(
    ending: Ending, *, edited: CommandSpec | None = None, by: Decider = HUMAN, left: tuple[BackgroundProcess, ...] = ()
) -> Callable[[CallRecord], CallRecord]:
    """Makes a record end like this."""
    ran = not isinstance(ending, FailedToStart) and ending.kind not in {"denied", "withdrawn"}
    process = RunProcess(leader=identity(4242), pgid=4242, keeper_pid=4241, started_at=1.5) if ran else None

    def finish(record: CallRecord) -> CallRecord:
        attempt = 1 if ran or isinstance(ending, FailedToStart) else None
        state = Ended(at=2.0, ending=ending, attempt=attempt, process=process, settled=not left)
        decision = Approve(edited=edited)
        return record.model_copy(update={"state": state, "decision": decision, "decided_by": by, "background": left})

    return finish


def session(root: str) -> Session:
    return Session(id="s1", name="agent", root=root, opened_at=1.0)
