"""The phone's side of a supervisor in memory: calls that tests put there, and keys that are believed as they come."""

import asyncio
import base64
import hashlib
import json
import secrets
from typing import Any

from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, NotAllowed, UnknownCall, UnknownPhone
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
    PhoneRow,
    SignedDecision,
)

CODE = "QX7M-2F4K"
NOW = 1_796_000_000.0
PUSH_KEY = "BI5TO2-gv3tGJbswZnwB-2B--fi4qA_vWzAGKHAxh7Kjc-sdveAzGDZtBp-DpvWQAFPHNjPLBBshxV4ahsH0ALQ"
USER_VERIFIED = 4
"""The bit in the flags of an authenticator."""


class PhoneInMemory:
    """All that a phone can ask for. Signatures are not verified: that is the real supervisor's."""

    def __init__(self, origin: str = "") -> None:
        self.origin = origin
        self.waiting: dict[str, PhoneCall] = {}
        self.devices: dict[str, PhoneDevice] = {}
        self.taken: list[tuple[str, str, str]] = []
        """Call, decision and reason of each answer."""
        self.pushed: dict[str, str] = {}
        """By the secret of a phone: the address to which it wants pushes."""
        self.confirms = True
        self.undo_s = 0.0
        self.more = 0
        self.now = NOW
        self._changed = asyncio.Condition()
        self._revision = 1
        self._signs_in: dict[str, bytes] = {}
        self._begun: dict[str, tuple[str, SignedDecision, str, bytes]] = {}

    async def put(self, *calls: PhoneCall) -> None:
        """Let calls wait, or change them."""
        self.waiting |= {call.id: call for call in calls}
        await self.change()

    async def change(self) -> None:
        async with self._changed:
            self._revision += 1
            self._changed.notify_all()

    def pair(self, token: str = "token", **facts: Any) -> str:
        self.devices[token] = _device(len(self.devices), "a phone", self.origin, **facts)
        return token

    async def phone_device(self, device: str) -> PhoneDevice:
        if device not in self.devices:
            raise NotAllowed("this phone is not paired any more", hint="Pair it again at the desk")
        return self.devices[device]

    async def phone_calls(self, device: str) -> PhoneCalls:
        await self.phone_device(device)
        rows = tuple(_row(call) for call in self.waiting.values())
        return PhoneCalls(rows=rows, more=self.more, revision=self._revision, now=self.now)

    async def phone_call(self, device: str, call_id: str) -> PhoneCall:
        await self.phone_device(device)
        if (call := self.waiting.get(call_id)) is not None:
            return call
        if any(call_id == taken for taken, _, _ in self.taken):
            raise AlreadyDecided(f"call {call_id} was decided elsewhere")
        raise UnknownCall(f"there is no call {call_id}")

    async def phone_begin(self, device: str, call_id: str, decision: SignedDecision, seen: str) -> PhoneChallenge:
        call = await self.phone_call(device, call_id)
        if call.seen != seen:
            raise ChangedSinceSeen(f"call {call_id} has changed since you looked")
        if decision not in call.may:
            raise NotAllowed(call.why_not)
        nonce = secrets.token_hex(16)
        challenge = hashlib.sha256(f"{call_id}{seen}{decision}{nonce}".encode()).digest()
        self._begun[nonce] = call_id, decision, seen, challenge
        return PhoneChallenge(
            nonce=nonce,
            challenge=_text(challenge),
            expires_in_s=120,
            credential_ids=(),
            options={"challenge": _text(challenge), "rpId": self._rp_id, "userVerification": "required"},
        )

    async def phone_decide(self, device: str, nonce: str, assertion: str) -> PhoneAnswer:
        if nonce not in self._begun:
            raise NotAllowed("this challenge was used or has expired")
        call_id, decision, seen, challenge = self._begun.pop(nonce)
        call = await self.phone_call(device, call_id)
        response = json.loads(assertion)["response"]
        client = json.loads(_bytes(response["clientDataJSON"]))
        flags = _bytes(response["authenticatorData"])[32]
        if (client["challenge"], client["origin"], client["type"]) != (_text(challenge), self.origin, "webauthn.get"):
            raise NotAllowed("the passkey has signed something else")
        if not flags & USER_VERIFIED:
            raise NotAllowed("the phone has not checked who uses it")
        if call.seen != seen:
            raise ChangedSinceSeen(f"call {call_id} has changed since you looked")
        self.taken.append((call_id, decision, ""))
        if self.undo_s:
            await self.put(
                call.model_copy(update={"yes_until": self.now + self.undo_s, "yes_by": "a phone", "may": ()})
            )
        else:
            del self.waiting[call_id]
            await self.change()
        return PhoneAnswer(call_id=call_id, decision=decision, undo_s=self.undo_s, said="Approved.")

    async def phone_refuse(
        self, device: str, call_id: str, decision: FreeDecision, seen: str, reason: str = ""
    ) -> PhoneAnswer:
        call = await self.phone_call(device, call_id)
        if call.seen != seen:
            raise ChangedSinceSeen(f"call {call_id} has changed since you looked")
        self.taken.append((call_id, decision, reason))
        if decision == "deny":
            del self.waiting[call_id]
            await self.change()
        else:
            await self.put(call.model_copy(update={"aside": True}))
        return PhoneAnswer(call_id=call_id, decision=decision, said=f"Its agent is told: {reason or 'no'}")

    async def phone_pair_begin(self, code: str, name: str) -> PhoneRegistration:
        if code != CODE:
            raise NotAllowed("the code is wrong", hint="Look at the desk again")
        user = {"id": _text(b"desk"), "name": "whisper_tui", "displayName": "whisper_tui"}
        return PhoneRegistration(
            expires_in_s=300,
            options={
                "rp": {"id": self._rp_id, "name": "whisper_tui"},
                "user": user,
                "challenge": _text(secrets.token_bytes(32)),
                "pubKeyCredParams": [{"type": "public-key", "alg": -7}],
                "authenticatorSelection": {"residentKey": "required", "userVerification": "required"},
            },
        )

    async def phone_pair(self, code: str, name: str, attestation: str) -> PairedPhone:
        await self.phone_pair_begin(code, name)
        assert json.loads(attestation)["response"]["attestationObject"]
        token = secrets.token_urlsafe(32)
        self.devices[token] = _device(len(self.devices), name, self.origin, confirmed=self.confirms)
        return PairedPhone(device=self.devices[token], token=token)

    async def phone_sign_in_begin(self) -> PhoneChallenge:
        challenge = secrets.token_bytes(32)
        nonce = secrets.token_hex(16)
        self._signs_in[nonce] = challenge
        options = {"challenge": _text(challenge), "allowCredentials": [], "userVerification": "required"}
        return PhoneChallenge(
            nonce=nonce, challenge=_text(challenge), expires_in_s=120, credential_ids=(), options=options
        )

    async def phone_sign_in(self, nonce: str, assertion: str) -> PairedPhone:
        """Sign in the only phone there is."""
        client = json.loads(_bytes(json.loads(assertion)["response"]["clientDataJSON"]))
        if client["challenge"] != _text(self._signs_in.pop(nonce)):
            raise NotAllowed("the passkey has signed something else")
        if not self.devices:
            raise UnknownPhone("no paired phone has this passkey", hint="Pair it again at the desk")
        (device,) = self.devices.values()
        token = secrets.token_urlsafe(32)
        self.devices = {token: device}
        return PairedPhone(device=device, token=token)

    async def phone_count(self, device: str) -> int:
        await self.phone_device(device)
        return sum(not call.aside for call in self.waiting.values())

    async def phone_pushing(self, device: str) -> PhonePushing:
        await self.phone_device(device)
        return PhonePushing(key=PUSH_KEY, endpoint=self.pushed.get(device, ""))

    async def phone_push_to(self, device: str, endpoint: str) -> PhonePushing:
        self.pushed[device] = endpoint
        return await self.phone_pushing(device)

    async def phone_wait(self, device: str, since: int) -> int:
        await self.phone_device(device)
        async with self._changed:
            try:
                async with asyncio.timeout(25):
                    await self._changed.wait_for(lambda: self._revision != since)
            except TimeoutError:
                pass
        return self._revision

    @property
    def _rp_id(self) -> str:
        return self.origin.split("//")[1].split(":")[0]


def _device(number: int, name: str, origin: str, **facts: Any) -> PhoneDevice:
    usual: dict[str, Any] = {"confirmed": True, "synced": False, "paired_at": NOW, "may_approve_from": NOW}
    words = ("amber", "otter", "lantern", "plum")
    return PhoneDevice(id=f"phone-{number}", name=name, origin=origin, words=words, **(usual | facts))


def waiting_call(number: int = 7, **facts: Any) -> PhoneCall:
    """A call that waits, whose digest follows from what is given."""
    usual: dict[str, Any] = {
        "id": str(number),
        "session": "shop·main",
        "agent": "Claude Code",
        "command": "npm ci && npm test",
        "directory": "/home/ada/src/shop",
        "verdict": "No rule allows it.",
        "waiting_since": NOW - 48,
        "words": ("amber", "otter", "lantern", "plum"),
        "may": ("deny", "set_aside", "approve"),
        "revision": 1,
    }
    digest = hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()
    return PhoneCall(**({"seen": digest} | usual | facts))


def _row(call: PhoneCall) -> PhoneRow:
    same = {name: getattr(call, name) for name in PhoneRow.model_fields if name in PhoneCall.model_fields}
    return PhoneRow(**same)


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
