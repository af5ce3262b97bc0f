"""The answer to a call as its agent got it, as text for people."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from whisper_tui.model.api import Supervision
from whisper_tui.model.secrets import masked
from whisper_tui.model.state import CallRecord
from whisper_tui.present.command_text import head_and_tail, shows_only_ends
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Paragraph, Span, said

TITLE = "What the agent was told"
MOST_TOLD_LINES = 200
"""Lines of one part of an answer that the cockpit shows; `whisper-tui show ID --told` prints all."""


class ToldPart(NamedTuple):
    """One part of an answer."""

    label: str
    """The place of the part in the answer: `text`, `structured content`, `standard error`."""
    text: str


@dataclass(frozen=True)
class Told:
    """The answer to a call."""

    parts: tuple[ToldPart, ...] = ()
    """Exactly as the agent's program got them, in their order. Empty: not known, and `caveats` say why."""
    caveats: tuple[str, ...] = ()
    """Sentences about what is not known of the answer."""

    def masked(self) -> "Told":
        """The same with secrets replaced, and very long parts without their middle."""
        return Told(tuple(ToldPart(part.label, masked(_ends(part.text))) for part in self.parts), self.caveats)

    def as_json(self) -> dict[str, Any]:
        """Return the answer for programs."""
        return {"parts": [part._asdict() for part in self.parts], "caveats": list(self.caveats)}


AnswerReader = Callable[[Supervision, CallRecord], Awaitable[Told]]
"""Returns the answer to an ended call. Raises `WhisperError`."""


def _ends(text: str) -> str:
    if not shows_only_ends(text):
        return text
    head, tail = head_and_tail(text)
    left_out = tail.start - len(head.text)
    return f"{head.text}\n… {left_out:,} characters are not shown here …\n{tail.text}"


def object_part(label: str, content: object) -> ToldPart:
    """Return a structured part as JSON, as programs read it."""
    return ToldPart(label, json.dumps(content, ensure_ascii=False, indent=2, default=str))


def told_paragraphs(told: Told | None) -> tuple[Paragraph, ...]:
    """Return a section with the answer, secrets masked. None: it is not known yet, so there is no section."""
    if told is None:
        return ()
    found = [BLANK, Paragraph((Span(TITLE, "label"),), margin=(Span(" "),))]
    found += [Paragraph((Span(f"{caveat}", "risk"),), margin=(Span(" ◦ ", "muted"),)) for caveat in told.caveats]
    for label, text in told.masked().parts:
        found.append(Paragraph((Span(label, "muted"),), margin=(Span(" "),)))
        lines = text.removesuffix("\n").split("\n")
        margin = (Span(" │ ", "frame"),)
        found += [
            Paragraph(said(line.replace("\t", "    "), "command"), margin, (Span(" ┆ ", "frame"),), at_words=False)
            for line in lines[:MOST_TOLD_LINES]
        ]
        if len(lines) > MOST_TOLD_LINES:
            more = f"… {count(len(lines) - MOST_TOLD_LINES, 'more line')}; whisper-tui show ID --told prints all"
            found.append(Paragraph((Span(more, "muted"),), margin))
    return tuple(found)
