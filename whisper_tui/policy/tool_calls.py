"""Verdicts on calls that an agent carries out itself: edits of files, web access, tools of MCP servers, sub-agents."""

import fnmatch
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from whisper_tui.model.call import Argv, CarriedOut, Command, EditedFile, FileEdits, Function, Shell
from whisper_tui.model.decision import Grant, ToolScope, scope_about
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import CLIENT_PREFIX, EDITS_RULE, SUBAGENT_RULE, Risk, Verdict
from whisper_tui.policy.evaluate import asked_anyway, by_grant, denied_by_rule
from whisper_tui.policy.risks.call_risks import risks_of
from whisper_tui.policy.risks.sensitive_paths import contains_home
from whisper_tui.policy.rules.grants import grant_holds, is_exact, suggested_targets
from whisper_tui.policy.rules.matching import applies, reaches
from whisper_tui.policy.rules.rule import (
    SUBAGENT,
    WEB,
    Effect,
    FilePlace,
    Rule,
    Rules,
    file_matches,
    host_matches,
    literal_pattern,
    server_pattern,
    tool_names,
)
from whisper_tui.policy.view import Question, view

COMMAND_NAMES = frozenset({"command", "commands", "cmd", "cmdline", "command_line", "shell_command", "script"})
"""Names of tool arguments that hold commands: shell text or a list of words."""

ARGUMENT_NAMES = ("args", "arguments", "argv")
"""Names of tool arguments that hold the words of a program beside them."""

DEEPEST_ARGUMENT = 8
"""Levels of a tool's arguments that are searched for commands."""


def evaluate_carried_out(question: Question, command: CarriedOut, rules: Rules, memory: Iterable[Grant]) -> Verdict:
    """Judge a call that its agent carries out. Deny beats ask, ask beats allow, and without any match it is asked."""
    tools = tool_names(command)
    risks = (*risks_of(question), *_file_risks(question.resolved.edits))
    noun = "edit" if isinstance(command, FileEdits) else "tool"

    def concerns(effect: Effect, rule: Rule) -> bool:
        return applies(effect, rule, question, tools) and _reaches(rule, question, command)

    judged = denied_by_rule(rules, concerns, noun, risks) or asked_anyway(question, rules, concerns, noun, risks)
    if judged is not None:
        return judged
    holding = [rule for rule in rules.allow if applies("allow", rule, question, tools)]
    allowed = _allowing(question, command, holding)
    if allowed:
        names = ", ".join(dict.fromkeys(rule.name for rule in allowed))
        reason = allowed[0].justification or f"the rule {names!r} allows this {noun}"
        return Verdict(kind="allow", reason=reason, rule=names, risks=risks)
    for grant in memory:
        if grant_holds(grant, question.session_id, question.now) and _covers(grant, question, command):
            return by_grant(grant, risks)
    verdict = _without_rule(question, command, rules, risks)
    return verdict if verdict.kind != "ask" else verdict.model_copy(update={"targets": _targets(question, command)})


def _targets(question: Question, command: CarriedOut) -> tuple[str, ...]:
    """Return the targets of which an approval would cover this call if it were made again."""
    suggested = suggested_targets(command, question.resolved.edits, question.home)
    return tuple(text for text in suggested if scope_covers(scope_about(command, text), question, command))


def _without_rule(question: Question, command: CarriedOut, rules: Rules, risks: tuple[Risk, ...]) -> Verdict:
    """Return the verdict on a call that no rule and no standing approval is about."""
    if isinstance(command, FileEdits):
        # decision 28
        doubt = _edit_doubt(question)
        if doubt:
            return Verdict(kind="ask", reason=doubt, risks=risks)
        if rules.edits == "allow":
            said = "it edits files of the workspace"
            return Verdict(kind="allow", reason=said, rule=EDITS_RULE, risks=risks)
        return Verdict(kind="ask", reason="the agent edits the files itself once you approve", risks=risks)
    if command.about == SUBAGENT:
        return Verdict(kind="allow", reason="its own calls are judged", rule=SUBAGENT_RULE, risks=risks)
    if command.about == WEB:
        hosts = ", ".join(map(visible, command.targets)) or "a host that is not known"
        return Verdict(kind="ask", reason=f"no rule allows fetches from {hosts}", risks=risks)
    return Verdict(kind="ask", reason="the agent runs this tool itself once you approve", risks=risks)


