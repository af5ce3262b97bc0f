"""The rules of an instance for its cockpit: read, tried and taken away through the configuration and the policy."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from whisper_tui.cli.outside import announce_to, check_outside
from whisper_tui.config import load
from whisper_tui.config.project_rules import PLACE, rules_of_content
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.model.command import CommandSpec, Shell
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.home import Home
from whisper_tui.model.rule_names import PROJECT
from whisper_tui.model.sandbox import Sandbox
from whisper_tui.policy.examples import by_effect
from whisper_tui.policy.rules import Rule, Rules
from whisper_tui.supervisor.judging import judge_alone
from whisper_tui.supervisor.rule_trust import mark_of
from whisper_tui.tui.rule_book import Judgement, ProjectRules, RuleList, ShownRule


class InstanceRules:
    """Implements the cockpit's `RuleBook`."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def path(self) -> Path:
        """The file of rules that may be edited."""
        return self._files().path

    def rules(self, roots: Sequence[str] = ()) -> RuleList:
        """The rules as they are now, with those that these workspaces bring along."""
        files = self._files()
        rules = files.current()
        saved = [(effect, rule.name) for effect, rule in by_effect(files.saved())]
        shown = tuple(
            ShownRule(
                effect=effect,
                name=rule.name,
                subject=rule.subject(),
                where=_where(rule),
                because=rule.justification,
                sandbox=_sandbox(effect, rule, rules),
                until=rule.until,
                removable=(effect, rule.name) in saved,
                entry=mark_of(effect, rule),
            )
            for effect, rule in by_effect(rules)
        )
        found = (_project(files, root) for root in roots)
        projects = tuple(project for project in found if project is not None)
        return RuleList(shown, looking_runs=bool(rules.read_only), broken=rules.broken, projects=projects)

    def judge(self, text: str, directory: str) -> Judgement:
        """What would be said to a line for a shell."""
        rules: Rules = self._files().current(directory)
        spec = CommandSpec(command=Shell(text=text), cwd=directory)
        verdict, resolved = judge_alone(spec, rules, os.environ, root=directory, now=time.time())
        return Judgement(verdict, resolved)

    def trust(self, project: ProjectRules, *, trusted: bool) -> None:
        """Trust the rules of a project as they were shown, or trust them no more."""
        check_outside("trusting rules", self._home)
        root, known = os.path.realpath(project.root), self._files().trusted
        if trusted:
            known.trust(root, project.text.encode())
        else:
            known.forget(root)

    def remove(self, name: str) -> None:
        """Take the rules of a name out of the file."""
        check_outside("taking a rule away", self._home)
        self._files().remove(name)

    def _files(self) -> RuleFiles:
        return RuleFiles(self._home, load(self._home).rules, announce_to(self._home))


def _project(files: RuleFiles, root: str) -> ProjectRules | None:
    """The rules that a workspace brings along. None: it has none."""
    path = Path(root) / PLACE
    if not os.path.lexists(path):
        return None
    try:
        content = files.project.content(root)
        text = content.decode()
    except (WhisperError, UnicodeDecodeError) as error:
        return ProjectRules(root, str(path), "", trusted=False, broken=str(error))
    rules, trusted = rules_of_content(content, str(path)), files.trusted.holds(os.path.realpath(root), content)
    shown = tuple(
        ShownRule(
            effect=effect,
            name=PROJECT + rule.name,
            subject=rule.subject(),
            where=_where(rule) if rule.directory else root,
            because=rule.justification,
            sandbox=_sandbox(effect, rule, rules),
            until=rule.until,
            holds=trusted or effect != "allow",
        )
        for effect, rule in by_effect(rules)
    )
    return ProjectRules(root, str(path), text, trusted=trusted, rules=shown, broken=rules.broken)


def _sandbox(effect: str, rule: Rule, rules: Rules) -> str:
    """How what a rule allows is confined, in words. Empty: it allows nothing."""
    if effect != "allow":
        return ""
    kind = rule.sandbox if rule.sandbox is not None else rules.sandbox
    if kind is False:
        return "none: it runs with all your rights"
    also = f"; it may also run programs in {', '.join(rule.execute)}" if rule.execute else ""
    return Sandbox(kind=kind or "read-only", network=rule.network).words() + also


def _where(rule: Rule) -> str:
    parts = [rule.directory or "", f"tool {rule.tool}" if rule.tool else "", ", ".join(rule.trust)]
    return "; ".join(part for part in parts if part) or "everywhere"
