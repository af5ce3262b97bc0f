"""A yes from a phone, from the request to sign it until it counts (decision 40)."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from whisper_tui.model.decision import Approve, Decider, Decision
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, NotAllowed, WhisperError
from whisper_tui.model.event import PhoneYes
from whisper_tui.model.phone import PhoneChallenge, SignedDecision
from whisper_tui.model.phone_proof import PhoneProof, decision_challenge, digest_of, seen_document
from whisper_tui.model.state import CallRecord, PendingYes, Waiting
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.phones.passkeys import encoded, request_options, used_key
from whisper_tui.supervisor.phones.phone_devices import PairedKey, PhoneDevices
from whisper_tui.supervisor.phones.phone_tiers import why_not_this_phone

SIGN_S = 120
"""Seconds within which a request must be signed."""
MOST_ASKED = 20
"""Requests of one phone that are not signed yet; the oldest ones are dropped."""
LOOK_AGAIN = "Look at the call again, and try once more"

DecideWithProof = Callable[[str, Decision, Decider, str, PhoneProof], Awaitable[None]]
"""Decides about a call, with the digest of the record that was seen and the proof of the decision."""

_log = logging.getLogger(__name__)


def decider_of(phone: PairedKey) -> Decider:
    """Return the author of a decision by this phone."""
    return Decider(surface="phone", who=phone.name)


@dataclass(frozen=True)
class _Asked:
    """A request to sign, which is used once. In memory alone: a new supervisor knows none of them."""

    device_id: str
    call_id: str
    decision: SignedDecision
    seen: str
    nonce: bytes
    expires: int

    @property
    def challenge(self) -> bytes:
        """The bytes that are signed."""
        return decision_challenge(self.call_id, self.seen, self.decision, self.nonce, self.expires)


class PhoneYeses:
    """Asks for signatures, verifies them, and lets a yes count once the desk has had the time to withdraw it.

    Until then the call waits: nothing was decided, and the first decision of anybody wins. To queue the call at once
    and to delay its start was not chosen, because calls start in three ways, and because a withdrawn approval would
    end the call instead of leaving it to the desk.
    """

    def __init__(
        self, store: Store, devices: PhoneDevices, decide: DecideWithProof, clock: Callable[[], float], undo_s: float
    ) -> None:
        self._store = store
        self._devices = devices
        self._decide = decide
        self._clock = clock
        self.undo_s = undo_s
        self._asked: dict[str, _Asked] = {}
        self._held: dict[str, tuple[asyncio.Task[None], PhoneProof]] = {}
        """By call: the yes that will count, and its proof."""

    def open(self) -> None:
        """Withdraw what a supervisor before has left: it has told nobody that it would still count."""
        by = Decider(surface="rule", who="the supervisor was restarted")
        for call_id in tuple(self._store.board.promised):
            self._store.retry_until_journaled(partial(self._drop, call_id, by))

    async def close(self) -> None:
        """Let nothing count any more."""
        tasks = [task for task, _ in self._held.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def ask(self, phone: PairedKey, call_id: str, decision: SignedDecision, seen: str) -> PhoneChallenge:
        """Return what this phone has to sign."""
        now = self._clock()
        mine = [name for name, asked in self._asked.items() if asked.device_id == phone.id]
        for name in mine[: max(0, len(mine) - MOST_ASKED + 1)]:
            del self._asked[name]
        asked = _Asked(phone.id, call_id, decision, seen, secrets.token_bytes(32), int(now) + SIGN_S)
        nonce = encoded(asked.nonce)
        self._asked[nonce] = asked
        return PhoneChallenge(
            nonce=nonce,
            challenge=encoded(asked.challenge),
            expires_in_s=asked.expires - now,
            credential_ids=(phone.credential_id,),
            options=request_options(phone, asked.challenge, phone.credential_id),
        )

    def take(self, phone: PairedKey, nonce: str, assertion: str) -> tuple[str, SignedDecision]:
        """Take a signed yes, which counts after the undo window. Returns its call and its decision.

        There is no pause in here: between the last check and the record nothing else can happen.
        """
        asked = self._asked.pop(nonce, None)
        if asked is None or asked.device_id != phone.id:
            raise NotAllowed("this request was answered already, or the supervisor was restarted", hint=LOOK_AGAIN)
        now = self._clock()
        if now >= asked.expires:
            raise NotAllowed(f"the request was not signed within {SIGN_S} seconds", hint=LOOK_AGAIN)
        if why := why_not_this_phone(phone, now):
            raise NotAllowed(why)
        record = waiting_record(self._store, asked.call_id)
        if record.pending_yes is not None:
            raise AlreadyDecided(f"{record.pending_yes.by.who} has said yes to call {record.id} already")
        document = check_seen(record, asked.seen)
        used = used_key(phone, asked.challenge, assertion)
        self._devices.note_use(phone.id, used.sign_count, synced=used.synced)
        proof = PhoneProof(
            device_id=phone.id,
            seen=asked.seen,
            document=document,
            decision=asked.decision,
            nonce=nonce,
            expires=asked.expires,
            rp_id=phone.rp_id,
            origin=phone.origin,
            public_key=phone.public_key,
            assertion=used.assertion,
        )
        until, by = now + self.undo_s, decider_of(phone)
        self._store.record(PhoneYes(at=now, call_id=record.id, until=until, by=by), durable=True)
        self._held[record.id] = asyncio.create_task(self._count(record.id, until, by, proof)), proof
        return record.id, asked.decision

    def withdraw(self, call_id: str, by: Decider) -> bool:
        """Withdraw the yes to a call, which waits as before. Returns False if there is none."""
        held = self._held.pop(call_id, None)
        if held is not None and held[0] is not asyncio.current_task():
            held[0].cancel()
        if call_id not in self._store.board.promised:
            return False
        self._store.record(PhoneYes(at=self._clock(), call_id=call_id, until=None, by=by), durable=True)
        return True

    def _drop(self, call_id: str, by: Decider) -> None:
        self.withdraw(call_id, by)

    def _drop_one(self, call_id: str, pending: PendingYes, why: Decider) -> None:
        record = self._store.board.calls.get(call_id)
        if record is not None and record.pending_yes == pending:
            self.withdraw(call_id, why)

    def withdraw_all_of(self, device_id: str, by: Decider) -> None:
        """Withdraw all that a phone has said, and forget what it was asked."""
        self._asked = {name: asked for name, asked in self._asked.items() if asked.device_id != device_id}
        for call_id in [call_id for call_id, (_, proof) in self._held.items() if proof.device_id == device_id]:
            self.withdraw(call_id, by)

    async def _count(self, call_id: str, until: float, by: Decider, proof: PhoneProof) -> None:
        try:
            await asyncio.sleep(self.undo_s)
            record = waiting_record(self._store, call_id)
            # What is recorded decides, and not this task: it may have been withdrawn, and another yes may wait.
            if record.pending_yes != PendingYes(by=by, until=until):
                return
            # The last look: what is there now must be what was signed.
            check_seen(record, proof.seen)
            preview = record.preview.report if record.preview is not None else None
            applied = preview.digest if preview is not None and proof.decision == "apply" else None
            await self._decide(call_id, Approve(preview=applied), by, record.seen_digest(), proof)
        except AlreadyDecided:
            pass
        except WhisperError as error:
            _log.warning("the yes of %s to call %s does not count: %s", by.who, call_id, error.sentence())
            # It must not be announced for ever: as soon as the journal takes it, the call waits as before.
            why = Decider(surface="rule", who=error.message)
            self._store.retry_until_journaled(partial(self._drop_one, call_id, PendingYes(by=by, until=until), why))
        finally:
            if (held := self._held.get(call_id)) is not None and held[0] is asyncio.current_task():
                del self._held[call_id]


def waiting_record(store: Store, call_id: str) -> CallRecord:
    """Return a call about which a human is asked. Raises `UnknownCall`, `AlreadyDecided`."""
    record = store.call(call_id)
    if not isinstance(record.state, Waiting) or record.is_held_back:
        raise AlreadyDecided(f"call {call_id} {_why_it_does_not_wait(record)}")
    return record


def _why_it_does_not_wait(record: CallRecord) -> str:
    """Return what became of a call, as a clause that a phone may show."""
    by, decision = record.decided_by, record.decision
    if by is None or decision is None:
        return f"does not wait for you: it is {record.state.kind}"
    done = "approved" if decision.kind == "approve" else "denied"
    who = f" by {by.who}" if by.who and record.decided_by_human else ""
    return f"was {done}{who} ({by.surface}), and is {record.state.kind}"


def check_seen(record: CallRecord, seen: str) -> str:
    """Return the document of a call. Raises `ChangedSinceSeen` if it is not what was seen."""
    document = seen_document(record)
    if digest_of(document) != seen:
        raise ChangedSinceSeen(f"call {record.id} has changed since it was shown", hint="Look at it again")
    return document
