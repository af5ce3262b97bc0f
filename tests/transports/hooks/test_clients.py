"""What each agent's hook says is understood, and what it is answered is in its own words."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rows import each_row
from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.agents.agent_tools import FileResult
from whisper_tui.agents.codex_programs import login_shell
from whisper_tui.agents.hook_formats import NO_DECISION, HookAnswer, HookRequest, parsed
from whisper_tui.agents.known_clients import KNOWN, profile_of, profiles
from whisper_tui.agents.model_instructions import OWN_SHELL_INSTRUCTIONS, WORK_RUNS
from whisper_tui.model.call import FileChange, FileEdits, Function, ReplaceText, Shell, WriteFile
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.transports.hook.exec_endpoint import ShellDirectory
from whisper_tui.transports.hook.hook_endpoint import DecidedCalls, HookQuestion
from whisper_tui.transports.hook.what_ran import WhatRan

HOOK_FORMATS = {profile.name: profile.hook for profile in profiles()}

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
    "copilot": {
        "sessionId": "p1",
        "timestamp": 1795352347034,
        "cwd": "/srv/project",
        "toolName": "bash",
        "toolArgs": {"command": "make", "description": "Build it"},
    },
    "qwen": {
        "session_id": "q1",
        "cwd": "/srv/project",
        "hook_event_name": "PreToolUse",
        "tool_name": "run_shell_command",
        "tool_input": {"command": "make", "is_background": False},
        "tool_use_id": "toolu_1",
    },
    "kimi": {
        "hook_event_name": "PreToolUse",
        "session_id": "session_k1",
        "cwd": "/srv/project",
        "client_type": "kimi_code_cli",
        "tool_name": "Bash",
        "tool_input": {"command": "make", "cwd": "sub"},
        "tool_call_id": "call_1",
    },
    "kilo": {
        "session_id": "i1",
        "call_id": "prt_2",
        "cwd": "/srv/project",
        "pid": 8,
        "tool_name": "bash",
        "tool_input": {"command": "make", "workdir": "sub"},
    },
    "crush": {
        "event": "PreToolUse",
        "session_id": "k1",
        "cwd": "/srv/project",
        "tool_name": "bash",
        "tool_input": {"command": "make"},
    },
}


def changed(client: str, change: dict[str, Any]) -> dict[str, Any]:
    """Return the client's input with other members."""
    own = {"tool_name": "toolName", "tool_input": "toolArgs"} if client == "copilot" else {}
    return {**INPUTS[client], **{own.get(name, name): value for name, value in change.items()}}


def asked(client: str) -> HookRequest:
    found = HOOK_FORMATS[client].read(INPUTS[client])
    assert found is not None
    return found


def said(answer: HookAnswer) -> Any:
    assert (answer.code, answer.stderr) == (0, "")
    return json.loads(answer.stdout)


@each_row(
    ("client", "directory", "call_id"),
    [
        ("claude", "/srv/project", "toolu_1"),
        ("codex", "/srv/project", "call_1"),
        ("gemini", "/srv/project/sub", None),
        ("opencode", "/srv/other", "prt_1"),
        ("copilot", "/srv/project", None),
        ("kimi", "/srv/project/sub", "call_1"),
        ("kilo", "/srv/project/sub", "prt_2"),
        ("crush", "/srv/project", None),
    ],
)
def test_the_command_its_directory_and_its_name_are_read(client: str, directory: str, call_id: str | None) -> None:
    found = asked(client)
    assert (found.command, found.cwd, found.call_id) == (Shell(text="make"), directory, call_id)
    assert found.session == INPUTS[client]["sessionId" if client == "copilot" else "session_id"]


def test_a_helper_of_the_agent_and_the_model_are_told_apart() -> None:
    assert asked("claude").asker == "reviewer"
    assert asked("codex").model == "gpt"


def test_an_event_after_the_command_is_let_pass() -> None:
    assert HOOK_FORMATS["claude"].read({**INPUTS["claude"], "hook_event_name": "PostToolUse"}) is None


@each_row("client", HOOK_FORMATS)
def test_a_tool_that_is_not_known_and_has_a_command_does_not_pass(client: str) -> None:
    with pytest.raises(InvalidRequest, match="'Terminal' is unknown"):
        HOOK_FORMATS[client].read(changed(client, {"tool_name": "Terminal"}))


@each_row("client", ["claude", "codex", "gemini", "crush"])
def test_an_event_that_is_not_known_does_not_pass(client: str) -> None:
    name = "event" if client == "crush" else "hook_event_name"
    with pytest.raises(InvalidRequest, match="'BeforeShell' is unknown"):
        HOOK_FORMATS[client].read({**INPUTS[client], name: "BeforeShell"})


