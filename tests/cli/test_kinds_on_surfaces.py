"""Every kind of call on every surface: none fails on one, has an empty row, or shows JSON that is not for programs."""

import asyncio
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import transports
from tests.agent_process import AgentProcess
from tests.cli.agent_shell import Shell
from tests.cli.conftest import PROGRAM, Instance
from tests.outside import outside_only
from tests.rows import each_row
from tests.tui.cockpit import PATIENCE
from whisper_tui.cli.dispatch import parser
from whisper_tui.model.board import Board
from whisper_tui.model.call import Function
from whisper_tui.model.errors import WhisperError
from whisper_tui.notify.desktop_buttons import call_notice
from whisper_tui.notify.notification_text import waiting_text
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.cockpit.call_list import CallList
from whisper_tui.tui.cockpit_screen import CockpitScreen
from whisper_tui.wire.client import SupervisorClient

pytestmark = outside_only

NOTEBOOK = {"cells": [{"id": "c1", "cell_type": "code", "source": "x = 1", "metadata": {}, "outputs": []}]}
CONFIG = """\
[calling]
command = [{python}, "-c", "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read())", {news}]
at_most_every_s = 1

[places.far]
by = "docker"
container = "there-is-none"
"""

Ask = Callable[[Shell], object]


def by_hook(tool: str, **given: Any) -> Ask:
    """A call of a tool of Claude Code itself, which names files by their whole paths."""

    def ask(shell: Shell) -> object:
        files = {name: str(shell.instance.workspace / path) for name, path in given.items() if name.endswith("_path")}
        return shell.ask("", tool_name=tool, tool_input=given | files)

    return ask


def by_tool(tool: str, **arguments: Any) -> Ask:
    """A call of one of our own tools."""
    return lambda shell: shell.instance.start("call", tool, json.dumps(arguments))


def by_client(function: Function) -> Ask:
    """A call of a tool whose program speaks to the supervisor itself, as the environment of Codex does."""
    program = """if True:
        import asyncio, sys
        from pathlib import Path
        from whisper_tui.model.call import CallRequest, CommandSpec, Function, SessionHello
        from whisper_tui.system.state_directory import Directories
        from whisper_tui.wire.client import SupervisorClient

        async def ask(root, function):
            home = Directories(config=root / "config", state=root / "state", runtime=root / "run")
            door = await SupervisorClient.connect(home)
            session = await door.open_session(SessionHello(name="client", root=str(root / "workspace")))
            spec = CommandSpec(command=function, cwd=session.root)
            request = CallRequest(session_id=session.id, tool=function.tool, arguments=function.arguments, spec=spec)
            await door.outcome(await door.submit(request))

        asyncio.run(ask(Path(sys.argv[1]), Function.model_validate_json(sys.argv[2])))
    """

    def ask(shell: Shell) -> object:
        return shell.start([sys.executable, "-c", program, str(shell.instance.root), function.model_dump_json()])

    return ask


