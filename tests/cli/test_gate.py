"""The gate, which a client takes for its shell: approved commands run in it, and every other one is a new call."""

import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.agent_shell import Shell, finished, rewritten, shell
from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.outside import outside_only

__all__ = ["shell"]
pytestmark = outside_only

REPLACED = "touch replaced; pwd; exit 7"
DENIED = "no such thing"


class GatedShell:
    """The shell tool of Claude Code behind the gate."""

    def __init__(self, shell: Shell, *, deadline_s: float = 60) -> None:
        self.shell = shell
        # The client and its hook have the variable from the user's session, whatever that of the tests is.
        shell.environment["SHELL"] = "/bin/bash"
        self.cwd_file = shell.instance.root / "cwd"
        self.deadline_s = deadline_s
        self.environment = {**os.environ, "CLAUDE_CODE_SESSION_ID": "agent-1", "SHELL": "/state/gates/claude-bash"}

    def words(self, command: str) -> list[str]:
        """The command line with which the client starts its shell."""
        text = f"eval {shlex.quote(command)} < /dev/null && pwd -P >| {shlex.quote(str(self.cwd_file))}"
        return self.gate("-c", text)

    def gate(self, *arguments: str) -> list[str]:
        options = ("--home", str(self.shell.instance.root), "--deadline", str(self.deadline_s), "--shell", "/bin/bash")
        return [*PROGRAM, "gate", *options, "claude", "--", *arguments]

    def run(self, command: str) -> Any:
        return self.shell.run(self.words(command), env=self.environment)

    def start(self, command: str) -> "subprocess.Popen[bytes]":
        return self.shell.start(
            self.words(command), env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )


@pytest.fixture
def gated(shell: Shell) -> GatedShell:
    """A client whose shell is the gate."""
    return GatedShell(shell)


@pytest.mark.slow
def test_an_approved_command_runs_in_the_shell_behind_the_gate(gated: GatedShell) -> None:
    asking = gated.shell.ask("echo $SHELL; exit 7")
    gated.shell.approve(gated.shell.waiting())
    ran = gated.run(rewritten(finished(asking)))
    assert (ran.stdout, ran.stderr, ran.returncode) == (b"/bin/bash\n", b"", 7)
    assert len(gated.shell.instance.seen("history")) == 1


@pytest.mark.slow
def test_the_client_follows_an_approved_cd_through_the_gate(gated: GatedShell) -> None:
    asking = gated.shell.ask("mkdir build && cd build")
    gated.shell.approve(gated.shell.waiting())
    assert gated.run(rewritten(finished(asking))).returncode == 0
    assert gated.cwd_file.read_text().strip() == str(gated.shell.instance.workspace / "build")


@pytest.mark.slow
def test_a_command_in_the_place_of_the_approved_one_is_held_in_the_same_session(gated: GatedShell) -> None:
    asking = gated.shell.ask("touch approved")
    gated.shell.approve(gated.shell.waiting())
    finished(asking)
    running = gated.start(REPLACED)
    call = gated.shell.waiting()
    assert not (gated.shell.instance.workspace / "replaced").exists()
    shown = gated.shell.row(call)
    assert (shown["command"], shown["session_id"], shown["past_hook"]) == (REPLACED, "s1", True)
    listed = next(row for row in gated.shell.instance.seen("list") if row["id"] == call)
    assert [(risk["id"], risk["grave"]) for risk in listed["risks"]] == [("past-hook", True)]
    gated.shell.approve(call)
    out, err = running.communicate(timeout=ANSWER_S)
    assert (out, err, running.returncode) == (f"{gated.shell.instance.workspace}\n".encode(), b"", 7)
    assert not (gated.shell.instance.workspace / "approved").exists()


@pytest.mark.slow
def test_a_denial_at_the_gate_is_the_output_of_the_command(gated: GatedShell) -> None:
    running = gated.start(REPLACED)
    gated.shell.deny(gated.shell.waiting(), DENIED)
    out, err = running.communicate(timeout=ANSWER_S)
    assert (out, running.returncode) == (b"", 126)
    assert DENIED in err.decode() and "Nothing ran" in err.decode()
    assert not (gated.shell.instance.workspace / "replaced").exists()


