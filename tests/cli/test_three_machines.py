"""One cockpit over three machines with 1,000 waiting calls each: all that can fail fails, and works again.

Each machine has a network namespace, an sshd, a home and a supervisor of its own.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import PROGRAM
from tests.cli.terminal import Terminal
from tests.cli.test_other_machines import SOURCE, Desk, Machine
from tests.faults.test_disk import fill, mount
from tests.outside import exhaustive_only, outside_only
from tests.ssh_server import IP, needs_sshd, other_machine
from whisper_tui.export.terminal_screen import TerminalScreen
from whisper_tui.supervisor.journal.sqlite_file import read_rows

pytestmark = [
    outside_only,
    exhaustive_only,
    needs_sshd,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="network namespaces"),
]

EACH = 1000
"""Calls that wait on each machine."""
WAIT_S = 120
"""Seconds for anything: a machine that has lost its network is noticed after 20, and tried again within 40."""
ROWS, COLUMNS = 40, 120

AGENT = """
import asyncio, os, sys
from whisper_tui.config import find_directories
from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.wire.client import SupervisorClient

async def main(home, number):
    supervisor = await SupervisorClient.connect(find_directories(home, {}))
    hello = SessionHello(name="builder", root=os.getcwd(), environment=dict(os.environ))
    session = await supervisor.open_session(hello)
    for at in range(number):
        text = f"echo once >> made-{at}"
        spec = CommandSpec(command=Shell(text=text), cwd=os.getcwd())
        arguments = {"command": text}
        await supervisor.submit(CallRequest(session_id=session.id, tool="shell", arguments=arguments, spec=spec))
    await supervisor.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""
"""Asks for commands that each write one line into a file of their own."""


class FarMachine(Machine):
    """A machine that can fail in many ways."""

    def __init__(self, root: Path, server: Any) -> None:
        super().__init__(root, *server)
        self.space = self.inside[-1]
        self.program = root / "program"
        self.program.write_text(
            f'#!/bin/sh\nexec env PYTHONPATH={shlex.quote(SOURCE)} {shlex.join(PROGRAM)} "$@" --home {root}\n'
        )
        self.program.chmod(0o755)

    @property
    def table(self) -> str:
        """What the desk's configuration says about it."""
        return f"[hosts.{self.name}]\ncommand = {json.dumps(str(self.program))}\n"

    def begin(self, *words: str, source: str = SOURCE) -> "subprocess.Popen[str]":
        """Start a program on it."""
        environment = {**os.environ, "PYTHONPATH": source}
        command = [*self.inside, *words]
        return subprocess.Popen(command, cwd=self.workspace, env=environment, stderr=subprocess.PIPE, text=True)

    def link(self, state: str) -> None:
        """Connect or cut its network cable."""
        assert IP is not None
        subprocess.run([IP, "-n", self.space, "link", "set", f"f{self.space[2:]}", state], check=True)

    def replaces_host_key(self, key: Path) -> None:
        """Restart its sshd with another key."""
        self.cut()
        for suffix in ("", ".pub"):
            shutil.copy(f"{key}{suffix}", self.ssh.config.with_name(f"host{suffix}"))
        self.ssh.start()

    def decided(self) -> Counter[str]:
        """How often each call was decided, according to its journal."""
        bodies = (json.loads(body) for (body,) in read_rows(Path(self.home.state) / "journal.sqlite", EVENTS))
        return Counter(body["call_id"] for body in bodies if body["kind"] == "decided")

    def files(self) -> dict[str, str]:
        """The files that its commands have written."""
        return {path.name: path.read_text() for path in self.workspace.glob("made-*")}


IN_LIST = "Space Mark"
"""What its last line offers while the keys decide about calls, and are no letters of a filter."""
EMPTY_FILTER = "command, words, session"
EVENTS = "SELECT body FROM events"


