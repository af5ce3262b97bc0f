"""A cockpit that calls: what reaches the terminal, who counts as away, and what is kept back and told."""

import asyncio
import json
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.drivers.headless_driver import HeadlessDriver
from textual.events import AppBlur, AppFocus

from tests.pictures import universal_time
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario, workday
from whisper_tui.model.api import Presence
from whisper_tui.model.errors import NotAllowed, Refused
from whisper_tui.model.push_endpoint import PushOrder
from whisper_tui.model.run import Stall
from whisper_tui.notify.notifier import BackgroundNotifier
from whisper_tui.notify.notify_settings import NotifySettings
from whisper_tui.notify.phone_push import PhonePush
from whisper_tui.supervisor.sessions import CockpitPresences

PHONE_PAGE = Path(__file__).parents[2] / "docs" / "phone.md"
ALWAYS = NotifySettings(when="always", title=False)


class TerminalLog:
    """What reached the terminal itself."""

    def __init__(self) -> None:
        self.text = ""

    @property
    def bells(self) -> int:
        """Bells that are not the end of another sequence."""
        return re.sub(r"\x1b\][^\a]*\a", "", self.text).count("\a")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> TerminalLog:
    found = TerminalLog()

    def write(self: HeadlessDriver, data: str) -> None:
        found.text += data

    monkeypatch.setattr(HeadlessDriver, "write", write)
    return found


@pytest.fixture(autouse=True)
def outside_of_a_multiplexer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("TMUX", raising=False)
    with universal_time():
        yield


def later(scenario: Scenario, seconds: float = 11) -> None:
    scenario.clock.advance(seconds)


async def notifier_checked(cockpit: Cockpit) -> None:
    """Everything that has happened is on the board, and the cockpit has looked whether to call."""
    await cockpit.settled()
    cockpit.screen.notifier.look()
    await cockpit.pilot.pause()


async def test_a_new_call_rings_the_bell_and_sends_a_notification(written: TerminalLog) -> None:
    async with open_cockpit(Scenario.begin(), notifications=ALWAYS) as cockpit:
        cockpit.scenario.ask("build")
        await notifier_checked(cockpit)
        assert written.bells == 1
        assert written.text.count("\x1b]9;whisper_tui: 1 new call from site builder · 1 waits for you\a") == 1
        await notifier_checked(cockpit)
        assert written.bells == 1


@pytest.mark.slow
async def test_disabled_channels_write_nothing(written: TerminalLog) -> None:
    silent = NotifySettings(when="always", bell=False, notify="off", title=False)
    async with open_cockpit(Scenario.begin(), notifications=silent) as cockpit:
        cockpit.scenario.ask("build")
        await notifier_checked(cockpit)
        assert written.bells == 0
        assert not re.search(r"\x1b\](9|777|2);", written.text)


async def test_the_terminal_title_counts_and_is_restored(written: TerminalLog) -> None:
    async with open_cockpit(workday(), notifications=NotifySettings(when="never")) as cockpit:
        await cockpit.until(lambda: "\x1b]2;(3) whisper_tui\a" in written.text)
        cockpit.scenario.approve("7")
        await cockpit.until(lambda: "\x1b]2;(2) whisper_tui\a" in written.text)
        assert "\x1b[22;2t" in written.text
        assert written.bells == 0
    assert written.text.rstrip().endswith("\x1b[23;2t")


@pytest.mark.slow
async def test_notifications_start_when_the_person_leaves(written: TerminalLog) -> None:
    async with open_cockpit(Scenario.begin(), notifications=NotifySettings(title=False)) as cockpit:
        await cockpit.press("down")
        cockpit.scenario.ask("build")
        await notifier_checked(cockpit)
        assert written.bells == 0
        later(cockpit.scenario, 29)
        await notifier_checked(cockpit)
        assert written.bells == 0
        later(cockpit.scenario, 2)
        await notifier_checked(cockpit)
        assert written.bells == 1
        await cockpit.press("down")
        later(cockpit.scenario, 20)
        cockpit.scenario.ask("test")
        await notifier_checked(cockpit)
        assert written.bells == 1


