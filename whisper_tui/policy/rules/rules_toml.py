"""Rules as text: tables of TOML, with their examples, and the tool lists of other agents' settings."""

import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import ValidationError

from whisper_tui.model.call import HERE, PLACE_NAME, Shell, Unasked
from whisper_tui.model.run import SandboxKind
from whisper_tui.model.text import replace_hidden
from whisper_tui.policy.rules.rule import (
    EFFECTS,
    EVERYWHERE,
    Effect,
    Rule,
    Rules,
    by_effect,
    host_problem,
    path_problem,
)


def is_about(effect: Effect, rule: Rule, text: str) -> bool:
    """True if a rule alone decides about this text; an allow rule must allow all of it."""
    # They load the readers of shell text, which whoever only reads a configuration does not need.
    from whisper_tui.policy.rules.matching import Permissions, reaches
    from whisper_tui.policy.view import view

    command = Shell(text=text)
    seen = view(command)
    if effect != "allow":
        return reaches(rule, command, seen)
    if rule.matches(command):
        return True
    if seen.plain is None:
        return False
    return Permissions(rules=(rule,), read_only=False, git_is_neutral=False).allows(seen.plain) is not None


def failed_examples(effect: Effect, rule: Rule) -> list[str]:
    """Return a sentence for each example that the rule fails."""
    missed = [f"it does not match {text!r}" for text in rule.match if not is_about(effect, rule, text)]
    caught = [f"it matches {text!r}" for text in rule.not_match if is_about(effect, rule, text)]
    return missed + caught


def matched(effect: Effect, rule: Rule, texts: Iterable[str]) -> list[str]:
    """Return the texts that a rule matches."""
    return [text for text in texts if is_about(effect, rule, text)]


_SETTINGS = ("unasked", "deletes", "read_only", "edits", "sandbox", "strict")
_KNOWN = (*EFFECTS, *_SETTINGS)


def read_rules(tables: object, where: str, *, table: str = "rules") -> Rules:
    """Read the rules of a document. After an unreadable rule everything is asked, except what other rules deny.

    `where` names the file, and `table` the table of the keys; an empty one means the top of the file.
    """
    dotted = f"{table}." if table else ""
    if not isinstance(tables, Mapping):
        return Rules(broken=f"{where}: {table!r} must hold [[{dotted}deny]], [[{dotted}ask]] and [[{dotted}allow]]")
    problems = [unknown_key(table, key, _KNOWN) for key in tables if key not in _KNOWN]
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
    edits = tables.get("edits")
    if edits not in {None, "allow", "ask"}:
        problems.append(f'{dotted}edits must be "allow" or "ask"')
        edits = None
    sandbox = tables.get("sandbox")
    if sandbox is not None and sandbox is not False and sandbox not in get_args(SandboxKind):
        problems.append(f'{dotted}sandbox must be "read-only", "workspace" or false')
        sandbox = None
    strict = _names(tables, "strict", dotted, problems)
    unasked = tables.get("unasked")
    if unasked is not None and unasked not in get_args(Unasked):
        problems.append(f'{dotted}unasked must be "nothing", "reading" or "workspace"')
        unasked = None
    if unasked is not None and (older := next((key for key in ("read_only", "edits") if key in tables), "")):
        problems.append(f"{dotted}{older} says in part what {dotted}unasked says: remove {older}")
    deletes = tables.get("deletes")
    if deletes is not None and (isinstance(deletes, bool) or not isinstance(deletes, int) or deletes < 0):
        problems.append(f"{dotted}deletes must be a number from 0 on")
        deletes = None
    settings = {"read_only": read_only, "edits": edits, "unasked": unasked, "deletes": deletes}
    return {**settings, "sandbox": sandbox, "strict": strict}


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
    """Read the rule of one table. Returns None if it cannot be read."""
    if not isinstance(entry, Mapping):
        problems.append(f"{where} must be a table")
        return None
    # a misspelt key would silently widen the rule
    unknown = [key for key in entry if key not in Rule.model_fields]
    if unknown:
        problems.append(unknown_key(where, unknown[0], Rule.model_fields))
        return None
    try:
        rule = Rule.model_validate(entry)
    except ValidationError as error:
        problems.append(first_problem(where, error))
        return None
    problem = shape_problem(rule, effect)
    if problem is not None:
        problems.append(f"{where} ({rule.name}) {problem}")
        return None
    # a rule that fails its examples is kept: it may be one that denies
    problems += [f"{where} ({rule.name}) fails its example: {failure}" for failure in failed_examples(effect, rule)]
    return rule


