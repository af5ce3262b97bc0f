"""The verdict on a call, from the rules and the standing approvals, without touching anything."""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace

from whisper_tui.model.call import CarriedOut, Shell
from whisper_tui.model.decision import Grant, PrefixScope, ToolScope
from whisper_tui.model.run import Sandbox, SandboxKind
from whisper_tui.model.secrets import masked_words
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import (
    CLIENT_PREFIX,
    HELD_BACK_RULE,
    NO_RULE_MATCHES,
    NO_SUBSTITUTION,
    PROJECT_PREFIX,
    STRICT,
    Meaning,
    PreviewCondition,
    Risk,
    UndoPlan,
    Verdict,
    is_grave,
)
from whisper_tui.policy.can_be_held_back import not_held_back
from whisper_tui.policy.commands.argv import parse_git
from whisper_tui.policy.commands.read_only_list import (
    SYSTEM_DIRECTORIES,
    harmless_with_any,
    lists_of_docker,
    only_reads,
    tests_one_thing,
)
from whisper_tui.policy.commands.unwrap import InnerCommand
from whisper_tui.policy.commands.wrappers import BUILTINS, adds_variables
from whisper_tui.policy.risks.call_risks import ALWAYS_ASKED, risks_of
from whisper_tui.policy.risks.sensitive_paths import (
    contains_home,
    lies_outside,
    names_closed_place,
    shows_names,
    shows_private,
)
from whisper_tui.policy.rules.grants import (
    PREFIX_OF_GRANT,
    grant_holds,
    is_exact,
    options_behind,
    rule_of_grant,
    same_files,
    suggested_prefixes,
)
from whisper_tui.policy.rules.matching import (
    READ_ONLY,
    READ_ONLY_WITHOUT_SANDBOX,
    Permissions,
    applies,
    is_too_short,
    mentioned,
    names_whole,
    reaches,
)
from whisper_tui.policy.rules.rule import EVERYTHING, MOST_DELETED, Effect, Rule, Rules, UndoneBy
from whisper_tui.policy.rules.set_variables import to_be_named
from whisper_tui.policy.shell.strict_reader import NotPlain
from whisper_tui.policy.shell.syntax import DECLARING
from whisper_tui.policy.view import CommandView, Question, all_commands, view
from whisper_tui.programs.entries import entry_of

REFUSES_SUBSTITUTION = frozenset({"run_shell_command"})
"""Tools whose contract forbids command and process substitution."""


def evaluate(question: Question, rules: Rules, memory: Iterable[Grant]) -> Verdict:
    """Judge a call. Deny beats ask, ask beats allow, and without any match the call is asked."""
    command = question.spec.command
    seen = view(command)
    risks = risks_of(question)
    literal = _in_literal_words(question, seen)

    def concerns(effect: Effect, rule: Rule) -> bool:
        return applies(effect, rule, question) and (reaches(rule, command, seen) or _reaches_literal(rule, literal))

    denied = denied_by_rule(rules, concerns, "command", risks)
    if denied is not None:
        return denied
    # agents of Gemini CLI know this tool and its contract: a refusal is cheaper for them than a question
    if question.tool in REFUSES_SUBSTITUTION and not question.own_shell and seen.expands:
        reason = f"{question.tool} takes no command or process substitution: $(…), `…`, <(…), >(…)"
        return Verdict(kind="refuse", reason=reason, rule=NO_SUBSTITUTION, risks=risks)
    # what no rule denies or asks about and only reads, whatever its substitutions print
    reading = _read_only_with_expansions(question, literal, seen, rules, risks)
    settled = risks if reading is None else tuple(risk for risk in risks if risk.id != "substitution")
    asked = asked_anyway(question, rules, concerns, "command", settled)
    if asked is not None:
        asked = asked.model_copy(update={"risks": risks})
        conditions = _conditions(question, rules, concerns, seen) if asked.rule is not None else ()
        if conditions:
            return asked.model_copy(update={"preview": "always", "allow_if_preview": conditions})
        return asked if asked.rule is not None else _by_effects(question, rules, seen, asked)
    held = tuple(grant for grant in memory if grant_holds(grant, question.session_id, question.now))
    allowed = _allowed(question, rules, seen, held, risks)
    allowed = allowed or (reading and reading.model_copy(update={"risks": settled}))
    if allowed is not None:
        allowed = _unless_sandbox_fails(allowed, question)
        return allowed if allowed.kind != "ask" else _by_effects(question, rules, seen, allowed)
    if question.tool in rules.strict:
        reason = f"no rule allows this command, and {question.tool} runs nothing else"
        return Verdict(kind="refuse", reason=reason, rule=STRICT, risks=risks)
    prefixes = _offered(question, rules, seen, held)
    reason = (
        may_be_denied(question, rules, seen)
        or _not_in_force(question, rules, seen, held)
        or _too_short(question, rules, seen)
        or _nothing_known(seen)
    )
    return _by_effects(question, rules, seen, Verdict(kind="ask", reason=reason, risks=risks, prefixes=prefixes))


