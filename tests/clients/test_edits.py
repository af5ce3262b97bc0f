"""Each real client's edits go through the hook: the human decides about the file, and its model is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conversation import Played, play
from tests.clients.model.script import Call
from tests.clients.programs import Program
from tests.clients.programs.codex import CodexInCodeMode
from tests.clients.scenes import Approved, ChangedMeanwhile, DeniedFor, NotDecided, Rewritten, Scene
from tests.clients.stage import Stage
from whisper_tui.model.ending import Denied, HandedOver
from whisper_tui.model.state import Ended

OLD = "all:\n\techo hello\n\techo twice\n"
ASKED = OLD.replace("hello", "goodbye")
WANTED = "# by the human\n" + OLD.replace("hello", "bye")
REASON = "No: “leave” this <file> & ask Ada."

QUIET = Scene("quiet/notes.txt", NotDecided())
"""An ordinary file: nobody is asked."""
AS_ASKED = Scene("asked/asked.txt", Approved())
NO = Scene("denied/asked.txt", DeniedFor(REASON))
RESULT = Scene("result/asked.txt", Rewritten(WANTED))
STALE = Scene("stale/asked.txt", ChangedMeanwhile(OLD + "# somebody else\n"))
UNICODE = Scene("überall/asked.txt", Approved())
LINK = Scene("link/notes.txt", DeniedFor(REASON))
OUTSIDE = Scene("outside/notes.txt", DeniedFor(REASON))
WINDOWS = Scene("windows/asked.txt", Approved())
FETCH = Scene("http://fetched.invalid/page", DeniedFor(REASON))
SCENES = (QUIET, AS_ASKED, NO, RESULT, STALE, UNICODE, LINK, OUTSIDE, WINDOWS, FETCH)
CODEX_SCENES = SCENES[:-2]
"""Codex's own patches lose line ends of Windows, and it has no tool that fetches."""


def path_of(workspace: Path, scene: Scene) -> str:
    return f"{workspace.parent}/outside/notes.txt" if scene is OUTSIDE else f"{workspace}/{scene.command}"


def edit(program: Program, path: str) -> Call:
    """The model replaces one word of a file."""
    match program.name:
        case "claude" if path.endswith(("link/notes.txt", "outside/notes.txt")):
            # It reads no file outside of the workspace, and edits none that it has not read.
            return Call("Write", {"file_path": f"{path}.new", "content": ASKED})
        case "claude":
            return Call("Edit", {"file_path": path, "old_string": "hello", "new_string": "goodbye"})
        case "gemini":
            given = {"file_path": path, "old_string": "echo hello", "new_string": "echo goodbye"}
            return Call("replace", {**given, "instruction": "Say goodbye"})
        case "opencode" | "kilo":
            return Call("edit", {"filePath": path, "oldString": "hello", "newString": "goodbye"})
        case "copilot":
            return Call("edit", {"path": path, "old_str": "hello", "new_str": "goodbye"})
        case "qwen":
            return Call("edit", {"file_path": path, "old_string": "hello", "new_string": "goodbye"})
        case "kimi":
            return Call("Edit", {"path": path, "old_string": "hello", "new_string": "goodbye"})
    lines = ("*** Begin Patch", f"*** Update File: {path}", "@@", "-\techo hello", "+\techo goodbye", "*** End Patch")
    assert isinstance(program, CodexInCodeMode)
    return program.script(f"text(JSON.stringify(await tools.apply_patch({json.dumps(chr(10).join(lines))})));")


def fetch(program: Program) -> Call:
    given: dict[str, dict[str, Any]] = {
        "claude": {"url": FETCH.command, "prompt": "what"},
        "gemini": {"prompt": f"look at {FETCH.command}"},
        "opencode": {"url": FETCH.command, "format": "text"},
        "kilo": {"url": FETCH.command, "format": "text"},
        "copilot": {"url": FETCH.command},
        "qwen": {"url": FETCH.command, "prompt": "what"},
        "kimi": {"url": FETCH.command},
    }
    names = {"claude": "WebFetch", "opencode": "webfetch", "kilo": "webfetch", "kimi": "FetchURL"}
    return Call(names.get(program.name, "web_fetch"), given[program.name])


def read(program: Program, path: str) -> Call:
    """Some clients edit only what was read."""
    names = {
        "claude": ("Read", "file_path"),
        "opencode": ("read", "filePath"),
        "kilo": ("read", "filePath"),
        "qwen": ("read_file", "file_path"),
        "kimi": ("Read", "path"),
    }
    tool, key = names[program.name]
    return Call(tool, {key: path})