def shape_problem(rule: Rule, effect: Effect) -> str | None:
    """Return the problem with the fields of a rule, as a clause, or None."""
    return next((clause for _, clause in shape_problems(rule, effect)), None)


def shape_problems(rule: Rule, effect: Effect) -> Iterator[tuple[str, str]]:
    """Yield each problem with the fields of a rule: a field, and a clause."""
    if rule.preview is not None and effect != "ask":
        yield "preview", "says preview, which only a rule that asks can do"
    if rule.undo is not None and effect == "deny":
        yield "undo", "says undo, which a rule that denies cannot do"
    if rule.undo is not None and (rule.path is not None or rule.host is not None):
        yield "undo", "says undo, but only the changes of commands are kept by it"
    if rule.allow_if_preview is not None:
        yield from _condition_problems(rule, effect)
    if rule.place is not None or rule.run_at is not None:
        yield from _place_problems(rule, effect)
    if rule.subjects() != 1:
        said = "needs one of argv, text, prefix, program, pattern, path, host and anything: exactly one of them"
        yield "subject", said
    if rule.prefix is not None and not (rule.prefix and all(rule.prefix)):
        yield "prefix", "has an empty prefix"
    if rule.path is not None and (problem := path_problem(rule.path)):
        yield "path", problem
    if rule.host is not None and (problem := host_problem(rule.host)):
        yield "host", problem
    if any(not path.startswith("/") for path in rule.execute):
        yield "execute", "needs absolute directories in execute"
    if rule.directory is not None and not rule.directory.startswith("/"):
        yield "directory", "needs an absolute directory"


def _condition_problems(rule: Rule, effect: Effect) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the condition on effects of a rule."""
    if effect != "ask":
        yield "allow_if_preview", "says allow_if_preview, which only a rule that asks can do"
    if rule.preview == "never":
        yield "allow_if_preview", 'says allow_if_preview and preview = "never"'
    if rule.path is not None or rule.host is not None:
        yield "allow_if_preview", "says allow_if_preview, but only commands can be previewed"
    for pattern in rule.allow_if_preview.writes_within if rule.allow_if_preview is not None else ():
        if problem := path_problem(pattern):
            yield "allow_if_preview", f"has a pattern in writes_within that {problem}"


def _place_problems(rule: Rule, effect: Effect) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the place of a rule."""
    if rule.place is not None and rule.place != EVERYWHERE and not re.fullmatch(PLACE_NAME, rule.place):
        yield "place", f'needs the name of a place in place, "{HERE}" or "{EVERYWHERE}"'
    if rule.run_at is not None and (rule.run_at == HERE or not re.fullmatch(PLACE_NAME, rule.run_at)):
        yield "run_at", "needs the name of a place in run_at"
    if rule.run_at is not None and effect == "deny":
        yield "run_at", "says run_at, which a rule that denies cannot do"
    if rule.run_at is not None and rule.place is not None:
        yield "run_at", "says place and run_at, of which run_at alone is enough"
    if rule.path is not None or rule.host is not None:
        yield "place", "names a place, but edits and fetches are made by the agent itself, on this machine"
    if {rule.place or rule.run_at} <= {HERE}:
        return
    if effect == "allow" and rule.sandbox is not False:
        said = "there is no sandbox at a place, so what it allows runs there unasked and with all your rights"
        yield "sandbox", f"needs sandbox = false: {said}"
    if rule.place != EVERYWHERE and effect == "ask" and (rule.preview == "always" or rule.allow_if_preview is not None):
        yield "preview", "names a place, but only commands on this machine can be previewed"
    if rule.place != EVERYWHERE and rule.undo:
        yield "undo", "names a place, but changes are kept on this machine only"


