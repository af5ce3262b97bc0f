"""The first line: what there is to do, and whether the supervisor is there."""

from whisper_tui.tui.sections import Section
from whisper_tui.tui.spans import Line, Role, Span
from whisper_tui.tui.widgets.line_view import LineView

_WORDS: tuple[tuple[Section, str, str, Role], ...] = (
    ("waiting", "◆", "waiting", "waiting"),
    ("queued", "◇", "in the queue", "running"),
    ("running", "▶", "running", "running"),
    ("behind", "●", "in the background", "behind"),
)


class StatusBar(LineView):
    """Counts of open calls on the left, the connection on the right."""

    def counts(
        self,
        totals: dict[Section, int],
        *,
        connected: bool,
        who: str,
        hushed: str = "",
        paused: int = 0,
        need_input: int = 0,
    ) -> None:
        """Draw other numbers. `hushed`: why nobody is called now, if nobody is; `paused` are some of what runs."""
        line: list[Span] = [Span(" whisper_tui ", "strong")]
        for section, mark, word, role in _WORDS:
            number = totals[section]
            if number or section == "waiting":
                line += [Span("  "), Span(f"{mark} {number:,} {word}", role if number else "muted")]
            if section == "waiting" and need_input:
                needs = "needs input" if need_input == 1 else "need input"
                line += [Span("  "), Span(f"◆ {need_input:,} {needs}", "waiting")]
            if section == "running" and paused:
                line.append(Span(f", {'all' if paused == number else f'{paused:,}'} paused", "waiting"))
        state: Line = (Span("● connected", "good"),) if connected else (Span("○ not connected", "bad"),)
        quiet: Line = (Span(f"{hushed}  ", "behind"),) if hushed else ()
        self.show(tuple(line), (*quiet, Span(f"{who}  ", "muted"), *state, Span(" ")))
