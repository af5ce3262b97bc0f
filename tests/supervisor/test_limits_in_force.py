"""Which limits were in force is part of the record of a run."""

from pathlib import Path

from tests.supervisor.conftest import Bench
from tests.supervisor.hand_executor import HandExecutor
from whisper_tui.model.call_rows import call_details
from whisper_tui.model.ending import Signalled
from whisper_tui.model.run import Limits
from whisper_tui.supervisor.supervisor import Supervisor


class LimitedBench(Bench):
    async def open_limited(self, limits: Limits) -> None:
        self.executor = HandExecutor()
        self.supervisor = Supervisor(self.home, self.executor, limits=limits)
        await self.supervisor.open()


async def test_the_limits_go_with_the_order_and_stay_in_the_journal(tmp_path: Path) -> None:
    bench = LimitedBench(tmp_path)
    await bench.open_limited(Limits(cpu_s=9, processes=5))
    call_id = await bench.submit(await bench.session(), "make")
    assert call_details(await bench.record(call_id), None)["limits"] == {}
    await bench.approve(call_id)
    key = await bench.ordered(call_id)
    assert bench.executor.orders[key].limits == Limits(cpu_s=9, processes=5)
    bench.executor.finish(key, Signalled(number=24, by_us=False, limit="cpu"))
    await bench.state(call_id, "ended")
    await bench.restart()
    row = call_details(await bench.record(call_id), None)
    assert row["limits"] == {"cpu_s": 9, "processes": 5}
    assert row["reason"] == "its CPU time limit of 9 s was reached"
    await bench.supervisor.close()