@pytest.mark.slow
async def test_another_window_with_the_focus_means_away(written: TerminalLog) -> None:
    async with open_cockpit(Scenario.begin(), notifications=NotifySettings(title=False)) as cockpit:
        await cockpit.press("down")
        cockpit.app.post_message(AppBlur())
        await cockpit.until(lambda: not cockpit.app.app_focus)
        cockpit.scenario.ask("build")
        await notifier_checked(cockpit)
        assert written.bells == 1
        cockpit.app.post_message(AppFocus())
        await cockpit.until(lambda: cockpit.app.app_focus)
        later(cockpit.scenario)
        cockpit.scenario.ask("test")
        await notifier_checked(cockpit)
        assert written.bells == 1


@pytest.mark.slow
async def test_capital_b_mutes_counts_new_calls_and_notifies_about_them_later(written: TerminalLog) -> None:
    async with open_cockpit(Scenario.begin(), notifications=ALWAYS) as cockpit:
        await cockpit.press("B")
        await cockpit.sees("☾ do not disturb")
        for scene in ("build", "test", "tag"):
            cockpit.scenario.ask(scene)
        await notifier_checked(cockpit)
        await cockpit.sees("☾ do not disturb · 3 new", "3 waiting")
        assert written.bells == 0
        cockpit.scenario.approve("2")
        await notifier_checked(cockpit)
        await cockpit.sees("☾ do not disturb · 2 new")
        await cockpit.press("B")
        await cockpit.until(lambda: written.bells == 1)
        assert "2 new calls from site builder, release agent · 2 wait for you" in written.text
        await cockpit.until(lambda: "☾" not in cockpit.text())


async def test_quiet_hours_are_shown_and_end_with_a_notification(written: TerminalLog) -> None:
    scenario = Scenario.begin()
    assert time.strftime("%H:%M", time.gmtime(scenario.clock())) == "22:13"
    async with open_cockpit(scenario, notifications=ALWAYS.model_copy(update={"quiet": "22:00-23:00"})) as cockpit:
        await cockpit.sees("☾ quiet until 23:00")
        scenario.ask("build")
        await notifier_checked(cockpit)
        await cockpit.sees("☾ quiet until 23:00 · 1 new")
        assert written.bells == 0
        later(scenario, 3600)
        await notifier_checked(cockpit)
        assert written.bells == 1
        await cockpit.until(lambda: "☾" not in cockpit.text())


class Desk:
    """Who is at the cockpits, as they have reported."""

    somebody = False
    muted = False


class Background:
    """The notifier of a supervisor, over a played board."""

    def __init__(self, scenario: Scenario, settings: NotifySettings, push: PhonePush | None = None) -> None:
        self.scenario = scenario
        self.people = Desk()
        self.problems: list[str] = []
        self.notifier = BackgroundNotifier(
            settings, scenario.supervisor.board, self.people, self.problems.append, scenario.clock, push=push
        )
        self._seen = 0

    async def look(self) -> None:
        """Tell it what has happened, and wait until everything is delivered."""
        events = self.scenario.supervisor.events
        for event in events[self._seen :]:
            self.notifier.on_event(event)
        self._seen = len(events)
        self.notifier.look()
        await asyncio.gather(*self.notifier._deliveries)


def notes(file: Path) -> tuple[str, ...]:
    """A program that adds what it is given to a file."""
    add = f"import sys; open({str(file)!r}, 'ab').write(sys.stdin.buffer.read())"
    return (sys.executable, "-c", add)


