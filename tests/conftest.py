"""For every test."""

import ast
import asyncio
import gc
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from unittest import mock
from zlib import crc32

import pytest

import tests.interpreter  # noqa: F401  # before there are workers: all take the name that it finds here
from tests.agent_process import AgentProcess
from tests.outside import EXHAUSTIVE
from tests.rewriting import rewrite_assertions
from tests.syntax import without_garbage
from tests.warm_process import warm_supervisors
from whisper_tui.effects import code_of, edit_results, effects_of
from whisper_tui.supervisor import queries
from whisper_tui.supervisor.runs import held_back, preview_changes, rule_on_effects, sandboxed_git, start_order
from whisper_tui.supervisor.runs.preview_probe import preview_support
from whisper_tui.system.processes import FILE_LOCKS
from whisper_tui.system.state_directory import Directories

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever starts tests in the background of a shell has them ignore it, and every program that they start with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # The same for whoever starts them with nohup: programs that end with their terminal then rightly would not.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Tests start thousands of programs. Without compiled files, each of them would compile all that it imports again, which
# takes longer than what it does.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# pytest parses modules of tests with it, also in the middle of a test.
mock.patch.object(ast, "parse", without_garbage(ast.parse)).start()

# After these seconds an answer says less, and a test would see how busy the machine is. Those about it set them anew.
AMPLE_S = 60.0
for function in (effects_of, code_of):
    function.__kwdefaults__["budget_s"] = AMPLE_S
edit_results.DIFF_S = held_back.GIT_BUDGET_S = preview_changes.COUNTING_S = queries.DISK_PATIENCE_S = AMPLE_S
rule_on_effects.HISTORY_BUDGET_S = sandboxed_git.LONGEST_S = start_order.EFFECTS_BUDGET_S = AMPLE_S

# An agent that runs the tests, and says so to its hooks, is not the agent that they play.
os.environ.pop("CLAUDE_PID", None)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None):  # of the process that starts the workers, not of a worker
        rewrite_assertions(config)


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Supervisors that this process starts need not load."""
    monkeypatch.setattr(subprocess.Popen, "_execute_child", warm_supervisors())


@pytest.fixture
def home(tmp_path: Path) -> Directories:
    """The directories of a supervisor of the test; none of them exists."""
    return Directories(config=tmp_path / "config", state=tmp_path / "state", runtime=tmp_path / "run")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without the garbage collector: almost all that is made stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Leave out most cases of tests with many: see the marks `few`, `one_in` and `exhaustive` in pyproject.toml.

    Where all cases, or single ones, are asked for, they are all kept.
    """
    _mark_few(items)
    _mark_one_in(items)
    result = yield
    if EXHAUSTIVE or any("::" in argument for argument in config.args):
        return result
    left_out = [item for item in items if item.get_closest_marker("exhaustive") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
    return result


def _mark_few(items: list[pytest.Item]) -> None:
    """Mark n cases of tests marked `few(n)`, from all over the list, for each run; as many others slow."""
    for each, count in _cases(items, "few"):
        kept, more = spread(len(each), count)
        for number, item in enumerate(each):
            if number not in kept:
                item.add_marker(pytest.mark.slow if number in more else pytest.mark.exhaustive)


def spread(cases: int, count: int) -> tuple[set[int], set[int]]:
    """Return which cases every run tries, `count` from all over the list, and which `make check` tries beside them."""
    kept = {number * cases // count for number in range(count)}
    others = [number for number in range(cases) if number not in kept]
    return kept, {others[number * len(others) // count] for number in range(count)} if others else set()


def _mark_one_in(items: list[pytest.Item]) -> None:
    """Mark all cases of tests marked `one_in(n)` exhaustive, but for one of n."""
    for each, count in _cases(items, "one_in"):
        # Tests begin at different cases, so that a parameter of several tests is not always left out.
        first = crc32(each[0].nodeid.partition("[")[0].encode())
        for number, item in enumerate(each, start=1):
            if (number + first) % count:
                item.add_marker(pytest.mark.exhaustive)


def _cases(items: list[pytest.Item], mark: str) -> Iterator[tuple[list[pytest.Item], int]]:
    """Yield the cases of each test with a mark, and the number in it."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker(mark) is not None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for each in cases.values():
        found = each[0].get_closest_marker(mark)
        assert found is not None
        yield each, found.args[0]


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what lives as long as the tests: modules, and thousands of collected tests.

    Every cockpit makes so many objects that it walked through all of that again and again, for a quarter of the
    processor time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_sessionfinish() -> None:
    """Collect garbage once, as pytest does five times at the end to find what nobody closed, in each process."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def place_for_mounts() -> Iterator[Path]:
    """A directory in which a test may mount a file system, away from those of all other tests.

    A preview that runs beside it splits each directory above a mount into layers, one for each entry, and refuses
    thousands of them.
    """
    with tempfile.TemporaryDirectory(prefix="whisper-tests-", dir="/var/tmp", ignore_cleanup_errors=True) as found:
        yield Path(found)


@pytest.fixture(scope="session")
def overlays(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where commands cannot run on overlays of the files, as in containers without namespaces."""
    found = asyncio.run(preview_support(str(tmp_path_factory.mktemp("probe")), str(Path.home()), "overlay"))
    if not found.ways:
        pytest.skip(f"no previews on overlays here: {found.words}")


_MARK = pytest.StashKey[tuple[int, int]]()
_DIRECTORY = pytest.StashKey[str]()


def _mark() -> tuple[int, int]:
    return resource.getrlimit(FILE_LOCKS) if sys.platform == "linux" else (0, 0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_MARK] = _mark()
    item.stash[_DIRECTORY] = os.getcwd()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    result = yield
    if _mark() != item.stash[_MARK]:
        # It stays marked for good, and whatever later tests start may decide nothing.
        pytest.fail("this test marked the process of the tests as an agent's: let tests.agent_process play the agent")
    if not os.path.samefile(".", item.stash[_DIRECTORY]):
        os.chdir(item.stash[_DIRECTORY])
        pytest.fail("this test changed the directory of the process of the tests: let monkeypatch.chdir change it back")
    return result


@pytest.fixture
def agent_process() -> Iterator[AgentProcess]:
    """An agent that is not the process of the tests."""
    agent = AgentProcess()
    yield agent
    agent.close()
