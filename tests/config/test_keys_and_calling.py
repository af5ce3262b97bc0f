"""Keys and being called, as the configuration file says them."""

import pytest

from tests.config.test_file import configured, home
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.notify.notify_settings import NotifySettings

__all__ = ["configured", "home"]


def test_keys_and_calling_are_read(configured):
    found = configured(
        """
        [cockpit]
        keymap = "vi"
        [keys]
        approve = "y"
        follow = ["F5", "Ctrl+L"]
        [calling]
        when = "always"
        quiet = "22:00-07:00"
        command = ["call-me", "--now"]
        """
    )
    assert found.cockpit.keymap == "vi"
    assert found.keys == {"approve": "y", "follow": ("F5", "Ctrl+L")}
    assert (found.calling.when, found.calling.quiet) == ("always", "22:00-07:00")
    assert found.calling.command == ("call-me", "--now")


def test_without_a_word_about_it_the_cockpit_calls_by_bell_and_terminal_alone(configured):
    calling = configured("").calling
    assert calling == NotifySettings()
    assert (calling.when, calling.bell, calling.notify, calling.desktop, calling.command) == (
        "away",
        True,
        "osc9",
        False,
        (),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[keys]\napprove = 3", "'approve' in [keys] must be a key or a list of keys"),
        ("[keys]\napprove = []", "'approve' in [keys] must be a key or a list of keys"),
        ("keys = 3", "'keys' must be a table"),
        ("[cockpit]\nkeymap = 'emacs'", "cockpit.keymap: "),
        ("[calling]\nquiet = '22-7'", "calling.quiet: "),
        ("[calling]\nquiet = '24:00-07:00'", "calling.quiet: "),
        ("[calling]\nbell = 'loud'", "calling.bell: "),
        ("[calling]\nnotify = 'osc8'", "calling.notify: "),
        ("[calling]\ncommand = 'call-me'", "calling.command: "),
        ("[calling]\ncommand = ['']", "calling.command: "),
        ("[calling]\ncommand_timeout_s = 0", "calling.command_timeout_s: "),
        ("[calling]\nbel = true", "did you mean 'bell'"),
    ],
)
def test_mistakes_are_named(configured, text, complaint):
    with pytest.raises(BadConfiguration) as error:
        configured(text)
    assert complaint in error.value.message


def test_an_unknown_command_is_not_an_error_of_the_file(configured):
    assert configured("[keys]\naprove = 'y'").keys == {"aprove": "y"}