class Screen:
    """A cockpit on a terminal, read as it looks."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._screen = TerminalScreen(ROWS, COLUMNS)
        self._fed = 0

    def text(self) -> str:
        """All that it shows."""
        drawn = self._terminal.text
        self._screen.feed(drawn[self._fed :])
        self._fed = len(drawn)
        return self._screen._screen.text()

    def until(self, holds: Callable[[str], Any]) -> Any:
        """Wait for a condition on what it shows, bounded, and return what it gave."""
        deadline = time.monotonic() + WAIT_S
        while not (found := holds(self.text())):
            assert time.monotonic() < deadline, self.text()
            assert self._terminal.process.poll() is None, self.text()
            time.sleep(0.02)
        return found

    def shows(self, *words: str) -> None:
        """Wait, bounded, for words."""
        self.until(lambda text: all(word in text for word in words))

    def types(self, keys: bytes) -> None:
        """Press keys."""
        self._terminal.types(keys)

    def only(self, name: str) -> None:
        """List the calls of one machine."""
        self.types(b"/")
        self.until(lambda text: IN_LIST not in text)
        self.types(b"\x15")
        self.until(lambda text: EMPTY_FILTER in text)
        self.types(f"{name}:".encode())
        self.until(lambda text: re.search(rf"^ {name}:\s", text, re.MULTILINE) and f"Call {name}:" in text)
        self.types(b"\r")
        self.shows(IN_LIST)

    def press_until(self, holds: Callable[[], Any], call_id: str) -> None:
        """Approve the call in the panel until the effect shows: right after other keys it is ignored."""
        deadline = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < deadline, self.text()
            if f"Call {call_id} " in self.text():
                self.types(b"a")
            again = time.monotonic() + 5
            while not holds() and time.monotonic() < again:
                time.sleep(0.05)

    def selected(self) -> str:
        """The id of the call in the panel."""
        return self.until(lambda text: re.search(r"Call (\S+:\d+) ", text))[1]


@pytest.fixture
def three(tmp_path: Path, place_for_mounts: Path) -> Iterator[list[FarMachine]]:
    """Three machines; the last has a disk of its own."""
    with ExitStack() as stack:
        disk = place_for_mounts / "disk"
        disk.mkdir()
        if not mount("-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", str(disk)):
            pytest.skip("only root can mount a file system here")
        stack.callback(subprocess.run, ["umount", "--lazy", str(disk)], check=True)
        found = []
        for name, root in (("gpu1", tmp_path / "gpu1"), ("gpu2", tmp_path / "gpu2"), ("ci", disk / "ci")):
            server = stack.enter_context(other_machine(tmp_path / f"sshd-{name}", name))
            found.append(FarMachine(root, server))
            stack.callback(found[-1].close)
        yield found


@pytest.fixture
def desk(tmp_path: Path, three: list[FarMachine]) -> Iterator[Desk]:
    found = Desk(tmp_path / "desk", three)  # type: ignore[arg-type]
    yield found
    found.close()


def wait_for(holds: Callable[[], Any]) -> None:
    """Wait for a condition, bounded."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def end_well(*begun: "subprocess.Popen[str]") -> None:
    """Wait for programs, bounded."""
    for process in begun:
        said = process.communicate(timeout=WAIT_S)[1]
        assert process.returncode == 0, said