def by_gateway(shell: Shell) -> object:
    """A call of a tool of a server behind our gateway."""
    program = Path(transports.__file__).with_name("gateway_server.py")
    server = [sys.executable, str(program), str(shell.instance.root / "received")]
    words = [*PROGRAM, "mcp", "--home", str(shell.instance.root), "--through", "scripted", "--", *server]
    process = shell.start(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "9"}}
    called = {"name": "echo", "arguments": {"text": "said again"}}
    for message in (
        {"id": 1, "method": "initialize", "params": who},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": called},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()
    return process


class Kind(NamedTuple):
    """A kind of call: how an agent makes it, how a row names it, and what its human does with it."""

    ask: Ask
    named: str
    human: tuple[str, ...] = ()
    """The words after which its id follows, for the command line. Empty: it is denied at the end."""
    runs_on: bool = False
    """True if it goes on running once it is approved."""


KINDS: dict[str, Kind] = {
    "shell": Kind(by_tool("run_shell_command", command="printf 'a b' > made.txt"), "printf 'a b' > made.txt"),
    "argv": Kind(by_tool("execute_command", command="touch", args=["a file"]), "touch 'a file'", ("approve",)),
    "terminal": Kind(by_tool("ExecCommand", cmd="python3 -i", tty=True), "python3 -i", ("approve",), runs_on=True),
    "task": Kind(by_tool("ExecCommand", cmd="sleep 4321", yield_time_ms=500), "sleep 4321", ("approve",), runs_on=True),
    "input": Kind(
        by_client(Function(tool="write_stdin", arguments={"task_id": "3", "text": "print(1)\n"})), "write_stdin"
    ),
    "shell of the agent": Kind(by_hook("Bash", command="make all", description="Build it"), "make all"),
    "edit": Kind(by_hook("Edit", file_path="Makefile", old_string="all", new_string="every"), "edit Makefile"),
    "new file": Kind(by_hook("Write", file_path="new/Makefile", content="all:\n"), "create new/Makefile"),
    "edit of a file that is no text": Kind(
        by_hook("Write", file_path="photo.bin", content="no text"), "edit photo.bin", ("approve",)
    ),
    "cell of a notebook": Kind(by_hook("NotebookEdit", notebook_path="n.ipynb", new_source="x = 2"), "edit n.ipynb"),
    "fetch": Kind(by_hook("WebFetch", url="https://example.org/a?b=c", prompt="Read it"), "fetch example.org/a?b=c"),
    "search": Kind(by_hook("WebSearch", query="how to tie a knot"), "search “how to tie a knot”"),
    "tool of a server": Kind(
        by_hook("mcp__github__create_issue", title="A title", body="text"), "github · create_issue"
    ),
    "tool without arguments": Kind(by_hook("mcp__clock__now"), "clock · now"),
    "gateway": Kind(by_gateway, "scripted · echo"),
    "sub-agent": Kind(by_hook("Agent", subagent_type="reviewer", prompt="Look at all of it"), "start reviewer"),
    "far place": Kind(by_tool("run_shell_command", command="make there", place="far"), "@far make there"),
    "preview": Kind(by_tool("run_shell_command", command="echo seen > seen.txt"), "echo seen > seen.txt"),
    "undo": Kind(
        by_tool("run_shell_command", command="echo gone > gone.txt"),
        "echo gone > gone.txt",
        ("approve", "--undoable"),
    ),
}
RECORDED = "sub-agent"
"""The kind that is recorded and not asked about."""
ASKED = [kind for kind in KINDS if kind != RECORDED]
DECIDED = [kind for kind in ASKED if KINDS[kind].human]
DENIED = [kind for kind in ASKED if not KINDS[kind].human]
ANSWERED_ELSEWHERE = {"input", "gateway"}
"""Kinds whose agents get their answers in a form of their own, of which only the call is recorded."""
RUNNING = [kind for kind in KINDS if KINDS[kind].runs_on]
JSON = re.compile(r'[{,]\s*"[^"]*"\s*:')
"""Matches an object of JSON."""


class World:
    """One instance on which a call of every kind waits, and afterwards runs, and has ended."""

    def __init__(self, instance: Instance, ids: dict[str, str], watch: "subprocess.Popen[str]") -> None:
        self.instance = instance
        self.ids = ids
        self._watch = watch
        self.watched: list[str] = []

    def does(self, *words: str) -> None:
        """A human changes something with the command line."""
        answer = self.instance.run(*words)
        assert answer.returncode == 0, (words, answer.stderr)

    def prints(self, *words: str) -> str:
        """What the command line prints. In this process, as a hundred new ones would take minutes."""
        given = [*words, "--home", str(self.instance.root)]
        options = parser(given).parse(given)
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out:
            assert options.run(options) == 0
            out.flush()
            return out.buffer.getvalue().decode()

    def rows(self, *words: str) -> Any:
        """What the same prints with --json."""
        return json.loads(self.prints(*words, "--json"))

    def watch_until(self, words: str) -> str:
        """What `watch` has printed up to a line with these words."""
        assert self._watch.stdout is not None
        while not any(words in line for line in self.watched):
            line = self._watch.stdout.readline()
            assert line, "".join(self.watched)
            self.watched.append(line)
        return "".join(self.watched)

    def notified(self) -> list[dict[str, Any]]:
        """What the program for notifications was given, object by object."""
        news = self.instance.root / "news"
        return [json.loads(line) for line in news.read_text().splitlines()] if news.exists() else []


@pytest.fixture(scope="module")
def world(overlays: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with waiting_calls(tmp_path_factory.mktemp("kinds")) as made:
        made.does("preview", made.ids["preview"])
        yield made


@contextmanager
def waiting_calls(root: Path) -> Iterator[World]:
    """An instance on which a call of every kind waits."""
    instance, agent = Instance(root), AgentProcess()
    (root / "config" / "rules.toml").write_text('read_only = false\nedits = "ask"\n')
    words = {"python": json.dumps(sys.executable), "news": json.dumps(str(root / "news"))}
    (root / "config" / "config.toml").write_text(CONFIG.format(**words))
    (instance.workspace / "Makefile").write_text("all:\n\techo hello\n")
    (instance.workspace / "photo.bin").write_bytes(b"\x89PNG\0\xff\xfe")
    (instance.workspace / "n.ipynb").write_text(json.dumps(NOTEBOOK | {"metadata": {}, "nbformat": 4}))
    shell, ids = Shell(instance, agent), dict[str, str]()
    shell.instance.ready()
    watch = instance.start("watch", stdin=subprocess.DEVNULL)
    made = World(instance, ids, watch)
    made.watch_until("Connected")
    for kind, (ask, *_) in KINDS.items():
        asking = ask(shell)
        known = set(ids.values())
        ids[kind] = instance.until(lambda: another_call(instance, known))  # noqa: B023 (it is called at once)
        assert asking is not None
    try:
        yield made
    finally:
        watch.kill()
        instance.close()
        agent.close()


def another_call(instance: Instance, known: set[str]) -> str | None:
    rows = (*instance.seen("list"), *instance.seen("history", limit=50))
    return next((row["id"] for row in rows if row["id"] not in known), None)


def lines_of(call_id: str, text: str) -> str:
    """The rows of one call."""
    rows = [line for line in text.splitlines() if line.split()[:1] == [call_id]]
    assert rows, text
    return "\n".join(rows)


def is_named(kind: str, text: str) -> None:
    """A text names a call of a kind, and has no JSON."""
    assert KINDS[kind].named in text, text
    assert not JSON.search(text), text


@each_row("kind", ASKED)
def test_a_waiting_call_of_each_kind_is_named_in_the_list_and_shown(world: World, kind: str) -> None:
    is_named(kind, lines_of(world.ids[kind], world.prints("list")))
    assert KINDS[kind].named.removeprefix("@far ") in world.prints("show", world.ids[kind])
    assert world.rows("show", world.ids[kind])["id"] == world.ids[kind]


def test_every_kind_is_in_the_rows_for_programs_and_in_the_status(world: World) -> None:
    assert {row["id"] for row in world.rows("list")} == {world.ids[kind] for kind in ASKED}
    assert f"{len(ASKED)} waiting" in world.prints("status")
    assert world.rows("status")["waiting"] == len(ASKED)
    assert world.prints("status", "--short").strip()


def test_watch_reads_out_every_kind_once(world: World) -> None:
    said = world.watch_until(f"The preview of call {world.ids['preview']} is over")
    for kind in ASKED:
        (line,) = (line for line in said.splitlines() if f"Call {world.ids[kind]} of " in line and "asks" in line)
        is_named(kind, line)
    assert not JSON.search(said), said


def test_notifications_tell_of_every_kind(world: World) -> None:
    def told() -> dict[str, Any]:
        return {call["id"]: call for each in world.notified() for call in each["calls"]}

    world.instance.until(lambda: set(told()) >= {world.ids[kind] for kind in ASKED})
    assert all(call["command"] for call in told().values())


def test_a_desktop_notification_names_every_kind(world: World) -> None:
    async def notices() -> dict[str, tuple[str, str]]:
        door = await SupervisorClient.connect(world.instance.home)
        async with asyncio.timeout(60):
            board = await whole_board(door)
        await door.close()
        records = {kind: board.calls[world.ids[kind]] for kind in ASKED}
        return {
            kind: (call_notice(record, board.sessions[record.call.session_id]).body, waiting_text([record], board))
            for kind, record in records.items()
        }

    for kind, (body, sentence) in asyncio.run(notices()).items():
        assert KINDS[kind].named.removeprefix("@far ") in body, body
        assert not JSON.search(body + sentence), body
        assert sentence.startswith("1 new call from ")


async def whole_board(door: SupervisorClient) -> Board:
    board = Board()
    async for events in door.watch(None):
        board.apply_all(events)
        if not events:
            break
    return board


@pytest.mark.slow
def test_a_call_of_each_kind_that_is_set_aside_says_so_on_every_surface(tmp_path: Path) -> None:
    # Not on the instance of the others: agents whose calls are set aside go on.
    with waiting_calls(tmp_path) as world:
        ids = {kind: world.ids[kind] for kind in ASKED}
        world.instance.until(
            lambda: {row["id"] for told in world.notified() for row in told["calls"]} >= set(ids.values())
        )
        world.does("aside", *ids.values())
        told = len(world.notified())
        for kind, call_id in ids.items():
            row = lines_of(call_id, world.prints("list"))
            is_named(kind, row)
            assert row.split(maxsplit=1)[1].startswith("set aside "), row
            assert f"{call_id}, set aside for " in world.prints("show", call_id)
            shown = world.rows("show", call_id)
            assert shown["state"] == "set aside" and shown["set_aside"]["by"]["surface"] == "command line"
            assert "set aside" in lines_of(call_id, world.prints("history"))
            assert "set aside" in world.prints("export", "--format", "markdown", call_id)
            assert '"set aside"' in world.prints("export", "--format", "jsonl", call_id)
            assert f"Call {call_id} is set aside by " in world.watch_until(f"Call {call_id} is set aside")
        sessions = {row["session_id"] for row in world.rows("list")}
        told_of = "".join(world.prints("story", session, "--json") for session in sessions)
        stories = list(map(json.loads, told_of.splitlines()))
        assert {row["id"] for row in stories if row["outcome"] == "set aside"} == set(ids.values())
        assert f"0 waiting, {len(ids)} set aside, " in world.prints("status")
        assert (world.rows("status")["waiting"], world.rows("status")["aside"]) == (0, len(ids))
        assert world.prints("status", "--short").strip() == f"{len(ids)} set aside"
        for kind, (row, card) in InCockpit(world).look(ASKED).items():
            assert "◈" in row and KINDS[kind].named[:FITS_BESIDE_RISK] in row, row
            assert "◈ set aside for " in card and ("a Approve" in card or "a Apply" in card), card
        assert len(world.notified()) == told
        world.does("aside", "--back", *ids.values())
        assert f"{len(ids)} waiting, 0 queued" in world.prints("status")
        for call_id in ids.values():
            world.watch_until(f"Call {call_id} waits again, brought back by ")


class InCockpit:
    """What the cockpit of an instance draws of each call."""

    def __init__(self, world: World) -> None:
        self._world = world

    def look(self, kinds: list[str], size: tuple[int, int] = (200, 60)) -> dict[str, tuple[str, str]]:
        """Return the row and the card of a call of each of these kinds."""
        return asyncio.run(self._look(kinds, size))

    async def _look(self, kinds: list[str], size: tuple[int, int]) -> dict[str, tuple[str, str]]:
        door, found = await SupervisorClient.connect(self._world.instance.home), {}
        app = CockpitApp(door, user="tester")
        async with app.run_test(size=size) as pilot:
            screen = app.screen_stack[0]
            assert isinstance(screen, CockpitScreen)
            calls = screen.query_one(CallList)

            async def until(holds: Callable[[], Any]) -> None:
                for _ in range(PATIENCE):
                    if holds():
                        return
                    await pilot.pause(0.02)
                raise AssertionError(drawn(app, 0, size))

            await until(lambda: set(screen.board.calls) >= set(self._world.ids.values()))
            await until(lambda: screen.roster.totals["waiting"] == len(screen.board.waiting))
            for kind in kinds:
                call_id = self._world.ids[kind]
                calls.select(call_id, by_hand=True)
                await until(lambda: screen.shown is not None and screen.shown.id == call_id)  # noqa: B023
                await until(lambda: f"Call {call_id} " in drawn(app, 0, size))  # noqa: B023
                await until(lambda: not screen.card.facts.asking)
                place = screen.roster.place_of(call_id)
                assert place is not None
                line = calls._layout_now.line_of(place) - calls.scroll_offset.y
                row = "".join(segment.text for segment in calls.render_line(line))
                found[kind] = row, drawn(app, calls.region.right, size)
        await door.close()
        return found


def drawn(app: CockpitApp, left: int, size: tuple[int, int]) -> str:
    """The text on the screen from a column on, with its rows joined by blanks."""
    update = app.screen._compositor.render_update(full=True)
    rows = ("".join(segment.text for piece in pieces for segment in piece) for pieces in update.strips)  # type: ignore[union-attr]
    return "\n".join(row[left:].rstrip() for row in rows)


FITS = 24
"""Characters of a command that the narrowest row has."""
FITS_BESIDE_RISK = 18
"""Those that a row with its session and risk has."""


@pytest.mark.slow
def test_the_cockpit_lists_and_shows_every_kind_that_waits(world: World) -> None:
    for kind, (row, card) in InCockpit(world).look(ASKED).items():
        assert KINDS[kind].named[:FITS] in row, row
        assert not JSON.search(row + card), card
        assert "waiting" in card and ("a Approve" in card or "a Apply" in card), card


@pytest.fixture(scope="module")
def running(world: World) -> World:
    """The same after a human has decided about those that are to run, and has taken one back."""
    for kind in DECIDED:
        world.does(*KINDS[kind].human, world.ids[kind], "--yes")
    for kind in RUNNING:
        world.instance.until(lambda: world.instance.seen("show", call_id=world.ids[kind])[0]["pid"])  # noqa: B023
    for kind in set(DECIDED) - set(RUNNING):
        world.instance.until(lambda: world.instance.seen("show", call_id=world.ids[kind])[0]["state"] == "ended")  # noqa: B023
    world.does("undo", world.ids["undo"], "--yes")
    return world


@pytest.mark.parametrize("kind", RUNNING)
def test_a_running_call_of_each_kind_is_named_in_every_list(running: World, kind: str) -> None:
    for surface in ("list", "ps"):
        is_named(kind, lines_of(running.ids[kind], running.prints(surface)))
    assert running.ids[kind] in {row["id"] for row in running.rows("ps")}


@pytest.mark.slow
def test_the_cockpit_shows_what_runs_and_what_was_taken_back(running: World) -> None:
    for kind, (row, card) in InCockpit(running).look(DECIDED).items():
        assert KINDS[kind].named[:FITS] in row, row
        assert not JSON.search(row + card), card
        assert ("running" in card) is (kind in RUNNING), card


@pytest.fixture(scope="module")
def ended(running: World) -> World:
    """The same after a human has denied all others, and has stopped what ran on."""
    running.does("deny", *(running.ids[kind] for kind in DENIED), "--reason", "not today")
    for kind in RUNNING:
        running.does("signal", running.ids[kind], "KILL")
    running.instance.until(lambda: not running.instance.seen("list"))
    return running


@each_row("kind", KINDS)
def test_an_ended_call_of_each_kind_is_named_in_every_record(ended: World, kind: str) -> None:
    named, call_id = KINDS[kind].named, ended.ids[kind]
    is_named(kind, lines_of(call_id, ended.prints("history")))
    assert named.removeprefix("@far ") in ended.prints("show", call_id)
    told = ended.prints("show", "--told", call_id)
    assert kind not in DENIED or "not today" in told or kind in ANSWERED_ELSEWHERE
    (line,) = ended.prints("export", "--format", "jsonl", call_id).splitlines()
    assert json.loads(line)["id"] == call_id
    assert named.replace("“", "").split()[-1].rstrip("”") in ended.prints("export", "--format", "markdown", call_id)


@each_row("kind", KINDS)
@each_row("form", ["asciicast", "asciicast3"])
def test_a_recording_is_made_of_what_had_output_and_refused_in_a_sentence_for_the_rest(
    ended: World, kind: str, form: str
) -> None:
    try:
        recording = ended.prints("export", "--format", form, ended.ids[kind])
    except WhisperError as refusal:
        assert kind not in {*RUNNING, "undo", "argv"} and ended.ids[kind] in refusal.message
    else:
        header, *_ = map(json.loads, recording.splitlines())
        assert header["version"] in {2, 3}


def test_a_story_tells_every_kind(ended: World) -> None:
    sessions = {row["session_id"] for row in ended.rows("history")}
    told = "".join(ended.prints("story", session) for session in sorted(sessions))
    for kind, (_, named, *_rest) in KINDS.items():
        assert named.split()[-1].rstrip("”") in told, kind
    assert not JSON.search(told), told


@pytest.mark.slow
def test_the_cockpit_shows_every_kind_that_has_ended(ended: World) -> None:
    for kind, (row, card) in InCockpit(ended).look(list(KINDS)).items():
        assert KINDS[kind].named[:FITS] in row, row
        assert not JSON.search(row + card), card
        assert "a Approve" not in card, card


def test_watch_tells_how_every_kind_ended(ended: World) -> None:
    last = max(map(int, (ended.ids[kind] for kind in DENIED)))
    said = ended.watch_until(f"Call {last}: ")
    for kind in DENIED:
        assert any(f"Call {ended.ids[kind]}: " in line and "not today" in line for line in said.splitlines()), kind
    assert not JSON.search(said), said
