"""Every kind of call can be listed, shown, told and exported: no surface fails on one, none shows raw JSON."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.agent_process import AgentProcess
from tests.cli.agent_shell import Shell
from tests.cli.conftest import Instance
from tests.outside import outside_only

pytestmark = outside_only

NOTEBOOK = {"cells": [{"id": "c1", "cell_type": "code", "source": "x = 1", "metadata": {}, "outputs": []}]}


def by_hook(tool: str, **given: Any) -> Callable[[Shell], object]:
    """A call of a tool of Claude Code itself, which names files by their whole paths."""

    def ask(shell: Shell) -> object:
        files = {name: str(shell.instance.workspace / path) for name, path in given.items() if name.endswith("_path")}
        return shell.ask("", tool_name=tool, tool_input=given | files)

    return ask


def by_tool(tool: str, **arguments: Any) -> Callable[[Shell], object]:
    """A call of one of our own tools."""
    return lambda shell: shell.instance.start("call", tool, json.dumps(arguments))


KINDS: dict[str, tuple[Callable[[Shell], object], str]] = {
    "shell": (by_tool("run_shell_command", command="printf 'a b' > made.txt"), "printf 'a b' > made.txt"),
    "argv": (by_tool("execute_command", command="touch", args=["a file"]), "touch 'a file'"),
    "terminal": (by_tool("ExecCommand", cmd="python3 -i", tty=True), "python3 -i"),
    "shell of the agent": (by_hook("Bash", command="make all", description="Build it"), "make all"),
    "edit": (by_hook("Edit", file_path="Makefile", old_string="all", new_string="every"), "edit Makefile"),
    "new file": (by_hook("Write", file_path="new/Makefile", content="all:\n"), "create new/Makefile"),
    "edit of a file that is no text": (by_hook("Write", file_path="photo.bin", content="no text"), "edit photo.bin"),
    "cell of a notebook": (by_hook("NotebookEdit", notebook_path="n.ipynb", new_source="x = 2"), "edit n.ipynb"),
    "fetch": (by_hook("WebFetch", url="https://example.org/a?b=c", prompt="Read it"), "fetch example.org/a?b=c"),
    "search": (by_hook("WebSearch", query="how to tie a knot"), "search “how to tie a knot”"),
    "tool of a server": (by_hook("mcp__github__create_issue", title="A title", body="text"), "github · create_issue"),
    "tool without arguments": (by_hook("mcp__clock__now"), "clock · now"),
    "sub-agent": (by_hook("Agent", subagent_type="reviewer", prompt="Look at all of it"), "start reviewer"),
}
"""Each kind of call: how an agent makes it, and how a row names it."""
RECORDED = "sub-agent"
"""The kind that is recorded and not asked about."""
ASKED = [kind for kind in KINDS if kind != RECORDED]


class Waiting:
    """One instance on which a call of every kind waits, and afterwards has ended."""

    def __init__(self, instance: Instance, ids: dict[str, str]) -> None:
        self.instance = instance
        self.ids = ids

    def prints(self, *words: str) -> str:
        answer = self.instance.run(*words)
        assert answer.returncode == 0, (words, answer.stderr)
        assert "defect" not in answer.stdout + answer.stderr
        return answer.stdout


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waiting]:
    root: Path = tmp_path_factory.mktemp("kinds")
    instance, agent = Instance(root), AgentProcess()
    (root / "config" / "rules.toml").write_text('read_only = false\nedits = "ask"\n')
    (instance.workspace / "Makefile").write_text("all:\n\techo hello\n")
    (instance.workspace / "photo.bin").write_bytes(b"\x89PNG\0\xff\xfe")
    (instance.workspace / "n.ipynb").write_text(json.dumps(NOTEBOOK | {"metadata": {}, "nbformat": 4}))
    shell, ids = Shell(instance, agent), dict[str, str]()
    shell.supervisor_runs()
    for kind, (submit, _) in KINDS.items():
        submit(shell)
        known = set(ids.values())
        ids[kind] = instance.until(lambda: another_call(instance, known))  # noqa: B023 (it is called at once)
    yield Waiting(instance, ids)
    instance.close()
    agent.close()


def another_call(instance: Instance, known: set[str]) -> str | None:
    rows = (*instance.seen("list"), *instance.seen("history", limit=50))
    return next((row["id"] for row in rows if row["id"] not in known), None)


def lines_of(kind: str, waiting: Waiting, text: str) -> str:
    """The rows of one call."""
    rows = [line for line in text.splitlines() if line.split()[:1] == [waiting.ids[kind]]]
    assert rows, text
    return "\n".join(rows)


@pytest.fixture(scope="module")
def listed(waiting: Waiting) -> str:
    return waiting.prints("list")


@pytest.mark.parametrize("kind", ASKED)
def test_a_waiting_call_of_each_kind_is_named_in_the_list_and_shown(waiting: Waiting, listed: str, kind: str) -> None:
    named = KINDS[kind][1]
    assert named in (row := lines_of(kind, waiting, listed))
    assert '{"' not in row
    assert named in waiting.prints("show", waiting.ids[kind])
    assert waiting.instance.rows("show", waiting.ids[kind])["id"] == waiting.ids[kind]


def test_every_kind_is_in_the_rows_for_programs(waiting: Waiting) -> None:
    assert {row["id"] for row in waiting.instance.rows("list")} == {waiting.ids[kind] for kind in ASKED}
    waiting.prints("ps")
    waiting.prints("status")
    assert len(waiting.instance.rows("status")) > 1


@pytest.fixture(scope="module")
def ended(waiting: Waiting) -> Waiting:
    """The same after a human has denied all of them."""
    answer = waiting.instance.run("deny", *(waiting.ids[kind] for kind in ASKED), "--reason", "not today")
    assert answer.returncode == 0, answer.stderr
    waiting.instance.until(lambda: not waiting.instance.seen("list"))
    return waiting


class Recorded(NamedTuple):
    """What is printed of all ended calls at once."""

    history: str
    lines: dict[str, Any]
    """What JSON lines say of a call, by its number."""
    reports: dict[str, str]
    """The part of a report about a call, by its number."""


@pytest.fixture(scope="module")
def recorded(ended: Waiting) -> Recorded:
    calls = ended.ids.values()
    lines = (json.loads(line) for line in ended.prints("export", "--format", "jsonl", *calls).splitlines())
    report = ended.prints("export", "--format", "markdown", *calls)
    parts = (part.partition(":") for part in report.split("\n### Call ")[1:])
    return Recorded(
        ended.prints("history"), {line["id"]: line for line in lines}, {number: text for number, _, text in parts}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_ended_call_of_each_kind_is_named_in_every_record(ended: Waiting, recorded: Recorded, kind: str) -> None:
    named, call_id = KINDS[kind][1], ended.ids[kind]
    assert named in (row := lines_of(kind, ended, recorded.history))
    assert '{"' not in row
    assert named in ended.prints("show", call_id)
    told = ended.prints("show", "--told", call_id)
    assert "not today" in told or kind == RECORDED
    assert call_id in recorded.lines
    assert named.replace("“", "").split()[-1].rstrip("”") in recorded.reports[call_id]


def test_a_story_tells_every_kind(ended: Waiting) -> None:
    sessions = {row["session_id"] for row in ended.instance.rows("history")}
    told = "".join(ended.prints("story", session) for session in sorted(sessions))
    for kind, (_, named) in KINDS.items():
        assert named.split()[-1].rstrip("”") in told, kind
