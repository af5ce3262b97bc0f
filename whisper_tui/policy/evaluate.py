"""The seam of the policy: from a call, the rules and the memory to a verdict, without touching anything."""

from collections.abc import Iterable

from whisper_tui.model.command import Shell
from whisper_tui.model.decision import Grant
from whisper_tui.model.rule_names import NO_SUBSTITUTION, STRICT
from whisper_tui.model.sandbox import Sandbox, SandboxKind
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import Risk, Verdict
from whisper_tui.policy.allowing import LOOKS, PLAINLY_LOOKS, Allowing
from whisper_tui.policy.environment import is_mark
from whisper_tui.policy.matching import applies, reaches
from whisper_tui.policy.memory import PREFIX_OF_GRANT, holds, is_exact, rule_of, same_files
from whisper_tui.policy.mentions import mentioned
from whisper_tui.policy.question import Question
from whisper_tui.policy.read_only.judged import SYSTEM_DIRECTORIES
from whisper_tui.policy.read_only.private import holds_homes, shows_private
from whisper_tui.policy.risks import ALWAYS_ASKED, risks_of
from whisper_tui.policy.rules import Rule, Rules
from whisper_tui.policy.suggest import suggested_prefixes
from whisper_tui.policy.view import View, view

REFUSES_SUBSTITUTION = frozenset({"run_shell_command"})
"""Tools whose contract is to fail a call that would run something while its words are expanded."""


def evaluate(question: Question, rules: Rules, memory: Iterable[Grant]) -> Verdict:
    """Judge a call. Deny beats ask, ask beats allow; what nothing is known about is asked."""
    command = question.spec.command
    seen = view(command)
    risks = risks_of(question)
    for rule in rules.deny:
        if applies(rule, question) and reaches(rule, command, seen):
            reason = rule.justification or f"the rule {rule.name!r} denies this command"
            return Verdict(kind="refuse", reason=reason, rule=rule.name, risks=risks)
    if question.tool in REFUSES_SUBSTITUTION and not question.own_shell and seen.expands:
        reason = f"{question.tool} takes no command or process substitution: $(…), `…`, <(…), >(…)"
        return Verdict(kind="refuse", reason=reason, rule=NO_SUBSTITUTION, risks=risks)
    asked = _asked(question, rules, seen, risks)
    if asked is not None:
        return asked
    held = tuple(grant for grant in memory if holds(grant, question.session_id, question.now))
    allowed = _allowed(question, rules, seen, held, risks)
    if allowed is not None:
        return _unless_it_needs_more(allowed, question)
    if question.tool in rules.strict:
        reason = f"no rule allows this command, and {question.tool} runs nothing else"
        return Verdict(kind="refuse", reason=reason, rule=STRICT, risks=risks)
    prefixes = suggested_prefixes(question.spec) if _is_bash(question) else ()
    reason = _mentioned(question, rules, seen) or _nothing_known(seen)
    return Verdict(kind="ask", reason=reason, risks=risks, prefixes=prefixes)


def _asked(question: Question, rules: Rules, seen: View, risks: tuple[Risk, ...]) -> Verdict | None:
    """Why this command is asked whatever any rule or memory allows."""
    if rules.broken:
        reason = f"the rules cannot be read, so everything is asked: {rules.broken}"
        return Verdict(kind="ask", reason=reason, risks=risks)
    doubt = _doubt(question, risks)
    if doubt:
        return Verdict(kind="ask", reason=doubt, risks=risks)
    for rule in rules.ask:
        if applies(rule, question) and reaches(rule, question.spec.command, seen):
            reason = rule.justification or f"the rule {rule.name!r} wants this command to be asked"
            return Verdict(kind="ask", reason=reason, rule=rule.name, risks=risks)
    return None


def _doubt(question: Question, risks: tuple[Risk, ...]) -> str | None:
    if question.resolved.problem:
        return question.resolved.problem
    for risk in risks:
        if risk.id in ALWAYS_ASKED:
            return risk.sentence
    return None


def _allowed(
    question: Question, rules: Rules, seen: View, held: tuple[Grant, ...], risks: tuple[Risk, ...]
) -> Verdict | None:
    """What a rule, the list of commands that only look, or a remembered approval says to this call."""
    additions = any(not is_mark(name) for name in question.spec.environment)
    holding = () if additions else tuple(rule for rule in rules.allow if applies(rule, question))
    for rule in holding:
        if rule.matches(question.spec.command):
            return _by_rules((rule,), (), risks, rules, question)
    for grant in held:
        if (
            is_exact(grant)
            and grant.spec.identity() == question.spec.identity()
            and same_files(grant, question.resolved)
        ):
            return _by_grant(grant, risks)
    if seen.plain is None or additions or not _is_bash(question) or _mentioned(question, rules, seen):
        return None
    remembered = {PREFIX_OF_GRANT + grant.id: grant for grant in held if not is_exact(grant)}
    prefixes = tuple(rule for grant in remembered.values() if applies(rule := rule_of(grant), question))
    allowing = Allowing(
        rules=(*holding, *prefixes, *((_ANYTHING,) if rules.otherwise == "allow" else ())),
        read_only=bool(rules.read_only) and not _looks_too_far(question, seen),
        git_is_neutral=question.resolved.git_is_neutral and not _is_of_a_home(question),
        git_modules=question.resolved.repository is not None and question.resolved.repository.modules,
    )
    found = allowing.allows(seen.plain)
    if found is None:
        return None
    used = tuple(remembered[rule.name] for rule in found if rule.name in remembered)
    return _by_rules(found, used, risks, rules, question)