def given(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def test_the_users_program_gets_the_notification(tmp_path: Path) -> None:
    settings = ALWAYS.model_copy(update={"command": notes(tmp_path / "news"), "command_timeout_s": 60.0})
    background = Background(Scenario.begin(), settings)
    background.scenario.ask("clean-by-name")
    await background.look()
    await background.look()
    (news,) = given(tmp_path / "news")
    assert news["calls"][0]["command"] == "rm -rf cache"


@pytest.mark.slow
async def test_a_failing_program_is_reported_once(written: TerminalLog) -> None:
    settings = ALWAYS.model_copy(update={"command": ("/nowhere/at-all",)})
    background = Background(Scenario.begin(), settings)
    async with open_cockpit(background.scenario, notifications=settings) as cockpit:
        for scene in ("build", "test", "tag"):
            cockpit.scenario.ask(scene)
            await notifier_checked(cockpit)
            await background.look()
            later(cockpit.scenario)
        told = "The notification program /nowhere/at-all failed: cannot be started: No such file or directory"
        assert background.problems == [told]
        assert written.bells == 3
        cockpit.scenario.supervisor.notify_problem = told
        await cockpit.sees("The notification program /nowhere/at-all failed:")


async def test_a_program_that_works_again_clears_the_problem(tmp_path: Path) -> None:
    program = tmp_path / "program"
    background = Background(Scenario.begin(), ALWAYS.model_copy(update={"command": (str(program),)}))
    background.scenario.ask("build")
    await background.look()
    program.write_text("#!/bin/sh\ncat > /dev/null\n")
    program.chmod(0o700)
    later(background.scenario)
    background.scenario.ask("test")
    await background.look()
    assert [bool(problem) for problem in background.problems] == [True, False]


async def test_the_program_is_only_started_while_nobody_is_at_a_cockpit(
    tmp_path: Path,
) -> None:
    settings = NotifySettings(command=notes(tmp_path / "news"), command_timeout_s=60.0)
    background = Background(Scenario.begin(), settings)
    background.people.somebody = True
    background.scenario.ask("build")
    background.notifier.stalled({"1": "needs-input"})
    await background.look()
    assert given(tmp_path / "news") == []
    background.people.somebody = False
    await background.look()
    assert [news["event"] for news in given(tmp_path / "news")] == ["waiting"]


async def test_do_not_disturb_and_quiet_hours_apply_to_the_program_too(tmp_path: Path) -> None:
    settings = ALWAYS.model_copy(update={"command": notes(tmp_path / "news"), "command_timeout_s": 60.0})
    background = Background(Scenario.begin(), settings)
    background.people.muted = True
    background.scenario.ask("build")
    await background.look()
    assert given(tmp_path / "news") == []
    background.people.muted = False
    await background.look()
    assert len(given(tmp_path / "news")) == 1
    quiet = Background(Scenario.begin(), settings.model_copy(update={"quiet": "22:00-23:00"}))
    quiet.scenario.ask("build")
    await quiet.look()
    assert len(given(tmp_path / "news")) == 1


class CountedPhones:
    """Phones that want pushes, as far as rounds of these are counted."""

    def __init__(self) -> None:
        self.rounds = 0
        self.problem = ""

    def push_orders(self) -> tuple[PushOrder, ...]:
        self.rounds += 1
        if self.problem:
            raise Refused(self.problem)
        return ()

    def push_gone(self, order: PushOrder) -> None:
        raise AssertionError(order)


async def test_phones_are_woken_under_the_same_rules() -> None:
    phones = CountedPhones()
    background = Background(Scenario.begin(), NotifySettings(title=False), PhonePush(phones, addresses=lambda *_: ()))
    background.people.somebody = True
    background.scenario.ask("build")
    await background.look()
    assert phones.rounds == 0
    background.people.somebody = False
    await background.look()
    await background.look()
    assert phones.rounds == 1
    # Two within ten seconds share one, and a person who wants no notifications gets none.
    background.scenario.ask("test")
    background.scenario.ask("tag")
    await background.look()
    assert phones.rounds == 1
    background.people.muted = True
    later(background.scenario)
    await background.look()
    assert phones.rounds == 1
    background.people.muted = False
    await background.look()
    assert phones.rounds == 2
    # The page of a phone shows calls that wait, and nothing else.
    later(background.scenario)
    background.notifier.stalled({"1": "needs-input"})
    await background.look()
    assert phones.rounds == 2
    for settings in (ALWAYS.model_copy(update={"quiet": "22:00-23:00"}), NotifySettings(when="never")):
        quiet = Background(Scenario.begin(), settings, PhonePush(phones, addresses=lambda *_: ()))
        quiet.scenario.ask("build")
        await quiet.look()
    assert phones.rounds == 2


@pytest.mark.skipif(not Path("/usr/bin/curl").exists(), reason="there is no curl")
async def test_ntfy_gets_one_text_whatever_waits() -> None:
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        (length,) = re.findall(rb"(?i)content-length: (\d+)", head)
        got.append(head + await reader.readexactly(int(length)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    topic = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/TOPIC"
    # The page's own lines, sent to a server of this test. A UnifiedPush app gives an address in the same way.
    (block,) = re.findall(r"```toml\n(\[calling\]\n.*?)```", PHONE_PAGE.read_text(), re.DOTALL)
    assert block.count("https://ntfy.sh/TOPIC") == 1
    command = tomllib.loads(block.replace("https://ntfy.sh/TOPIC", topic))["calling"]["command"]
    settings = NotifySettings(title=False, command=tuple(command), command_timeout_s=60.0)
    async with server:
        for scene in ("clean-by-name", "tag"):
            background = Background(Scenario.begin(), settings)
            background.people.somebody = True
            background.scenario.ask(scene)
            await background.look()
            background.people.somebody = False
            await background.look()
            await background.look()
            assert background.problems == []
    first, second = got
    assert first == second and first.endswith(b"\r\n\r\nCalls wait for you")
    head, _, _ = first.partition(b"\r\n\r\n")
    request, *headers = head.decode().split("\r\n")
    assert request == "POST /TOPIC HTTP/1.1"
    assert {header.partition(":")[0] for header in headers} == {
        "Host", "User-Agent", "Accept", "Content-Length", "Content-Type",
    }  # fmt: skip


async def test_a_problem_with_pushes_is_reported_until_they_work() -> None:
    phones = CountedPhones()
    background = Background(Scenario.begin(), ALWAYS, PhonePush(phones, addresses=lambda *_: ()))
    for problem in ("the key is damaged", "the key is damaged", ""):
        phones.problem = problem
        background.scenario.ask("build")
        later(background.scenario)
        await background.look()
    assert background.problems == ["Pushes to phones do not arrive: the key is damaged", ""]


async def test_the_program_gets_runs_that_need_input_or_are_stopped(tmp_path: Path) -> None:
    settings = ALWAYS.model_copy(update={"command": notes(tmp_path / "news"), "command_timeout_s": 60.0})
    scenario = Scenario.begin()
    scenario.approve(scenario.ask("build"))
    background = Background(scenario, settings)
    background.notifier.stalled({"1": "needs-input", "999": "stopped"})
    await background.look()
    background.notifier.stalled({"1": "stopped"})
    await background.look()
    await background.look()
    told = [(news["event"], [call["id"] for call in news["calls"]]) for news in given(tmp_path / "news")]
    assert told == [("needs-input", ["1"]), ("stopped", ["1"])]


@pytest.mark.slow
async def test_a_cockpit_rings_for_a_run_that_needs_input_and_for_one_that_others_have_stopped(
    written: TerminalLog,
) -> None:
    scenario = Scenario.begin()
    scenario.approve(scenario.ask("build"))
    async with open_cockpit(scenario, notifications=ALWAYS) as cockpit:
        scenario.supervisor.stalled = {"1": Stall(waits="reads", silent_since=scenario.clock())}
        await cockpit.until(lambda: "1 command of site builder needs input" in written.text)
        scenario.supervisor.stalled = {"1": Stall(stopped=True)}
        await cockpit.until(lambda: "1 command of site builder is stopped" in written.text)
        assert written.bells == 2


async def test_an_answer_about_runs_that_stand_still_may_come_after_the_cockpit_has_closed() -> None:
    scenario = workday()
    running = next(iter(scenario.supervisor.board.running))
    async with open_cockpit(scenario) as cockpit:
        watch = cockpit.screen.run_watch
    scenario.supervisor.stalled = {running: Stall(stopped=True)}
    await watch._look()
    assert watch.of(running).stopped


async def test_a_cockpit_leaves_the_program_to_the_supervisor(tmp_path: Path, written: TerminalLog) -> None:
    settings = ALWAYS.model_copy(update={"command": notes(tmp_path / "news"), "desktop": True})
    async with open_cockpit(Scenario.begin(), notifications=settings) as cockpit:
        cockpit.scenario.ask("build")
        await notifier_checked(cockpit)
        assert written.bells == 1
        assert not [worker for worker in cockpit.app.workers if worker.name.startswith("notify")]
    assert given(tmp_path / "news") == []


async def test_a_cockpit_reports_whether_somebody_is_there_and_wants_no_notifications() -> None:
    async with open_cockpit(Scenario.begin(), notifications=NotifySettings(title=False)) as cockpit:
        supervisor, notifier = cockpit.scenario.supervisor, cockpit.screen.notifier
        await cockpit.press("down")
        await cockpit.until(lambda: supervisor.presence is not None and supervisor.presence.present)
        later(cockpit.scenario, 31)
        notifier.report_presence()
        await cockpit.until(lambda: not supervisor.presence.present)
        await cockpit.press("B")
        await cockpit.until(lambda: supervisor.presence.present and supervisor.presence.muted)


async def test_a_cockpit_that_may_not_report_does_not_retry() -> None:
    async with open_cockpit(Scenario.begin(), notifications=ALWAYS) as cockpit:
        asked = []

        async def refuse(presence: Presence) -> None:
            asked.append(presence)
            raise NotAllowed("an agent has started this terminal")

        cockpit.scenario.supervisor.report_presence = refuse  # type: ignore[method-assign]
        for _ in range(3):
            cockpit.screen.notifier.report_presence()
            await cockpit.settled()
        await cockpit.until(lambda: asked)
        cockpit.screen.notifier.report_presence()
        await cockpit.settled()
        assert len(asked) == 1


async def test_a_change_is_reported_at_once_and_the_end_as_well() -> None:
    async with open_cockpit(Scenario.begin(), notifications=NotifySettings(title=False)) as cockpit:
        supervisor = cockpit.scenario.supervisor
        await cockpit.press("down")
        await cockpit.until(lambda: supervisor.presence is not None and supervisor.presence.present)
        later(cockpit.scenario, 31)
        await cockpit.until(lambda: not supervisor.presence.present)
        await cockpit.press("down")
        await cockpit.until(lambda: supervisor.presence.present)
    assert not supervisor.presence.present


def test_a_cockpit_that_is_gone_counts_as_present_for_25_seconds() -> None:
    now = [100.0]
    presences = CockpitPresences(lambda: now[0])
    presences.report(Presence(cockpit="a", present=True, muted=True))
    presences.report(Presence(cockpit="b", present=False))
    assert presences.somebody and presences.muted
    presences.report(Presence(cockpit="a", present=False))
    assert not presences.somebody and not presences.muted
    presences.report(Presence(cockpit="b", present=True))
    now[0] += 25.1
    assert not presences.somebody


async def test_a_reconnected_cockpit_does_not_repeat_notifications(written: TerminalLog) -> None:
    scenario = Scenario.begin()
    async with open_cockpit(scenario, notifications=ALWAYS) as cockpit:
        scenario.ask("build")
        await notifier_checked(cockpit)
        assert written.bells == 1
        later(scenario)
        cockpit.screen.notifier.changed(scenario.supervisor.board.calls.lines(scenario.supervisor.board.calls))
        assert written.bells == 1
