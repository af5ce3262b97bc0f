"""The configuration file `config.toml`, checked key by key."""

import tomllib
from collections.abc import Iterable
from itertools import starmap
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo

from whisper_tui.config.private_files import TomlText, read_private, write_private
from whisper_tui.model.api import SettingList, ShownSetting
from whisper_tui.model.errors import BadConfiguration, ChangedSinceSeen, InvalidRequest
from whisper_tui.model.run import NO_LIMITS, Limits
from whisper_tui.model.state import HOST_NAME
from whisper_tui.model.value import Value
from whisper_tui.notify.notify_settings import NotifySettings
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.policy.rules.rules_toml import allowances, denials, first_problem, read_rules, unknown_key
from whisper_tui.supervisor.places.place_settings import PlaceSettings, read_place
from whisper_tui.supervisor.settings import (
    EvidenceSettings,
    PhoneSettings,
    RetentionSettings,
    SupervisorSettings,
    TakeBackSettings,
)
from whisper_tui.system.state_directory import Directories

CONFIGURATION_FILE = "config.toml"

_Table = TypeVar("_Table", bound=BaseModel)


class CockpitSettings(Value):
    """The `[cockpit]` table of the configuration file."""

    theme: str | None = None
    """Name of the theme. None or "auto": the default for a dark or a light terminal."""
    keymap: Literal["default", "vi"] = "default"
    """The set of keys that the user's own keys change."""
    undo: Literal["grave", "every", "none"] = "every"
    """The approvals that can be undone before they are sent: every one, those with a severe risk, or none."""
    undo_s: float = Field(default=3.0, gt=0, le=60)
    """Seconds for which such an approval is held back."""


class OfferedTools(TypedDict):
    """The settings that `standard_registry` takes."""

    longest_timeout_s: int
    whole_line: bool


class ToolSettings(Value):
    """The `[tools]` table of the configuration file; its lists are read in the syntax of other agents' settings."""

    # camelCase, because these keys are copied from other agents' settings files.
    excludeTools: tuple[str, ...] = ()
    """Tools, or tools with the first words of a command, that are refused."""
    coreTools: tuple[str, ...] = ()
    """Tools with the first words of a command that run without asking."""
    strict: bool = False
    """True if `run_shell_command` refuses commands that are not in `coreTools`, instead of asking."""
    whole_line: bool = False
    """True if `execute_command` accepts a whole line for a shell, as agents expect that know its older form."""
    longest_timeout_s: int = Field(default=120, ge=1)
    """The largest `timeout` of `execute_command`, in seconds."""

    @property
    def offered(self) -> OfferedTools:
        """The settings of the tools that a session is offered."""
        return {"longest_timeout_s": self.longest_timeout_s, "whole_line": self.whole_line}


class McpServer(Value):
    """A table `[mcp.servers.NAME]`: a server of others that `mcp --through NAME` stands before."""

    command: tuple[str, ...] = Field(min_length=1)
    """Its command line."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables that are added to its environment."""


class McpSettings(Value):
    """The `[mcp]` table of the configuration file."""

    wait_s: float | None = Field(default=None, gt=0, le=86_400)
    """Seconds within which every call over MCP is answered. None: as long as the agent's client is known to wait."""
    servers: dict[str, McpServer] = Field(default_factory=dict)
    """Servers of others, by their names."""


class HostSettings(Value):
    """A table `[hosts.NAME]`: another machine, for `attach` and `--host`."""

    ssh: str = Field(default="", pattern=r"^([^-\s]\S*)?$")
    """The name of the machine for ssh. Empty: its name here."""
    command: str = ""
    """The text by which the shell of the user there starts whisper_tui. Empty: it is looked for."""


def _read_places(tables: Any) -> Any:
    """Return the places of tables by name. Raises `BadConfiguration`."""
    return tuple(starmap(read_place, tables.items())) if isinstance(tables, dict) else tables


