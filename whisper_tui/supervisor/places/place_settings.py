"""Settings of the places where commands can run besides this machine, as the configuration names them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from whisper_tui.model.call import PLACE_NAME
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.policy.rules.rules_toml import unknown_key

Engine = Literal["ssh", "docker", "podman", "systemd", "slurm", "kubernetes", "ray"]
"""The program that starts the far host of a place, and connects to it."""

ENGINE_OPTIONS: Mapping[Engine, tuple[str, ...]] = {
    "ssh": ("host",),
    "docker": ("container", "user", "context"),
    "podman": ("container", "user", "connection"),
    "systemd": ("host",),
    "slurm": ("host", "partition", "account", "time", "cpus", "gpus", "memory", "arguments"),
    "kubernetes": ("image", "pod", "namespace", "context"),
    "ray": ("address", "cpus", "gpus", "memory", "resources"),
}
"""The keys that each engine reads, beside those of every place."""

_REQUIRED: Mapping[Engine, str] = {"docker": "container", "podman": "container", "kubernetes": "image"}
_OF_EVERY_PLACE = ("by", "directory", "python", "workspace")


@dataclass(frozen=True)
class PlaceSettings:
    """A table `[places.NAME]`."""

    name: str
    by: Engine
    options: Mapping[str, str] = field(default_factory=dict)
    """Those of `ENGINE_OPTIONS` that the table says."""
    directory: str = ""
    """Absolute directory there for the files of its runs. Empty: the usual one of the user there."""
    python: str = "python3"
    """The interpreter there, 3.11 or newer: a name to look up in PATH, or a path."""
    workspace: str = ""
    """Absolute directory there that stands for the workspace of an agent. Empty: the same path as here."""

    def option(self, name: str) -> str:
        """Return an option of the engine. Empty: the table does not say it."""
        return self.options.get(name, "")


def read_place(name: str, table: object) -> PlaceSettings:
    """Read the settings of one place. Raises `BadConfiguration`, whose message does not name the file."""
    where = f"places.{name}"
    if not re.fullmatch(PLACE_NAME, name):
        raise BadConfiguration(
            f"{where}: a place has a name of letters, digits, dots, dashes and underscores", hint="Give it another name"
        )
    if not isinstance(table, Mapping):
        raise BadConfiguration(f"{where} must be a table", hint=f"Write [{where}] on a line of its own")
    by = _engine(where, table.get("by"))
    known = (*_OF_EVERY_PLACE, *ENGINE_OPTIONS[by])
    said = {key: _text(where, key, value) for key, value in table.items() if key in known}
    if unknown := [key for key in table if key not in known]:
        raise BadConfiguration(unknown_key(where, unknown[0], known), hint="Correct it, then try again")
    required = _REQUIRED.get(by)
    if required is not None and not said.get(required):
        raise BadConfiguration(f"{where} does not say its {required}", hint=f'Add {required} = "…"')
    for key in ("directory", "workspace"):
        if said.get(key) and not said[key].startswith("/"):
            raise BadConfiguration(f"{where}.{key} must be an absolute path there", hint="Write it from / on")
    options = {key: said[key] for key in ENGINE_OPTIONS[by] if said.get(key)}
    general = {key: said[key] for key in ("directory", "python", "workspace") if said.get(key)}
    return PlaceSettings(name, by, options, **general)


def _engine(where: str, by: object) -> Engine:
    for engine in get_args(Engine):
        if by == engine:
            return engine  # type: ignore[no-any-return]
    engines = ", ".join(f'"{engine}"' for engine in get_args(Engine))
    wrong = f"{where} does not say by what it is reached" if by is None else f"{where}.by is {by!r}, which is unknown"
    raise BadConfiguration(wrong, hint=f"Set by to one of {engines}")


def _text(where: str, key: str, value: object) -> str:
    """Return the value of a key. A number may stand without quotes."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadConfiguration(f"{where}.{key} must be a text or a number", hint=f'Write it like {key} = "…"')
    text = str(value)
    # These values become words of a command line, where such a word would be an option.
    if text.startswith("-") or not text.isprintable():
        raise BadConfiguration(f"{where}.{key} may not be {text!r}", hint="Name it without control characters or dash")
    return text
