"""A text counts as certain only where every reading of it says the same."""

import pytest

from whisper_tui.policy import view
from whisper_tui.policy.shell.bash_reader import read_script
from whisper_tui.policy.shell.tree_sitter_reader import is_available
from whisper_tui.policy.view import agreed


def test_text_that_our_two_readings_see_differently_is_not_certain():
    assert agreed("git status", read_script("git status"))[0] is not None
    plain, doubt = agreed("git status", read_script("git push"))
    assert plain is None and "read it in more than one way" in doubt


@pytest.mark.skipif(not is_available(), reason="the independent reader is not installed")
@pytest.mark.parametrize("words", [None, (("git", "push"),), (("git", "status"), ("git", "push")), ()])
def test_text_that_an_independent_reader_sees_differently_is_not_certain(monkeypatch, words):
    monkeypatch.setattr(view, "second_reading", lambda _text: words)
    plain, doubt = agreed("git status", read_script("git status"))
    assert plain is None and "read it in more than one way" in doubt