def _edit_doubt(question: Question) -> str:
    """Return why an edit is not an ordinary one of files in the workspace. Empty: it is."""
    root, files = question.session_root, question.resolved.edits
    if not files:
        return "its files are not known"
    if not root or root == "/" or contains_home(root):
        return "the workspace contains a home directory, so edits in it are asked about"
    # The words of a risk, so that a card does not say the same thing in two ways (decision 42).
    return next((risk.sentence for risk in _file_risks(files)), "")


def _is_uncertain(file: EditedFile) -> bool:
    """True if no rule about paths may allow the edit: what it changes, or what it says, is not what is seen."""
    return bool(file.unread or file.hidden) or _has_other_names(file)


def _has_other_names(file: EditedFile) -> bool:
    """True if the edit may change a file under names that nobody has looked at. A deletion takes this name alone."""
    return file.links > 1 and file.action != "deletes"


def _file_risks(files: Iterable[EditedFile]) -> Iterator[Risk]:
    """Yield the risks of the files of an edit, one for each file and kind."""
    for file in files:
        shown = visible(file.real)
        if file.sensitive:
            sentence = f"Changes {file.sensitive}, and with it what runs later or who may approve: {shown}"
            yield Risk(id="sensitive-write", sentence=sentence)
        if file.secret:
            yield Risk(id="writes-secrets", sentence=f"Changes a file that usually holds keys or passwords: {shown}")
        if file.steers_agents:
            yield Risk(id="steers-agents", sentence=f"Changes {file.runs_later} from now on: {shown}")
        elif file.runs_later:
            yield Risk(id="runs-later", sentence=f"Changes {file.runs_later}, which runs later: {shown}")
        if file.outside:
            link = ", through a symbolic link" if file.through_link else ""
            yield Risk(id="writes-outside", sentence=f"Changes a file outside the workspace{link}: {shown}")
        if _has_other_names(file):
            sentence = f"The file has {file.links:,} names (hard links) and changes under each of them: {shown}"
            yield Risk(id="hard-links", sentence=sentence)
        if file.hidden:
            sentence = f"The new text holds {file.hidden}, which hides what it says: {shown}"
            yield Risk(id="deceptive-characters", sentence=sentence)
        if file.unread:
            yield Risk(id="unread-file", sentence=f"The content was not compared, because {file.unread}: {shown}")


def _reaches(rule: Rule, question: Question, command: CarriedOut) -> bool:
    """True if a deny or ask rule matches a call as a whole, one of its targets, or a command among its arguments."""
    if rule.anything:
        # The rules that a client has itself for anything are about commands; those for other tools name them.
        return rule.tool is not None or not rule.name.startswith(CLIENT_PREFIX)
    if rule.path is not None:
        return any(_file(rule, file, question, wide=True) for file in question.resolved.edits)
    if rule.host is not None:
        return any(host_matches(rule.host, host, any_port=True) for host in _hosts(command))
    if rule.pattern is not None and fnmatch.fnmatchcase(command.text, rule.pattern):
        return True
    commands = commands_in(command.arguments) if isinstance(command, Function) else ()
    return any(reaches(rule, inner, view(inner)) for inner in commands)


def _file(rule: Rule, file: EditedFile, question: Question, *, wide: bool) -> bool:
    place = FilePlace(file.path, file.real, file.inside)
    return rule.path is not None and file_matches(rule.path, place, question.session_root, question.home, wide=wide)


def _hosts(command: CarriedOut) -> tuple[str, ...]:
    return command.targets if isinstance(command, Function) and command.about == WEB else ()


