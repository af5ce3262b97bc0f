"""The rules that decide without a human, as far as the cockpit shows and changes them; whoever opens it has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from whisper_tui.model.verdict import Resolved, Verdict

Effect = Literal["deny", "ask", "allow"]


@dataclass(frozen=True)
class ShownRule:
    """One rule that holds."""

    effect: Effect
    name: str
    """How it is called where it decides."""
    subject: str
    """What it is about, in short."""
    where: str
    """For which directory, tool or sessions, in words; `everywhere`."""
    because: str = ""
    sandbox: str = ""
    """How what it allows is confined, in words. Empty: it allows nothing."""
    until: float | None = None
    """Seconds since the epoch when it ends. None: never."""
    removable: bool = False
    """Whether it stands in the file that can be changed from here."""
    holds: bool = True
    """Whether it decides: what allows does not, as long as its file is not trusted."""
    entry: str = ""
    """How the journal knows it. Empty: it is a project's."""


@dataclass(frozen=True)
class ProjectRules:
    """The rules that a workspace brings along."""

    root: str
    path: str
    """Its file."""
    text: str
    """What the file holds."""
    trusted: bool
    rules: tuple[ShownRule, ...] = ()
    broken: str | None = None
    """Why they cannot be read. Then everything is asked there."""


@dataclass(frozen=True)
class RuleList:
    """All rules that hold, in the order in which they decide."""

    rules: tuple[ShownRule, ...] = ()
    looking_runs: bool = False
    """Whether commands that certainly only look run without being asked."""
    broken: str | None = None
    """Why rules could not be read. Then nothing is allowed by them."""
    projects: tuple[ProjectRules, ...] = ()

    def project_of(self, rule: ShownRule) -> ProjectRules | None:
        """Whose rule it is. None: the user's."""
        return next((project for project in self.projects if any(rule is one for one in project.rules)), None)


@dataclass(frozen=True)
class Judgement:
    """What would be said to a command."""

    verdict: Verdict
    resolved: Resolved


class RuleBook(Protocol):
    """Reads and changes files, so it is asked outside the loop that draws. Errors are `WhisperError`s."""

    @property
    def path(self) -> Path:
        """The file of rules that may be edited."""
        ...

    def rules(self, roots: Sequence[str] = ()) -> RuleList:
        """The rules as they are now, with those that these workspaces bring along."""
        ...

    def judge(self, text: str, directory: str) -> Judgement:
        """What would be said to a line for a shell, asked in a session with this workspace."""
        ...

    def trust(self, project: ProjectRules, *, trusted: bool) -> None:
        """Trust the rules of a project as they were shown, or trust them no more."""
        ...

    def remove(self, name: str) -> None:
        """Take the rules of a name out of the file."""
        ...
