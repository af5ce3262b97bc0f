"""The user's side of an instance: where its directories are, and what its configuration file says."""

from typing import TYPE_CHECKING

from whisper_tui.config.places import find_home, leave_pointer

if TYPE_CHECKING:
    from whisper_tui.config.file import Configuration
    from whisper_tui.model.home import Home

__all__ = ["find_home", "leave_pointer", "load"]


def load(home: "Home") -> "Configuration":
    """What the configuration file says; defaults where there is none. Raises `BadConfiguration`.

    Rules that cannot be read are no error: they are reported in `rules.broken`, and everything is asked.
    """
    from whisper_tui.config.file import read

    return read(home)
