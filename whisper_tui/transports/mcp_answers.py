"""What an MCP client is shown: the tools, how they work, and the answers to calls."""

from typing import Any

import mcp_types as types

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord
from whisper_tui.tools import AITool, Answer, ArgumentError, ToolFailure
from whisper_tui.tools.pending import pending, pending_text
from whisper_tui.tools.room import Room, as_json, shortened

CALL_ID = "whisper-tui/call-id"
TOLD = "whisper-tui/told"

REST = "ask for a part of it, for example a range of lines with a command like sed -n"
"""Where what is too long to be shown can be had."""

INSTRUCTIONS = """\
These tools run commands on the user's machine under whisper_tui, where a human watches every command.
- A human may be asked before a command runs. The answer can take minutes: wait for it, and do not send the call again.
- An answer with the status `pending_approval`, `approved` or `running` is no result: it holds a `ticket`. Call `wait` \
with that ticket until the result is there. `pending_approval` means that nothing has run and nothing was refused.
- A command of your own shell may be held for the human in the same way: if it, or a script that runs it, goes on \
without output, wait for it; do not end it or try another way.
- A denied call fails and says why in the human's own words. Nothing ran. Follow the words; do not try another way to \
do what was denied.
- The human may change a command before it runs. Then the answer says what ran instead.
- Give `run_shell_command` a `description`: the human reads it.
- `ExecCommand` answers when the command ends, or at the end of its foreground window; then the command goes on as a \
task, which `TaskOutput`, `TaskStatus`, `TaskInput` and `TaskStop` are about.
- Each call is independent; `cd` and variables do not last. `timeout` counts from the start of the command, not while \
the human thinks."""


def declared(tool: AITool) -> types.Tool:
    """A tool as it is listed. It has no output schema: see docs/decisions/0020-edits-are-told-in-text.md."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=not tool.read_only,
            idempotent_hint=tool.read_only,
            open_world_hint=not tool.read_only,
        ),
        # Claude Code shows a model only the names of other tools until it searches for them.
        meta={"anthropic/alwaysLoad": True},
    )


def answered(answer: Answer, call_id: str, room: Room) -> types.CallToolResult:
    """The answer to a call that has a result: the same facts as text and as structured content.

    Where there is something to tell beyond the result, only text is sent: clients that prefer structured content
    would keep the rest from the model.
    """
    meta: dict[str, Any] = {CALL_ID: call_id}
    if answer.told is None:
        return _result(answer.result, answer.text, is_error=answer.failed, meta=meta, room=room)
    text = shortened(answer.text, room.less(answer.told), f"`whisper-tui show {call_id}` knows the call")
    content: list[types.ContentBlock] = [_text(answer.told), _text(text)]
    return types.CallToolResult(content=content, is_error=answer.failed, meta=meta | {TOLD: answer.told})


def still_open(record: CallRecord) -> types.CallToolResult:
    """The answer to a call whose client can wait no longer: where it stands, and its ticket."""
    result = pending(record)
    return _result(result, pending_text(result), is_error=False, meta={CALL_ID: record.id})


def plain(tool: AITool, result: Any, room: Room) -> types.CallToolResult:
    """The answer of a tool that nobody had to be asked about."""
    return _result(result, tool.text(result), is_error=tool.is_error(result), meta=None, room=room)


def failed_by(tool: AITool, error: WhisperError, call_id: str | None = None) -> types.CallToolResult:
    """The answer to a call of this tool that has no result, in the tool's own shape where it has one."""
    shaped = tool.error_result(error)
    if shaped is None:
        return failed(error, call_id)
    meta = {CALL_ID: call_id} if call_id is not None else None
    return _result(shaped, tool.text(shaped), is_error=True, meta=meta)


def failed(error: WhisperError, call_id: str | None = None) -> types.CallToolResult:
    """The answer to a call that has no result. The text says so itself: some clients drop the error mark."""
    says_so = isinstance(error, ToolFailure) and not isinstance(error, ArgumentError)
    text = error.sentence() if says_so else f"Error: {error.sentence().rstrip('.')}. Nothing ran."
    meta = {CALL_ID: call_id} if call_id is not None else None
    return types.CallToolResult(content=[_text(text)], is_error=True, meta=meta)


def _result(
    result: Any, text: str, *, is_error: bool, meta: dict[str, Any] | None, room: Room | None = None
) -> types.CallToolResult:
    """Text, and the same facts as structured content where they are an object.

    The tools that print much see to it themselves that it fits; what is still too long is sent as text alone.
    """
    structured = result if isinstance(result, dict) else None
    if room is not None and room.filled(text, *([] if structured is None else [as_json(structured)])) > 1.0:
        text, structured = shortened(text, room, REST), None
    return types.CallToolResult(content=[_text(text)], structured_content=structured, is_error=is_error, meta=meta)


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)
