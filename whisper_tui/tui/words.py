"""Times, sizes, signals and endings in the words that a person reads."""

import signal
import time

from whisper_tui.model.call import Session
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import (
    Denied,
    Ending,
    Exited,
    FailedToStart,
    HandedOver,
    Lost,
    Signalled,
    TimedOut,
    Withdrawn,
)
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.rule_names import whose_rule
from whisper_tui.model.text import beginning

LIMITS = {"cpu": "processor time", "memory": "memory", "processes": "processes"}
LONGEST_NAME = 100
"""Characters of a name in a line with other words."""
LONGEST_SAID = 4000
"""Characters of a reason that are shown."""
LONGEST_TOLD = 1000
"""Characters of what is said in passing."""
REMOVED = "The output was removed from the disk, or a part of it; all else about the call is kept."


def age(seconds: float) -> str:
    """A rough time in at most four characters, for columns: 42s, 12m, 3h, 5d."""
    seconds = max(0, int(seconds))
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "m"), (86_400, 3600, "h")):
        if seconds < limit:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86_400}d"


def duration(seconds: float) -> str:
    """A time that was measured: 0.12 s, 4.2 s, 1 min 05 s, 2 h 03 min."""
    if seconds < 1:
        return f"{max(0.0, seconds):.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60:02d} min"


def limit(seconds: float) -> str:
    """A time that was set, without digits that nobody set: 30 s, 2 min, 1 h 30 min."""
    if seconds < 60 or seconds % 60:
        return f"{seconds:g} s"
    hours, minutes = divmod(int(seconds) // 60, 60)
    return " ".join(part for part in (f"{hours} h" * bool(hours), f"{minutes} min" * bool(minutes)) if part)


def size(count: int) -> str:
    """A number of bytes: 0 B, 812 B, 1.2 kB, 34 MB."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 999.5:
            return f"{amount:.1f} {unit}" if amount < 99.95 else f"{amount:.0f} {unit}"
    return f"{amount:.0f} PB"


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun: 1 call, 2 calls."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def clock_time(at: float) -> str:
    """The time of day, local."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def split_second(at: float) -> str:
    """The time of day with milliseconds, local, in twelve characters."""
    return f"{clock_time(at)}.{int(at * 1000) % 1000:03d}"


def signal_name(number: int) -> str:
    """A signal by its name: SIGTERM; by its number where it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def in_passing(text: str) -> str:
    """As much of a text as is said in passing, fit to be shown."""
    return beginning(text, LONGEST_TOLD)


def told(error: WhisperError) -> str:
    """An error as sentences of a text: with a capital letter and a full stop."""
    text = in_passing(error.sentence())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def called(session: Session | None, session_id: str) -> str:
    """The name of a session, fit for a line."""
    return beginning(session.name if session is not None else session_id, LONGEST_NAME)


def decider(by: Decider) -> str:
    """Who decided, and through what."""
    who = beginning(by.who, LONGEST_NAME)
    match by.surface:
        case "rule":
            return f"by {whose_rule(who)}"
        case "memory":
            return "by an approval for this session"
        case "library":
            return f"by {who} through the library" if who else "through the library"
        case "demo":
            return "by the demo"
        case _:
            return f"by {who} in the {by.surface}" if who else f"in the {by.surface}"


def ending_word(ending: Ending) -> str:
    """How it ended in one or two words, for a column."""
    match ending:
        case Exited(code=code):
            return f"exit {code}"
        case Signalled(number=number):
            return signal_name(number)
        case TimedOut():
            return "timed out"
        case FailedToStart():
            return "not started"
        case Denied():
            return "denied"
        case Withdrawn():
            return "withdrawn"
        case HandedOver():
            return "not seen"
        case Lost():
            return "lost"


def ending_sentence(ending: Ending, *, by_agent: bool = False) -> str:
    """How it ended, in full. `by_agent`: whether a signal that ended it was its agent's."""
    match ending:
        case Exited(code=0):
            return "Ended with exit code 0"
        case Exited(code=code):
            return f"Failed with exit code {code}"
        case Signalled(number=number, by_us=by_us, core_dumped=core_dumped, limit=broken):
            source = ("sent by its agent" if by_agent else "sent from here") if by_us else "not sent from here"
            source = f"because it was at its limit of {LIMITS[broken]}" if broken else source
            core = "; it left a core dump" if core_dumped else ""
            return f"Ended by {signal_name(number)} ({number}), {source}{core}"
        case TimedOut(after_s=after_s):
            return f"Timed out after {limit(after_s)} and was ended"
        case FailedToStart(message=message):
            return f"Never started: {beginning(message, LONGEST_SAID)}"
        case Denied(by=by, reason=reason):
            return f"Denied {decider(by)}" + (
                f": {beginning(reason, LONGEST_SAID)}" if reason else ", without a reason"
            )
        case Withdrawn(why=why):
            return f"Withdrawn: {beginning(why, LONGEST_SAID)}"
        case HandedOver():
            return "Approved, and run by the agent itself: what became of it is not seen here"
        case Lost(why=why):
            return f"Lost: {beginning(why, LONGEST_SAID)}"


def went_well(ending: Ending) -> bool:
    """Whether there is nothing to look at: it ended by itself, with 0, or nobody here can see."""
    return isinstance(ending, HandedOver) or (isinstance(ending, Exited) and ending.code == 0)
