"""Settings are listed from the configuration file, and changed in it without touching anything else."""

from pathlib import Path

import pytest

from whisper_tui.config import load
from whisper_tui.config.configuration import ABOUT, ConfigurationFile
from whisper_tui.model.api import ShownSetting, Supervision
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import BadConfiguration, ChangedSinceSeen, InvalidRequest, WhisperError
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient
from whisper_tui.wire.server import serve

MINE = """# mine
[cockpit]
theme = "x" # dark

# keys
[keys]
help = "F1"

[[rules.deny]]
name = "no force push"
text = "git push --force"
"""


@pytest.fixture
def home(tmp_path: Path) -> Directories:
    home = Directories(config=tmp_path / "config", state=tmp_path / "state", runtime=tmp_path / "run")
    Path(home.config).mkdir(mode=0o700)
    (Path(home.config) / "config.toml").write_text(MINE)
    return home


def of(file: ConfigurationFile, name: str) -> ShownSetting:
    return next(each for each in file.listed().settings if each.name == name)


def test_each_setting_has_its_value_its_default_and_the_values_that_are_allowed(home: Directories) -> None:
    file = ConfigurationFile(home)
    assert [each.name for each in file.listed().settings] == list(ABOUT)
    theme, undo, days = of(file, "cockpit.theme"), of(file, "cockpit.undo"), of(file, "retention.days")
    assert (theme.value, theme.in_file, theme.default) == ("x", True, "")
    assert (undo.value, undo.in_file, undo.choices) == ("every", False, ("grave", "every", "none"))
    assert undo.allowed == "grave, every or none"
    assert (days.value, days.allowed) == ("30", "a number above 0 or inf for no limit")
    assert of(file, "cockpit.undo_s").allowed == "a number above 0 to 60"
    assert of(file, "supervisor.workers").allowed == "a whole number from 1 to 1000"
    assert of(file, "calling.bell").choices == ("true", "false")


def test_neither_rules_nor_the_program_that_notifies_are_settings(home: Directories) -> None:
    assert {name.partition(".")[0] for name in ABOUT}.isdisjoint({"rules", "tools", "keys"})
    assert "calling.command" not in ABOUT
    with pytest.raises(InvalidRequest, match="no setting"):
        ConfigurationFile(home).change("calling.command", "x", "")


def test_a_change_keeps_comments_rules_and_all_the_rest(home: Directories) -> None:
    file = ConfigurationFile(home)
    for name, value, seen in (
        ("cockpit.theme", "y", "x"), ("cockpit.undo_s", "4.5", "3"), ("retention.days", "inf", "30"),
        ("calling.bell", "false", "true"), ("limits.cpu_s", "9", ""), ("limits.cpu_s", "", "9"),
    ):  # fmt: skip
        file.change(name, value, seen)
    text = file.path.read_text()
    assert text.startswith('# mine\n[cockpit]\ntheme = "y" # dark\nundo_s = 4.5\n\n# keys\n[keys]\nhelp = "F1"\n')
    assert MINE.partition("[[rules.deny]]")[2] in text
    read = load(home)
    assert (read.cockpit.undo_s, read.retention.days, read.calling.bell, read.limits.cpu_s) == (
        4.5, float("inf"), False, None,
    )  # fmt: skip
    file.change("cockpit.undo_s", None, "4.5")
    assert "undo_s" not in file.path.read_text()


@pytest.mark.parametrize(
    ("name", "value", "error", "said"),
    [
        ("cockpit.undo_s", "99", BadConfiguration, "less than or equal to 60"),
        ("cockpit.undo_s", "soon", InvalidRequest, "'soon' is not a number"),
        ("supervisor.workers", "2.5", BadConfiguration, "valid integer"),
        ("calling.quiet", "night", BadConfiguration, "hours are written like 22:00-07:00"),
        ("calling.bell", "loud", BadConfiguration, "valid boolean"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_in_words_and_not_written(
    home: Directories, name: str, value: str, error: type[WhisperError], said: str
) -> None:
    file = ConfigurationFile(home)
    with pytest.raises(error, match=said):
        file.change(name, value, of(file, name).value)
    assert file.path.read_text() == MINE


def test_a_file_that_was_changed_meanwhile_or_cannot_be_read_is_not_changed(home: Directories) -> None:
    file = ConfigurationFile(home)
    with pytest.raises(ChangedSinceSeen, match=r"cockpit\.theme is 'x' there"):
        file.change("cockpit.theme", "z", "y")
    file.path.write_text("[cockpit]\ncolour = 1\n")
    assert "colour" in file.listed().problem
    with pytest.raises(BadConfiguration, match="colour"):
        file.change("cockpit.theme", "z", "")


async def test_the_settings_are_changed_through_the_api_of_a_supervisor(home: Directories) -> None:
    supervisor = Supervisor(home, LocalExecutor(Path(home.state) / "runs"))
    supervisor.settings_file = ConfigurationFile(home)
    await supervisor.open()
    listening = await serve(supervisor, home, {})
    api: Supervision = await SupervisorClient.connect(home, start=False)
    try:
        await api.change_setting("retention.days", "14", "30", Decider(surface="cockpit", who="me"))
        listed = await api.settings()
        assert next(each for each in listed.settings if each.name == "retention.days").value == "14"
    finally:
        await api.close()  # type: ignore[attr-defined]
        await listening.close()
        await supervisor.close()
