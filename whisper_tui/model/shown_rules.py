"""The rules as lists show them, and the verdict on a command that nobody has submitted."""

from typing import Any, Literal

from pydantic import Field

from whisper_tui.model.decision import Coverage
from whisper_tui.model.value import Value
from whisper_tui.model.verdict import Resolved, Verdict

RuleEffect = Literal["deny", "ask", "allow"]

SAVED_WITH = "saved with the approval of call "
"""The beginning of the justification of a rule that was saved with an approval. The id of the call follows."""


class ShownRule(Value):
    """One rule."""

    effect: RuleEffect
    name: str
    """The name under which it decides."""
    subject: str
    """Its commands, in short."""
    where: str
    """Its directory, tool or sessions, in words; `everywhere` without any."""
    because: str = ""
    sandbox: str = ""
    """The sandbox of the commands that it allows, in words; empty if it allows none."""
    by_effects: str = ""
    """The effects under which a rule that asks lets a previewed command through, in words; empty if it does not."""
    until: float | None = None
    """Expiry in seconds since the epoch; None for never."""
    removable: bool = False
    """True if it is in the rules file, which `remove_rule` changes."""
    holds: bool = True
    """False for a rule that allows, while its file is not trusted (decision 10)."""
    disabled: bool = False
    """True if it decides nothing until it is enabled again."""
    file: str = ""
    """Path of the file that defines it."""
    definition: dict[str, Any] = Field(default_factory=dict)
    """All fields of the rule, as `add_rule` takes them."""


class StarterSet(Value):
    """The rules that the files of a workspace propose for its tests, builds and checks, and that are not saved."""

    root: str
    rules: tuple[ShownRule, ...] = ()
    """None of them is in force."""


class ProjectRules(Value):
    """The rules file of a workspace."""

    root: str
    path: str
    """The file."""
    text: str
    """Its content."""
    digest: str = ""
    """Of its content, for `trust_project`. Empty: it cannot be read."""
    trusted: bool
    rules: tuple[ShownRule, ...] = ()
    broken: str | None = None
    """Why the file cannot be read, in which case every command there is asked."""
    asks_read_only: bool = False
    """True if it has read-only commands asked there."""


class RuleList(Value):
    """All rules, in the order in which they decide."""

    rules: tuple[ShownRule, ...] = ()
    read_only_runs: bool = False
    """True if read-only commands run without approval."""
    edits_run: bool = False
    """True if edits of ordinary files of the workspace do."""
    held_back_run: bool = False
    """True if commands that change only the workspace do, held back until that is known."""
    broken: str | None = None
    """Why rules could not be read, in which case none of them allows anything."""
    projects: tuple[ProjectRules, ...] = ()
    path: str = ""
    """The rules file, which a human may edit."""
    read_only: tuple[str, ...] = ()
    """The built-in list of commands that only read: programs, and subcommands of others."""
    starters: tuple[StarterSet, ...] = ()
    """The proposals of the listed workspaces, where there are any."""

    def project_of(self, rule: ShownRule) -> ProjectRules | None:
        """Return the project of a rule; None for a rule of the user."""
        # By identity: two projects can have rules with the same content.
        return next((project for project in self.projects if any(rule is one for one in project.rules)), None)

    def in_order(self) -> tuple[ShownRule, ...]:
        """The rules of the user with those of the listed projects that hold, disabled ones too, as they decide."""
        projects = (rule for project in self.projects for rule in project.rules if rule.holds)
        # Sorting is stable: within an effect, rules of the user come before those of projects.
        return tuple(sorted((*self.rules, *projects), key=lambda rule: ("deny", "ask", "allow").index(rule.effect)))

    def in_force(self) -> tuple[ShownRule, ...]:
        """The rules that decide, in their order."""
        return tuple(rule for rule in self.in_order() if not rule.disabled)


class Judgement(Value):
    """The policy's verdict on a command."""

    verdict: Verdict
    resolved: Resolved
    place: str = ""
    """Where the command would run. Empty: on this machine."""


class RuleDraft(Value):
    """A rule as a person writes it: its effect, and its fields as a rules file has them."""

    effect: RuleEffect
    definition: dict[str, Any] = Field(default_factory=dict)


class RuleProblem(Value):
    """A reason why a draft is no rule."""

    field: str
    """The field that it is about; `subject` for the choice among those of the commands."""
    clause: str


class RuleTrial(Value):
    """The effect that a draft of a rule would have."""

    problems: tuple[RuleProblem, ...] = ()
    """With any, the draft was not tried."""
    warning: str = ""
    """A sentence about a rule that is valid and allows too much."""
    coverage: Coverage = Coverage(looked_at=0)
    """The past calls that the rule alone would have allowed, or that a rule that asks or denies would have matched."""
    judgement: Judgement | None = None
    """The verdict on the tested command, with the rule in place. None: no command was tested."""