def set_up(stage: Stage) -> None:
    """Every scene has a file; one is behind a link that leads out of the workspace."""
    outside = stage.workspace.parent / "outside"
    outside.mkdir()
    (stage.workspace / "link").symlink_to(outside)
    for scene in SCENES[:-1]:
        path = Path(path_of(stage.workspace, scene))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((OLD.replace("\n", "\r\n").removesuffix("\r\n") if scene is WINDOWS else OLD).encode())
    rules = stage.home / "config" / "rules.toml"
    rules.write_text(rules.read_text() + '[[ask]]\nname = "as the tests want"\npath = "asked.txt"\n')
    stage.whisper_tui("install", stage.program.name, "--yes", "--no-mcp")


@pytest.fixture(scope="session")
def edited(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """An edit of every file, one after the other."""
    chosen = CodexInCodeMode() if program.name == "codex" else program
    directory = tmp_path_factory.mktemp(f"{program.name}-edits")
    scenes: list[Scene] = []
    for scene in CODEX_SCENES if program.name == "codex" else SCENES:
        if program.name in {"claude", "opencode"} and scene not in {LINK, OUTSIDE, FETCH}:
            scenes.append(Scene(f"read {scene.command}", NotDecided()))
        scenes.append(scene)

    def ask_for(_: Program, scene: Scene) -> Call:
        if scene is FETCH:
            return fetch(chosen)
        if scene.command.startswith("read "):
            wanted = next(each for each in SCENES if each.command == scene.command.removeprefix("read "))
            return read(chosen, path_of(directory / "workspace", wanted))
        return edit(chosen, path_of(directory / "workspace", scene))

    return play(chosen, scenes, directory, ask_for=ask_for, set_up=set_up)


def content(edited: Played, scene: Scene) -> str:
    return Path(path_of(edited.workspace, scene)).read_bytes().decode()


def test_an_ordinary_edit_is_made_and_recorded_with_nobody_asked(edited: Played) -> None:
    assert content(edited, QUIET) == ASKED, edited.written
    record = edited.record(QUIET)
    assert record.decided_by is not None and record.decided_by.surface == "rule"
    assert isinstance(record.state, Ended) and isinstance(record.state.ending, HandedOver)


@pytest.mark.parametrize("scene", [AS_ASKED, UNICODE], ids=["plain", "unicode"])
def test_an_approved_edit_is_made_as_it_was_asked(edited: Played, scene: Scene) -> None:
    assert content(edited, scene) == ASKED, edited.written
    assert edited.record(scene).decided_by is not None


@pytest.mark.parametrize("scene", [NO, LINK, OUTSIDE], ids=["plain", "link", "outside"])
def test_a_denied_edit_is_not_made_and_the_model_reads_the_reason(edited: Played, scene: Scene) -> None:
    assert content(edited, scene) == OLD
    assert not Path(path_of(edited.workspace, scene) + ".new").exists()
    if edited.program.name == "gemini" and scene is not NO:
        assert "Path not in workspace" in edited.answer(scene).everything, "it does not even ask its hook"
        return
    assert REASON in edited.answer(scene).everything
    state = edited.record(scene).state
    assert isinstance(state, Ended) and isinstance(state.ending, Denied)


def test_the_result_of_the_human_is_what_the_file_holds(edited: Played) -> None:
    assert content(edited, RESULT) == WANTED, edited.answer(RESULT).everything
    if edited.program.name != "gemini":
        assert "The human changed the edit" in edited.answer(RESULT).everything


def test_an_edit_of_a_file_that_has_changed_is_asked_again(edited: Played) -> None:
    assert content(edited, STALE) == OLD + "# somebody else\n"
    assert "it has changed meanwhile" in edited.answer(STALE).everything


def test_a_file_with_line_ends_of_windows_keeps_them(edited: Played) -> None:
    if edited.program.name == "codex":
        pytest.skip("its patches lose them")
    assert content(edited, WINDOWS) == ASKED.replace("\n", "\r\n").removesuffix("\r\n")


def test_a_denied_fetch_is_not_made_and_the_model_reads_the_reason(edited: Played) -> None:
    if edited.program.name == "codex":
        pytest.skip("it has no tool that fetches")
    assert REASON in edited.answer(FETCH).everything
