"""The rule files: read again when a file changes, and edited by approvals and by `whisper-tui rules`."""

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

from whisper_tui.config.configuration import CONFIGURATION_FILE as CONFIGURATION
from whisper_tui.config.private_files import TomlText, read_private, write_private
from whisper_tui.config.project_rules import (
    PROJECT_RULES_FILE,
    ProjectRuleFiles,
    TrustedContent,
    digest_of,
    rules_of_content,
    trusted_here,
)
from whisper_tui.config.starter_rules import starter_rules
from whisper_tui.model.call import Unasked
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import BadConfiguration, ChangedSinceSeen, Refused, WhisperError
from whisper_tui.model.event import untrusted_entries
from whisper_tui.model.run import Sandbox
from whisper_tui.model.shown_rules import ProjectRules, RuleList, ShownRule, StarterSet
from whisper_tui.policy.commands.read_only_list import listed_commands
from whisper_tui.policy.rules.rule import EFFECTS, UNASKED, Effect, Rule, Rules, as_asks, by_effect
from whisper_tui.policy.rules.rules_toml import failed_examples, read_rules, rule_text, shape_problem
from whisper_tui.supervisor.rule_book import RuleTrust, mark_of, marks_of
from whisper_tui.system.state_directory import Directories

RULES_FILE = "rules.toml"
"""Rules that were saved by approvals and by `whisper-tui rules`; the user may edit it as well."""


Stamp = tuple[int, int, int]
MISSING: Stamp = (0, 0, 0)


