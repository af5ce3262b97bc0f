"""What was approved is what runs: whatever is put in its place between the approval and the start is noticed."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.mutations.conftest import Field, a_field
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.ending import FailedToStart
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.supervisor.approvals.resolve import resolve
from whisper_tui.supervisor.runs.executor import HasEnded, RunKey, StartOrder
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.runs.scheduling import MemoryGauge
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.system.run_files import stamp


class Workshop:
    """A machine without memory for a start until it is let go, and a place to swap things in."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self.root = field.root
        self.tools = field.root / "tools"
        self.earlier = field.root / "earlier"
        self.place = field.root / "place"
        for directory in (self.tools, self.earlier, self.place, field.root / "elsewhere"):
            directory.mkdir()
        self.program("tool", "good")

    def program(self, name: str, says: str, directory: Path | None = None) -> Path:
        """A program that writes down that it ran."""
        path = (directory or self.tools) / name
        path.write_text(f"#!/bin/sh\necho {says} >{self.root}/ran\n")
        path.chmod(0o755)
        return path

    async def busy(self) -> None:
        """Nothing else starts from now on."""
        self._leave_available(1 << 60)

    def let_go(self) -> None:
        """What was approved may start."""
        self._leave_available(0)

    def _leave_available(self, size: int) -> None:
        self.field.supervisor._parts.pool.workers._memory = MemoryGauge(size)

    async def approved(self, *words: str, cwd: Path | None = None) -> str:
        """A call that was approved and has to wait."""
        call = await self.field.ask(*words, cwd=cwd)
        await self.field.approve(call)
        assert (await self.field.supervisor.record(call)).state.kind == "queued"
        return call

    async def comes_back(self, call: str) -> str:
        """Wait until the call is before the human again. Returns why."""
        async with asyncio.timeout(60):
            while not isinstance((state := (await self.field.supervisor.record(call)).state), Waiting | Ended):
                await asyncio.sleep(0.02)
        assert isinstance(state, Waiting), state
        assert not (self.root / "ran").exists()
        assert state.returned_because
        return state.returned_because


@pytest.fixture
async def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workshop]:
    monkeypatch.setenv("PATH", f"{tmp_path}/earlier:{tmp_path}/tools:{os.environ['PATH']}")
    async with a_field(tmp_path, SupervisorSettings(workers=1)) as field:
        yield Workshop(field)


def replace_file(shop: Workshop) -> None:
    """Another file with the same name, and nothing else about it that shows."""
    new = shop.program("new", "evil")
    times = (shop.tools / "tool").stat()
    os.utime(new, ns=(times.st_atime_ns, times.st_mtime_ns))
    new.replace(shop.tools / "tool")


