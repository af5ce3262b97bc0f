"""Edits and other tools of an agent: its hook asks, a human decides, and the agent's own tool is answered."""

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.agent_shell import HUMAN, Shell, finished, reason, shell
from tests.cli.conftest import ANSWER_S
from tests.outside import outside_only
from whisper_tui.model.call import CommandSpec, DeleteFile, FileChange, FileEdits, Function, WriteFile
from whisper_tui.model.decision import Approve
from whisper_tui.wire.client import SupervisorClient

__all__ = ["shell"]
pytestmark = outside_only

MAKE = "all:\n\techo hello\n"


@pytest.fixture
def makefile(shell: Shell) -> Path:
    """A file whose edits are asked about, because it is run later."""
    path = shell.instance.workspace / "Makefile"
    path.write_text(MAKE)
    return path


def edit(shell: Shell, path: Path | str, *options: str, **changes: Any) -> "subprocess.Popen[bytes]":
    """Claude Code asks about an edit."""
    given = {"file_path": str(path), "old_string": "hello", "new_string": "goodbye", "replace_all": False, **changes}
    return shell.ask("", *options, tool_name="Edit", tool_input=given)


def write(shell: Shell, path: Path | str, content: str) -> "subprocess.Popen[bytes]":
    return shell.ask("", tool_name="Write", tool_input={"file_path": str(path), "content": content})


def allowed(answer: Any) -> dict[str, Any]:
    decision: dict[str, Any] = answer["hookSpecificOutput"]
    assert decision["permissionDecision"] == "allow", decision
    return decision


def approve(shell: Shell, change: Callable[[CommandSpec], object] = lambda _: None) -> None:
    """A human approves the waiting call, perhaps with another command."""

    async def decide() -> None:
        door = await SupervisorClient.connect(shell.instance.home)
        record = await door.record(call_id)
        changed = change(record.spec)
        edited = None if changed is None else record.spec.model_copy(update={"command": changed})
        await door.decide(call_id, Approve(edited=edited), HUMAN, record.seen_digest())
        await door.close()

    call_id = shell.waiting()
    asyncio.run(decide())


def results(*changes: FileChange) -> Callable[[CommandSpec], object]:
    """A human gives files other contents."""

    def change(spec: CommandSpec) -> FileEdits:
        assert isinstance(spec.command, FileEdits)
        return spec.command.model_copy(update={"changes": changes})

    return change


