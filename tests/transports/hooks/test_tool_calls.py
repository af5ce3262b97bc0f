"""Calls of agents' other tools are understood as what they do, and refused where that is not certain."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rows import each_row
from whisper_tui.agents.agent_tools import FileResult, changes_in, hosts_of, patch_of
from whisper_tui.agents.hook_formats import HookRequest
from whisper_tui.agents.known_clients import profiles
from whisper_tui.effects.edit_results import edited_paths
from whisper_tui.model.call import (
    DeleteFile,
    EditCell,
    FileChange,
    FileEdits,
    Function,
    Hunk,
    PatchFile,
    ReplaceText,
    Shell,
    WriteFile,
)
from whisper_tui.model.errors import InvalidRequest

HOOK_FORMATS = {profile.name: profile.hook for profile in profiles()}
CLIENTS = ("claude", "codex", "gemini", "opencode")
CAPTURED: dict[str, dict[str, dict[str, Any]]] = {
    client: json.loads(Path(__file__).with_name("payloads").joinpath(f"{client}.json").read_text())["payloads"]
    for client in CLIENTS
}

PATCH = (
    WriteFile(path="/scratch/new.txt", content="ORIGINAL line\n"),
    PatchFile(path="/scratch/a.txt", hunks=(Hunk(lines=("-hello", "+ORIGINAL")),)),
)
HELLO = (ReplaceText(path="/scratch", old="hello", new="goodbye"),)
NEW = (WriteFile(path="/scratch", content="one\ntwo\n"),)
MEANINGS: dict[tuple[str, str], Any] = {
    ("claude", "Edit"): HELLO,
    ("claude", "Write"): NEW,
    ("claude", "NotebookEdit"): (EditCell(path="/scratch", cell="c1", source="print(2)"),),
    ("claude", "WebFetch"): ("web", ("127.0.0.1:9",)),
    ("claude", "WebSearch"): ("web", ()),
    ("claude", "mcp__acc__echo"): ("server", ("acc", "echo")),
    ("claude", "Agent"): ("subagent", ("general-purpose",)),
    ("claude", "CronCreate"): ("subagent", ()),
    ("claude", "EnterWorktree"): ("", ()),
    ("codex", "apply_patch"): PATCH,
    ("codex", "mcp__acc__echo"): ("server", ("acc", "echo")),
    ("codex", "collaborationspawn_agent"): ("subagent", ("sub",)),
    ("gemini", "replace"): HELLO,
    ("gemini", "write_file"): NEW,
    ("gemini", "web_fetch"): ("web", ("127.0.0.1:9",)),
    ("gemini", "google_web_search"): ("web", ()),
    ("gemini", "mcp_acc_echo"): ("server", ("acc", "echo")),
    ("gemini", "invoke_agent"): ("subagent", ("generalist",)),
    ("opencode", "edit"): HELLO,
    ("opencode", "write"): NEW,
    ("opencode", "webfetch"): ("web", ("127.0.0.1:9",)),
    ("opencode", "acc_echo"): ("server", ("acc", "echo")),
    ("opencode", "task"): ("subagent", ("general",)),
}
"""What each captured call does. A call that is not here runs a command or passes."""
SHELLS = {"Bash", "run_shell_command", "bash"}
PASSING = {
    "Read", "ToolSearch", "view_image", "read_file", "activate_skill", "grep_search", "glob", "list_directory", "read",
    "skill", "grep", "todowrite",
}  # fmt: skip


def read(client: str, tool: str, **changes: Any) -> HookRequest | None:
    """Read a captured call, with some of its arguments changed."""
    content = CAPTURED[client][tool]
    return HOOK_FORMATS[client].read({**content, "tool_input": {**content["tool_input"], **changes}})


def edits(client: str, tool: str, **changes: Any) -> tuple[FileChange, ...]:
    found = read(client, tool, **changes)
    assert found is not None and isinstance(found.command, FileEdits)
    return found.command.changes


@each_row(("client", "tool"), [(client, tool) for client in CLIENTS for tool in CAPTURED[client]])
def test_every_captured_call_is_read_as_what_it_does(client: str, tool: str) -> None:
    found = read(client, tool)
    if tool in PASSING:
        assert found is None
        return
    assert found is not None and found.tool_input == CAPTURED[client][tool]["tool_input"]
    match found.command:
        case Shell():
            assert tool in SHELLS
        case FileEdits(tool=named, changes=changes):
            assert (named, changes) == (tool, MEANINGS[client, tool])
        case Function(tool=named, about=about, targets=targets, arguments=arguments):
            assert (named, (about, targets)) == (tool, MEANINGS[client, tool])
            assert arguments == found.tool_input


def test_a_call_of_a_sub_agent_names_it() -> None:
    content = {**CAPTURED["claude"]["Edit"], "agent_id": "a1", "agent_type": "reviewer"}
    found = HOOK_FORMATS["claude"].read(content)
    assert found is not None and found.asker == "reviewer"


@each_row(
    ("client", "tool", "changes", "meaning"),
    [
        ("claude", "Edit", {"replace_all": True}, ReplaceText(path="/scratch", old="hello", new="goodbye", every=True)),
        ("gemini", "replace", {"allow_multiple": True}, HELLO[0].model_copy(update={"every": True})),
        ("gemini", "replace", {"expected_replacements": 2}, HELLO[0].model_copy(update={"every": True})),
        ("opencode", "edit", {"replaceAll": True}, HELLO[0].model_copy(update={"every": True})),
        ("claude", "Write", {"file_path": "src/../../x"}, WriteFile(path="/scratch/src/../../x", content="one\ntwo\n")),
    ],
)
def test_switches_and_relative_paths_count(client: str, tool: str, changes: dict[str, Any], meaning: object) -> None:
    assert edits(client, tool, **changes) == (meaning,)


def test_a_relative_path_is_answered_as_the_absolute_one_that_was_judged() -> None:
    found = read("gemini", "write_file", file_path="sub.py")
    assert found is not None and found.absolute == {"file_path": "/scratch/sub.py"}


def test_an_old_tool_with_several_replacements_is_read_in_their_order() -> None:
    parts = [{"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "c", "replace_all": True}]
    content = {**CAPTURED["claude"]["Edit"], "tool_name": "MultiEdit"}
    found = HOOK_FORMATS["claude"].read({**content, "tool_input": {"file_path": "/x", "edits": parts}})
    assert found is not None and isinstance(found.command, FileEdits)
    assert found.command.changes == (
        ReplaceText(path="/x", old="a", new="b"),
        ReplaceText(path="/x", old="b", new="c", every=True),
    )


@each_row(
    ("client", "tool", "changes"),
    [
        ("claude", "Write", {"file_path": "/a\0b"}),
        ("claude", "Write", {"file_path": ""}),
        ("claude", "Write", {"file_path": "/" + "a" * 5000}),
        ("claude", "Write", {"file_path": "~/.bashrc"}),
        ("claude", "Write", {"file_path": " /etc/passwd"}),
        ("claude", "Write", {"file_path": ["/x"]}),
        ("claude", "Write", {"content": None}),
        ("claude", "Edit", {"old_string": 7}),
        ("claude", "Edit", {"replace_all": "yes"}),
        ("claude", "NotebookEdit", {"edit_mode": "explode"}),
        ("gemini", "replace", {"expected_replacements": "2"}),
        ("gemini", "replace", {"new_string": None}),
        ("opencode", "edit", {"oldString": None}),
        ("codex", "apply_patch", {"command": ["a", "list"]}),
    ],
)
def test_a_call_of_another_shape_is_refused(client: str, tool: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        read(client, tool, **changes)


@each_row("client", HOOK_FORMATS)
def test_a_tool_that_is_not_known_is_asked_about_with_its_arguments(client: str) -> None:
    hook = HOOK_FORMATS[client]
    given = {"file_path": "/etc/passwd", "content": "x"}
    found = hook.read({"session_id": "s", "cwd": "/w", "tool_name": "Scribble", "tool_input": given})
    assert found is not None and found.command == Function(tool="Scribble", arguments=given)


@each_row(
    ("client", "content"),
    [
        ("claude", {"tool_name": "mcp__whisper__execute_command"}),
        ("codex", {"tool_name": "mcp__whisper__execute_command"}),
        ("gemini", {"tool_name": "mcp_whisper_wait"}),
        ("opencode", {"tool_name": "whisper_wait", "servers": ["whisper", "acc"]}),
    ],
)
def test_our_own_tools_are_not_asked_about_twice(client: str, content: dict[str, Any]) -> None:
    assert HOOK_FORMATS[client].read({"session_id": "s", "cwd": "/w", "tool_input": {}, **content}) is None


@each_row(
    ("client", "content", "server"),
    [
        ("claude", {"tool_name": "mcp__whisper_x__run"}, ("whisper_x", "run")),
        ("claude", {"tool_name": "mcp__whisper___run"}, ("whisper", "_run")),
        ("claude", {"tool_name": "mcp__a__b__run", "mcp_server": {"name": "a__b"}}, ("a__b", "run")),
        ("claude", {"tool_name": "mcp__my_docs__run", "mcp_server": {"name": "my docs"}}, ("my docs", "run")),
        ("claude", {"tool_name": "mcp__evil__run", "mcp_server": {"name": "whisper"}}, ("evil", "run")),
        ("gemini", {"tool_name": "mcp_a_b_run", "mcp_context": {"server_name": "a_b"}}, ("a_b", "run")),
        ("opencode", {"tool_name": "whisper_x_run", "servers": ["whisper", "whisper_x"]}, ("whisper_x", "run")),
    ],
)
def test_the_server_of_a_tool_is_told_apart(client: str, content: dict[str, Any], server: tuple[str, str]) -> None:
    found = HOOK_FORMATS[client].read({"session_id": "s", "cwd": "/w", "tool_input": {}, **content})
    assert found is not None and isinstance(found.command, Function)
    assert (found.command.about, found.command.targets) == ("server", server)


def test_a_tool_of_opencode_whose_server_is_not_known_is_asked_about() -> None:
    found = HOOK_FORMATS["opencode"].read(
        {"session_id": "s", "cwd": "/w", "tool_name": "whisper_run", "tool_input": {}, "servers": ["acc"]}
    )
    assert found is not None and found.command == Function(tool="whisper_run", arguments={})


@each_row(
    ("url", "hosts"),
    [
        ("https://Docs.Python.org/3/", ("docs.python.org",)),
        ("http://example.org:8080/x", ("example.org:8080",)),
        ("https://example.org:443", ("example.org",)),
        ("http://[::1]/", ("[::1]",)),
        ("http://good.com\\@evil.com/", ()),
        ("http://good.com@evil.com/", ()),
        ("http://evil.com%2fgood.com/", ()),
        ("http://2130706433/", ()),
        ("http://0x7f.1/", ()),
        ("http:/evil.com", ()),
        ("http://go\tod.com", ()),
        ("http://\N{FULLWIDTH LATIN SMALL LETTER E}vil.com", ()),
        ("http://evil.com:port/", ()),
        ("file:///etc/passwd", ()),
        ("evil.com", ()),
    ],
)
def test_a_host_is_named_only_where_every_program_reads_the_same_one(url: str, hosts: tuple[str, ...]) -> None:
    assert hosts_of([url]) == hosts
    assert hosts_of(["https://fine.org", url]) == (("fine.org", *hosts) if hosts else ())


def test_every_address_in_a_prompt_counts() -> None:
    found = read("gemini", "web_fetch", prompt="compare https://a.org/x with\nhttps://b.org and https://a.org/y")
    assert found is not None and isinstance(found.command, Function) and found.command.targets == ("a.org", "b.org")
    hidden = read("gemini", "web_fetch", prompt="see https://a.org/x\ufeffhttps://evil\u200b.org")
    assert hidden is not None and isinstance(hidden.command, Function) and hidden.command.targets == ()


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


def changes(text: str) -> tuple[FileChange, ...]:
    return changes_in(text, lambda path: f"/w/{path}")


def test_the_whole_grammar_of_a_patch_is_read() -> None:
    text = patch(
        "*** Add File: new.py", "+one", "+", "+*** Delete File: b",
        "*** Delete File: old.py",
        "*** Update File: src/a.py", "*** Move to: src/b.py",
        "@@ class A:", " def f():", "-    pass", "+    return 1", "",
        "@@", "-last", "+end", "*** End of File",
    )  # fmt: skip
    assert changes(text) == (
        WriteFile(path="/w/new.py", content="one\n\n*** Delete File: b\n"),
        DeleteFile(path="/w/old.py"),
        PatchFile(
            path="/w/src/a.py",
            move_to="/w/src/b.py",
            hunks=(
                Hunk(heading="class A:", lines=(" def f():", "-    pass", "+    return 1", " ")),
                Hunk(lines=("-last", "+end"), at_end=True),
            ),
        ),
    )
    assert changes(text.replace("\n", "\r\n")) == changes(text)


@each_row(
    "text",
    [
        "",
        "touch x",
        "*** Begin Patch",
        patch(),
        patch("*** Update File: a"),
        patch("*** Update File: a", "@@"),
        patch("*** Update File: a", "@@", "hello"),
        patch("*** Update File: a", "@@heading", "-a", "+b"),
        patch("*** Update File: a", "-a", "+b", "*** End of File", "-c"),
        patch("*** Update File: .bashrc:x", "@@", "+evil"),
        patch("*** Rename File: a"),
        patch("*** Add File: a", "hello"),
        patch("+hello"),
        patch("*** Add File: a", "+x") + "\n*** Begin Patch",
    ],
)
def test_a_patch_that_cannot_be_read_with_certainty_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        changes(text)


@pytest.mark.parametrize("old", [None, "", "a\nb\n", "a\nb", "a\n\n\n", "*** End Patch\n@@\n+x\n"])
@pytest.mark.parametrize("new", ["", "x\n", "a\n+b\n\n", "*** End Patch\n", "a\nb\nc\n"])
def test_a_patch_written_from_two_contents_makes_the_second_of_the_first(
    old: str | None, new: str, tmp_path: Path
) -> None:
    if old == new:
        return
    if old is not None:
        (tmp_path / "file").write_text(old)
    found = changes_in(patch_of([("file", old, new)]), lambda path: str(tmp_path / path))
    assert _as_programs_apply(found, old) == new


def _as_programs_apply(found: tuple[FileChange, ...], old: str | None) -> str:
    """What programs make of a file's only hunk, which is about all of its lines."""
    (change,) = found
    if isinstance(change, WriteFile):
        return change.content
    assert isinstance(change, PatchFile)
    (hunk,) = change.hunks
    lines = (old or "").split("\n")
    assert [line[1:] for line in hunk.lines if line[0] == "-"] == (lines[:-1] if lines[-1] == "" else lines)
    made = [line[1:] for line in hunk.lines if line[0] == "+"]
    return "\n".join(made if made and made[-1] == "" else [*made, ""])


