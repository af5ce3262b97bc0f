"""The rules of an instance for its cockpit: read, tried and taken away through the configuration and the policy."""

import os
import time
from pathlib import Path

from whisper_tui.cli.outside import check_outside
from whisper_tui.config import load
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.model.command import CommandSpec, Shell
from whisper_tui.model.home import Home
from whisper_tui.policy.examples import by_effect
from whisper_tui.policy.rules import Rule, Rules
from whisper_tui.supervisor.judging import judge_alone
from whisper_tui.tui.rule_book import Judgement, RuleList, ShownRule


class InstanceRules:
    """Implements the cockpit's `RuleBook`."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def path(self) -> Path:
        """The file of rules that may be edited."""
        return self._files().path

    def rules(self) -> RuleList:
        """The rules as they are now."""
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
                until=rule.until,
                removable=(effect, rule.name) in saved,
            )
            for effect, rule in by_effect(rules)
        )
        return RuleList(rules=shown, looking_runs=bool(rules.read_only), broken=rules.broken)

    def judge(self, text: str, directory: str) -> Judgement:
        """What would be said to a line for a shell."""
        rules: Rules = self._files().current(directory)
        spec = CommandSpec(command=Shell(text=text), cwd=directory)
        verdict, resolved = judge_alone(spec, rules, os.environ, root=directory, now=time.time())
        return Judgement(verdict, resolved)

    def remove(self, name: str) -> None:
        """Take the rules of a name out of the file."""
        check_outside("taking a rule away")
        self._files().remove(name)

    def _files(self) -> RuleFiles:
        return RuleFiles(self._home, load(self._home).rules)


def _where(rule: Rule) -> str:
    parts = [rule.directory or "", f"tool {rule.tool}" if rule.tool else "", ", ".join(rule.trust)]
    return "; ".join(part for part in parts if part) or "everywhere"
