"""What OpenCode has been told, and the plugin that it runs."""

from functools import partial
from pathlib import Path
from typing import Any

from whisper_tui.install import opencode
from whisper_tui.install.doctor.canary import prove_plugin
from whisper_tui.install.doctor.found import FoundHook, FoundServer, Looked, Scene, seconds
from whisper_tui.install.doctor.report import bad
from whisper_tui.install.documents import value_at
from whisper_tui.install.files import JSON_WITH_COMMENTS
from whisper_tui.install.launch import SERVER, is_hook
from whisper_tui.install.wish import Wish


def look(scene: Scene, version: str | None) -> Looked:
    """Its plugins and its configuration."""
    looked = Looked()
    if scene.environ.get("OPENCODE_PURE", "") not in {"", "0", "false"}:
        looked.checks.append(bad("hooks", "OPENCODE_PURE switches all plugins off", "Start OpenCode without it"))
    for wish in scene.wishes():
        for path in _plugins(wish):
            words = opencode.hook_of(path.read_text(encoding="utf-8", errors="replace"))
            if is_hook(words, opencode.NAME) or path == opencode.plugin_of(wish):
                prove = partial(prove_plugin, path, scene.environ, scene.canary_s)
                looked.hooks.append(FoundHook(path=path, words=words, timeout_s=None, prove=prove))
        path = opencode.configuration_of(wish)
        plain = looked.read(path, JSON_WITH_COMMENTS)
        if value_at(plain, ("permission", opencode.SHELL_TOOL)) == "deny":
            looked.shut.append(path)
        if isinstance(entry := value_at(plain, ("mcp", SERVER)), dict):
            looked.servers.append(_server(path, entry, plain))
    return looked


def _plugins(wish: Wish) -> list[Path]:
    """Every file that OpenCode takes for a plugin there."""
    above = opencode.plugin_of(wish).parent.parent
    return sorted(path for name in ("plugin", "plugins") for path in (above / name).glob("*.[jt]s") if path.is_file())


def _server(path: Path, entry: dict[str, Any], plain: Any) -> FoundServer:
    command = entry.get("command")
    words = command if isinstance(command, list) and all(isinstance(word, str) for word in command) else []
    return FoundServer(
        path=path,
        words=words if entry.get("enabled", True) else [],
        timeout_s=seconds(entry.get("timeout"), 1000),
        asks_again=f'Set "{SERVER}_*": "allow" in "permission"' if _asks(plain) else None,
    )


def _asks(plain: Any) -> bool:
    """Whether a rule of the user's makes OpenCode ask about our tools; nothing said means that it does not."""
    rules = value_at(plain, ("permission",))
    if isinstance(rules, str):
        return rules != "allow"
    if not isinstance(rules, dict):
        return False
    return rules.get(f"{SERVER}_*", rules.get("*", "allow")) != "allow"
