"""The picture of an agent beside the cockpit: a real run of both, drawn as one SVG that moves."""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from rich.cells import cell_len
from rich.color import Color, blend_rgb
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from tests.demo.instance import a_supervisor
from tests.tui.cockpit import Cockpit
from whisper_tui.demo.scripted_agents import Workspace, temporary_workspace
from whisper_tui.model.call import ClientInfo, SessionHello
from whisper_tui.model.state import Ended
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.tools import RunShellCommandTool, ToolContext, ToolFailure
from whisper_tui.tui.app import CockpitApp

NAME = "beside"
ROWS, AGENT_COLUMNS, COCKPIT_COLUMNS = 34, 46, 94
CELL_PX, LINE_PX, FONT_PX = 10.0, 22.0, 16.4
EDGE_PX, TITLE_PX, CAPTION_PX = 16.0, 34.0, 60.0
FONTS = "'Fira Code','DejaVu Sans Mono',Menlo,Consolas,monospace"
BACK, INK, MUTED = "#0e1116", "#d7dce5", "#7f8ea3"
THINKS_S, LOOKS_S, RUNS_S, READS_S, LAST_S = 1.0, 3.2, 1.6, 2.4, 2.0

ANSWER_S = 60
"""Seconds in which a command ends."""

Cell = tuple[str, Style]
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Frame:
    """Both terminals at a moment of the run, for how many seconds they are shown, and what is said about them."""

    agent: tuple[Row, ...]
    cockpit: tuple[Row, ...]
    seconds: float
    caption: str


@dataclass(frozen=True)
class Turn:
    """What the agent thinks, the command that it then asks for, and what the human does about that."""

    thought: str
    command: str
    description: str
    keys: tuple[str, ...] = ()
    """Nothing: it is not asked about."""
    typed: str = ""
    """The reason of a denial, in the dialog that the keys open."""
    shows: tuple[str, ...] = ()
    """The card is complete when it shows this."""
    running: str = ""
    """What the output shows while the command runs."""
    caption: str = ""
    """While it waits."""
    after: str = ""
    """From the decision on."""


TURNS = (
    Turn(
        "I run the checks of the site first.", "./test.sh", "Run the checks", ("a",),
        shows=("./test.sh", "not flagged"), running="every image",
        caption="An agent wants to run a command, and waits. You read it, and press a.",
        after="It runs with live output. The agent gets exactly what it printed.",
    ),
    Turn(
        "The rate is wrong. I correct it.", "sed -i 's/19/20/' tax.conf", "Correct the tax rate", ("a",),
        shows=("rate = 20",),
        caption="What a command would change is shown before anything runs.",
        after="Approved: the file is changed, and the agent goes on.",
    ),
    Turn(
        "Now I tidy up.", "rm -rf cache drafts", "Tidy up", ("d",), typed="Keep the drafts: they are ours",
        shows=("severe",),
        caption="Severe risks are red. You deny this one with a reason …",
        after="… which the agent reads word for word.",
    ),
    Turn(
        "I look at what is there instead.", "ls drafts", "List the drafts",
        after="Commands that only read run unasked, in a sandbox of the kernel.",
    ),
)  # fmt: skip


@dataclass
class Film:
    """An agent's terminal and the cockpit, of which pictures are taken."""

    cockpit: Cockpit
    root: str
    """The directory of the project, which is shown as `~/garden`."""
    said: list[str] = field(default_factory=list)
    """The lines of the agent's terminal, with colours as terminals write them."""
    frames: list[Frame] = field(default_factory=list)

    def say(self, *lines: str) -> None:
        """Write into the agent's terminal."""
        self.said += lines

    def take(self, seconds: float, caption: str) -> None:
        """Add the present moment."""
        at_home = "~/garden".ljust(len(self.root))
        cockpit = tuple(
            tuple((text.replace(self.root, at_home), style) for text, style in _row(strip))
            for strip in self.cockpit.strips()
        )
        self.frames.append(Frame(self._agent(), cockpit, seconds, caption))

    def _agent(self) -> tuple[Row, ...]:
        with Path(os.devnull).open("w") as nothing:
            console = Console(width=AGENT_COLUMNS, color_system="truecolor", force_terminal=True, file=nothing)
            lines = console.render_lines(Text.from_ansi("\n".join(self.said)), pad=False)
        return tuple(_row(line) for line in lines[-ROWS:])


def _row(segments: Iterable[Segment]) -> Row:
    return tuple((text, style or Style.null()) for text, style, control in segments if not control)


