"""A Ray cluster: a detached actor on the requested resources keeps the host process, and a bridge of ours leads to it.

The supervisor does not import Ray: each connection is a process of its own, `ray_bridge`.
"""

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from whisper_tui.model.errors import BadConfiguration, Unavailable
from whisper_tui.supervisor.places.engines import ask_engine, engine_name, kept
from whisper_tui.supervisor.places.place_settings import PlaceSettings

_MISSING = "Install the extra [ray]: pip install '.[ray]' in the checkout that whisper_tui was installed from"
_BRIDGE = Path(__file__).with_name("ray_bridge.py")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class RayTransport:
    """One named actor of a cluster, which is never restarted: Ray would start it on another node."""

    holds = True

    def __init__(self, settings: PlaceSettings, near: str) -> None:
        """Raises `BadConfiguration` for resources that cannot be read."""
        self.name = settings.name
        self._address = settings.option("address") or "auto"
        self._actor = engine_name(settings.name, near)
        self._resources = json.dumps(resources(settings))

    def summary(self) -> str:
        """Return the cluster and the actor."""
        return f"Ray actor {self._actor} of {self._address}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line of a bridge to a program that the actor starts."""
        return self._bridge("run", *argv)

    async def hold(self, argv: Sequence[str]) -> None:
        """Create the actor, unless it lives. Raises `Unavailable` as long as the cluster has no room for it."""
        if importlib.util.find_spec("ray") is None:
            raise Unavailable("the package ray is not installed", hint=_MISSING)
        answer = await ask_engine(self._bridge("hold", *kept(argv, stays=True)), missing=_MISSING)
        if answer.code != 0:
            raise Unavailable(f"{self.summary()}: {answer.reason()}", hint="It is tried again")

    def advice(self, code: int) -> str:
        """Return nothing: the bridge says what to do."""
        return ""

    def _bridge(self, mode: str, *argv: str) -> list[str]:
        # As a script: the class of the actor then travels to the cluster, where no module of ours is installed.
        return [sys.executable, str(_BRIDGE), mode, self._address, self._actor, self._resources, *argv]


def resources(settings: PlaceSettings) -> dict[str, object]:
    """Return the resources of the actor in Ray's words. Raises `BadConfiguration`."""
    wanted: dict[str, object] = {"num_cpus": _number(settings, "cpus", "1"), "num_gpus": _number(settings, "gpus", "0")}
    if said := settings.option("memory"):
        digits, unit = said[:-1], said[-1].lower()
        text, factor = (digits, _UNITS[unit]) if unit in _UNITS and not said[-1].isdigit() else (said, 1)
        if not text.isdecimal():
            raise BadConfiguration(f"places.{settings.name}.memory may not be {said!r}", hint="Write it like 8G")
        wanted["memory"] = int(text) * factor
    own: dict[str, float] = {}
    for part in filter(None, settings.option("resources").replace(",", " ").split()):
        name, _, amount = part.partition("=")
        own[name] = _float(settings, "resources", amount or "1")
    return {**wanted, "resources": own} if own else wanted


def _number(settings: PlaceSettings, key: str, default: str) -> float:
    return _float(settings, key, settings.option(key) or default)


def _float(settings: PlaceSettings, key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise BadConfiguration(f"places.{settings.name}.{key} may not be {text!r}", hint="Write a number, such as 2")
    return number
