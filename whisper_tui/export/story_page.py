"""Sessions as one page of HTML: a picture of what each did over time, and its calls.

The page needs nothing else and runs nothing: it has no script, no address but those within it, and says so in a policy
that the browser enforces. Text of agents is data in it (decision 21).
"""

import base64
import hashlib
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from whisper_tui.export.session_story import LONGEST_WORDS, Row
from whisper_tui.model.call import Session
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.present.quantities import count, duration
from whisper_tui.present.session_text import session_number
from whisper_tui.present.tool_text import MINUS

LEFT, PLOT, RIGHT, LANE = 190, 700, 110, 18
"""Columns of the picture for names, for time and for sums, and the height of a lane, in its own units."""
GAP = 26
"""The width of a time in which nothing happened."""
LONGEST_PAUSE_S = 900.0
"""A longer time in which nothing happened is not drawn in proportion: a night would leave no room for the day."""
MOST_LANES = 10
"""Lanes of one kind; what belongs to others shares one more."""
LONGEST_LABEL = 26
LEAST_MARK = 3.0


STYLE = Path(__file__).with_name("story_page.css").read_text(encoding="utf-8")
"""The one style sheet of a page."""


class Mark(NamedTuple):
    """Something that a call did, at a time or for a time."""

    start: float
    end: float
    kind: str
    """The class of its colour."""
    call_id: str
    words: str
    height: float = 0.6
    """Part of the height of a lane."""
    sign: str = ""
    """A character in the place of a bar."""


class Lane(NamedTuple):
    """One row of the picture."""

    name: str
    marks: tuple[Mark, ...]
    total: str


class TimeAxis:
    """Places times from left to right, with long pauses cut short."""

    def __init__(self, spans: Iterable[tuple[float, float]]) -> None:
        """`spans`: when something happened."""
        self.parts: list[tuple[float, float]] = []
        """The times that are drawn in proportion."""
        for start, end in sorted(spans):
            if self.parts and start - self.parts[-1][1] <= LONGEST_PAUSE_S:
                self.parts[-1] = (self.parts[-1][0], max(self.parts[-1][1], end))
            else:
                self.parts.append((start, end))
        self.seconds = max(1.0, sum(end - start for start, end in self.parts))
        # A month of single calls has more pauses than there is room for.
        self.gap = min(GAP, PLOT / 2 / max(1, len(self.parts) - 1))
        self._unit = (PLOT - self.gap * (len(self.parts) - 1)) / self.seconds

    def place(self, at: float) -> float:
        """Return how far right a time is."""
        left = float(LEFT)
        for start, end in self.parts:
            if at <= end:
                return left + max(0.0, at - start) * self._unit
            left += (end - start) * self._unit + self.gap
        return float(LEFT + PLOT)

    def pauses(self) -> Iterator[tuple[float, float]]:
        """Yield the place of each pause that is cut short, and how long it was."""
        for (_, end), (start, _) in zip(self.parts, self.parts[1:], strict=False):
            yield self.place(end), start - end

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield places on the axis and their times."""
        steps = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 43200, 86400)
        step = next((each for each in steps if self.seconds / each <= 8), 86400 * math.ceil(self.seconds / 691200))
        last = -math.inf
        for start, end in self.parts:
            # Round times of this machine's time zone.
            offset = time.localtime(start).tm_gmtoff
            at = math.ceil((start + offset) / step) * step - offset
            found = [start] if at > end or len(self.parts) > 1 else []
            while at <= end:
                found.append(at)
                at += step
            for each in found:
                if (place := self.place(each)) - last >= 60:
                    last = place
                    yield place, time.strftime("%H:%M:%S" if step < 60 else "%H:%M", time.localtime(each))


def page(stories: Sequence[tuple[Session, Sequence[Row]]]) -> Iterator[str]:
    """Yield the page with these sessions and the rows of their stories, which have their secrets masked."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    names = ", ".join(visible(session.name) for session, _ in stories)
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(names)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
    for session, rows in stories:
        yield from _section(session, rows)
    yield "<footer><p>Written by whisper-tui story --html. Secrets that were recognized are masked.</p></footer>\n"
    yield "</body>\n</html>\n"