def _by_effects(question: Question, rules: Rules, seen: CommandView, asked: Verdict) -> Verdict:
    """Return the verdict on a command about which no rule says anything: its effects decide, or a human (decision 36).

    Nobody is asked while it runs in a view of the files, and none of its changes is real before they are known.
    """
    if not rules.effects or rules.broken or question.tool in rules.strict:
        return asked
    if may_be_denied(question, rules, seen) or not_held_back(question, seen, asked.risks):
        return asked
    deletes = MOST_DELETED if rules.deletes is None else rules.deletes
    # What is asked about as an edit is no ordinary change of a command either.
    barred = tuple(dict.fromkeys(rule.path for rule in (*rules.deny, *rules.ask) if rule.path is not None))
    condition = PreviewCondition(
        writes_within=(EVERYTHING,), deletes=deletes, exit_code=None, rewrites_history=False, no_writes=barred
    )
    held = {"rule": HELD_BACK_RULE, "preview": "always", "allow_if_preview": (condition,), "held_back": True}
    return asked.model_copy(update=held)


Concerns = Callable[[Effect, Rule], bool]
"""Returns True if a rule with an effect is about a call."""


def denied_by_rule(rules: Rules, concerns: Concerns, noun: str, risks: tuple[Risk, ...]) -> Verdict | None:
    """Return the refusal of the first rule that denies this command or tool, or None."""
    for rule in rules.deny:
        if concerns("deny", rule):
            reason = rule.justification or f"the rule {rule.name!r} denies this {noun}"
            return Verdict(kind="refuse", reason=reason, rule=rule.name, risks=risks)
    return None


def asked_anyway(
    question: Question, rules: Rules, concerns: Concerns, noun: str, risks: tuple[Risk, ...]
) -> Verdict | None:
    """Return the verdict "ask" if the call is asked whatever any rule or memory allows, or None."""
    # a rule that denies may be the one that cannot be read, so nothing is allowed
    if rules.broken:
        reason = f"the rules cannot be read, so everything needs approval: {rules.broken}"
        return Verdict(kind="ask", reason=reason, risks=risks)
    doubt = _doubt(question, risks)
    if doubt:
        return Verdict(kind="ask", reason=doubt, risks=risks)
    for rule in rules.ask:
        if concerns("ask", rule):
            reason = rule.justification or f"the rule {rule.name!r} asks about this {noun}"
            preview = None if question.spec.place else rule.preview
            return Verdict(kind="ask", reason=reason, rule=rule.name, risks=risks, preview=preview)
    return None


def _conditions(
    question: Question, rules: Rules, concerns: Concerns, seen: CommandView
) -> tuple[PreviewCondition, ...]:
    """Return the conditions under which the effects of a call that rules ask about allow it. Empty: none do.

    Every rule that asks must have one, and they must name every command of the call: a rule asks wherever its words may
    run, but it allows only what was certainly read (decision 12).
    """
    asking = tuple(rule for rule in rules.ask if concerns("ask", rule))
    # What an agent runs itself cannot be applied, and has an environment that nobody knows; views of the files are
    # made on this machine alone.
    elsewhere = question.by_agent or question.spec.place or adds_variables(question.spec.environment)
    if elsewhere or not asking or may_be_denied(question, rules, seen):
        return ()
    conditions = tuple(rule.allow_if_preview for rule in asking if rule.allow_if_preview is not None)
    if len(conditions) < len(asking) or any(rule.preview == "never" for rule in asking):
        return ()
    certain = seen.plain if _is_bash(question) else None
    if not names_whole(asking, question.spec.command, certain):
        return ()
    return tuple(dict.fromkeys(conditions))


