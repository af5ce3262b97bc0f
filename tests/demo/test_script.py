"""The demo without a terminal, on a real supervisor with real commands."""

import re
from pathlib import Path

import psutil
import pytest

from tests.demo.instance import a_supervisor
from tests.rows import each_row
from whisper_tui.demo.scripted_agents import temporary_workspace
from whisper_tui.demo.scripted_human import StoryFailed, last_lines, observing, run_without_terminal
from whisper_tui.demo.story import SCENES, Denies
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.state import Ended
from whisper_tui.policy.rules.rule import ExactRule, Rules


async def play(rules: Rules | None = None) -> tuple[bool, list[str]]:
    """Whether the story came out as told, and every line that was printed."""
    lines: list[str] = []
    with temporary_workspace(step_s=0) as workspace:
        async with a_supervisor(workspace, rules=rules or Rules()) as supervisor:
            return await run_without_terminal(supervisor, workspace, lines.append), lines


async def test_the_story_ends_as_scripted_and_prints_no_escape_sequences() -> None:
    good, lines = await play()
    told = "\n".join(lines)
    assert good, told
    assert lines[-1] == "Everything happened as the story says."
    assert all(line.isprintable() for line in lines)
    assert len(re.findall(r"^ ?\d+\. The ", told, re.MULTILINE)) == len(SCENES)
    for words in (
        "human  approves it\n",
        "human  approves it, and the same command for the session",
        "human  is not asked: the same command was approved for the session",
        "human  changes it to ./release.sh staging, and approves that",
        "human  denies it: ",
        "human  takes a line out of the result, and approves that",
        "told   to go on: its own tool does it",
        "and    The human changed the edit before it was made.",
        '| {"rake": "120 EUR"}',
        "human  reads 'Name of this release:' and types 'spring'",
        "sends it SIGTERM",
        "told   exit code 1; ",
        "40,000,000 bytes of output",
    ):
        assert words in told
    (reason,) = (scene.move.reason for scene in SCENES if isinstance(scene.move, Denies))
    assert re.search(rf"told .*{re.escape(reason)}", told)


@pytest.mark.slow
async def test_no_process_and_no_file_is_left_behind() -> None:
    with temporary_workspace(step_s=0) as workspace:
        async with a_supervisor(workspace) as supervisor:
            assert await run_without_terminal(supervisor, workspace, lambda _: None)
            for record in await supervisor.history(HistoryQuery(limit=100)):
                assert isinstance(record.state, Ended) and record.state.settled
                assert record.process is None or not psutil.pid_exists(record.process.leader.pid)
    assert not Path(workspace.place).exists()


@pytest.mark.slow
async def test_a_failing_step_is_named_and_the_others_continue() -> None:
    denied = ExactRule(name="no tests", argv=("./test.sh",), justification="not today")
    good, lines = await play(Rules(deny=(denied,)))
    assert not good
    assert lines[-1] == "Not everything happened as the story says."
    wrong = [line for line in lines if "WRONG" in line]
    assert len(wrong) >= 2
    assert "40,000,000 bytes of output" in "\n".join(lines)


async def test_the_onlooker_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whisper_tui.demo.scripted_human.PATIENCE_S", 0.05)
    with temporary_workspace(step_s=0) as workspace:
        async with a_supervisor(workspace) as supervisor, observing(supervisor) as onlooker:
            with pytest.raises(StoryFailed, match=r"call 99 to end"):
                await onlooker.see("99", lambda _: True, "to end")


@each_row(
    ("text", "lines"),
    [
        ("", []),
        ("one\ntwo\nthree\n", ["two", "three"]),
        ("\x1b[32mgreen\x1b[0m\r\n\n", ["green"]),
        ("\r 10%\r 20%\r100%\ndone", ["100%", "done"]),
    ],
)
def test_the_last_lines_are_shown_as_a_printer_shows_them(text: str, lines: list[str]) -> None:
    assert last_lines(text) == lines
