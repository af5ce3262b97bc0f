"""A tool call from a shell: its supervisor carries it out, and may die and come back meanwhile."""

import os
import sys
import time

from whisper_tui.cli.reaching import home_at, reach
from whisper_tui.model.errors import InvalidRequest, OtherVersion, Unavailable
from whisper_tui.model.sendable import sendable
from whisper_tui.wire.asking import ConnectionLost, Talk
from whisper_tui.wire.versions import HAND_OVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

VERSION = 1
"""Of the hello."""

AGAIN_S = 0.3
"""Seconds until a lost supervisor is looked for."""

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
