"""Calls that edit real files, on a stage: what their cards show is read from the disk."""

import tempfile
from pathlib import Path

from tests.tui.scenes import ME, Play
from whisper_tui.model.call import CallRequest, CommandSpec, FileEdits
from whisper_tui.model.decision import Approve
from whisper_tui.model.edits import DeleteFile, FileChange, ReplaceText, WriteFile
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.event import Decided, Finished
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.supervisor.edit_history import current_versions

SETTINGS = '''"""The settings of the site."""

import json
from pathlib import Path

DEFAULTS = {"title": "Garden", "pages": 12, "draft": False}
PLACES = ("settings.json", "local.json")


def load(folder: Path) -> dict[str, object]:
    """Return the settings of a folder, the later file winning."""
    found: dict[str, object] = dict(DEFAULTS)
    for name in PLACES:
        path = folder / name
        if path.exists():
            found.update(json.loads(path.read_text()))
    return found


def title(folder: Path) -> str:
    # An empty title would make a page without a name.
    return str(load(folder)["title"]) or "Untitled"


def pages(folder: Path) -> int:
    return int(str(load(folder)["pages"]))


def is_draft(folder: Path) -> bool:
    return bool(load(folder)["draft"])
'''
EDITED = SETTINGS.replace('"pages": 12', '"pages": 20').replace(
    "            found.update(json.loads(path.read_text()))\n",
    '            found.update(json.loads(path.read_text("utf-8")))\n            found["folder"] = str(folder)\n',
)


def edit(play: Play, root: Path, *changes: FileChange, takes_result: bool = True, by_agent: bool = True) -> str:
    """An agent that works in a directory asks to change files."""
    session = play.stage.open("garden agent", str(root), "claude-code", "2.1.329")
    command = FileEdits(tool="Edit", changes=changes, takes_result=takes_result)
    spec = CommandSpec(command=command, cwd=str(root))
    request = CallRequest(
        session_id=session.id, tool="Edit", arguments={}, spec=spec, ticket="t", by_agent=by_agent,
        description="Read the settings as UTF-8",
    )  # fmt: skip
    files = tuple(each.file for each in current_versions(spec, (str(root),), "/root", ()))
    return play.stage.ask(request, Verdict(kind="ask", reason="edits are asked"), Resolved(edits=files, cwd=str(root)))


def approved(play: Play, call_id: str) -> None:
    """The edit is approved, and its agent may make it."""
    play.stage.happen(Decided(at=play.clock(), call_id=call_id, decision=Approve(), by=ME))
    play.stage.happen(Finished(at=play.clock(), call_id=call_id, ending=HandedOver()))


def folder() -> Path:
    """An empty directory whose name has the same length each time."""
    return Path(tempfile.mkdtemp(prefix="garden-"))


def one_edit() -> Play:
    """One file of a small project is edited."""
    play, root = Play.begin(), folder()
    (root / "settings.py").write_text(SETTINGS)
    edit(play, root, WriteFile(path=str(root / "settings.py"), content=EDITED))
    return play


def several_files() -> Play:
    """Three files: one new, one changed, one deleted."""
    play, root = Play.begin(), folder()
    (root / "settings.py").write_text(SETTINGS)
    (root / "old.txt").write_text("one\ntwo\n")
    edit(
        play,
        root,
        WriteFile(path=str(root / "pages" / "new.md"), content="# Moss\n\nGrows in the shade.\n"),
        ReplaceText(path=str(root / "settings.py"), old='"pages": 12', new='"pages": 20'),
        DeleteFile(path=str(root / "old.txt")),
    )
    return play