def rewrite_file(shop: Workshop) -> None:
    """The same file with another content, as long, and as old by what it says."""
    path = shop.tools / "tool"
    times = path.stat()
    path.write_text(path.read_text().replace("good", "evil"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def earlier_in_path(shop: Workshop) -> None:
    """The same name, in a directory that is searched before."""
    shop.program("tool", "evil", shop.earlier)


SWAPS: dict[str, tuple[Callable[[Workshop], None], str]] = {
    "another file in its place": (replace_file, "tools/tool was replaced or changed"),
    "another content": (rewrite_file, "tools/tool was replaced or changed"),
    "an earlier one in PATH": (earlier_in_path, "earlier/tool"),
    "nothing": (lambda shop: (shop.tools / "tool").unlink(), "is gone"),
}


@pytest.mark.parametrize("swap", SWAPS)
async def test_a_program_that_was_swapped_does_not_run_and_the_human_is_asked_again(workshop: Workshop, swap: str):
    await workshop.busy()
    call = await workshop.approved("tool")
    change, told = SWAPS[swap]
    change(workshop)
    workshop.let_go()
    assert told in await workshop.comes_back(call)


async def test_unchanged_files_run(workshop: Workshop):
    await workshop.busy()
    call = await workshop.approved("tool")
    workshop.let_go()
    await asyncio.wait_for(workshop.field.supervisor.outcome(call), 60)
    assert (workshop.root / "ran").read_text() == "good\n"


async def test_changed_files_run_after_a_new_approval(workshop: Workshop):
    await workshop.busy()
    call = await workshop.approved("tool")
    rewrite_file(workshop)
    workshop.let_go()
    await workshop.comes_back(call)
    await workshop.field.approve(call)
    await asyncio.wait_for(workshop.field.supervisor.outcome(call), 60)
    assert (workshop.root / "ran").read_text() == "evil\n"


async def test_a_link_that_was_pointed_elsewhere_is_noticed(workshop: Workshop):
    evil = workshop.program("evil", "evil")
    (workshop.root / "link").symlink_to(workshop.tools / "tool")
    await workshop.busy()
    call = await workshop.approved("./link")
    (workshop.root / "link").unlink()
    (workshop.root / "link").symlink_to(evil)
    workshop.let_go()
    assert "link was replaced or changed" in await workshop.comes_back(call)


async def test_a_working_directory_that_became_a_link_to_elsewhere_is_noticed(workshop: Workshop):
    await workshop.busy()
    call = await workshop.approved("tool", cwd=workshop.place)
    workshop.place.rmdir()
    workshop.place.symlink_to(workshop.root / "elsewhere")
    workshop.let_go()
    told = await workshop.comes_back(call)
    assert "its working directory was" in told and "elsewhere" in told


@pytest.mark.parametrize(
    "words",
    [
        ("sh", "x.sh"),
        ("sh", "-e", "x.sh", "and more"),
        ("bash", "-c", ". ./x.sh"),
        ("bash", "-c", "true && sh x.sh"),
        ("env", "sh", "x.sh"),
    ],
)
async def test_a_script_that_was_changed_is_noticed(workshop: Workshop, words: tuple[str, ...]):
    workshop.program("x.sh", "good", workshop.root)
    await workshop.busy()
    call = await workshop.approved(*words)
    workshop.program("x.sh", "evil", workshop.root)
    workshop.let_go()
    assert "x.sh was replaced or changed" in await workshop.comes_back(call)


@pytest.mark.parametrize(
    ("words", "noticed"), [("python3 x.py", True), ("python3 -m x x.py", False), ("cat x.py", False)]
)
def test_scripts_are_compared_and_data_is_not(tmp_path: Path, words: str, noticed: bool):
    (tmp_path / "x.py").touch()
    found = resolve(CommandSpec(command=Shell(text=words), cwd=str(tmp_path)), {"PATH": os.environ["PATH"]})
    assert (str(tmp_path / "x.py") in found.files) is noticed


async def order_was_refused(root: Path, **expected: object) -> str:
    """Give an order as the pool does when it was overtaken by a swap, and hear what became of it."""
    (root / "place").mkdir()
    executor = LocalExecutor(root / "runs")
    await executor.open()
    try:
        spec = CommandSpec(command=Shell(text=f"touch {root}/ran"), cwd=str(root / "place"))
        order = StartOrder(RunKey("1", 1), spec, "/bin/sh", dict(os.environ), **expected)  # type: ignore[arg-type]
        await executor.start(order)
        async with asyncio.timeout(60):
            async for reports in executor.reports():
                for report in reports:
                    if isinstance(report, HasEnded) and isinstance(report.ending, FailedToStart):
                        assert not (root / "ran").exists()
                        return report.ending.message
    finally:
        await executor.close()
    raise AssertionError("nothing was reported")


async def test_a_directory_that_is_swapped_after_the_last_look_starts_nothing(tmp_path: Path):
    assert "now leads to" in await order_was_refused(tmp_path, real_cwd=str(tmp_path / "before"))


async def test_a_program_that_is_swapped_after_the_last_look_starts_nothing(tmp_path: Path):
    (tmp_path / "tool").write_text("good")
    files = {str(tmp_path / "tool"): stamp(str(tmp_path / "tool"))}
    (tmp_path / "tool").write_text("evil")
    assert "was replaced or changed" in await order_was_refused(tmp_path, files=files)
