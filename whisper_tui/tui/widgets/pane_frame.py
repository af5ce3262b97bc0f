"""What stands around output in its pane: the title line, and where the bar on the right has its thumb."""

from whisper_tui.tui.output.finder import Finder
from whisper_tui.tui.output.shown import View
from whisper_tui.tui.spans import Line, Role, Span, width_of
from whisper_tui.tui.words import size


def title_line(title: str, view: View | None, width: int, *, beside: str, finder: Finder | None, problem: str) -> Line:
    """The whole line in `width` columns. `beside` is about what is not shown; `problem`: why the search had to stop."""
    role: Role = "strong" if view is not None else "muted"
    amount = f" {size(view.size)}" if view is not None else ""
    left: Line = (Span("── ", "frame"), Span(title, role), Span(f"{amount}{beside} ", "muted"))
    found, state = _found(finder, view, problem), _state(view)
    between = (Span(" ·", found[-1].role),) if found and state else ()
    end = Span(" ─" if found or state else "─", "frame")
    right = (*found, *between, *state, end)
    return (*left, Span("─" * max(0, width - width_of(left) - width_of(right)), "frame"), *right)


def _state(view: View | None) -> Line:
    if view is None or not view.size:
        return ()
    dropped = (Span(" bytes above were not kept ·", "risk"),) if view.dropped_before_top else ()
    if not view.following:
        return (*dropped, Span(f" {view.extent[0] * 100 // view.size} % · f follows", "waiting"))
    return (*dropped, Span(" complete" if view.ended else " ● following", "muted" if view.ended else "running"))


def _found(finder: Finder | None, view: View | None, problem: str) -> Line:
    if finder is None:
        return ()
    if problem:
        return (Span(f" the search stopped: {problem}", "bad"),)
    words = finder.needle.words
    name = words if len(words) <= 16 else words[:15] + "…"
    rank = f"{finder.rank:,} of " if finder.standing is not None else ""
    empty = view is None or not view.size
    counting = "" if finder.done or empty else f", {finder.percent} % searched"
    return (Span(f" {rank}{finder.total:,} “{name}”{counting}", "edited"),)


def bar(view: View | None, extent: tuple[int, int], rows: int) -> range | None:
    """The rows of the thumb. `extent`: as the view gives it. None: everything is on the screen."""
    top, bottom = extent
    if view is None or not view.size or (top == 0 and not view.skip and bottom >= view.size):
        return None
    start = int(top / view.size * rows)
    end = max(start + 1, round(bottom / view.size * rows))
    return range(rows - (end - start), rows) if view.following else range(start, end)
