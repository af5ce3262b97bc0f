"""What a supervised command or an agent has started decides nothing, however it hides: every verb, in every way."""

import asyncio
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interpreter import PYTHON
from tests.mutations.conftest import Field, a_field
from tests.mutations.intruder import UNSHARE, WAYS
from tests.mutations.verbs import LOOKING, deciding
from tests.outside import outside_only
from whisper_tui.model.call import SessionHello
from whisper_tui.present.security_text import TRIED
from whisper_tui.system.ancestry import has_ended, read_process
from whisper_tui.wire.operations import OPERATIONS
from whisper_tui.wire.protocol import SOCKET

INTRUDER = str(Path(__file__).with_name("intruder.py"))
KEEPER_WAYS = {way for way in WAYS if "its keeper" in way}
pytestmark = outside_only

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="what a process inherits shows only on Linux")


def test_every_operation_either_decides_or_only_reads():
    guarded = set(deciding("1", "s1", ""))
    assert guarded == {name for name, operation in OPERATIONS.items() if operation.guard != "nobody"}
    assert {name for name, operation in OPERATIONS.items() if operation.guard == "nobody"} == LOOKING


def test_there_are_words_for_every_attempt():
    # The role of phones is refused as a whole, by the name of the first thing that it asks.
    assert set(TRIED) == {*deciding("1", "s1", ""), "phone_calls"}


async def intrusion(field: Field, way: str) -> tuple[str, list[str], Path]:
    """A call that waits, and the words of a program that tries everything about it."""
    wanted = await field.ask("touch", "owned")
    record = await field.supervisor.record(wanted)
    requests = list(deciding(wanted, record.call.session_id, record.seen_digest()).items())
    answers = field.root / "answers"
    address = str(field.home.runtime / SOCKET)
    return wanted, [PYTHON, "-I", INTRUDER, address, str(answers), way, json.dumps(requests)], answers


async def all_refused(field: Field, wanted: str, answers: Path) -> None:
    """Every request got the same answer, and the call waits as before."""
    heard = json.loads(await field.line_of(answers))
    obeyed = {name: answer for name, answer in heard.items() if answer.get("error", {}).get("kind") != "not_allowed"}
    assert not obeyed
    assert set(heard) == set(deciding("", "", ""))
    assert (await field.supervisor.record(wanted)).state.kind == "waiting"


@pytest.mark.slow
@linux_only
@pytest.mark.parametrize("way", WAYS)
async def test_no_verb_is_obeyed_from_inside_a_supervised_command(way, field):
    if way == "in new namespaces" and not can_unshare():
        pytest.skip("this system gives no namespaces to this user")
    wanted, words, answers = await intrusion(field, way)
    await field.approve(await field.ask(*words))
    await all_refused(field, wanted, answers)


def can_unshare() -> bool:
    """Whether new namespaces can be had here."""
    return shutil.which("unshare") is not None and not subprocess.call([*UNSHARE, "true"], stderr=subprocess.DEVNULL)


@linux_only
@pytest.mark.parametrize("way", sorted(set(WAYS) - KEEPER_WAYS - {"in new namespaces"}))
@pytest.mark.few(2)
async def test_no_verb_is_obeyed_from_what_a_connected_agent_has_started(way, field):
    wanted, words, answers = await intrusion(field, way)
    agent = await asyncio.create_subprocess_exec(
        "sh", "-c", 'read go; "$@"; read end', "agent", *words, stdin=subprocess.PIPE, env=field.environment
    )
    try:
        hello = SessionHello(name="builder", root=str(field.root), pid=agent.pid, key="k1")
        await field.supervisor.open_session(hello)
        await field.until(lambda: any(pid == agent.pid for pid, _ in field.server._state.agents()))
        await field.until(lambda: read_process(agent.pid).descends_from == "agent")
        agent.stdin.write(b"\n")
        await all_refused(field, wanted, answers)
    finally:
        agent.kill()
        await agent.wait()