def _unless_it_needs_more(allowed: Verdict, question: Question) -> Verdict:
    """The permission, unless it is for a sandbox that there is not, or in which the command has failed before."""
    if allowed.sandbox is None:
        return allowed
    if question.sandbox_problem:
        because = f"it may run unasked in a sandbox only, and this system offers none: {question.sandbox_problem}"
    elif question.was_blocked:
        because = "it ran unasked in a sandbox before, and was blocked there; approved, it runs without one"
    else:
        return allowed
    return Verdict(kind="ask", reason=because, rule=allowed.rule, risks=allowed.risks)


def _mentioned(question: Question, rules: Rules, seen: View) -> str | None:
    """Why no rule may allow this: denied words stand where they could run, and nothing says that they do not."""
    found = mentioned((rule for rule in rules.deny if applies(rule, question)), seen)
    if found is None:
        return None
    rule, program, words = found
    return f"{visible(words)!r}, which the rule {rule.name!r} denies, stands in what {visible(program)} is given to do"


def _is_bash(question: Question) -> bool:
    """Whether the grammar of bash says what a text means here; `sh` is often another shell."""
    command, shell = question.spec.command, question.resolved.shell
    if not isinstance(command, Shell):
        return True
    return shell == "bash" or (shell is None and command.shell.rsplit("/", 1)[-1] == "bash")


def _looks_too_far(question: Question, seen: View) -> bool:
    """Why the list of commands that only look says nothing about this call."""
    cwd = question.resolved.cwd or question.spec.cwd
    private = shows_private(
        [inner.argv for inner in seen.commands], cwd, question.session_root, question.resolved.places
    )
    return private or _may_come_from_workspace(question, seen)


def _may_come_from_workspace(question: Question, seen: View) -> bool:
    """Whether the agent could have put a program there itself, so that its name says nothing."""
    root, known = question.session_root.rstrip("/") + "/", question.resolved.commands
    if known and sum(1 for meaning in known if meaning.words) < len(seen.commands):
        return True
    programs = [meaning.program for meaning in known if meaning.program is not None]
    shell = question.resolved.program or ""
    if any(_is_shim(program) for program in programs):
        return True
    return any(
        program.startswith(root) and not program.startswith(SYSTEM_DIRECTORIES)
        for program in (*programs, *question.resolved.helpers, shell)
    )


def _is_shim(program: str) -> bool:
    """Whether a program only looks into the project which one it shall start."""
    return not {"shims", ".volta"}.isdisjoint(program.split("/"))


def _is_of_a_home(question: Question) -> bool:
    """Whether the repository around the workspace holds somebody's whole home."""
    repository = question.resolved.repository
    return repository is not None and holds_homes(repository.work_tree)


_ANYTHING = Rule(name="otherwise", anything=True, justification="nothing is said about it")


def _sandbox(found: tuple[Rule, ...], rules: Rules, question: Question) -> Sandbox | None:
    """How a command runs that all of these rules allow together: like the strictest of them has it.

    It is one process tree. What only one of them trusts must not be done by what another one lets through. What
    plainly looks makes no difference beside another rule, so `npm test | tail` runs as the rule for `npm test` says.
    """
    default = "read-only" if rules.sandbox is None else rules.sandbox
    if all(rule is PLAINLY_LOOKS for rule in found):
        return None if question.sandbox_problem else Sandbox()
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


def _by_rules(
    found: tuple[Rule, ...], used: tuple[Grant, ...], risks: tuple[Risk, ...], rules: Rules, question: Question
) -> Verdict:
    sandbox = _sandbox(found, rules, question)
    if used:
        return _by_grant(used[0], risks).model_copy(update={"sandbox": sandbox})
    names = ", ".join(dict.fromkeys(rule.name for rule in found))
    said = next((rule.justification for rule in found if rule.justification and rule.name != LOOKS.name), "")
    if all(rule.name == LOOKS.name for rule in found):
        said = LOOKS.justification
    reason = said or (
        f"the rules {names} allow this command" if len(found) > 1 else f"the rule {names!r} allows this command"
    )
    return Verdict(kind="allow", reason=reason, rule=names, risks=risks, sandbox=sandbox)


def _by_grant(grant: Grant, risks: tuple[Risk, ...]) -> Verdict:
    reason = f"approved for this session with call {grant.from_call}"
    return Verdict(kind="allow", reason=reason, grant_id=grant.id, risks=risks, sandbox=grant.sandbox)


def _nothing_known(seen: View) -> str:
    if seen.problem:
        return f"it cannot be read to its end: {seen.problem}"
    if seen.plain is None and seen.doubt:
        return f"no rule can answer for it, for {seen.doubt}"
    return "no rule and no remembered approval is about this command"
