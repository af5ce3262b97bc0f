"""Streams cut to a budget of characters: head, marker and tail, with the whole stream named as a file."""

from dataclasses import dataclass
from typing import Any

from whisper_tui.model.port import Supervision
from whisper_tui.model.run import Stream
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools.output_text import StreamText

WIDEST = 4
"""Bytes of the longest character."""

NAMES: dict[Stream, str] = {"out": "stdout", "err": "stderr"}


@dataclass(frozen=True)
class _Sample:
    """The beginning of a stream, and its end where the beginning is not all."""

    size: int
    """Bytes of the stream."""
    head: str
    tail: str | None
    """None: the head is the whole stream."""

    @property
    def wanted(self) -> int:
        """Characters needed to show all, as far as that is known: never fewer than a budget that is too small."""
        return len(self.head) + (0 if self.tail is None else len(self.tail) + 1)


async def previews(supervision: Supervision, record: CallRecord, budget: int) -> dict[str, Any]:
    """The `stdout_preview`, `stderr_preview`, `truncated`, and the artifacts where a stream was cut.

    The budget is shared by the streams that hold anything; what one does not need is the other's.
    """
    samples = {stream: await _sample(supervision, record, stream, budget) for stream in NAMES}
    shares = _shares({stream: sample.wanted for stream, sample in samples.items()}, budget)
    result: dict[str, Any] = {}
    artifacts: list[dict[str, Any]] = []
    indices: dict[str, int] = {}
    truncated = False
    for stream, sample in samples.items():
        name = NAMES[stream]
        cut = sample.tail is not None or len(sample.head) > shares[stream]
        path = await supervision.output_file(record.id, stream) if cut else None
        where = f"the whole stream is in {path}" if path else f"`whisper-tui logs {record.id}` prints what was kept"
        text = cut_text(sample.head, sample.tail, shares[stream], sample.size, where) if cut else sample.head
        result[f"{name}_preview"] = text or None
        truncated = truncated or cut
        if path is not None:
            indices[f"{name}_artifact"] = len(artifacts)
            artifacts.append({"path": path, "stream": name, "bytes": sample.size})
    result["truncated"] = truncated
    return {**result, **({"artifacts": artifacts} if artifacts else {}), **indices}


def cut_text(head: str, tail: str | None, budget: int, size: int, where: str) -> str:
    """The first and the last half of a budget of characters with a marker between them. `size` in bytes."""
    first, last = budget // 2, budget - budget // 2
    end = head if tail is None else tail
    marker = f"[whisper_tui: output cut here, {size:,} bytes in all; {where}]"
    return "\n".join(part for part in (head[:first], marker, end[len(end) - min(last, len(end)) :]) if part)


def _shares(wanted: dict[Stream, int], budget: int) -> dict[Stream, int]:
    """Characters for each stream: half the budget each, and what the other leaves."""
    half = {"out": budget - budget // 2, "err": budget // 2}
    spare_out = max(0, half["out"] - wanted["out"])
    spare_err = max(0, half["err"] - wanted["err"])
    return {"out": half["out"] + spare_err, "err": half["err"] + spare_out}


async def _sample(supervision: Supervision, record: CallRecord, stream: Stream, budget: int) -> _Sample:
    """Enough of a stream to fill the budget from both ends."""
    if not isinstance(record.state, Ended) or record.state.attempt is None:
        return _Sample(0, "", None)
    size = getattr(record.state.output, stream)
    reach, stored = WIDEST * budget, StreamText(supervision, record.id, stream)
    if size <= 2 * reach:
        return _Sample(size, await stored.text(0, size), None)
    head = await stored.text(0, reach, ends_midway=True)
    return _Sample(size, head, await stored.text(size - reach, size, starts_midway=True))
