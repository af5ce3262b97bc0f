"""The near end in a process of its own, to be killed: runs the commands of a plan at a place behind ssh.

`python near_end.py PLAN DIRECTORY PYTHON CONFIG HOST`: the plan as for `restartable`, the directory and the interpreter
of the place, and the configuration for ssh. Some connections are cut by `cutter` after some bytes.
"""

import asyncio
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.supervisor.engine.restartable import main
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.places.place_transports import SshTransport
from whisper_tui.supervisor.places.remote_executor import RemoteExecutor

CUT_SHARE = 0.4
LONGEST = 300_000


class CutTransport(SshTransport):
    """Ssh whose connections end after a random number of bytes, some of them."""

    def __init__(self, name: str, destination: str, config: str, cuts: Path) -> None:
        super().__init__(name, destination, ("-F", config))
        self._cuts = cuts

    def command(self, argv: Sequence[str]) -> list[str]:
        whole = super().command(argv)
        if random.random() > CUT_SHARE:
            return whole
        # Many cuts are within the first frames: the greeting, an order, an answer.
        after = int(random.choice((3_000, 20_000, LONGEST)) * random.random())
        cutter = Path(__file__).with_name("cutter.py")
        return [sys.executable, "-I", "-S", str(cutter), str(after), str(self._cuts), *whole]


class WaitingExecutor(RemoteExecutor):
    """Starts nothing while the place is away, as the pool does."""

    async def start(self, order) -> None:  # type: ignore[no-untyped-def]
        while self.problem is not None:
            await asyncio.sleep(0.02)
        await super().start(order)


def executor_of(plan: Path, there: str, python: str, config: str, host: str) -> RemoteExecutor:
    settings = PlaceSettings("gpu1", "ssh", directory=there, python=python, connect="start")
    return WaitingExecutor(settings, lambda *_: CutTransport("gpu1", host, config, plan / "cuts"), plan / "runs")


if __name__ == "__main__":
    plan = Path(sys.argv[1])
    os.environ.pop("WHISPER_TUI_STATE", None)
    asyncio.run(main(plan, executor_of(plan, *sys.argv[2:6])))
