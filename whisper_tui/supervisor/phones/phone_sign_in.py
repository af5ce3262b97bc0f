"""Signing in again by the passkey of a paired phone whose browser has lost its secret (decision 40)."""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from whisper_tui.model.errors import NotAllowed
from whisper_tui.model.phone import PhoneChallenge
from whisper_tui.supervisor.phones.passkeys import UsedKey, encoded, named_key, sign_in_options, used_key
from whisper_tui.supervisor.phones.phone_devices import PairedKey, PhoneDevices

SIGN_IN_S = 120.0
"""Seconds within which a request to sign in must be signed."""
MOST_BEGUN = 100
"""Requests to sign in that are not signed yet; the oldest ones are dropped."""
VERSION = b"whisper-sign-in-v1"
"""The beginning of what is signed: no signature for a decision can be one for this, nor the other way round."""
TRY_AGAIN = "Sign in once more"


@dataclass(frozen=True)
class _Begun:
    """A request to sign in, which is used once. In memory alone: a new supervisor knows none of them."""

    challenge: bytes
    expires: float


class PhoneSignIns:
    """Asks for signatures of phones that nobody knows yet, and says whose they are."""

    def __init__(self, devices: PhoneDevices, clock: Callable[[], float]) -> None:
        self._devices = devices
        self._clock = clock
        self._begun: dict[str, _Begun] = {}

    def begin(self) -> PhoneChallenge:
        """Return what a phone has to sign. It names no key: whoever asks is not to learn of any."""
        for name in list(self._begun)[: max(0, len(self._begun) - MOST_BEGUN + 1)]:
            del self._begun[name]
        nonce = secrets.token_bytes(32)
        begun = _Begun(hashlib.sha256(VERSION + nonce).digest(), self._clock() + SIGN_IN_S)
        self._begun[encoded(nonce)] = begun
        return PhoneChallenge(
            nonce=encoded(nonce),
            challenge=encoded(begun.challenge),
            expires_in_s=SIGN_IN_S,
            credential_ids=(),
            options=sign_in_options(begun.challenge),
        )

    def take(self, nonce: str, assertion: str) -> tuple[PairedKey, UsedKey]:
        """Return the paired phone that has signed a request, with its signature. Raises `NotAllowed`."""
        begun = self._begun.pop(nonce, None)
        if begun is None:
            raise NotAllowed("this request was answered already, or the supervisor was restarted", hint=TRY_AGAIN)
        if self._clock() >= begun.expires:
            raise NotAllowed(f"the request was not signed within {SIGN_IN_S:g} seconds", hint=TRY_AGAIN)
        phone = self._devices.with_key(named_key(assertion))
        return phone, used_key(phone, begun.challenge, assertion)