def _text(text: str) -> str:
    """Return text for between tags or for an attribute; hidden characters are made visible."""
    return escape(visible(text), quote=True)


def _isolated(text: str) -> str:
    """Return text that cannot change the order of what is around it, in whichever script it is."""
    return f"<bdi>{_text(text)}</bdi>"


def _section(session: Session, rows: Sequence[Row]) -> Iterator[str]:
    client = session.client.name if session.client is not None else "an agent"
    yield f'<h1><span class="mark">{_text(session_number(session.id))}</span> {_isolated(session.name)}</h1>\n'
    yield f"<p>{_isolated(client)} in {_isolated(session.root)}</p>\n"
    yield f'<p class="muted">{_text(summary(rows))}</p>\n'
    if rows:
        yield '<div class="picture">\n'
        yield from picture(rows, f"{session.id} ")
        yield "</div>\n"
    yield "<ol>\n"
    for row in rows:
        yield from _call(row, f"{session.id} ")
    yield "</ol>\n"


def summary(rows: Sequence[Row]) -> str:
    """Return what a session did in one line."""
    if not rows:
        return "No calls."
    first, last = rows[0]["at"], max(_end(row) for row in rows)
    asked = [row for row in rows if _asks(row)]
    denied = sum(row["outcome"] == "denied" for row in asked)
    waits = sum(row["decided_at"] is None for row in asked)
    waited = sum(_decided(row) - row["at"] for row in asked)
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(first))
    until = time.strftime("%H:%M" if last - first < 43200 else "%Y-%m-%d %H:%M", time.localtime(last))
    parts = [f"{day} to {until}", count(len(rows), "call")]
    if asked:
        answers = f"{len(asked) - denied - waits:,} approved, {denied:,} denied" + (
            f", {waits:,} waits" if waits else ""
        )
        parts.append(f"a human was asked about {len(asked):,}: {answers}")
        parts.append(f"it waited {duration(waited)} for that")
    return " · ".join(parts)


def _asks(row: Row) -> bool:
    """True if a human was asked about a call."""
    return bool(row["by_human"]) or (row["decided_at"] is None and row["ended_at"] is None)


def _decided(row: Row) -> float:
    return float(row["decided_at"] or row["ended_at"] or row["at"])


def _end(row: Row) -> float:
    return float(max(row["at"], row["ended_at"] or 0, _decided(row)))


def lanes(rows: Sequence[Row]) -> Iterator[tuple[str, tuple[Lane, ...]]]:
    """Yield the groups of lanes of a session with their names: its questions, commands, files, hosts and tools."""
    yield "You", tuple(_questions(rows))
    commands, files, hosts, tools = (defaultdict[str, list[Mark]](list) for _ in range(4))
    changes: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        ran = row["started_at"] is not None
        if ran:
            commands[_program(row)].append(_mark(row, "failed" if row["failed"] else "run"))
        for file in row["files"]:
            if file["made"]:
                files[file["shown"]].append(_file_mark(row, file))
                changes[file["shown"]].update(added=file["added"] or 0, removed=file["removed"] or 0)
        for path in (row["changed"] or {}).get("paths", ()) if not row["discarded"] else ():
            files[path.rpartition("/")[2]].append(_mark(row, "run", height=0.3))
        happened = row["decided_at"] is not None and row["outcome"] != "denied"
        for host in row["hosts"] if happened else ():
            hosts[host].append(_mark(row, "host"))
        if row["network"] and ran:
            hosts["by commands"].append(_mark(row, "host"))
        if row["server_tool"] and happened:
            tools[row["server_tool"]].append(_mark(row, "failed" if row["failed"] else "run"))
    yield "Commands", tuple(_most(commands, {}))
    yield "Files", tuple(_most(files, changes))
    yield "Network", tuple(_most(hosts, {}))
    yield "Tools", tuple(_most(tools, {}))


def _program(row: Row) -> str:
    words = row["command"] if isinstance(row["command"], list) else str(row["command"]).split()
    name = str(words[0]).rpartition("/")[2] if words else ""
    return one_line_beginning(name, LONGEST_LABEL) or str(row["tool"])


