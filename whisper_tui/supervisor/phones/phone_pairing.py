"""The pairing that the desk has opened: its code, the key that came, and the time that is left."""

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from whisper_tui.model.errors import NotAllowed
from whisper_tui.model.page_address import PageAddress, page_address
from whisper_tui.model.phone import PAIR_PATH, PairedPhone, PhonePairing, PhoneRegistration
from whisper_tui.supervisor.phones.passkeys import (
    check_installed,
    encoded,
    new_key,
    registration_options,
)
from whisper_tui.supervisor.phones.phone_devices import (
    WAIT_S,
    PairedKey,
    PhoneDevices,
    digest_of_token,
    new_token,
)

OPEN_S = 300.0
"""Seconds for which a code can be used, and then as many for the desk to confirm the phone."""
MOST_WRONG = 5
"""Wrong codes that close a pairing."""
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's: without those that are read as another one."""
LENGTH = 10
"""Letters of a code: 50 bits."""
_READ_AS = str.maketrans({"O": "0", "I": "1", "L": "1", "-": "", " ": ""})

OPEN_ONE = "Open a pairing at the desk: whisper-tui phone pair"


@dataclass
class _OpenPairing:
    """A pairing in progress."""

    site: PageAddress
    code: str
    ends: float
    wrong: int = 0
    challenge: bytes | None = None
    user: bytes = b""
    name: str = ""
    device: PairedKey | None = None


def readable(code: str) -> str:
    """Return a code in two groups."""
    return f"{code[: LENGTH // 2]}-{code[LENGTH // 2 :]}"


class PhonePairings:
    """One pairing at a time, opened at the desk and confirmed there."""

    def __init__(self, devices: PhoneDevices, clock: Callable[[], float]) -> None:
        self._devices = devices
        self._clock = clock
        self._open: _OpenPairing | None = None
        self._closed_because = ""

    def open(self, origin: str) -> PhonePairing:
        """Open a pairing for the page with this address, in the place of another one."""
        check_installed()
        site = page_address(origin)
        code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
        self._open = _OpenPairing(site, code, self._clock() + OPEN_S)
        return self.state()

    def state(self) -> PhonePairing:
        """Return the pairing as the desk sees it."""
        pairing = self._current()
        if pairing is None:
            return PhonePairing(state="closed", closed_because=self._closed_because)
        left = max(0.0, pairing.ends - self._clock())
        if pairing.device is not None:
            shown = pairing.device.shown(confirmed=False)
            return PhonePairing(state="key", expires_in_s=left, device=shown)
        code = readable(pairing.code)
        url = f"{pairing.site.origin}{PAIR_PATH}#{code}"
        return PhonePairing(state="open", code=code, url=url, expires_in_s=left)

    def begin(self, code: str, name: str) -> PhoneRegistration:
        """Return what the phone needs to make its key. Raises `NotAllowed`."""
        pairing = self._checked(code)
        self._devices.check_room(name)
        pairing.challenge, pairing.user, pairing.name = secrets.token_bytes(32), secrets.token_bytes(16), name
        left = pairing.ends - self._clock()
        options = registration_options(pairing.site, pairing.challenge, pairing.user, name)
        return PhoneRegistration(expires_in_s=left, options=options)

    def take(self, code: str, name: str, attestation: str) -> PairedPhone:
        """Take the key of a phone, which the desk is asked about next. Raises `NotAllowed`."""
        pairing = self._checked(code)
        challenge, pairing.challenge = pairing.challenge, None
        if challenge is None or name != pairing.name:
            raise NotAllowed("no key was asked for, or for another name", hint="Begin again on the phone")
        key = new_key(pairing.site, challenge, attestation)
        if any(each.credential_id == key.credential_id for each in self._devices.all()):
            raise NotAllowed("this key is paired already", hint="Revoke that phone first, or use it")
        now, token = self._clock(), new_token()
        pairing.device = PairedKey(
            id=f"p{secrets.token_hex(6)}",
            name=name,
            credential_id=key.credential_id,
            public_key=key.public_key,
            user=encoded(pairing.user),
            sign_count=key.sign_count,
            may_sync=key.may_sync,
            synced=key.synced,
            origin=pairing.site.origin,
            rp_id=pairing.site.rp_id,
            token_digest=digest_of_token(token),
            paired_at=now,
            may_approve_from=now + WAIT_S,
        )
        pairing.ends = now + OPEN_S
        return PairedPhone(device=pairing.device.shown(confirmed=False), token=token)

    def waiting(self, token: str) -> PairedKey | None:
        """Return the phone with this secret that waits to be confirmed. None: there is none."""
        pairing = self._current()
        device = pairing.device if pairing is not None else None
        return (
            device if device is not None and hmac.compare_digest(device.token_digest, digest_of_token(token)) else None
        )

    def confirm(self, device_id: str, announce: Callable[[PairedKey], None], *, add: bool) -> PairedKey | None:
        """Add the phone that waits, or refuse it; `announce` is called before it is added. None: it does not wait."""
        pairing = self._current()
        if pairing is None or pairing.device is None or pairing.device.id != device_id:
            return None
        now = self._clock()
        device = pairing.device.model_copy(update={"paired_at": now, "may_approve_from": now + WAIT_S})
        if add:
            self._devices.check_room(device.name)
            # No phone may be there that nobody was told of.
            announce(device)
            self._devices.add(device)
        self._close("the phone was confirmed" if add else "the phone was refused at the desk")
        return device

    def _checked(self, code: str) -> _OpenPairing:
        pairing = self._current()
        if pairing is None:
            why = f": {self._closed_because}" if self._closed_because else ""
            raise NotAllowed(f"no pairing is open{why}", hint=OPEN_ONE)
        given = code.upper().translate(_READ_AS).encode("ascii", "replace")
        if not hmac.compare_digest(given, pairing.code.encode()):
            pairing.wrong += 1
            if pairing.wrong >= MOST_WRONG:
                self._close(f"{MOST_WRONG} wrong codes came")
                raise NotAllowed(
                    f"the code is wrong, for the {MOST_WRONG}th time, so the pairing is closed", hint=OPEN_ONE
                )
            raise NotAllowed("the code is wrong", hint="Read it again at the desk")
        if pairing.device is not None:
            raise NotAllowed("a phone has used this code already", hint="The desk confirms that phone, or refuses it")
        return pairing

    def _current(self) -> _OpenPairing | None:
        if self._open is not None and self._clock() >= self._open.ends:
            self._close("its time is over")
        return self._open

    def _close(self, why: str) -> None:
        self._open, self._closed_because = None, why