class RuleFiles:
    """The rules of one instance: those of the configuration file, of the rules file, and of each workspace."""

    def __init__(self, home: Directories, configured: Rules) -> None:
        self._configured = configured
        self.configuration = Path(home.config) / CONFIGURATION
        """The file with the configured rules."""
        self._trust: RuleTrust | None = None
        """The journaled trust in these files. None: there is no supervisor, and all entries count."""
        self.path = Path(home.config) / RULES_FILE
        self._seen: tuple[Stamp, int] | None = None
        self._saved = Rules()
        self._own = configured
        self._whole: tuple[Rules, Rules, Rules] | None = None
        """Cache of the last result: the saved rules, those of a project, and both joined with the configured ones."""
        self.trusted = TrustedContent(home)
        self.project = ProjectRuleFiles(self.trusted)

    def follow(self, trust: RuleTrust) -> None:
        """Apply only entries that the supervisor trusts, and have entries that are written here trusted."""
        self._trust = self.trusted.trust_of = trust

    def current(self, root: str = "") -> Rules:
        """Return all rules for sessions with this workspace. An unreadable file makes every call be asked."""
        # Called for each call: a stat() is cheap, reading and joining thousands of rules is not.
        stamp, version = self._stamp(), self._trust.version if self._trust else 0
        if stamp is None or (stamp, version) != self._seen:
            self._saved = self._screened(self.path, self.saved())
            self._own = self._screened(self.configuration, self._configured)
            self.trusted.look()
            version = self._trust.version if self._trust else 0
            self._seen = None if stamp is None else (stamp, version)
        saved, project = self._saved, self.project.of(root)
        if self._whole is None or self._whole[0] is not saved or self._whole[1] is not project:
            self._whole = (
                saved,
                project,
                with_defaults(joined_rules(joined_rules(self._own, saved), project)),
            )
        return self._whole[2]

    def _screened(self, path: Path, rules: Rules) -> Rules:
        """Return the rules without entries that are not trusted."""
        return rules if self._trust is None else self._trust.screen(str(path), rules)

    def saved(self) -> Rules:
        """Return the rules of the rules file alone."""
        try:
            document = tomllib.loads(read_private(self.path) or "")
        except (BadConfiguration, tomllib.TOMLDecodeError) as error:
            return Rules(broken=f"{self.path}: {error}")
        return read_rules(document, str(self.path), table="")

    def add(self, effect: Effect, rule: Rule, by: Decider | None = None) -> None:
        """Add a rule. Raises `Refused` if it could not be read back, or if its examples fail."""
        _check_rule(effect, rule)
        text = self._readable()[1]
        # Fields at their defaults are left out, as in `rule_text`.
        text.append(effect, rule.model_dump(exclude_defaults=True, mode="json"), rule_text(effect, rule))
        self._save(text, (mark_of(effect, rule),), (), by)

    def keep(self, rule: Rule) -> None:
        """Add a rule that allows, from an approval, unless the file has it already."""
        if rule not in self._readable()[0].allow:
            self.add("allow", rule)

    def remove(self, name: str, by: Decider | None = None) -> int:
        """Remove the rules of a name. Returns how many there were. Raises `Refused` if there were none."""
        rules, text = self._readable()
        marks = tuple(mark_of(effect, rule) for effect, rule in by_effect(rules) if rule.name == name)
        if not marks:
            raise Refused(f"there is no rule {name!r} in {self.path}", hint="whisper-tui rules list shows them")
        gone = 0
        for effect in EFFECTS:
            # From the end, so that the numbers of the others stay right.
            for at, rule in reversed(list(enumerate(getattr(rules, effect)))):
                if rule.name == name:
                    text.remove(effect, at)
                    gone += 1
        self._save(text, (), marks, by)
        return gone

    def replace(self, old: tuple[Effect, Rule], new: tuple[Effect, Rule] | None, by: Decider | None = None) -> None:
        """Put a rule in the place of another, or remove that one. Raises `ChangedSinceSeen` if it is not there."""
        if new is not None:
            _check_rule(*new)
        rules, text = self._readable()
        at = next((at for at, rule in enumerate(getattr(rules, old[0])) if rule == old[1]), None)
        if at is None:
            message = f"{self.path} was changed meanwhile: it no longer has the rule {old[1].name!r} as it was shown"
            raise ChangedSinceSeen(message, hint="Look at it again, or add yours as a new rule")
        if new is None:
            text.remove(old[0], at)
        else:
            moved_to = new[0] if new[0] != old[0] else None
            text.change(old[0], at, new[1].model_dump(exclude_defaults=True, mode="json"), moved_to)
        self._save(text, () if new is None else (mark_of(*new),), (mark_of(*old),), by)

    def says_level(self) -> bool:
        """True if one of the user's files says how much runs unasked, by whichever key."""
        own = (self._configured, self.saved())
        return any(value is not None for each in own for value in (each.unasked, each.read_only, each.edits))

    def set_unasked(self, level: Unasked, by: Decider | None = None) -> None:
        """Write how much runs unasked, in the place of what the older keys say of it.

        Raises `Refused` if the configuration lets less run: the stricter of two files counts.
        """
        rules, text = self._readable()
        configured = self._configured.unasked
        if configured is not None and UNASKED.index(configured) < UNASKED.index(level):
            raise Refused(
                f'{self.configuration} says unasked = "{configured}", and the stricter of two files counts',
                hint="Change it there, then whisper-tui restart",
            )
        text.set("", "unasked", level)
        for key in ("read_only", "edits"):
            text.unset("", key)
        before = marks_of(rules)
        after = marks_of(read_rules(tomllib.loads(text.text), str(self.path), table=""))
        added, removed = (
            tuple(each for each in one if each not in other) for one, other in ((after, before), (before, after))
        )
        self._save(text, added, removed, by)

    def with_draft(self, root: str, draft: tuple[Effect, Rule], replaced: tuple[Effect, Rule] | None = None) -> Rules:
        """Return the rules in force for a workspace as if a draft were one of them, in the place of another rule."""
        self.current(root)
        saved = self._saved
        if replaced is not None:
            kept = list(getattr(saved, replaced[0]))
            if replaced[1] in kept:
                kept.remove(replaced[1])
            saved = saved.model_copy(update={replaced[0]: tuple(kept)})
        saved = saved.model_copy(update={draft[0]: (*getattr(saved, draft[0]), draft[1])})
        return with_defaults(joined_rules(joined_rules(self._own, saved), self.project.of(root)))

    def trust_project(self, root: str, digest: str, by: Decider | None = None) -> None:
        """Trust the rules file of a workspace, if this is the digest of its content. Raises `ChangedSinceSeen`."""
        root = os.path.realpath(root)
        content = self.project.content(root)
        if digest_of(content) != digest:
            path = Path(root) / PROJECT_RULES_FILE
            raise ChangedSinceSeen(f"{path} has changed since it was shown", hint="Look at it again")
        self.trusted.trust(root, content, by)

    def distrust_project(self, root: str, by: Decider | None = None) -> None:
        """Withdraw the trust in the rules file of a workspace. Raises `Refused` if it was not trusted."""
        self.trusted.forget(os.path.realpath(root), by)

    def listed(self, roots: Sequence[str] = ()) -> RuleList:
        """Return the rules of the user, and those of these workspaces."""
        current, saved = self.current(), self.saved()
        shown = [
            *self._shown(self.configuration, self._configured),
            *(rule.model_copy(update={"removable": True}) for rule in self._shown(self.path, saved)),
        ]
        projects = (shown_project(root, self.project, self.trusted) for root in roots)
        proposed = ((root, Rules(allow=starter_rules(root, saved.allow))) for root in roots)
        starters = (StarterSet(root=root, rules=tuple(shown_rules(self.path, rules))) for root, rules in proposed)
        return RuleList(
            rules=tuple(sorted(shown, key=lambda rule: EFFECTS.index(rule.effect))),
            read_only_runs=bool(current.read_only),
            edits_run=current.edits == "allow",
            held_back_run=current.effects,
            broken=current.broken,
            projects=tuple(project for project in projects if project is not None),
            path=str(self.path),
            read_only=listed_commands(),
            starters=tuple(each for each in starters if each.rules),
        )

    def _shown(self, path: Path, rules: Rules) -> list[ShownRule]:
        """The rules of a file of the user, with their trust."""
        if self._trust is None or rules.broken is not None:
            return shown_rules(path, rules)
        kept_out = set(untrusted_entries(self._trust.look(str(path), marks_of(rules))))
        marks = (mark_of(effect, rule) for effect, rule in by_effect(rules))
        shown = zip(shown_rules(path, rules), marks, strict=True)
        return [rule.model_copy(update={"holds": mark not in kept_out}) for rule, mark in shown]

    def _readable(self) -> tuple[Rules, TomlText]:
        """The rules of the file, and its text. Raises `Refused` if there are problems with them."""
        rules = self.saved()
        if rules.broken:
            raise Refused(f"the rules cannot be changed while they cannot be read: {rules.broken}", hint="Correct them")
        return rules, TomlText(read_private(self.path) or "")

    def _save(self, text: TomlText, added: tuple[str, ...], removed: tuple[str, ...], by: Decider | None) -> None:
        """Write the file, and trust what was written into it."""
        # Journaled before it is written, so that what is found in the file is trusted.
        before = self._trust.extend(str(self.path), added, removed, by) if self._trust is not None else ()
        try:
            write_private(self.path, text.text)
        except Refused:
            if self._trust is not None:
                # The file is as it was, and so must be the trust in it.
                undone = [mark for mark in added if mark not in before]
                self._trust.extend(str(self.path), [mark for mark in removed if mark in before], undone, by)
            raise

    def _stamp(self) -> Stamp | None:
        """Return the file's version. None: it cannot be determined."""
        try:
            about = self.path.stat()
        except FileNotFoundError:
            return MISSING
        except OSError:
            return None
        return (about.st_mtime_ns, about.st_size, about.st_ino)