def test_a_monitor_of_a_command_is_asked_about_and_keeps_its_own_settings() -> None:
    watches = {"command": "tail -f log", "description": "Watch it", "timeout_ms": 5000, "persistent": True}
    found = HOOK_FORMATS["claude"].read({**INPUTS["claude"], "tool_name": "Monitor", "tool_input": watches})
    assert found is not None
    assert (found.tool, found.command) == ("Monitor", Shell(text="tail -f log"))
    answer = said(HOOK_FORMATS["claude"].allow(found, {**watches, "command": "x"}, ""))["hookSpecificOutput"]
    assert answer["updatedInput"] == {**watches, "command": "x"}


@pytest.mark.parametrize(
    ("tool", "tool_input", "why"),
    [
        ("Monitor", {"ws": {"url": "wss://example.org"}, "description": "Watch it"}, "runs no command"),
        ("PowerShell", {"command": "Get-Date"}, "commands of PowerShell"),
    ],
)
def test_a_call_that_is_no_shell_command_is_refused(tool: str, tool_input: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        HOOK_FORMATS["claude"].read({**INPUTS["claude"], "tool_name": tool, "tool_input": tool_input})


@each_row("client", HOOK_FORMATS)
@each_row(
    "change",
    [{"tool_input": "make"}, {"tool_input": {}}, {"tool_name": None}, {"cwd": "relative"}, {"cwd": None}],
    ids=["text for input", "no command", "no tool", "a relative directory", "no directory"],
)
def test_an_input_that_is_not_understood_is_refused(client: str, change: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        HOOK_FORMATS[client].read(changed(client, change))


@each_row("text", ["", "[]", "no json", "[" * 100_000])
def test_input_other_than_a_json_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parsed(text)


def test_claude_and_codex_get_the_whole_input_back_and_the_note_where_the_model_sees_it() -> None:
    asks = asked("claude")
    given = {**asks.tool_input, "command": "whisper-tui exec 1-a"}
    answer = said(HOOK_FORMATS["claude"].allow(asks, given, "The human changed it."))
    assert answer == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": {"command": "whisper-tui exec 1-a", "description": "Build it", "timeout": 1000},
            "additionalContext": "The human changed it.",
        }
    }
    plain = said(HOOK_FORMATS["codex"].allow(asked("codex"), {"command": "whisper-tui exec 1-a"}, ""))
    assert "additionalContext" not in plain["hookSpecificOutput"]


@each_row("client", ["claude", "codex", "gemini", "qwen"])
def test_a_model_is_told_at_the_start_of_a_session_and_not_when_it_goes_on(client: str) -> None:
    chosen, start = HOOK_FORMATS[client], {"hook_event_name": "SessionStart", "source": "startup"}
    assert chosen.is_session_start(start) and not chosen.is_session_start(changed(client, {}))
    answer = chosen.session_start(start)
    assert answer.code == 0
    output = said(answer)["hookSpecificOutput"]
    assert output == {"hookEventName": "SessionStart", "additionalContext": OWN_SHELL_INSTRUCTIONS}
    assert chosen.session_start({**start, "source": "resume"}) == NO_DECISION


async def test_kimi_is_told_with_the_first_prompt_of_each_session_alone(bench: Bench, tmp_path: Path) -> None:
    shell_directory = ShellDirectory(tmp_path / "directories", lambda _: None, lambda _: False)
    decisions, what_ran = DecidedCalls(), WhatRan(bench.supervisor, bench.supervisor.raise_alarm)

    async def prompted(session: str) -> HookAnswer:
        given = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": "/", "prompt": []}
        hello = {"client": "kimi", "input": json.dumps(given), "nonce": "n", "launcher": ["whisper-tui"]}
        return await HookQuestion(bench.supervisor, hello, shell_directory, decisions, what_ran).answer()

    for session in ("a", "b"):
        assert said(await prompted(session)) == {"message": OWN_SHELL_INSTRUCTIONS}
        assert await prompted(session) == await prompted(session) == NO_DECISION


async def test_a_model_is_told_once_that_ordinary_work_runs_unasked(bench: Bench, tmp_path: Path) -> None:
    shell_directory = ShellDirectory(tmp_path / "directories", lambda _: None, lambda _: False)
    decisions, what_ran = DecidedCalls(), WhatRan(bench.supervisor, bench.supervisor.raise_alarm)

    async def started() -> str:
        given = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/", "source": "startup"}
        hello = {"client": "claude", "input": json.dumps(given), "nonce": "n", "launcher": ["whisper-tui"]}
        answer = await HookQuestion(bench.supervisor, hello, shell_directory, decisions, what_ran).answer()
        return str(said(answer)["hookSpecificOutput"]["additionalContext"])

    assert await started() == OWN_SHELL_INSTRUCTIONS
    await bench.supervisor.set_unasked("workspace", HUMAN, until=time.time() + 3600)
    assert await started() == f"{OWN_SHELL_INSTRUCTIONS} {WORK_RUNS}"


