"""A run with a terminal: real, controlling, of a size, and open to typing."""

import signal
import sys
from pathlib import Path

from tests.supervisor.engine.conftest import Engine, until
from whisper_tui.model.call import Argv
from whisper_tui.model.ending import Exited, Signalled
from whisper_tui.model.run import TerminalSize
from whisper_tui.supervisor.keeper.capture import MOST_ROWS, TerminalSizes
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.supervisor.runs.output_files import OutputFiles


async def test_all_three_streams_are_one_terminal_that_controls_the_command(engine: Engine):
    code = (
        "import os; print(all(os.isatty(fd) for fd in (0, 1, 2)), os.ttyname(0) == os.ttyname(2), "
        "os.tcgetpgrp(0) == os.getpid(), os.close(os.open('/dev/tty', os.O_RDWR)))"
    )
    key = await engine.run(Argv(program=sys.executable, args=("-I", "-c", code)), tty=True)
    assert await engine.ended(key) == Exited(code=0)
    assert engine.out(key) == b"True True True None\r\n"
    assert engine.err(key) == b""


async def test_a_terminal_has_a_size_that_can_change(engine: Engine):
    key = await engine.start("trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.05; done", tty=True)
    await until(lambda: engine.out(key) == b"24 80\r\n")
    await engine.executor.resize(key, 50, 132)
    await engine.settled(key)
    assert engine.out(key) == b"24 80\r\n50 132\r\n"
    first, second = engine.executor.terminal_sizes(key)
    assert first == TerminalSize()
    assert (second.start, second.rows, second.columns) == (7, 50, 132)
    (span, *_) = engine.executor.read_timeline(key, 0, 1)
    assert span.at <= second.at


async def test_too_many_sizes_keep_the_first_and_the_newest(tmp_path: Path):
    attempt = tmp_path / "1.1"
    attempt.mkdir()
    sizes = TerminalSizes(str(attempt / "size"), (24, 80))
    for columns in range(1, MOST_ROWS + 100):
        sizes.note(24, columns, 7)
    sizes.close()
    kept = OutputFiles(tmp_path).terminal_sizes(RunKey("1", 1))
    assert [size.columns for size in kept[:3]] == [80, 1, 2]
    assert (len(kept), kept[-1].columns) == (MOST_ROWS + 1, MOST_ROWS + 99)


async def test_sizes_that_a_full_disk_has_not_taken_are_written_later(tmp_path: Path):
    attempt = tmp_path / "1.1"
    sizes = TerminalSizes(str(attempt / "size"), (24, 80))
    sizes.note(30, 100, 3)
    attempt.mkdir()
    sizes.flush()
    sizes.close()
    assert [size.rows for size in OutputFiles(tmp_path).terminal_sizes(RunKey("1", 1))] == [24, 30]


async def test_typed_text_reaches_the_command(engine: Engine):
    key = await engine.start("read -p 'name? ' name; echo hello $name", tty=True)
    await until(lambda: engine.out(key) == b"name? ")
    await engine.executor.write_stdin(key, b"you\r")
    await engine.settled(key)
    assert engine.out(key) == b"name? you\r\nhello you\r\n"


async def test_control_c_interrupts(engine: Engine):
    key = await engine.start("echo ready; exec sleep 600", tty=True)
    await until(lambda: engine.out(key) == b"ready\r\n")
    await engine.executor.write_stdin(key, b"\x03")
    assert await engine.ended(key) == Signalled(number=signal.SIGINT, by_us=False)


async def test_the_end_of_input_is_what_the_terminal_says_it_is(engine: Engine):
    key = await engine.start("stty -echo; echo ready; wc -l", tty=True)
    await until(lambda: engine.out(key) == b"ready\r\n")
    await engine.executor.write_stdin(key, b"one\ntwo\n", eof=True)
    await engine.settled(key)
    assert engine.out(key).split() == [b"ready", b"2"]


async def test_much_output_at_the_very_end_is_kept(engine: Engine):
    key = await engine.run("stty -onlcr; head -c 300000 /dev/zero | tr '\\0' x; printf END", tty=True)
    assert len(engine.out(key)) == 300_003
    assert engine.out(key).endswith(b"xEND")


async def test_a_command_that_lets_go_of_its_terminal_can_come_back_to_it(engine: Engine):
    command = "exec 3<&- <&- >&- 2>&-; while ! test -e go; do sleep 0.02; done; echo back > /dev/tty"
    key = await engine.start(command, tty=True)
    await engine.spawned(key)
    (engine.workspace / "go").touch()
    await engine.settled(key)
    assert engine.out(key) == b"back\r\n"


async def test_a_background_child_on_the_terminal_does_not_hold_the_answer_back(engine: Engine):
    key = await engine.start("trap '' HUP; sleep 600 & echo hi", tty=True)
    assert await engine.ended(key) == Exited(code=0)
    assert engine.out(key) == b"hi\r\n"
    await engine.executor.end(key, 0.2)
    await engine.settled(key)
