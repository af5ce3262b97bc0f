"""The agents' own shells: a hook asks, and a human decides."""

import io
import json
import shlex
import signal
import subprocess
from contextlib import redirect_stdout

import pytest

from tests.agent_process import AgentProcess
from tests.cli.agent_shell import Shell, finished, reason, rewritten, shell
from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.outside import outside_only
from whisper_tui.cli.commands.approve import say_approved
from whisper_tui.model.call import LARGEST_EDITED
from whisper_tui.transports.hook.hook_program import LONGEST_INPUT

__all__ = ["shell"]
pytestmark = outside_only


def test_an_edited_command_runs_instead_and_the_model_is_told(shell: Shell) -> None:
    asking = shell.ask("echo asked")
    shell.approve(shell.waiting(), "echo edited")
    answer = finished(asking)
    assert shell.run(shlex.split(rewritten(answer))).stdout == b"edited\n"
    assert "What ran: echo edited" in answer["hookSpecificOutput"]["additionalContext"]


def test_a_denied_command_never_runs_and_the_reason_is_reported_verbatim(shell: Shell) -> None:
    asking = shell.ask("touch ran")
    shell.deny(shell.waiting(), "use make test instead")
    assert "use make test instead" in reason(finished(asking))
    assert not (shell.instance.workspace / "ran").exists()


@pytest.mark.slow
def test_at_its_deadline_the_hook_denies_and_the_same_command_keeps_waiting(shell: Shell) -> None:
    told = reason(finished(shell.ask("echo late", "--deadline", "1")))
    assert "Not approved yet" in told and "ticket 1" in told
    assert (shell.row("1")["state"], shell.row("1")["agent_gave_up"]) == ("waiting", "the hook's deadline has passed")
    asking = shell.ask("echo late")
    shell.instance.until(lambda: shell.row("1")["agent_gave_up"] is None)
    shell.approve("1")
    assert shell.run(shlex.split(rewritten(finished(asking)))).stdout == b"late\n"
    assert len(shell.instance.rows("history")) == 1


@pytest.mark.slow
def test_a_command_that_was_approved_meanwhile_runs_when_the_agent_asks_again(shell: Shell) -> None:
    finished(shell.ask("echo late", "--deadline", "1"))
    shell.approve("1")
    assert shell.row("1")["state"] == "held"
    assert shell.run(shlex.split(rewritten(finished(shell.ask("echo late"))))).stdout == b"late\n"


@pytest.mark.slow
def test_a_hook_that_the_agent_ends_leaves_its_command_waiting_and_marked(shell: Shell) -> None:
    asking = shell.ask("echo later")
    call_id = shell.waiting()
    asking.kill()
    asking.communicate()
    shell.instance.until(lambda: shell.row(call_id)["agent_gave_up"])
    assert shell.row(call_id)["state"] == "waiting"
    assert "waiting, agent gone" in shell.instance.run("list").stdout
    assert shell.instance.rows("list")[0]["agent_gave_up"] == "the agent's hook was ended before the answer"
    assert "it no longer waits: the agent's hook was ended" in shell.instance.run("show", call_id).stdout


