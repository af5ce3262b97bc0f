"""Looking on while a command prints 100 MB a second: how soon a key shows, and how much the look slows the command."""

import asyncio
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import median, quantile
from benchmarks.peers import flood
from benchmarks.peers.field import Field, directory
from benchmarks.peers.ours import SCRIPT, home_in, request
from benchmarks.peers.processes import end_all, until
from benchmarks.peers.report import Column, Row, section, table
from benchmarks.peers.way import Argv, Failed, environment
from benchmarks.terminal import Terminal
from whisper_tui.model.call import SessionHello
from whisper_tui.wire.client import SupervisorClient

RATE = 100_000_000
_START_S = 30.0
_FIRST_CHARACTER = 0x4E00
"""Each key is another character that nothing else draws, so that its echo cannot be mistaken."""

Press = Callable[[int], float]
"""Presses the key with this number, and tells after how many milliseconds it showed."""


async def viewer(field: Field) -> str:
    """Everyone alone: a terminal that only takes, tmux, and our cockpit."""
    rows = []
    for name, look in (("none, output to a file", _unseen), ("tmux", _in_tmux), ("whisper-tui", _in_cockpit)):
        with directory() as place:
            try:
                rows.append(Row(name, await look(Path(place), field.sizes.keys)))
            except Failed as error:
                rows.append(Row(name, (), str(error)))
            finally:
                await asyncio.to_thread(end_all)
    told = (
        f"A command that would print {RATE / 1e6:.0f} MB a second is shown on a terminal of 120 by 40. Meanwhile "
        f"{field.sizes.keys} keys are pressed, and the time until their effect is drawn is measured."
    )
    columns = (Column("command prints MB/s", 1, ratio=True), Column("key median ms", 1), Column("key p95 ms", 1))
    return section("Watching the output", told, table(columns, rows, first="viewer"))


def command(place: Path) -> Argv:
    """The command that prints, with its counter in this directory."""
    return (sys.executable, flood.__file__, str(place / "counter"), str(RATE))


async def _unseen(place: Path, keys: int) -> tuple[float]:
    with (place / "out").open("wb") as out:
        process = subprocess.Popen(command(place), stdout=out)
    try:
        await _begun(place)
        begin, before = time.monotonic(), _printed(place)
        await asyncio.sleep(keys / 10)
        return ((_printed(place) - before) / 1e6 / (time.monotonic() - begin),)
    finally:
        process.kill()
        process.wait()


async def _in_tmux(place: Path, keys: int) -> tuple[float, float, float]:
    """The command in the upper half, and a `cat` that echoes the keys in the lower one."""
    tmux = shutil.which("tmux")
    if tmux is None:
        raise Failed("not measured: there is no tmux here")
    environ = environment(place, TMUX_TMPDIR=str(place), LANG="C.UTF-8")
    server = (tmux, "-u", "-f", "/dev/null")
    terminal = Terminal([*server, "new-session", "cat", ";", "set", "status", "off"], b"\x1b", environ)
    try:
        split = [*server, "split-window", "-b", "-d", *command(place)]
        subprocess.run(split, env=environ, check=True, timeout=_START_S)

        def press(number: int) -> float:
            character = chr(_FIRST_CHARACTER + number).encode()
            return terminal.key(character, character)

        return await _pressed(place, keys, press)
    finally:
        terminal.close()


async def _in_cockpit(place: Path, keys: int) -> tuple[float, float, float]:
    """The command under supervision and its output in the cockpit; a key stops following it, the next one goes on."""
    home = home_in(place, commands=[command(place)])
    door = await SupervisorClient.connect(home)
    session = await door.open_session(SessionHello(name="flood", root=str(place)))
    await door.started(await door.submit(request(session.id, place, command(place))))
    terminal = Terminal([SCRIPT, "--home", str(place)], b"following", environment(place, LANG="C.UTF-8"))
    try:

        def press(number: int) -> float:
            return terminal.key(b"f", b"following" if number % 2 else b"f to follow")

        return await _pressed(place, keys, press)
    finally:
        terminal.close()
        await door.shutdown(end_runs=True)
        await door.close()


async def _pressed(place: Path, keys: int, press: Press) -> tuple[float, float, float]:
    """How much was printed meanwhile, and how soon the keys showed."""
    await _begun(place)
    begin, before = time.monotonic(), _printed(place)
    try:
        found = await asyncio.to_thread(lambda: [press(number) for number in range(keys)])
    except TimeoutError as error:
        raise Failed(str(error)) from None
    rate = (_printed(place) - before) / 1e6 / (time.monotonic() - begin)
    return rate, median(found), quantile(found, 0.95)


async def _begun(place: Path) -> None:
    if not await until(lambda: _printed(place) > 0, _START_S):
        raise Failed("the command does not begin")


def _printed(place: Path) -> int:
    try:
        (count,) = struct.unpack("q", (place / "counter").read_bytes())
    except (FileNotFoundError, struct.error):
        return 0
    return int(count)