def _doubt(question: Question, risks: tuple[Risk, ...]) -> str | None:
    if question.place_problem:
        return question.place_problem
    if question.resolved.problem:
        return question.resolved.problem
    own = question.resolved.own_shell
    if own is not None and own.only_there:
        word = visible(own.only_there[0])
        return f"{word} is defined in your shell's profile, which only commands get that you have approved"
    for risk in risks:
        if risk.id in ALWAYS_ASKED:
            return risk.sentence
    return None


def _allowed(
    question: Question, rules: Rules, seen: CommandView, held: tuple[Grant, ...], risks: tuple[Risk, ...]
) -> Verdict | None:
    """Return the permission by a rule, a standing approval or the built-in read-only list, or None."""
    # a variable such as GIT_SSH changes what the same words run, so only an exact approval covers such a call
    additions = adds_variables(question.spec.environment)
    holding = () if additions else tuple(rule for rule in rules.allow if applies("allow", rule, question))
    for rule in holding:
        # word for word: nothing is derived, so it needs no certainty about the words
        if rule.matches(question.spec.command):
            return _by_rules((rule,), (), risks, rules, question)
    for grant in held:
        if (
            is_exact(grant)
            and grant.spec.identity() == question.spec.identity()
            # decision 11: the scripts that the human approved must be unchanged
            and same_files(grant, question.resolved)
        ):
            return by_grant(grant, risks)
    if seen.plain is None or additions or not _is_bash(question) or may_be_denied(question, rules, seen):
        return None
    # the cat that passes a text to a command must be the system's
    if seen.passes_text and "cat" in _from_workspace(question, seen) | _not_of_system(question):
        return None
    remembered = {PREFIX_OF_GRANT + grant.id: grant for grant in held if not is_exact(grant)}
    granted = (rule_of_grant(grant) for grant in remembered.values())
    prefixes = tuple(rule for rule in granted if applies("allow", rule, question))
    found = _permissions(question, rules, seen, (*holding, *prefixes)).allows(seen.plain)
    if found is None:
        return None
    used = tuple(remembered[rule.name] for rule in found if rule.name in remembered)
    return _by_rules(found, used, risks, rules, question)


def _permissions(question: Question, rules: Rules, seen: CommandView, holding: tuple[Rule, ...]) -> Permissions:
    """Return everything that may allow the literal commands of a call: these rules, and what holds without a rule."""
    return Permissions(
        rules=(*holding, *((_ANYTHING,) if rules.otherwise == "allow" else ())),
        # decisions 8 and 33
        read_only=bool(rules.read_only) and not question.spec.place and not _reads_too_far(question, seen),
        git_is_neutral=question.resolved.git_is_neutral and not _is_of_a_home(question),
        git_modules=question.resolved.repository is not None and question.resolved.repository.modules,
        git_stays=question.resolved.repository is not None,
        unsure=_from_workspace(question, seen),
        shows_names=shows_names([inner.argv for inner in seen.commands]),
        elsewhere=_not_of_system(question),
    )


