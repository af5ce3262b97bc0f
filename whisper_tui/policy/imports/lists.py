"""The lists `coreTools` and `excludeTools` of a settings file: `run_shell_command(git status)`."""

import json
from typing import Any

from whisper_tui.policy.imports.carried import Carried
from whisper_tui.policy.tool_lists import allowances, denials

NAMES = ("coreTools", "excludeTools")


def holds_lists(text: str) -> bool:
    """Whether a JSON text has one of the lists."""
    try:
        return any(_list(json.loads(text), name) for name in NAMES)
    except ValueError:
        return False


def listed_rules(text: str) -> Carried:
    """The rules that the lists mean. Raises `ValueError` if the text is not JSON with one of them."""
    document = json.loads(text)
    found = {name: _list(document, name) for name in NAMES}
    if not any(found.values()):
        raise ValueError("it holds neither coreTools nor excludeTools")
    carried = Carried()
    for rule in denials(found["excludeTools"], carried.left):
        carried.take("deny", rule, rule.name)
    for entry in found["coreTools"]:
        problems: list[str] = []
        rules = allowances((entry,), problems)
        carried.left += problems
        if not rules and not problems:
            carried.left.append(f"coreTools: {entry}: it only offers the tool, and allows nothing")
        for rule in rules:
            carried.take("allow", rule, rule.name)
    return carried


def _list(document: Any, name: str) -> list[str]:
    """The entries of a list, also where newer settings keep it: `tools.core` and `tools.exclude`."""
    if not isinstance(document, dict):
        return []
    tools = document.get("tools")
    newer = tools.get(name.removesuffix("Tools")) if isinstance(tools, dict) else None
    found = document.get(name, newer)
    return [entry for entry in found if isinstance(entry, str)] if isinstance(found, list) else []
