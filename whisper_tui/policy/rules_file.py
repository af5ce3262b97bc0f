"""Rules as they stand in a TOML file, read and written. What cannot be read is said, and never guessed."""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import ValidationError

from whisper_tui.model.sandbox import SandboxKind
from whisper_tui.model.text import replace_hidden
from whisper_tui.policy.examples import EFFECTS, Effect, by_effect, failed_examples
from whisper_tui.policy.rules import Rule, Rules

_SETTINGS = ("read_only", "sandbox", "strict")
_KNOWN = (*EFFECTS, *_SETTINGS)


def read_rules(tables: object, where: str, *, table: str = "rules") -> Rules:
    """The rules of a document. One that cannot be read makes everything be asked; what is denied stays denied.

    `where` names the file, `table` what the keys are below; an empty one means the file's top.
    """
    dotted = f"{table}." if table else ""
    if not isinstance(tables, Mapping):
        return Rules(broken=f"{where}: {table!r} must hold [[{dotted}deny]], [[{dotted}ask]] and [[{dotted}allow]]")
    problems = [_unknown(table, key, _KNOWN) for key in tables if key not in _KNOWN]
    read = {effect: _read(effect, tables.get(effect, []), dotted, problems) for effect in EFFECTS}
    settings = _settings(tables, dotted, problems)
    return Rules(
        deny=read["deny"],
        ask=read["ask"],
        allow=read["allow"],
        broken=f"{where}: {'; '.join(problems)}" if problems else None,
        **settings,
    )


def _settings(tables: Mapping[str, Any], dotted: str, problems: list[str]) -> dict[str, Any]:
    read_only = tables.get("read_only")
    if read_only is not None and not isinstance(read_only, bool):
        problems.append(f"{dotted}read_only must be true or false")
        read_only = None
    sandbox = tables.get("sandbox")
    if sandbox is not None and sandbox is not False and sandbox not in get_args(SandboxKind):
        problems.append(f'{dotted}sandbox must be "read-only", "workspace" or false')
        sandbox = None
    return {"read_only": read_only, "sandbox": sandbox, "strict": _names(tables, "strict", dotted, problems)}


def _names(tables: Mapping[str, Any], key: str, dotted: str, problems: list[str]) -> tuple[str, ...]:
    value = tables.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        problems.append(f"{dotted}{key} must be a list of texts")
        return ()
    return tuple(value)


def _read(effect: Effect, entries: object, dotted: str, problems: list[str]) -> tuple[Rule, ...]:
    if not isinstance(entries, list):
        problems.append(f"write [[{dotted}{effect}]] with double brackets")
        return ()
    rules: list[Rule] = []
    for number, entry in enumerate(entries, start=1):
        where = f"{dotted}{effect} {number}"
        rule = _rule(effect, entry, where, problems)
        if rule is not None:
            rules.append(rule)
    return tuple(rules)


def _rule(effect: Effect, entry: object, where: str, problems: list[str]) -> Rule | None:
    """The rule of one table. None: it cannot be read. One whose examples fail is kept, for it may deny."""
    if not isinstance(entry, Mapping):
        problems.append(f"{where} must be a table")
        return None
    unknown = [key for key in entry if key not in Rule.model_fields]
    if unknown:
        problems.append(_unknown(where, unknown[0], Rule.model_fields))
        return None
    try:
        rule = Rule.model_validate(entry)
    except ValidationError as error:
        problems.append(_first_problem(where, error))
        return None
    problem = shape_problem(rule)
    if problem is not None:
        problems.append(f"{where} ({rule.name}) {problem}")
        return None
    problems += [f"{where} ({rule.name}) fails its example: {failure}" for failure in failed_examples(effect, rule)]
    return rule


def shape_problem(rule: Rule) -> str | None:
    """What is wrong with how a rule is written. None: nothing."""
    if rule.subjects() != 1:
        return "needs either argv or text, or one of prefix, program, pattern and anything: exactly one of them"
    if rule.prefix is not None and not (rule.prefix and all(rule.prefix)):
        return "has an empty prefix"
    if any(not path.startswith("/") for path in rule.execute):
        return "needs absolute directories in execute"
    if rule.directory is not None and not rule.directory.startswith("/"):
        return "needs an absolute directory"
    return None


def _unknown(table: str, key: str, known: Iterable[str]) -> str:
    close = get_close_matches(key, known, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(known))}"
    return f"unknown key {key!r}{f' in [{table}]' if table else ''}{guess}"


def _first_problem(where: str, error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in (where, *problem["loc"]))
    return f"{place}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"


def rules_text(rules: Rules, *, table: str = "") -> str:
    """The rules as TOML that `read_rules` reads back to the same."""
    said = {"read_only": rules.read_only, "sandbox": rules.sandbox}
    settings = "".join(f"{key} = {_toml(value)}\n" for key, value in said.items() if value is not None)
    blocks = [f"[{table}]\n{settings}" if table else settings] if settings else []
    blocks += [rule_text(effect, rule, table=table) for effect, rule in by_effect(rules)]
    return "\n".join(blocks)


def rule_text(effect: Effect, rule: Rule, *, table: str = "") -> str:
    """One rule as a TOML table."""
    said = rule.model_dump(exclude_defaults=True, mode="json")
    lines = [f"[[{table + '.' if table else ''}{effect}]]"]
    lines += [f"{key} = {_toml(value)}" for key, value in said.items()]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """A value as TOML. Its basic strings are JSON's, with what cannot be seen in the escapes of TOML."""
    return replace_hidden(json.dumps(value, ensure_ascii=False), _escape)


def _escape(characters: str) -> str:
    return "".join(f"\\U{ord(character):08X}" for character in characters)
