"""The paired phones, in a private file of the state directory."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from whisper_tui.model.errors import Refused, UnknownPhone
from whisper_tui.model.four_words import four_words
from whisper_tui.model.phone import PhoneDevice
from whisper_tui.model.text import hidden_parts
from whisper_tui.model.value import Count, Value
from whisper_tui.supervisor.phones.passkeys import key_digest

FILE = "phones.json"
WAIT_S = 600.0
"""Seconds after which a new phone may approve: time to notice one that nobody at the desk wanted."""
MOST_DEVICES = 20
"""Phones that are not revoked."""
MOST_REVOKED = 50
"""Revoked phones that are still listed."""

PAIR_AGAIN = "Pair the phone again at the desk: whisper-tui phone pair"


class PairedKey(Value):
    """A phone, with its key and the digest of its secret."""

    id: str
    name: str
    credential_id: str
    public_key: str
    user: str
    sign_count: Count
    may_sync: bool
    synced: bool
    origin: str
    rp_id: str
    token_digest: str
    paired_at: float
    may_approve_from: float
    last_used: float | None = None
    revoked_at: float | None = None
    push_endpoint: str = ""
    """The address at a push service that wakes it. Empty: it wants no pushes."""
    doubted: bool = False
    """True if the supervisor was killed since: it may only deny until the desk confirms it again."""

    def shown(self, *, confirmed: bool = True) -> PhoneDevice:
        """Return it as people see it."""
        return PhoneDevice(
            id=self.id,
            name=self.name,
            confirmed=confirmed and not self.doubted,
            synced=self.may_sync or self.synced,
            origin=self.origin,
            paired_at=self.paired_at,
            may_approve_from=self.may_approve_from,
            last_used=self.last_used,
            pushed=bool(self.push_endpoint),
            revoked_at=self.revoked_at,
            words=four_words(key_digest(self.public_key)),
        )


_DEVICES = TypeAdapter(tuple[PairedKey, ...])


def new_token() -> str:
    """Return a secret for a phone."""
    return secrets.token_urlsafe(32)


def digest_of_token(token: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class PhoneDevices:
    """The phones of a user. Nothing but the supervisor writes their file, and it is read at the start alone."""

    def __init__(self, state: Path, clock: Callable[[], float]) -> None:
        self._path = state / FILE
        self._clock = clock
        self._devices: dict[str, PairedKey] = {}

    def open(
        self, is_recorded: Callable[[PairedKey], bool], is_doubted: Callable[[PairedKey], bool], *, doubt: bool
    ) -> tuple[tuple[PairedKey, ...], tuple[PairedKey, ...]]:
        """Read the file. Returns the phones that are doubted and revoked now. Raises `Refused`, without phones.

        `doubt`: the supervisor before was killed. Whoever can kill it can also write this file (decision 11).
        `is_recorded`: the journal has this phone as it is in the file, and not revoked. Any other one is revoked, so
        that nobody confirms another key by a name. `is_doubted`: the journal has it as doubted.
        """
        try:
            read = _DEVICES.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return (), ()
        except (OSError, ValidationError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is damaged"
            raise Refused(f"{self._path} cannot be read, so no phone can answer: {why}", hint=PAIR_AGAIN) from error
        self._devices = {device.id: device for device in read}
        now, doubted, revoked = self._clock(), list[PairedKey](), list[PairedKey]()
        for device in self.living():
            if not is_recorded(device):
                revoked.append(device.model_copy(update={"revoked_at": now, "push_endpoint": ""}))
            elif not device.doubted and (doubt or is_doubted(device)):
                doubted.append(device.model_copy(update={"doubted": True}))
        if doubted or revoked:
            self._put(*doubted, *revoked)
        return tuple(doubted), tuple(revoked)

    def all(self) -> tuple[PairedKey, ...]:
        """Return all phones, oldest first."""
        return tuple(self._devices.values())

    def living(self) -> tuple[PairedKey, ...]:
        """Return the phones that are not revoked."""
        return tuple(device for device in self._devices.values() if device.revoked_at is None)

    def with_token(self, token: str) -> PairedKey:
        """Return the phone with this secret. Raises `UnknownPhone`."""
        given = digest_of_token(token)
        found = None
        for device in self._devices.values():
            if hmac.compare_digest(device.token_digest, given):
                found = device
        if found is None:
            raise UnknownPhone("this phone is not paired", hint=PAIR_AGAIN)
        return _not_revoked(found)

    def with_key(self, credential_id: str) -> PairedKey:
        """Return the phone with this key. Raises `UnknownPhone`."""
        found = next((device for device in self._devices.values() if device.credential_id == credential_id), None)
        if found is None:
            raise UnknownPhone("no paired phone has this passkey", hint=PAIR_AGAIN)
        return _not_revoked(found)

    def named(self, name: str) -> PairedKey:
        """Return the phone with this name or id. Raises `Refused`."""
        for device in self.living():
            if name in {device.name, device.id}:
                return device
        raise Refused(f"there is no phone {name!r} that is not revoked", hint="whisper-tui phone list shows them")

    def check_room(self, name: str) -> None:
        """Raise `Refused` if no phone can be added, or none with this name."""
        # People at the desk know it by this name, and write it to revoke it.
        if not name.strip() or name != name.strip() or name.startswith("-") or any(hidden_parts(name)):
            raise Refused("this is no name that the desk can read and write", hint="Give it a plain one, like pixel")
        living = self.living()
        if len(living) >= MOST_DEVICES:
            raise Refused(f"{MOST_DEVICES} phones are paired, which is the limit", hint="Revoke one of them")
        if any(name in {device.name, device.id} for device in living):
            raise Refused(f"a phone is called {name!r} already", hint="Give it another name, or revoke that one")

    def add(self, device: PairedKey) -> None:
        """Add a phone, once the desk has confirmed it."""
        self.check_room(device.name)
        self._put(device)

    def note_use(self, device_id: str, sign_count: int, *, synced: bool) -> None:
        """Note a signature, before anything follows from it: its count must never be accepted again."""
        change = {"sign_count": sign_count, "synced": synced, "last_used": self._clock()}
        self._put(self._devices[device_id].model_copy(update=change))

    def sign_in(self, device_id: str, sign_count: int, *, synced: bool) -> str:
        """Note a signature, and give the phone another secret, which is returned. The one before counts no more."""
        token = new_token()
        change = {"sign_count": sign_count, "synced": synced, "last_used": self._clock()}
        self._put(self._devices[device_id].model_copy(update={**change, "token_digest": digest_of_token(token)}))
        return token

    def touch(self, device_id: str) -> None:
        """Note that a phone has denied a call or set it aside."""
        with suppress(Refused):
            self._put(self._devices[device_id].model_copy(update={"last_used": self._clock()}))

    def push_to(self, device_id: str, endpoint: str) -> PairedKey:
        """Note the address that wakes a phone. Empty: it wants no pushes."""
        return self._put(self._devices[device_id].model_copy(update={"push_endpoint": endpoint}))

    def confirm(self, device_id: str) -> PairedKey:
        """Trust a phone again, after a kill."""
        return self._put(self._devices[device_id].model_copy(update={"doubted": False}))

    def revoke(self, device_id: str) -> PairedKey:
        """Let a phone do nothing any more."""
        device = self._devices[device_id]
        return self._put(device.model_copy(update={"revoked_at": self._clock(), "push_endpoint": ""}))

    def _put(self, *changed: PairedKey) -> PairedKey:
        """Write the file with these phones; what is not on the disk does not hold. Raises `Refused`."""
        after = {**self._devices, **{device.id: device for device in changed}}
        revoked = [device for device in after.values() if device.revoked_at is not None]
        for device in revoked[: max(0, len(revoked) - MOST_REVOKED)]:
            del after[device.id]
        unfinished = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(_DEVICES.dump_json(tuple(after.values()), indent=1))
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._path)
        except OSError as error:
            raise Refused(f"{self._path} cannot be written: {error.strerror}", hint="Check free disk space") from error
        self._devices = after
        return changed[-1]


def _not_revoked(device: PairedKey) -> PairedKey:
    """Return a phone. Raises `UnknownPhone` if it was revoked."""
    if device.revoked_at is not None:
        raise UnknownPhone(f"the phone {device.name} was revoked", hint=PAIR_AGAIN)
    return device