@pytest.mark.slow
def test_a_hook_behind_a_shell_ends_with_an_agent_that_leaves_both_behind(shell: Shell) -> None:
    agent = AgentProcess()
    line = shlex.join((*PROGRAM, "hook", "claude", "--home", str(shell.instance.root)))
    asking = subprocess.Popen(
        agent.starts("/bin/bash", "-c", f"{line} || exit 2"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=shell.instance.workspace,
    )
    assert asking.stdin is not None
    asking.stdin.write(shell.question("echo later"))
    asking.stdin.close()
    asking.stdin = None
    call_id = shell.waiting()
    assert shell.row(call_id)["agent_gave_up"] is None
    agent.close()
    shell.instance.until(lambda: shell.row(call_id)["agent_gave_up"])
    asking.communicate()


@pytest.mark.slow
def test_a_hook_waits_over_the_death_of_the_supervisor(shell: Shell) -> None:
    asking = shell.ask("echo survived")
    call_id = shell.waiting()
    shell.instance.kill_supervisor(signal.SIGKILL)
    shell.instance.until(lambda: shell.row(call_id)["state"] == "waiting")
    shell.approve(call_id)
    assert shell.run(shlex.split(rewritten(finished(asking)))).stdout == b"survived\n"
    assert len(shell.instance.rows("history")) == 1


def test_two_hooks_of_one_call_are_one_call(shell: Shell) -> None:
    first, second = shell.ask("echo once", tool_use_id="toolu"), shell.ask("echo once", tool_use_id="toolu")
    shell.approve(shell.waiting())
    assert rewritten(finished(first)) == rewritten(finished(second))
    assert len(shell.instance.rows("history")) == 1


@pytest.mark.slow
def test_an_id_that_names_another_command_is_another_call(shell: Shell) -> None:
    """Local model servers number the calls of each answer from 0."""
    first = shell.ask("echo first", tool_use_id="call_0")
    shell.approve(shell.waiting())
    held = rewritten(finished(first))
    second = shell.ask("touch second", tool_use_id="call_0")
    call_id = shell.waiting()
    assert (call_id, shell.row(call_id)["command"]) == ("2", "touch second")
    shell.deny(call_id, "not this one")
    assert "not this one" in reason(finished(second))
    assert shell.run(shlex.split(held)).stdout == b"first\n"


@pytest.mark.slow
def test_an_id_that_comes_back_with_the_same_command_is_asked_again_once_that_has_run(shell: Shell) -> None:
    first = shell.ask("echo again", tool_use_id="call_0")
    shell.approve(shell.waiting())
    assert shell.run(shlex.split(rewritten(finished(first)))).stdout == b"again\n"
    second = shell.ask("echo again", tool_use_id="call_0")
    assert shell.waiting() == "2"
    shell.deny("2", "once is enough")
    assert "once is enough" in reason(finished(second))
    third = shell.ask("echo again", tool_use_id="call_0")
    assert shell.waiting() == "3"
    shell.approve("3")
    assert shell.run(shlex.split(rewritten(finished(third)))).stdout == b"again\n"


def test_a_canary_is_denied_with_nobody_asked(shell: Shell) -> None:
    assert "the gate is live" in reason(finished(shell.ask("touch whisper-tui-canary-0123456789")))
    assert shell.instance.rows("history") == []


@pytest.mark.slow
def test_a_tool_that_only_reads_passes_without_a_word(shell: Shell) -> None:
    asking = shell.ask("x", tool_name="Read", tool_input={"file_path": "a"})
    assert asking.communicate(timeout=ANSWER_S) == (b"", b"")
    assert asking.returncode == 0


@pytest.mark.slow
def test_a_tool_behind_the_gateway_is_allowed_because_the_gateway_asks(shell: Shell) -> None:
    words = ["whisper-tui", "mcp", "--home", str(shell.instance.root), "--through", "docs", "--", "docs-server"]
    servers = {"mcpServers": {"docs": {"command": words[0], "args": words[1:]}}}
    (shell.instance.workspace / ".mcp.json").write_text(json.dumps(servers))
    answer = finished(shell.ask("x", tool_name="mcp__docs__find", tool_input={"text": "a"}))
    assert answer["hookSpecificOutput"] == {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    assert shell.instance.rows("history") == []


@pytest.mark.slow
def test_opencode_is_told_what_the_user_has_decided_and_not_what_is_allowed_by_a_setting(shell: Shell) -> None:
    (shell.instance.root / "config" / "rules.toml").write_text('edits = "allow"\n')
    outside, inside = shell.instance.root / "notes.txt", shell.instance.workspace / "notes.txt"
    edit = {"tool_name": "write", "tool_input": {"filePath": str(outside), "content": "a"}}
    asking = shell.ask("x", client="opencode", **edit)
    shell.approve(shell.waiting())
    assert finished(asking)["decided"] is True
    edit["tool_input"] = {"filePath": str(inside), "content": "a"}
    answer = finished(shell.ask("x", client="opencode", **edit))
    assert answer["decision"] == "allow" and "decided" not in answer


@pytest.mark.slow
def test_a_question_of_codex_is_answered_once_for_what_the_user_has_decided(shell: Shell) -> None:
    given = {"turn_id": "turn-1", "tool_name": "mcp__docs__find", "tool_input": {"text": "a"}}

    def own_question(**changes: object) -> bytes:
        process = shell.ask("x", client="codex", **{**given, "hook_event_name": "PermissionRequest", **changes})
        return process.communicate(timeout=ANSWER_S)[0]

    assert own_question() == b"", "nobody has decided"
    asking = shell.ask("x", client="codex", **given)
    shell.approve(shell.waiting())
    finished(asking)
    assert own_question(tool_input={"text": "b"}) == b""
    assert own_question(turn_id="turn-2") == own_question(session_id="agent-2") == b""
    answer = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    assert json.loads(own_question()) == {"hookSpecificOutput": answer}
    assert own_question() == b"", "one decision answers one question"


@pytest.mark.slow
def test_a_question_of_claude_code_is_answered_for_the_edit_that_the_user_has_approved(shell: Shell) -> None:
    given = {"prompt_id": "p", "tool_name": "Write"}
    path = str(shell.instance.workspace / ".mcp.json")

    def own_question(content: str) -> bytes:
        what = {**given, "tool_input": {"file_path": path, "content": content}, "hook_event_name": "PermissionRequest"}
        return shell.ask("x", **what).communicate(timeout=ANSWER_S)[0]

    asking = shell.ask("x", **given, tool_input={"file_path": path, "content": "{}"})
    shell.approve(shell.waiting())
    finished(asking)
    assert own_question("{ }") == b""
    assert b'"behavior": "allow"' in own_question("{}")


@pytest.mark.slow
def test_a_question_of_codex_about_a_patch_that_was_allowed_by_a_setting_stays(shell: Shell) -> None:
    (shell.instance.root / "config" / "rules.toml").write_text('edits = "allow"\n')
    text = "*** Begin Patch\n*** Add File: notes.txt\n+a\n*** End Patch"
    given = {"turn_id": "turn-1", "tool_name": "apply_patch", "tool_input": {"command": text}}
    decision = finished(shell.ask("x", client="codex", **given))["hookSpecificOutput"]
    assert decision["permissionDecision"] == "allow"
    own = shell.ask("x", client="codex", **given, hook_event_name="PermissionRequest")
    assert own.communicate(timeout=ANSWER_S)[0] == b""


@pytest.mark.slow
@pytest.mark.parametrize("text", [b"", b"no json", b'{"tool_name": "Bash"}', b"\xff\xfe"])
@pytest.mark.few(1)
def test_an_input_that_is_not_understood_is_a_refusal(shell: Shell, text: bytes) -> None:
    process = shell.hook(text, "claude")
    out, err = process.communicate(timeout=ANSWER_S)
    assert (process.returncode, out) == (2, b"")
    assert err.startswith(b"whisper_tui: ") and b"Traceback" not in err


def wide_text(size: int) -> str:
    """A text of a number of bytes whose lines JSON has to escape."""
    line = 'print("päper")\n'
    return (line * (size // len(line.encode()) + 1)).encode()[:size].decode(errors="replace")


@pytest.mark.slow
def test_a_file_of_two_megabytes_is_written_without_a_question_and_recorded_once(shell: Shell) -> None:
    (shell.instance.root / "config" / "rules.toml").write_text('edits = "allow"\n')
    path = shell.instance.workspace / "large.py"
    edit = {"tool_name": "Write", "tool_input": {"file_path": str(path), "content": wide_text(2_000_000)}}
    answer = finished(shell.ask("x", **edit))
    assert answer["hookSpecificOutput"]["permissionDecision"] == "allow"
    (row,) = shell.instance.rows("history")
    (file,) = row["edits"]
    assert (file["path"], file["added"]) == (str(path), wide_text(2_000_000).count("\n"))
    kept = sum(file.stat().st_size for file in shell.instance.home.state.glob("journal*"))
    assert 2_000_000 < kept < 2 * 2_400_000


@pytest.mark.slow
def test_the_largest_edit_is_shown_changed_by_a_human_and_lands_as_changed(shell: Shell) -> None:
    path = shell.instance.root / "outside.py"
    old, new = wide_text(LARGEST_EDITED - 10), wide_text(LARGEST_EDITED - 20)
    path.write_text(old)
    edit = {"tool_name": "Edit", "tool_input": {"file_path": str(path), "old_string": old, "new_string": new}}
    asking = shell.ask("x", **edit)
    call_id = shell.waiting()
    shell.approve_edit(call_id, new.replace("print", "write"))
    changed = finished(asking)["hookSpecificOutput"]["updatedInput"]
    assert changed["file_path"] == str(path)
    assert old.replace(changed["old_string"], changed["new_string"]) == new.replace("print", "write")


def test_an_edit_beyond_the_bound_is_refused_and_says_how_long_it_is(shell: Shell) -> None:
    path = shell.instance.workspace / "x"
    content = "\n" * (LONGEST_INPUT // 2)
    process = shell.hook(
        shell.question("x", tool_name="Write", tool_input={"file_path": str(path), "content": content}), "claude"
    )
    out, err = process.communicate(timeout=ANSWER_S)
    assert (process.returncode, out) == (2, b"")
    assert f"longer than {LONGEST_INPUT:,} bytes" in err.decode()
    assert shell.instance.rows("history") == []


def test_a_question_without_end_is_refused_before_it_is_read_whole(shell: Shell) -> None:
    process = shell.hook(b" " * (LONGEST_INPUT + 1), "claude")
    _, err = process.communicate(timeout=ANSWER_S)
    assert process.returncode == 2 and f"longer than {LONGEST_INPUT:,} bytes".encode() in err


def test_a_supervisor_that_cannot_be_had_is_a_refusal(shell: Shell) -> None:
    (shell.instance.root / "config" / "config.toml").write_text("= broken")
    process = shell.ask("echo no")
    out, err = process.communicate(timeout=ANSWER_S)
    assert (process.returncode, out) == (2, b"")
    assert b"the command was not run" in err and b"Traceback" not in err


def test_wrong_words_are_a_refusal_too(shell: Shell) -> None:
    process = shell.hook(b"{}", "nobody")
    _, err = process.communicate(timeout=ANSWER_S)
    assert process.returncode == 2 and b"invalid choice" in err


@pytest.mark.slow
def test_gemini_gets_an_explanation_of_a_change_after_the_result(shell: Shell) -> None:
    asking = shell.ask("echo asked", client="gemini")
    shell.approve(shell.waiting(), "echo edited")
    command = finished(asking)["hookSpecificOutput"]["tool_input"]["command"]
    after = shell.ask(command, client="gemini", hook_event_name="AfterTool")
    assert "What ran: echo edited" in finished(after)["hookSpecificOutput"]["additionalContext"]


@pytest.mark.slow
def test_the_shell_of_gemini_may_substitute_though_our_tool_of_that_name_may_not(shell: Shell) -> None:
    asking = shell.ask("echo $(echo inner)", client="gemini")
    shell.approve(shell.waiting())
    command = finished(asking)["hookSpecificOutput"]["tool_input"]["command"]
    assert shell.run(shlex.split(command)).stdout == b"inner\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["touch x && echo 'it''s \"$HOME\"'", "-x | true\n# `second`", "x" * 9000])
@pytest.mark.few(1)
def test_the_command_is_shown_beside_its_ticket_if_the_client_shows_it(shell: Shell, command: str) -> None:
    asking = shell.ask(command, client="codex")
    shell.approve(shell.waiting())
    line = rewritten(finished(asking))
    label = shlex.split(line)[-1]
    assert label.strip()[:9] == command.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")[:9]
    assert len(label) < 300 and not {"\n", "'"} & {*label} and line.endswith(f"'{label}'")
    expected = shell.run(["bash", "-c", "--", command])
    ran = shell.run(["bash", "-c", line])
    assert (ran.stdout, ran.returncode) == (expected.stdout, expected.returncode)


@pytest.mark.slow
def test_approve_says_if_the_agent_no_longer_waits(shell: Shell) -> None:
    finished(shell.ask("touch x", "--deadline", "1"))
    row = shell.row("1")
    said = io.StringIO()
    with redirect_stdout(said):
        say_approved(row, None, None, None)
    assert "Its agent no longer waits for it (the hook's deadline has passed). If it asks again" in said.getvalue()


def test_an_agent_that_runs_what_is_approved_itself_is_given_the_command(shell: Shell) -> None:
    asking = shell.ask("echo mine", "--agent-runs")
    shell.approve(shell.waiting())
    assert rewritten(finished(asking)) == "echo mine"
    assert shell.row("1")["ending"] == "handed_over"


def test_an_agent_that_runs_it_itself_is_sent_to_the_directory_that_a_human_chose(shell: Shell) -> None:
    below = shell.instance.workspace / "it's below"
    below.mkdir()
    asking = shell.ask("pwd # where", "--agent-runs")
    shell.approve(shell.waiting(), cwd=str(below))
    assert shell.run(["bash", "-c", rewritten(finished(asking))]).stdout == f"{below}\n".encode()


def test_a_hook_that_names_another_agent_than_its_own_is_refused(shell: Shell) -> None:
    with subprocess.Popen(["sleep", "300"]) as stranger:
        content = {"session_id": "agent-2", "cwd": "/", "tool_name": "Bash", "tool_input": {"command": "true"}}
        asking = shell.hook(json.dumps(content).encode(), "claude", CLAUDE_PID=str(stranger.pid))
        _, told = asking.communicate(timeout=ANSWER_S)
        stranger.kill()
    assert asking.returncode != 0 and b"but does not descend from it" in told
