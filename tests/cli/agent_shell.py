"""An agent that has a shell of its own, whose hook is ours, and the human beside it."""

import asyncio
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.agent_process import AgentProcess
from tests.cli.conftest import ANSWER_S, PROGRAM, Instance
from whisper_tui.model.call import CommandSpec, FileEdits, WriteFile
from whisper_tui.model.call import Shell as ShellCommand
from whisper_tui.model.decision import Approve, Decider, Decision, Deny
from whisper_tui.wire.client import SupervisorClient

HUMAN = Decider(surface="library", who="tester")


class Shell:
    """An agent with a shell of its own, whose hook is ours."""

    def __init__(self, instance: Instance, agent: AgentProcess) -> None:
        self.instance = instance
        self.agent = agent
        self.calls = 0
        self.environment: dict[str, str] = {}
        """Variables of the agent, beside those of this process."""

    def ask(self, command: str, *options: str, client: str = "claude", **changes: Any) -> "subprocess.Popen[bytes]":
        """Begin to ask about a command."""
        self.instance.ready()  # A hook would load one, which takes longer than the rest of most tests.
        return self.hook(self.question(command, client, **changes), client, *options)

    def question(self, command: str, client: str = "claude", **changes: Any) -> bytes:
        """What the client gives its hook."""
        self.calls += 1
        content = {
            "session_id": "agent-1",
            "cwd": str(self.instance.workspace),
            "hook_event_name": "BeforeTool" if client == "gemini" else "PreToolUse",
            "tool_name": "run_shell_command" if client == "gemini" else "Bash",
            "tool_input": {"command": command, "description": "As the agent says"},
            "tool_use_id": f"toolu_{self.calls}",
            **changes,
        }
        return json.dumps(content).encode()

    def hook(self, text: bytes, client: str, *options: str, **environment: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            self.agent.starts(*PROGRAM, "hook", client, "--home", str(self.instance.root), *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.instance.workspace,
            env={**os.environ, **self.environment, **environment},
        )
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.close()
        process.stdin = None
        return process

    def waiting(self) -> str:
        """The id of the one call that waits."""
        return self.instance.until(
            lambda: next((row["id"] for row in self.instance.seen("list") if row["state"] == "waiting"), None)
        )

    def approved(self, command: str, client: str = "claude") -> list[str]:
        """Ask about a command, have it approved, and return what the agent is given to run."""
        asking = self.ask(command, client=client)
        self.approve(self.waiting())
        return shlex.split(rewritten(finished(asking)))

    def approve(self, call_id: str, command: str | None = None, *, cwd: str | None = None) -> None:
        asyncio.run(self._decide(call_id, lambda spec: Approve(edited=_edited(spec, command, cwd))))

    def approve_edit(self, call_id: str, content: str) -> None:
        """Approve an edit of one file with another result."""

        def changed(spec: CommandSpec) -> Decision:
            assert isinstance(spec.command, FileEdits)
            (path,) = {change.path for change in spec.command.changes}
            command = spec.command.model_copy(update={"changes": (WriteFile(path=path, content=content),)})
            return Approve(edited=spec.model_copy(update={"command": command}))

        asyncio.run(self._decide(call_id, changed))

    def deny(self, call_id: str, reason: str) -> None:
        asyncio.run(self._decide(call_id, lambda _: Deny(reason=reason)))

    async def _decide(self, call_id: str, decision: Callable[[CommandSpec], Decision]) -> None:
        door = await SupervisorClient.connect(self.instance.home)
        record = await door.record(call_id)
        await door.decide(call_id, decision(record.spec), HUMAN, record.seen_digest())
        await door.close()

    def row(self, call_id: str) -> Any:
        return self.instance.seen("show", call_id=call_id)[0]

    def run(self, words: list[str], **how: Any) -> "subprocess.CompletedProcess[bytes]":
        """Run a program as the agent does, to its end."""
        how = {"cwd": self.instance.workspace, **how}
        return subprocess.run(self.agent.starts(*words), check=False, capture_output=True, timeout=ANSWER_S, **how)

    def start(self, words: list[str], **how: Any) -> "subprocess.Popen[bytes]":
        """The same, without waiting for it."""
        return subprocess.Popen(self.agent.starts(*words), **{"cwd": self.instance.workspace, **how})


def _edited(spec: CommandSpec, text: str | None, cwd: str | None) -> CommandSpec | None:
    change: dict[str, object] = {"command": ShellCommand(text=text)} if text is not None else {}
    return spec.model_copy(update=change | ({"cwd": cwd} if cwd is not None else {})) if change or cwd else None


def finished(process: "subprocess.Popen[bytes]") -> Any:
    """The answer of a hook that went well."""
    out, err = process.communicate(timeout=ANSWER_S)
    assert process.returncode == 0, err
    return json.loads(out)


def rewritten(answer: Any) -> str:
    """What the agent is given to run instead."""
    decision = answer["hookSpecificOutput"]
    assert decision["permissionDecision"] == "allow"
    return str(decision["updatedInput"]["command"])


def reason(answer: Any) -> str:
    """Why the agent may not run it."""
    decision = answer["hookSpecificOutput"]
    assert decision["permissionDecision"] == "deny"
    return str(decision["permissionDecisionReason"])


@pytest.fixture
def shell(instance: Instance, agent_process: AgentProcess) -> Shell:
    """An agent on an instance of its own."""
    return Shell(instance, agent_process)