async def _film(workspace: Workspace) -> list[Frame]:
    async with a_supervisor(workspace, rules=Rules(read_only=True)) as supervisor:
        app = CockpitApp(supervisor, user="you")
        async with app.run_test(size=(COCKPIT_COLUMNS, ROWS)) as pilot:
            film = Film(Cockpit(app, pilot, scenario=None), str(workspace.root))  # type: ignore[arg-type]
            hello = SessionHello(
                name="garden",
                root=str(workspace.root),
                client=ClientInfo(name="agent.py"),
                environment=workspace.environment,
            )
            tool = RunShellCommandTool(ToolContext(supervisor, await supervisor.open_session(hello)))
            film.say("\x1b[1m~/garden $\x1b[0m python3 agent.py")
            await film.cockpit.sees("connected")
            for number, turn in enumerate(TURNS, 1):
                await _take_turn(film, tool, str(number), turn)
            film.take(LAST_S, turn.after)
            return film.frames


async def _take_turn(film: Film, tool: RunShellCommandTool, call_id: str, turn: Turn) -> None:
    """Let the agent ask, the human decide, and the agent read its answer."""
    cockpit = film.cockpit
    film.say("", f"\x1b[36m●\x1b[0m {turn.thought}")
    film.say(f"  \x1b[1m$ {turn.command}\x1b[0m")
    film.take(THINKS_S, film.frames[-1].caption if film.frames else turn.caption)
    answering = asyncio.create_task(tool.call({"command": turn.command, "description": turn.description}))
    if turn.keys:
        await cockpit.sees(turn.command, *turn.shows)
        await cockpit.until(lambda: not cockpit.screen.card.facts.asking)
        await cockpit.still()
        film.take(LOOKS_S, turn.caption)
        await cockpit.press(*turn.keys)
    if turn.typed:
        await cockpit.type_fast(turn.typed)
        await cockpit.sees("Keep the drafts")
        film.take(LOOKS_S, turn.caption)
        await cockpit.press("enter")
    if turn.running:
        await cockpit.sees(turn.running)
        film.take(RUNS_S, turn.after)
    try:
        answer = (await asyncio.wait_for(answering, ANSWER_S)).result
        film.say(*(f"  {line}" for line in (answer["stdout"] + answer["stderr"]).splitlines()))
    except ToolFailure as failure:
        film.say(f"  \x1b[33m{failure.message}\x1b[0m")
    await cockpit.until(lambda: isinstance(cockpit.screen.board.calls[call_id].state, Ended))
    if not turn.keys:
        await cockpit.select(call_id)
    await cockpit.until(lambda: not cockpit.screen.card.facts.asking)
    await cockpit.still()
    film.take(READS_S, turn.after)