def _mark(row: Row, kind: str, *, height: float = 0.6) -> Mark:
    start = float(row["started_at"] or _decided(row))
    return Mark(start, max(start, _end(row)), kind, row["id"], _words(row), height)


def _file_mark(row: Row, file: Row) -> Mark:
    added, removed = file["added"] or 0, file["removed"] or 0
    height = min(1.0, 0.2 + math.log10(1 + added + removed) / 3)
    words = f"{_words(row)}: {file['shown']} +{added:,} {MINUS}{removed:,}"
    return Mark(_end(row), _end(row), "added" if added >= removed else "removed", row["id"], words, height)


def _words(row: Row) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(row["at"]))
    return f"{at} call {row['id']}: {one_line_beginning(row['title'], LONGEST_WORDS)} [{row['outcome']}]"


def _questions(rows: Sequence[Row]) -> Iterator[Lane]:
    asked = [row for row in rows if _asks(row)]
    newest = max(map(_end, rows), default=0.0)
    waits, answers = list[Mark](), list[Mark]()
    for row in asked:
        answered = row["decided_at"] is not None
        end = _decided(row) if answered else max(newest, row["at"])
        waits.append(Mark(row["at"], end, "waiting", row["id"], _words(row), 0.5))
        kind, sign = ("denied", "⊘") if row["outcome"] == "denied" else ("good", "✔")
        kind, sign = (kind, sign) if answered else ("waiting", "?")
        answers.append(Mark(end, end, kind, row["id"], _words(row), sign=sign))
    waited = sum(_decided(row) - row["at"] for row in asked)
    if asked:
        yield Lane("decided", tuple(answers), count(len(asked), "question"))
        yield Lane("it waited", tuple(waits), duration(waited))


def _most(found: dict[str, list[Mark]], changes: dict[str, Counter[str]]) -> Iterator[Lane]:
    """Yield a lane for each of the names with the most marks, in the order in which they began."""
    often = sorted(found, key=lambda name: -len(found[name]))
    own = often if len(often) <= MOST_LANES + 1 else often[:MOST_LANES]
    for name in sorted(own, key=lambda name: found[name][0].start):
        lines = changes.get(name)
        total = f"+{lines['added']:,} {MINUS}{lines['removed']:,}" if lines else f"{len(found[name]):,}"
        yield Lane(name, tuple(found[name]), total)
    if rest := [mark for name in often[len(own) :] for mark in found[name]]:
        yield Lane(f"{len(often) - len(own):,} others", tuple(rest), f"{len(rest):,}")


def picture(rows: Sequence[Row], prefix: str) -> Iterator[str]:
    """Yield the lanes as SVG, each mark a link to its call. `prefix` begins the ids of the calls on the page."""
    groups = [(name, found) for name, found in lanes(rows) if found]
    spans = [(mark.start, mark.end) for _, found in groups for lane in found for mark in lane.marks]
    axis = TimeAxis([*spans, *((row["at"], _end(row)) for row in rows)])
    height = 34 + sum(LANE * (1 + len(found)) + 6 for _, found in groups)
    yield f'<svg viewBox="0 0 {LEFT + PLOT + RIGHT} {height}" role="img" aria-label="Timeline">\n'
    for left, seconds in axis.pauses():
        size = f'x="{left:.1f}" y="24" width="{axis.gap:.1f}" height="{height - 28}"'
        yield f'<g><title>{duration(seconds)} without a call</title><rect class="gap" {size}/></g>\n'
    for place, words in axis.ticks():
        yield f'<line class="grid" x1="{place:.1f}" x2="{place:.1f}" y1="20" y2="{height - 4}"/>'
        yield f'<text class="tick" x="{place:.1f}" y="14" text-anchor="middle">{words}</text>\n'
    top = 28.0
    for name, found in groups:
        yield f'<text class="group" x="4" y="{top + 13:.1f}">{_text(name)}</text>\n'
        top += LANE
        for lane in found:
            yield from _lane(lane, axis, top, prefix)
            top += LANE
        top += 6
    yield "</svg>\n"


