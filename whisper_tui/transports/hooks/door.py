"""The door through which hooks come: one question, one answer, for as long as the agent listens."""

import asyncio
from typing import Any

from whisper_tui.model.errors import WhisperError
from whisper_tui.model.port import Supervision
from whisper_tui.transports.gone import unless_gone
from whisper_tui.transports.hooks.asking import Asking
from whisper_tui.transports.hooks.clients import HookAnswer
from whisper_tui.transports.hooks.following import Following

REFUSED = 2
"""The exit code with which every client takes a hook's refusal for one, and standard error for the reason."""


class HookDoor:
    """Answers hooks over one supervision."""

    def __init__(self, supervision: Supervision, following: Following) -> None:
        self._supervision = supervision
        self._following = following

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: dict[str, Any]) -> None:
        """Serve one connection. Its end before the answer means that the agent stopped waiting."""
        asking: Asking | None = None
        try:
            asking = Asking(self._supervision, hello, self._following)
            said = await unless_gone(asking.answer(), reader)
        except WhisperError as error:
            said = HookAnswer(stderr=f"whisper_tui: {error.sentence()}\n", code=REFUSED)
        except ConnectionError:
            said = None
        if said is None:
            if asking is not None:
                await asking.give_up("the agent's hook was ended before the answer")
            return
        writer.write(framed(said))
        await writer.drain()


def framed(answer: HookAnswer) -> bytes:
    """The exit code and two lengths on one line, then the two texts: the program that reads it knows no JSON."""
    stdout, stderr = answer.stdout.encode("utf-8", "replace"), answer.stderr.encode("utf-8", "replace")
    return b"%d %d %d\n%b%b" % (answer.code, len(stdout), len(stderr), stdout, stderr)
