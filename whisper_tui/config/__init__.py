"""The configuration of an instance: its directories, its configuration file, and its rule files."""

from typing import TYPE_CHECKING

from whisper_tui.config.paths import find_directories, write_pointer

if TYPE_CHECKING:
    from whisper_tui.config.configuration import Configuration
    from whisper_tui.system.state_directory import Directories

__all__ = ["find_directories", "load", "write_pointer"]


def load(home: "Directories") -> "Configuration":
    """Read the configuration file; defaults where there is none. Raises `BadConfiguration`.

    Rules that cannot be read are no error: they are reported in `rules.broken`, and everything is asked.
    """
    # Light commands import this package for the directories alone, and must not load pydantic and the policy.
    from whisper_tui.config.configuration import read

    return read(home)
