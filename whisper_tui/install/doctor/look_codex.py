"""What Codex has been told, and whether it trusts the hook."""

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from whisper_tui.install import codex
from whisper_tui.install.app_server import NoAnswer, SeenHook, hooks_of
from whisper_tui.install.doctor.canary import prove_hook
from whisper_tui.install.doctor.found import FoundHook, FoundServer, Looked, Scene, seconds, words_of
from whisper_tui.install.doctor.report import Check, bad, good, note
from whisper_tui.install.documents import value_at
from whisper_tui.install.entries import handlers
from whisper_tui.install.files import JSON, TOML
from whisper_tui.install.launch import SERVER, split
from whisper_tui.install.wish import Wish

DEFAULT_TIMEOUT_S = 600.0
_AGAIN = "Run whisper-tui install codex"


def look(scene: Scene, version: str | None) -> Looked:
    """Its hooks and servers, and what it says of the hooks itself."""
    looked = Looked()
    keys: dict[str, Path] = {}
    # In the user's own directory the project's layer is the user's.
    layers = {os.path.realpath(codex.layer_of(wish)): wish for wish in reversed(scene.wishes())}
    for wish in reversed(layers.values()):
        layer = codex.layer_of(wish)
        configuration = looked.read(layer / "config.toml", TOML)
        for path, plain in (
            (layer / "hooks.json", looked.read(layer / "hooks.json", JSON)),
            (layer / "config.toml", configuration),
        ):
            groups = value_at(plain, codex.EVENT)
            for group, place, handler in handlers(plain, codex.EVENT):
                if codex.is_ours(handler):
                    keys[codex.key_of(path, (group, place))] = path
                    looked.hooks.append(_hook(scene, path, groups[group], handler))
        if isinstance(entry := value_at(configuration, ("mcp_servers", SERVER)), dict):
            looked.servers.append(_server(layer / "config.toml", entry))
        if looked.hooks and _switched_off(configuration):
            looked.checks.append(
                bad("hooks", f"{layer / 'config.toml'} switches all hooks off", "Take hooks = false out")
            )
        if value_at(configuration, ("features", "shell_tool")) is False:
            looked.shut.append(layer / "config.toml")
        looked.checks.extend(_rule(wish, looked))
    if version is not None and keys:
        looked.checks.extend(_trust(scene, keys))
    return looked


def _hook(scene: Scene, path: Path, group: Any, handler: dict[str, Any]) -> FoundHook:
    problems = []
    if not _matches(group.get("matcher")):
        problems.append(bad("hook", f"{path} lets the hook see other tools than {codex.SHELL_TOOL}", _AGAIN))
    if handler.get("async"):
        problems.append(bad("hook", f"{path} does not wait for the hook (async)", _AGAIN))
    return FoundHook(
        path=path,
        words=split(handler["command"]),
        timeout_s=seconds(handler.get("timeout")) or DEFAULT_TIMEOUT_S,
        problems=problems,
        prove=partial(prove_hook, codex.NAME, handler["command"], scene.environ, scene.canary_s),
    )


def _server(path: Path, entry: dict[str, Any]) -> FoundServer:
    approving = entry.get("default_tools_approval_mode") == "approve"
    return FoundServer(
        path=path,
        words=words_of(entry.get("command"), entry.get("args", [])),
        timeout_s=seconds(entry.get("tool_timeout_sec")),
        asks_again=None if approving else 'Set default_tools_approval_mode = "approve" in its table',
    )


def _trust(scene: Scene, keys: dict[str, Path]) -> list[Check]:
    """Whether Codex itself, asked in the project, would run the hooks that were found."""
    try:
        seen: dict[str, SeenHook] = {hook.key: hook for hook in hooks_of(scene.environ, scene.project)}
    except NoAnswer as problem:
        return [bad("trust", f"Whether Codex trusts the hook is not known: {problem}", "Look at /hooks in Codex")]
    return [_trusted(path, seen.get(key)) for key, path in keys.items()]


def _trusted(path: Path, hook: SeenHook | None) -> Check:
    if hook is None:
        return bad(
            "trust", f"Codex does not read the hook in {path}", "Trust the project in Codex, or see its settings"
        )
    if not hook.enabled:
        return bad("trust", f"The hook in {path} is switched off in Codex", "Switch it on with /hooks in Codex")
    if not hook.trusted:
        hint = "Trust it with /hooks in Codex, or run whisper-tui install codex"
        return bad("trust", f"Codex does not trust the hook in {path} and skips it without a word", hint)
    return good("trust", f"Codex trusts the hook in {path}")


def _rule(wish: Wish, looked: Looked) -> list[Check]:
    """Whether approved commands get out of the sandbox, where this layer has a hook that rewrites them."""
    layer = codex.layer_of(wish)
    rewriting = [hook for hook in looked.hooks if hook.path.parent == layer and "--agent-runs" not in hook.words]
    if not rewriting or (layer / "rules" / "whisper_tui.rules").exists():
        return []
    return [note("sandbox", "No rule lets approved commands out of the sandbox of Codex, where they fail", _AGAIN)]


def _switched_off(configuration: Any) -> bool:
    features = value_at(configuration, ("features",))
    return isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks"))


def _matches(matcher: Any) -> bool:
    if matcher in (None, "", "*"):
        return True
    try:
        return isinstance(matcher, str) and re.search(matcher, codex.SHELL_TOOL) is not None
    except re.error:
        return False
