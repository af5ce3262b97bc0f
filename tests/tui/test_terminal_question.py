"""The question for the terminal's background: its answers choose a theme in time, and are never keys."""

import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rows import each_row
from whisper_tui.tui.terminal_driver import (
    DEFAULT_THEME,
    LIGHT_THEME,
    QUESTION,
    SPLIT_S,
    AnswerFilter,
    TerminalQuestion,
    asks_for_theme,
    is_dark,
    theme_of,
)

DARK, LIGHT = b"\x1b]11;rgb:1212/1616/1c1c\x1b\\", b"\x1b]11;rgb:fbfb/fbfb/aaaa\x07"
FENCE = b"\x1b[?62;1;4c"
KEYS = (
    b"\x1b", b"\x1b[A", b"\x1bOP", b"\x1b]", b"\x1b[?2026;2$y", b"\x1b[?1u", b"\x1b[<0;10;5M", b"a",
    b"\x1b[200~a\x1b[201~", "ü".encode(), b"\x1b\x1b[B", b"\x1b[", b"]11;rgb", b"\x1b]1",
)  # fmt: skip
HARMLESS = set(b"\x1b]1[")
"""The beginning of an answer may also be a key; nobody has bound these."""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def through(answers: AnswerFilter, *pieces: bytes, waits: bool = False) -> bytes:
    """What is typed according to the filter, with or without a pause after each piece."""
    typed = b""
    for piece in pieces:
        typed += answers.feed(piece)
        if waits:
            typed += answers.flush()
    return typed + answers.flush()


@each_row("waits", [False, True])
@each_row("answer", [DARK, LIGHT, FENCE, DARK + FENCE, b"\x1b]11;a a a\x07"])
def test_an_answer_is_never_a_key_wherever_it_is_cut(answer: bytes, waits: bool) -> None:
    for cut in range(len(answer) + 1):
        typed = through(AnswerFilter(), answer[:cut], answer[cut:], waits=waits)
        assert set(typed) <= HARMLESS, cut
        if not waits:
            assert set(typed) <= {0x1B}, cut
    bytewise = [answer[at : at + 1] for at in range(len(answer))]
    assert set(through(AnswerFilter(), *bytewise, waits=waits)) <= HARMLESS


@each_row("key", KEYS)
def test_every_key_comes_through_wherever_it_is_cut(key: bytes) -> None:
    for waits in (False, True):
        for cut in range(len(key) + 1):
            assert through(AnswerFilter(), key[:cut], key[cut:], b"x", waits=waits) == key + b"x"
    assert through(AnswerFilter(), b"a" + key + DARK + b"b" + FENCE + key) == b"a" + key + b"b" + key


def test_what_was_typed_around_the_answers_stays_and_after_the_fence_nothing_is_taken_out() -> None:
    answers = AnswerFilter()
    assert answers.feed(b"ab" + LIGHT + b"c" + FENCE + DARK + b"d") == b"abc" + DARK + b"d"
    assert answers.done and answers.dark is False
    assert answers.feed(DARK) == DARK


def test_an_answer_without_an_end_does_not_keep_the_keys_for_ever() -> None:
    clock = Clock()
    answers = AnswerFilter(clock)
    assert answers.feed(b"\x1b]11;rgb:12") == b""
    assert answers.feed(b"\x1b[A") == b"\x1b[A"
    assert answers.feed(b"\x1b]11;rgb:12") == b""
    clock.now += SPLIT_S + 1
    assert answers.feed(b"x") == b"x"
    assert answers.feed(b"\x1b]11;" + b"a" * 2000) == b""
    assert answers.feed(b"x") == b"x"


def test_a_lone_escape_is_not_kept_back_and_is_no_part_of_what_is_typed_later() -> None:
    clock = Clock()
    answers = AnswerFilter(clock)
    assert answers.feed(b"\x1b") == b"\x1b"
    clock.now += SPLIT_S + 1
    assert answers.feed(b"]11;a") == b"]11;a"


@each_row(
    ("colour", "dark"),
    [
        (b"rgb:0000/0000/0000", True),
        (b"rgb:ff/ff/ff", False),
        (b"rgba:f/f/f/f", False),
        (b"rgb:0000/2b2b/3636", True),
        (b"rgb:fdfd/f6f6/e3e3", False),
        (b"rgb:zz/00/00", None),
        (b"rgb:00/00", None),
        (b"", None),
        (b"black", None),
    ],
)
def test_a_colour_is_dark_light_or_none(colour: bytes, dark: bool | None) -> None:
    assert is_dark(colour) is dark


