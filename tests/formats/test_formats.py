"""Files as earlier versions wrote them. They are never edited and are read for ever; a new form adds a file."""

import asyncio
import json
import shutil
import tomllib
from pathlib import Path

import pytest

from whisper_tui.config import load
from whisper_tui.config.configuration import Configuration
from whisper_tui.config.rule_files import rules_in
from whisper_tui.model.ending import Exited
from whisper_tui.model.run import TerminalSize
from whisper_tui.policy.rules.rule import Rule
from whisper_tui.supervisor.runs.executor import HasEnded, HasSettled, Report, RunKey
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.runs.output_files import OutputFiles
from whisper_tui.system.state_directory import Directories

HERE = Path(__file__).parent
CONFIGURATIONS = sorted(HERE.glob("config-*.toml"))
RULES = sorted(HERE.glob("rules-*.toml"))
SET_BY_TABLES = {"hosts", "keys", "places", "rules"}
"""Tables whose keys are no fields."""


def home_with(directory: Path, name: str, content: Path) -> Directories:
    home = Directories(config=directory / "config", state=directory / "state", runtime=directory / "run")
    home.config.mkdir(mode=0o700)
    shutil.copyfile(content, home.config / name)
    (home.config / name).chmod(0o600)
    return home


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda path: path.stem)
def test_a_configuration_is_read_with_all_that_it_says(tmp_path: Path, file: Path) -> None:
    read = load(home_with(tmp_path, "config.toml", file))
    assert read.rules.broken is None
    for name, table in tomllib.loads(file.read_text()).items():
        if name not in SET_BY_TABLES:
            assert getattr(read, name) == type(getattr(read, name)).model_validate(table) != type(getattr(read, name))()


def test_the_newest_configuration_has_every_setting() -> None:
    newest = tomllib.loads(CONFIGURATIONS[-1].read_text())
    assert set(newest) == set(Configuration.model_fields)
    for name in set(newest) - SET_BY_TABLES:
        kind = type(getattr(Configuration(), name))
        assert set(newest[name]) == set(kind.model_fields), name


@pytest.mark.parametrize("file", RULES, ids=lambda path: path.stem)
def test_rules_are_read_with_all_that_they_say(tmp_path: Path, file: Path) -> None:
    home = home_with(tmp_path, "rules.toml", file)
    read, written = rules_in(home.config / "rules.toml"), tomllib.loads(file.read_text())
    assert read.broken is None
    for effect in ("deny", "ask", "allow"):
        assert getattr(read, effect) == tuple(Rule.model_validate_json(json.dumps(each)) for each in written[effect])


def test_the_newest_rules_have_everything_that_a_rule_can_say() -> None:
    newest = tomllib.loads(RULES[-1].read_text())
    said = {key for effect in ("deny", "ask", "allow") for rule in newest[effect] for key in rule}
    assert said == set(Rule.model_fields)


@pytest.mark.parametrize("files", sorted(HERE.glob("attempt-*")), ids=lambda path: path.stem)
async def test_the_files_that_a_keeper_left_are_read_whole(tmp_path: Path, files: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir(mode=0o700)
    shutil.copytree(files, runs / "1.1", symlinks=True)
    executor, key = LocalExecutor(runs), RunKey("1", 1)
    told: list[Report] = []
    await executor.open()
    try:
        await executor.attach(key)
        async with asyncio.timeout(60):
            async for reports in executor.reports():
                told.extend(reports)
                if isinstance(told[-1], HasSettled):
                    break
        (ended,) = [report for report in told if isinstance(report, HasEnded)]
        assert (ended.ending, ended.output.out, ended.output.err) == (Exited(code=0), 10, 0)
        assert ended.usage is not None and ended.usage.wall_s == 25.006022
        assert executor.read_output(key, "out", 0, 100).data == b"ended one\n"
        assert [span.length for span in executor.read_timeline(key, 0, 10)] == [10]
        assert executor.terminal_sizes(key) == (TerminalSize(),)
    finally:
        await executor.close()


def test_the_sizes_of_a_terminal_that_a_keeper_left_are_read(tmp_path: Path) -> None:
    (tmp_path / "1.1").mkdir()
    shutil.copyfile(HERE / "size-1", tmp_path / "1.1" / "size")
    first, second = OutputFiles(tmp_path).terminal_sizes(RunKey("1", 1))
    assert first == TerminalSize(at=1795322387.2971027, start=0, rows=30, columns=100)
    assert second == TerminalSize(at=1795322387.3075955, start=10, rows=50, columns=132)
