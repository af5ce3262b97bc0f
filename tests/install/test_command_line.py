"""`install`, `uninstall` and `doctor` as people run them."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import ANSWER_S, PROGRAM, Instance, instance  # noqa: F401
from tests.install.conftest import CLIENTS, Machine
from tests.warm_process import WarmProcess


def whisper(machine: Machine, *words: str) -> "subprocess.CompletedProcess[str]":
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = WarmProcess(words, env=machine.environ, cwd=machine.project, **streams)
    out, err = process.communicate(timeout=ANSWER_S)
    assert "Traceback" not in err
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def answered(machine: Machine, line: str, *words: str) -> tuple[int, str]:
    """Run it on a terminal on which somebody types one line. Returns the exit code and what it wrote."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        environment = {**machine.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
        process = subprocess.Popen(
            [*PROGRAM, *words],
            env=environment,
            cwd=machine.project,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        os.close(theirs)
        terminal.write(line.encode() + b"\n")
        out, _ = process.communicate(timeout=ANSWER_S)
    return process.returncode, out


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.few(1)
def test_the_change_is_shown_written_and_reverted(machine: Machine, client: str) -> None:
    done = whisper(machine, "install", client, "--yes")
    assert done.returncode == 0, done.stderr
    assert f"+++ {machine.home}" in done.stdout and "Wrote " in done.stdout
    assert "nothing to change" in whisper(machine, "install", client, "--yes").stdout
    gone = whisper(machine, "uninstall", client, "--yes")
    assert gone.returncode == 0, gone.stderr
    assert ("start no commands, because their shell was removed" in gone.stdout) is ("/gates/" in done.stdout)
    assert machine.files() == {}


def test_a_dry_run_shows_the_change_and_writes_nothing(machine: Machine) -> None:
    shown = whisper(machine, "install", "claude", "--dry-run")
    assert shown.returncode == 0
    assert "onFailure" in shown.stdout and "Nothing was written" in shown.stdout
    assert machine.files() == {}


def test_without_anybody_to_ask_nothing_is_written(machine: Machine) -> None:
    refused = whisper(machine, "install", "claude")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert machine.files() == {}


@pytest.mark.parametrize(("line", "code"), [("y\n", 0), ("n", 1), ("", 1)])
@pytest.mark.few(1)
def test_on_a_terminal_it_asks_first(machine: Machine, line: str, code: int) -> None:
    ended, out = answered(machine, line, "install", "gemini")
    assert ended == code
    assert "Write this? [y/N]" in out
    assert bool(machine.files()) is (code == 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "level"), [("3", "workspace"), ("workspace", "workspace"), ("", None), ("what?\n1", "nothing")]
)
@pytest.mark.few(1)
def test_on_a_terminal_it_asks_once_what_may_run_without_asking(
    machine: Machine, answer: str, level: str | None
) -> None:
    ended, out = answered(machine, f"y\n{answer}", "install", "gemini")
    assert ended == 0 and "1, 2 or 3 [2]:" in out and out.endswith("in which the calls of your agents appear.\n")
    rules = machine.home / ".config/whisper_tui/rules.toml"
    assert (rules.read_text() if rules.exists() else None) == (f'unasked = "{level}"\n' if level else None)
    if level:
        assert "What may run" not in answered(machine, "y", "uninstall", "gemini")[1]
        assert "What may run" not in answered(machine, "y", "install", "gemini")[1]


def test_without_a_terminal_it_says_what_runs_without_asking(machine: Machine) -> None:
    out = whisper(machine, "install", "gemini", "--yes").stdout
    assert "What may run without asking?" in out and "2 holds; whisper-tui unasked changes it." in out


def test_a_project_is_named_or_is_here(machine: Machine) -> None:
    assert whisper(machine, "install", "gemini", "--project", "--yes", "--no-hook").returncode == 0
    assert list(machine.files()) == ["work/project/.gemini/settings.json"]
    missing = whisper(machine, "install", "gemini", "--project", "nowhere", "--yes")
    assert missing.returncode == 2 and "nowhere" in missing.stderr


def test_a_request_that_installs_nothing_is_refused(machine: Machine) -> None:
    refused = whisper(machine, "install", "claude", "--no-hook", "--no-mcp", "--yes")
    assert refused.returncode == 2
    assert machine.files() == {}


def test_a_broken_file_is_a_sentence_and_an_exit_code(machine: Machine) -> None:
    path = machine.write(".claude/settings.json", "{\n\n!")
    refused = whisper(machine, "install", "claude", "--yes")
    assert refused.returncode == 5
    assert f"{path}, line 3" in refused.stderr
    assert path.read_text() == "{\n\n!"


@pytest.mark.slow
def test_the_instance_is_written_also_if_it_is_the_usual_one(machine: Machine) -> None:
    whisper(machine, "install", "claude", "--yes", "--home", str(machine.home / "mine"))
    assert f"--home {machine.home}/mine --deadline" in machine.text(".claude/settings.json")
    whisper(machine, "install", "claude", "--yes")
    config, state = machine.home / ".config/whisper_tui", machine.home / ".local/state/whisper_tui"
    assert f"hook claude --directories {config} {state} {state}/run --deadline" in machine.text(".claude/settings.json")
    args = machine.said(".claude.json")["mcpServers"]["whisper"]["args"]
    assert args[0] == "-I" and args[2:7] == ["mcp", "--directories", str(config), str(state), f"{state}/run"]


@pytest.mark.slow
def test_the_doctor_tells_people_and_programs_and_ends_accordingly(machine: Machine) -> None:
    told = whisper(machine, "doctor", "gemini")
    assert told.returncode == 1
    assert "✗ bad" in told.stdout and "Run whisper-tui install gemini" in told.stdout
    listed = whisper(machine, "doctor", "--json")
    assert listed.returncode == 0
    rows = json.loads(listed.stdout)
    assert rows["proved"] is True
    assert [row["client"] for row in rows["clients"]] == list(CLIENTS)


@pytest.mark.slow
def test_the_doctor_names_clients_that_are_not_there_on_one_line(machine: Machine) -> None:
    for client in CLIENTS:
        (machine.bin / client).unlink()
    machine.install("claude")
    told = whisper(machine, "doctor").stdout
    (line,) = (line for line in told.splitlines() if "Gemini CLI" in line)
    assert "Codex" in line and "Claude" not in line
    assert "is not on PATH" in told
    (proof,) = (line for line in told.splitlines() if "stopped a test command" in line)
    assert proof.startswith("  ✓ good  Claude Code: ") and "Write and a test call of WebFetch" in proof
    assert "The hook is in" not in told and "The hook is in" in whisper(machine, "doctor", "claude").stdout


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.few(1)
def test_a_real_installation_stops_the_canary(machine: Machine, instance: Instance, client: str) -> None:  # noqa: F811
    assert instance.run("restart").returncode == 0  # a supervisor runs before the canary's seconds are counted
    home = ("--home", str(instance.root))
    assert whisper(machine, "install", client, "--yes", *home).returncode == 0
    proved = whisper(machine, "doctor", client, *home)
    assert proved.returncode == 0, proved.stdout
    assert "stopped a test command" in proved.stdout and "answers as whisper_tui" in proved.stdout
    assert instance.rows("history") == []