def test_what_kimi_appends_to_a_file_is_shown_as_its_arguments() -> None:
    given = {"path": "/srv/project/a", "content": "more\n"}
    writes = HOOK_FORMATS["kimi"].read(changed("kimi", {"tool_name": "Write", "tool_input": given}))
    appends = HOOK_FORMATS["kimi"].read(
        changed("kimi", {"tool_name": "Write", "tool_input": {**given, "mode": "append"}})
    )
    assert writes is not None and isinstance(writes.command, FileEdits)
    assert appends is not None and appends.command == Function(tool="Write", arguments={**given, "mode": "append"})


def test_copilot_is_told_where_it_looks() -> None:
    start = {"hook_event_name": "SessionStart", "source": "new"}
    assert HOOK_FORMATS["copilot"].is_session_start(start)
    assert said(HOOK_FORMATS["copilot"].session_start(start)) == {"additionalContext": OWN_SHELL_INSTRUCTIONS}
    assert not HOOK_FORMATS["copilot"].is_session_start(INPUTS["copilot"])


def test_gemini_gets_a_new_input_before_and_the_note_after() -> None:
    gemini = HOOK_FORMATS["gemini"]
    answer = said(gemini.allow(asked("gemini"), {"command": "whisper-tui exec 1-a"}, "unheard"))
    assert answer["decision"] == "allow"
    assert answer["hookSpecificOutput"]["tool_input"]["command"] == "whisper-tui exec 1-a"
    assert "unheard" not in json.dumps(answer)
    assert said(gemini.deny("use make test")) == {"decision": "deny", "reason": "use make test"}


def test_the_plugin_of_opencode_gets_a_command_and_a_note() -> None:
    opencode = HOOK_FORMATS["opencode"]
    answer = {"decision": "allow", "arguments": {"command": "x"}, "command": "x", "note": "n"}
    assert said(opencode.allow(asked("opencode"), {"command": "x"}, "n")) == answer
    assert said(opencode.deny("no")) == {"decision": "deny", "reason": "no"}


def test_the_plugin_of_opencode_learns_what_a_human_has_decided() -> None:
    opencode = HOOK_FORMATS["opencode"]
    assert "decided" not in said(opencode.allow(asked("opencode"), None, ""))
    assert said(opencode.allow(replace(asked("opencode"), decided=True), None, ""))["decided"] is True


@each_row("client", ["claude", "codex", "crush"])
def test_a_denial_gives_the_reason_word_for_word(client: str) -> None:
    answer = said(HOOK_FORMATS[client].deny('use "make test"\ninstead'))["hookSpecificOutput"]
    assert (answer["permissionDecision"], answer["permissionDecisionReason"]) == ("deny", 'use "make test"\ninstead')


