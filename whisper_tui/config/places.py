"""Where the directories of an instance are, found even by a program that was given almost no environment."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from whisper_tui.model.errors import BadConfiguration
from whisper_tui.model.home import Home

NAME = "whisper_tui"
POINTER = "elsewhere"
"""A file in the default state directory that names the directories really used."""

_MOVERS = ("XDG_CONFIG_HOME", "XDG_STATE_HOME")


def find_home(explicit: str | None, environ: Mapping[str, str]) -> Home:
    """The directories: those of `--home`, of WHISPER_TUI_HOME, or the system's usual ones.

    Where the variables that moved the usual ones did not reach this program, the pointer file that the
    supervisor left is followed. Raises `BadConfiguration`.
    """
    chosen = explicit if explicit is not None else environ.get("WHISPER_TUI_HOME") or None
    if chosen is not None:
        return _below(chosen)
    if not _moved(environ) and (pointed := _read_pointer(_pointer(environ))) is not None:
        return pointed
    return _usual(environ)


def leave_pointer(home: Home, environ: Mapping[str, str]) -> None:
    """Let programs without our environment find these directories, where the environment moved them.

    Nothing is written for directories that were chosen by `--home`. Raises `OSError`.
    """
    if not _moved(environ) or home != _usual(environ):
        return
    pointer = _pointer(environ)
    if home == _usual(_unmoved(environ)):
        pointer.unlink(missing_ok=True)
        return
    pointer.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = pointer.with_name(f"{POINTER}.{os.getpid()}")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({name: str(path) for name, path in home._asdict().items()}, file)
    unfinished.replace(pointer)


def _below(chosen: str) -> Home:
    if not chosen:
        raise BadConfiguration("--home was given no directory", hint="Name one, or leave the option out")
    root = Path(os.path.abspath(chosen))  # noqa: PTH100  resolving links would change a name that the user chose
    return Home(config=root / "config", state=root / "state", runtime=root / "run")


def _usual(environ: Mapping[str, str]) -> Home:
    if sys.platform == "darwin":
        import platformdirs

        config = platformdirs.user_config_path(NAME)
        state = platformdirs.user_state_path(NAME)
    else:
        config = _xdg(environ, "XDG_CONFIG_HOME", ".config") / NAME
        state = _xdg(environ, "XDG_STATE_HOME", ".local/state") / NAME
    return Home(config=config, state=state, runtime=state / "run")


def _xdg(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """One base directory, as platformdirs finds it, but from the given environment and without its import."""
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


def _read_pointer(pointer: Path) -> Home | None:
    """What a pointer file says. None: there is none, it is another user's, or it says nothing usable."""
    try:
        with pointer.open(encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            named = json.load(file)
        home = Home(**{name: Path(path) for name, path in named.items()})
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return home if all(path.is_absolute() for path in home) else None
