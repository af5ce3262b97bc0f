"""The configuration file `config.toml`, checked key by key."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from whisper_tui.config.private_files import read_private
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.model.run import NO_LIMITS, Limits
from whisper_tui.model.value import Value
from whisper_tui.notify.notify_settings import NotifySettings
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.policy.rules.rules_toml import allowances, denials, first_problem, read_rules, unknown_key
from whisper_tui.supervisor.settings import RetentionSettings, SupervisorSettings
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


class McpSettings(Value):
    """The `[mcp]` table of the configuration file."""

    wait_s: float | None = Field(default=None, gt=0, le=86_400)
    """Seconds within which every call over MCP is answered. None: as long as the agent's client is known to wait."""


class Configuration(Value):
    """All settings of the user."""

    supervisor: SupervisorSettings = SupervisorSettings()
    limits: Limits = NO_LIMITS
    """The resources that each run may use."""
    retention: RetentionSettings = RetentionSettings()
    cockpit: CockpitSettings = CockpitSettings()
    calling: NotifySettings = NotifySettings()
    keys: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """The keys of the cockpit's commands, by their ids. The cockpit checks them: it alone knows the commands."""
    tools: ToolSettings = ToolSettings()
    mcp: McpSettings = McpSettings()
    rules: Rules = Rules()
    """The rules of the file, together with those from the lists of `tools`."""


def read(home: Directories) -> Configuration:
    """Read the file; defaults where there is none. Raises `BadConfiguration`."""
    path = Path(home.config) / CONFIGURATION_FILE
    text = read_private(path)
    if text is None:
        return Configuration()
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
        cockpit=_table(path, "cockpit", document, CockpitSettings),
        calling=_table(path, "calling", document, NotifySettings),
        keys=_keys(path, document),
        tools=tools,
        mcp=_table(path, "mcp", document, McpSettings),
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


def _check_known(path: Path, table: str, content: dict[str, Any], known: Iterable[str]) -> None:
    for key in content:
        if key not in known:
            raise BadConfiguration(f"{path}: {unknown_key(table, key, known)}", hint="Correct it, then try again")