def _allowing(question: Question, command: CarriedOut, rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules that together allow every part of a call; empty if a part is left over."""
    known, files = tuple(rules), question.resolved.edits
    for rule in known:
        # A rule for anything that names no tool was written for commands.
        if rule.anything and rule.tool is not None and not _leaves(rule, question):
            return () if any(file.outside or _is_uncertain(file) for file in files) else (rule,)
    if isinstance(command, FileEdits):
        if any(_is_uncertain(file) or ".." in file.path.split("/") for file in files):
            return ()
        return _together(known, files, lambda rule, file: _file(rule, file, question, wide=False), question)
    return _together(
        known, _hosts(command), lambda rule, host: rule.host is not None and host_matches(rule.host, host), question
    )


def _together(
    rules: tuple[Rule, ...], parts: Iterable[Any], matches: Callable[[Rule, Any], bool], question: Question
) -> tuple[Rule, ...]:
    found: list[Rule] = []
    for part in parts:
        rule = next((rule for rule in rules if matches(rule, part) and not _leaves(rule, question)), None)
        if rule is None:
            return ()
        found.append(rule)
    return tuple(dict.fromkeys(found))


def _leaves(rule: Rule, question: Question) -> bool:
    """True if an edit changes a file outside of the directory that a rule is limited to (decision 10)."""
    if rule.directory is None:
        return False
    inside = rule.directory.rstrip("/") + "/"
    return any(not file.real.startswith(inside) for file in question.resolved.edits)


def _covers(grant: Grant, question: Question, command: CarriedOut) -> bool:
    """True if a standing approval is about this call."""
    if is_exact(grant):
        return grant.spec.identity() == question.spec.identity()
    return isinstance(grant.scope, ToolScope) and scope_covers(grant.scope, question, command)


def scope_covers(scope: ToolScope, question: Question, command: CarriedOut) -> bool:
    """True if a scope covers a call. A file that runs later or holds secrets is covered only by its own name."""
    special = (file for file in question.resolved.edits if file.runs_later or file.secret)
    if scope.path and any(scope.path != literal_pattern(file.inside) for file in special):
        return False
    return bool(_allowing(question, command, rules_of_scope(scope, command)))


def tool_rule_matches(effect: Effect, rule: Rule, question: Question, command: CarriedOut) -> bool:
    """True if a rule alone would decide about a call."""
    if not applies(effect, rule, question, tool_names(command)):
        return False
    return bool(_allowing(question, command, (rule,))) if effect == "allow" else _reaches(rule, question, command)


def rules_of_scope(scope: ToolScope, command: CarriedOut) -> tuple[Rule, ...]:
    """Return the rules that stand for a scope, for the tool of a call."""
    if scope.tool:
        # Names, never patterns: brackets and stars in the name of a tool are the server's. Every tool of a server is
        # known by the name of the server alone, because `mcp__a__b__*` may mean the server `a` as well as `a__b`.
        names = tool_names(command)
        if isinstance(command, Function) and command.about == "server" and command.targets:
            names = (*names, server_pattern(command.targets[0]))
        return (Rule(name=scope.tool, anything=True, tool=scope.tool),) if scope.tool in names else ()
    if scope.path:
        return (Rule(name=scope.path, path=scope.path),)
    return tuple(Rule(name=host, host=host) for host in scope.hosts)


def commands_in(arguments: Any, depth: int = 0) -> Iterator[Command]:
    """Yield the commands in a tool's arguments, recognised by the names of the arguments."""
    if depth > DEEPEST_ARGUMENT:
        return
    if isinstance(arguments, dict):
        for name, value in arguments.items():
            if name.lower() in COMMAND_NAMES:
                yield from _commands(value, arguments)
            yield from commands_in(value, depth + 1)
    elif isinstance(arguments, list):
        for value in arguments:
            yield from commands_in(value, depth + 1)


def _commands(value: Any, beside: dict[str, Any]) -> Iterator[Command]:
    if isinstance(value, str) and value:
        words = next((beside[name] for name in ARGUMENT_NAMES if _are_words(beside.get(name))), None)
        yield Shell(text=value) if words is None else Argv(program=value, args=tuple(words))
    elif _are_words(value) and value:
        yield Argv(program=value[0], args=tuple(value[1:]))
        # a list of words may also be a list of shell lines: `commands: ["rm -rf x"]`
        for text in value:
            yield Shell(text=text)


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)
