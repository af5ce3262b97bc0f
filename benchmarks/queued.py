"""A real supervisor with very many calls that wait, and a real cockpit that shows them."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from terminal import Terminal, peak_mb

from whisper_tui.config import find_directories
from whisper_tui.model.call import CallRequest, CommandSpec, Session, SessionHello, Shell, ToolCall
from whisper_tui.model.decision import Decider, Deny
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.event import Event, Judged, SessionOpened, Submitted
from whisper_tui.model.verdict import Meaning, Resolved, Risk, Verdict
from whisper_tui.supervisor.journal.journal import Journal
from whisper_tui.wire.client import SupervisorClient

SESSIONS = 10
"""The calls are asked for by so many agents in turn."""
BATCH = 2000
PATIENCE_S = 300
ROUNDS = 20
OPENS = 4
"""The cockpit is opened so many times before the one that is measured further."""
UP, DOWN, GROUP, ERASE = b"\x1b[A", b"\x1b[B", b"\x07", b"\x7f"
GROUPED = (b"for you, by session", b"for you, alike", b"for you, by risk", b"for you\x1b")
Found = dict[str, list[float]]
"""Milliseconds, by what was done."""


def command(number: int) -> CommandSpec:
    """What a call would run."""
    text = f"make part{number} && ./deploy.sh --stage part{number} 2>&1 | tee part{number}.log"
    return CommandSpec(command=Shell(text=text), cwd="/tmp")


def events(waiting: int) -> Iterator[Event]:
    """The facts of so many calls that wait."""
    now = time.time()
    for number in range(1, SESSIONS + 1):
        session = Session(id=f"s{number}", name=f"agent {number}", root="/tmp", opened_at=now)
        yield SessionOpened(at=now, session=session)
    risks = (Risk(id="network", sentence="It reaches the network", span=(17, 28)),)
    for number in range(1, waiting + 1):
        spec, id_ = command(number), str(number)
        call = ToolCall(
            id=id_,
            session_id=f"s{number % SESSIONS + 1}",
            tool="run_shell_command",
            arguments={"command": spec.command.words()[-1], "description": f"Build part {number}"},
            spec=spec,
            description=f"Build part {number}",
            submitted_at=now,
        )
        yield Submitted(at=now, call=call)
        verdict = Verdict(kind="ask", reason="no rule allows it", risks=risks, prefixes=(("make",), ("./deploy.sh",)))
        meanings = tuple(Meaning(words=(word, f"part{number}"), program=f"/usr/bin/{word}") for word in ("make", "tee"))
        resolved = Resolved(program="/usr/bin/bash", cwd="/tmp", commands=meanings)
        yield Judged(at=now, call_id=id_, verdict=verdict, resolved=resolved)


class Queue:
    """So many calls wait in a directory of their own."""

    def __init__(self, place: Path, waiting: int) -> None:
        self.waiting = waiting
        self.place = place
        self._home = find_directories(str(place), {})
        self._runner = asyncio.Runner()
        self._journal()
        self.start_s = [self._start(), self._restart()]
        """Processor seconds of the supervisor until it answers: the first time, and once it has kept packed records."""
        self._session = self._runner.run(self._door.open_session(SessionHello(name="late", root="/tmp")))

    def _start(self) -> float:
        self._door = self._runner.run(self._connected())
        self._supervisor = self._runner.run(self._door.status()).pid
        times = psutil.Process(self._supervisor).cpu_times()
        return times.user + times.system

    def _restart(self) -> float:
        self._stop()
        return self._start()

    async def _connected(self) -> SupervisorClient:
        """Taking up so many open calls may take longer on a busy machine than a client waits."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return await SupervisorClient.connect(self._home)
            except Unavailable:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(1)

    def _journal(self) -> None:
        state = Path(self._home.state)
        state.mkdir(mode=0o700, parents=True)
        journal, batch = Journal(state / "journal.sqlite"), list[Event]()
        for event in events(self.waiting):
            batch.append(event)
            if len(batch) == BATCH:
                journal.append(batch)
                batch.clear()
        journal.append(batch)
        journal.close()

    def measure(self) -> tuple[Found, float, float, float]:
        """What each thing takes; the seconds until all calls are listed; and the peaks of both processes."""
        argv = [sys.executable, "-m", "whisper_tui", "--home", str(self.place)]
        opened = [self._opened_ms(argv) for _ in range(OPENS)]
        terminal = Terminal(argv, b"Call 1")
        try:
            found: Found = {"from nothing to the first call on the screen": [*opened, terminal.opened_s * 1000]}
            begin = time.perf_counter()
            terminal.wait_for(f"{self.waiting:,} waiting".encode(), PATIENCE_S)
            listed_s = terminal.opened_s + time.perf_counter() - begin
            found |= self._keys(terminal)
            found |= self._news(terminal)
            return found, listed_s, terminal.peak_mb(), self.peak_mb()
        finally:
            terminal.close()

    @staticmethod
    def _opened_ms(argv: list[str]) -> float:
        terminal = Terminal(argv, b"Call 1")
        terminal.close()
        return terminal.opened_s * 1000

    def _keys(self, terminal: Terminal) -> Found:
        found: Found = {"one call down, one up": [], "another grouping": [], "a letter into the filter, and out": []}
        terminal.drain(1)
        terminal.key(DOWN, b"Call 2")
        for _ in range(ROUNDS):
            found["one call down, one up"].append(terminal.key(DOWN, b"Call 3"))
            found["one call down, one up"].append(terminal.key(UP, b"Call 2"))
        terminal.key(UP, b"Call 1")
        for _ in range(ROUNDS // 2):
            found["another grouping"] += [terminal.key(GROUP, effect) for effect in GROUPED]
        terminal.key(b"/", b"/")
        for _ in range(ROUNDS):
            found["a letter into the filter, and out"].append(terminal.key(b"9", b" of "))
            found["a letter into the filter, and out"].append(terminal.key(ERASE, b"part10"))
        terminal.key(b"\x1b", b"for you")
        return found

    def _news(self, terminal: Terminal) -> Found:
        found: Found = {"an agent asks: its call is counted": [], "somebody denies a call: it is gone": []}
        for number in range(ROUNDS):
            terminal.drain()
            begin = time.perf_counter()
            call_id = self.ask(number)
            terminal.wait_for(f"{self.waiting + 1:,} waiting".encode())
            found["an agent asks: its call is counted"].append((time.perf_counter() - begin) * 1000)
            terminal.drain()
            seen = self._runner.run(self._door.record(call_id)).seen_digest()
            begin = time.perf_counter()
            self._runner.run(self._door.decide(call_id, Deny(), Decider(surface="library", who="bench"), seen))
            terminal.wait_for(f"{self.waiting:,} waiting".encode())
            found["somebody denies a call: it is gone"].append((time.perf_counter() - begin) * 1000)
        return found

    def listing(self) -> tuple[float, float]:
        """Milliseconds from the start of `list` to its first call, and calls a second from then on."""
        argv = [sys.executable, "-m", "whisper_tui", "list", "--home", str(self.place)]
        begin = time.perf_counter()
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as listing:
            assert listing.stdout is not None
            for _ in range(2):  # the headings and the first call
                listing.stdout.readline()
            first = time.perf_counter()
            count = sum(1 for _ in listing.stdout)
        return (first - begin) * 1000, count / (time.perf_counter() - first)

    def ask(self, number: int) -> str:
        """Have an agent ask for a command, and return the id of the call."""
        request = CallRequest(session_id=self._session.id, tool="run", arguments={}, spec=command(number))
        return self._runner.run(self._door.submit(request))

    def peak_mb(self) -> float:
        """The most memory that the supervisor has had resident."""
        return peak_mb(self._supervisor)

    def close(self) -> None:
        """Stop the supervisor."""
        self._stop()
        self._runner.close()

    def _stop(self) -> None:
        self._runner.run(self._door.close())
        os.kill(self._supervisor, signal.SIGTERM)
        with suppress(ProcessLookupError):
            while True:
                os.kill(self._supervisor, 0)
                time.sleep(0.05)
