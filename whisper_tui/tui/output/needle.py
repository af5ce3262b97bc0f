"""What is searched for in output: found in raw bytes, whatever their case and colours, and marked in what is drawn."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from whisper_tui.tui.output.sgr import Run

LEAD = 16
"""Bytes before a piece of output that are needed to know whether a word begins in it."""
_COLOUR = re.compile(rb"\x1b\[[0-9;:]*[mK]")
_ERRORS = (
    r"(?<!\bno )(?<!\b0 )\b(?:\w*error|fatal|panic(?:ked)?|traceback|\w*exception|failed|failure|fail"
    r"|segmentation fault|core dumped|undefined reference|command not found|no such file or directory"
    r"|permission denied)\b"
)


@dataclass(frozen=True)
class Needle:
    """A pattern over the lower-case bytes of output without colours, and the same over text as it is drawn."""

    words: str
    """What it is called on the screen."""
    raw: re.Pattern[bytes]
    drawn: re.Pattern[str]
    reach: int
    """Bytes that a match may take, a few colours included."""

    @classmethod
    def of(cls, words: str) -> "Needle":
        """These words as they are, upper and lower case of the Latin alphabet alike."""
        raw = re.escape(words.encode("utf-8", "replace").lower())
        return cls(words, re.compile(raw), re.compile(re.escape(words), re.IGNORECASE | re.ASCII), len(raw) + 256)

    def starts(self, data: bytes) -> Iterator[int]:
        """Where the matches in a piece of output begin, in order."""
        plain = data.lower()
        if b"\x1b" not in data:
            yield from (found.start() for found in self.raw.finditer(plain))
            return
        colours = [(found.start(), found.end()) for found in _COLOUR.finditer(data)]
        at = removed = 0
        for found in self.raw.finditer(_COLOUR.sub(b"", plain)):
            while at < len(colours) and colours[at][0] - removed <= found.start():
                removed += colours[at][1] - colours[at][0]
                at += 1
            yield found.start() + removed

    def mark(self, runs: tuple[Run, ...], standing: int | None) -> tuple[Run, ...]:
        """The runs of a line with the matches in it marked; `standing`: the number of the one the search stands at."""
        text = "".join(run.text for run in runs)
        marks = [(found.start(), found.end()) for found in self.drawn.finditer(text) if found.end() > found.start()]
        if not marks:
            return runs
        done: list[Run] = []
        start = number = 0
        for run in runs:
            end = at = start
            end += len(run.text)
            while at < end:
                while number < len(marks) and marks[number][1] <= at:
                    number += 1
                low, high = marks[number] if number < len(marks) else (end, end)
                inside = low <= at
                stop = min(end, high if inside else low)
                kind = (2 if number == standing else 1) if inside else 0
                done.append(Run(run.text[at - start : stop - start], run.pen._replace(found=kind)))
                at = stop
            start = end
        return tuple(done)


ERRORS = Needle("errors", re.compile(_ERRORS.encode()), re.compile(_ERRORS, re.IGNORECASE | re.ASCII), 256)
"""Words that a line about something that went wrong usually holds."""
