"""The calls of an ordinary task in real sessions: about which a human is asked, and that all others can be undone."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.clients import test_through_hook, test_through_mcp
from tests.clients.conversation import play
from tests.clients.install import missing
from tests.clients.model.script import Call
from tests.clients.programs import Program
from tests.clients.programs.claude import Claude
from tests.clients.programs.codex import Codex, CodexInCodeMode
from tests.clients.scenes import DeniedFor, Scene
from tests.clients.stage import Stage
from tests.clients.test_unusual_edits import patch, write
from tests.outside import needs_overlays
from tests.supervisor.test_calls_of_a_task import CALLS, WORKSPACE, documented
from whisper_tui.model.call import FileEdits, Shell
from whisper_tui.model.state import CallRecord

pytestmark = needs_overlays

NO = DeniedFor("Not now.")
TEST = "import unittest\nfrom src import app\n"
REPLACED = {
    "first edit": ("    return text.lower()", "    return text.lower().strip()"),
    "second edit": ("def slug(text):", "def slug(text: str) -> str:"),
}
NEW = "tests/test_new.py"
FETCHED = "https://docs.python.org/3/library/re.html"
READ = "src/app.py"
"""Claude Code edits no file that it has not read."""
OWN_FILES = ("user/.claude", "user/.codex", "user/.cache")
"""What the clients write themselves."""
BEFORE = {"git diff src/app.py": "first edit", "npm test": NEW, "npm run lint": "second edit"}
"""The edits of the task, by the commands that they come before."""


def by_hook(program: Program, scene: Scene) -> Call:
    """The model uses the client's own tools."""
    if scene.command == READ:
        return Call("Read", {"file_path": READ})
    if scene.command in REPLACED:
        old, new = REPLACED[scene.command]
        if program.name == "claude":
            return Call("Edit", {"file_path": READ, "old_string": old, "new_string": new})
        return patch(program, f"*** Update File: {READ}", "@@", f"-{old}", f"+{new}")
    if scene.command == NEW:
        return write(program, NEW, TEST)
    if scene.command == FETCHED:
        return Call("WebFetch", {"url": FETCHED, "prompt": "what"})
    return program.shell(scene.command)


SESSIONS = (
    pytest.param(Claude(), "hook", id="claude-hook"),
    pytest.param(Claude(), "mcp", id="claude-mcp"),
    pytest.param(CodexInCodeMode(), "hook", id="codex-hook"),
    pytest.param(Codex(), "mcp", id="codex-mcp"),
)
"""The two clients whose hooks and tools differ most."""
WAYS = {
    "hook": (by_hook, test_through_hook.set_up),
    "mcp": (test_through_mcp.ask_for, test_through_mcp.set_up),
}
"""How a client's calls come to whisper_tui. Through MCP, those are commands only."""

PATIENT = "[supervisor]\nheld_back_s = 3600\n"
"""A busy machine needs more than the usual time for a command, and a human would be asked about that."""

ELSEWHERE = {
    'rg -n "TODO|FIXME" src': "Claude Code makes it a function of the shell's profile, which only an approval opens",
}
"""What asks needlessly on some machines only."""


def scenes_of(program: Program, way: str) -> list[Scene]:
    """Return all calls; nobody agrees to any of them."""
    found = []
    for _, text in CALLS:
        if way == "hook" and text in BEFORE:
            found.append(Scene(BEFORE[text], NO))
        found.append(Scene(text, NO))
    if way == "hook" and program.name == "claude":
        return [Scene(READ, NO), *found, Scene(FETCHED, NO)]
    return found


def tree(top: Path) -> dict[str, tuple[int, bytes]]:
    """Return all that is below a directory."""
    found = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        content = os.fsencode(path.readlink()) if stat.S_ISLNK(mode) else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(top))] = (mode, content)
    return found


def in_workspace(found: dict[str, tuple[int, bytes]]) -> dict[str, tuple[int, bytes]]:
    """Return the part of a tree that is in the workspace."""
    return {path: content for path, content in found.items() if path.startswith("workspace/")}


def text_of(record: CallRecord) -> str:
    """Return the text of a command, or the words of another call."""
    command = record.call.spec.command
    return command.text if isinstance(command, Shell) else " ".join(command.words())


@pytest.mark.parametrize("level", ["reading", "workspace"])
@pytest.mark.parametrize(("program", "way"), SESSIONS)
def test_a_human_is_asked_about_what_matters_and_all_else_can_be_undone(program, way, level, tmp_path):
    if program.name in missing():
        pytest.fail(f"{program.name} is not installed: python tests/clients/install.py installs it, or says why")
    stages: list[Stage] = []
    before: dict[str, tuple[int, bytes]] = {}
    ask_for, install = WAYS[way]

    def set_up(stage: Stage) -> None:
        (stage.home / "config" / "rules.toml").unlink()
        (stage.home / "config" / "config.toml").write_text(f'[rules]\nunasked = "{level}"\n{PATIENT}')
        install(stage)
        subprocess.run(["bash", "-ec", WORKSPACE], cwd=stage.workspace, check=True)
        before.update(tree(tmp_path))
        stages.append(stage)

    scenes = scenes_of(program, way)
    of_edits = [Scene(READ, NO)]  # The human knows the edits by their file.
    played = play(program, scenes, tmp_path, ask_for=ask_for, set_up=set_up, also=of_edits)
    for scene in scenes:
        played.answer(scene)
    asked = {text_of(record) for record in played.calls if record.decided_by and record.decided_by.surface == "cockpit"}
    needless, _ = documented()[level]
    assert {text for truth, text in CALLS if truth == "should ask"} <= asked
    found = asked & {text for truth, text in CALLS if truth != "should ask"}
    assert len(found - set(ELSEWHERE)) <= needless, found
    edits = [text_of(record) for record in played.calls if isinstance(record.call.spec.command, FileEdits)]
    assert len(edits) == (len(BEFORE) if way == "hook" else 0)
    others = asked - {text for _, text in CALLS}
    fetches = {text for text in others if FETCHED in text}
    assert len(fetches) == (scenes[-1].command == FETCHED)
    assert others - fetches == (set(edits) if level == "reading" else set())

    after = tree(tmp_path)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    beside = {path for path in changed if not path.startswith(("workspace/", "whisper/", *OWN_FILES))}
    assert beside <= {"workspace", "out", "err"}
    assert any(path.startswith("workspace/") for path in changed) == (level == "workspace")
    if level == "workspace":
        stages[0].whisper_tui("restart")
        stages[0].whisper_tui("undo", "--unasked", "--yes")
    stages[0].stop()
    assert in_workspace(tree(tmp_path)) == in_workspace(before)
