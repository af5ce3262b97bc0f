"""The role of phones, asked for over the supervisor's socket by the process that serves their page."""

import asyncio
import functools
import socket
from collections.abc import Callable
from typing import Any, Self

from pydantic import ValidationError

from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.phone import (
    FreeDecision,
    PairedPhone,
    PhoneAnswer,
    PhoneCall,
    PhoneCalls,
    PhoneChallenge,
    PhoneDevice,
    PhonePushing,
    PhoneRegistration,
    PhoneRole,
    SignedDecision,
)
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import Link
from whisper_tui.wire.operations import explain
from whisper_tui.wire.protocol import PHONE_ROLE
from whisper_tui.wire.rendezvous import reach


class PhoneClient(PhoneRole):
    """A supervisor, as the page for phones may ask it. It reconnects when a request finds the connection lost."""

    def __init__(self, find: Callable[[], socket.socket]) -> None:
        """`find` connects to the supervisor. It may wait, so it is called in a thread."""
        self._find = find
        self._link: Link | None = None
        self._connecting = asyncio.Lock()

    @classmethod
    async def connect(cls, home: Directories) -> Self:
        """Return a connected client; a supervisor is started if none runs. Raises `WhisperError`."""
        client = cls(functools.partial(reach, home))
        await client._connected()
        return client

    async def close(self) -> None:
        """End the connection."""
        if self._link is not None:
            await self._link.close()
            self._link = None

    async def phone_device(self, device: str) -> PhoneDevice:
        """Return the phone with this secret."""
        found: PhoneDevice = await self._ask("phone_device", device=device)
        return found

    async def phone_calls(self, device: str) -> PhoneCalls:
        """Return the waiting calls."""
        found: PhoneCalls = await self._ask("phone_calls", device=device)
        return found

    async def phone_call(self, device: str, call_id: str) -> PhoneCall:
        """Return a waiting call."""
        found: PhoneCall = await self._ask("phone_call", device=device, call_id=call_id)
        return found

    async def phone_begin(self, device: str, call_id: str, decision: SignedDecision, seen: str) -> PhoneChallenge:
        """Begin a yes."""
        found: PhoneChallenge = await self._ask(
            "phone_begin", device=device, call_id=call_id, decision=decision, seen=seen
        )
        return found

    async def phone_decide(self, device: str, nonce: str, assertion: str) -> PhoneAnswer:
        """Take a yes."""
        found: PhoneAnswer = await self._ask("phone_decide", device=device, nonce=nonce, assertion=assertion)
        return found

    async def phone_refuse(
        self, device: str, call_id: str, decision: FreeDecision, seen: str, reason: str = ""
    ) -> PhoneAnswer:
        """Deny a call, or set it aside."""
        given = {"call_id": call_id, "decision": decision, "seen": seen, "reason": reason}
        found: PhoneAnswer = await self._ask("phone_refuse", device=device, **given)
        return found

    async def phone_pair_begin(self, code: str, name: str) -> PhoneRegistration:
        """Begin to pair a phone."""
        found: PhoneRegistration = await self._ask("phone_pair_begin", code=code, name=name)
        return found

    async def phone_pair(self, code: str, name: str, attestation: str) -> PairedPhone:
        """Take the key of a phone."""
        found: PairedPhone = await self._ask("phone_pair", code=code, name=name, attestation=attestation)
        return found

    async def phone_sign_in_begin(self) -> PhoneChallenge:
        """Begin to sign in."""
        found: PhoneChallenge = await self._ask("phone_sign_in_begin")
        return found

    async def phone_sign_in(self, nonce: str, assertion: str) -> PairedPhone:
        """Sign in a paired phone."""
        found: PairedPhone = await self._ask("phone_sign_in", nonce=nonce, assertion=assertion)
        return found

    async def phone_count(self, device: str) -> int:
        """Return the number of calls that wait."""
        found: int = await self._ask("phone_count", device=device)
        return found

    async def phone_pushing(self, device: str) -> PhonePushing:
        """Return how this phone is woken."""
        found: PhonePushing = await self._ask("phone_pushing", device=device)
        return found

    async def phone_push_to(self, device: str, endpoint: str) -> PhonePushing:
        """Wake this phone by pushes to this address."""
        found: PhonePushing = await self._ask("phone_push_to", device=device, endpoint=endpoint)
        return found

    async def phone_wait(self, device: str, since: int) -> int:
        """Return the revision once it is another one, or after a while."""
        found: int = await self._ask("phone_wait", device=device, since=since)
        return found

    async def _ask(self, operation: str, /, **arguments: Any) -> Any:
        try:
            return await (await self._connected()).ask(operation, **arguments)
        except ValidationError as error:
            raise InvalidRequest(explain(error), hint="Load the page again") from None

    async def _connected(self) -> Link:
        async with self._connecting:
            if self._link is None or self._link.lost is not None:
                self._link = await Link.open(await asyncio.to_thread(self._find), PHONE_ROLE)
            return self._link
