"""Agents at a place: the host process reports who connects, and relays the connections to the near end, which judges.

`main` is the program that the agents there start: the relay of MCP, as on the supervisor's own machine.
"""

import argparse
import json
import os
import selectors
import shlex
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from itertools import count
from typing import Any

from whisper_tui.supervisor.places.far_runs import Failed, FarLoop
from whisper_tui.system import run_files
from whisper_tui.system.ancestry import ancestry, has_ended, read_process
from whisper_tui.system.processes import LINUX, command_of, kernel_file, mark_in_limits, peer_process

AGENTS = "agents.sock"
PROGRAM = "whisper-tui-relay"
"""Beside the archive: the program that agents start."""
MOST_AGENTS = 64
"""Connections of agents at one place, whatever its host process says."""
PIECE = 1 << 16
AHEAD = 1 << 18
"""Bytes of one agent that the near end may not have taken before no more are read."""
REACH_S = 10.0
"""Seconds for which a relay looks for the near end at a time. It gives up after the fifth one within a minute."""
RELAY, ERRORS = "whisper_tui.transports.mcp.relay", "whisper_tui.model.errors"
"""Loaded by name: only agents need them, and the host process is kept as small as a keeper."""
LONGEST_PROGRAM = 200
_RUN = "import sys;sys.path.insert(0,sys.argv[1]);from {} import main;main(*sys.argv[2:])"


class _AgentSocket:
    """The connection of one agent."""

    def __init__(self, agents: "FarAgents", number: int, connection: socket.socket) -> None:
        self._agents, self._number, self._socket = agents, number, connection
        self._out: deque[tuple[memoryview, Callable[..., None]]] = deque()
        """Pieces for the agent, and what is called once each is written: the near end then sends the next one."""
        self._not_taken = 0
        self._said_all = self._told_all = False
        """True once the agent, or the near end, has nothing more to say."""
        self._closed = False
        connection.setblocking(False)
        self._watch()

    def take(self, header: dict[str, Any], data: bytes, reply: Callable[..., None]) -> None:
        """Take what the near end sends: bytes for the agent, or that it has taken some, or its end."""
        self._not_taken -= int(header.get("taken", 0))
        self._told_all = self._told_all or header.get("end") is True
        if data:
            self._out.append((memoryview(data), reply))
        else:
            reply({})
        self._go_on()

    def close(self) -> None:
        """Close it. What was not written is void."""
        if self._closed:
            return
        self._closed = True
        self._agents.loop.watch(self._socket.fileno(), 0, self._go_on)
        self._socket.close()
        self._agents.forget(self._number)
        for _, reply in self._out:
            reply(Failed("unavailable", "the agent is gone").answer)

    def _go_on(self) -> None:
        try:
            self._write()
            self._read()
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        if not self._closed and self._told_all and not self._out:
            self.close()
        if not self._closed:
            self._watch()

    def _watch(self) -> None:
        reads = not self._said_all and self._not_taken < AHEAD
        events = (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self._out else 0)
        self._agents.loop.watch(self._socket.fileno(), events, self._go_on)

    def _write(self) -> None:
        while self._out:
            data, reply = self._out[0]
            written = self._socket.send(data)
            self._out[0] = data[written:], reply
            if written == len(data):
                self._out.popleft()
                reply({})

    def _read(self) -> None:
        if self._said_all or self._not_taken >= AHEAD:
            return
        data = self._socket.recv(PIECE)
        self._not_taken += len(data)
        self._said_all = not data
        self._agents.send({"agent": self._number, "end": not data}, data)


class FarAgents:
    """Listens for agents while the near end wants them, and relays what they say."""

    def __init__(self, loop: FarLoop, package: str, send: Callable[[dict[str, Any], bytes], None]) -> None:
        """`package`: the archive that this runs from. `send`: sends news to the near end."""
        self.loop, self.send = loop, send
        self._package = package
        self._listener: socket.socket | None = None
        self._channels: dict[int, _AgentSocket] = {}
        self._numbers = count(1)

    def open(self) -> str:
        """Listen, and return the path of the program that agents start."""
        if self._listener is None:
            self._listener = listening(AGENTS)
            self.loop.watch(self._listener.fileno(), selectors.EVENT_READ, self._accept)
        return _written_program(self._package)

    def close(self) -> None:
        """Listen no more, and close the connections: their relays look for the near end again."""
        if self._listener is None:
            return
        self.loop.watch(self._listener.fileno(), 0, self._accept)
        self._listener.close()
        self._listener = None
        run_files.remove(AGENTS)
        for channel in tuple(self._channels.values()):
            channel.close()

    def take(self, name: str, header: dict[str, Any], data: bytes, reply: Callable[..., None]) -> None:
        """Pass on what the near end sends to an agent; without a name, listen. Raises `Failed` if the agent is gone."""
        if not name:
            reply({"program": self.open()})
            return
        channel = self._channels.get(int(name))
        if channel is None:
            raise Failed("unavailable", "the agent is gone")
        channel.take(header, data, reply)

    def forget(self, number: int) -> None:
        """Tell the near end that a connection is closed."""
        del self._channels[number]
        self.send({"agent": number, "gone": True}, b"")

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        pid, uid = peer_of(connection)
        if uid != os.geteuid() or len(self._channels) >= MOST_AGENTS:
            connection.close()
            return
        number = next(self._numbers)
        self.send({"agent": number, "new": True}, json.dumps(facts_of(connection, pid)).encode())
        self._channels[number] = _AgentSocket(self, number, connection)


