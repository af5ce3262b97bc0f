"""The Claude Agent SDK: its Claude Code asks the user's supervisor, without any change of its settings."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, PermissionResultAllow, PermissionResultDeny

from whisper_tui.agents.client_files import AFTER_DEADLINE_S, AFTER_TIMEOUT_S, DAY_S, DEADLINE_S
from whisper_tui.cli.ask_hook import ask_hook, denied
from whisper_tui.config import find_directories
from whisper_tui.model.errors import WhisperError

CLIENT = "claude"


def supervised(options: ClaudeAgentOptions | None = None, *, home: str | None = None) -> ClaudeAgentOptions:
    """Return options with which commands, edits, web requests and tools wait in the queue, as with `install claude`.

    Your own hooks stay, and so does your `can_use_tool`; without one, it asks about what no hook was asked about.
    `home` chooses another instance. The supervisor is started if none runs.
    """
    options, directories = options or ClaudeAgentOptions(), find_directories(home, os.environ)
    allowed: set[str | None] = set()

    async def before(content: Any, call_id: str | None, _context: Any = None) -> Any:
        try:
            answer = await ask_hook(directories, CLIENT, json.dumps(content), DEADLINE_S) or {}
        except WhisperError as error:
            return denied(f"The call was not made: {error.sentence()}")
        if answer.get("hookSpecificOutput", {}).get("permissionDecision") != "deny":
            allowed.add(call_id)
        return answer

    async def after(content: Any, _call_id: str | None, _context: Any) -> Any:
        return await ask_hook(directories, CLIENT, json.dumps(content), AFTER_DEADLINE_S) or {}

    async def can_use_tool(name: str, arguments: dict[str, Any], context: Any) -> Any:
        if context.tool_use_id in allowed:
            return PermissionResultAllow()
        asked = {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": arguments}
        where = {"cwd": str(Path(options.cwd or ".").absolute()), "tool_use_id": context.tool_use_id}
        decision = (await before({**asked, **where}, context.tool_use_id)).get("hookSpecificOutput", {})
        if decision.get("permissionDecision") == "deny":
            return PermissionResultDeny(message=decision["permissionDecisionReason"])
        return PermissionResultAllow(updated_input=decision.get("updatedInput"))

    asking = HookMatcher(hooks=[before], timeout=DAY_S, on_failure="block")
    comparing = HookMatcher(hooks=[after], timeout=AFTER_TIMEOUT_S)
    hooks: dict[Any, list[HookMatcher]] = dict(options.hooks or {})
    for event, matcher in {"PreToolUse": asking, "PostToolUse": comparing, "PostToolUseFailure": comparing}.items():
        hooks[event] = [*hooks.get(event, ()), matcher]
    return replace(options, hooks=hooks, can_use_tool=options.can_use_tool or can_use_tool)