class Configuration(Value):
    """All settings of the user."""

    supervisor: SupervisorSettings = SupervisorSettings()
    limits: Limits = NO_LIMITS
    """The resources that each run may use."""
    retention: RetentionSettings = RetentionSettings()
    undo: TakeBackSettings = TakeBackSettings()
    cockpit: CockpitSettings = CockpitSettings()
    calling: NotifySettings = NotifySettings()
    keys: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """The keys of the cockpit's commands, by their ids. The cockpit checks them: it alone knows the commands."""
    tools: ToolSettings = ToolSettings()
    mcp: McpSettings = McpSettings()
    phone: PhoneSettings = PhoneSettings()
    """Decisions from paired phones."""
    evidence: EvidenceSettings = EvidenceSettings()
    hosts: dict[Annotated[str, Field(pattern=HOST_NAME)], HostSettings] = Field(default_factory=dict)
    """Other machines, by the names that are put before their ids."""
    places: Annotated[tuple[PlaceSettings, ...], BeforeValidator(_read_places)] = ()
    """The places where commands can run besides this machine."""
    rules: Rules = Rules()
    """The rules of the file, together with those from the lists of `tools`."""

    @property
    def place_names(self) -> tuple[str, ...]:
        """The names of the places, for the tools that offer them."""
        return tuple(place.name for place in self.places)


def read(home: Directories) -> Configuration:
    """Read the file; defaults where there is none. Raises `BadConfiguration`."""
    path = Path(home.config) / CONFIGURATION_FILE
    text = read_private(path)
    return Configuration() if text is None else _configuration(path, text)


