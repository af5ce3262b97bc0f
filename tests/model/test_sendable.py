"""Which text can be sent and stored."""

from whisper_tui.model.text import is_sendable, sendable


def test_text_of_any_language_is_sendable_and_half_a_character_is_not() -> None:
    assert is_sendable("") and is_sendable("naïve 日本語 👍🏽 \0")
    assert not is_sendable("bytes of no character: \udcff")
    assert not is_sendable("\ud800")


def test_a_variable_that_is_not_text_is_omitted() -> None:
    assert sendable({"PATH": "/bin", "NAME": "\udc80", "\udc81": "value"}) == {"PATH": "/bin"}
