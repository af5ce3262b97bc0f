"""Edits, web requests, tools of servers and sub-agents in the words of a row, and their arguments on the card."""

from pathlib import Path
from typing import Any, Literal

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import ROOT, Scenario
from tests.tui.test_describe import text_of
from whisper_tui.model.call import (
    CallRequest,
    Command,
    CommandSpec,
    DeleteFile,
    EditedFile,
    FileChange,
    FileEdits,
    Function,
    Hunk,
    PatchFile,
    ReplaceText,
    WriteFile,
)
from whisper_tui.model.call_rows import call_row
from whisper_tui.model.decision import Approve
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.present.call_text import card
from whisper_tui.present.command_text import call_line
from whisper_tui.present.tool_text import short_path

APP = f"{ROOT}/src/app.py"
HOME = str(Path.home())


def asked(command: Command, *files: EditedFile) -> tuple[Scenario, CallRecord]:
    """A call with a command, and the files of its edit as the supervisor has found them."""
    scenario = Scenario.begin()
    request = CallRequest(session_id="s1", tool="Tool", arguments={}, spec=CommandSpec(command=command, cwd=ROOT))
    call_id = scenario.supervisor.ask(
        request, Verdict(kind="ask", reason="edits are asked"), Resolved(edits=files, cwd=ROOT)
    )
    return scenario, scenario.supervisor.board.calls[call_id]


def row(command: Command, *files: EditedFile) -> str:
    scenario, record = asked(command, *files)
    return "".join(span.text for span in call_line(record, scenario.supervisor.board.sessions["s1"]))


def edits(*changes: FileChange) -> FileEdits:
    return FileEdits(tool="Edit", changes=changes)


def changed(
    path: str, action: Literal["creates", "changes", "deletes", "moves"] = "changes", added: int = 3, removed: int = 1
) -> EditedFile:
    return EditedFile(action=action, path=path, real=path, added=added, removed=removed)


def web(arguments: dict[str, Any], *hosts: str) -> Function:
    return Function(tool="WebFetch", arguments=arguments, about="web", targets=hosts)


def test_the_row_of_an_edit_names_the_file_in_the_workspace_and_counts_its_lines() -> None:
    assert row(edits(WriteFile(path=APP, content="x")), changed(APP)) == "edit src/app.py +3 \u22121"


@pytest.mark.parametrize(
    ("action", "words"), [("creates", "create src/app.py +3 \u22121"), ("deletes", "delete src/app.py +3 \u22121")]
)
def test_a_new_and_a_deleted_file_have_their_own_verb(action: Literal["creates", "deletes"], words: str) -> None:
    assert row(edits(WriteFile(path=APP, content="x")), changed(APP, action)) == words


def test_a_moved_file_shows_both_names() -> None:
    moved = changed(f"{ROOT}/b.py", "moves", 0, 0).model_copy(update={"moved_from": f"{ROOT}/a.py"})
    change = PatchFile(path=f"{ROOT}/a.py", move_to=f"{ROOT}/b.py")
    assert row(edits(change), moved) == "move a.py → b.py"
    assert row(edits(change)) == "move a.py → b.py"


def test_several_files_are_counted_and_named() -> None:
    files = [changed(f"{ROOT}/{name}.py", added=20, removed=3) for name in "abc"]
    change = WriteFile(path=APP, content="x")
    assert row(edits(change), *files) == "edit 3 files +60 \u22129: a.py, b.py, c.py"


def test_a_file_outside_the_workspace_has_its_whole_path() -> None:
    assert row(edits(WriteFile(path="/etc/hosts", content="x")), changed("/etc/hosts")).startswith("edit /etc/hosts")
    assert short_path(f"{HOME}/.bashrc", ROOT) == "~/.bashrc"
    assert short_path(f"{ROOT}/../other/x", ROOT) == f"{ROOT}/../other/x"
    assert short_path(f"{ROOT}-old/x", ROOT) == f"{ROOT}-old/x"