class _Styles:
    """The classes of a picture, one for each style that it has."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, style: Style) -> str:
        """Return the class of a style of text."""
        colours = [_hex(style.color, INK), _hex(style.bgcolor, BACK)]
        front, back = reversed(colours) if style.reverse else colours
        if style.dim:
            front = _mixed(front, back)
        rules = [f"fill:{front}"]
        rules += ["font-weight:bold"] * bool(style.bold) + ["font-style:italic"] * bool(style.italic)
        rules += ["text-decoration:underline"] * bool(style.underline)
        return self._names.setdefault(";".join(rules), f"s{len(self._names)}")

    def css(self) -> str:
        """Return the rules of all classes."""
        return "".join(f".{name}{{{rules}}}" for rules, name in self._names.items())


def _hex(colour: Color | None, default: str) -> str:
    if colour is None or colour.is_default:
        return default
    return "#{:02x}{:02x}{:02x}".format(*colour.get_truecolor(DIMMED_MONOKAI))


def _mixed(front: str, back: str) -> str:
    one, other = (Color.parse(each).get_truecolor() for each in (front, back))
    return "#{:02x}{:02x}{:02x}".format(*blend_rgb(one, other, 0.4))


def _line(row: Row, styles: _Styles) -> str:
    """Return a row of a terminal, with its left end at 0 and its top at 0."""
    cells = [(text, style) for text, style in row if text]
    drawn = []
    for back, start, text in _stretches((_back(style), text) for text, style in cells):
        if back != BACK:
            width = cell_len(text) * CELL_PX
            drawn.append(f'<rect fill="{back}" x="{start * CELL_PX:g}" width="{width:g}" height="{LINE_PX:g}"/>')
    for name, start, text in _stretches((styles.name(style), text) for text, style in cells):
        for match in re.finditer(r"\S+(?: \S+)*", text):
            left = (start + cell_len(text[: match.start()])) * CELL_PX
            drawn.append(
                f'<text class="{name}" x="{left:g}" y="{LINE_PX * 0.74:g}" '
                f'textLength="{cell_len(match[0]) * CELL_PX:g}">{escape(match[0])}</text>'
            )
    return "".join(drawn)


def _stretches(pieces: Iterable[tuple[str, str]]) -> Iterator[tuple[str, int, str]]:
    """Yield each stretch of text that looks alike, with its look and the column where it begins."""
    at = 0
    for look, group in groupby(pieces, key=itemgetter(0)):
        text = "".join(text for _, text in group)
        yield look, at, text
        at += cell_len(text)


def _back(style: Style) -> str:
    return _hex(style.color, INK) if style.reverse else _hex(style.bgcolor, BACK)


@dataclass
class _Clock:
    """The times of a film: at which frames something is shown, as rules of an animation."""

    frames: list[Frame]
    names: dict[tuple[tuple[int, int], ...], str] = field(default_factory=dict)

    def shown_at(self, indices: Iterable[int]) -> str:
        """Return the class of what is shown at these frames alone. Empty: it is always shown."""
        numbers = sorted(indices)
        if len(numbers) == len(self.frames):
            return ""
        spans: list[tuple[int, int]] = []
        for number in numbers:
            if spans and spans[-1][1] == number:
                spans[-1] = (spans[-1][0], number + 1)
            else:
                spans.append((number, number + 1))
        return self.names.setdefault(tuple(spans), f"m{len(self.names)}")

    def css(self) -> str:
        """Return the animation of each class. What a viewer without animations shows is the last frame."""
        starts = [0.0]
        for frame in self.frames:
            starts.append(starts[-1] + frame.seconds)
        rules = []
        for spans, name in self.names.items():
            steps = {0.0: 0, **{starts[at]: shown for span in spans for at, shown in zip(span, (1, 0), strict=True)}}
            if spans[0][0] == 0:
                steps[0.0] = 1
            keys = "".join(f"{100 * at / starts[-1]:.2f}%{{opacity:{shown}}}" for at, shown in sorted(steps.items()))
            last = int(spans[-1][1] == len(self.frames))
            rules.append(f"@keyframes {name}{{{keys}}}.{name}{{opacity:{last};animation-name:{name}}}")
        shared = f"[class^=m]{{animation:{starts[-1]:g}s step-end infinite}}"
        still = "@media(prefers-reduced-motion:reduce){[class^=m]{animation:none}}"
        return f"{shared}{''.join(rules)}{still}"


def _rows(terminal: Iterable[tuple[Row, ...]], styles: _Styles, clock: _Clock) -> Iterator[str]:
    """Yield each row of a terminal once for all frames in which it looks alike."""
    found: dict[tuple[int, str], list[int]] = {}
    for index, rows in enumerate(terminal):
        for number, row in enumerate(rows):
            found.setdefault((number, _line(row, styles)), []).append(index)
    for (number, drawn), indices in found.items():
        if drawn:
            moment = clock.shown_at(indices)
            shown = f' class="{moment}"' if moment else ""
            yield f'<g{shown} transform="translate(0 {number * LINE_PX:g})">{drawn}</g>'


def moving_picture(frames: list[Frame]) -> str:
    """Return one SVG of all frames."""
    styles, clock = _Styles(), _Clock(frames)
    height = ROWS * LINE_PX
    frame_height = TITLE_PX + height + EDGE_PX / 2
    parts = []
    right = 0.0
    for title, columns, terminals in (
        ("your agent", AGENT_COLUMNS, (frame.agent for frame in frames)),
        ("whisper-tui", COCKPIT_COLUMNS, (frame.cockpit for frame in frames)),
    ):
        left, width = right + EDGE_PX, columns * CELL_PX
        right = left + width + EDGE_PX
        rows = "".join(_rows(terminals, styles, clock))
        parts.append(
            f'<g transform="translate({left:g} {EDGE_PX:g})">'
            f'<rect x="-{EDGE_PX / 2:g}" width="{width + EDGE_PX:g}" height="{frame_height:g}" rx="8" '
            f'fill="{BACK}" stroke="#3a4456"/><text class="title" x="{width / 2:g}" y="22">{title}</text>'
            f'<g transform="translate(0 {TITLE_PX:g})">{rows}</g></g>'
        )
    whole_width = right
    whole_height = TITLE_PX + height + 2 * EDGE_PX + CAPTION_PX
    captions: dict[str, list[int]] = {}
    for index, frame in enumerate(frames):
        captions.setdefault(frame.caption, []).append(index)
    for caption, indices in captions.items():
        parts.append(
            f'<g class="{clock.shown_at(indices)}"><text class="caption" x="{whole_width / 2:g}" '
            f'y="{whole_height - CAPTION_PX * 0.42:g}">{escape(caption)}</text></g>'
        )
    style = (
        f"text{{font:{FONT_PX:g}px {FONTS};white-space:pre}}rect{{shape-rendering:crispEdges}}"
        f".title{{font:15px system-ui,sans-serif;text-anchor:middle;fill:{MUTED}}}"
        f".caption{{font:600 26px system-ui,sans-serif;text-anchor:middle;fill:{MUTED}}}"
        f"{styles.css()}{clock.css()}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole_width:g} {whole_height:g}">'
        f"<style>{style}</style>{''.join(parts)}</svg>\n"
    )


def draw(folder: Path) -> None:
    """Run both, and write the picture into a folder."""
    with temporary_workspace(step_s=1.2) as workspace:
        frames = asyncio.run(_film(workspace))
    (folder / f"{NAME}.svg").write_text(moving_picture(frames), encoding="utf-8")
