"""A cockpit that calls: what reaches the terminal, who counts as away, and what is kept back and told."""

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.drivers.headless_driver import HeadlessDriver
from textual.events import AppBlur, AppFocus

from tests.pictures import universal_time
from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import Play, workday
from whisper_tui.tui.calling.settings import CallingSettings

ALWAYS = CallingSettings(when="always", title=False)


class Written:
    """What reached the terminal itself."""

    def __init__(self) -> None:
        self.text = ""

    @property
    def bells(self) -> int:
        """Bells that are not the end of another sequence."""
        return re.sub(r"\x1b\][^\a]*\a", "", self.text).count("\a")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    found = Written()

    def write(self: HeadlessDriver, data: str) -> None:
        found.text += data

    monkeypatch.setattr(HeadlessDriver, "write", write)
    return found


@pytest.fixture(autouse=True)
def outside_of_a_multiplexer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("TMUX", raising=False)
    with universal_time():
        yield


def later(play: Play, seconds: float = 11) -> None:
    play.clock.advance(seconds)


async def looked(seat: Cockpit) -> None:
    """Everything that has happened is on the board, and the cockpit has looked whether to call."""
    await seat.settled()
    seat.screen.caller.look()
    await seat.pilot.pause()


async def test_a_call_that_comes_rings_the_bell_and_asks_for_a_notification(written: Written) -> None:
    async with cockpit(Play.begin(), calling=ALWAYS) as seat:
        seat.play.ask("build")
        await looked(seat)
        assert written.bells == 1
        assert written.text.count("\x1b]9;whisper_tui: 1 new call from site builder · 1 waits for you\a") == 1
        await looked(seat)
        assert written.bells == 1


async def test_nothing_is_written_that_is_not_wanted(written: Written) -> None:
    silent = CallingSettings(when="always", bell=False, notify="off", title=False)
    async with cockpit(Play.begin(), calling=silent) as seat:
        seat.play.ask("build")
        await looked(seat)
        assert written.bells == 0
        assert not re.search(r"\x1b\](9|777|2);", written.text)


async def test_the_title_of_the_terminal_counts_and_is_given_back(written: Written) -> None:
    async with cockpit(workday(), calling=CallingSettings(when="never")) as seat:
        await seat.until(lambda: "\x1b]2;(3) whisper_tui\a" in written.text)
        seat.play.approve("7")
        await seat.until(lambda: "\x1b]2;(2) whisper_tui\a" in written.text)
        assert "\x1b[22;2t" in written.text
        assert written.bells == 0
    assert written.text.rstrip().endswith("\x1b[23;2t")


async def test_nobody_is_called_who_sits_there_and_is_as_soon_as_they_leave(written: Written) -> None:
    async with cockpit(Play.begin(), calling=CallingSettings(title=False)) as seat:
        await seat.press("down")
        seat.play.ask("build")
        await looked(seat)
        assert written.bells == 0
        later(seat.play, 29)
        await looked(seat)
        assert written.bells == 0
        later(seat.play, 2)
        await looked(seat)
        assert written.bells == 1
        await seat.press("down")
        later(seat.play, 20)
        seat.play.ask("test")
        await looked(seat)
        assert written.bells == 1


async def test_another_window_with_the_focus_means_away(written: Written) -> None:
    async with cockpit(Play.begin(), calling=CallingSettings(title=False)) as seat:
        await seat.press("down")
        seat.app.post_message(AppBlur())
        await seat.until(lambda: not seat.app.app_focus)
        seat.play.ask("build")
        await looked(seat)
        assert written.bells == 1
        seat.app.post_message(AppFocus())
        await seat.until(lambda: seat.app.app_focus)
        later(seat.play)
        seat.play.ask("test")
        await looked(seat)
        assert written.bells == 1


async def test_capital_b_stops_calling_counts_what_comes_and_calls_for_what_still_waits(written: Written) -> None:
    async with cockpit(Play.begin(), calling=ALWAYS) as seat:
        await seat.press("B")
        await seat.sees("☾ do not disturb")
        for scene in ("build", "test", "tag"):
            seat.play.ask(scene)
        await looked(seat)
        await seat.sees("☾ do not disturb · 3 came", "3 waiting")
        assert written.bells == 0
        seat.play.approve("2")
        await looked(seat)
        await seat.sees("☾ do not disturb · 2 came")
        await seat.press("B")
        await seat.until(lambda: written.bells == 1)
        assert "2 new calls from site builder, release agent · 2 wait for you" in written.text
        await seat.until(lambda: "☾" not in seat.text())


async def test_quiet_hours_say_so_and_end_with_a_call_for_what_came(written: Written) -> None:
    play = Play.begin()
    assert time.strftime("%H:%M", time.gmtime(play.clock())) == "22:13"
    async with cockpit(play, calling=ALWAYS.model_copy(update={"quiet": "22:00-23:00"})) as seat:
        await seat.sees("☾ quiet until 23:00")
        play.ask("build")
        await looked(seat)
        await seat.sees("☾ quiet until 23:00 · 1 came")
        assert written.bells == 0
        later(play, 3600)
        await looked(seat)
        assert written.bells == 1
        await seat.until(lambda: "☾" not in seat.text())


async def test_the_users_program_is_given_the_news(tmp_path: Path, written: Written) -> None:
    news = tmp_path / "news"
    copy = f"import pathlib, sys; pathlib.Path({str(news)!r}).write_bytes(sys.stdin.buffer.read())"
    settings = ALWAYS.model_copy(update={"command": (sys.executable, "-c", copy), "command_timeout_s": 60.0})
    async with cockpit(Play.begin(), calling=settings) as seat:
        seat.play.ask("clean-by-name")
        await seat.until(lambda: news.exists() and news.read_bytes().endswith(b"\n"))
        assert json.loads(news.read_bytes())["calls"][0]["command"] == "rm -rf ./build"


async def test_a_program_that_fails_is_told_of_once(written: Written) -> None:
    settings = ALWAYS.model_copy(update={"command": ("/nowhere/at-all",)})
    told: list[str] = []
    async with cockpit(Play.begin(), calling=settings) as seat:
        tell = seat.screen.tell
        seat.screen.tell = lambda text, **options: (told.append(text), tell(text, **options))  # type: ignore[method-assign]
        for scene in ("build", "test", "tag"):
            seat.play.ask(scene)
            await looked(seat)
            await seat.until(lambda: not [w for w in seat.app.workers if w.name == "call-command" and w.is_running])
            later(seat.play)
        assert told == [
            "The program /nowhere/at-all that calls you has failed: it cannot be started: No such file or directory."
        ]
        assert written.bells == 3


async def test_a_cockpit_that_comes_back_does_not_call_again_for_what_it_called_for(written: Written) -> None:
    play = Play.begin()
    async with cockpit(play, calling=ALWAYS) as seat:
        play.ask("build")
        await looked(seat)
        assert written.bells == 1
        later(play)
        seat.screen.caller.changed(tuple(play.stage.board.calls))
        assert written.bells == 1