def test_before_its_files_are_known_an_edit_is_named_by_what_it_asks_for() -> None:
    new = ReplaceText(path=f"{ROOT}/new.py", old="", new="x")
    assert row(edits(new)) == "create new.py"
    assert row(edits(DeleteFile(path=APP))) == "delete src/app.py"
    assert row(edits(PatchFile(path=APP, hunks=(Hunk(lines=("+x",)),)), new)) == "edit 2 files: src/app.py, new.py"


def test_a_person_s_edit_no_longer_has_the_counts_of_the_request() -> None:
    scenario, record = asked(edits(WriteFile(path=APP, content="x")), changed(APP))
    other = record.spec.model_copy(update={"command": edits(WriteFile(path=APP, content="y"))})
    by = scenario.supervisor.board.sessions["s1"]
    decided = record.model_copy(update={"decision": Approve(edited=other)})
    assert "".join(span.text for span in call_line(decided, by)) == "edit src/app.py"


def test_the_host_of_a_web_request_comes_first() -> None:
    assert row(web({"url": "https://example.org/path?q=1"}, "example.org")) == "fetch example.org/path?q=1"
    assert row(web({"url": "http://example.org:8080/x"}, "example.org:8080")) == "fetch example.org:8080/x"


def test_an_address_whose_host_was_not_judged_adds_nothing_to_the_row() -> None:
    assert row(web({"url": "https://example.org@evil.test/login"}, "evil.test")) == "fetch evil.test/login"
    assert row(web({"url": "https://other.test/login"}, "evil.test")) == "fetch evil.test"


def test_a_host_in_other_letters_shows_both_names() -> None:
    assert (
        row(web({"url": "https://ex\u0430mple.org/"}, "ex\u0430mple.org"))
        == "fetch ex\u0430mple.org (xn--exmple-4nf.org)/"
    )
    assert row(web({"url": ""}, "xn--exmple-4nf.org")) == "fetch xn--exmple-4nf.org (ex\u0430mple.org)"


def test_a_search_shows_its_words() -> None:
    assert row(web({"query": "moss\x1b[31m"})) == "search “moss␛[31m”"


def test_a_tool_of_a_server_names_the_server_and_the_arguments() -> None:
    tool = Function(
        tool="mcp__github__create_issue",
        arguments={"title": "Moss", "labels": ["bug"], "draft": True},
        about="server",
        targets=("github", "create_issue"),
    )
    assert row(tool) == "github · create_issue {title: Moss, labels: […], draft: true}"


def test_a_sub_agent_shows_its_prompt() -> None:
    tool = Function(
        tool="Task", arguments={"description": "x", "prompt": "Look at\nall"}, about="subagent", targets=("reviewer",)
    )
    assert row(tool) == "start reviewer: Look at␊all"


def test_the_card_shows_arguments_as_a_tree() -> None:
    tool = Function(
        tool="mcp__github__create_issue",
        arguments={"title": "Moss", "body": "one\ntwo", "labels": ["bug", "\u202eevil"], "meta": {"draft": True}},
        about="server",
        targets=("github", "create_issue"),
    )
    scenario, record = asked(tool)
    text = text_of(card(record, scenario.supervisor.board.sessions["s1"]))
    for words in (
        "Server  github",
        "Tool    create_issue",
        "title  Moss",
        "│ one",
        "1  bug",
        "⟨U+202E⟩",
        "draft  true",
    ):
        assert words in text, words


def test_the_rows_of_scripts_keep_the_files_and_the_target() -> None:
    scenario, record = asked(edits(WriteFile(path=APP, content="x")), changed(APP))
    found = call_row(record, scenario.supervisor.board.sessions["s1"])
    assert found["edits"][0] | {"added": 3, "removed": 1, "path": APP} == found["edits"][0]
    scenario, record = asked(web({"url": "https://a.test/"}, "a.test"))
    assert call_row(record, None)["function"]["targets"] == ("a.test",)


async def test_the_queue_shows_an_edit_in_its_words() -> None:
    scenario, _ = asked(edits(WriteFile(path=APP, content="x")), changed(APP))
    async with open_cockpit(scenario, size=(120, 40)) as cockpit:
        await cockpit.sees("edit src/app.py +3 \u22121")
