"""The filters of the history, and their buttons."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button

from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.ending import Denied, Exited, Lost, Withdrawn
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tui.keymap import in_force
from whisper_tui.tui.messages import CommandRequested

VerdictIs = Literal["any", "allowed", "asked", "refused"]
EndingIs = Literal["any", "exit 0", "failed", "denied", "withdrawn", "lost", "still open"]
DeciderIs = Literal["anyone", "a human", "me", "a rule", "memory", "nobody yet"]
PeriodIs = Literal["any", "last hour", "last 24 hours", "last 7 days", "last 30 days", "earlier"]

SECONDS: dict[PeriodIs, float] = {
    "last hour": 3600,
    "last 24 hours": 86_400,
    "last 7 days": 7 * 86_400,
    "last 30 days": 30 * 86_400,
}
EARLIER_S = SECONDS["last 30 days"]
"""The age in seconds from which calls are *earlier*."""

Choice = TypeVar("Choice", VerdictIs, EndingIs, DeciderIs, PeriodIs)


@dataclass(frozen=True)
class Filters:
    """The conditions that calls of the list meet."""

    text: str = ""
    session_id: str | None = None
    verdict: VerdictIs = "any"
    ending: EndingIs = "any"
    decider: DeciderIs = "anyone"
    period: PeriodIs = "any"

    @property
    def narrow(self) -> bool:
        """True if any filter is set."""
        return self != Filters()

    def query(self, limit: int, before: str | None, after: str | None = None) -> HistoryQuery:
        """Return the part of the filters that the journal can apply (decision 26)."""
        return HistoryQuery(
            limit=limit,
            before=before,
            after=after,
            session_id=self.session_id,
            text=self.text.strip(),
            open_only=self.ending == "still open",
        )

    def since(self, now: float) -> float | None:
        """Return the arrival of the oldest matching call in seconds since the epoch; None without that limit."""
        seconds = SECONDS.get(self.period)
        return now - seconds if seconds is not None else None

    def until(self, now: float) -> float | None:
        """Return the arrival of the newest matching call; None without that limit."""
        return now - EARLIER_S if self.period == "earlier" else None

    def matches(self, record: CallRecord, me: str) -> bool:
        """True if a call meets the filters that the journal cannot apply. `me`: the name of this person."""
        return self._judged_like_that(record) and self._ended_like_that(record) and self._decided_like_that(record, me)

    def _judged_like_that(self, record: CallRecord) -> bool:
        if self.verdict == "any":
            return True
        kind = record.verdict.kind if record.verdict is not None else None
        return kind == {"allowed": "allow", "asked": "ask", "refused": "refuse"}[self.verdict]

    def _ended_like_that(self, record: CallRecord) -> bool:
        ending = record.state.ending if isinstance(record.state, Ended) else None
        match self.ending:
            case "any":
                return True
            case "exit 0":
                return isinstance(ending, Exited) and ending.code == 0
            case "failed":
                other = isinstance(ending, Denied | Withdrawn | Lost) or ending is None or ending.kind == "handed_over"
                return not other and not (isinstance(ending, Exited) and ending.code == 0)
            case "still open":
                return record.is_open
            case kind:
                return ending is not None and ending.kind == kind

    def _decided_like_that(self, record: CallRecord, me: str) -> bool:
        surface = record.decided_by.surface if record.decided_by is not None else None
        match self.decider:
            case "anyone":
                return True
            case "nobody yet":
                return surface is None
            case "a rule":
                return surface == "rule"
            case "memory":
                return surface == "memory"
            case "me":
                return is_human(record) and record.decided_by is not None and record.decided_by.who == me
            case "a human":
                return is_human(record)


def is_human(record: CallRecord) -> bool:
    """True if a human decided the call."""
    return record.decided_by is not None and record.decided_by.surface not in {"rule", "memory", "agent"}


def _following(choices: tuple[Choice, ...], now: Choice) -> Choice:
    return choices[(choices.index(now) + 1) % len(choices)]


NEXT: dict[str, Callable[[Filters], Filters]] = {
    "verdict": lambda now: replace(now, verdict=_following(get_args(VerdictIs), now.verdict)),
    "ending": lambda now: replace(now, ending=_following(get_args(EndingIs), now.ending)),
    "decider": lambda now: replace(now, decider=_following(get_args(DeciderIs), now.decider)),
    "period": lambda now: replace(now, period=_following(get_args(PeriodIs), now.period)),
}
"""Each filter with the function that sets its next choice."""


IDS = ("history-verdict", "history-ending", "history-decider", "history-period", "history-session")


class FilterButtons(Horizontal):
    """A button for each filter."""

    def compose(self) -> ComposeResult:
        """The buttons, without focus because each has a key."""
        for command in map(in_force(self.app).by_id, IDS):
            button = Button("", id=f"chip-{command.id}", compact=True)
            button.can_focus = False
            button.tooltip = command.help
            yield button

    def show(self, filters: Filters, session: str) -> None:
        """Show the choices. `session`: the name of the chosen session, if any."""
        chosen = {
            "history-verdict": filters.verdict,
            "history-ending": filters.ending,
            "history-decider": filters.decider,
            "history-period": filters.period,
            "history-session": session if filters.session_id is not None else "any",
        }
        for command in map(in_force(self.app).by_id, chosen):
            value = chosen[command.id]
            some = value not in {"any", "anyone"}
            button = self.query_one(f"#chip-{command.id}", Button)
            words = f"{command.label.lower()}: {value}" if some else command.label
            button.label = Content.assemble((f"{command.key_name} ", "bold"), words)
            button.set_class(some, "-chosen")
            button.refresh(layout=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.post_message(CommandRequested((event.button.id or "").removeprefix("chip-")))