def test_an_ordinary_edit_in_the_workspace_goes_on_at_once_and_is_recorded(shell: Shell) -> None:
    (shell.instance.root / "config" / "rules.toml").write_text('unasked = "workspace"\n')
    path = shell.instance.workspace / "notes.txt"
    path.write_text("hello\n")
    assert allowed(finished(edit(shell, path))) == {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    (row,) = shell.instance.rows("history")
    assert "notes.txt" in json.dumps(row)
    assert path.read_text() == "hello\n", "the agent's own tool makes the edit"


@pytest.mark.slow
def test_what_was_undone_stands_beside_the_next_answer_unless_that_is_not_wanted(shell: Shell) -> None:
    (shell.instance.root / "config" / "rules.toml").write_text('unasked = "workspace"\n')
    path = shell.instance.workspace / "notes.txt"
    said = []
    for call, options in (("1", ()), ("2", ("--quiet",)), ("3", ())):
        path.write_text("hello\n")
        said.append(allowed(finished(edit(shell, path, new_string=f"goodbye {call}"))).get("additionalContext"))
        path.write_text(f"goodbye {call}\n")
        undone = shell.instance.run("undo", call, *options)
        assert (undone.stdout, path.read_text()) == (f"Call {call}: undone\n", "hello\n"), undone.stderr
    last = allowed(finished(edit(shell, path, new_string="goodbye 4")))
    told = "The human has undone the changes of edit {}: notes.txt is as it was before it."
    assert said[0] is None and said[2] is None
    assert said[1].startswith(told.format(1))
    assert last["additionalContext"].startswith(told.format(3))
    assert told.format(3) in shell.instance.run("show", "4", "--told").stdout


def test_an_approved_edit_is_allowed_as_it_was_asked(shell: Shell, makefile: Path) -> None:
    asking = edit(shell, makefile)
    approve(shell)
    assert set(allowed(finished(asking))) == {"hookEventName", "permissionDecision"}
    assert (shell.row("1")["state"], shell.row("1")["ending"]) == ("ended", "handed_over")


@pytest.mark.slow
def test_an_approval_of_files_covers_later_edits_of_them_and_is_listed(shell: Shell, makefile: Path) -> None:
    asking = edit(shell, makefile)
    call = shell.waiting()
    run = shell.instance.run
    assert "remember as   /Makefile" in run("show", call).stdout
    tried = run("approve", call, "--path", "/Makefile", "--dry-run")
    assert "would have covered 1 of the last 1 calls:" in tried.stdout, tried.stderr
    given = run("approve", call, "--path", "/Makefile", "--times", "5")
    assert "Edits of Makefile are made without approval 5 more times." in given.stdout, given.stderr
    allowed(finished(asking))
    allowed(finished(edit(shell, makefile, new_string="again")))
    (grant,) = shell.instance.rows("approvals")
    assert (grant["target"]["path"], grant["uses"], grant["most_uses"]) == ("/Makefile", 1, 5)
    assert "edits of Makefile" in run("approvals").stdout


@pytest.mark.slow
def test_the_rule_of_an_approval_is_saved_for_the_workspace(shell: Shell, makefile: Path) -> None:
    asking = edit(shell, makefile)
    given = shell.instance.run("approve", shell.waiting(), "--path", "/Makefile", "--save", "project")
    assert "A rule is saved: edits of Makefile are made without approval in this workspace." in given.stdout
    allowed(finished(asking))
    (rule,) = shell.instance.rows("rules", "list")
    assert (rule["path"], rule["directory"]) == ("/Makefile", str(shell.instance.workspace))
    allowed(finished(edit(shell, makefile, new_string="again")))
    # Keys of ssh and the like are asked about whatever a rule allows, and a pattern of them would never hold.
    asking = edit(shell, shell.instance.workspace / ".git" / "config", old_string="", new_string="x")
    call = shell.waiting()
    tried = shell.instance.run("approve", call, "--path", ".git/", "--dry-run")
    assert "would have covered 0 of the last" in tried.stdout, tried.stderr
    shell.deny(call, "no")
    finished(asking)


@pytest.mark.slow
def test_an_approval_that_is_not_about_the_call_is_refused(shell: Shell, makefile: Path) -> None:
    asking = edit(shell, makefile)
    call = shell.waiting()
    for words, sentence in (
        (["--host", "example.org"], "it does not name the hosts of this call"),
        (["--of-tool", "Edit"], "it is about a tool, and this call is about files or hosts"),
        (["--path", "//etc/motd", "--save", "project"], "covers no files outside of it"),
        (["--path", "!x"], "begins with '!'"),
        (["--path", "x", "--prefix", "make"], "--prefix and --path exclude each other"),
    ):
        answer = shell.instance.run("approve", call, *words)
        assert answer.returncode != 0 and sentence in answer.stderr, (words, answer.stderr)
    shell.deny(call, "no")
    finished(asking)


def test_a_denied_edit_reports_the_reason_of_the_human(shell: Shell, makefile: Path) -> None:
    asking = edit(shell, makefile)
    shell.deny(shell.waiting(), "leave the Makefile alone")
    assert "leave the Makefile alone" in reason(finished(asking))


@pytest.mark.slow
def test_the_result_of_a_human_replaces_the_whole_file_and_the_model_is_told(shell: Shell, makefile: Path) -> None:
    asking = edit(shell, makefile)
    wanted = "# mine\n" + MAKE.replace("hello", "bye")
    approve(shell, results(WriteFile(path=str(makefile), content=wanted)))
    decision = allowed(finished(asking))
    given = {"file_path": str(makefile), "old_string": MAKE, "new_string": wanted}
    assert decision["updatedInput"] == given
    assert "The human changed the edit" in decision["additionalContext"]
    assert "+# mine\n" in decision["additionalContext"]


@pytest.mark.slow
def test_a_whole_file_gets_the_content_of_the_human(shell: Shell, makefile: Path) -> None:
    asking = write(shell, makefile, "agent's\n")
    approve(shell, results(WriteFile(path=str(makefile), content="human's\n")))
    given = {"file_path": str(makefile), "content": "human's\n"}
    assert allowed(finished(asking))["updatedInput"] == given


@pytest.mark.slow
def test_a_patch_is_written_anew_from_the_results(shell: Shell, makefile: Path) -> None:
    (shell.instance.workspace / "old.mk").write_text("gone\n")
    lines = ("*** Begin Patch", "*** Update File: Makefile", "@@", "-\techo hello", "+\techo bye", "*** End Patch")
    question = {"tool_name": "apply_patch", "tool_input": {"command": "\n".join(lines)}}
    asking = shell.ask("", client="codex", **question)
    wanted = (
        WriteFile(path=str(makefile), content="all:\n\ttrue\n"),
        DeleteFile(path=str(shell.instance.workspace / "old.mk")),
    )
    approve(shell, results(*wanted))
    assert allowed(finished(asking))["updatedInput"] == {
        "command": "*** Begin Patch\n*** Update File: Makefile\n@@\n-all:\n-\techo hello\n+all:\n+\ttrue\n"
        "*** Delete File: old.mk\n*** End Patch\n"
    }


@pytest.mark.slow
def test_a_file_that_changes_before_the_approval_is_asked_about_again(shell: Shell, makefile: Path) -> None:
    asking = edit(shell, makefile)
    shell.waiting()
    makefile.write_text(MAKE + "# by somebody else\n")
    approve(shell)
    shell.instance.until(lambda: shell.row("1")["state"] == "waiting")
    assert asking.poll() is None, "the hook still waits for the new decision"
    approve(shell)
    allowed(finished(asking))


@pytest.mark.slow
def test_at_its_deadline_an_edit_is_refused_and_asked_again(shell: Shell, makefile: Path) -> None:
    told = reason(finished(edit(shell, makefile, "--deadline", "1")))
    assert "nothing was changed" in told and "Make the same edit again" in told
    asking = edit(shell, makefile)
    shell.instance.until(lambda: shell.row("1")["agent_gave_up"] is None)
    approve(shell)
    allowed(finished(asking))
    assert len(shell.instance.rows("history")) == 1


def test_an_edit_through_a_link_that_leads_out_of_the_workspace_is_asked(shell: Shell, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notes.txt").write_text("hello\n")
    (shell.instance.workspace / "link").symlink_to(outside)
    asking = edit(shell, "link/notes.txt")
    shell.deny(shell.waiting(), "not there")
    assert "not there" in reason(finished(asking))


@pytest.mark.slow
def test_a_relative_path_is_answered_as_the_absolute_one(shell: Shell) -> None:
    (shell.instance.root / "config" / "rules.toml").write_text('unasked = "workspace"\n')
    given = allowed(finished(write(shell, "new.txt", "x\n")))["updatedInput"]
    assert given == {"file_path": str(shell.instance.workspace / "new.txt"), "content": "x\n"}


@pytest.mark.slow
@pytest.mark.parametrize("path", ["a\0b", "", "~/.bashrc", "x" * 5000])
@pytest.mark.few(1)
def test_a_path_without_a_certain_file_is_refused_and_nobody_is_asked(shell: Shell, path: str) -> None:
    process = write(shell, path, "x")
    out, err = process.communicate(timeout=ANSWER_S)
    assert (process.returncode, out) == (2, b"")
    assert b"path" in err and b"Traceback" not in err
    assert shell.instance.rows("history") == []


@pytest.mark.slow
def test_a_fetch_is_asked_about_and_its_address_can_be_changed(shell: Shell) -> None:
    given = {"url": "https://example.org/a", "prompt": "what"}
    asking = shell.ask("", tool_name="WebFetch", tool_input=given)

    def change(spec: CommandSpec) -> Function:
        assert isinstance(spec.command, Function) and spec.command.targets == ("example.org",)
        return spec.command.model_copy(update={"arguments": {**given, "url": "https://example.org/b"}})

    approve(shell, change)
    decision = allowed(finished(asking))
    assert decision["updatedInput"] == {**given, "url": "https://example.org/b"}
    assert "https://example.org/b" in decision["additionalContext"]


@pytest.mark.slow
def test_a_tool_of_another_server_is_asked_about_and_a_sub_agent_is_recorded(shell: Shell) -> None:
    given = {"description": "sub", "prompt": "look", "subagent_type": "general-purpose"}
    allowed(finished(shell.ask("", tool_name="Agent", tool_input=given)))
    asking = shell.ask("", tool_name="mcp__github__delete_repo", tool_input={"name": "x"})
    shell.deny(shell.waiting(), "never")
    assert "never" in reason(finished(asking))
    assert len(shell.instance.rows("history")) == 2


@pytest.mark.slow
def test_a_tool_of_a_server_behind_our_gateway_is_asked_about_there_alone(shell: Shell) -> None:
    args = ["mcp", "--home", str(shell.instance.root), "--through", "docs", "--", "npx", "docs-server"]
    servers = {"mcpServers": {"docs": {"command": "whisper-tui", "args": args}}}
    (shell.instance.workspace / ".mcp.json").write_text(json.dumps(servers))
    home = {"HOME": str(shell.instance.root)}

    def called(**more: Any) -> "subprocess.Popen[bytes]":
        content = shell.question("", tool_name="mcp__docs__search", tool_input={"query": "x"}, **more)
        return shell.hook(content, "claude", **home)

    allowed(finished(called()))
    assert shell.instance.rows("history") == []
    asking = called(mcp_server={"name": "docs", "source": "dynamic"})
    shell.deny(shell.waiting(), "another server of that name")
    assert "another server" in reason(finished(asking))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": "/tmp/whisper-tui-canary-0123456789", "content": "x"}),
        ("WebFetch", {"url": "https://whisper-tui-canary-0123456789.example.invalid/", "prompt": "x"}),
    ],
)
def test_a_canary_in_an_edit_or_a_fetch_is_denied_with_nobody_asked(
    shell: Shell, tool: str, given: dict[str, str]
) -> None:
    assert "the gate is live" in reason(finished(shell.ask("", tool_name=tool, tool_input=given)))
    assert shell.instance.rows("history") == []


