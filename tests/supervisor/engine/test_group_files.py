"""What is written for the kernel, and read from it: on plain files, so that every machine can look."""

from pathlib import Path

import pytest

from whisper_tui.supervisor.keeper.base_cgroup import own_group
from whisper_tui.supervisor.keeper.run_cgroup import TASKS_PER_PROCESS, RunCgroup

LIMITS = ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max")
ORDER = {"cpu": 60, "memory": 1 << 27, "processes": 20}


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """A group as the kernel makes it, with files that are only files."""
    for name in LIMITS:
        (tmp_path / name).touch()
    return tmp_path


def limited(group: Path, counts: list[str], **order: int | None) -> tuple[list[str], tuple[str, ...]]:
    made = RunCgroup(str(group))
    made.limit(ORDER | order, counts)
    return [(group / name).read_text() for name in LIMITS], made.group_limits


def test_the_kernel_gets_the_limits_that_it_supports(group: Path):
    tasks = str(20 * TASKS_PER_PROCESS)
    assert limited(group, ["memory", "pids"]) == ([str(1 << 27), "0", "1", tasks], ("cpu_s", "memory_bytes"))


def test_resources_that_the_kernel_does_not_count_have_no_total_limit(group: Path):
    assert limited(group, ["pids"], cpu=None) == (["", "", "", str(20 * TASKS_PER_PROCESS)], ())


def test_without_limits_nothing_is_written(group: Path):
    assert limited(group, ["memory", "pids"], cpu=None, memory=None, processes=None) == (["", "", "", ""], ())


def test_a_limit_that_the_kernel_does_not_take_is_not_told_as_one(group: Path):
    (group / "memory.max").unlink()
    made = RunCgroup(str(group))
    made.limit(ORDER, ["memory"])
    assert made.group_limits == ("cpu_s",)


@pytest.mark.parametrize(
    ("events", "ran_out"),
    [
        ("max 9\noom 1\noom_kill 2\n", True),
        ("max 9\noom 0\noom_kill 2\n", False),
        ("max 9\noom 1\noom_kill 0\n", False),
    ],
)
def test_only_who_was_killed_at_its_own_limit_ran_out_of_memory(group: Path, events: str, ran_out: bool):
    """A run that was killed because the whole machine had no memory left was at no limit."""
    (group / "memory.events").write_text(f"low 0\nhigh 0\n{events}")
    assert RunCgroup(str(group)).ran_out_of_memory() is ran_out


def test_processor_time_is_read_in_seconds(group: Path):
    (group / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1000000\n")
    assert RunCgroup(str(group)).cpu_s() == 1.5


def test_a_run_without_a_group_has_nothing_in_it():
    none = RunCgroup()
    none.make(ORDER)
    none.kill()
    none.remove()
    assert (none.path, none.group_limits, none.members(), none.populated(), none.freeze()) == (
        None,
        (),
        [],
        False,
        False,
    )


def test_a_group_that_cannot_be_made_is_none(tmp_path: Path):
    group = RunCgroup()
    group.make(ORDER | {"group": {"path": str(tmp_path / "not" / "there"), "counts": ["memory"]}})
    assert (group.path, group.group_limits) == (None, ())


PLAIN = "30 23 0:26 / {} rw,nosuid - cgroup2 cgroup2 rw\n"
OF_A_CONTAINER = "30 23 0:26 /docker/1 {} rw,nosuid - cgroup2 cgroup2 rw\n"
OLD = "31 23 0:27 / {} rw shared:9 - cgroup cgroup rw,memory\n"


@pytest.mark.parametrize(
    ("groups", "mounts", "found"),
    [
        ("0::/user.slice/app\n", PLAIN, "user.slice/app"),
        ("8:pids:/other\n0::/\n", OLD + PLAIN, ""),
        ("0::/docker/1/app\n", OF_A_CONTAINER, "app"),
        ("0::/docker/2\n", OF_A_CONTAINER, None),
        ("8:pids:/other\n", OLD, None),
        ("0::/app\n", OLD, None),
    ],
)
def test_the_group_of_a_process_is_found_where_it_is_mounted(
    tmp_path: Path, groups: str, mounts: str, found: str | None
):
    (tmp_path / "cgroup").write_text(groups)
    (tmp_path / "mountinfo").write_text(mounts.replace("{}", "/cg"))
    assert own_group(tmp_path) == (None if found is None else Path("/cg") / found)


def test_without_proc_there_is_no_group(tmp_path: Path):
    assert own_group(tmp_path / "none") is None