def test_a_patch_deletes_and_a_file_with_line_ends_of_windows_is_refused() -> None:
    assert changes(patch_of([("a", "x\n", None), ("b", "same", "same")])) == (DeleteFile(path="/w/a"),)
    with pytest.raises(InvalidRequest, match="line ends of Windows"):
        patch_of([("a", "x\r\n", "y\n")])


WHOLE = FileResult("/scratch", "hello\nworld\n", "other\n")


@each_row(
    ("client", "tool", "arguments"),
    [
        ("claude", "Write", {"content": "other\n"}),
        ("claude", "Edit", {"old_string": "hello\nworld\n", "new_string": "other\n"}),
        ("gemini", "write_file", {"content": "other\n"}),
        ("gemini", "replace", {"old_string": "hello\nworld\n", "new_string": "other\n"}),
        ("opencode", "write", {"content": "other\n"}),
        ("opencode", "edit", {"oldString": "hello\nworld\n", "newString": "other\n"}),
    ],
)
def test_the_result_of_a_human_is_written_in_the_words_of_the_client(
    client: str, tool: str, arguments: dict[str, str]
) -> None:
    found = read(client, tool)
    assert found is not None
    rest = {key: value for key, value in found.tool_input.items() if key != "replace_all"}
    assert HOOK_FORMATS[client].rewritten(found, [WHOLE]) == {**rest, **arguments}