def _configuration(path: Path, text: str) -> Configuration:
    """Read the text of the file. Raises `BadConfiguration`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfiguration(f"{path} is not valid TOML: {error}", hint="Correct it, then try again") from error
    _check_known(path, "", document, Configuration.model_fields)
    tools = _table(path, "tools", document, ToolSettings)
    return Configuration(
        supervisor=_table(path, "supervisor", document, SupervisorSettings),
        limits=_table(path, "limits", document, Limits),
        retention=_table(path, "retention", document, RetentionSettings),
        undo=_table(path, "undo", document, TakeBackSettings),
        cockpit=_table(path, "cockpit", document, CockpitSettings),
        calling=_table(path, "calling", document, NotifySettings),
        keys=_keys(path, document),
        tools=tools,
        mcp=_table(path, "mcp", document, McpSettings),
        phone=_table(path, "phone", document, PhoneSettings),
        evidence=_table(path, "evidence", document, EvidenceSettings),
        hosts=_hosts(path, document),
        places=_places(path, document),
        rules=_with_lists(path, read_rules(document.get("rules", {}), str(path)), tools),
    )


def _with_lists(path: Path, rules: Rules, tools: ToolSettings) -> Rules:
    """Add the rules from the lists of tools. An unreadable entry makes them broken, so that everything is asked."""
    problems: list[str] = [] if rules.broken is None else [rules.broken]
    deny = (*rules.deny, *denials(tools.excludeTools, problems))
    allow = (*rules.allow, *allowances(tools.coreTools, problems))
    strict = (*rules.strict, *(("run_shell_command",) if tools.strict else ()))
    broken = "; ".join(problems) if problems else None
    if broken is not None and rules.broken is None:
        broken = f"{path}: {broken}"
    return rules.model_copy(update={"deny": deny, "allow": allow, "strict": strict, "broken": broken})


def _table(path: Path, name: str, document: dict[str, Any], kind: type[_Table]) -> _Table:
    content = document.get(name, {})
    if not isinstance(content, dict):
        raise BadConfiguration(f"{path}: {name!r} must be a table", hint=f"Write [{name}] on a line of its own")
    _check_known(path, name, content, kind.model_fields)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise BadConfiguration(f"{path}: {first_problem(name, error)}", hint="Correct it, then try again") from error


def _keys(path: Path, document: dict[str, Any]) -> dict[str, str | tuple[str, ...]]:
    """Return a key or a list of keys for each command; the cockpit checks the names of both."""
    content = document.get("keys", {})
    if not isinstance(content, dict):
        raise BadConfiguration(f"{path}: 'keys' must be a table", hint="Write [keys] on a line of its own")
    for name, keys in content.items():
        many = keys if isinstance(keys, list) else [keys]
        if not many or not all(isinstance(key, str) for key in many):
            raise BadConfiguration(
                f"{path}: {name!r} in [keys] must be a key or a list of keys", hint=f'Write it like {name} = "K"'
            )
    return {name: keys if isinstance(keys, str) else tuple(keys) for name, keys in content.items()}


def _hosts(path: Path, document: dict[str, Any]) -> dict[str, HostSettings]:
    try:
        return Configuration.model_validate({"hosts": document.get("hosts", {})}).hosts
    except ValidationError as error:
        raise BadConfiguration(f"{path}: {first_problem('', error)}", hint="Correct it, then try again") from error


def _places(path: Path, document: dict[str, Any]) -> Any:
    content = document.get("places", {})
    if not isinstance(content, dict):
        raise BadConfiguration(f"{path}: 'places' must be a table", hint="Write [places.NAME] on a line of its own")
    try:
        return _read_places(content)
    except BadConfiguration as error:
        raise BadConfiguration(f"{path}: {error.message}", hint=error.hint) from error


def _check_known(path: Path, table: str, content: dict[str, Any], known: Iterable[str]) -> None:
    for key in content:
        if key not in known:
            raise BadConfiguration(f"{path}: {unknown_key(table, key, known)}", hint="Correct it, then try again")


Restart = Literal["supervisor", "cockpit", "both"]

ABOUT: dict[str, tuple[Restart, str, str]] = {
    "cockpit.theme": ("cockpit", "Colours", "The colours of the cockpit."),
    "cockpit.keymap": ("cockpit", "Keys", "The set of keys; vi scrolls the call by Ctrl+Y and Ctrl+E."),
    "cockpit.undo": (
        "cockpit",
        "Approvals that u undoes",
        "The approvals that u can undo: all, those with a severe risk, or none.",
    ),
    "cockpit.undo_s": (
        "cockpit",
        "Time to undo an approval",
        "Seconds for which an approval of a severe risk can be undone.",
    ),
    "calling.when": (
        "both",
        "When to notify",
        "When you are notified: while you are away from the terminal, always, or never.",
    ),
    "calling.away_after_s": ("cockpit", "Away after", "Seconds without a key until you count as away."),
    "calling.quiet": ("both", "Quiet hours", "Hours without notifications, in local time, like 22:00-07:00."),
    "calling.at_most_every_s": (
        "both",
        "At most one every",
        "Seconds between two notifications; calls in between share the next one.",
    ),
    "calling.bell": ("cockpit", "Ring the bell", "The bell of the terminal rings with a notification."),
    "calling.notify": ("cockpit", "By the terminal", "The escape sequence that notifies by the terminal."),
    "calling.desktop": ("supervisor", "On the desktop", "Notifications on the desktop, by notify-send or osascript."),
    "calling.title": ("cockpit", "Count in the title", "The number of waiting calls in the title of the terminal."),
    "supervisor.workers": (
        "supervisor",
        "Commands at once",
        "Commands that run at the same time without having been asked about.",
    ),
    "supervisor.min_memory_bytes": (
        "supervisor",
        "Free memory to start",
        "Available bytes of memory below which no command starts.",
    ),
    "supervisor.max_output_bytes": (
        "supervisor",
        "Output kept of a run",
        "Bytes that are kept of each stream of a run; empty: all.",
    ),
    "supervisor.min_free_bytes": (
        "supervisor",
        "Free disk for output",
        "Free bytes of the disk below which only the tail of output is kept.",
    ),
    "supervisor.unasked_timeout_s": (
        "supervisor",
        "Time of unasked commands",
        "Seconds that a read-only command may run without approval.",
    ),
    "supervisor.unasked_output_bytes": (
        "supervisor",
        "Output of unasked commands",
        "Bytes that are kept of each stream of such a command.",
    ),
    "supervisor.held_back_s": (
        "supervisor",
        "Time held back",
        "Seconds after which you are asked about a command that is held back.",
    ),
    "supervisor.when_agent_cancels": (
        "supervisor",
        "If its agent cancels",
        "What happens to a running command whose agent cancels it.",
    ),
    "supervisor.previews": (
        "supervisor",
        "How to preview",
        "How commands are previewed; auto: in the most exact way that works here.",
    ),
    "retention.days": ("supervisor", "Days", "Days after which the output of a run is removed."),
    "retention.gigabytes": ("supervisor", "Gigabytes", "Gigabytes of output that are kept; the oldest goes first."),
    "retention.files": ("supervisor", "Files", "Files of recorded runs that are kept; the oldest go first."),
    "undo.keep": (
        "supervisor",
        "Which commands",
        "The approved commands whose changes are kept, so that they can be undone.",
    ),
    "undo.days": ("supervisor", "Days", "Days for which what is kept can be undone; empty: as long as the output."),
    "undo.gigabytes": ("supervisor", "Gigabytes", "Gigabytes that are kept for that; the oldest goes first."),
    "limits.cpu_s": ("supervisor", "Processor time", "Seconds of processor time that a run may use; empty: any."),
    "limits.memory_bytes": ("supervisor", "Memory", "Bytes of memory that a run may use; empty: any."),
    "limits.processes": ("supervisor", "Processes", "Processes that a run may have at once; empty: any."),
    "mcp.wait_s": (
        "supervisor",
        "Longest wait",
        "Seconds within which calls over MCP are answered; empty: as the client waits.",
    ),
}
"""The settings that the cockpit lists, with the programs that read them at their start, a title, and a sentence.

