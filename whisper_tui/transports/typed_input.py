"""Text that an agent types into a running command: a call of its own, approved before it is typed (decision 22)."""

import asyncio
import base64
import binascii
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from whisper_tui.model.api import Supervision
from whisper_tui.model.call import CallRequest, CommandSpec, Function
from whisper_tui.model.errors import InvalidRequest, WhisperError
from whisper_tui.model.state import Ended
from whisper_tui.tools.supervised_tool import failure_without_result

TOOL = "write_stdin"


async def type_once_approved(
    supervision: Supervision,
    call_id: str,
    data: bytes,
    write: Callable[[bytes], Awaitable[None]],
    *,
    gone: str,
    asked: Callable[[str], None] = lambda _call_id: None,
) -> None:
    """Ask about input for a run, and write what was approved.

    `asked` is called with the id of the new call. `gone` is why it is withdrawn if this is cancelled.
    Raises `WhisperError` if nothing was typed, and whatever `write` raises.
    """
    target = await supervision.record(call_id)
    try:
        arguments: dict[str, Any] = {"task_id": call_id, "text": data.decode()}
    except UnicodeDecodeError:
        arguments = {"task_id": call_id, "base64": base64.b64encode(data).decode()}
    function = Function(tool=TOOL, arguments=arguments)
    request = CallRequest(
        session_id=target.call.session_id,
        tool=TOOL,
        arguments=arguments,
        spec=CommandSpec(command=function, cwd=target.spec.cwd),
        description=f"Types into call {call_id}",
        key=f"input {secrets.token_hex(8)}",
        asker=target.call.asker,
    )
    question = await supervision.submit(request)
    asked(question)
    try:
        record = await supervision.begin_function(question)
    except asyncio.CancelledError:
        with suppress(WhisperError):
            await supervision.withdraw(question, gone)
        raise
    if isinstance(record.state, Ended):
        raise failure_without_result(record, record.state)
    problem: str | None = "it did not return"
    try:
        await write(_approved_bytes(record.function.arguments if isinstance(record.function, Function) else arguments))
        problem = None
    except WhisperError as error:
        problem = error.sentence()
        raise
    finally:
        await supervision.end_function(question, problem)


def _approved_bytes(arguments: dict[str, Any]) -> bytes:
    """Return what a human has approved to be typed. Raises `InvalidRequest`."""
    match arguments:
        case {"text": str(text)}:
            return text.encode()
        case {"base64": str(text)}:
            with suppress(binascii.Error):
                return base64.b64decode(text, validate=True)
    raise InvalidRequest("the approved input has neither text nor valid base64", hint="Type it again")