UNTIL_TOLD = 'while ! test -e go; do sleep 0.05; done; exec "$@"'
"""What a shell does first that becomes the intruder later."""


@linux_only
async def test_a_background_process_of_a_command_that_has_ended_decides_nothing(field):
    wanted, words, answers = await intrusion(field, "orphaned")
    culprit = await field.ask("sh", "-c", 'sh -c "$0" x "$@" & exit 0', UNTIL_TOLD, *words)
    await field.approve(culprit)
    await asyncio.wait_for(field.supervisor.outcome(culprit), 60)
    (field.root / "go").touch()
    await all_refused(field, wanted, answers)


@linux_only
async def test_a_command_that_waits_for_another_supervisor_and_kills_its_keeper_then_decides_nothing(tmp_path):
    async with a_field(tmp_path, ends_runs=False) as before:
        way = "its keeper killed, double forked, with an empty environment"
        wanted, words, answers = await intrusion(before, way)
        await before.runs("sh", "-c", UNTIL_TOLD, "x", *words)
    async with a_field(tmp_path) as field:
        (tmp_path / "go").touch()
        await all_refused(field, wanted, answers)


FILE_VERBS = (
    ("rules", "add", "allow", "--", "rm"),
    ("rules", "remove", "anything"),
    ("rules", "import", "settings.json", "--from", "claude", "--write"),
    ("rules", "trust", ".", "--yes"),
    ("rules", "untrust", "."),
    ("bring", "gpu1", "--yes"),
    ("list", "--host", "gpu1"),
)
"""Verbs that decide by writing a file of the user's, or do something on another machine with the user's keys."""


@pytest.mark.slow
@linux_only
@pytest.mark.parametrize("instance", [".", "fresh"])
@pytest.mark.few(1)
async def test_no_verb_that_writes_the_users_rules_is_obeyed_from_inside_a_supervised_command(field, instance):
    """In the instance of its supervisor, and in one that has never had any."""
    (field.root / "settings.json").write_text('{"permissions": {"allow": ["Bash(rm:*)"]}}')
    (field.root / ".whisper-tui").mkdir()
    (field.root / ".whisper-tui" / "rules.toml").write_text('[[allow]]\nname = "x"\nprefix = ["rm"]\n')
    tries = [f"{PYTHON} -m whisper_tui {shlex.join(words)} >>told 2>&1; echo $? >>codes" for words in FILE_VERBS]
    script = "\n".join(["unset WHISPER_TUI_CALL_ID", *tries, "echo end >>codes"])
    surroundings = (f"PYTHONPATH={field.environment['PYTHONPATH']}", f"WHISPER_TUI_HOME={field.root / instance}")
    await field.approve(await field.ask("env", *surroundings, "sh", "-c", script))
    codes = field.root / "codes"
    await field.until(lambda: codes.exists() and codes.read_text().endswith("end\n"))
    assert "0" not in codes.read_text().split()
    assert (field.root / "told").read_text().count("was refused because the request comes from inside") == len(
        FILE_VERBS
    )
    places = (field.home.config, field.root / instance / "config")
    assert not [path for place in places for path in place.rglob("*") if path.is_file()]


@linux_only
async def test_descendants_of_a_command_have_a_mark_that_we_do_not(field):
    call = await field.runs("sh", "-c", "setsid sleep 300 & wait")
    leader = (await field.supervisor.record(call)).process.leader.pid
    assert read_process(leader).descends_from == "command"
    assert read_process(os.getpid()).descends_from is None


def test_a_process_that_has_connected_and_ended_is_told_from_one_that_has_its_pid_later(tmp_path):
    address = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        script = "import socket, sys; c = socket.socket(socket.AF_UNIX); c.connect(sys.argv[1]); sys.stdin.read()"
        with subprocess.Popen([PYTHON, "-I", "-c", script, address], stdin=subprocess.PIPE) as peer:
            connection, _ = listening.accept()
            assert not has_ended(connection)
            peer.communicate()
        if sys.platform == "linux":
            assert has_ended(connection)
        connection.close()
