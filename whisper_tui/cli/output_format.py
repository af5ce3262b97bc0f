"""How subcommands print: JSON, aligned columns, and facts about calls in short words."""

import json
import os
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from whisper_tui.model.text import columns, replace_hidden, visible
from whisper_tui.present.column_words import ending_word, gravest_risk
from whisper_tui.present.quantities import age

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def print_json(
    value: "Any", *, indent: int | None = 2, long: "Mapping[str, Callable[[], Iterable[str]]] | None" = None
) -> None:
    """Print a value as JSON, with letters outside ASCII where standard output can encode them.

    `long` maps placeholders in the value to the pieces of texts that are too long to be held in memory.
    """
    text = _json(value, indent)
    while long:
        at, mark = min((text.find(mark), mark) for mark in long)
        pieces, long = long[mark], {other: long[other] for other in long if other != mark}
        if at < 0:
            continue
        sys.stdout.write(text[:at])
        for piece in pieces():
            sys.stdout.write(_json(piece, None)[1:-1])
        text = text[at + len(mark) :]
    sys.stdout.write(text + "\n")


def _json(value: "Any", indent: int | None) -> str:
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return escaped(json.dumps(value, indent=indent, ensure_ascii=not readable))


def escaped(text: str) -> str:
    """Return JSON text in which invisible characters are written as JSON escapes."""
    return replace_hidden(text, _escape, keep=frozenset("\n"))


def _escape(characters: str) -> str:
    # JSON allows DEL unescaped, and terminals do not show it.
    return json.dumps(characters)[1:-1].replace("\x7f", "\\u007f")


GAP = "  "
NARROWEST = 8
"""Columns of a terminal to which a column is cut at most."""

PIPED = 200
"""Columns of a row where no terminal says how many there are: one script must not make every row as wide as it is."""


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under headings; the widest columns are cut, with …, until a row fits the terminal, or 200 columns."""
    Table(headings).print(rows)


class Table:
    """A table that is printed in parts: its columns become wider when a later part needs it."""

    def __init__(self, headings: Sequence[str]) -> None:
        self._headings = tuple(headings)
        self._widths = [0] * len(headings)
        self._begun = False

    def print(self, rows: Iterable[Sequence[str]]) -> None:
        """Print rows, the first ones under the headings."""
        lines = [*(() if self._begun else (self._headings,)), *map(tuple, rows)]
        if not lines:
            return
        # Column by column: that is several times as fast as cell by cell.
        columns_of_text = list(zip(*lines, strict=True))
        self._widths = [max(each) for each in zip(self._widths, map(_widest, columns_of_text), strict=True)]
        widths, coloured = list(self._widths), shows_colours()
        fit(widths, os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else PIPED)
        cells = [_cells(texts, width) for texts, width in zip(columns_of_text, widths, strict=True)]
        cells[-1] = [text.rstrip() for text in cells[-1]]
        if coloured:
            cells = [self._styled(*each) for each in zip(self._headings, columns_of_text, cells, strict=True)]
        sys.stdout.write("".join([GAP.join(line).rstrip() + "\n" for line in zip(*cells, strict=True)]))
        self._begun = True

    def _styled(self, heading: str, texts: Sequence[str], cells: list[str]) -> list[str]:
        """Return the cells of a column in their colours; the first row ever printed is that of the headings."""
        styles = [_style(heading, text) for text in texts]
        if not self._begun:
            styles[0] = _BOLD
        return [styled(text, style) for text, style in zip(cells, styles, strict=True)]


def _widest(texts: Sequence[str]) -> int:
    return max(map(len, texts)) if "".join(texts).isascii() else max(map(width_of, set(texts)))


def _cells(texts: Sequence[str], width: int) -> list[str]:
    if "".join(texts).isascii():
        return [text.ljust(width) if len(text) <= width else f"{text[: max(0, width - 1)]}…" for text in texts]
    # Ages, states and risks are a few different texts.
    made = {text: cell(text, width) for text in set(texts)}
    return [made[text] for text in texts]


_BOLD, _RED, _GREEN, _YELLOW, _DIM = "1", "1;31", "32", "33", "2"
_DIFF = {"+": _GREEN, "-": "31", "@": "36"}
"""The styles of the lines of a unified difference by their first characters."""
_STATES = {
    "waiting": _YELLOW,
    "set aside": _DIM,
    "running": _GREEN,
    "exit 0": _GREEN,
    "returned": _GREEN,
    "approved": "",
    "not seen": "",
    "ended": "",
    "queued": "",
    "held": "",
    "starting": "",
    "background": "",
}


def shows_colours() -> bool:
    """Return True if standard output is a terminal with colours, and the user does not reject them."""
    # https://no-color.org: any value but the empty one switches colours off.
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in {"", "dumb"}


def styled(text: str, style: str) -> str:
    """Return the text in a style of ANSI escape sequences."""
    return f"\x1b[{style}m{text}\x1b[0m" if style and text.strip() else text


def wrapped(text: str, below: str) -> str:
    """Return a line wrapped at words on a terminal, each further one after `below`; elsewhere as it is."""
    if not sys.stdout.isatty():
        return text
    import textwrap

    width = os.get_terminal_size(sys.stdout.fileno()).columns
    return textwrap.fill(text, max(width, 40), subsequent_indent=below, break_long_words=False, break_on_hyphens=False)


def styled_diff(text: str) -> str:
    """Return the lines of a unified difference in their colours, where standard output shows any."""
    return "\n".join(map(_diff_line, text.split("\n"))) if shows_colours() else text


def _diff_line(line: str) -> str:
    return styled(line, _DIFF.get(line[:1], ""))


def risk_style(text: str) -> str:
    """Return the style of a risk that begins with its sign."""
    return _RED if text.startswith("▲▲") else _YELLOW


def _style(heading: str, text: str) -> str:
    match heading:
        case "RISK":
            return risk_style(text)
        case "STATE" | "OUTCOME":
            # Every other outcome is a failure, a denial or a signal.
            return _STATES.get(text, _RED if heading == "OUTCOME" else "")
        case "AGE" | "DESCRIPTION":
            return _DIM
        case _:
            return ""


def fit(widths: list[int], available: int) -> None:
    """Narrow the widest columns, in place, until all fit or none can be narrower."""
    while sum(widths) + len(GAP) * (len(widths) - 1) > available:
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= NARROWEST:
            return
        widths[widest] -= 1


def cell(text: str, width: int) -> str:
    """The text in exactly so many columns of a terminal."""
    return cut(text, width) + " " * max(0, width - width_of(cut(text, width)))


def cut(text: str, width: int) -> str:
    """The text in at most so many columns; where something is left out, it ends with …"""
    if width_of(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += columns(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…"


def width_of(text: str) -> int:
    """Columns that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(columns, text))


