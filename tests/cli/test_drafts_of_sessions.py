"""`whisper-tui draft`: an agent over MCP works in a draft, which is shown, applied in part, taken back and dropped."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent_process import AgentProcess
from tests.cli.conftest import PROGRAM, Instance
from tests.outside import needs_overlays, outside_only

pytestmark = [outside_only, needs_overlays]


class McpAgent:
    """An agent that is connected over MCP."""

    def __init__(self, instance: Instance, agent: AgentProcess) -> None:
        words = agent.starts(*PROGRAM, "mcp", "--home", str(instance.root))
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, cwd=instance.workspace)
        self._number = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.ask("initialize", hello)
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        # Only the supervisor answers this: by then there is a session.
        self.ask("tools/list", {})

    def ask(self, method: str, params: dict[str, object]) -> dict[str, object]:
        self._number += 1
        self._say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self._number and "method" not in answer:
                return dict(answer["result"])

    def _say(self, message: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(message)}\n")
        self.process.stdin.flush()

    def run(self, command: str) -> str:
        """Run a command. Returns all that the agent is told."""
        arguments = {"command": command, "description": "a step"}
        return json.dumps(self.ask("tools/call", {"name": "run_shell_command", "arguments": arguments}))


@pytest.fixture
def agent(instance: Instance, agent_process: AgentProcess) -> Iterator[McpAgent]:
    (instance.root / "config" / "rules.toml").write_text('unasked = "reading"\n')
    made = McpAgent(instance, agent_process)
    yield made
    made.process.communicate()


@pytest.mark.slow
def test_an_agent_works_in_a_draft_that_its_human_applies_in_part_and_takes_back(
    instance: Instance, agent: McpAgent
) -> None:
    workspace: Path = instance.workspace
    (workspace / "kept.txt").write_text("kept\n")
    begun = instance.run("draft", "start", "--project", str(workspace))
    assert begun.returncode == 0 and "change nothing real" in begun.stdout, begun.stderr
    told = agent.run("echo more >> kept.txt; mkdir made; echo x > made/x")
    assert "The human has begun a draft" in told and "none of them is real" in told
    assert "more" in agent.run("cat kept.txt; touch -d @0 made/x")
    assert (workspace / "kept.txt").read_text() == "kept\n"
    shown = instance.run("draft", "show", "--diff").stdout
    assert f"M {workspace}/kept.txt" in shown and "+more" in shown and "by 1" in shown
    found = instance.rows("draft", "show")
    assert {Path(each["change"]["path"]).name for each in found["changes"]} == {"kept.txt", "made", "x"}
    assert instance.rows("draft", "list")[0]["session_id"] == found["draft"]["session_id"]
    refused = instance.run("draft", "apply")
    assert refused.returncode != 0 and "Use --yes" in refused.stderr and not (workspace / "made").exists()
    assert "1 change" in instance.run("draft", "apply", "made", "--dry-run").stdout
    done = instance.run("draft", "apply", "made", "--yes")
    assert "The draft goes on" in done.stdout and (workspace / "made" / "x").read_text() == "x\n", done.stderr
    call = instance.rows("history")[0]
    assert call["command"] == ["draft", "apply", f"{workspace}/made"]
    assert instance.run("undo", call["id"], "--yes").returncode == 0 and not (workspace / "made").exists()
    applied = instance.run("draft", "apply", "--yes")
    assert "The draft is over" in applied.stdout and "made" not in applied.stdout, applied.stderr
    assert "There is no draft" in instance.run("draft", "list").stdout
    assert "has applied the draft" in agent.run("cat kept.txt")


@pytest.mark.slow
def test_a_draft_is_dropped_and_a_conflict_is_named(instance: Instance, agent: McpAgent) -> None:
    workspace: Path = instance.workspace
    (workspace / "kept.txt").write_text("kept\n")
    assert instance.run("draft", "start").returncode == 0
    agent.run("echo more >> kept.txt; echo x > x")
    (workspace / "kept.txt").write_text("mine\n")
    assert f"! {workspace}/kept.txt changed in the real files since" in instance.run("draft", "show").stdout
    refused = instance.run("draft", "apply", "--yes")
    assert refused.returncode != 0 and "kept.txt changed in the real files since" in refused.stderr
    assert instance.run("draft", "apply", "--but", "kept.txt", "--yes").returncode == 0
    assert (workspace / "kept.txt").read_text() == "mine\n" and (workspace / "x").exists()
    assert "Dropped" in instance.run("draft", "drop", "--yes").stdout
    assert (workspace / "kept.txt").read_text() == "mine\n"
    assert "There is no draft" in instance.run("draft", "show").stderr