def test_a_configured_theme_is_taken_and_nothing_asked() -> None:
    question = TerminalQuestion(asks=False)
    assert [asks_for_theme(name) for name in (None, "auto", "moss-dark")] == [True, True, False]
    for dark, automatic in ((None, DEFAULT_THEME), (True, DEFAULT_THEME), (False, LIGHT_THEME)):
        question.dark = dark
        assert (theme_of("moss-dark", question), theme_of("auto", question)) == ("moss-dark", automatic)


PROGRAM = """
import json, sys
from textual.app import App
from whisper_tui.tui.terminal_driver import TerminalDriver, TerminalQuestion
asked, file = json.loads(sys.argv[1]), sys.argv[2]
keys = []
class Keys(App):
    def get_driver_class(self):
        return TerminalDriver
    def on_key(self, event):
        keys.append(event.key)
        if event.key == "Q":
            self.exit()
with TerminalQuestion(**asked) as question:
    question.wait()
    app = Keys()
    app.question = question
    app.run()
with open(file, "w") as result:
    json.dump({"dark": question.dark, "keys": keys, "done": question.answers.done}, result)
"""
STARTED = b"\x1b[?1049h"
BOUND_S = 60


class AskedTerminal:
    """A program that asks its terminal, which this test plays."""

    def __init__(self, folder: Path, **asked: Any) -> None:
        term = asked.pop("term", "xterm-256color")
        self.master, self.slave = os.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.file, self.written = folder / "result", b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(asked), str(self.file)],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": term},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  no thread of ours holds a lock
        )

    def wait_for(self, words: bytes) -> None:
        until = time.monotonic() + BOUND_S
        while words not in self.written:
            assert time.monotonic() < until, self.written
            self._read(1.0)

    def _read(self, seconds: float) -> None:
        if select.select([self.master], [], [], seconds)[0]:
            self.written += os.read(self.master, 65_536)

    def answer(self, data: bytes) -> None:
        os.write(self.master, data)

    def result(self) -> dict[str, Any]:
        """What came of it, once the program has ended by the key Q."""
        until = time.monotonic() + BOUND_S
        while self.process.poll() is None and time.monotonic() < until:
            self._read(0.05)
        self.process.kill()
        self.process.wait()
        modes = termios.tcgetattr(self.slave)
        os.close(self.master)
        os.close(self.slave)
        assert modes == self.before
        found: dict[str, Any] = json.loads(self.file.read_text())
        return found


@pytest.mark.parametrize(
    ("answer", "dark", "keys"),
    [
        pytest.param(DARK + FENCE, True, [], id="dark"),
        pytest.param(LIGHT + FENCE, False, [], id="light"),
        pytest.param(FENCE, None, [], id="the fence alone"),
        pytest.param(b"\x1b]11;a b a\x07" + FENCE, None, [], id="garbage"),
        pytest.param(b"ab" + LIGHT + b"c" + FENCE + b"\x1b[A", False, ["a", "b", "c", "up"], id="typed ahead"),
    ],
)
@pytest.mark.few(2)
def test_a_terminal_that_answers(tmp_path: Path, answer: bytes, dark: bool | None, keys: list[str]) -> None:
    terminal = AskedTerminal(tmp_path, wait_s=BOUND_S)
    terminal.wait_for(QUESTION)
    terminal.answer(answer)
    terminal.wait_for(STARTED)
    terminal.answer(b"Q")
    assert terminal.result() == {"dark": dark, "keys": [*keys, "Q"], "done": True}


@pytest.mark.parametrize(
    ("late", "done"),
    [
        pytest.param(b"", False, id="silent"),
        pytest.param(LIGHT + FENCE, True, id="late"),
        pytest.param(b"x" + LIGHT, False, id="late, without the fence"),
    ],
)
@pytest.mark.few(1)
def test_a_terminal_that_does_not_answer_in_time_decides_nothing(tmp_path: Path, late: bytes, done: bool) -> None:
    terminal = AskedTerminal(tmp_path, wait_s=0.01)
    terminal.wait_for(STARTED)
    terminal.answer(late + b"Q")
    keys = ["x", "Q"] if late.startswith(b"x") else ["Q"]
    assert terminal.result() == {"dark": None, "keys": keys, "done": done}


@pytest.mark.parametrize("asked", [{"asks": False}, {"term": "dumb"}])
def test_where_it_is_not_wanted_or_not_safe_nothing_is_asked(tmp_path: Path, asked: dict[str, Any]) -> None:
    terminal = AskedTerminal(tmp_path, **asked)
    terminal.wait_for(STARTED)
    terminal.answer(b"Q")
    assert terminal.result() == {"dark": None, "keys": ["Q"], "done": True}
    assert b"\x1b]11" not in terminal.written
