"""ExecCommand before anything runs: arguments, where it runs, refusals and duplicates."""

import os

import pytest

from tests.rows import each_row
from tests.tools.exec_command.conftest import Shop
from whisper_tui.model.call import Shell
from whisper_tui.tools import ToolRegistry
from whisper_tui.tools.supervised_tool import shell_of


def test_the_schema_is_the_published_one(shop: Shop):
    schema = shop.tool.parameters_schema
    rules = {
        name: {key: value for key, value in part.items() if key != "description"}
        for name, part in schema["properties"].items()
    }
    assert rules == {
        "cmd": {"type": "string"},
        "workdir": {"type": ["string", "null"]},
        "shell": {"type": ["string", "null"]},
        "login": {"type": ["boolean", "null"]},
        "tty": {"type": ["boolean", "null"]},
        "duplicate_policy": {"type": "string", "enum": ["reuse_running", "start_new"], "default": "reuse_running"},
        "accepts_input": {"type": ["boolean", "null"]},
        "yield_time_ms": {"type": ["integer", "null"], "minimum": 0},
        "max_output_tokens": {"type": ["integer", "null"], "minimum": 0, "maximum": 64_000},
    }
    assert (schema["required"], schema["additionalProperties"]) == (["cmd"], False)


def test_a_command_alone_gets_every_default(shop: Shop):
    request = shop.tool.request({"cmd": "make"})
    assert request.spec.command == Shell(text="make", shell="bash", login=True)
    assert request.spec.cwd == shop.context.session.root
    assert (request.spec.tty, request.spec.accepts_input, request.spec.timeout_s) == (False, False, None)
    assert request.join_open


def test_null_is_the_default(shop: Shop):
    names = ("workdir", "shell", "login", "tty", "accepts_input", "yield_time_ms", "max_output_tokens")
    given = shop.tool.request({"cmd": "make", **dict.fromkeys(names)})
    assert given.spec == shop.tool.request({"cmd": "make"}).spec


def test_a_login_shell_reads_login_files_and_another_does_not(shop: Shop):
    assert shop.tool.request({"cmd": "x"}).spec.command.words() == ("bash", "-lc", "--", "x")
    assert shop.tool.request({"cmd": "x", "login": False}).spec.command.words() == ("bash", "-c", "--", "x")


def test_input_is_accepted_with_a_terminal_unless_told_otherwise(shop: Shop):
    assert shop.tool.request({"cmd": "x", "tty": True}).spec.accepts_input
    assert not shop.tool.request({"cmd": "x", "tty": True, "accepts_input": False}).spec.accepts_input
    assert shop.tool.request({"cmd": "x", "accepts_input": True}).spec.accepts_input


@each_row(
    ("shell", "expected"),
    [("/bin/bash", "bash"), ("/usr/bin/zsh", "zsh"), ("/bin/sh", "sh"), ("/usr/bin/fish", "sh"), (None, "sh")],
)
def test_the_default_shell_is_the_users_own_where_it_is_a_known_one(shell, expected):
    assert shell_of({} if shell is None else {"SHELL": shell}) == expected


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"command": "git status"}, "command"),
        ({"cmd": "x", "status": "running"}, "status"),
        ({"cmd": "x", "task_handle": {}}, "task_handle"),
        ({"cmd": "x", "continue_on_result": True}, "continue_on_result"),
        ({"cmd": "x", "terminal_reentry": True}, "terminal_reentry"),
        ({}, "cmd"),
        ({"cmd": None}, "cmd"),
        ({"cmd": 1}, "cmd"),
        ({"cmd": "a\0b"}, "cmd"),
        ({"cmd": "x", "workdir": 1}, "workdir"),
        ({"cmd": "x", "shell": []}, "shell"),
        ({"cmd": "x", "login": "yes"}, "login"),
        ({"cmd": "x", "tty": 1}, "tty"),
        ({"cmd": "x", "duplicate_policy": None}, "duplicate_policy"),
        ({"cmd": "x", "duplicate_policy": "again"}, "duplicate_policy"),
        ({"cmd": "x", "accepts_input": 0}, "accepts_input"),
        ({"cmd": "x", "yield_time_ms": -1}, "yield_time_ms"),
        ({"cmd": "x", "yield_time_ms": 1.5}, "yield_time_ms"),
        ({"cmd": "x", "yield_time_ms": True}, "yield_time_ms"),
        ({"cmd": "x", "yield_time_ms": 10**400}, "yield_time_ms"),
        ({"cmd": "x", "max_output_tokens": -1}, "max_output_tokens"),
        ({"cmd": "x", "max_output_tokens": 64_001}, "max_output_tokens"),
    ],
)
async def test_a_wrong_argument_is_named_and_starts_nothing(shop: Shop, arguments, named):
    for envelope in (
        await shop.tool.execute(**arguments),
        await ToolRegistry((shop.tool,)).call("ExecCommand", arguments),
    ):
        error = envelope["error"]
        assert envelope["status"] == "error" and "result" not in envelope
        assert error["kind"] == "invalid_tool_input"
        assert named in error["details"]["parse_error"]
        assert error["recovery_hint"] == "provide input for ExecCommand that matches the published tool schema"
        assert error["retryable"] is False
    assert shop.bench.supervisor._store.board.calls == {}


