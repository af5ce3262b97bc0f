"""Every signal can be chosen, with words that fit."""

import signal

from whisper_tui.tui.dialogs.run_dialogs import EXPLAINED, signal_choices

ROOM = 55
"""Columns that the words have in a terminal of 80."""


def test_every_signal_of_this_system_is_offered_once_with_words() -> None:
    choices = signal_choices()
    assert sorted(choice.number for choice in choices) == sorted(int(member) for member in signal.Signals)
    assert {member.name for member in signal.Signals} <= set(EXPLAINED)


def test_the_usual_signals_come_first() -> None:
    assert [choice.name for choice in signal_choices()][:3] == ["SIGINT", "SIGTERM", "SIGKILL"]


def test_words_fit_in_one_line() -> None:
    assert [words for words in EXPLAINED.values() if len(words) > ROOM] == []
