"""What an MCP client is shown: the tools, how they work, and the answers to calls."""

from typing import Any

import mcp_types as types

from whisper_tui.model.errors import WhisperError
from whisper_tui.tools import AITool, Answer, ToolFailure

CALL_ID = "whisper-tui/call-id"
TOLD = "whisper-tui/told"

INSTRUCTIONS = """\
These tools run commands on the user's machine under whisper_tui, where a human watches every command.
- A human may be asked before a command runs. The answer can take minutes: wait for it, and do not send the call again.
- A denied call fails and says why in the human's own words. Nothing ran. Follow the words; do not try another way to \
do what was denied.
- The human may change a command before it runs. Then the answer says what ran instead.
- Give `run_shell_command` a `description`: the human reads it.
- Each call is independent; `cd` and variables do not last. `timeout` counts from the start of the command, not while \
the human thinks."""


def declared(tool: AITool) -> types.Tool:
    """A tool as it is listed. It has no output schema: see docs/decisions/0020-edits-are-told-in-text.md."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
        ),
        # Claude Code shows a model only the names of other tools until it searches for them.
        meta={"anthropic/alwaysLoad": True},
    )


def answered(answer: Answer, call_id: str) -> types.CallToolResult:
    """The answer to a call that has a result: the same facts as text and as structured content.

    Where there is something to tell beyond the result, only text is sent: clients that prefer structured content
    would keep the rest from the model.
    """
    meta: dict[str, Any] = {CALL_ID: call_id}
    if answer.told is None:
        return types.CallToolResult(content=[_text(answer.text)], structured_content=answer.result, meta=meta)
    content: list[types.ContentBlock] = [_text(answer.told), _text(answer.text)]
    return types.CallToolResult(content=content, meta=meta | {TOLD: answer.told})


def failed(error: WhisperError, call_id: str | None = None) -> types.CallToolResult:
    """The answer to a call that has no result. The text says so itself: some clients drop the error mark."""
    text = (
        error.sentence() if isinstance(error, ToolFailure) else f"Error: {error.sentence().rstrip('.')}. Nothing ran."
    )
    meta = {CALL_ID: call_id} if call_id is not None else None
    return types.CallToolResult(content=[_text(text)], is_error=True, meta=meta)


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)
