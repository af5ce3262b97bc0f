"""What Claude Code has been told."""

import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

from whisper_tui.install import claude
from whisper_tui.install.doctor import variables
from whisper_tui.install.doctor.canary import prove_hook
from whisper_tui.install.doctor.found import FoundHook, FoundServer, Looked, Scene, among, seconds, words_of
from whisper_tui.install.doctor.programs import numbers
from whisper_tui.install.doctor.report import Check, bad, note
from whisper_tui.install.documents import value_at
from whisper_tui.install.entries import handlers
from whisper_tui.install.files import JSON
from whisper_tui.install.launch import SERVER, is_approved, split

DEFAULT_TIMEOUT_S = 600.0
MANAGED = (
    Path("/Library/Application Support/ClaudeCode/managed-settings.json")
    if sys.platform == "darwin"
    else Path("/etc/claude-code/managed-settings.json")
)
NOT_KNOWN_TO_BLOCK = (2, 1, 240)
"""Up to this version nothing says that Claude Code knows `onFailure`."""


def look(scene: Scene, version: str | None) -> Looked:
    """Its settings, its servers and its version."""
    looked = Looked()
    user, project = scene.wishes()
    shared = scene.project / ".claude" / "settings.json"
    settings = {
        path: looked.read(path, JSON) for path in (claude.settings_of(user), shared, claude.settings_of(project))
    }
    for path, plain in settings.items():
        groups = value_at(plain, claude.EVENT)
        for number, _, handler in handlers(plain, claude.EVENT):
            if claude.is_ours(handler):
                looked.hooks.append(_hook(scene, path, groups[number], handler))
        if among(plain, ("permissions", "deny"), claude.SHELL_TOOL):
            looked.shut.append(path)
        if isinstance(plain, dict) and plain.get("disableAllHooks"):
            looked.checks.append(bad("hooks", f"{path} disables all hooks", "Take disableAllHooks out"))
        if path != claude.settings_of(user):
            looked.checks.extend(variables.checks(path, variables.set_in(plain), claude.TITLE))
    managed = looked.read(MANAGED, JSON)
    if managed.get("allowManagedHooksOnly"):
        looked.checks.append(bad("hooks", f"{MANAGED} allows no hooks but its own", "Ask who manages this machine"))
    if looked.hooks:
        looked.checks.extend(_skills({**settings, MANAGED: managed}))
        looked.checks.extend(_sandbox({**settings, MANAGED: managed}, looked.hooks))
    allowed = any(among(plain, ("permissions", "allow"), claude.ALLOWED) for plain in settings.values())
    servers = looked.read(claude.servers_of(user), JSON)
    for path, place, plain in (
        (claude.servers_of(user), claude.server_path(user), servers),
        (claude.servers_of(user), claude.server_path(project), servers),
        (scene.project / ".mcp.json", ("mcpServers", SERVER), looked.read(scene.project / ".mcp.json", JSON)),
    ):
        if isinstance(entry := value_at(plain, place), dict):
            looked.servers.append(_server(path, entry, asks=not allowed))
    if version is not None and looked.hooks and numbers(version) <= NOT_KNOWN_TO_BLOCK:
        looked.checks.append(
            note("version", f"Claude Code {version} may run a command whose hook fails", "Update Claude Code")
        )
    return looked


def _skills(settings: dict[Path, Any]) -> list[Check]:
    """Whether Claude Code runs what skills and slash commands bring along. The last file that says so decides."""
    said = {
        path: value for path, plain in settings.items() if (value := value_at(plain, claude.NO_SKILL_SHELL)) is not None
    }
    path, value = next(reversed(said.items()), (None, None))
    if value is True:
        return []
    where = f": {path} sets disableSkillShellExecution to {str(value).lower()}" if path is not None else ""
    sentence = f"Claude Code runs the commands in skills and slash commands (!`command`) unseen{where}"
    return [bad("skills", sentence, _AGAIN if path is None else "Set it to true, or take it out there")]


def _sandbox(settings: dict[Path, Any], hooks: list[FoundHook]) -> list[Check]:
    """Whether approved commands get out of Claude Code's own sandbox, in which they fail."""
    boxed = [path for path, plain in settings.items() if value_at(plain, ("sandbox", "enabled")) is True]
    lists = (value_at(plain, claude.UNBOXED) for plain in settings.values())
    free = [word for words in lists if isinstance(words, list) for word in words if isinstance(word, str)]
    if not boxed or all("--agent-runs" in hook.words for hook in hooks) or any(map(is_approved, free)):
        return []
    sentence = f"{boxed[0]} switches the sandbox on, and in it every approved command fails"
    return [bad("sandbox", sentence, _AGAIN)]


def _hook(scene: Scene, path: Path, group: Any, handler: dict[str, Any]) -> FoundHook:
    problems = []
    if missed := [tool for tool in claude.SHELL_TOOLS if not _matches(group.get("matcher"), tool)]:
        problems.append(bad("hook", f"{path} does not let the hook see the tools {', '.join(missed)}", _AGAIN))
    if handler.get("async") or handler.get("if"):
        problems.append(bad("hook", f"{path} lets commands pass the hook (async or if)", _AGAIN))
    if handler.get("onFailure") != "block":
        problems.append(note("hook", f"{path} lets a command run when the hook itself fails", _AGAIN))
    return FoundHook(
        path=path,
        words=split(handler["command"]),
        timeout_s=seconds(handler.get("timeout")) or DEFAULT_TIMEOUT_S,
        problems=problems,
        prove=partial(prove_hook, claude.NAME, handler["command"], scene.environ, scene.canary_s),
    )


def _server(path: Path, entry: dict[str, Any], *, asks: bool) -> FoundServer:
    return FoundServer(
        path=path,
        words=words_of(entry.get("command"), entry.get("args", [])),
        timeout_s=seconds(entry.get("timeout"), 1000),
        asks_again=f'Allow "{claude.ALLOWED}" in its permissions' if asks else None,
    )


def _matches(matcher: Any, tool: str) -> bool:
    """Whether a group is for a tool: by name, by a choice of names, or by everything."""
    if matcher in (None, "", "*"):
        return True
    try:
        return isinstance(matcher, str) and re.fullmatch(matcher, tool) is not None
    except re.error:
        return False


_AGAIN = "Run whisper-tui install claude"
