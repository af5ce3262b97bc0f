"""Whatever happens to a terminal, no program on it goes on for ever, burns a processor, or leaves it in raw mode."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.cli.agent_shell import Shell, shell
from tests.cli.conftest import PROGRAM, Instance
from tests.cli.terminal import Terminal, as_a_job, with_a_program_between
from tests.outside import outside_only
from tests.transports.scripted_model import ScriptedModel, text
from whisper_tui.wire.light_client import light_client

pytestmark = pytest.mark.slow

__all__ = ["shell"]

PROGRAMS: dict[str, tuple[list[str], bytes]] = {
    "cockpit": ([], b"\x1b[?1004h"),
    "demo": (["demo"], b"hours.txt"),
    "watch": (["watch"], b"Type help"),
    "logs": (["logs", "1", "--follow"], b"first"),
    "serve": (["serve", "--port", "0"], b"Whoever has this address"),
    "mcp over HTTP": (["mcp", "--http", "--port", "0"], b"--show-token prints it"),
}
"""Programs with a terminal, and what each of them shows once it is there."""

FULL_SCREEN = ("cockpit", "demo")
SERVERS = ("serve", "mcp over HTTP")


@pytest.fixture
def running(instance: Instance) -> Iterator[Callable[..., Terminal]]:
    """Starts a program on a terminal, and waits until it is there."""
    opened: list[Terminal] = []

    def start(name: str, *, controlling: bool = True, between: Callable[[list[str]], list[str]] = list) -> Terminal:
        words, ready = PROGRAMS[name]
        if name == "logs":
            instance.run("restart")
            instance.call("run_shell_command", command="echo first; sleep 600")
            instance.run("approve", "1")
        environment = {**os.environ, "TMPDIR": str(instance.root), "HOME": str(instance.root)}
        environment.pop("COLORTERM", None)
        given = between([*PROGRAM, *words, "--home", str(instance.root)])
        made = Terminal(given, environment, instance.workspace, controlling=controlling)
        opened.append(made)
        made.shows(ready)
        return made

    yield start
    for terminal in opened:
        terminal.__exit__(None, None, None)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.few(1)
def test_a_program_ends_when_its_terminal_is_closed(running: Callable[..., Terminal], name: str) -> None:
    terminal = running(name)
    terminal.hang_up()
    terminal.ends()


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in SERVERS])
@pytest.mark.few(1)
def test_a_program_ends_when_its_terminal_closes_without_a_signal(running: Callable[..., Terminal], name: str) -> None:
    terminal = running(name, controlling=False)
    terminal.hang_up()
    terminal.ends()


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_survives_its_terminal_and_is_idle(running: Callable[..., Terminal], name: str) -> None:
    terminal = running(name, controlling=False)
    terminal.hang_up()
    terminal.rests()


BECOMES_EXEC = """
import json, os, shlex, subprocess, sys
asked = subprocess.run(sys.argv[2:], input=sys.argv[1].encode(), capture_output=True, check=True)
words = shlex.split(json.loads(asked.stdout)["hookSpecificOutput"]["updatedInput"]["command"])
os.execvp(words[0], words)
"""
"""An agent that asks its hook, and becomes what it is given to run: the very process whose terminal is watched."""


def exec_on_a_terminal(shell: Shell, command: str, *, controlling: bool = True) -> Terminal:
    """The program that stands for an approved command."""
    words = [sys.executable, "-c", BECOMES_EXEC, shell.question(command).decode()]
    words += [*PROGRAM, "hook", "claude", "--home", str(shell.instance.root)]
    terminal = Terminal(words, dict(os.environ), shell.instance.workspace, controlling=controlling)
    shell.approve(shell.waiting())
    return terminal


@outside_only
def test_exec_ends_with_its_command_when_the_terminal_is_gone_and_rests_until_then(
    shell: Shell, instance: Instance
) -> None:
    with exec_on_a_terminal(shell, "echo first; sleep 600", controlling=False) as terminal:
        terminal.shows(b"first")
        terminal.hang_up()
        terminal.rests()
        with light_client(instance.home) as supervisor:
            by = {"surface": "library", "who": "tester"}
            supervisor.ask("signal", call_id="1", number=9, target="tree", by=by)
        terminal.ends()


@outside_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.few(1)
def test_exec_ends_its_command_with_the_signal_and_the_terminal_is_as_before(
    shell: Shell, number: signal.Signals
) -> None:
    with exec_on_a_terminal(shell, "echo first; sleep 600") as terminal:
        terminal.shows(b"first")
        terminal.process.send_signal(number)
        assert terminal.ends() in {-number, 128 + number}
        assert terminal.is_as_before


@pytest.mark.parametrize("event", ["window", "silence", "ctrl+c", "TERM", "HUP"])
@pytest.mark.few(1)
async def test_an_agent_that_stays_ends_with_its_terminal(instance: Instance, event: str) -> None:
    model = ScriptedModel(text("Nothing here."))
    words = [*PROGRAM, "agent", "what is here?", "--stay", "--model", "m", "--home", str(instance.root)]
    async with model.open():
        environment = {**os.environ, "OPENROUTER_API_KEY": "key"}
        with Terminal(
            [*words, "--base-url", model.url], environment, instance.workspace, controlling=event != "silence"
        ) as terminal:
            await asyncio.to_thread(terminal.shows, b"waiting for your next message")
            if event in {"window", "silence"}:
                terminal.hang_up()
            elif event == "ctrl+c":
                terminal.types(b"\x03")
            else:
                terminal.process.send_signal(signal.Signals[f"SIG{event}"])
            await asyncio.to_thread(terminal.ends)
            if event not in {"window", "silence"}:
                assert terminal.is_as_before
                assert b"Traceback" not in terminal.text


@pytest.mark.parametrize("name", FULL_SCREEN)
def test_a_program_below_another_one_ends_with_the_window(running: Callable[..., Terminal], name: str) -> None:
    terminal = running(name, between=with_a_program_between)
    (program, *_) = terminal.family()
    terminal.hang_up()
    with suppress(psutil.NoSuchProcess):
        program.wait(40)
    terminal.ends()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.one_in(4)
def test_a_signal_ends_it_and_the_terminal_is_as_before(
    running: Callable[..., Terminal], name: str, number: signal.Signals
) -> None:
    terminal = running(name)
    terminal.process.send_signal(number)
    code = terminal.ends()
    assert terminal.is_as_before
    assert b"Traceback" not in terminal.text and b"defect" not in terminal.text
    assert code in ({0} if name in SERVERS else {-number, 128 + number})


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.few(1)
def test_ctrl_c_ends_it(running: Callable[..., Terminal], name: str) -> None:
    terminal = running(name)
    terminal.types(b"\x03")
    terminal.ends()
    assert terminal.is_as_before
    assert b"Traceback" not in terminal.text


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.few(1)
def test_ctrl_z_gives_the_terminal_back_until_the_program_is_continued(
    running: Callable[..., Terminal], name: str
) -> None:
    terminal = running(name, between=as_a_job)
    (program, *_) = terminal.family()
    for _ in range(2):
        terminal.types(b"\x1a")
        _until(lambda: program.status() == psutil.STATUS_STOPPED)
        assert terminal.is_as_before
        program.send_signal(signal.SIGCONT)
        _until(lambda: program.status() != psutil.STATUS_STOPPED)
        if name in FULL_SCREEN:
            _until(lambda: not terminal.is_as_before)
    terminal.rests(1.0)
    program.send_signal(signal.SIGTERM)
    terminal.ends()
    assert terminal.is_as_before


@pytest.mark.parametrize("name", FULL_SCREEN)
def test_a_program_ends_although_its_terminal_is_blocked(running: Callable[..., Terminal], name: str) -> None:
    terminal = running(name)
    terminal.reading.clear()
    # Every switch of the theme draws everything: soon the terminal takes no more.
    for _ in range(25):
        terminal.types(b"t")
        time.sleep(0.02)
    terminal.settles()
    terminal.process.send_signal(signal.SIGTERM)
    terminal.ends()
    assert terminal.is_as_before


def test_the_cockpit_draws_on_its_terminal_though_standard_error_goes_elsewhere(
    instance: Instance, tmp_path: Path
) -> None:
    script = "import os, sys; os.dup2(os.open(sys.argv[1], os.O_RDWR), 2); os.execv(sys.argv[2], sys.argv[2:])"
    log = tmp_path / "log"
    log.touch()
    words = [sys.executable, "-c", script, str(log), *PROGRAM, "--home", str(instance.root)]
    with Terminal(words, dict(os.environ), instance.workspace) as terminal:
        terminal.shows(b"\x1b[?1004h")
        terminal.types(b"\x03")
        assert terminal.ends() == 0
    assert b"\x1b[?1004h" not in log.read_bytes()


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_terminal_that_cannot_show_a_full_screen_gets_the_plain_lines(instance: Instance) -> None:
    words = ["env", "TERM=dumb", *PROGRAM, "--home", str(instance.root)]
    with Terminal(words, dict(os.environ), instance.workspace) as terminal:
        terminal.shows(b"this is `whisper-tui watch`")
        terminal.shows(b"help")
        terminal.types(b"quit\n")
        assert terminal.ends() == 0
        assert b"\x1b" not in terminal.text


def test_a_cockpit_at_rest_with_output_on_the_screen_hardly_wakes_up(instance: Instance) -> None:
    (instance.root / "config" / "rules.toml").unlink()
    assert instance.run("call", "run_shell_command", '{"command": "pwd"}').returncode == 0
    with Terminal([*PROGRAM, "--home", str(instance.root)], dict(os.environ), instance.workspace) as terminal:
        terminal.shows(b"stdout")
        program = psutil.Process(terminal.process.pid)

        def wakes_up_seldom() -> bool:
            before = program.num_ctx_switches().voluntary
            time.sleep(2)
            return program.num_ctx_switches().voluntary - before < 2 * 30

        _until(wakes_up_seldom)
        terminal.process.terminate()
        terminal.ends()


@pytest.mark.parametrize("blocked", [True, False])
def test_last_words_wait_for_no_terminal_that_is_blocked(blocked: bool) -> None:
    script = """if True:
        import os, sys
        from whisper_tui.cli.standard_streams import let_go_of_a_still_terminal
        os.set_blocking(1, False)
        while sys.argv[1:]:
            try:
                os.write(1, b"x" * 4096)
            except BlockingIOError:
                break
        os.set_blocking(1, True)
        let_go_of_a_still_terminal()
        print("last words", file=sys.stderr)
        print("more of them")
    """
    words = [sys.executable, "-c", script, *["blocked"] * blocked]
    with Terminal(words, dict(os.environ), Path.cwd()) as terminal:
        if blocked:
            terminal.reading.clear()
        else:
            terminal.shows(b"last words\r\nmore of them")
        assert terminal.ends() == 0
