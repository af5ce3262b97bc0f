"""What is read from the processes of a run, and what a person is told and can do about them."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.interpreter import PYTHON
from tests.tui.cockpit import open_cockpit
from tests.tui.live import HUMAN, live
from tests.tui.scenes import Scenario, workday
from tests.tui.test_output_pane import running
from whisper_tui.model.event import Paused, SessionClosed
from whisper_tui.model.run import ProcessIdentity, UsageSample
from whisper_tui.model.state import Ended, Running, Waiting
from whisper_tui.supervisor.runs.live_runs import living_process, sample_left_behind, sample_run
from whisper_tui.system.processes import boot_id
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.commands.run_commands import is_paused
from whisper_tui.tui.output.output_bars import UsageLine, cpu_percent, figures, sparkline

LISTEN = (
    "import socket, sys, time\n"
    "server = socket.create_server(('127.0.0.1', 0))\n"
    "print(server.getsockname()[1], flush=True)\n"
    "time.sleep(1000)\n"
)


def sample(at: float, **change: object) -> UsageSample:
    facts: dict[str, object] = {
        "at": at, "cpu_s": {1: 1.0}, "memory": 2_000_000, "threads": 3, "ports": (), "paused": False, "waits": None
    }  # fmt: skip
    return UsageSample(**(facts | change))  # type: ignore[arg-type]


def text(line: object) -> str:
    return "".join(span.text for span in line)  # type: ignore[attr-defined]


def test_a_sparkline_rises_with_its_values_and_shows_the_last_ones() -> None:
    assert sparkline([0, 50, 100], 3, most=100) == "▁▅█"
    assert sparkline([0, 0], 5) == "▁▁"
    assert sparkline([9, 1, 8], 2) == "▂█"
    assert sparkline([], 5) == ""


def test_processor_time_is_measured_between_samples() -> None:
    before = sample(10, cpu_s={1: 1.0, 2: 5.0})
    assert cpu_percent(before, sample(12, cpu_s={1: 2.0, 2: 5.0})) == 50
    assert cpu_percent(before, sample(12, cpu_s={1: 1.0, 3: 1.0})) == 50
    assert cpu_percent(before, sample(12, cpu_s={})) == 0


def test_figures_omit_the_bars_in_narrow_panes() -> None:
    now = sample(1, ports=("*:8000",))
    wide, narrow = text(figures(now, [10.0, 20.0], [1.0], 120)), text(figures(now, [10.0, 20.0], [1.0], 27))
    assert "CPU 20 % ▁▂" in wide and "memory 2.0 MB" in wide and "listens on *:8000" in wide and "3 threads" in wide
    assert "▁" not in narrow and "CPU 20 %" in narrow and len(narrow) <= 27
    assert text(figures(now, [10.0, 20.0], [1.0], 14)) == "  CPU 20 % ▁▂"


@pytest.mark.skipif(sys.platform != "linux", reason="start times are compared on Linux")
def test_a_reused_pid_is_recognized() -> None:
    started = int(Path(f"/proc/{os.getpid()}/stat").read_bytes().rpartition(b")")[2].split()[19])
    mine = ProcessIdentity(pid=os.getpid(), start_time=started, boot_id=boot_id())
    assert living_process(mine) is not None
    assert living_process(mine.model_copy(update={"start_time": started + 1})) is None
    assert living_process(mine.model_copy(update={"boot_id": "another"})) is None
    assert [one.identity for one in sample_left_behind([mine, mine.model_copy(update={"start_time": 1})])] == [mine]


@pytest.mark.slow
async def test_a_run_is_measured_with_all_its_processes(tmp_path: Path) -> None:
    script = tmp_path / "listen.py"
    script.write_text(LISTEN)
    async with live(tmp_path, size=(200, 50)) as cockpit:
        call = await cockpit.start(f"{PYTHON} {script} & while :; do sleep 0.01; done")
        usage = cockpit.screen.query_one(UsageLine)
        await cockpit.until(lambda: usage.sample is not None and usage.sample.processes >= 2 and usage.sample.ports)
        await cockpit.until(lambda: "CPU" in cockpit.text() and "listens on 127.0.0.1:" in cockpit.text())
        found = sample_run(cockpit.board(call))
        assert found is not None and found.memory > 1_000_000 and found.threads >= 2 and not found.paused
        await cockpit.until(lambda: any(percent > 1 for percent in usage._cpu))


@pytest.mark.slow
async def test_p_pauses_everything_and_p_lets_it_continue(tmp_path: Path) -> None:
    async with live(tmp_path) as cockpit:
        call = await cockpit.start("sleep 1000 & wait")
        leader = psutil.Process(cockpit.board(call).process.leader.pid)  # type: ignore[union-attr]
        await cockpit.until(leader.children)
        tree = [leader, *leader.children()]
        await cockpit.press("p")
        await cockpit.until(lambda: all(one.status() == psutil.STATUS_STOPPED for one in tree))
        await cockpit.sees("‖ paused · p continues")
        await cockpit.press("p")
        await cockpit.until(lambda: not any(one.status() == psutil.STATUS_STOPPED for one in tree))
        await cockpit.until(lambda: "paused" not in cockpit.text())
        assert cockpit.board(call).signals == (signal.SIGSTOP, signal.SIGCONT)


def test_a_paused_run_is_recognized_by_its_last_signal_or_processes() -> None:
    record = running().supervisor.board.calls["1"]
    assert not is_paused(record, None)
    assert is_paused(record, sample(1, paused=True))
    stopped = record.model_copy(update={"signals": (signal.SIGSTOP, signal.SIGUSR1)})
    assert is_paused(stopped, sample(1))
    assert not is_paused(stopped.model_copy(update={"signals": (signal.SIGSTOP, signal.SIGCONT)}), sample(1))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.parametrize(
    ("command", "tty", "key"),
    [("read -r line", False, "i"), ("read -r line", True, "T"), ("cat", True, "T"), ("bash --norc -i", True, "T")],
)
async def test_a_command_that_waits_for_input_is_noticed(tmp_path: Path, command: str, tty: bool, key: str) -> None:
    async with live(tmp_path) as cockpit:
        await cockpit.start(command, tty=tty, accepts_input=True)
        await cockpit.sees("waits for input", f"{key} types")


async def test_a_queued_call_says_why_and_a_key_starts_it_anyway(tmp_path: Path) -> None:
    # No machine has so much memory.
    async with live(tmp_path, min_memory_bytes=1 << 60) as cockpit:
        started = asyncio.create_task(cockpit.start("sleep 1000"))
        await cockpit.until(lambda: cockpit.screen.board.queued)
        await cockpit.sees(
            "Approved, in the queue", "◇ approved, queued: ", "MiB of memory are available", "Start anyway"
        )
        await cockpit.press("Q")
        assert cockpit.board(await started).state.kind == "running"
        await cockpit.press("Q")
        await cockpit.sees("Start anyway is not possible: call 1 is not queued for a worker.")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.parametrize(
    "command",
    [
        "sleep 1000",
        pytest.param("while :; do :; done", marks=pytest.mark.slow),
        pytest.param("sleep 1000 < /dev/null", marks=pytest.mark.slow),
        "sleep 1000 | cat",
    ],
)
async def test_a_busy_command_is_not_shown_as_waiting(tmp_path: Path, command: str) -> None:
    async with live(tmp_path) as cockpit:
        call = await cockpit.start(command, accepts_input=True)
        for _ in range(5):
            found = sample_run(cockpit.board(call))
            assert found is not None and found.waits is None
            time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.parametrize("command", ["read -r line", "read -r line < /dev/tty", "printf 'Name: '; cat"])
async def test_every_run_that_needs_input_is_marked_in_the_list_the_header_and_the_heading(
    tmp_path: Path, command: str
) -> None:
    async with live(tmp_path) as cockpit:
        await cockpit.start(command, tty=True)
        await cockpit.start("sleep 1000")
        await cockpit.sees("◆ 1 needs input", "needs input ")
        cockpit.screen.query_one(CallList).select("1", by_hand=True)
        await cockpit.sees("Call 1  ▶ running", "needs input, silent for")
        assert cockpit.screen.run_watch.need_input == ["1"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
async def test_silence_is_measured_from_the_last_output(tmp_path: Path) -> None:
    async with live(tmp_path) as cockpit:
        call = await cockpit.start("printf 'Name: '; read -r name", tty=True)
        path = await cockpit.supervisor.output_file(call, "out")
        assert path is not None
        await cockpit.until(lambda: Path(path).read_bytes() == b"Name: ")
        long_ago = time.time() - 93
        os.utime(path, (long_ago, long_ago))
        await cockpit.sees("waits for input · silent for 9")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
async def test_a_run_that_is_stopped_from_outside_is_paused_in_the_list_and_the_header(tmp_path: Path) -> None:
    async with live(tmp_path) as cockpit:
        await cockpit.start("sleep 1000")
        call = await cockpit.start("exec sleep 1001")
        os.kill(cockpit.board(call).process.leader.pid, signal.SIGSTOP)  # type: ignore[union-attr]
        await cockpit.sees("2 running, 1 paused", "‖ exec sleep 1001")


@pytest.mark.slow
async def test_a_paused_run_is_paused_in_its_row_its_heading_the_header_and_on_the_button():
    scenario = running()
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("p")
        await cockpit.sees("‖ paused, started", "1 running, all paused", "p Continue")
        assert any(line.startswith("▌‖") and " paused " in line for line in cockpit.text().splitlines())
        await cockpit.press("p")
        await cockpit.sees("▶ running for", "p Pause")
        assert "paused" not in cockpit.text().splitlines()[0]


async def test_every_run_is_shown_as_paused_during_a_pause():
    scenario = running()
    scenario.supervisor.happen(Paused(at=scenario.clock(), by=HUMAN))
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("1 running, all paused", "‖ paused, started")


async def test_ctrl_r_asks_again_in_the_same_session_through_the_policy() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("2")
        before = set(cockpit.scenario.supervisor.board.calls)
        await cockpit.press("ctrl+r")
        await cockpit.until(lambda: len(cockpit.scenario.supervisor.board.calls) == len(before) + 1)
        (new,) = set(cockpit.scenario.supervisor.board.calls) - before
        await cockpit.until(lambda: cockpit.selected == new)
        old, again = cockpit.record("2"), cockpit.record(new)
        assert isinstance(again.state, Waiting) and again.spec == old.spec
        assert again.call.session_id == old.call.session_id


async def test_an_edited_call_is_rerun_as_edited() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select("3")
        assert cockpit.record("3").edited
        await cockpit.press("ctrl+r")
        await cockpit.until(lambda: cockpit.selected not in {None, "3"})
        assert cockpit.shown.spec == cockpit.record("3").spec


async def test_calls_of_a_closed_session_cannot_be_rerun() -> None:
    scenario = workday()
    scenario.supervisor.happen(SessionClosed(at=scenario.clock(), session_id="s1", why="it left"))
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select("2")
        before = len(scenario.supervisor.board.calls)
        await cockpit.press("ctrl+r")
        await cockpit.sees("Its session is closed")
        assert len(scenario.supervisor.board.calls) == before


def left_behind() -> Scenario:
    """Call 1 left a server behind a day and a half ago, and call 2 one just now."""
    scenario = Scenario.begin()
    for words in ("./old-server", "./new-server"):
        call = scenario.ask("build")
        scenario.approve(call)
        scenario.supervisor.leave_behind(call, words)
        scenario.end(call)
        scenario.clock.advance(36 * 3600)
    scenario.clock.advance(-36 * 3600 + 60)
    return scenario


@pytest.mark.slow
async def test_b_lists_background_processes_of_all_days() -> None:
    async with open_cockpit(left_behind()) as cockpit:
        await cockpit.press("b")
        await cockpit.sees("Left over from earlier days", "./old-server", "Since today", "./new-server", "2 calls")
        await cockpit.sees("call 1 of s1 site builder")
        await cockpit.press("down", "enter")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        assert cockpit.selected == "2"


@pytest.mark.slow
async def test_background_processes_can_be_ended_from_the_list() -> None:
    async with open_cockpit(left_behind()) as cockpit:
        await cockpit.press("b")
        await cockpit.sees("./old-server")
        await cockpit.press("x")
        await cockpit.sees("End call 1", "Ends 1 background process")
        await cockpit.press("down", "enter")
        await cockpit.until(lambda: cockpit.record("1").signals == (signal.SIGKILL,))


async def test_an_empty_list_of_background_processes_says_so() -> None:
    async with open_cockpit(running()) as cockpit:
        await cockpit.press("b")
        await cockpit.sees("No background processes.")
        await cockpit.press("x", "enter", "escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        assert isinstance(cockpit.record("1").state, Running)


async def test_a_background_server_is_shown_with_its_port_and_ended(tmp_path: Path) -> None:
    script = tmp_path / "listen.py"
    script.write_text(LISTEN)
    async with live(tmp_path) as cockpit:
        call = await cockpit.start(f"{PYTHON} {script} > {tmp_path}/port & sleep 0.3")
        await cockpit.until(
            lambda: isinstance(cockpit.board(call).state, Ended) and cockpit.board(call).living_background
        )
        await cockpit.until(lambda: (tmp_path / "port").read_text().strip())
        port = (tmp_path / "port").read_text().strip()
        await cockpit.press("b")
        await cockpit.sees(f"listens on 127.0.0.1:{port}")
        await cockpit.press("x")
        await cockpit.sees(f"End call {call}")
        await cockpit.press("down")
        await cockpit.press("enter")
        await cockpit.until(lambda: not cockpit.board(call).is_open)


def test_ended_processes_are_not_sampled() -> None:
    child = subprocess.Popen(["sleep", "1000"])
    started = psutil.Process(child.pid)
    child.kill()
    child.wait()
    gone = ProcessIdentity(pid=started.pid, start_time=1, boot_id=boot_id())
    assert sample_left_behind([gone]) == ()