def _check_rule(effect: Effect, rule: Rule) -> None:
    """Raise `Refused` for a rule that could not be read back, or whose examples fail."""
    problem = shape_problem(rule, effect) or "; ".join(failed_examples(effect, rule))
    if problem:
        raise Refused(f"the rule {rule.name!r} {problem}", hint="Change it, then try again")


def rules_in(path: Path) -> Rules:
    """Return the rules of a single file: a rules file, or the table `rules` of a configuration.

    Raises `BadConfiguration` if it is missing or not TOML.
    """
    text = read_private(path)
    if text is None:
        raise BadConfiguration(f"there is no file {path}", hint="Name a file of rules")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfiguration(f"{path} is not valid TOML: {error}", hint="Correct it, then try again") from error
    inside = "rules" in document
    return with_defaults(
        read_rules(document["rules"] if inside else document, str(path), table="rules" if inside else "")
    )


def with_defaults(rules: Rules) -> Rules:
    """Return the rules with the defaults of an instance where its files do not say: the read-only list holds
    (decision 8), and edits are asked about, as by the client itself."""
    if rules.unasked is not None:
        return rules.at(rules.unasked)
    read_only = rules.read_only is not False and "reading" not in rules.asks
    edits = "ask" if "edits" in rules.asks else rules.edits or "ask"
    return rules.model_copy(update={"read_only": read_only, "edits": edits})


