"""Being called: once for each call that waits, only when nobody looks, in every way set; and nothing is lost."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pictures import universal_time
from tests.tui.scenes import ME, ROOT, Scenario, workday
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.event import Decided, Judged
from whisper_tui.model.verdict import Resolved, Risk, Verdict
from whisper_tui.notify.delivery import (
    LONGEST,
    desktop_program,
    notification,
    one_safe_line,
    run_program,
    terminal_title,
)
from whisper_tui.notify.notification_text import alarm_text, notification_json, stall_text, waiting_text, waiting_title
from whisper_tui.notify.notifier import PendingNotifications, quiet_until
from whisper_tui.notify.notify_settings import NotifySettings

ALWAYS = NotifySettings(when="always", title=False)


@pytest.fixture(autouse=True)
def outside_of_a_multiplexer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("TMUX", raising=False)
    with universal_time():
        yield


def later(scenario: Scenario, seconds: float = 11) -> None:
    scenario.clock.advance(seconds)


def test_each_waiting_call_is_notified_once() -> None:
    scenario = Scenario.begin()
    summons = PendingNotifications(ALWAYS, scenario.clock)
    call = scenario.ask("build")
    for _ in range(3):
        summons.changed(call, scenario.supervisor.board.calls[call])
    assert summons.due(away=True) == (call,)
    later(scenario)
    summons.changed(call, scenario.supervisor.board.calls[call])
    assert summons.due(away=True) == ()


def test_calls_that_waited_before_the_start_are_not_notified() -> None:
    scenario = workday()
    scenario.clock.advance(5)
    summons = PendingNotifications(ALWAYS, scenario.clock)
    for call, record in scenario.supervisor.board.calls.items():
        summons.changed(call, record)
    assert summons.due(away=True) == ()


def test_calls_that_are_decided_in_time_are_not_notified() -> None:
    scenario = Scenario.begin()
    summons = PendingNotifications(NotifySettings(when="away"), scenario.clock)
    call = scenario.ask("build")
    summons.changed(call, scenario.supervisor.board.calls[call])
    assert summons.due(away=False) == ()
    scenario.approve(call)
    summons.changed(call, scenario.supervisor.board.calls[call])
    assert summons.due(away=True) == ()


def test_requeued_calls_are_notified_again() -> None:
    scenario = Scenario.begin()
    summons = PendingNotifications(ALWAYS, scenario.clock)
    call = scenario.ask("build")
    summons.changed(call, scenario.supervisor.board.calls[call])
    assert summons.due(away=True) == (call,)
    later(scenario)
    scenario.supervisor.happen(Decided(at=scenario.clock(), call_id=call, decision=Approve(), by=ME))
    summons.changed(call, scenario.supervisor.board.calls[call])
    again = Verdict(kind="ask", reason="the directory is another one")
    scenario.supervisor.happen(Judged(at=scenario.clock(), call_id=call, verdict=again, resolved=Resolved()))
    summons.changed(call, scenario.supervisor.board.calls[call])
    assert summons.due(away=True) == (call,)


def test_calls_in_quick_succession_share_a_notification() -> None:
    scenario = Scenario.begin()
    summons = PendingNotifications(ALWAYS, scenario.clock)
    first = scenario.ask("build")
    summons.changed(first, scenario.supervisor.board.calls[first])
    assert summons.due(away=True) == (first,)
    more = [scenario.ask("test"), scenario.ask("tag")]
    for call in more:
        summons.changed(call, scenario.supervisor.board.calls[call])
    assert summons.due(away=True) == ()
    later(scenario, 9.9)
    assert summons.due(away=True) == ()
    later(scenario, 0.2)
    assert summons.due(away=True) == tuple(more)


@pytest.mark.parametrize(
    ("hours", "clock", "until"),
    [
        ("22:00-07:00", "23:30", "07:00"),
        ("22:00-07:00", "06:59", "07:00"),
        ("22:00-07:00", "07:00", None),
        ("22:00-07:00", "21:59", None),
        ("12:00-13:00", "12:00", "13:00"),
        ("12:00-13:00", "13:00", None),
        ("12:00-12:00", "12:00", None),
        ("", "12:00", None),
    ],
)
def test_quiet_hours_include_the_first_time_and_exclude_the_second(hours: str, clock: str, until: str | None) -> None:
    hour, minute = map(int, clock.split(":"))
    assert quiet_until(hours, 86_400.0 * 20_000 + hour * 3600 + minute * 60) == until


def test_a_notification_contains_no_escape_sequences_of_agents() -> None:
    adversarial = "x\x1b]0;owned\a\x9c\x07;more\x1b\\\n\u202e" + "y" * 500
    for kind in ("osc9", "osc777"):
        text = notification(kind, "title", adversarial)
        inner = text.removeprefix("\x1b]").removesuffix("\a")
        assert text.startswith("\x1b]") and text.endswith("\a")
        assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or c == "\u202e" for c in inner)
    assert notification("osc777", "title", "a;b").count(";") == 3
    assert len(one_safe_line(adversarial)) <= LONGEST
    assert terminal_title("\x1b]x\a").count("\x1b") == 1


def test_tmux_gets_the_sequence_in_a_passthrough() -> None:
    assert notification("osc9", "t", "b", tmux=True) == "\x1bPtmux;\x1b\x1b]9;t: b\a\x1b\\"


def test_the_desktop_program_gets_the_text_as_arguments() -> None:
    argv = desktop_program("t", "<b>--evil</b>\x1b", {"notify-send": "/bin/notify-send"}.get)
    assert argv == ("/bin/notify-send", "--app-name=whisper_tui", "--", "t", "&lt;b&gt;--evil&lt;/b&gt;␛")
    argv = desktop_program("t", 'say "x"', {"osascript": "/bin/osascript"}.get)
    assert argv is not None and argv[-3:] == ("--", "t", 'say "x"')
    assert not any("say" in word for word in argv[:-1])
    assert desktop_program("t", "b", lambda _: None) is None


def test_notifications_name_sessions_and_risks_but_no_command() -> None:
    scenario = workday()
    records = [scenario.supervisor.board.calls[call] for call in ("7", "8", "9")]
    words = waiting_text(records, scenario.supervisor.board)
    assert words == "3 new calls from site builder, release agent (destructive) · 3 wait for you"
    assert waiting_text(records[2:], scenario.supervisor.board) == "1 new call from release agent · 3 wait for you"
    gone = [records[0], records[1].model_copy(update={"agent_gave_up": "its session ended"})]
    assert "(destructive) · agent of 1 gone · 3 wait" in waiting_text(gone, scenario.supervisor.board)
    assert "release agent · agent gone · 3 wait" in waiting_text(
        [records[2].model_copy(update={"agent_gave_up": "Esc"})], scenario.supervisor.board
    )
    assert (waiting_title(0), waiting_title(3)) == ("whisper_tui", "(3) whisper_tui")
    assert (waiting_title(0, 1), waiting_title(3, 2)) == ("(1 input) whisper_tui", "(3, 2 input) whisper_tui")
    assert stall_text(records[:1], scenario.supervisor.board, "needs-input") == "1 command of site builder needs input"
    assert stall_text(records[:2], scenario.supervisor.board, "stopped") == "2 commands of site builder are stopped"


def test_a_notification_about_alarms_names_sessions_and_no_command() -> None:
    scenario = workday()
    records = [scenario.supervisor.board.calls[call] for call in ("7", "8")]
    told = alarm_text(records, scenario.supervisor.board)
    assert told == "ALARM: 2 approved calls of site builder: something else may have run"


def test_the_program_gets_everything_but_environments() -> None:
    scenario = Scenario.begin()
    spec = CommandSpec(
        command=Shell(text="curl -H 'Authorization: Bearer abcdef123456' https://garden.example"),
        cwd=ROOT,
        environment={"TOKEN": "secret-value"},
    )
    request = CallRequest(session_id="s1", tool="t", arguments={}, spec=spec)
    scenario.supervisor.ask(request, Verdict(kind="ask", reason="", risks=(Risk(id="network", sentence="x"),)))
    news = notification_json(list(scenario.supervisor.board.calls.values()), scenario.supervisor.board)
    content = json.loads(news)
    assert (content["event"], content["waiting"], content["new"]) == ("waiting", 1, 1)
    (row,) = content["calls"]
    assert (row["id"], row["session"], row["risks"]) == ("1", "site builder", ["network"])
    assert row["command"].startswith("curl -H 'Authorization:") and row["command"].endswith("https://garden.example")
    assert b"secret-value" not in news and b"abcdef123456" not in news and news.endswith(b"\n")


def test_the_program_gets_at_most_twenty_calls_in_full() -> None:
    scenario = Scenario.begin()
    for _ in range(50):
        scenario.ask("build")
    content = json.loads(notification_json(list(scenario.supervisor.board.calls.values()), scenario.supervisor.board))
    assert (content["new"], len(content["calls"])) == (50, 20)


async def test_a_program_reads_its_standard_input_and_ends(tmp_path: Path) -> None:
    copy = f"import pathlib, sys; pathlib.Path({str(tmp_path / 'news')!r}).write_bytes(sys.stdin.buffer.read())"
    assert await run_program((sys.executable, "-c", copy), b"news " * 50_000, 60) is None
    assert (tmp_path / "news").read_bytes() == b"news " * 50_000


@pytest.mark.parametrize(
    ("program", "complaint"),
    [("import sys; sys.exit(3)", "exited with 3"), ("import os; os.kill(os.getpid(), 9)", "exited with -9")],
)
async def test_a_failing_program_reports_its_exit_code(program: str, complaint: str) -> None:
    assert await run_program((sys.executable, "-c", program), b"x" * 1_000_000, 60) == complaint


async def test_a_missing_program_is_reported() -> None:
    problem = await run_program(("/nowhere/at-all",), b"", 60)
    assert problem == "cannot be started: No such file or directory"


@pytest.mark.slow
async def test_a_hanging_program_is_killed_with_its_children(tmp_path: Path) -> None:
    marks = tmp_path / "pids"
    program = (
        "import subprocess, os, pathlib, time; child = subprocess.Popen(['sleep', '600']); "
        f"pathlib.Path({str(marks)!r}).write_text(f'{{os.getpid()}} {{child.pid}}'); time.sleep(600)"
    )
    problem = await run_program((sys.executable, "-c", program), b"", 3)
    assert problem == "was still running after 3 s"
    child = int(marks.read_text().split()[1])
    until = time.monotonic() + 30
    while time.monotonic() < until and alive(child):
        time.sleep(0.02)
    assert not alive(child)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