def command_line(command: list[str] | str) -> str:
    """Return an argv quoted for a shell, or the text for a shell, on one line."""
    return visible(shlex.join(command) if isinstance(command, list) else command)


def masked_line(command: list[str] | str) -> str:
    """Return the command on one line with its secrets replaced."""
    from whisper_tui.model.secrets import masked, masked_words

    return command_line(list(masked_words(command)) if isinstance(command, list) else masked(command))


def gravest(row: dict[str, Any]) -> str:
    """The gravest risk of a call in a few words, how many there are besides, and whether code of it was not read."""
    risks = row.get("risks", [])  # An older supervisor names none.
    unread = "not read" if row.get("not_inspected") else ""
    return ", ".join(filter(None, (gravest_risk([(risk["id"], risk["grave"]) for risk in risks]), unread)))


def standing(row: dict[str, Any], seconds: float) -> str:
    """How a call stands, or stood when it ended, and since when."""
    how = outcome(row)
    return f"{how}, {age(seconds)} ago" if row["state"] == "ended" else f"{how} for {age(seconds)}"


def outcome(row: dict[str, Any]) -> str:
    """How a call ended, whether its sandbox blocked it, and its alarm; or the state that it is in."""
    more = (", blocked" if row.get("blocked") else "") + (", undone" if row.get("taken_back") else "") + _alarm(row)
    if row["ending"] is None:
        return state(row)
    carried_out = "function" if row.get("function") else "edits" if row.get("edits") else ""
    return ending_word(row["ending"], row.get("exit_code"), row.get("signal_name"), carried_out) + more


def _alarm(row: dict[str, Any]) -> str:
    alarm = row.get("alarm")
    return f", {alarm['word'].upper()}" if alarm is not None else ""


def state(row: dict[str, Any]) -> str:
    """Return the state of a call that has not ended; a run that gets no further is `paused` or `needs input`."""
    if row.get("paused"):
        return f"paused{_alarm(row)}"
    if row.get("needs_input_since"):
        return f"needs input{_alarm(row)}"
    went_on = (row.get("set_aside") or {}).get("agent_went_on")
    gone = row.get("agent_gave_up") and not went_on and row["state"] in {"waiting", "set aside", "held", "queued"}
    return f"{row['state']}{', agent gone' if gone else ''}{_alarm(row)}"


def since(row: dict[str, Any]) -> float:
    """Return when the state began that `state` names, in seconds since the epoch."""
    # A run that needs input has run for longer: how long it has been silent says how urgent it is.
    silent = None if row.get("paused") else row.get("needs_input_since")
    return float(silent or row["since"])


def cannot_work(problem: str) -> str:
    """Return the supervisor's problem and its remedy as a sentence."""
    return f"The supervisor cannot work as it should: {visible(problem)}"


RESTS = "connected when a call needs it"


def place_lines(places: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield how each place is reached, and how many runs there are not over."""
    for place in places:
        runs = f", {place['running']} running" if place["running"] else ""
        since = age(time.time() - place["since"])
        away = f"unreachable for {since}: {place['problem'].rstrip('.')}" if place["problem"] else RESTS
        reached = f"reached for {since}" if place["reached"] else away
        served = f"; agents there start {place['relay']} mcp" if place.get("relay") else ""
        agents = f", {place['agents']} connected" if place.get("agents") else ""
        yield f"Place {visible(place['name'])} ({visible(place['way'])}): {visible(reached + runs + served)}{agents}"


def print_denials(rows: list[dict[str, Any]]) -> None:
    """Print the denials of sessions as a table."""
    print_table(
        ("ID", "AGE", "SESSION", "COMMANDS", "REASON"),
        [
            (
                row["id"],
                age(time.time() - row["denied_at"]),
                visible(row["session"]),
                f"{command_line(row['words'])} …",
                visible(row["reason"]),
            )
            for row in rows
        ],
    )
