"""The configuration file: `config.toml`, checked key by key."""

import os
import stat
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from whisper_tui.model.errors import BadConfiguration
from whisper_tui.model.home import Home
from whisper_tui.model.value import Value
from whisper_tui.policy.rules import ExactRule, Rules
from whisper_tui.policy.tool_lists import allowances, denials
from whisper_tui.supervisor.settings import SupervisorSettings

FILE_NAME = "config.toml"

_Table = TypeVar("_Table", bound=BaseModel)


class CockpitSettings(Value):
    """The `[cockpit]` table of the configuration file."""

    theme: str | None = None
    """Name of the theme. None: the cockpit's own choice."""


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


class Configuration(Value):
    """All that the user has set."""

    supervisor: SupervisorSettings = SupervisorSettings()
    cockpit: CockpitSettings = CockpitSettings()
    tools: ToolSettings = ToolSettings()
    rules: Rules = Rules()
    """The rules of the file, and those that the lists of `tools` mean."""


def read(home: Home) -> Configuration:
    """What the file says; defaults where there is none. Raises `BadConfiguration`."""
    path = Path(home.config) / FILE_NAME
    text = _text(path)
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
        cockpit=_table(path, "cockpit", document, CockpitSettings),
        tools=tools,
        rules=_with_lists(path, _rules(path, document.get("rules", {})), tools),
    )


def _with_lists(path: Path, rules: Rules, tools: ToolSettings) -> Rules:
    """The rules together with what the lists of tools mean. An entry that cannot be read makes everything be asked."""
    problems: list[str] = [] if rules.broken is None else [rules.broken]
    deny = (*rules.deny, *denials(tools.excludeTools, problems))
    allow = (*rules.allow, *allowances(tools.coreTools, problems))
    strict = ("run_shell_command",) if tools.strict else ()
    broken = "; ".join(problems) if problems else None
    if broken is not None and rules.broken is None:
        broken = f"{path}: {broken}"
    return rules.model_copy(update={"deny": deny, "allow": allow, "strict": strict, "broken": broken})


def _text(path: Path) -> str | None:
    """The text of the file. None: there is none. Rules decide what runs, so nobody else may have written them."""
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid not in {os.getuid(), 0} or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise BadConfiguration(
                    f"{path} can be changed by other users, so it is not used",
                    hint=f"Make it yours alone: chown {os.getuid()} and chmod go-w on it",
                )
            return file.read().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadConfiguration(f"{path} cannot be read: {error.strerror}", hint="Check its permissions") from error
    except UnicodeDecodeError as error:
        raise BadConfiguration(f"{path} is not UTF-8 text (byte {error.start})", hint="Save it as UTF-8") from error


def _table(path: Path, name: str, document: dict[str, Any], kind: type[_Table]) -> _Table:
    content = document.get(name, {})
    if not isinstance(content, dict):
        raise BadConfiguration(f"{path}: {name!r} must be a table", hint=f"Write [{name}] on a line of its own")
    _check_known(path, name, content, kind.model_fields)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise BadConfiguration(f"{path}: {_first_problem(name, error)}", hint="Correct it, then try again") from error


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


def _rules(path: Path, tables: object) -> Rules:
    """The rules that can be read. One that cannot makes everything be asked; what is denied stays denied."""
    if not isinstance(tables, dict):
        return Rules(broken=f"{path}: 'rules' must hold [[rules.deny]] and [[rules.allow]]")
    problems = [_unknown("rules", key, ("allow", "deny")) for key in tables if key not in {"allow", "deny"}]
    deny = _read_rules("deny", tables.get("deny", []), problems)
    allow = _read_rules("allow", tables.get("allow", []), problems)
    return Rules(deny=deny, allow=allow, broken=f"{path}: {'; '.join(problems)}" if problems else None)


def _read_rules(effect: str, entries: object, problems: list[str]) -> tuple[ExactRule, ...]:
    if not isinstance(entries, list):
        problems.append(f"write [[rules.{effect}]] with double brackets")
        return ()
    rules = []
    for number, entry in enumerate(entries, start=1):
        where = f"rules.{effect} {number}"
        problem = _rule_problem(where, entry)
        if problem is None:
            rules.append(ExactRule.model_validate(entry))
        else:
            problems.append(problem)
    return tuple(rules)


def _rule_problem(where: str, entry: object) -> str | None:
    if not isinstance(entry, dict):
        return f"{where} must be a table"
    for key in entry:
        if key not in ExactRule.model_fields:
            return _unknown(where, key, ExactRule.model_fields)
    try:
        rule = ExactRule.model_validate(entry)
    except ValidationError as error:
        return _first_problem(where, error)
    if (rule.argv is None) == (rule.text is None):
        return f"{where} ({rule.name}) needs either argv or text"
    return None