class TestCopilot:
    """As it was measured: other names, the decision at the top of the answer, and no matcher."""

    hook = HOOK_FORMATS["copilot"]

    def test_a_change_is_given_as_its_arguments_and_a_denial_with_its_reason(self) -> None:
        arguments = {"command": "whisper-tui exec 1-a", "description": "Build it"}
        assert said(self.hook.allow(asked("copilot"), None, "")) == {"permissionDecision": "allow"}
        assert said(self.hook.allow(asked("copilot"), arguments, "The human changed it.")) == {
            "permissionDecision": "allow",
            "modifiedArgs": arguments,
            "updatedInput": arguments,
            "additionalContext": "The human changed it.",
        }
        denial = said(self.hook.deny("no\n“that”"))
        assert denial == {"permissionDecision": "deny", "permissionDecisionReason": "no\n“that”"}
        assert self.hook.denial_in(denial) == "no\n“that”"

    def test_arguments_as_text_are_read_and_a_text_that_is_no_object_is_refused(self) -> None:
        found = self.hook.read(changed("copilot", {"tool_input": '{"command": "make all"}'}))
        assert found is not None and found.command == Shell(text="make all")
        for text in ("make", "[]", ""):
            with pytest.raises(InvalidRequest):
                self.hook.read(changed("copilot", {"tool_input": text}))

    @pytest.mark.parametrize(
        ("tool", "given", "change"),
        [
            ("create", {"path": "new.py", "file_text": "a"}, WriteFile(path="/srv/project/new.py", content="a")),
            (
                "edit",
                {"path": "/srv/project/a.py", "old_str": "b", "new_str": "c"},
                ReplaceText(path="/srv/project/a.py", old="b", new="c"),
            ),
        ],
    )
    def test_edits_are_read_and_get_the_result_of_a_human(
        self, tool: str, given: dict[str, Any], change: FileChange
    ) -> None:
        found = self.hook.read(changed("copilot", {"tool_name": tool, "tool_input": given}))
        assert found is not None and isinstance(found.command, FileEdits)
        assert found.command.changes == (change,)
        old = None if tool == "create" else "b\n"
        result = self.hook.rewritten(found, [FileResult(change.path, old, "by the human\n")])
        assert "by the human\n" in result.values()

    def test_a_patch_is_a_text_of_its_own_and_is_changed_as_one(self) -> None:
        lines = ("*** Begin Patch", "*** Update File: a.py", "@@", "-b", "+c", "*** End Patch")
        found = self.hook.read(changed("copilot", {"tool_name": "apply_patch", "tool_input": "\n".join(lines)}))
        assert found is not None and isinstance(found.command, FileEdits)
        assert [change.path for change in found.command.changes] == ["/srv/project/a.py"]
        result = self.hook.rewritten(found, [FileResult("/srv/project/a.py", "b\n", "by the human\n")])
        patch = said(self.hook.allow(found, result, ""))["modifiedArgs"]
        assert patch.startswith("*** Begin Patch\n*** Update File: a.py\n") and "+by the human\n" in patch

    @pytest.mark.parametrize("more", [{"mode": "async"}, {"detach": True}])
    def test_a_command_that_goes_on_by_itself_is_one_in_the_background(self, more: dict[str, Any]) -> None:
        given = {"tool_input": {"command": "make", **more}}
        found = self.hook.read(changed("copilot", given))
        assert found is not None and found.background
        assert not asked("copilot").background

    def test_the_tools_of_configured_servers_are_known_by_the_longest_name(self) -> None:
        servers = {"servers": ["my", "my-notes", "whisper"]}
        targets = {}
        for tool in ("my-notes-keep", "my-list", "whisper-wait", "your-list"):
            found = self.hook.read({**changed("copilot", {"tool_name": tool, "tool_input": {}}), **servers})
            assert found is not None and isinstance(found.command, Function)
            targets[tool] = found.command.targets
        assert targets == {
            "my-notes-keep": ("my-notes", "keep"),
            "my-list": ("my", "list"),
            "whisper-wait": ("whisper", "wait"),
            "your-list": (),
        }

    def test_reading_passes_and_typing_into_a_shell_is_asked_about(self) -> None:
        assert self.hook.read(changed("copilot", {"tool_name": "view", "tool_input": {"path": "x"}})) is None
        typed = self.hook.read(changed("copilot", {"tool_name": "write_bash", "tool_input": {"input": "rm -rf x"}}))
        assert typed is not None and isinstance(typed.command, Function)

    def test_fetches_have_their_host_and_sub_agents_their_name(self) -> None:
        fetch = {"tool_name": "web_fetch", "tool_input": {"url": "https://example.org/x"}}
        task = {"tool_name": "task", "tool_input": {"agent_type": "explore", "prompt": "look"}}
        commands = [found.command for change in (fetch, task) if (found := self.hook.read(changed("copilot", change)))]
        assert [(each.about, each.targets) for each in commands if isinstance(each, Function)] == [
            ("web", ("example.org",)),
            ("subagent", ("explore",)),
        ]


class TestQwen:
    """It takes no other arguments than its own."""

    hook = HOOK_FORMATS["qwen-code"] if "qwen-code" in HOOK_FORMATS else HOOK_FORMATS["qwen"]

    def test_an_edit_takes_no_other_result(self) -> None:
        given = {"file_path": "/srv/project/a.py", "old_string": "b", "new_string": "c"}
        found = self.hook.read({**INPUTS["qwen"], "tool_name": "edit", "tool_input": given})
        assert found is not None and isinstance(found.command, FileEdits) and not found.command.takes_result

    @pytest.mark.parametrize(
        ("tool", "given"),
        [
            ("write_file", {"file_path": "a.py", "content": "x"}),
            ("run_shell_command", {"command": "make", "directory": "sub"}),
        ],
    )
    def test_relative_paths_are_refused_because_no_others_can_be_given_back(
        self, tool: str, given: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidRequest, match="relative"):
            self.hook.read({**INPUTS["qwen"], "tool_name": tool, "tool_input": given})


def test_the_shell_of_a_client_is_the_one_that_the_client_itself_would_use() -> None:
    given = {"SHELL": "/bin/zsh", "CLAUDE_CODE_SHELL": "/bin/bash"}
    own = {name: profile.shell(given) for name in KNOWN if (profile := profile_of(name)).shell is not None}
    assert own.pop("codex") == login_shell({}), "whatever SHELL says"
    # The others run commands in bash, whatever the user's shell is.
    assert own == {"claude": "/bin/bash", "opencode": "/bin/zsh", "kilo": "/bin/zsh"}
    assert profile_of("claude").shell({"SHELL": "/bin/zsh"}) == "/bin/zsh"
