"""Which calls a scope would have let through, as paragraphs."""

import shlex
from collections import Counter
from collections.abc import Mapping

from whisper_tui.model.command import Argv, CommandSpec
from whisper_tui.model.decision import Coverage
from whisper_tui.model.masked import masked_spec
from whisper_tui.model.state import CallRecord
from whisper_tui.tui.spans import BLANK, Paragraph, Role, Span, said
from whisper_tui.tui.words import count

SHOWN = 2000
"""Characters of a command that are shown."""


def covered_paragraphs(
    coverage: Coverage, records: Mapping[str, CallRecord], asked: CallRecord, *, edited: bool
) -> tuple[Paragraph, ...]:
    """How many calls it covers, whether the asked one is among them, and each command once, the most frequent first."""
    looked, covered = count(coverage.looked_at, "call"), len(coverage.calls)
    role: Role = "good" if covered else "label"
    lines = [_line(f"Of the last {looked}, this would have let {covered:,} through unasked:", role)]
    if asked.id not in coverage.calls and not edited:
        lines.append(_line("Not this one: the same call again would still be asked.", "risk"))
    times = Counter(_what(masked_spec(records[id_].call.spec)) for id_ in coverage.calls if id_ in records)
    for (command, cwd), often in times.most_common():
        margin = (Span(f" {often:>4} \N{MULTIPLICATION SIGN} ", "muted"), Span("│ ", "frame"))
        hanging = (Span("        "), Span("┆ ", "frame"))
        lines.append(
            Paragraph((*said(command, "command"), *said(f"  {cwd}", "muted")), margin, hanging, at_words=False)
        )
    missing = covered - sum(times.values())
    if missing:
        lines.append(_line(f"{count(missing, 'call')} more of an earlier time.", "muted"))
    return (*lines, BLANK)


def refused_paragraphs(reason: str) -> tuple[Paragraph, ...]:
    """Why it may not be remembered like this."""
    return (Paragraph(said(reason, "bad"), margin=(Span(" ✘ ", "bad"),)),)


def _line(text: str, role: Role) -> Paragraph:
    return Paragraph((Span(text, role),), margin=(Span(" "),))


def _what(spec: CommandSpec) -> tuple[str, str]:
    command = spec.command
    text = shlex.join(command.words()) if isinstance(command, Argv) else command.text
    return (text if len(text) <= SHOWN else text[:SHOWN] + " …"), spec.cwd
