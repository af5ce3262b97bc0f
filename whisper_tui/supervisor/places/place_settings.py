"""The places where commands can run besides this machine: their settings, and which call runs at which."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from whisper_tui.model.call import HERE, PLACE_NAME, CallRequest, CarriedOut, CommandSpec, Session, ToolCall
from whisper_tui.model.errors import BadConfiguration, Refused
from whisper_tui.policy.rules.rule import is_below
from whisper_tui.policy.rules.rules_toml import unknown_key

Engine = Literal["ssh", "docker", "podman", "systemd", "slurm", "kubernetes", "ray"]
"""The program that starts the far host of a place, and connects to it."""

ENGINE_OPTIONS: Mapping[Engine, tuple[str, ...]] = {
    "ssh": ("host",),
    "docker": ("container", "user", "context"),
    "podman": ("container", "user", "connection"),
    "systemd": ("host",),
    "slurm": ("host", "partition", "account", "time", "cpus", "gpus", "memory", "arguments"),
    "kubernetes": ("image", "pod", "namespace", "context", "cpus", "gpus", "memory"),
    "ray": ("address", "cpus", "gpus", "memory", "resources"),
}
"""The keys that each engine reads, beside those of every place."""

_TYPED = frozenset({"agents", "connect", "idle_s", "workers"})
"""Those of every place that are no text."""
_REQUIRED: Mapping[Engine, str] = {"docker": "container", "podman": "container", "kubernetes": "image"}
_OF_EVERY_PLACE = ("agents", "by", "connect", "directory", "idle_s", "python", "workers", "workspace")
IDLE_S = 600.0
"""Seconds after which a place is let go that nobody uses."""
Connects = Literal["first use", "start"]
"""When a place is connected: when a call first needs it, or as soon as the supervisor runs."""


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
    agents: bool = False
    """True if agents there ask this machine's supervisor. Then it is connected all the time."""
    connect: Connects = "first use"
    idle_s: float = IDLE_S
    """Seconds without use after which it is let go, with the job, Pod or actor that holds it. Infinite: never."""
    workers: int = 0
    """How many of its commands run at once, approved or not. 0: no limit of its own."""

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
    if name == HERE:
        raise BadConfiguration(f"{where}: {HERE!r} names this machine", hint="Give the place another name")
    if not isinstance(table, Mapping):
        raise BadConfiguration(f"{where} must be a table", hint=f"Write [{where}] on a line of its own")
    by = _engine(where, table.get("by"))
    known = (*_OF_EVERY_PLACE, *ENGINE_OPTIONS[by])
    agents = table.get("agents", False)
    if not isinstance(agents, bool):
        raise BadConfiguration(f"{where}.agents must be true or false", hint="Write it without quotes")
    said = {key: _text(where, key, value) for key, value in table.items() if key in known and key not in _TYPED}
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
    return PlaceSettings(
        name,
        by,
        options,
        agents=agents,
        connect=_connects(where, table),
        idle_s=_number(where, table, "idle_s", IDLE_S),
        workers=int(_number(where, table, "workers", 0)),
        **general,
    )


def _connects(where: str, table: Mapping[str, object]) -> Connects:
    said = table.get("connect", "first use")
    for each in get_args(Connects):
        if said == each:
            return each  # type: ignore[no-any-return]
    raise BadConfiguration(f"{where}.connect may not be {said!r}", hint='Write connect = "first use" or "start"')


def _number(where: str, table: Mapping[str, object], key: str, default: float) -> float:
    said = table.get(key, default)
    whole = key == "workers"
    if isinstance(said, bool) or not isinstance(said, int if whole else (int, float)) or not said >= 0:
        kind = "a whole number" if whole else "a number of seconds, or inf"
        raise BadConfiguration(f"{where}.{key} must be {kind}, not {said!r}", hint=f"Write it like {key} = {default:g}")
    return float(said)


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


OF_ITS_PLACE = "Let it run commands with run_shell_command, without naming a place"
NO_WAY_THERE = "The place is chosen for commands that the supervisor starts: run_shell_command, whisper-tui call"