def _lane(lane: Lane, axis: TimeAxis, top: float, prefix: str) -> Iterator[str]:
    middle = top + LANE / 2
    label = one_line_beginning(lane.name, LONGEST_LABEL)
    yield f'<g><title>{_text(lane.name)}</title><text x="16" y="{middle + 4:.1f}">{_text(label)}</text></g>'
    yield f'<line class="rail" x1="{LEFT}" x2="{LEFT + PLOT}" y1="{middle:.1f}" y2="{middle:.1f}"/>'
    drawn = set[tuple[int, int, str]]()
    for mark in lane.marks:
        left = axis.place(mark.start)
        width = max(LEAST_MARK, axis.place(mark.end) - left)
        # A day of calls has many at one place, of which one can be seen.
        if (seen := (round(left), round(width), mark.kind)) in drawn:
            continue
        drawn.add(seen)
        tall = (LANE - 4) * mark.height
        shape = (
            f'<text class="{mark.kind}" x="{left:.1f}" y="{middle + 4:.1f}" text-anchor="middle">{mark.sign}</text>'
            if mark.sign
            else f'<rect class="{mark.kind}" x="{left:.1f}" y="{middle - tall / 2:.1f}" width="{width:.1f}" '
            f'height="{tall:.1f}"/>'
        )
        yield f'<a href="#{_anchor(prefix, mark.call_id)}"><title>{_text(mark.words)}</title>{shape}</a>'
    yield f'<text class="total" x="{LEFT + PLOT + 12}" y="{middle + 4:.1f}">{_text(lane.total)}</text>\n'


def _anchor(prefix: str, call_id: str) -> str:
    return _text(f"{prefix}{call_id}".replace(" ", "-").replace(":", "-"))


def _call(row: Row, prefix: str) -> Iterator[str]:
    """Yield a call as an entry of the list."""
    when = time.strftime("%H:%M:%S", time.localtime(row["at"]))
    state = "is-denied" if row["outcome"] == "denied" else "is-failed" if row["failed"] else ""
    yield f'<li id="{_anchor(prefix, row["id"])}"><span class="when">{when} {_text(row["id"])}</span> '
    yield f'<span class="what">{_isolated(row["title"])}</span>'
    by = f" · {row['decided_in_words']}" if row["decided_in_words"] else ""
    waited = f", after {duration(_decided(row) - row['at'])}" if row["by_human"] and row["decided_at"] else ""
    asker = f" · by the sub-agent {row['asker']}" if row["asker"] else ""
    edited = " · changed by a human" if row["edited_by_human"] else ""
    undone = f" · undone by {row['reverted_by']}" if row["reverted_by"] else ""
    undone += "".join(f" · {undo}" for undo in row["undos"])
    yield f'<br><span class="outcome"><span class="{state}">{_text(row["outcome"])}</span>'
    yield f"{_text(f'{by}{waited}{asker}{edited}{undone}')}</span>\n"
    if row["alarm"]:
        yield f'<p class="alarm">! {_isolated(row["alarm"])}</p>\n'
    if row["shown_changes"]:
        yield f'<p class="outcome">{_isolated(row["shown_changes"])}</p>\n'
    if row["discarded"]:
        yield f'<p class="outcome">changes did not become real: {_isolated(row["discarded"])}</p>\n'
    for file in row["files"]:
        yield from _file(file)
    yield "</li>\n"


def _file(file: Row) -> Iterator[str]:
    action = file["action"] if file["made"] else f"would {file['action'][:-1]}"
    moved = f" from {_isolated(file['shown_before'])}" if file["moved_from"] else ""
    counts = f'<span class="plus">+{file["added"]:,}</span> <span class="minus">{MINUS}{file["removed"]:,}</span>'
    yield f'<p class="outcome">{_text(action)} {_isolated(file["shown"])}{moved} {counts}</p>\n'
    if file["changed_since"] is not None:
        yield f'<p class="alarm">! changed by something else after edit {_text(file["changed_since"])}</p>\n'
    if file["diff"]:
        yield "<details><summary>difference</summary><pre>"
        for line in file["diff"]:
            kind = {"+": "plus", "-": "minus"}.get(line[:1], "muted")
            yield f'<span class="{kind}">{_text(line)}</span>\n'
        yield "</pre></details>\n"
