"""What Gemini CLI has been told."""

import re
from functools import partial
from pathlib import Path
from typing import Any

from whisper_tui.install import gemini
from whisper_tui.install.doctor import variables
from whisper_tui.install.doctor.canary import prove_hook
from whisper_tui.install.doctor.found import FoundHook, FoundServer, Looked, Scene, among, seconds, words_of
from whisper_tui.install.doctor.report import bad, note
from whisper_tui.install.documents import value_at
from whisper_tui.install.entries import handlers
from whisper_tui.install.files import JSON_WITH_COMMENTS
from whisper_tui.install.launch import SERVER, split

DEFAULT_TIMEOUT_S = 60.0
_AGAIN = "Run whisper-tui install gemini"


def look(scene: Scene, version: str | None) -> Looked:
    """Its settings and its policy."""
    looked = Looked()
    user, project = scene.wishes()
    for path in dict.fromkeys((gemini.settings_of(user), gemini.settings_of(project))):
        plain = looked.read(path, JSON_WITH_COMMENTS)
        groups = value_at(plain, gemini.EVENT)
        for group, _, handler in handlers(plain, gemini.EVENT):
            if gemini.is_ours(handler):
                looked.hooks.append(_hook(scene, path, groups[group], handler))
        if value_at(plain, ("hooksConfig", "enabled")) is False:
            looked.checks.append(bad("hooks", f"{path} switches all hooks off", "Take hooksConfig.enabled out"))
        _look_for_disabled(path, plain, looked)
        if among(plain, ("tools", "exclude"), gemini.SHELL_TOOL) or among(plain, ("excludeTools",), gemini.SHELL_TOOL):
            looked.shut.append(path)
        if isinstance(entry := value_at(plain, ("mcpServers", SERVER)), dict):
            looked.servers.append(_server(path, entry))
    for path, names in variables.dotenv_files(scene.project):
        looked.checks.extend(variables.checks(path, names, gemini.TITLE))
    rewriting = [hook for hook in looked.hooks if "--agent-runs" not in hook.words]
    if rewriting and not gemini.policy_of(user).exists():
        looked.checks.append(note("policy", "Gemini CLI asks once more about commands that were approved", _AGAIN))
    return looked


def _look_for_disabled(path: Path, plain: Any, looked: Looked) -> None:
    disabled = value_at(plain, ("hooksConfig", "disabled"))
    if isinstance(disabled, list) and any(
        word == "whisper_tui" or gemini.is_ours({"command": word}) for word in disabled
    ):
        looked.checks.append(bad("hooks", f"{path} switches the hook off", "Take it out of hooksConfig.disabled"))


def _hook(scene: Scene, path: Path, group: Any, handler: dict[str, Any]) -> FoundHook:
    problems = []
    if not _matches(group.get("matcher")):
        problems.append(bad("hook", f"{path} lets the hook see other tools than {gemini.SHELL_TOOL}", _AGAIN))
    return FoundHook(
        path=path,
        words=split(handler["command"]),
        timeout_s=seconds(handler.get("timeout"), 1000) or DEFAULT_TIMEOUT_S,
        problems=problems,
        prove=partial(prove_hook, gemini.NAME, handler["command"], scene.environ, scene.canary_s),
    )


def _server(path: Path, entry: dict[str, Any]) -> FoundServer:
    return FoundServer(
        path=path,
        words=words_of(entry.get("command"), entry.get("args", [])),
        timeout_s=seconds(entry.get("timeout"), 1000),
        asks_again=None if entry.get("trust") is True else 'Set "trust": true in its entry',
    )


def _matches(matcher: Any) -> bool:
    if matcher in (None, "", "*"):
        return True
    try:
        return isinstance(matcher, str) and re.search(matcher, gemini.SHELL_TOOL) is not None
    except re.error:
        return bool(matcher == gemini.SHELL_TOOL)
