"""A tool call from a shell: its supervisor carries it out, and may die and come back meanwhile."""

import os
import sys
import time

from whisper_tui.cli.reaching import home_at, reach
from whisper_tui.model.errors import InvalidRequest, OtherVersion, Unavailable
from whisper_tui.model.sendable import sendable
from whisper_tui.wire.asking import Asking, ConnectionLost, Talk
from whisper_tui.wire.versions import HAND_OVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

VERSION = 2
"""Of the hello."""

AGAIN_S = 0.3
"""Seconds until a lost supervisor is looked for."""

PIECE = 1024 * 1024
"""Bytes of output that are read at once."""

LOSSES = 5
"""How often it may be lost one after the other."""

FAREWELL_S = 10.0
"""Seconds in which the supervisor takes back what is given up."""


class Caller:
    """One call, over any number of connections: asking again is the same call."""

    def __init__(self, places: "Sequence[str]", name: str, tool: str, arguments: "Any") -> None:
        self._places = places
        self._hello = {
            "door": "call",
            "version": VERSION,
            "name": name,
            "root": os.path.realpath(os.curdir),
            "pid": os.getpid(),
            "environment": sendable(os.environ),
            "nonce": os.urandom(16).hex(),
            "tool": tool,
            "arguments": arguments,
        }
        self._call_id: str | None = None

    def answer(self) -> "dict[str, Any]":
        """What the tool answers. Raises `WhisperError`."""
        losses = 0
        while True:
            talk = Talk(reach(self._places))
            try:
                return self._ask(talk)
            except ConnectionLost:
                losses += 1
                self._check_that_it_comes_back(losses)
            except KeyboardInterrupt:
                talk.give_up(FAREWELL_S)
                raise
            finally:
                talk.close()
            time.sleep(AGAIN_S)

    def output(self, stream: str) -> "Iterator[str]":
        """A stream of the ended call as text, a piece at a time: no answer holds it whole."""
        from codecs import getincrementaldecoder

        decoder = getincrementaldecoder("utf-8")(errors="replace")
        with Asking(reach(self._places)) as supervisor:
            end = supervisor.ask("record", call_id=self._call_id)["state"]["output"][stream]
            offset = 0
            while offset < end:
                asked = {"call_id": self._call_id, "stream": stream, "offset": offset}
                chunk = supervisor.ask("read_output", **asked, limit=min(PIECE, end - offset))
                start, data = chunk["start"], _bytes_of(chunk["data"])[: max(end - chunk["start"], 0)]
                reached = start if data else end
                if reached > offset:
                    dropped = f"{reached - offset:,} bytes were dropped here when the output was captured"
                    yield f"\n[whisper_tui: {dropped}]\n"
                    decoder.reset()
                yield decoder.decode(data)
                offset = reached + len(data)
        yield decoder.decode(b"", final=True)

    def _ask(self, talk: Talk) -> "dict[str, Any]":
        try:
            talk.say(self._hello)
            told = talk.hear(None)
        except InvalidRequest as error:
            if error.message.startswith("there is no door"):
                raise OtherVersion("the supervisor that runs is older than this program", hint=HAND_OVER) from error
            raise
        if "call" in told:
            self._submitted(told)
            told = talk.hear(None)
        return told

    def _submitted(self, told: "dict[str, Any]") -> None:
        if self._call_id is None and told["waits"] and sys.stderr.isatty():
            call_id = told["call"]
            sys.stderr.write(f"whisper-tui: call {call_id} waits for a human: whisper-tui approve {call_id}\n")
        self._call_id = told["call"]

    def _check_that_it_comes_back(self, losses: int) -> None:
        """Raises `Unavailable` for a supervisor that was stopped on purpose, or that does not stay."""
        from whisper_tui.wire.rendezvous import was_stopped

        call = "the call" if self._call_id is None else f"call {self._call_id}"
        hint = f"Nothing is lost: whisper-tui show {self._call_id or 'ID'} says how it stands"
        if was_stopped(home_at(self._places)):
            raise Unavailable(f"the supervisor was stopped before {call} ended", hint=hint)
        if losses >= LOSSES:
            raise Unavailable(f"the supervisor goes away again and again before {call} ends", hint=hint)


def _bytes_of(told: str) -> bytes:
    """Bytes as the model writes them in JSON."""
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(told)