@pytest.mark.parametrize("workdir", ["..", "/", "/etc", "link"])
async def test_a_directory_outside_the_workspace_is_a_violation_and_starts_nothing(shop: Shop, workdir):
    os.symlink("/", shop.bench.workspace / "link")
    envelope = await shop.tool.execute(cmd="ls", workdir=workdir)
    assert envelope["error"]["kind"] == "execution_root_violation"
    assert envelope["error"]["details"]["execution_root"] == shop.context.session.root
    assert shop.bench.supervisor._store.board.calls == {}


async def test_a_directory_that_does_not_exist_is_its_own_error(shop: Shop):
    envelope = await shop.tool.execute(cmd="ls", workdir="no/where")
    assert envelope["error"]["kind"] == "workdir_not_found"
    assert shop.bench.supervisor._store.board.calls == {}


def test_a_directory_inside_the_workspace_may_be_relative_or_absolute(shop: Shop):
    inside = shop.bench.workspace / "sub"
    inside.mkdir()
    for workdir in ("sub", "./sub/../sub", str(inside)):
        assert shop.tool.request({"cmd": "ls", "workdir": workdir}).spec.cwd == os.path.realpath(inside)


async def test_the_same_command_is_answered_with_the_one_that_waits_before_anybody_is_asked_again(shop: Shop):
    shop.call()
    first = await shop.submitted()
    envelope = await shop.tool.execute(cmd="make")
    assert envelope["status"] == "success"
    assert envelope["result"] == {
        "disposition": "already_running",
        "task_handle": {"task_id": first.id, "task_kind": "command_task", "status": "queued"},
        "command": {
            "cmd": "make",
            "workdir": shop.context.session.root,
            "shell": None,
            "login": True,
            "tty": False,
            "accepts_input": False,
        },
        "summary": "It waits for a human's approval; nothing has run yet.",
        "instructions": 'Set duplicate_policy="start_new" to start another instance.',
    }
    assert list(shop.bench.supervisor._store.board.calls) == [first.id]


async def test_the_same_command_is_found_in_its_foreground_window_and_while_it_is_cancelled(shop: Shop):
    _, key = await shop.started()
    envelope = await shop.tool.execute(cmd="make")
    assert envelope["result"]["task_handle"] == {
        "task_id": key.call_id,
        "task_kind": "command_task",
        "status": "running",
    }
    await shop.bench.supervisor.withdraw(key.call_id, "stop", stop_running=True)
    envelope = await shop.tool.execute(cmd="make")
    assert envelope["result"]["task_handle"]["status"] == "cancelling"


async def test_an_ended_command_is_not_a_duplicate(shop: Shop):
    first = shop.call()
    await shop.bench.deny((await shop.submitted()).id, "no")
    await first
    shop.call()
    assert (await shop.submitted()).state.kind == "waiting"


async def test_start_new_starts_another_instance(shop: Shop):
    shop.call()
    first = await shop.submitted()
    shop.call(duplicate_policy="start_new")
    assert (await shop.submitted()).id != first.id


@pytest.mark.parametrize(
    "different",
    [{"cmd": "make "}, {"workdir": "sub"}, {"shell": "bash"}, {"login": False}, {"tty": True}],
)
async def test_another_command_is_asked_again(shop: Shop, different):
    (shop.bench.workspace / "sub").mkdir()
    shop.call()
    first = await shop.submitted()
    shop.call(**different)
    assert (await shop.submitted()).id != first.id


async def test_how_long_to_wait_and_how_much_to_show_do_not_make_it_another_command(shop: Shop):
    shop.call()
    await shop.submitted()
    envelope = await shop.tool.execute(cmd="make", workdir=".", yield_time_ms=5, max_output_tokens=7)
    assert envelope["result"]["disposition"] == "already_running"


async def test_the_same_command_of_another_session_is_asked_for_itself(shop: Shop):
    shop.call()
    await shop.submitted()
    other = await shop.bench.session("other")
    request = shop.tool.request({"cmd": "make"}).model_copy(update={"session_id": other})
    assert (await shop.bench.record(await shop.bench.supervisor.submit(request))).call.session_id == other