def test_a_file_with_line_ends_of_windows_is_replaced_as_programs_see_it() -> None:
    found = read("claude", "Edit")
    assert found is not None
    given = HOOK_FORMATS["claude"].rewritten(found, [FileResult("/scratch", "a\r\nb\r\n", "a\r\nc\r\n")])
    assert (given["old_string"], given["new_string"]) == ("a\nb\n", "a\nc\n")
    with pytest.raises(InvalidRequest, match="several kinds"):
        HOOK_FORMATS["claude"].rewritten(found, [FileResult("/scratch", "a\r\nb\n", "a\n")])


@each_row(
    "files",
    [[WHOLE._replace(new=None)], [WHOLE._replace(path="/other")], [WHOLE, WHOLE], [WHOLE._replace(new=WHOLE.old)], []],
    ids=["deleted", "another file", "two files", "nothing left", "no file"],
)
def test_a_result_that_a_tool_cannot_make_is_refused(files: list[FileResult]) -> None:
    found = read("claude", "Edit")
    assert found is not None
    with pytest.raises(InvalidRequest):
        HOOK_FORMATS["claude"].rewritten(found, files)


def test_a_notebook_takes_no_other_result_and_says_so_before() -> None:
    found = read("claude", "NotebookEdit")
    assert found is not None and isinstance(found.command, FileEdits) and not found.command.takes_result
    with pytest.raises(InvalidRequest, match="no other result"):
        HOOK_FORMATS["claude"].rewritten(found, [WHOLE])


