"""Whoever is called away from the cockpit is called in plain words, whatever the agent is called."""

import json
import re
from itertools import product

from tests.hostile.adversarial import Adversary
from tests.hostile.texts import HUGE, TEXTS, each_of
from whisper_tui.model.text import is_hidden
from whisper_tui.notify.delivery import LONGEST, desktop_program, notification, terminal_title
from whisper_tui.notify.notification_text import TITLE, notification_json, waiting_text, waiting_title

ALL = {**TEXTS, **HUGE}
each_text = each_of(ALL)
NOTICE = re.compile(r"\x1b\](?:9;|777;notify;[^;]*;|2;)([^;]*)\x07")
THROUGH_TMUX = re.compile(r"\x1bPtmux;\x1b(\x1b\][^\x1b]*\x07)\x1b\\")


def words_about(text: str) -> str:
    adversary = Adversary(text)
    record = adversary.scenario.supervisor.board.calls[adversary.ask()]
    return waiting_text([record], adversary.scenario.supervisor.board)


@each_text
def test_a_notification_of_the_terminal_is_one_sequence_with_plain_words(text: str) -> None:
    words = words_about(text)
    assert len(words) < 2000
    for kind in ("osc9", "osc777"):
        found = NOTICE.fullmatch(notification(kind, TITLE, words))
        assert found is not None
        assert not any(map(is_hidden, found[1]))
        assert len(found[1]) <= len(TITLE) + 2 + LONGEST
        through = THROUGH_TMUX.fullmatch(notification(kind, TITLE, words, tmux=True))
        assert through is not None
        assert NOTICE.fullmatch(through[1]) is not None


@each_text
def test_the_desktops_program_gets_plain_words_that_are_no_options(text: str) -> None:
    for program, words in product(("notify-send", "osascript"), (words_about(text), text[:1000])):
        argv = desktop_program(TITLE, words, lambda name, program=program: f"/bin/{name}" if name == program else None)
        assert argv is not None
        *_, dashes, title, body = argv
        assert (dashes, title) == ("--", TITLE)
        assert not any(map(is_hidden, body))
        assert len(body) < 10_000
        assert program != "notify-send" or not re.search(r"<|&(?!lt;|gt;|amp;)", body)


@each_of(TEXTS)
def test_a_program_of_ones_own_gets_one_line_of_json(text: str, adversary: Adversary) -> None:
    record = adversary.scenario.supervisor.board.calls[adversary.ask()]
    line = notification_json([record], adversary.scenario.supervisor.board)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert not any(is_hidden(character) for character in line.decode().rstrip("\n"))
    assert json.loads(line)["calls"][0]["session"] == f"name {text}"


def test_the_title_of_the_terminal_is_a_number() -> None:
    assert NOTICE.fullmatch(terminal_title(waiting_title(3)))[1] == "(3) whisper_tui"
    assert NOTICE.fullmatch(terminal_title(" ".join(TEXTS.values())))
