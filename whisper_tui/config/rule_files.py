"""The user's rules on the disk: read again when a file changes, added to and taken away from."""

import tomllib
from pathlib import Path

from whisper_tui.config.file import FILE_NAME as CONFIGURATION
from whisper_tui.config.private_text import private_text
from whisper_tui.config.private_write import write_private
from whisper_tui.config.project_rules import ProjectRules
from whisper_tui.config.trusted_content import Announce, TrustedContent, silent
from whisper_tui.model.errors import BadConfiguration, Refused
from whisper_tui.model.home import Home
from whisper_tui.policy.examples import EFFECTS, Effect, by_effect, failed_examples
from whisper_tui.policy.rules import Rule, Rules
from whisper_tui.policy.rules_file import read_rules, rules_text, shape_problem
from whisper_tui.supervisor.rule_trust import RuleTrust, mark_of

FILE_NAME = "rules.toml"
"""Rules that were saved by approvals and by `whisper-tui rules`; those written by hand may stand in it, too."""


Stamp = tuple[int, int, int]
MISSING: Stamp = (0, 0, 0)


class RuleFiles:
    """The rules of one instance: those of the configuration file, of the rules file, and of each workspace."""

    def __init__(self, home: Home, configured: Rules, announce: Announce = silent) -> None:
        self._configured = configured
        self.configuration = Path(home.config) / CONFIGURATION
        """The file that the configured ones stand in."""
        self._announce = announce
        self._trust: RuleTrust | None = None
        self.path = Path(home.config) / FILE_NAME
        self._seen: tuple[Stamp, int] | None = None
        self._saved = Rules()
        self._own = configured
        self._whole: tuple[Rules, Rules, Rules] | None = None
        """The saved rules, those of a project, and both with the configured ones, as they were wanted last."""
        self.trusted = TrustedContent(home, announce)
        self.project = ProjectRules(self.trusted)

    def follow(self, trust: RuleTrust) -> None:
        """Let only that hold which is trusted there, and have what is written here trusted: as the supervisor does."""
        self._trust = self.trusted.trust_of = trust
        self._announce = self.trusted.announce = trust.extend

    def current(self, root: str = "") -> Rules:
        """All rules that hold now for sessions with this workspace. A file that cannot be read makes all be asked."""
        stamp, version = self._stamp(), self._trust.version if self._trust else 0
        if stamp is None or (stamp, version) != self._seen:
            self._saved = self._screened(self.path, self.saved())
            self._own = self._screened(self.configuration, self._configured)
            version = self._trust.version if self._trust else 0
            self._seen = None if stamp is None else (stamp, version)
        saved, project = self._saved, self.project.of(root)
        if self._whole is None or self._whole[0] is not saved or self._whole[1] is not project:
            self._whole = (saved, project, looking(joined(joined(self._own, saved), project)))
        return self._whole[2]

    def _screened(self, path: Path, rules: Rules) -> Rules:
        """The same rules as long as nothing keeps any of them from holding."""
        return rules if self._trust is None else self._trust.screen(str(path), rules)

    def saved(self) -> Rules:
        """The rules of the rules file alone."""
        try:
            document = tomllib.loads(private_text(self.path) or "")
        except (BadConfiguration, tomllib.TOMLDecodeError) as error:
            return Rules(broken=f"{self.path}: {error}")
        return read_rules(document, str(self.path), table="")

    def add(self, effect: Effect, rule: Rule) -> None:
        """Write one more rule. Raises `Refused` for one that would not be read back, or whose examples fail."""
        problem = shape_problem(rule) or "; ".join(failed_examples(effect, rule))
        if problem:
            raise Refused(f"the rule {rule.name!r} {problem}", hint="Change it, then add it again")
        rules = self._readable()
        self._announce(str(self.path), (mark_of(effect, rule),), ())
        self._write(rules.model_copy(update={effect: (*getattr(rules, effect), rule)}))

    def keep(self, rule: Rule) -> None:
        """Write a rule that allows, from an approval; once, however often that is tried."""
        if rule not in self._readable().allow:
            self.add("allow", rule)

    def remove(self, name: str) -> int:
        """Take away the rules of that name. Returns how many there were. Raises `Refused` if there were none."""
        rules = self._readable()
        kept: dict[str, tuple[Rule, ...]] = {
            effect: tuple(r for r in getattr(rules, effect) if r.name != name) for effect in EFFECTS
        }
        gone = sum(len(getattr(rules, effect)) - len(kept[effect]) for effect in EFFECTS)
        if not gone:
            raise Refused(f"there is no rule {name!r} in {self.path}", hint="whisper-tui rules list shows them")
        marks = tuple(mark_of(effect, rule) for effect, rule in by_effect(rules) if rule.name == name)
        self._announce(str(self.path), (), marks)
        self._write(rules.model_copy(update=kept))
        return gone

    def _readable(self) -> Rules:
        rules = self.saved()
        if rules.broken:
            raise Refused(f"the rules cannot be changed while they cannot be read: {rules.broken}", hint="Correct them")
        return rules

    def _write(self, rules: Rules) -> None:
        write_private(self.path, rules_text(rules))

    def _stamp(self) -> Stamp | None:
        """None: nothing can be said about the file."""
        try:
            about = self.path.stat()
        except FileNotFoundError:
            return MISSING
        except OSError:
            return None
        return (about.st_mtime_ns, about.st_size, about.st_ino)


def rules_in(path: Path) -> Rules:
    """The rules of any one file, as if it were the only one: a rules file, or the table `rules` of a configuration.

    Raises `BadConfiguration` if there is none or it is no TOML.
    """
    text = private_text(path)
    if text is None:
        raise BadConfiguration(f"there is no file {path}", hint="Name a file of rules")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfiguration(f"{path} is not valid TOML: {error}", hint="Correct it, then try again") from error
    inside = "rules" in document
    return looking(read_rules(document["rules"] if inside else document, str(path), table="rules" if inside else ""))


def looking(rules: Rules) -> Rules:
    """The rules with the list of commands that only look switched on, where no file has said anything about it."""
    return rules if rules.read_only is not None else rules.model_copy(update={"read_only": True})


def _each_for_itself(rules: Rules) -> Rules:
    """What a file says about all of its rules, said by each of them: it is not about another file's."""
    if rules.sandbox is None:
        return rules
    said = {"sandbox": rules.sandbox}
    allow = tuple(rule if rule.sandbox is not None else rule.model_copy(update=said) for rule in rules.allow)
    return rules.model_copy(update={"allow": allow, "sandbox": None})


def joined(first: Rules, second: Rules) -> Rules:
    """Two sets of rules as one. What only looks is asked as soon as either wants that."""
    wishes = {first.read_only, second.read_only}
    first, second = _each_for_itself(first), _each_for_itself(second)
    return Rules(
        deny=(*first.deny, *second.deny),
        ask=(*first.ask, *second.ask),
        allow=(*first.allow, *second.allow),
        read_only=False if False in wishes else True if True in wishes else None,
        strict=(*first.strict, *second.strict),
        broken="; ".join(filter(None, (first.broken, second.broken))) or None,
    )