def _each_for_itself(rules: Rules) -> Rules:
    """Move the file-wide sandbox setting into each rule that allows."""
    # It must not apply to the rules of another file that these are joined with.
    if rules.sandbox is None:
        return rules
    said = {"sandbox": rules.sandbox}
    allow = tuple(rule if rule.sandbox is not None else rule.model_copy(update=said) for rule in rules.allow)
    return rules.model_copy(update={"allow": allow, "sandbox": None})


def joined_rules(first: Rules, second: Rules) -> Rules:
    """Join two sets of rules."""
    # The stricter setting wins: the read-only list is disabled if either file disables it.
    wishes = {first.read_only, second.read_only}
    first, second = _each_for_itself(first), _each_for_itself(second)
    if (first.unasked is None) != (second.unasked is None):
        # One of the files says it with the older keys.
        first, second = (each if each.unasked else as_asks(each) for each in (first, second))
    return Rules(
        deny=(*first.deny, *second.deny),
        ask=(*first.ask, *second.ask),
        allow=(*first.allow, *second.allow),
        read_only=False if False in wishes else True if True in wishes else None,
        edits="ask" if "ask" in (first.edits, second.edits) else first.edits or second.edits,
        unasked=min(filter(None, (first.unasked, second.unasked)), key=UNASKED.index, default=None),
        asks=first.asks | second.asks,
        deletes=min((each for each in (first.deletes, second.deletes) if each is not None), default=None),
        strict=(*first.strict, *second.strict),
        untrusted=(*first.untrusted, *second.untrusted),
        broken="; ".join(filter(None, (first.broken, second.broken))) or None,
    )


def shown_rules(path: Path, rules: Rules) -> list[ShownRule]:
    """Return the rules of one file, in the order in which they decide."""
    return [
        ShownRule(
            effect=effect,
            name=rule.name,
            subject=rule.subject(),
            where=_where(rule),
            because=rule.justification,
            sandbox=_sandbox(effect, rule, rules),
            by_effects="" if rule.allow_if_preview is None else rule.allow_if_preview.words(),
            until=rule.until,
            disabled=rule.disabled,
            file=str(path),
            definition=rule.model_dump(mode="json"),
        )
        for effect, rule in by_effect(rules)
    ]


def shown_project(root: str, files: ProjectRuleFiles, trusted: TrustedContent) -> ProjectRules | None:
    """Return the rules that a workspace brings along. None: it has none."""
    path = Path(root) / PROJECT_RULES_FILE
    if not os.path.lexists(path):
        return None
    try:
        content = files.content(root)
        text = content.decode()
    except (WhisperError, UnicodeDecodeError) as error:
        return ProjectRules(root=root, path=str(path), text="", trusted=False, broken=str(error))
    rules, holds = rules_of_content(content, str(path)), trusted.holds(os.path.realpath(root), content)
    shown = shown_rules(path, trusted_here(rules, root))
    return ProjectRules(
        root=root,
        path=str(path),
        text=text,
        digest=digest_of(content),
        trusted=holds,
        rules=tuple(
            rule.model_copy(
                update={
                    "holds": holds or rule.effect != "allow",
                    # A project's rules are only about sessions with its workspace.
                    "where": rule.where if rule.definition["directory"] else root,
                }
            )
            for rule in shown
        ),
        broken=rules.broken,
        asks_read_only=rules.read_only is False,
    )


def _sandbox(effect: str, rule: Rule, rules: Rules) -> str:
    """The sandbox of the commands that a rule allows, in words. Empty: it allows none."""
    if effect != "allow":
        return ""
    kind = rule.sandbox if rule.sandbox is not None else rules.sandbox
    if kind is False:
        return "none: it runs with all your rights"
    also = f"; it may also run programs in {', '.join(rule.execute)}" if rule.execute else ""
    return Sandbox(kind=kind or "read-only", network=rule.network).words() + also


def _where(rule: Rule) -> str:
    at = f"run at {rule.run_at}" if rule.run_at else f"at {rule.place}" if rule.place else ""
    parts = [rule.directory or "", at, f"tool {rule.tool}" if rule.tool else "", ", ".join(rule.trust)]
    return "; ".join(part for part in parts if part) or "everywhere"