@pytest.mark.slow
def test_a_megabyte_to_be_replaced_that_is_not_there_is_asked_about_and_writes_nothing(
    shell: Shell, makefile: Path
) -> None:
    asking = edit(shell, makefile, old_string="x" * (1 << 20))
    shell.deny(shell.waiting(), "it does not fit")
    assert "it does not fit" in reason(finished(asking))
    assert makefile.read_text() == MAKE


@pytest.mark.slow
def test_a_patch_with_a_false_context_is_asked_and_nothing_is_written(shell: Shell, makefile: Path) -> None:
    lines = ("*** Begin Patch", "*** Update File: Makefile", "@@", " not there", "+evil", "*** End Patch")
    asking = shell.ask("", client="codex", tool_name="apply_patch", tool_input={"command": "\n".join(lines)})
    shell.deny(shell.waiting(), "it does not fit")
    assert "it does not fit" in reason(finished(asking))
    assert makefile.read_text() == MAKE


@pytest.mark.slow
def test_a_file_that_names_a_canary_can_be_edited(shell: Shell) -> None:
    (shell.instance.root / "config" / "rules.toml").write_text('unasked = "workspace"\n')
    allowed(finished(write(shell, shell.instance.workspace / "notes.txt", "whisper-tui-canary-0123456789\n")))
