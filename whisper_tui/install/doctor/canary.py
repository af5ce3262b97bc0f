"""A harmless command that the gate must stop, sent through the very command line that the client would run."""

import json
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from whisper_tui.install import claude, codex, gemini, opencode
from whisper_tui.install.doctor.programs import Answer, NotRun, run

LIVE = "the gate is live"
"""What the supervisor says about a canary."""

_BLOCKED = 2

_RUN_PLUGIN = """
import { readFileSync } from "node:fs"
const said = JSON.parse(readFileSync(0, "utf8"))
const made = await import(said.plugin)
const answers = []
for (const plugin of new Set(Object.values(made))) {
  const hooks = await plugin({ directory: said.cwd })
  const output = { args: { command: said.command } }
  try {
    await hooks["tool.execute.before"]({ tool: "bash", sessionID: said.session, callID: said.call }, output)
    answers.push({ passed: output.args.command })
  } catch (error) {
    answers.push({ thrown: error.message })
  }
}
process.stdout.write(JSON.stringify(answers))
process.exit(0)
"""


class Canary(NamedTuple):
    """One proof: the name that the denial has to repeat, and the command, which makes a file of that name."""

    name: str
    directory: Path

    @property
    def file(self) -> Path:
        """What is there if the command ran."""
        return self.directory / self.name

    @property
    def command(self) -> str:
        """The command."""
        return f"touch {self.file}"


def prove_hook(client: str, command: str, environ: Mapping[str, str], patience_s: float) -> str | None:
    """Run the hook as the client does, by a shell. None: it stopped the canary; otherwise what it did instead."""
    return _prove(lambda canary: _by_shell(client, command, environ, canary, patience_s))


def prove_plugin(plugin: Path, environ: Mapping[str, str], patience_s: float) -> str | None:
    """Run the plugin of OpenCode with node, or its hook where there is no node. None: it stopped the canary."""
    node = shutil.which("node", path=environ.get("PATH"))
    if node is not None:
        return _prove(lambda canary: _by_node(node, plugin, environ, canary, patience_s))
    words = opencode.hook_of(plugin.read_text(encoding="utf-8", errors="replace"))
    return _prove(lambda canary: _judged(opencode.NAME, _asked(words, environ, canary, patience_s), canary))


def _prove(attempt: Any) -> str | None:
    with tempfile.TemporaryDirectory(prefix="whisper-tui-") as directory:
        canary = Canary(f"whisper-tui-canary-{secrets.token_hex(8)}", Path(directory))
        try:
            problem: str | None = attempt(canary)
        except NotRun as error:
            problem = str(error)
        return "the canary ran" if canary.file.exists() else problem


def _by_shell(client: str, command: str, environ: Mapping[str, str], canary: Canary, patience_s: float) -> str | None:
    given = json.dumps(hook_input(client, canary))
    answer = run(["/bin/sh", "-c", command], environ, canary.directory, given=given, patience_s=patience_s)
    return _judged(client, answer, canary)


def _asked(words: list[str], environ: Mapping[str, str], canary: Canary, patience_s: float) -> Answer:
    if not words:
        raise NotRun("the plugin does not say what it runs")
    given = json.dumps(hook_input(opencode.NAME, canary))
    return run(words, environ, canary.directory, given=given, patience_s=patience_s)


def _by_node(node: str, plugin: Path, environ: Mapping[str, str], canary: Canary, patience_s: float) -> str | None:
    copy = canary.directory / "plugin.mjs"
    shutil.copyfile(plugin, copy)
    said = {
        "plugin": copy.as_uri(),
        "cwd": str(canary.directory),
        "command": canary.command,
        "session": "whisper-tui-doctor",
        "call": canary.name,
    }
    words = [node, "--input-type=module", "--eval", _RUN_PLUGIN]
    answer = run(words, environ, canary.directory, given=json.dumps(said), patience_s=patience_s)
    try:
        outcomes = json.loads(answer.out)
        thrown = [outcome.get("thrown") for outcome in outcomes]
    except (ValueError, AttributeError, TypeError):
        return f"the plugin cannot be run: {_last_line(answer.err) or 'it said nothing'}"
    if thrown and all(isinstance(text, str) for text in thrown):
        return next((why for text in thrown if (why := _said_live(text, canary)) is not None), None)
    return "the plugin let the canary pass"


def hook_input(client: str, canary: Canary) -> dict[str, Any]:
    """What the client would tell its hook about the canary."""
    common = {
        "session_id": "whisper-tui-doctor",
        "transcript_path": "",
        "cwd": str(canary.directory),
        "tool_input": {"command": canary.command, "description": "whisper-tui doctor proves that this is stopped"},
    }
    match client:
        case claude.NAME:
            called = {"tool_name": claude.SHELL_TOOL, "tool_use_id": canary.name, "permission_mode": "default"}
            return {**common, **called, "hook_event_name": "PreToolUse"}
        case codex.NAME:
            called = {"tool_name": codex.SHELL_TOOL, "tool_use_id": canary.name, "permission_mode": "default"}
            return {**common, **called, "hook_event_name": "PreToolUse", "turn_id": canary.name, "model": "doctor"}
        case gemini.NAME:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            return {**common, "tool_name": gemini.SHELL_TOOL, "hook_event_name": "BeforeTool", "timestamp": stamp}
        case _:
            return {**common, "tool_name": opencode.SHELL_TOOL, "call_id": canary.name}


def _judged(client: str, answer: Answer, canary: Canary) -> str | None:
    """What is wrong with a hook's answer to the canary. None: it is the denial, in the client's own form."""
    if answer.code == _BLOCKED and client != opencode.NAME:
        return _said_live(answer.err, canary)
    if answer.code != 0:
        return f"it ended with exit code {answer.code}: {_last_line(answer.err) or 'it said nothing'}"
    try:
        said = json.loads(answer.out)
    except ValueError:
        return f"its answer is not JSON: {answer.out.strip()[:200]!r}"
    reason = _denial(client, said)
    if reason is None:
        return f"it did not deny the canary: {answer.out.strip()[:200]}"
    return _said_live(reason, canary)


def _denial(client: str, said: Any) -> str | None:
    """The reason of a denial in the client's own form. None: it is no denial."""
    if not isinstance(said, dict):
        return None
    if client in {claude.NAME, codex.NAME}:
        inner = said.get("hookSpecificOutput")
        inner = inner if isinstance(inner, dict) else {}
        denied = inner.get("permissionDecision") == "deny" and inner.get("hookEventName") == "PreToolUse"
        return str(inner.get("permissionDecisionReason")) if denied else None
    return str(said.get("reason")) if said.get("decision") == "deny" else None


def _said_live(text: str, canary: Canary) -> str | None:
    if LIVE in text and canary.name in text:
        return None
    return f"it was stopped, but not by a supervisor: {' '.join(text.split())[:300] or 'it said nothing'}"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:300] if lines else ""