Rules, lists of tools, keys, notifications with buttons and the program that notifies are left to an editor: they decide
what runs.
"""


class ConfigurationFile:
    """The configuration file as a list of settings that are changed one by one."""

    def __init__(self, home: Directories) -> None:
        self.path = Path(home.config) / CONFIGURATION_FILE

    def listed(self) -> SettingList:
        """Return the settings that a person changes; with the defaults if the file cannot be read."""
        try:
            text = read_private(self.path) or ""
            configuration, problem = _configuration(self.path, text), ""
        except BadConfiguration as error:
            text, configuration, problem = "", Configuration(), error.sentence()
        document = tomllib.loads(text)
        return SettingList(
            path=str(self.path),
            settings=tuple(_setting(name, configuration, document) for name in ABOUT),
            problem=problem,
        )

    def change(self, name: str, value: str | None, seen: str) -> None:
        """Write a setting, or remove it. Raises `ChangedSinceSeen`, `BadConfiguration` or `Refused`."""
        if name not in ABOUT:
            raise InvalidRequest(f"there is no setting {name!r} to change here", hint="Change it in an editor")
        text = read_private(self.path) or ""
        # A file that is wrong elsewhere is not changed: nobody could tell whether this made it worse.
        now = _setting(name, _configuration(self.path, text), tomllib.loads(text))
        if now.value != seen:
            message = f"{self.path} was changed meanwhile: {name} is {now.value or 'empty'!r} there"
            raise ChangedSinceSeen(message, hint="Look at it again")
        table, key = name.split(".")
        changed = TomlText(text)
        if value is None or (not value.strip() and not now.default):
            changed.unset(table, key)
        else:
            changed.set(table, key, _parsed(name, value.strip()))
        _configuration(self.path, changed.text)
        write_private(self.path, changed.text)


def _field(name: str) -> FieldInfo:
    """The field of a setting in its table."""
    table, key = name.split(".")
    kind = Configuration.model_fields[table].annotation
    fields: dict[str, FieldInfo] = getattr(kind, "model_fields", {})
    return fields[key]


def _setting(name: str, configuration: Configuration, document: dict[str, Any]) -> ShownSetting:
    table, key = name.split(".")
    restart, title, about = ABOUT[name]
    field = _field(name)
    options = _types(field)
    choices: tuple[str, ...] = ("true", "false") if bool in options else ()
    for option in options:
        choices += tuple(get_args(option)) if get_origin(option) is Literal else ()
    return ShownSetting(
        name=name,
        title=title,
        about=about,
        value=_written(getattr(getattr(configuration, table), key)),
        default=_written(field.get_default(call_default_factory=True, validated_data={})),
        choices=choices,
        allowed=" or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
        if choices
        else _allowed(field, options),
        in_file=key in document.get(table, {}),
        restart=restart,
    )


def _types(field: FieldInfo) -> tuple[Any, ...]:
    """The types of a field; of a union, each."""
    annotation = field.annotation
    return (annotation,) if get_origin(annotation) in {None, Literal} else get_args(annotation)


def _allowed(field: FieldInfo, options: tuple[Any, ...]) -> str:
    """The values that a field takes, in words."""
    if str in options:
        return "a text"
    kind = "a number" if float in options else "a whole number"
    words = {"ge": "from {}", "gt": "above {}", "le": "to {}"}
    limits = [
        text.format(_written(getattr(each, bound)))
        for each in field.metadata
        for bound, text in words.items()
        if getattr(each, bound, None) is not None
    ]
    endless = ["or inf for no limit"] if any(getattr(each, "allow_inf_nan", False) for each in field.metadata) else []
    return " ".join((kind, *limits, *endless))


def _written(value: object) -> str:
    """Return a value as people type it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _parsed(name: str, text: str) -> bool | int | float | str:
    """Return the value that a person has typed. Raises `InvalidRequest`."""
    options = _types(_field(name))
    if bool in options and text in {"true", "false"}:
        return text == "true"
    if not {int, float} & set(options) or bool in options:
        return text
    try:
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise InvalidRequest(f"{text!r} is not a number", hint="Type a number like 30 or 2.5") from None
