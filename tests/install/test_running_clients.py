"""A running client that was started without its hook is named by the doctor, and when a session begins."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.install.conftest import Machine
from tests.install.findings import said
from whisper_tui.agents.doctor import running_without_hook
from whisper_tui.agents.findings import CheckState

WAITS = "import sys; print('runs', flush=True); sys.stdin.read()"


@pytest.fixture
def started(machine: Machine) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that look like clients; they end with the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.communicate()


def start(
    machine: Machine,
    started: list[subprocess.Popen[str]],
    words: list[str],
    directory: Path | None = None,
    **variables: str,
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [words[0], "-c", WAITS, *words[1:]],
        executable=sys.executable,
        env={**machine.environ, **variables},
        cwd=directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "runs\n"
    started.append(process)
    return process


@pytest.mark.parametrize(
    ("client", "words", "variables", "why"),
    [
        ("claude", ["/opt/bin/claude", "--bare", "-p", "x"], {}, "--bare"),
        ("claude", ["claude", "--safe-mode"], {}, "--safe-mode"),
        ("claude", ["claude", "--setting-sources", "project,local"], {}, "--setting-sources project,local"),
        ("claude", ["claude", "--setting-sources="], {}, "--setting-sources"),
        ("claude", ["claude"], {"CLAUDE_CODE_SIMPLE": "1"}, "CLAUDE_CODE_SIMPLE"),
        ("qwen", ["qwen", "--safe-mode"], {}, "--safe-mode"),
        ("opencode", ["opencode", "--pure"], {}, "--pure"),
        ("opencode", ["opencode"], {"OPENCODE_PURE": "1"}, "OPENCODE_PURE"),
        ("kilo", ["kilo", "--pure"], {}, "--pure"),
    ],
)
@pytest.mark.few(3)
def test_a_client_that_runs_without_its_hook_is_named(
    machine: Machine,
    started: list[subprocess.Popen[str]],
    client: str,
    words: list[str],
    variables: dict[str, str],
    why: str,
) -> None:
    process = start(machine, started, words, **variables)
    assert not any(check.subject == "running" for check in machine.doctor(client).checks), "no hook is installed"
    machine.install(client)
    report = machine.doctor(client)
    sentence = said(report, "running", CheckState.BAD)
    assert f"(pid {process.pid}) runs without whisper_tui's hook: it was started with {why}" in sentence
    assert not report.proved


@pytest.mark.parametrize("there", [True, False])
def test_the_shell_of_a_project_is_reported_if_a_client_without_its_plugin_runs_there(
    machine: Machine, started: list[subprocess.Popen[str]], there: bool
) -> None:
    machine.install("opencode")
    machine.write("work/project/opencode.json", '{"shell": "/tmp/evil-bash"}')
    process = start(machine, started, ["opencode", "--pure"], machine.project if there else machine.home)
    sentence = said(machine.doctor("opencode"), "shell", CheckState.BAD if there else CheckState.NOTE)
    assert (f"OpenCode (pid {process.pid}) was started with --pure" in sentence) is there


def test_a_session_of_the_same_client_tells_of_it(machine: Machine, started: list[subprocess.Popen[str]]) -> None:
    machine.install("claude")
    assert running_without_hook("claude-code", machine.project, machine.environ) == []
    process = start(machine, started, ["claude", "--bare"])
    (sentence,) = running_without_hook("claude-code", machine.project, machine.environ)
    assert f"pid {process.pid}" in sentence


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["claude", "--setting-sources", "user,project"], {}),
        (["claude", "-p", "--", "--bare"], {}),
        (["claude", "--bareness"], {}),
        (["other", "--bare"], {}),
        (["claude", "--bare"], {"HOME": "/nowhere"}),
        (["claude"], {"CLAUDE_CODE_SIMPLE": "0"}),
    ],
)
@pytest.mark.few(2)
def test_a_client_with_its_hook_or_of_another_home_is_not_named(
    machine: Machine, started: list[subprocess.Popen[str]], words: list[str], variables: dict[str, str]
) -> None:
    machine.install("claude")
    start(machine, started, words, **variables)
    assert machine.doctor("claude").proved
