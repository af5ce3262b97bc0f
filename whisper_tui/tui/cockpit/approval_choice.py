"""How the next approval is given: for how long it holds, and in which way the call runs (decision 43)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from whisper_tui.model.decision import Approve, RuleScope, Scope, ToolScope
from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.present.words import rule_words
from whisper_tui.tui.command_definition import has_preview

Reach = Literal["once", "session", "always"]
Way = Literal["as previewed", "normally", "held back", "sandboxed", "sandboxed, network", "read-only"]

REACHES: tuple[Reach, ...] = ("once", "session", "always")
SANDBOXES: dict[Way, Sandbox] = {
    "sandboxed": Sandbox(kind="workspace"),
    "sandboxed, network": Sandbox(kind="workspace", network=True),
    "read-only": Sandbox(),
}
OfferedRule = RuleScope | ToolScope
Option = TypeVar("Option", bound=str)


@dataclass(frozen=True)
class ApprovalChoice:
    """The reach and the way of an approval, each with the options that the call has."""

    reach: Reach
    way: Way
    ways: tuple[Way, ...]
    """The possible ways, the usual one first."""
    rule: OfferedRule | None = None
    """The rule that *always* saves: the one whose offer is on the screen. None: there is none."""

    @property
    def reaches(self) -> tuple[Reach, ...]:
        """The possible reaches, the usual one first."""
        return REACHES if self.rule is not None else REACHES[:2]

    def decision(self, record: CallRecord) -> Approve:
        """Return the approval of a call."""
        report = record.preview.report if record.preview is not None else None
        remember: dict[Reach, Scope | None] = {"once": None, "session": "exact_for_session", "always": self.rule}
        return Approve(
            remember=remember[self.reach],
            sandbox=SANDBOXES.get(self.way),
            preview=report.digest if self.way == "as previewed" and report is not None else None,
            undoable=True if self.way == "held back" else None,
        )

    @property
    def words(self) -> str:
        """Consequences of the approval that a usual one does not have. Empty: it is the usual one."""
        later = "later ones run normally" if self.reach != "once" and self.way in {"as previewed", "held back"} else ""
        parts = [self._reach_words(), self._way_words(), later]
        return "; ".join(part for part in parts if part)

    def _reach_words(self) -> str:
        if self.reach == "session":
            return "the same call in the same directory is not asked about again in this session"
        if self.reach == "always" and self.rule is not None:
            return f"saves the rule for {rule_words(self.rule)} in this workspace"
        return ""

    def _way_words(self) -> str:
        if self.way == self.ways[0]:
            return ""
        if (sandbox := SANDBOXES.get(self.way)) is not None:
            return f"in a sandbox: {sandbox.words()}"
        held = "its changes are held back until it ends, and can be undone"
        return held if self.way == "held back" else "runs it for real, whatever the preview has shown"


def _ways(record: CallRecord) -> tuple[Way, ...]:
    usual: tuple[Way, ...] = ("as previewed", "normally") if has_preview(record) else ("normally",)
    if record.function is not None or record.spec.place:
        return usual
    never = record.verdict is not None and record.verdict.preview == "never"
    return (*usual, *(() if never else ("held back",)), *SANDBOXES)


class ApprovalChoices:
    """Remembers what was chosen for the call on the screen; for every other call, and version, it is the usual again.

    An approval must never be given in a way that was chosen for what is not on the screen any more (decision 23).
    """

    def __init__(self, offered: Callable[[CallRecord], OfferedRule | None]) -> None:
        """`offered` returns the rule whose offer is on the screen."""
        self._offered = offered
        self._chosen: ApprovalChoice | None = None
        self._about: tuple[str, str] = "", ""

    def of(self, record: CallRecord) -> ApprovalChoice | None:
        """Return how `a` would approve a call. None: it does not wait."""
        if not isinstance(record.state, Waiting):
            return None
        ways, rule = _ways(record), self._offered(record)
        chosen = self._chosen
        # The digest comes last: it takes long where a call has megabytes.
        if chosen is None or self._about[0] != record.id or self._about[1] != record.seen_digest():
            self._chosen = None
            return ApprovalChoice("once", ways[0], ways, rule)
        # What became impossible is the usual again, and so is the way when the usual one has changed.
        way = chosen.way if chosen.way in ways and ways[0] == chosen.ways[0] else ways[0]
        reach = "once" if chosen.reach == "always" and chosen.rule != rule else chosen.reach
        return ApprovalChoice(reach, way, ways, rule)

    def next_reach(self, record: CallRecord) -> None:
        """Choose the next reach; after the last, the usual one."""
        if (now := self.of(record)) is not None:
            self._choose(record, ApprovalChoice(_following(now.reaches, now.reach), now.way, now.ways, now.rule))

    def usual_way(self, record: CallRecord) -> Way | None:
        """Return the way in which a call runs if nothing is chosen. None: it does not wait."""
        now = self.of(record)
        return None if now is None else now.ways[0]

    def following_way(self, record: CallRecord) -> Way | None:
        """Return the way after the one that is chosen; after the last, the usual one. None: it does not wait."""
        now = self.of(record)
        return None if now is None else _following(now.ways, now.way)

    def choose_way(self, record: CallRecord, way: Way) -> None:
        """Choose a way."""
        if (now := self.of(record)) is not None and way in now.ways:
            self._choose(record, ApprovalChoice(now.reach, way, now.ways, now.rule))

    def _choose(self, record: CallRecord, choice: ApprovalChoice) -> None:
        self._chosen, self._about = choice, (record.id, record.seen_digest())


def _following(options: Sequence[Option], now: Option) -> Option:
    return options[(options.index(now) + 1) % len(options)]