class Round:
    """Approvals in the cockpit, and what they have done."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.approved: dict[str, set[str]] = {}

    def _approve_until(self, machine: FarMachine, holds: Callable[[str], Any]) -> str:
        """Approve a call of a machine, or another one, until the effect shows. Returns the number of that call.

        The key is ignored right after other keys, as in typed text, and a machine may be lost at that very moment.
        """
        deadline = time.monotonic() + WAIT_S
        while True:
            self.screen.only(machine.name)
            number = self.screen.selected().removeprefix(f"{machine.name}:")
            again = time.monotonic() + 10
            self.screen.types(b"a")
            while time.monotonic() < again:
                if holds(number):
                    return number
                time.sleep(0.05)
            assert time.monotonic() < deadline, self.screen.text()

    def approves_on(self, machine: FarMachine) -> None:
        """Approve a call of a machine, and wait until it has run there."""
        number = self._approve_until(machine, lambda number: f"made-{int(number) - 1}" in machine.files())
        self.approved.setdefault(machine.name, set()).add(number)

    def is_refused_on(self, machine: FarMachine, why: str) -> None:
        """Try to approve a call of a machine. It stays, and a toast says why."""
        words = re.compile(r"\s+".join(why.split()))
        number = self._approve_until(machine, lambda _: words.search(self.screen.text()))
        assert f"made-{int(number) - 1}" not in machine.files()

    def sees_grey(self, machine: FarMachine, *words: str) -> None:
        """Wait until the calls of a machine are as they were, grey and with their age, and the reason is shown."""
        self.screen.shows("○ 2 of 3 machines", f"{machine.name} has been unreachable since", *words)
        self.screen.only(machine.name)
        self.screen.until(lambda text: re.search(rf"○ {machine.name} +echo once >> made-\d+ +\d+[sm]", text))

    def sees_all(self) -> None:
        """Wait until all machines are reached."""
        self.screen.shows("● 3 machines")
        self.screen.until(lambda text: "unreachable" not in text)


def other_version(root: Path) -> Path:
    """A copy of the program that shares no version of the protocol with this one."""
    for name in ("whisper_tui", "themes"):
        shutil.copytree(Path(SOURCE) / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = root / "whisper_tui" / "model" / "protocol_version.py"
    text, changed = re.subn(r"^(VERSION|OLDEST) = \d+$", r"\1 = 90", path.read_text(), flags=re.MULTILINE)
    assert changed == 2
    path.write_text(text)
    return root


def test_nothing_is_decided_twice_and_nothing_is_lost_whatever_fails(tmp_path, three, desk):
    gpu1, gpu2, ci = three
    end_well(*(machine.begin(sys.executable, "-c", AGENT, str(machine.root), str(EACH)) for machine in three))
    program = [*PROGRAM, "attach", *(machine.name for machine in three), "--home", str(desk.root)]
    with Terminal(program, desk.environment, desk.workspace) as terminal:
        screen = Screen(terminal)
        here = Round(screen)
        screen.shows("● 3 machines", f"{3 * EACH:,} waiting", IN_LIST)
        for machine in three:
            here.approves_on(machine)
        _loses_its_supervisor(here, gpu1)
        _loses_its_sshd(here, gpu2)
        _shows_another_key(here, gpu2, tmp_path)
        _runs_another_version(here, gpu1, tmp_path)
        _has_a_full_disk(here, ci)
        _loses_its_network(here, ci, gpu1)
        for machine in three:
            here.approves_on(machine)
        screen.shows(f"◆ {sum(map(len, map(_waiting, three))):,} waiting")
        screen.types(b"q")
        assert terminal.ends() == 0
    for machine in three:
        decided = machine.decided()
        assert here.approved[machine.name] <= set(decided) and set(decided.values()) == {1}
        assert _waiting(machine) == {str(number) for number in range(1, EACH + 1)} - set(decided)
        machine.until(lambda machine=machine, decided=decided: set(decided) <= set(_endings(machine)))
        started = [number for number, ending in _endings(machine).items() if ending == "exited"]
        assert machine.files() == {f"made-{int(number) - 1}": "once\n" for number in started}
        assert machine is ci or len(started) == len(decided)


def _endings(machine):
    return {row["id"]: row["ending"] for row in machine.seen("history", limit=EACH) if row["state"] == "ended"}


def _waiting(machine):
    return {row["id"] for row in machine.seen("list") if row["state"] == "waiting"}


def _loses_its_supervisor(here, machine):
    machine.kill_supervisor(signal.SIGKILL)
    here.approves_on(machine)


def _loses_its_sshd(here, machine):
    machine.cut()
    here.sees_grey(machine)
    here.is_refused_on(machine, "nothing was done")
    machine.ssh.start()
    here.sees_all()
    here.approves_on(machine)


def _shows_another_key(here, machine, tmp_path):
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    for suffix in ("", ".pub"):
        shutil.copy(machine.ssh.config.with_name(f"host{suffix}"), f"{right}{suffix}")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(wrong)], check=True)
    machine.replaces_host_key(wrong)
    here.sees_grey(machine, "Host key verification failed")
    here.is_refused_on(machine, "nothing was done")
    machine.replaces_host_key(right)
    here.sees_all()
    here.approves_on(machine)


def _runs_another_version(here, machine, tmp_path):
    stop, restart = ((*PROGRAM, word, "--home", str(machine.root)) for word in ("stop", "restart"))
    newer = str(other_version(tmp_path / "other"))
    end_well(machine.begin(*restart, source=newer))
    here.sees_grey(machine, f"whisper-tui bring {machine.name}")
    here.is_refused_on(machine, "nothing was done")
    # an older program stops no newer supervisor
    end_well(machine.begin(*stop, source=newer))
    end_well(machine.begin(*restart))
    here.sees_all()
    here.approves_on(machine)


def _has_a_full_disk(here, machine):
    filler = fill(machine.root)
    # A decision is journaled while there is room for it, and then its command does not start, which is said.
    here.is_refused_on(machine, "not started")
    filler.unlink()
    here.sees_all()
    here.approves_on(machine)


def _loses_its_network(here, machine, other):
    machine.link("down")
    # Nobody knows yet that it is lost: a decision may be on its way for ever, and no other one waits for it.
    here.screen.only(machine.name)
    here.screen.types(b"a")
    here.approves_on(other)
    here.sees_grey(machine)
    here.is_refused_on(machine, "nothing was done")
    machine.link("up")
    here.sees_all()
    here.approves_on(machine)