def test_a_patch_for_several_files_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    content = {**CAPTURED["codex"]["apply_patch"], "cwd": str(tmp_path)}
    codex = HOOK_FORMATS["codex"]
    found = codex.read(content)
    assert found is not None
    wanted = [
        FileResult(str(tmp_path / "new.txt"), None, "mine\n"),
        FileResult(str(tmp_path / "a.txt"), "hello\n", "hi\n"),
    ]
    given = codex.rewritten(found, wanted)
    assert "Add File: new.txt" in given["command"]
    again = codex.read({**content, "tool_input": given})
    assert again is not None and isinstance(again.command, FileEdits)
    results = edited_paths(again.command.changes).now
    assert {path: content.data for path, content in results.items()} == {
        str(tmp_path / "new.txt"): b"mine\n",
        str(tmp_path / "a.txt"): b"hi\n",
    }


def test_codex_takes_no_decision_without_the_whole_input() -> None:
    found = read("codex", "apply_patch")
    assert found is not None
    answer = json.loads(HOOK_FORMATS["codex"].allow(found, None, "").stdout)["hookSpecificOutput"]
    assert answer["updatedInput"] == found.tool_input
    plain = json.loads(HOOK_FORMATS["claude"].allow(found, None, "").stdout)["hookSpecificOutput"]
    assert "updatedInput" not in plain
