"""Whether a scene came out as the story says: each fact that does not is named."""

from whisper_tui.demo.story import CRAWL_LINES, Denies, IsNotAsked, Scene, crawl_line
from whisper_tui.model.ending import Exited
from whisper_tui.model.port import Supervision
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools import Answer, ToolFailure


async def complaints_about(
    scene: Scene, record: CallRecord, heard: Answer | ToolFailure, supervision: Supervision
) -> list[str]:
    """What is not as it should be about an ended call and the answer to it; nothing if all is well."""
    decided = [] if _decided_by(record) == _expected_decider(scene) else [f"it was decided by {_decided_by(record)}"]
    if isinstance(scene.move, Denies):
        return decided + _about_denial(scene.move, record, heard)
    if isinstance(heard, ToolFailure):
        return [*decided, f"the agent was told that it failed: {heard.message}"]
    return [
        *decided,
        *_about_ending(scene, record),
        *_about_output(scene, heard),
        *_about_words(scene, heard),
        *await _about_size(scene, record, supervision),
    ]


def _decided_by(record: CallRecord) -> str:
    return record.decided_by.surface if record.decided_by else "nobody"


def _expected_decider(scene: Scene) -> str:
    return "memory" if isinstance(scene.move, IsNotAsked) else "demo"


def _about_denial(move: Denies, record: CallRecord, heard: Answer | ToolFailure) -> list[str]:
    if record.process is not None:
        return ["it ran although it was denied"]
    if not isinstance(heard, ToolFailure) or move.reason not in heard.message:
        return ["the agent was not told the reason word for word"]
    return []


def _about_ending(scene: Scene, record: CallRecord) -> list[str]:
    ending = record.state.ending if isinstance(record.state, Ended) else None
    if ending != Exited(code=scene.exit_code or 0):
        return [f"it should have ended with exit code {scene.exit_code}, not as {ending!r}"]
    return []


def _about_output(scene: Scene, heard: Answer) -> list[str]:
    out, err = str(heard.result["stdout"]), str(heard.result["stderr"])
    if not scene.printed.whole:
        first = scene.printed.out.splitlines()[0]
        return [] if first in out else [f"its output lacks the line {first!r}"]
    return [
        f"its {name} should have been {should!r}, not {was!r}"
        for name, should, was in (("output", scene.printed.out, out), ("errors", scene.printed.err, err))
        if should != was
    ]


def _about_words(scene: Scene, heard: Answer) -> list[str]:
    if scene.told and scene.told not in (heard.told or ""):
        return [f"the agent was not told {scene.told!r}"]
    if scene.leaves and not heard.result["backgroundPids"]:
        return ["the agent was not told which process is in the background"]
    return []


async def _about_size(scene: Scene, record: CallRecord, supervision: Supervision) -> list[str]:
    """Of a long output nothing is missing: neither a byte nor the last line."""
    if scene.out_bytes is None:
        return []
    end = await supervision.read_output(record.id, "out", -100, 100)
    complaints = [] if end.size == scene.out_bytes else [f"{end.size:,} of {scene.out_bytes:,} bytes were kept"]
    if end.data != crawl_line(CRAWL_LINES).encode():
        complaints.append("the last line of its output is not there")
    return complaints
