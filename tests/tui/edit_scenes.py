"""Calls that edit real files: what their cards show is read from the disk."""

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from tests.in_memory.world import ASKED
from tests.tui.scenes import ME, Scenario
from whisper_tui.model.call import (
    CallRequest,
    CommandSpec,
    DeleteFile,
    FileChange,
    FileEdits,
    Function,
    ReplaceText,
    WriteFile,
)
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import HandedOver
from whisper_tui.model.event import Decided, Finished
from whisper_tui.model.verdict import Resolved, Risk, Verdict

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


HOME = "/home/me"
GARDEN = Path(HOME, "garden")
"""The workspace of scenes whose pictures are compared, as they name it."""


def edit(
    scenario: Scenario,
    root: Path,
    *changes: FileChange,
    takes_result: bool = True,
    by_agent: bool = True,
    verdict: Verdict = ASKED,
) -> str:
    """An agent that works in a directory asks to change files."""
    session = scenario.supervisor.open("garden agent", str(root), "claude-code", "2.1.329")
    command = FileEdits(tool="Edit", changes=changes, takes_result=takes_result)
    spec = CommandSpec(command=command, cwd=str(root))
    request = CallRequest(
        session_id=session.id, tool="Edit", arguments={}, spec=spec, ticket="t", by_agent=by_agent,
        description="Read the settings as UTF-8",
    )  # fmt: skip
    files = tuple(each.file for each in scenario.supervisor.contents_now(spec, session.id))
    return scenario.supervisor.ask(request, verdict, Resolved(edits=files, cwd=str(root)))


def approved(scenario: Scenario, call_id: str) -> None:
    """The edit is approved, and its agent may make it."""
    scenario.supervisor.happen(Decided(at=scenario.clock(), call_id=call_id, decision=Approve(), by=ME))
    scenario.supervisor.happen(Finished(at=scenario.clock(), call_id=call_id, ending=HandedOver()))


def folder() -> Path:
    """An empty directory whose name has the same length each time. It lasts as long as the process."""
    path = Path(tempfile.mkdtemp(prefix="garden-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def garden(files: Mapping[str, str] = {}) -> tuple[Scenario, Path]:
    """A scenario with a workspace of a name that never changes, and the directory with its files on the disk."""
    scenario, real = Scenario.begin(), folder()
    scenario.supervisor.directories = {HOME: str(real)}
    (real / "garden").mkdir()
    for name, content in files.items():
        path = real / "garden" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        path.chmod(0o644)
    return scenario, real


def one_edit() -> Scenario:
    """One file of a small project is edited."""
    scenario, _ = garden({"settings.py": SETTINGS})
    edit(scenario, GARDEN, WriteFile(path=str(GARDEN / "settings.py"), content=EDITED))
    return scenario


def several_files() -> Scenario:
    """Three files: one new, one changed, one deleted."""
    scenario, _ = garden({"settings.py": SETTINGS, "old.txt": "one\ntwo\n"})
    edit(
        scenario,
        GARDEN,
        WriteFile(path=str(GARDEN / "pages" / "new.md"), content="# Moss\n\nGrows in the shade.\n"),
        ReplaceText(path=str(GARDEN / "settings.py"), old='"pages": 12', new='"pages": 20'),
        DeleteFile(path=str(GARDEN / "old.txt")),
    )
    return scenario


def new_file() -> Scenario:
    """A file that is not there yet, with a tab, a hidden character and no line feed at its end."""
    scenario, _ = garden()
    text = '#!/bin/sh\n# Waters the \u202egarden\u202c each day.\nfor bed in moss fern; do\n\twater "$bed"\ndone'
    edit(scenario, GARDEN, WriteFile(path=str(GARDEN / "bin" / "water"), content=text))
    return scenario


def granting_file() -> Scenario:
    """The settings of an agent: they decide what it may do."""
    scenario, _ = garden({".claude/settings.json": '{\n  "permissions": {\n    "ask": ["Bash"]\n  }\n}\n'})
    path = GARDEN / ".claude" / "settings.json"
    sentence = f"Changes the settings of an agent, and with it what runs later or who may approve: {path}"
    risk = Risk(id="sensitive-write", sentence=sentence)
    change = ReplaceText(path=str(path), old='"ask": ["Bash"]', new='"allow": ["Bash"]')
    edit(scenario, GARDEN, change, verdict=Verdict(kind="ask", reason=sentence, risks=(risk,)))
    return scenario


def ended_edit() -> Scenario:
    """An edit that its agent has made."""
    scenario, real = garden({"settings.py": SETTINGS})
    approved(scenario, edit(scenario, GARDEN, WriteFile(path=str(GARDEN / "settings.py"), content=EDITED)))
    (real / "garden" / "settings.py").write_text(EDITED)
    return scenario


def _tool(
    tool: str, about: Literal["web", "server", "subagent"], targets: tuple[str, ...], **arguments: object
) -> Scenario:
    scenario, _ = garden()
    session = scenario.supervisor.open("garden agent", str(GARDEN), "claude-code", "2.1.329")
    function = Function(tool=tool, arguments=arguments, about=about, targets=targets)
    spec = CommandSpec(command=function, cwd=str(GARDEN))
    request = CallRequest(session_id=session.id, tool=tool, arguments=arguments, spec=spec, ticket="t", by_agent=True)
    scenario.supervisor.ask(request, resolved=Resolved(cwd=str(GARDEN)))
    return scenario


def a_fetch() -> Scenario:
    """A page of a host whose name has letters of another script."""
    url = "https://\u0440ython.org/3/library/asyncio-task.html?highlight=gather"
    return _tool("WebFetch", "web", ("\u0440ython.org",), url=url, prompt="How do I wait for several tasks?")


def a_servers_tool() -> Scenario:
    """A tool of another MCP server, with nested arguments."""
    return _tool(
        "mcp__tracker__create_issue",
        "server",
        ("tracker", "create_issue"),
        title="Moss grows on the north side",
        body="Seen on three beds.\n\nWater less.",
        labels=["garden", "moss"],
        where={"beds": [{"number": 3, "shade": True}, {"number": 7, "shade": False}]},
        assignee=None,
    )


def a_sub_agent() -> Scenario:
    """A sub-agent with its prompt."""
    prompt = "Read the notes about moss in docs/.\n\n* List what helps against it.\n* Change nothing."
    return _tool("Agent", "subagent", ("reader",), description="Look for notes", prompt=prompt)
