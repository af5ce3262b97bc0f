"""The cockpit for the benchmark: one call whose output is a file that grows."""

import os
import sys
import time

from tests.in_memory.supervisor import InMemorySupervisor
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.event import Decided
from whisper_tui.model.run import OutputChunk, Stream
from whisper_tui.tui.app import CockpitApp


class FileSupervisor(InMemorySupervisor):
    """A supervisor in memory; the standard output of its commands is a file."""

    def __init__(self, path: str) -> None:
        super().__init__(time.time)
        self._file = os.open(path, os.O_RDONLY)

    async def read_output(self, call_id: str, stream: Stream, offset: int, limit: int) -> OutputChunk:
        """As the supervisor reads its files."""
        if stream == "err":
            return await super().read_output(call_id, stream, offset, limit)
        size = os.fstat(self._file).st_size
        start = max(0, size + offset) if offset < 0 else min(offset, size)
        data = os.pread(self._file, min(limit, size - start), start)
        return OutputChunk(data=data, start=start, size=size, ended=False)


def main() -> None:
    """Argument: the file."""
    supervisor = FileSupervisor(sys.argv[1])
    session = supervisor.open("bench", "/tmp")
    spec = CommandSpec(command=Shell(text="make"), cwd="/tmp")
    call_id = supervisor.ask(CallRequest(session_id=session.id, tool="run", arguments={}, spec=spec))
    me = Decider(surface="cockpit", who="bench")
    supervisor.happen(Decided(at=supervisor.clock(), call_id=call_id, decision=Approve(), by=me))
    supervisor.start(call_id)
    CockpitApp(supervisor, user="bench").run()


main()