@pytest.mark.slow
def test_at_the_deadline_nothing_has_run_and_the_same_command_waits_on(gated: GatedShell) -> None:
    gated.shell.instance.ready()
    gated.deadline_s = 2
    ran = gated.run(REPLACED)
    assert ran.returncode == 126 and b"Not approved yet, and nothing ran" in ran.stderr
    call = gated.shell.waiting()
    gated.deadline_s = 60
    running = gated.start(REPLACED)
    gated.shell.instance.until(lambda: gated.shell.row(call)["agent_gave_up"] is None)
    gated.shell.approve(call)
    assert running.communicate(timeout=ANSWER_S)[0] == f"{gated.shell.instance.workspace}\n".encode()


@pytest.mark.slow
def test_a_client_that_ends_its_shell_takes_its_command_back(gated: GatedShell) -> None:
    running = gated.start(REPLACED)
    call = gated.shell.waiting()
    os.kill(_program_below(running, "gate"), signal.SIGKILL)
    running.kill()
    running.communicate()
    gated.shell.instance.until(lambda: gated.shell.row(call)["agent_gave_up"])
    assert not (gated.shell.instance.workspace / "replaced").exists()


@pytest.mark.slow
def test_the_approved_text_itself_needs_no_second_approval(gated: GatedShell) -> None:
    asking = gated.shell.ask("touch approved")
    gated.shell.approve(gated.shell.waiting())
    finished(asking)
    assert gated.run("touch approved").returncode == 0
    assert (gated.shell.instance.workspace / "approved").exists()
    assert len(gated.shell.instance.seen("history")) == 1


@pytest.mark.slow
def test_a_ticket_of_another_whisper_tui_is_a_new_call(gated: GatedShell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "whisper-tui"
    elsewhere.write_text(f"#!/bin/sh\ntouch {tmp_path}/elsewhere\n")
    elsewhere.chmod(0o755)
    running = gated.start(f"{elsewhere} exec 1-ab")
    gated.shell.deny(gated.shell.waiting(), DENIED)
    running.communicate(timeout=ANSWER_S)
    assert running.returncode == 126
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
def test_without_a_supervisor_nothing_runs(gated: GatedShell) -> None:
    root = gated.shell.instance.root
    (root / "config" / "config.toml").write_text("this is no TOML")
    ran = gated.run(REPLACED)
    assert ran.returncode == 126
    assert b"the command was not run" in ran.stderr
    assert not (gated.shell.instance.workspace / "replaced").exists()


@pytest.mark.parametrize("arguments", [(), ("-l",), ("script.sh",), ("-c",), ("-c", "touch ran", "more"), ("-s",)])
def test_commands_on_standard_input_and_scripts_do_not_run(gated: GatedShell, arguments: tuple[str, ...]) -> None:
    workspace = gated.shell.instance.workspace
    (workspace / "script.sh").write_text("touch ran\n")
    ran = gated.shell.run(gated.gate(*arguments), env=gated.environment, input=b"touch ran\n")
    assert ran.returncode == 126
    assert b"nothing ran" in ran.stderr
    assert not (workspace / "ran").exists()


def test_what_the_client_itself_asks_its_shell_is_answered(gated: GatedShell) -> None:
    foreign = gated.shell.instance.root / "env.sh"
    foreign.write_text("echo foreign\n")
    environment = {**gated.environment, "BASH_ENV": str(foreign)}
    ran = gated.shell.run(gated.gate("-c", "env"), env=environment)
    assert ran.returncode == 0
    assert b"foreign" not in ran.stdout
    assert "SHELL=/bin/bash" in ran.stdout.decode().splitlines()
    saved = gated.shell.instance.root / "shell-snapshots" / "snapshot-bash-1.sh"
    saved.parent.mkdir()
    script = f'SNAPSHOT_FILE={saved}\n echo "# Snapshot file" >| "$SNAPSHOT_FILE"'
    assert gated.shell.run(gated.gate("-c", "-l", script), env=gated.environment).returncode == 0
    assert saved.read_text() == "# Snapshot file\n"


def test_wrong_options_of_the_gate_let_nothing_run(gated: GatedShell) -> None:
    ran = gated.shell.run([*PROGRAM, "gate", "--nonsense", "claude", "--", "-c", "touch ran"], env=gated.environment)
    assert ran.returncode == 126
    assert not (gated.shell.instance.workspace / "ran").exists()


def _program_below(process: "subprocess.Popen[bytes]", verb: str) -> int:
    """The process that the agent has started with this verb."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            command = str(process.args[-1]).encode()
            if verb.encode() in words and command in words and not any(b"agent_program" in word for word in words):
                return int(entry.name)
    raise AssertionError(f"no {verb} runs")
