"""Groups that a killed keeper has left are removed by the next supervisor, and those of other runs are not."""

from pathlib import Path

from whisper_tui.supervisor.keeper.base_cgroup import Cgroups
from whisper_tui.supervisor.runs.local_executor import LocalExecutor


async def test_the_groups_of_runs_that_are_over_go_when_a_supervisor_opens(tmp_path: Path) -> None:
    base, runs = tmp_path / "cgroup", tmp_path / "runs"
    base.mkdir()
    runs.mkdir(mode=0o700)
    groups = Cgroups(base, ())

    def group(call_id: str, *files: str, directory: bool = True) -> Path:
        made = Path(groups.group_order(str(runs / f"{call_id}.1"))["path"])
        made.mkdir()
        if directory:
            (runs / f"{call_id}.1").mkdir()
        for name in files:
            (runs / f"{call_id}.1" / name).touch()
        return made

    over, gone, open_ = group("1", "spec", "done"), group("2", directory=False), group("3", "spec")
    (over / "made by the run").mkdir()
    others = Path(groups.group_order(str(tmp_path / "another" / "1.1"))["path"])
    others.mkdir()
    executor = LocalExecutor(runs, groups)
    await executor.open()
    try:
        assert [path.exists() for path in (over, gone, open_, others)] == [False, False, True, True]
    finally:
        await executor.close()