def unknown_key(table: str, key: str, known: Iterable[str]) -> str:
    """Name an unknown key of a table, with the known key that is closest to it."""
    close = get_close_matches(key, known, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(known))}"
    return f"unknown key {key!r}{f' in [{table}]' if table else ''}{guess}"


def first_problem(where: str, error: ValidationError) -> str:
    """Return the first problem of a validation as `key: what is wrong`."""
    problem = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in (where, *problem["loc"]))
    return f"{place}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"


def rules_text(rules: Rules, *, table: str = "") -> str:
    """Return the rules as TOML, from which `read_rules` restores them."""
    older = {} if rules.unasked is not None else {"read_only": rules.read_only, "edits": rules.edits}
    said = {"unasked": rules.unasked, **older, "deletes": rules.deletes, "sandbox": rules.sandbox}
    settings = "".join(f"{key} = {toml_value(value)}\n" for key, value in said.items() if value is not None)
    blocks = [f"[{table}]\n{settings}" if table else settings] if settings else []
    blocks += [rule_text(effect, rule, table=table) for effect, rule in by_effect(rules)]
    return "\n".join(blocks)


def rule_text(effect: Effect, rule: Rule, *, table: str = "") -> str:
    """Return one rule as a TOML table."""
    said = rule.model_dump(exclude_defaults=True, mode="json")
    lines = [f"[[{table + '.' if table else ''}{effect}]]"]
    lines += [f"{key} = {toml_value(value)}" for key, value in said.items()]
    return "\n".join(lines) + "\n"


def toml_value(value: object) -> str:
    """Return a value as TOML: JSON, with invisible characters in the escapes of TOML."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {toml_value(each)}' for key, each in value.items())} }}"
    # TOML takes the strings, numbers and lists of JSON, but not the surrogate escapes of JSON
    return "inf" if value == math.inf else replace_hidden(json.dumps(value, ensure_ascii=False), _escape)


def _escape(characters: str) -> str:
    return "".join(f"\\U{ord(character):08X}" for character in characters)


_ENTRY = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?:\((.*)\))?\s*", re.DOTALL)

ALIASES = {"ShellTool": "run_shell_command", "ReadFileTool": "read_file"}
"""Class names that the same settings use for these tools."""


def denials(entries: Iterable[str], problems: list[str]) -> tuple[Rule, ...]:
    """Read `excludeTools` as deny rules: `tool` for all of it, `tool(words)` for commands with this prefix."""
    rules = []
    for entry in entries:
        read = _listed_entry("excludeTools", entry, problems)
        if read is not None:
            tool, words = read
            said = f"{entry.strip()} is in excludeTools"
            rules.append(_listed_rule("excludeTools", entry, tool, words, said))
    return tuple(rules)


def allowances(entries: Iterable[str], problems: list[str]) -> tuple[Rule, ...]:
    """Read `tool(words)` of `coreTools` as allow rules. A tool alone is only offered, and still asked."""
    rules = []
    for entry in entries:
        read = _listed_entry("coreTools", entry, problems)
        if read is not None and read[1]:
            tool, words = read
            rules.append(_listed_rule("coreTools", entry, tool, words, f"{entry.strip()} is in coreTools"))
    return tuple(rules)


def _listed_rule(kind: str, entry: str, tool: str, words: tuple[str, ...], said: str) -> Rule:
    name = f"{kind}: {entry.strip()}"
    if words:
        return Rule(name=name, tool=tool, prefix=words, justification=said)
    return Rule(name=name, tool=tool, anything=True, justification=said)


def _listed_entry(kind: str, entry: str, problems: list[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return the tool and the words of an entry, or None after noting its problem."""
    matched = _ENTRY.fullmatch(entry)
    try:
        words = tuple(shlex.split(matched[2] or "")) if matched else ()
    except ValueError:
        matched = None
    if matched is None or (matched[2] is not None and not words):
        problems.append(f"{kind}: {entry!r} is neither a tool nor a tool with a command, like run_shell_command(rm)")
        return None
    return ALIASES.get(matched[1], matched[1]), words
