"""Rules of agent clients, imported or followed, so that a client's denials and questions apply here too."""

import fnmatch
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from whisper_tui.model.verdict import client_rule_name
from whisper_tui.policy.commands.argv import program_name
from whisper_tui.policy.commands.read_only_list import fails_in_sandbox, only_reads
from whisper_tui.policy.risks.host_access import reaches_network
from whisper_tui.policy.rules.grants import is_too_broad
from whisper_tui.policy.rules.rule import EDIT, SUBAGENT, WEB, Effect, Rule, Rules, host_problem, path_problem
from whisper_tui.policy.shell.strict_reader import NotPlain, read_plain


@dataclass
class ImportedRules:
    """The rules of one file as rules of whisper_tui, and those that could not be imported."""

    rules: list[tuple[Effect, Rule]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """One sentence with the reason for each rule that was not imported."""
    uncertain: list[str] = field(default_factory=list)
    """The rules among them that deny or ask about commands, in the file's own words."""
    failing: list[str] = field(default_factory=list)
    """One sentence with the reason for each rule whose commands may fail in a sandbox."""

    def of(self, effect: Effect) -> tuple[Rule, ...]:
        """Return the rules with an effect."""
        return tuple(rule for kind, rule in self.rules if kind == effect)

    def take(self, effect: Effect, rule: Rule, source: str) -> None:
        """Add a rule, unless it would allow nearly anything."""
        broad = rule.anything and not is_server_rule(rule)
        if effect == "allow" and (broad or (rule.prefix is not None and is_too_broad(rule.prefix))):
            self.left.append(f"{source}: it would allow nearly anything; write it by hand if you want that")
        elif effect == "allow" and not is_tool_rule(rule):
            self.rules.append((effect, self._in_sandbox(rule, source)))
        else:
            self.rules.append((effect, rule))

    def _in_sandbox(self, rule: Rule, source: str) -> Rule:
        """Return a rule with the sandbox in which its commands work, which is no wider than what the client permits."""
        words = (rule.program,) if rule.program else rule.prefix or literal_words(rule.text or "") or ()
        if words and only_reads(words, git_is_neutral=True) and not fails_in_sandbox(words):
            return rule
        if words and fails_in_sandbox(words):
            self.failing.append(
                f"{source}: {words[0]} asks another process, which no sandbox opens; "
                "set sandbox = false in its rule if it may run with all your rights"
            )
        network = bool(words) and reaches_network(words, program_name(words[0]))
        if network and not fails_in_sandbox(words):
            self.failing.append(
                f"{source}: its sandbox has a network, but opens no keys or settings in your home directory; "
                "set sandbox = false in its rule if it needs them"
            )
        return rule.model_copy(update={"sandbox": "workspace", "network": network})


def is_server_rule(rule: Rule) -> bool:
    """True if a rule is about the tools of one MCP server."""
    server = (rule.tool or "").removeprefix("mcp__").partition("__")[0]
    return (rule.tool or "").startswith("mcp__") and bool(server) and not any(each in server for each in "*?[")


def is_tool_rule(rule: Rule) -> bool:
    """True if a rule is about edits, the web, sub-agents or the tools of a server, and not about commands."""
    kinds = {EDIT, WEB, SUBAGENT}
    return rule.path is not None or rule.host is not None or rule.tool in kinds or is_server_rule(rule)


def file_rule(name: str, pattern: str | None) -> Rule | None:
    """Return a rule for edits of some files, or of all. None: no rule can express the pattern."""
    if pattern is None or pattern.strip() in {"", "*", "**"}:
        return Rule(name=name, tool=EDIT, anything=True)
    bare = pattern.strip().removeprefix("./")
    return None if path_problem(bare) else Rule(name=name, path=bare)


def host_rule(name: str, host: str | None) -> Rule | None:
    """Return a rule for fetches from a host, or for all. None: no rule can express the host."""
    if host is None or host.strip() in {"", "*"}:
        return Rule(name=name, tool=WEB, anything=True)
    return None if host_problem(host.strip()) else Rule(name=name, host=host.strip().lower())


def server_rule(name: str, server: str, tool: str = "*") -> Rule:
    """Return a rule for a tool of an MCP server, or for all of its tools."""
    return Rule(name=name, tool=f"mcp__{server}__{tool or '*'}", anything=True)


def literal_words(text: str) -> tuple[str, ...] | None:
    """Return the words of a rule's text. None: a shell may read it differently."""
    try:
        commands = read_plain(text)
    except NotPlain:
        return None
    if len(commands) != 1 or commands[0].redirections or commands[0].background:
        return None
    return (*commands[0].assignments, *commands[0].argv)


_STRICTNESS: dict[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass
class OwnRules:
    """The rules of one file that deny or ask."""

    deny: list[Rule] = field(default_factory=list)
    ask: list[Rule] = field(default_factory=list)
    asks_all: list[str] = field(default_factory=list)
    """The reasons to ask about every command: one entry for each rule that cannot be imported."""
    asks_by_itself: bool = False
    """True if the client asks about every command. Then commands that only read are not allowed automatically."""

    def rules(self, client: str, source: str) -> Rules:
        """Return them as rules whose reasons name the client and the file."""
        denies, wants = f"{client} denies this command itself", f"{client} asks about this command itself"
        doubt = f"{client} has a rule of its own that cannot be imported, so every command is asked about"
        return Rules(
            deny=tuple(_attributed(rule, client, denies, source) for rule in self.deny),
            ask=(
                *(_attributed(rule, client, wants, source) for rule in self.ask),
                *(_attributed(Rule(name=entry, anything=True), client, doubt, source) for entry in self.asks_all),
            ),
            read_only=False if self.asks_by_itself else None,
        )


class OrderedRule(NamedTuple):
    """One rule of a list in which the order matters."""

    effect: Effect
    pattern: str | None
    """As the client matches it against a command: `*` stands for any text. None: it is about some kind of commands."""
    rule: Rule | None
    """None: it is about every command, or no rule of whisper_tui can express it."""


class RuleSource(NamedTuple):
    """A file that may hold rules, and its reader."""

    path: Path
    read: Callable[[str], OwnRules]
    """Raises `ValueError`."""


class RuleDirectories(NamedTuple):
    """Where a client may have rules of its own."""

    root: Path
    homes: tuple[Path, ...]
    moved: Mapping[str, Path]
    """The variables that change the directory of a client's files, as far as they are set."""
    process: Path | None = None
    """Its process in /proc, whose command line may have rules. None: it is not known."""

    def users(self, below: str, variable: str) -> tuple[Path, ...]:
        """Return the user's directories of a client: the usual ones, and the one that a variable names."""
        # The variable adds a directory and replaces none, because a project could set it to bypass the user's rules.
        usual = tuple(home / below for home in self.homes)
        return (*usual, self.moved[variable]) if variable in self.moved else usual


def strictest_wins(imported: ImportedRules) -> OwnRules:
    """Return the denying and asking rules of a list in which the strictest match wins."""
    found = OwnRules(asks_all=list(imported.uncertain))
    for effect, rule in imported.rules:
        if is_tool_rule(rule):
            if effect != "allow":
                (found.deny if effect == "deny" else found.ask).append(rule)
            continue
        bare = rule.model_copy(update={"tool": None})
        if effect == "ask" and rule.anything:
            found.asks_by_itself = True
        elif effect != "allow" and not rule.anything:
            (found.deny if effect == "deny" else found.ask).append(bare)
    return found


def last_match_wins(entries: Sequence[OrderedRule]) -> OwnRules:
    """Return the denying and asking rules of a list in which the last match wins."""
    # A rule here cannot have exceptions. A denial with a milder rule after it becomes a question, so that a human
    # decides where the client might have allowed.
    found = OwnRules()
    for at, (effect, pattern, rule) in enumerate(entries):
        milder = [other.pattern for other in entries[at + 1 :] if _STRICTNESS[other.effect] < _STRICTNESS[effect]]
        if effect == "allow" or any(_covers(other, pattern) for other in milder):
            continue
        has_exceptions = any(_may_overlap(pattern, other) for other in milder)
        if pattern == "*" and effect == "ask":
            found.asks_by_itself = True
        elif pattern == "*" and not has_exceptions:
            continue  # The client has no shell then. That says nothing about our tools.
        elif rule is None:
            found.asks_all.append(f"{effect} {pattern or 'of some commands'}")
        elif has_exceptions or effect == "ask":
            found.ask.append(rule)
        else:
            found.deny.append(rule)
    return found


def _covers(other: str | None, pattern: str | None) -> bool:
    """True if `other` matches every command that `pattern` matches."""
    return other is not None and pattern is not None and fnmatch.fnmatchcase(pattern, escaped(other))


def _may_overlap(one: str | None, other: str | None) -> bool:
    """True if two patterns may match the same command."""
    if one is None or other is None:
        return True
    first, second = (pattern.partition("*")[0].partition("?")[0] for pattern in (one, other))
    return first.startswith(second) or second.startswith(first)


def escaped(pattern: str) -> str:
    """Return a pattern with `*` and `?` as a pattern for `fnmatch`."""
    return pattern.replace("[", "[[]")


def _attributed(rule: Rule, client: str, sentence: str, source: str) -> Rule:
    name, said = rule.name, rule.justification
    if is_tool_rule(rule):
        sentence = sentence.replace("this command", "this call")
    reason = f"{sentence} ({name} in {source})" + (f": {said}" if said else "")
    return rule.model_copy(update={"name": client_rule_name(client, name), "justification": reason})


def files_in(directory: Path, ending: str) -> list[Path]:
    """Return the files of a directory with an ending, in the order of their names."""
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(ending))  # noqa: PTH208  twice as fast
    except OSError:
        return []
    return [directory / name for name in names]


def work_tree_around(directory: Path) -> Path | None:
    """Return the nearest directory, from this one up, that holds a `.git`. None: there is none."""
    return next((above for above in (directory, *directory.parents) if (above / ".git").exists()), None)