def facts_of(connection: socket.socket, pid: int) -> dict[str, Any]:
    """Return who has connected, with the ancestors. `line` None: they cannot be known."""
    line = ancestry(pid, read_process)
    # A pid can be another process's by now: what was read is about the peer only while that is alive.
    if has_ended(connection):
        line = None
    facts = ("pid", "parent", "start", "marked", "keeper", "descends_from", "foreign")
    told = None if line is None else [{fact: getattr(seen, fact) for fact in facts} for seen in line]
    return {"pid": pid, "program": command_of(pid)[:LONGEST_PROGRAM], "line": told}


def peer_of(connection: socket.socket) -> tuple[int, int]:
    """Return the pid and the user of the process at the other end. The pid is 0 where nothing can be known about it."""
    return peer_process(connection) if LINUX else (0, os.geteuid())  # the directory is private


def is_ours(connection: socket.socket) -> bool:
    """True if the process at the other end is this user's, and no supervised command."""
    pid, uid = peer_of(connection)
    return uid == os.geteuid() and (not LINUX or mark_in_limits(kernel_file(f"/proc/{pid}/limits")) is None)


def listening(name: str) -> socket.socket:
    """Return a socket of this user alone, in the current directory: a whole path may be too long for a socket."""
    run_files.remove(name)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(name)
    finally:
        os.umask(before)
    listener.listen(16)
    listener.setblocking(False)
    return listener


def _written_program(package: str) -> str:
    """Write the program of the agents beside the archive, which nobody else can write to. Return its path."""
    path = os.path.join(os.path.dirname(package), PROGRAM)
    words = (sys.executable, "-I", "-S", "-c", _RUN.format(__name__), package, os.path.dirname(os.getcwd()))
    run_files.write_whole(path, f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'.encode())
    os.chmod(path, 0o700)
    return path


class NearEnds:
    """The supervisors that serve the agents at this place: one, or none at the moment."""

    def __init__(self, places: str) -> None:
        """`places`: the directory with one directory for each near end."""
        self._places = places

    def look(self) -> socket.socket | None:
        """Connect to the one that is there. None: there is none. Raises `InvalidRequest` if there are several."""
        names: list[str] = []
        with suppress(OSError):
            names = sorted(os.listdir(self._places))
        found = [each for each in (_connected(os.path.join(self._places, name)) for name in names) if each is not None]
        if len(found) > 1:
            for connection in found:
                connection.close()
            message = f"{len(found)} supervisors serve the agents here"
            raise import_module(ERRORS).InvalidRequest(message, hint="Say agents = true in one of them only")
        return found[0] if found else None

    def reach(self) -> socket.socket:
        """Connect, and wait for a moment until one is there. Raises `Unavailable`."""
        deadline = time.monotonic() + REACH_S
        while (connection := self.look()) is None:
            if time.monotonic() > deadline:
                raise import_module(ERRORS).Unavailable(
                    "the supervisor to which this place belongs is not connected",
                    hint="Its machine has to reach this place, and to say agents = true in the table of the place",
                )
            time.sleep(0.1)
        return connection


def main(places: str, *words: str) -> None:
    """Be the relay of an agent. `places`: the directory of all near ends."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Lets an agent here ask whisper_tui, on another machine")
    mcp = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "mcp", help="serve MCP over standard input and output"
    )
    mcp.add_argument("--root", metavar="DIR", help="the agent's workspace (default: where it was started)")
    mcp.add_argument("--session", metavar="NAME", help="the agent's name in the queue")
    mcp.add_argument("--wait", type=float, metavar="SECONDS", help="answer every call within SECONDS")
    options = parser.parse_args(words)
    near_ends, relay, errors = NearEnds(places), import_module(RELAY), import_module(ERRORS)
    root = relay.workspace(options.root, os.environ)
    try:
        code = relay.run_relay(
            lambda _starting: near_ends.reach(),  # nothing can be started from here
            near_ends.look,
            root=root,
            name=options.session,
            wait_s=options.wait,
            # The variables here are none of the near end's: commands have those of a login here.
            environment={},
        )
    except errors.WhisperError as error:
        sys.exit(f"{PROGRAM}: {error.sentence()}")
    sys.exit(code)


def _connected(directory: str) -> socket.socket | None:
    """Connect to a host process that listens for agents. None: none does, or it is no host process."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # A deep directory is too long for the address of a socket, and through /proc it is short.
            short = f"/proc/self/fd/{fd}" if LINUX else directory
            connection.connect(f"{short}/{AGENTS}")
        finally:
            os.close(fd)
        if is_ours(connection):
            return connection
    except OSError:
        pass
    connection.close()
    return None