class Placement:
    """Says where each call runs, and which directories there stand for those of this machine (decision 33)."""

    def __init__(self, places: Iterable[PlaceSettings] = ()) -> None:
        self._places = {place.name: place for place in places}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all places, in the order of the configuration."""
        return tuple(self._places)

    def most_at(self, place: str) -> int:
        """Return how many commands run at once at a place. 0: as many as anybody wants."""
        settings = self._places.get(place)
        return settings.workers if settings is not None else 0

    def known(self, name: str) -> str:
        """Return the place that is meant, empty for this machine. Raises `Refused` if there is none of that name."""
        if name in {"", HERE}:
            return ""
        if name not in self._places:
            there = f"There are {', '.join(self._places)}" if self._places else "There are none"
            # The file may have more by now.
            hint = f'{there}; "{HERE}" is this machine. whisper-tui restart reads the places of the configuration again'
            raise Refused(f"there is no place {name!r}", hint=hint)
        return name

    def problem(self, name: str) -> str:
        """Return why nothing can be known of a place, as a clause. Empty: it is configured, or is this machine."""
        return f"there is no place {name} in the configuration any more" if name and name not in self._places else ""

    def own_there(self, name: str, home: str, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the directories of whisper_tui at a place: those of its runs, and those of the user's own."""
        place, below = self._places.get(name), home.rstrip("/")
        usual = {"CACHE": ".cache", "CONFIG": ".config", "STATE": ".local/state", "DATA": ".local/share"}
        bases = (environment.get(f"XDG_{kind}_HOME") or f"{below}/{path}" for kind, path in usual.items())
        found = (f"{base}/whisper-tui" for base in (*bases, f"{below}/.cache"))
        return tuple(dict.fromkeys((*found, *filter(None, (place.directory if place is not None else "",)))))

    def there(self, name: str, directory: str, root: str) -> str:
        """Return the directory at a place that stands for one here: that of the workspace, or the same path."""
        place = self._places.get(name)
        if place is None or not place.workspace or not root or not is_below(directory, root):
            return directory
        return place.workspace.rstrip("/") + directory[len(root.rstrip("/")) :] or "/"

    def here(self, name: str, directory: str, root: str) -> str:
        """Return the directory of the workspace here for which one at a place stands. Empty: there is none."""
        place = self._places.get(name)
        workspace = place.workspace.rstrip("/") if place is not None else ""
        if not workspace or not root or not is_below(directory, workspace):
            return ""
        return root.rstrip("/") + directory[len(workspace) :] or "/"

    def placed(self, request: CallRequest, session: Session, by_rule: Callable[[], str]) -> CallRequest:
        """Return a request with the place where its command runs. Raises `Refused`.

        The call itself may name the place, or its session, or a rule; the agent's own tools stay on this machine.
        """
        spec, own = request.spec, _carried_out_here(request)
        if own and not session.relayed:
            if self.known(spec.place):
                raise Refused(f"{own}, so it runs on this machine and not at {spec.place}", hint=NO_WAY_THERE)
            return request
        if session.relayed:
            return self._placed_there(request, session, own)
        place = self.known(spec.place or session.place or by_rule())
        if not place and not spec.place:
            return request
        cwd = self.there(place, spec.cwd, session.root)
        # The agent's own shell is on this machine, and goes to no directory of another one.
        follows = request.follows and not place
        placed = spec.model_copy(update={"place": place, "cwd": cwd})
        return request.model_copy(update={"spec": placed, "follows": follows})

    def _placed_there(self, request: CallRequest, session: Session, own: str) -> CallRequest:
        """Return a request of an agent that is at a place itself: it runs there. Raises `Refused`."""
        place = self.known(session.place)
        if own or request.spec.place not in {"", place}:
            raise Refused(f"this agent is at {place}, and nothing of it runs elsewhere", hint=OF_ITS_PLACE)
        spec = request.spec.model_copy(update={"place": place})
        return request.model_copy(update={"spec": spec, "follows": False})

    def check_moved(self, call: ToolCall, edited: CommandSpec, session: Session | None) -> CommandSpec:
        """Return the command of a call as a human has edited it, at a place that there is. Raises `Refused`."""
        place = self.known(edited.place)
        if session is not None and session.relayed and place != session.place:
            raise Refused(f"its agent is at {session.place}, and nothing of it runs elsewhere", hint="Leave it there")
        if place and (own := _carried_out_here(call)):
            raise Refused(f"{own}, so it cannot run at {place}", hint="Leave it on this machine, or deny it")
        return edited if place == edited.place else edited.model_copy(update={"place": place})


def _carried_out_here(request: CallRequest) -> str:
    """Return why a call cannot run elsewhere, as a clause. Empty: it can."""
    if isinstance(request.spec.command, CarriedOut):
        return f"{request.tool} is carried out by the agent itself"
    return "the agent runs this command itself" if request.by_agent else ""
