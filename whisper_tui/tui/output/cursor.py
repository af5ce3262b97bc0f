"""The cursor of a terminal, drawn into its row."""

from rich.cells import cell_len

from whisper_tui.tui.output.sgr import PLAIN, Run


def with_cursor(runs: tuple[Run, ...], column: int) -> tuple[Run, ...]:
    """A row with the character under the cursor in reverse. Columns are characters, save for wide ones."""
    text = "".join(run.text for run in runs)
    at = _index_of(text, column)
    done: list[Run] = []
    start = 0
    for run in runs:
        here = at - start
        if 0 <= here < len(run.text):
            pen = run.pen._replace(reverse=not run.pen.reverse)
            done += [Run(run.text[:here], run.pen), Run(run.text[here], pen), Run(run.text[here + 1 :], run.pen)]
        else:
            done.append(run)
        start += len(run.text)
    if at >= start:
        done.append(Run(" ", PLAIN._replace(reverse=True)))
    return tuple(run for run in done if run.text)


def _index_of(text: str, column: int) -> int:
    if text.isascii():
        return column
    used = 0
    for index, character in enumerate(text):
        if used >= column:
            return index
        used += cell_len(character)
    return len(text)
