"""Each real client's edits of unusual files go through the hook: new, large, binary, several, and those that decide."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conversation import Played, play
from tests.clients.model.script import Call
from tests.clients.model.server import SUB_AGENT
from tests.clients.programs import Program
from tests.clients.programs.codex import Codex, CodexInCodeMode
from tests.clients.scenes import Approved, DeniedFor, NotDecided, Scene
from tests.clients.stage import Stage
from tests.clients.test_codex_executor import with_sub_agent
from whisper_tui.model.ending import Denied, HandedOver
from whisper_tui.model.state import CallRecord, Ended

TEXT = "all:\n\techo hello\n"
LARGE_TEXT = "".join(f"line {number:06d} of a large file\n" for number in range(2_000_000 // 28))
REASON = "No: leave that."

NEW = Scene("new/asked.txt", Approved())
LARGE = Scene("large/notes.txt", NotDecided())
BINARY = Scene("binary/asked.bin", Approved())
THREE = Scene("three/asked.txt", Approved())
SETTINGS = Scene("settings", DeniedFor(REASON))
SUB = Scene("sub-agent", NotDecided())

SETTINGS_FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": "opencode.json",
    "copilot": ".github/copilot/settings.json",
}
"""In the workspace: a file that decides what the client may do."""


def write(program: Program, path: str, content: str) -> Call:
    """The model writes a whole file."""
    match program.name:
        case "claude":
            return Call("Write", {"file_path": path, "content": content})
        case "gemini":
            return Call("write_file", {"file_path": path, "content": content})
        case "opencode":
            return Call("write", {"filePath": path, "content": content})
        case "copilot":
            return Call("create", {"path": path, "file_text": content})
    return patch(program, f"*** Add File: {path}", *(f"+{line}" for line in content.splitlines()))


def patch(program: Program, *lines: str) -> Call:
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    assert isinstance(program, CodexInCodeMode)
    return program.script(f"text(JSON.stringify(await tools.apply_patch({json.dumps(text)})));")


def sub_agent(program: Program) -> Call:
    prompt = f"{SUB_AGENT} Say that you are done."
    given: dict[str, tuple[str, dict[str, Any]]] = {
        "claude": ("Agent", {"description": "A test", "prompt": prompt, "subagent_type": "general-purpose"}),
        "opencode": ("task", {"description": "A test", "prompt": prompt, "subagent_type": "general"}),
        "copilot": (
            "task",
            {"description": "A test", "prompt": prompt, "agent_type": "general-purpose", "name": "one"},
        ),
    }
    return Call(*given[program.name])


def scenes_of(program: Program) -> list[Scene]:
    own = {"codex": [THREE], "claude": [SUB], "opencode": [SUB], "gemini": [], "copilot": [SUB]}
    settings = Scene(SETTINGS_FILES[program.name], SETTINGS.human)
    return [NEW, LARGE, BINARY, settings, *own[program.name]]


def set_up(stage: Stage) -> None:
    for directory in ("new", "large", "binary", "three"):
        (stage.workspace / directory).mkdir()
    (stage.workspace / BINARY.command).write_bytes(bytes(range(256)))
    for name in ("asked.txt", "gone.txt"):
        (stage.workspace / "three" / name).write_text(TEXT)
    settings = stage.workspace / SETTINGS_FILES[stage.program.name]
    settings.parent.mkdir(parents=True, exist_ok=True)
    rules = stage.home / "config" / "rules.toml"
    asked = "".join(f'[[ask]]\nname = "{name}"\npath = "{name}"\n' for name in ("asked.txt", "asked.bin"))
    rules.write_text(rules.read_text() + asked)
    stage.whisper_tui("install", stage.program.name, "--yes", "--no-mcp")


@pytest.fixture(scope="session")
def edited(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    chosen = CodexInCodeMode() if program.name == "codex" else program
    directory = tmp_path_factory.mktemp(f"{program.name}-unusual")
    workspace = directory / "workspace"

    def ask_for(_: Program, scene: Scene) -> Call:
        path = f"{workspace}/{scene.command}"
        if scene == SUB:
            return sub_agent(chosen)
        if scene == THREE:
            hunk = ("@@", "-\techo hello", "+\techo goodbye")
            added = (f"*** Add File: {workspace}/three/added.txt", "+added")
            return patch(
                chosen, f"*** Update File: {path}", *hunk, *added, f"*** Delete File: {workspace}/three/gone.txt"
            )
        return write(chosen, path, LARGE_TEXT if scene == LARGE else TEXT)

    return play(chosen, scenes_of(program), directory, ask_for=ask_for, set_up=set_up)


def ending(record: CallRecord) -> object:
    assert isinstance(record.state, Ended)
    return record.state.ending


def test_a_new_file_is_written_as_approved(edited: Played) -> None:
    assert (edited.workspace / NEW.command).read_text() == TEXT, edited.written
    record = edited.record(NEW)
    assert record.resolved is not None
    assert [file.action for file in record.resolved.edits] == ["creates"]


def test_a_file_of_two_megabytes_is_written_and_recorded_with_nobody_asked(edited: Played) -> None:
    assert (edited.workspace / LARGE.command).read_text() == LARGE_TEXT, edited.answer(LARGE).everything[:500]
    record = edited.record(LARGE)
    assert record.decided_by is not None and record.decided_by.surface == "rule"
    assert record.resolved is not None
    assert record.resolved.edits[0].added == LARGE_TEXT.count("\n")


def test_a_binary_file_is_shown_as_such_where_the_client_overwrites_it(edited: Played) -> None:
    path = edited.workspace / BINARY.command
    if not edited.records[BINARY]:
        assert path.read_bytes() == bytes(range(256)), "the client has refused by itself"
        return
    if edited.program.name == "copilot":
        assert path.read_bytes() == bytes(range(256)), "its tool writes no file that is already there"
        return
    assert path.read_text() == TEXT, edited.answer(BINARY).everything
    resolved = edited.record(BINARY).resolved
    assert resolved is not None and resolved.edits[0].binary


def test_settings_of_the_client_are_asked_about_though_they_are_in_the_workspace(edited: Played) -> None:
    scene = next(scene for scene in edited.scenes if scene.command in SETTINGS_FILES.values())
    assert REASON in edited.answer(scene).everything, edited.written
    record = edited.record(scene)
    assert isinstance(ending(record), Denied)
    assert record.verdict is not None and "sensitive-write" in {risk.id for risk in record.verdict.risks}
    assert not (edited.workspace / scene.command).exists()


def test_a_patch_of_three_files_is_one_question(edited: Played) -> None:
    if THREE not in edited.scenes:
        pytest.skip("it has no tool that edits several files")
    three = edited.workspace / "three"
    assert {path.name: path.read_text() for path in three.iterdir()} == {
        "asked.txt": TEXT.replace("hello", "goodbye"),
        "added.txt": "added\n",
    }, edited.answer(THREE).everything
    record = edited.record(THREE)
    assert record.resolved is not None
    assert sorted(file.action for file in record.resolved.edits) == ["changes", "creates", "deletes"]


def test_a_sub_agent_is_recorded_with_nobody_asked(edited: Played) -> None:
    if SUB not in edited.scenes:
        pytest.skip("its sub-agents have no tool in this mode, or none without a terminal")
    assert "The sub-agent is done." in edited.answer(SUB).everything, edited.written
    (record,) = (each for each in edited.calls if getattr(each.function, "about", "") == "subagent")
    assert record.decided_by is not None and record.decided_by.surface == "rule"
    assert isinstance(ending(record), HandedOver)


@pytest.mark.parametrize("program", [Codex()], ids=["codex"])
def test_a_sub_agent_of_codex_is_recorded_and_its_command_waits(program: Program, tmp_path: Path) -> None:
    (of_sub_agent, of_agent, started), workspace, _ = asyncio.run(with_sub_agent(tmp_path / "stage", "--no-mcp"))
    assert started.decided_by is not None and started.decided_by.surface == "rule"
    assert isinstance(ending(started), HandedOver)
    assert of_sub_agent.decided_by_human and of_sub_agent.call.session_id == of_agent.call.session_id
    assert of_sub_agent.call.asker != of_agent.call.asker == ""
    assert (workspace / "sub-agent-ran").read_text() == "by the sub-agent\n"
