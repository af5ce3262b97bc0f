"""The configuration file: `config.toml`, checked key by key."""

import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from whisper_tui.config.private_text import private_text
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.model.home import Home
from whisper_tui.model.run import NO_LIMITS, Limits
from whisper_tui.model.value import Value
from whisper_tui.policy.rules import Rules
from whisper_tui.policy.rules_file import read_rules
from whisper_tui.policy.tool_lists import allowances, denials
from whisper_tui.supervisor.settings import RetentionSettings, SupervisorSettings
from whisper_tui.tui.calling.settings import CallingSettings
from whisper_tui.tui.grace import GRACE_S, WhichCalls

FILE_NAME = "config.toml"

_Table = TypeVar("_Table", bound=BaseModel)


class CockpitSettings(Value):
    """The `[cockpit]` table of the configuration file."""

    theme: str | None = None
    """Name of the theme. None: the cockpit's own choice."""
    keymap: Literal["default", "vi"] = "default"
    """The set of keys that the user's own keys change."""
    undo: WhichCalls = "grave"
    """Which approvals can be taken back before they are sent: those of calls with a grave risk, every one, or none."""
    undo_s: float = Field(default=GRACE_S, gt=0, le=60)
    """Seconds that such an approval is held back."""


class ToolSettings(Value):
    """The `[tools]` table of the configuration file; its lists are read in the syntax of other agents' settings."""

    excludeTools: tuple[str, ...] = ()
    """Tools, or tools with the first words of a command, that are refused."""
    coreTools: tuple[str, ...] = ()
    """Tools with the first words of a command, that run without asking."""
    strict: bool = False
    """Whether `run_shell_command` refuses what is not in `coreTools`, instead of asking."""
    whole_line: bool = False
    """Whether `execute_command` takes a whole line for a shell, as it did in an older design."""
    longest_timeout_s: int = Field(default=120, ge=1)
    """The largest `timeout` of `execute_command`, in seconds."""


class McpSettings(Value):
    """The `[mcp]` table of the configuration file."""

    wait_s: float | None = Field(default=None, gt=0, le=86_400)
    """Seconds in which every call over MCP is answered. None: as long as the agent's program is known to wait."""


class Configuration(Value):
    """All that the user has set."""

    supervisor: SupervisorSettings = SupervisorSettings()
    limits: Limits = NO_LIMITS
    """What each run may use."""
    retention: RetentionSettings = RetentionSettings()
    cockpit: CockpitSettings = CockpitSettings()
    calling: CallingSettings = CallingSettings()
    keys: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    """The keys of the cockpit's commands, by their ids; what of it cannot be done is told by the cockpit."""
    tools: ToolSettings = ToolSettings()
    mcp: McpSettings = McpSettings()
    rules: Rules = Rules()
    """The rules of the file, and those that the lists of `tools` mean."""


def read(home: Home) -> Configuration:
    """What the file says; defaults where there is none. Raises `BadConfiguration`."""
    path = Path(home.config) / FILE_NAME
    text = private_text(path)
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
        calling=_table(path, "calling", document, CallingSettings),
        keys=_keys(path, document),
        tools=tools,
        mcp=_table(path, "mcp", document, McpSettings),
        rules=_with_lists(path, read_rules(document.get("rules", {}), str(path)), tools),
    )


def _with_lists(path: Path, rules: Rules, tools: ToolSettings) -> Rules:
    """The rules together with what the lists of tools mean. An entry that cannot be read makes everything be asked."""
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
        raise BadConfiguration(f"{path}: {_first_problem(name, error)}", hint="Correct it, then try again") from error


def _keys(path: Path, document: dict[str, Any]) -> dict[str, str | tuple[str, ...]]:
    """A key or a list of keys for each command; the names of both are looked at where they are known."""
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
            raise BadConfiguration(f"{path}: {_unknown(table, key, known)}", hint="Correct it, then try again")


def _unknown(table: str, key: str, known: Iterable[str]) -> str:
    close = get_close_matches(key, known, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(known))}"
    return f"unknown key {key!r}{f' in [{table}]' if table else ''}{guess}"


def _first_problem(table: str, error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in (table, *problem["loc"]))
    return f"{where}: {_lower_first(problem['msg'])}"


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
