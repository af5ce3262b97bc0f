"""Closed, full and unread standard streams: one sentence about what remains, and an exit code that does not lie."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent_process import AgentProcess
from tests.cli.conftest import PROGRAM, Instance
from whisper_tui.cli.dispatch import FAMILIES
from whisper_tui.cli.subcommand import MEANINGS, OUTPUT_LOST, PIPE_CLOSED, UNAVAILABLE

ASKED = json.dumps({"command": "pwd"})
SUBCOMMANDS: dict[str, list[str]] = {
    "demo": [],
    "watch": ["--read-only"],
    "attach": ["gpu1"],
    "bring": ["gpu1"],
    "dial-stdio": [],
    "serve": ["--port", "0"],
    "phone": ["list"],
    "mcp": [],
    "acp": ["cat"],
    "executor": [],
    "hook": ["claude"],
    "exec": ["abc"],
    "gate": [],
    "call": ["run_shell_command", ASKED],
    "preview": ["1"],
    "undo": ["1"],
    "review": [],
    "draft": ["list"],
    "jump": ["1"],
    "places": [],
    "unasked": [],
    "list": [],
    "ps": [],
    "history": [],
    "show": ["1"],
    "approve": ["2"],
    "deny": ["3", "--reason", "no"],
    "aside": ["2"],
    "start": ["1"],
    "signal": ["1", "TERM"],
    "kill": ["1"],
    "logs": ["1"],
    "export": ["--format", "jsonl"],
    "evidence": ["1"],
    "approvals": [],
    "revoke": ["7"],
    "story": ["command line"],
    "revert": ["1"],
    "check": ["ls"],
    "explain": ["ls"],
    "config": ["path"],
    "completions": ["bash"],
    "complete": [],
    "man": [],
    "rules": [],
    "status": [],
    "restart": [],
    "stop": [],
    "pause": [],
    "resume": [],
    "prune": [],
    "supervise": ["--replace"],
    "tools": [],
    "agent": ["task", "--model", "m"],
    "install": ["claude", "--dry-run"],
    "uninstall": ["claude", "--dry-run"],
    "doctor": ["claude"],
    "verify": [],
}
SERVE = {"watch", "serve", "supervise", "mcp over HTTP"}
"""Those that go on until they are told to end."""
COMMON = [verb for verbs in FAMILIES.values() for verb in verbs]
SILENT = {"mcp", "acp", "executor", "exec", "gate", "supervise", "hook", "dial-stdio", "jump"}
"""Those that print nothing, as they are called here."""


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """An instance in which one call has run."""
    made = Instance(tmp_path_factory.mktemp("instance"))
    (made.root / "config" / "rules.toml").unlink()
    assert made.run("call", "run_shell_command", ASKED).returncode == 0
    yield made
    made.close()


def carried_out(
    instance: Instance, streams: str, *words: str, given: str = "", agent: AgentProcess | None = None
) -> "subprocess.CompletedProcess[str]":
    """What a command comes to whose streams the shell has changed; one that serves is told to end after a while."""
    limit = ["timeout", "--preserve-status", "-s", "TERM", "4"] if words and words[0] in SERVE else []
    shell = ["sh", "-c", f'exec "$@" {streams}', "sh", *limit, *PROGRAM, *words]
    if not words or words[0] != "--version":
        shell += ["--home", str(instance.root)]
    if agent is not None:
        shell = agent.starts(*shell)
    done = subprocess.run(
        shell,
        cwd=instance.workspace,
        env={**os.environ, "HOME": str(instance.root), "OPENROUTER_API_KEY": "", "OPENAI_API_KEY": ""},
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if words and words[0] == "pause":
        # A later test would wait for a call that nobody lets start.
        instance.run("resume")
    for text in (done.stdout, done.stderr):
        assert "Traceback" not in text and "defect" not in text and "Exception ignored" not in text, text
        assert "NoneType" not in text
    return done


def test_every_subcommand_is_tried() -> None:
    assert set(COMMON) <= set(SUBCOMMANDS)


@pytest.mark.parametrize("streams", [">&-", ">/dev/full"])
@pytest.mark.parametrize("verb", COMMON)
@pytest.mark.slow
@pytest.mark.one_in(6)
def test_unprintable_output_is_reported_with_an_exit_code(settled: Instance, verb: str, streams: str) -> None:
    done = carried_out(settled, streams, verb, *SUBCOMMANDS[verb])
    if verb in SILENT:
        assert done.returncode in {*MEANINGS, 126, 128 + signal.SIGTERM}
        return
    assert done.returncode not in {0, 1, 128 + signal.SIGTERM} or "whisper-tui: " in done.stderr
    assert done.returncode != 0
    assert done.stderr.strip()
    if done.returncode == OUTPUT_LOST:
        said = "is closed" if streams == ">&-" else "No space left on device"
        assert f"whisper-tui: Standard output {said}" in done.stderr or f"cannot be written: {said}" in done.stderr


@pytest.mark.parametrize("verb", COMMON)
@pytest.mark.slow
@pytest.mark.one_in(4)
def test_without_standard_error_the_result_and_the_exit_code_are_as_ever(settled: Instance, verb: str) -> None:
    if verb in {
        "watch",
        "serve",
        "stop",
        "pause",
        "resume",
        "restart",
        "supervise",
        "call",
        "signal",
        "kill",
        "approve",
        "deny",
        "doctor",
    }:
        done = carried_out(settled, "2>&-", verb, *SUBCOMMANDS[verb])
        assert done.returncode in {*MEANINGS, 128 + signal.SIGTERM}
        return
    usual = carried_out(settled, "", verb, *SUBCOMMANDS[verb])
    for each in ("2>&-", "2>/dev/full"):
        assert carried_out(settled, each, verb, *SUBCOMMANDS[verb]).returncode == usual.returncode


@pytest.mark.parametrize("verb", ["", *COMMON])
@pytest.mark.slow
@pytest.mark.one_in(4)
def test_without_standard_input_each_says_what_it_lacks_or_does_without(settled: Instance, verb: str) -> None:
    done = carried_out(settled, "<&-", *([verb, *SUBCOMMANDS[verb]] if verb else []))
    assert done.returncode in {*MEANINGS, 126, 128 + signal.SIGTERM}
    assert "Errno" not in done.stderr
    if verb in {"mcp", "hook"}:
        assert done.returncode == {"mcp": UNAVAILABLE, "hook": 2}[verb]
        assert "tandard input" in done.stderr and "Bad file descriptor" in done.stderr


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["list", "--help"], []], ids=str)
@pytest.mark.parametrize("streams", [">&-", ">/dev/full"])
@pytest.mark.few(2)
def test_help_and_version_that_cannot_be_printed_are_no_success(
    settled: Instance, words: list[str], streams: str
) -> None:
    done = carried_out(settled, f"{streams} </dev/null", *words)
    assert done.returncode == (OUTPUT_LOST if words else 2)
    assert done.stderr.startswith("whisper-tui: ")


def test_a_descriptor_that_was_closed_is_not_given_to_a_file(settled: Instance) -> None:
    """Else what is printed goes into the journal, or to the supervisor."""
    settled.run("restart")  # `stop` may have been tried before: no agent starts a supervisor after that.
    done = carried_out(settled, ">&- 2>&- <&-", "call", "run_shell_command", ASKED)
    assert done.returncode == OUTPUT_LOST
    assert settled.run("list").returncode == 0


def test_a_hook_whose_answer_cannot_be_written_refuses(settled: Instance, agent_process: AgentProcess) -> None:
    settled.run("restart")  # `stop` may have been tried before: no agent starts a supervisor after that.
    asked = {
        "session_id": "s",
        "cwd": str(settled.workspace),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "pwd"},
        "tool_use_id": "toolu_1",
    }
    done = carried_out(settled, ">/dev/full", "hook", "claude", given=json.dumps(asked), agent=agent_process)
    assert done.returncode == 2
    assert "the answer cannot be written: No space left on device" in done.stderr
    heard = carried_out(settled, "", "hook", "claude", given=json.dumps(asked), agent=agent_process)
    assert heard.returncode == 0


def test_an_agent_that_cannot_be_answered_ends_its_relay(settled: Instance) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    given = json.dumps(hello) + "\n"
    done = carried_out(settled, ">/dev/full", "mcp", given=given)
    assert done.returncode == UNAVAILABLE
    assert "Standard output to the agent cannot be written: No space left" in done.stderr


def test_a_watch_that_nobody_reads_any_more_ends_though_nothing_happens(settled: Instance) -> None:
    watch = subprocess.Popen(
        [*PROGRAM, "watch", "--home", str(settled.root)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert watch.stdout is not None
    assert watch.stdout.readline()
    watch.stdout.close()
    assert watch.wait(timeout=30) == PIPE_CLOSED


@pytest.mark.slow
def test_an_export_into_a_device_is_written_to_the_device(settled: Instance, tmp_path: Path) -> None:
    settled.run("call", "run_shell_command", ASKED)
    done = settled.run("export", "--format", "jsonl", "-o", "/dev/full")
    assert done.returncode != 0
    assert "/dev/full cannot be written: No space left on device" in done.stderr
    assert not Path("/dev/full").is_file()
    assert settled.run("export", "--format", "jsonl", "-o", "/dev/null").returncode == 0
    assert not Path("/dev/null").is_file()
    file = tmp_path / "calls.jsonl"
    assert settled.run("export", "--format", "jsonl", "-o", str(file)).returncode == 0
    assert "pwd" in file.read_text()
