"""The configuration of an instance: its directories, its configuration file, and its rule files.

The directories are found even by a program with almost no environment (decision 4).
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whisper_tui.model.errors import BadConfiguration
from whisper_tui.system.state_directory import POINTER, Directories, read_pointer

if TYPE_CHECKING:
    from whisper_tui.config.configuration import Configuration

__all__ = ["find_directories", "load", "write_pointer"]

NAME = "whisper_tui"
_MOVERS = ("XDG_CONFIG_HOME", "XDG_STATE_HOME")


def load(home: Directories) -> "Configuration":
    """Read the configuration file; defaults where there is none. Raises `BadConfiguration`.

    Rules that cannot be read are no error: they are reported in `rules.broken`, and everything is asked.
    """
    # Light commands import this package for the directories alone, and must not load pydantic and the policy.
    from whisper_tui.config.configuration import read

    return read(home)


def find_directories(explicit: str | None, environ: Mapping[str, str]) -> Directories:
    """Find the directories: those of `--home`, of WHISPER_TUI_HOME, or the system's default ones.

    Follow the supervisor's pointer file if the variables that move the default ones did not reach this program.
    Raises `BadConfiguration`.
    """
    chosen = explicit if explicit is not None else environ.get("WHISPER_TUI_HOME") or None
    if chosen is not None:
        return _below(chosen)
    if not _moved(environ) and (pointed := read_pointer(str(_pointer(environ)))) is not None:
        return Directories(**{name: Path(path) for name, path in pointed.items()})
    return _usual(environ)


def write_pointer(home: Directories, environ: Mapping[str, str]) -> None:
    """Write a pointer file, so that programs without our environment find directories that it has moved.

    Nothing is written for directories that were chosen by `--home`. Raises `OSError`.
    """
    # Agents start hooks and MCP servers with almost no environment.
    if not _moved(environ) or home != _usual(environ):
        return
    pointer = _pointer(environ)
    # A pointer of an earlier start would lead to other directories.
    if home == _usual(_unmoved(environ)):
        pointer.unlink(missing_ok=True)
        return
    pointer.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = pointer.with_name(f"{POINTER}.{os.getpid()}")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({name: str(path) for name, path in home._asdict().items()}, file)
    unfinished.replace(pointer)


def _below(chosen: str) -> Directories:
    if not chosen:
        raise BadConfiguration("--home was given no directory", hint="Name one, or leave the option out")
    root = Path(os.path.abspath(chosen))  # noqa: PTH100  resolving links would change a name that the user chose
    return Directories(config=root / "config", state=root / "state", runtime=root / "run")


def _usual(environ: Mapping[str, str]) -> Directories:
    if sys.platform == "darwin":
        import platformdirs

        config = platformdirs.user_config_path(NAME)
        state = platformdirs.user_state_path(NAME)
    else:
        config = _xdg(environ, "XDG_CONFIG_HOME", ".config") / NAME
        state = _xdg(environ, "XDG_STATE_HOME", ".local/state") / NAME
    return Directories(config=config, state=state, runtime=state / "run")


def _xdg(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """Return a base directory of the XDG specification."""
    # As platformdirs finds it, but from the given environment, and without its import.
    value = environ.get(variable, "")
    return Path(value) if value.startswith("/") else _user_directory(environ) / default


def _user_directory(environ: Mapping[str, str]) -> Path:
    named = environ.get("HOME")
    if named:
        return Path(named)
    import pwd

    return Path(pwd.getpwuid(os.getuid()).pw_dir)


def _moved(environ: Mapping[str, str]) -> bool:
    return any(environ.get(variable, "").startswith("/") for variable in _MOVERS)


def _unmoved(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in _MOVERS}


def _pointer(environ: Mapping[str, str]) -> Path:
    return Path(_usual(_unmoved(environ)).state) / POINTER
