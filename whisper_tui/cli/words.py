"""Facts about calls as short words for a terminal; text from agents is made visible."""

import shlex
from typing import Any

from whisper_tui.model.text import visible

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def age(seconds: float) -> str:
    """Like 3s, 2m, 5h or 4d, rounded down."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def command_line(command: list[str] | str) -> str:
    """An argv as one would type it, or the shell's text, on one line."""
    return visible(shlex.join(command) if isinstance(command, list) else command)


def masked_line(command: list[str] | str) -> str:
    """The same with every secret in it replaced: for what stays on a terminal or in a log."""
    from whisper_tui.model.masking import masked, masked_words

    return command_line(list(masked_words(command)) if isinstance(command, list) else masked(command))


def risk_sign(risk: dict[str, Any]) -> str:
    """Two signs for a grave risk, one for any other, as in the cockpit."""
    return "▲▲" if risk["grave"] else "▲"


def gravest(row: dict[str, Any]) -> str:
    """The gravest risk of a call in a few words, and how many there are besides; nothing where none was found."""
    risks = sorted(row.get("risks", []), key=lambda risk: not risk["grave"])  # An older supervisor names none.
    if not risks:
        return ""
    more = f" +{len(risks) - 1}" if len(risks) > 1 else ""
    return f"{risk_sign(risks[0])} {risks[0]['id'].replace('-', ' ')}{more}"


def standing(row: dict[str, Any], seconds: float) -> str:
    """How a call stands, or stood when it ended, and since when."""
    how = outcome(row)
    return f"{how}, {age(seconds)} ago" if row["state"] == "ended" else f"{how} for {age(seconds)}"


def outcome(row: dict[str, Any]) -> str:
    """How a call ended, and whether its sandbox blocked it, or the state that it is in."""
    blocked = ", blocked" if row.get("blocked") else ""
    match row["ending"]:
        case None:
            return state(row)
        case "exited":
            return f"exit {row['exit_code']}{blocked}"
        case "signalled":
            return f"{row['signal_name']}{blocked}"
        case kind:
            return str(kind).replace("_", " ") + blocked


def state(row: dict[str, Any]) -> str:
    """Where a call stands that has not ended; a run that is held still is paused."""
    if row.get("paused"):
        return "paused"
    gone = row.get("agent_gave_up") and row["state"] in {"waiting", "held", "queued"}
    return f"{row['state']}, agent gone" if gone else str(row["state"])


def cannot_work(problem: str) -> str:
    """What a supervisor says that keeps it from working, and what to do, as a sentence."""
    return f"The supervisor cannot work as it should: {visible(problem)}"
