"""What each agent's hook says is understood, and what it is answered is in its own words."""

import json
from typing import Any

import pytest

from whisper_tui.model.errors import InvalidRequest
from whisper_tui.transports.hooks.clients import CLIENTS, Asked, HookAnswer, parsed

INPUTS: dict[str, dict[str, Any]] = {
    "claude": {
        "session_id": "c1",
        "transcript_path": "/t",
        "cwd": "/srv/project",
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make", "description": "Build it", "timeout": 1000},
        "tool_use_id": "toolu_1",
        "agent_id": "a1",
        "agent_type": "reviewer",
    },
    "codex": {
        "session_id": "x1",
        "turn_id": "t1",
        "cwd": "/srv/project",
        "hook_event_name": "PreToolUse",
        "model": "gpt",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_use_id": "call_1",
    },
    "gemini": {
        "session_id": "g1",
        "cwd": "/srv/project",
        "hook_event_name": "BeforeTool",
        "timestamp": "now",
        "tool_name": "run_shell_command",
        "tool_input": {"command": "make", "description": "Build it", "dir_path": "sub"},
    },
    "opencode": {
        "session_id": "o1",
        "call_id": "prt_1",
        "cwd": "/srv/project",
        "pid": 7,
        "tool_name": "bash",
        "tool_input": {"command": "make", "workdir": "/srv/other"},
    },
    "crush": {
        "event": "PreToolUse",
        "session_id": "k1",
        "cwd": "/srv/project",
        "tool_name": "bash",
        "tool_input": {"command": "make"},
    },
}


def asked(client: str) -> Asked:
    found = CLIENTS[client].read(INPUTS[client])
    assert found is not None
    return found


def said(answer: HookAnswer) -> Any:
    assert (answer.code, answer.stderr) == (0, "")
    return json.loads(answer.stdout)


@pytest.mark.parametrize(
    ("client", "directory", "call_id"),
    [
        ("claude", "/srv/project", "toolu_1"),
        ("codex", "/srv/project", "call_1"),
        ("gemini", "/srv/project/sub", None),
        ("opencode", "/srv/other", "prt_1"),
        ("crush", "/srv/project", None),
    ],
)
def test_the_command_its_directory_and_its_name_are_read(client: str, directory: str, call_id: str | None) -> None:
    found = asked(client)
    assert (found.command, found.cwd, found.call_id) == ("make", directory, call_id)
    assert found.session == INPUTS[client]["session_id"]


def test_a_helper_of_the_agent_and_the_model_are_told_apart() -> None:
    assert asked("claude").asker == "reviewer"
    assert asked("codex").model == "gpt"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_tool_that_runs_no_command_is_let_pass(client: str) -> None:
    assert CLIENTS[client].read({**INPUTS[client], "tool_name": "Edit"}) is None


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "change",
    [{"tool_input": "make"}, {"tool_input": {}}, {"tool_name": None}, {"cwd": "relative"}, {"cwd": None}],
    ids=["text for input", "no command", "no tool", "a relative directory", "no directory"],
)
def test_an_input_that_is_not_understood_is_refused(client: str, change: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        CLIENTS[client].read({**INPUTS[client], **change})


@pytest.mark.parametrize("text", ["", "[]", "no json", "[" * 100_000])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parsed(text)


def test_claude_and_codex_get_the_whole_input_back_and_the_note_where_the_model_sees_it() -> None:
    answer = said(CLIENTS["claude"].allow(asked("claude"), "whisper-tui exec 1-a", "The human changed it."))
    assert answer == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": {"command": "whisper-tui exec 1-a", "description": "Build it", "timeout": 1000},
            "additionalContext": "The human changed it.",
        }
    }
    plain = said(CLIENTS["codex"].allow(asked("codex"), "whisper-tui exec 1-a", ""))
    assert "additionalContext" not in plain["hookSpecificOutput"]


def test_gemini_gets_a_new_input_before_and_the_note_after() -> None:
    gemini = CLIENTS["gemini"]
    answer = said(gemini.allow(asked("gemini"), "whisper-tui exec 1-a", "unheard"))
    assert answer["decision"] == "allow"
    assert answer["hookSpecificOutput"]["tool_input"]["command"] == "whisper-tui exec 1-a"
    assert "unheard" not in json.dumps(answer)
    assert said(gemini.deny("use make test")) == {"decision": "deny", "reason": "use make test"}


def test_the_plugin_of_opencode_gets_a_command_and_a_note() -> None:
    opencode = CLIENTS["opencode"]
    assert said(opencode.allow(asked("opencode"), "x", "n")) == {"decision": "allow", "command": "x", "note": "n"}
    assert said(opencode.deny("no")) == {"decision": "deny", "reason": "no"}


@pytest.mark.parametrize("client", ["claude", "codex", "crush"])
def test_a_denial_gives_the_reason_word_for_word(client: str) -> None:
    answer = said(CLIENTS[client].deny('use "make test"\ninstead'))["hookSpecificOutput"]
    assert (answer["permissionDecision"], answer["permissionDecisionReason"]) == ("deny", 'use "make test"\ninstead')