def _offered(
    question: Question, rules: Rules, seen: CommandView, held: tuple[Grant, ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the prefixes with which commands like those of a call would be allowed from now on."""
    # only the grammar of bash tells the words of a prefix
    if seen.plain is None or not _is_bash(question):
        return ()
    granted = (rule_of_grant(grant) for grant in held if not is_exact(grant))
    holding = tuple(rule for rule in (*rules.allow, *granted) if applies("allow", rule, question))
    known = _permissions(question, rules, seen, holding)
    prefixes = suggested_prefixes(question.spec, known.allows_by_itself)
    offered = tuple(
        Rule(name="offered", prefix=words, options=options_behind(question.spec, words)) for words in prefixes
    )
    # beside a git that is approved, one that only reads is not allowed without a prefix of its own
    if replace(known, rules=(*known.rules, *offered)).allows(seen.plain) is None:
        return suggested_prefixes(question.spec)
    return prefixes


def _in_literal_words(question: Question, seen: CommandView) -> Question | None:
    """Return the question with the words that its expansions lead to, or None if it has none that are certain."""
    command, text = question.spec.command, question.resolved.literal
    if text is None or not seen.steps or not isinstance(command, Shell):
        return None
    spec = question.spec.model_copy(update={"command": command.model_copy(update={"text": text})})
    # the `cat` that stands for a redirection is no program: the shell opens the file
    known = (*question.resolved.commands, Meaning(words=("cat",))) if question.resolved.commands else ()
    resolved = question.resolved.model_copy(update={"places": question.resolved.literal_places, "commands": known})
    return replace(question, spec=spec, resolved=resolved)


def _reaches_literal(rule: Rule, literal: Question | None) -> bool:
    return literal is not None and reaches(rule, literal.spec.command, view(literal.spec.command))


def _read_only_with_expansions(
    question: Question, literal: Question | None, whole: CommandView, rules: Rules, risks: tuple[Risk, ...]
) -> Verdict | None:
    """Return the permission of the read-only list for words that expansions lead to, or None (decision 29).

    Files may change until bash looks them up, so this always needs the sandbox, whatever the program.
    """
    if literal is None or may_be_denied(question, rules, whole):
        return None
    if _from_workspace(question, whole):
        return None
    # it is run with the `PATH` that it names, and must find the same programs as without
    if "PATH" in question.resolved.variables and _not_of_system(question):
        return None
    seen = view(literal.spec.command)
    # an agent's own shell has no sandbox, and settings that nobody knows; nor is there a sandbox at a place
    if literal.by_agent or literal.spec.place or seen.plain is None or _doubt(literal, risks_of(literal)):
        return None
    if not _harmless_whatever_matches(whole):
        return None
    cwd = literal.resolved.cwd or literal.spec.cwd
    needs_none = _is_certain(whole) and _looks_at_names_outside(literal)
    # it would fail, and be asked the second time
    if not needs_none and names_closed_place([command.argv for command in seen.plain], cwd, literal.session_root):
        return None
    # a rule approves words, and these are not written anywhere
    without_permissions = rules.model_copy(update={"allow": (), "otherwise": "ask"})
    found = _allowed(literal, without_permissions, seen, (), risks)
    return found if needs_none else found and found.model_copy(update={"sandbox": Sandbox()})


def _is_certain(seen: CommandView) -> bool:
    """True if no word of a text with expansions depends on files, or on what a program prints."""
    commands = all_commands(seen, "/", lambda _: ("x",))
    return all(word.beginning is None for command in commands for word in command)


def _harmless_whatever_matches(seen: CommandView) -> bool:
    """True if no file name that may appear or go can do harm where the text has a pattern."""
    try:
        # the directory for which `~` stands makes no difference to that, nor does the file that a pattern finds
        commands = all_commands(seen, "/", lambda _: ("x",))
    except NotPlain:
        return False
    return all(
        harmless_with_any([word.text for word in command], [word.beginning for word in command])
        or tests_one_thing(
            [word.text if word.beginning is None else None for word in command if word.is_one], len(command)
        )
        for command in commands
    )


def _unless_sandbox_fails(allowed: Verdict, question: Question) -> Verdict:
    """Return the permission, or "ask" if it needs a sandbox that is missing or that blocked the command before."""
    if allowed.sandbox is None:
        return allowed
    resolved = question.resolved
    if place := question.spec.place:
        because = f"it may run without asking only in a sandbox, and there is none at {place}"
    elif question.sandbox_problem:
        because = f"it may run without asking only in a sandbox, and there is none here: {question.sandbox_problem}"
    elif question.docker_problem and any(lists_of_docker(each.argv) for each in view(question.spec.command).commands):
        because = f"it may run without asking only in a sandbox, which does not reach docker: {question.docker_problem}"
    elif question.was_blocked:
        because = "it was blocked in the sandbox before; if you approve it, it runs without one"
    elif closed := next((each for each in resolved.outside_of(allowed.sandbox) if not each.runs_alone), None):
        because = (
            f"it may run without asking only in a sandbox, which does not execute {visible(closed.path)}: it lies in "
            "none of the directories of programs, and is a script or can be changed by others"
        )
    else:
        return allowed.model_copy(update={"sandbox": resolved.opened_in(allowed.sandbox)})
    return Verdict(kind="ask", reason=because, rule=allowed.rule, risks=allowed.risks)


def may_be_denied(question: Question, rules: Rules, seen: CommandView) -> str | None:
    """Why no rule may allow this: denied words stand where they could run, and nothing says that they do not."""
    found = mentioned((rule for rule in rules.deny if applies("deny", rule, question)), seen)
    if found is None:
        return None
    rule, program, words = found
    place = f"the arguments or the code of {visible(program)}"
    return f"{visible(words)!r}, which the rule {rule.name!r} denies, occurs in {place}"


def _is_bash(question: Question) -> bool:
    """True if the grammar of bash says what a text means here; `sh` is often another shell."""
    command, shell = question.spec.command, question.resolved.shell
    if not isinstance(command, Shell):
        return True
    return shell == "bash" or (shell is None and command.shell.rsplit("/", 1)[-1] == "bash")


def _reads_too_far(question: Question, seen: CommandView) -> bool:
    """True if the built-in read-only list must not allow this call (decision 8)."""
    cwd = question.resolved.cwd or question.spec.cwd
    private = shows_private(
        [inner.argv for inner in seen.commands],
        cwd,
        question.session_root,
        question.resolved.places,
        seen.returns,
    )
    shell = question.resolved.program if isinstance(question.spec.command, Shell) else None
    started = (*question.resolved.helpers, *filter(None, (shell,)))
    return private or any(_is_of_workspace(program, question) for program in started)


def _from_workspace(question: Question, seen: CommandView) -> frozenset[str]:
    """Return the names of the programs that may come from the workspace, where the agent could have put them."""
    known = question.resolved.commands
    resolved = {meaning.words[0] for meaning in known if meaning.words}
    # the supervisor did not resolve a command, so its program may be anywhere
    unknown = [
        command.argv[0] for command in seen.commands if known and command.argv and command.argv[0] not in resolved
    ]
    found = [
        meaning.words[0]
        for meaning in known
        if meaning.words and meaning.program is not None
        if _is_shim(meaning.program) or _is_of_workspace(meaning.program, question)
    ]
    return frozenset(name for name in (*unknown, *found) if name is not None)


def _not_of_system(question: Question) -> frozenset[str]:
    """Return the names of the programs that are found outside of the directories of the system."""
    return frozenset(
        meaning.words[0]
        for meaning in question.resolved.commands
        if meaning.words and meaning.words[0] is not None
        if meaning.program is not None and not meaning.program.startswith(SYSTEM_DIRECTORIES)
    )


def _is_of_workspace(program: str, question: Question) -> bool:
    root = question.session_root.rstrip("/") + "/"
    return program.startswith(root) and not program.startswith(SYSTEM_DIRECTORIES)


def _is_shim(program: str) -> bool:
    """True if a program is a shim, which reads from the project which program to start."""
    return not {"shims", ".volta"}.isdisjoint(program.split("/"))


def _is_of_a_home(question: Question) -> bool:
    """True if the repository around the workspace contains a home directory."""
    repository = question.resolved.repository
    return repository is not None and contains_home(repository.work_tree)


_ANYTHING = Rule(name="otherwise", anything=True, justification="no other rule matches")


def _sandbox(found: tuple[Rule, ...], rules: Rules, question: Question) -> Sandbox | None:
    """Return the sandbox of a call that these rules allow together: that of the strictest of them (decision 7).

    The call is one process tree, and a command that one rule allows must not profit from the trust of another. A
    command that needs no sandbox counts for nothing beside another rule: `npm test | tail` runs as `npm test` does.
    """
    default = "read-only" if rules.sandbox is None else rules.sandbox
    if all(rule.name == READ_ONLY.name for rule in found):
        free = all(rule is READ_ONLY_WITHOUT_SANDBOX for rule in found)
        return None if free and (question.sandbox_problem or _looks_at_names_outside(question)) else Sandbox()
    said = [rule.model_copy(update={"sandbox": default}) if rule.sandbox is None else rule for rule in found]
    kinds = {rule.sandbox for rule in said}
    kind: SandboxKind = "read-only" if "read-only" in kinds else "workspace"
    if kind not in kinds:
        return None
    confined = [rule for rule in said if rule.sandbox is not False]
    return Sandbox(
        kind=kind,
        network=all(rule.network for rule in confined),
        execute=tuple(dict.fromkeys(path for rule in confined for path in rule.execute)),
    )


def _looks_at_names_outside(question: Question) -> bool:
    """True if a call shows nothing but names, and some that its sandbox would not show."""
    commands = [inner.argv for inner in view(question.spec.command).commands]
    cwd = question.resolved.cwd or question.spec.cwd
    return shows_names(commands) and lies_outside(commands, cwd, question.session_root)


def _by_rules(
    found: tuple[Rule, ...], used: tuple[Grant, ...], risks: tuple[Risk, ...], rules: Rules, question: Question
) -> Verdict:
    sandbox = _sandbox(found, rules, question)
    if used:
        return by_grant(used[0], risks).model_copy(update={"sandbox": sandbox})
    names = ", ".join(dict.fromkeys(rule.name for rule in found))
    said = next((rule.justification for rule in found if rule.justification and rule.name != READ_ONLY.name), "")
    if all(rule.name == READ_ONLY.name for rule in found):
        said = READ_ONLY.justification
    reason = said or (
        f"the rules {names} allow this command" if len(found) > 1 else f"the rule {names!r} allows this command"
    )
    return Verdict(kind="allow", reason=reason, rule=names, risks=risks, sandbox=sandbox)


def by_grant(grant: Grant, risks: tuple[Risk, ...]) -> Verdict:
    """Return the permission by a standing approval."""
    reason = f"{_approved(grant)} for this session, with call {grant.from_call}"
    return Verdict(kind="allow", reason=reason, grant_id=grant.id, risks=risks, sandbox=grant.sandbox)


def _approved(grant: Grant) -> str:
    """Return what a human has approved, as a clause: an agent and its human must not take a part for the whole."""
    match grant.scope:
        case PrefixScope(words=words):
            return f"a human had approved commands that begin with `{shlex.join(masked_words(words))}`"
        case ToolScope(hosts=hosts) if hosts:
            return f"a human had approved fetches from {', '.join(hosts)}"
        case ToolScope(path=path) if path:
            return f"a human had approved edits of {path}"
        case ToolScope(tool=tool):
            return f"a human had approved calls of {tool}"
        case _:
            what = "call" if isinstance(grant.spec.command, CarriedOut) else "command"
            return f"a human had approved this same {what}"


def _not_in_force(question: Question, rules: Rules, seen: CommandView, held: tuple[Grant, ...]) -> str | None:
    """Why a rule of the user does not allow it: nobody has trusted that since its file was changed by somebody else."""
    if not rules.untrusted:
        return None
    trusted = rules.model_copy(update={"allow": (*rules.allow, *rules.untrusted)})
    allowed = _allowed(question, trusted, seen, held, ())
    names = (allowed.rule or "").split(", ") if allowed is not None else ()
    named = next((rule.name for rule in rules.untrusted if rule.name in names), None)
    if named is None:
        return None
    return f"the rule {named!r} would allow it, but is not in force until you trust it: whisper-tui rules trust"


def _too_short(question: Question, rules: Rules, seen: CommandView) -> str | None:
    """Why a rule for a program alone does not allow it: nothing is known of the program."""
    for command in seen.plain or ():
        for rule in rules.allow:
            if applies("allow", rule, question) and is_too_short(rule, command):
                program = visible(command.argv[0])
                return (
                    f"the rule {rule.name!r} names nothing but {program}, of which nothing is known: it may run or "
                    "write anything by its arguments, so the rule has to name a further word, or its options"
                )
    return None


def _nothing_known(seen: CommandView) -> str:
    if seen.problem:
        return f"it cannot be parsed: {seen.problem}"
    if seen.plain is None and seen.doubt:
        return f"no rule can match: {seen.doubt}"
    for command in seen.plain or ():
        exported = command.argv[1:] if command.argv[0] in DECLARING else ()
        for name, sign, _ in (word.partition("=") for word in to_be_named((*command.assignments, *exported))):
            if sign:
                return f"it sets {visible(name)} first, which no rule names"
    return NO_RULE_MATCHES


_GIT_IN_FILES = frozenset("reset clean checkout restore switch stash branch tag rm mv".split())
"""Subcommands of git that act on nothing but the repository and its work tree."""


def undo_plan(question: Question, rules: Rules, verdict: Verdict, by_default: UndoneBy) -> UndoPlan | None:
    """Return how the changes of a call are kept. None: nobody wants that, or it changes no files (decision 16).

    Only what certainly behaves the same in a view of the files runs in one, unless a rule of the user says so.
    """
    said = _said_about_undo(rules, verdict)
    wanted = said if said is not None else by_default == "every" or (by_default == "severe" and _is_severe(verdict))
    confined = verdict.sandbox is not None and verdict.kind == "allow"
    read_only = confined and verdict.sandbox is not None and verdict.sandbox.kind == "read-only"
    if not wanted or verdict.kind == "refuse" or question.by_agent or read_only:
        return None
    if question.spec.place:
        return UndoPlan(how="none", why=f"it runs at {question.spec.place}, and changes are kept on this machine only")
    seen = view(question.spec.command)
    if seen.problem or (seen.plain is None and not seen.steps and not seen.scripts):
        return UndoPlan(how="none", why="it cannot be read for certain")
    ways = [way for command in seen.commands if (way := _way(command, by_rule=said is True)) is not None]
    if why := next((why for how, why in ways if how == "none"), ""):
        return UndoPlan(how="none", why=why)
    if question.resolved.code and said is not True:
        return UndoPlan(how="none", why=f"it runs {question.resolved.code[0].name}")
    if not ways:
        return None
    if all(how == "copies" for how, _ in ways):
        return UndoPlan(how="copies")
    return _in_view(question, verdict, confined=confined)


def _said_about_undo(rules: Rules, verdict: Verdict) -> bool | None:
    """Return what the user's rules that decided say about undo. None: nothing."""
    # The rules of projects and clients must neither switch it off nor have commands run in another way.
    names = {name for name in (verdict.rule or "").split(", ") if not name.startswith((PROJECT_PREFIX, CLIENT_PREFIX))}
    said = [rule.undo for rule in (*rules.ask, *rules.allow) if rule.name in names and rule.undo is not None]
    return all(said) if said else None


def _is_severe(verdict: Verdict) -> bool:
    return any(map(is_grave, verdict.risks))


def _way(command: InnerCommand, *, by_rule: bool) -> tuple[str, str] | None:
    """Return how the changes of one command are kept, and why they are not. None: it changes no files."""
    name = command.name
    writes = any(each.access == "write" for each in command.redirections)
    if command.background:
        return "none", "a part of it goes on in the background"
    if name is None:
        return ("copies", "") if writes and not command.argv else ("none", "a program is only known when it runs")
    if outside := entry_of(name).acts_outside:
        return "none", f"{name} {outside}"
    if name == "git":
        parsed = parse_git(command.argv)
        subcommand = command.argv[parsed.at] if parsed is not None and parsed.at < len(command.argv) else None
        if subcommand not in _GIT_IN_FILES:
            return "none", f"git {subcommand or ''} may change more than the files of its work tree".replace("  ", " ")
        return "view", ""
    words = tuple("x" if word is None else word for word in command.argv)
    # What it shows may be secret, and is no change.
    if command.runs_others or name in BUILTINS or only_reads(words, git_is_neutral=True, shows_names=True):
        return ("copies", "") if writes else None
    if entry_of(name).names_files:
        return "copies", ""
    return ("view", "") if by_rule else ("none", f"nobody knows beforehand what {name} changes")


def _in_view(question: Question, verdict: Verdict, *, confined: bool) -> UndoPlan:
    """Return the plan of a command that has to run in a view of the files."""
    if question.spec.tty or question.spec.accepts_input:
        return UndoPlan(how="none", why="it waits for input")
    own = question.resolved.own_shell
    if own is not None and (own.program or own.defines):
        what = f"its profile defines {visible(next(iter(own.defines)))}" if own.defines else "that is not bash"
        return UndoPlan(how="none", why=f"it runs in the agent's own shell, and {what}")
    if confined:
        return UndoPlan(how="none", why="it runs in a sandbox")
    if verdict.preview == "never":
        return UndoPlan(how="none", why="its rule does not let it run in a view of the files")
    return UndoPlan(how="view")
