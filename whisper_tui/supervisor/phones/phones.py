"""Phones at a supervisor: all that their role may ask for, and all that the desk does about them (decision 40)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Protocol, TypeVar

from whisper_tui.model.call import FileVersions, Session
from whisper_tui.model.decision import Decider, Deny
from whisper_tui.model.effects import Effects
from whisper_tui.model.errors import NotAllowed, Refused, WhisperError
from whisper_tui.model.event import (
    Decided,
    Event,
    Finished,
    Judged,
    PhoneChange,
    PhoneChanged,
    PhoneYes,
    PreviewDropped,
    PreviewEnded,
    PreviewStarted,
    SetAside,
)
from whisper_tui.model.phone import (
    LONGEST_WAIT_S,
    MOST_EFFECTS,
    MOST_LINES,
    MOST_ROWS,
    FreeDecision,
    PairedPhone,
    PhoneAnswer,
    PhoneCall,
    PhoneCalls,
    PhoneChallenge,
    PhoneDecision,
    PhoneDevice,
    PhonePairing,
    PhonePushing,
    PhoneRegistration,
    SignedDecision,
)
from whisper_tui.model.phone_facts import PhoneWords, ShownFacts
from whisper_tui.model.phone_proof import LONGEST_DOCUMENT, PhoneProof, digest_of, seen_document
from whisper_tui.model.preview import PreviewChange, PreviewPage
from whisper_tui.model.push_endpoint import PushOrder, push_endpoint
from whisper_tui.model.state import CallRecord
from whisper_tui.policy.risks.later_files import later_kind
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.phones.passkeys import NOT_INSTALLED, check_installed
from whisper_tui.supervisor.phones.phone_devices import PairedKey, PhoneDevices
from whisper_tui.supervisor.phones.phone_pairing import PhonePairings
from whisper_tui.supervisor.phones.phone_sign_in import PhoneSignIns
from whisper_tui.supervisor.phones.phone_tiers import permitted
from whisper_tui.supervisor.phones.phone_yes import DecideWithProof, PhoneYeses, check_seen, decider_of, waiting_record
from whisper_tui.supervisor.phones.push_key import PushKey
from whisper_tui.supervisor.settings import PhoneSettings

UNDO_S = 3.0
"""The least seconds in which the desk can withdraw a phone's yes."""
NOT_RECORDED = "its entry in phones.json is not the one that was recorded"
_T = TypeVar("_T")
LOOKS = 3
"""How often a call is looked at anew that changes while it is looked at."""
_SHOWN = (
    Judged | SetAside | Decided | PhoneYes | Finished | PreviewStarted | PreviewEnded | PreviewDropped | PhoneChanged
)


class CallFacts(Protocol):
    """The operations of the API by which the facts about a call are found."""

    async def effects(self, call_id: str) -> Effects:
        """State what a call would change."""
        ...

    async def file_versions(self, call_id: str) -> tuple[FileVersions, ...]:
        """Return the contents of the files of an edit."""
        ...

    async def preview_page(self, call_id: str, after: int = 0, limit: int = 1000) -> PreviewPage:
        """Return changes of its preview."""
        ...

    async def preview_versions(self, call_id: str, number: int) -> FileVersions:
        """Return the content of one changed file."""
        ...

    async def set_aside(self, call_id: str, by: Decider, *, back: bool = False) -> None:
        """Set a waiting call aside."""
        ...


class Phones:
    """The roles `PhoneRole` and `PhoneDesk`."""

    def __init__(
        self,
        store: Store,
        state: Path,
        facts: CallFacts,
        *,
        decide: DecideWithProof,
        words: Callable[[], PhoneWords],
        settings: PhoneSettings,
        clock: Callable[[], float] = time.time,
        undo_s: float = UNDO_S,
    ) -> None:
        """`decide` records a decision with its proof, and `words` loads those for people."""
        self._store = store
        self._facts = facts
        self._decide = decide
        self._load_words = words
        self._settings = settings
        self._clock = clock
        self._devices = PhoneDevices(state, clock)
        self._pairings = PhonePairings(self._devices, clock)
        self._sign_ins = PhoneSignIns(self._devices, clock)
        self._yeses = PhoneYeses(store, self._devices, decide, clock, undo_s)
        self._push_key = PushKey(state)
        self._begin_pushes: Callable[[], None] | None = None
        self._problem: Refused | None = None
        """Why the file of the phones cannot be used."""
        self._revision = int(clock() * 1000)
        self._changed = asyncio.Event()

    def open(self) -> None:
        """Read which phones there are. After a kill all of them have to be confirmed again."""
        self._store.listen(self._on_event)
        try:
            killed = not self._store.journal.ended_cleanly
            doubted, revoked = self._devices.open(self._is_recorded, self._is_doubted, doubt=killed)
            for device in doubted:
                self._announce(device, "doubted", Decider(surface="rule", who="the supervisor was killed"))
            for device in revoked:
                self._announce(device, "revoked", Decider(surface="rule", who=NOT_RECORDED))
        except Refused as problem:
            self._problem = problem
        self._yeses.open()

    async def close(self) -> None:
        """Let no yes count any more."""
        await self._yeses.close()

    async def phone_device(self, device: str) -> PhoneDevice:
        """Return the phone with this secret, also while the desk has not confirmed it."""
        if (waiting := self._pairings.waiting(device)) is not None:
            return waiting.shown(confirmed=False)
        return self._phone(device).shown()

    async def phone_calls(self, device: str) -> PhoneCalls:
        """Return the waiting calls."""
        self._phone(device)
        board, revision = self._store.board, self._revision
        ids = list(islice(chain(board.waiting, board.aside), MOST_ROWS))
        records = [board.record(call_id) for call_id in ids]
        rows = tuple(self._words().row(each, self._session(each)) for each in records)
        more = len(board.waiting) + len(board.aside) - len(ids)
        return PhoneCalls(rows=rows, more=more, revision=revision, now=self._clock())

    async def phone_call(self, device: str, call_id: str) -> PhoneCall:
        """Return a waiting call."""
        phone = self._phone(device)
        record, facts, card = await self._card(call_id)
        may, why_not = self._permitted(record, facts, card, phone)
        return card.model_copy(update={"may": may, "why_not": why_not})

    async def phone_begin(self, device: str, call_id: str, decision: SignedDecision, seen: str) -> PhoneChallenge:
        """Begin a yes."""
        phone = self._phone(device)
        # Loading the library takes a while, and its answer is wanted before the human has signed.
        await asyncio.to_thread(check_installed)
        record, facts, card = await self._card(call_id)
        check_seen(record, seen)
        may, why_not = self._permitted(record, facts, card, phone)
        if decision not in may:
            why = why_not or f"Call {call_id} has no preview whose changes are all shown here"
            raise NotAllowed(why.rstrip("."), hint="It can be denied here, or set aside")
        return self._yeses.ask(self._phone(device), call_id, decision, seen)

    async def phone_decide(self, device: str, nonce: str, assertion: str) -> PhoneAnswer:
        """Take a yes."""
        phone = self._phone(device)
        call_id, decision = self._yeses.take(phone, nonce, assertion)
        seconds = self._yeses.undo_s
        said = f"Call {call_id} is approved in {seconds:g} s, unless the desk withdraws it"
        if decision == "apply":
            said = f"The changes shown for call {call_id} are made in {seconds:g} s, unless the desk withdraws that"
        return PhoneAnswer(call_id=call_id, decision=decision, undo_s=seconds, said=said)

    async def phone_refuse(
        self, device: str, call_id: str, decision: FreeDecision, seen: str, reason: str = ""
    ) -> PhoneAnswer:
        """Deny a call, or set it aside."""
        phone = self._phone(device)
        record = waiting_record(self._store, call_id)
        document = check_seen(record, seen)
        if decision == "set_aside":
            await self._facts.set_aside(call_id, decider_of(phone))
            said = f"Call {call_id} is set aside"
        else:
            kept = document if len(document) <= LONGEST_DOCUMENT else ""
            proof = PhoneProof(device_id=phone.id, seen=seen, document=kept, decision="deny")
            await self._decide(call_id, Deny(reason=reason), decider_of(phone), record.seen_digest(), proof)
            said = f"Call {call_id} is denied"
        self._devices.touch(phone.id)
        return PhoneAnswer(call_id=call_id, decision=decision, said=said)

    async def phone_pair_begin(self, code: str, name: str) -> PhoneRegistration:
        """Begin to pair a phone."""
        return self._pairings.begin(code, name)

    async def phone_pair(self, code: str, name: str, attestation: str) -> PairedPhone:
        """Take the key of a phone."""
        return self._pairings.take(code, name, attestation)

    async def phone_sign_in_begin(self) -> PhoneChallenge:
        """Begin to sign in."""
        await asyncio.to_thread(check_installed)
        self._check_file()
        return self._sign_ins.begin()

    async def phone_sign_in(self, nonce: str, assertion: str) -> PairedPhone:
        """Sign in a paired phone."""
        self._check_file()
        phone, used = self._sign_ins.take(nonce, assertion)
        # No phone may be signed in that nobody was told of: an account may have copied its key.
        standing = self._store.board.phones[phone.id].change
        self._announce(phone, standing, decider_of(phone), signed_in=True)
        token = self._devices.sign_in(phone.id, used.sign_count, synced=used.synced)
        return PairedPhone(device=self._devices.with_token(token).shown(), token=token)

    async def phone_count(self, device: str) -> int:
        """Return the number of calls that wait."""
        self._phone(device)
        return len(self._store.board.waiting)

    async def phone_pushing(self, device: str) -> PhonePushing:
        """Return how this phone is woken."""
        await asyncio.to_thread(check_installed)
        return PhonePushing(key=self._push_key.public(), endpoint=self._phone(device).push_endpoint)

    async def phone_push_to(self, device: str, endpoint: str) -> PhonePushing:
        """Wake this phone by pushes to this address."""
        phone = self._phone(device)
        if endpoint:
            push_endpoint(endpoint)
        self._devices.push_to(phone.id, endpoint)
        if endpoint and self._begin_pushes is not None:
            self._begin_pushes()
        return await self.phone_pushing(device)

    def listen_pushed(self, begin: Callable[[], None]) -> None:
        """Have a function called if any phone wants pushes, or as soon as one does; it may be called again."""
        self._begin_pushes = begin
        if any(device.push_endpoint for device in self._devices.living()):
            begin()

    def push_orders(self) -> tuple[PushOrder, ...]:
        """Return a push for each phone that wants them. Raises `Refused`."""
        now, sign = self._clock(), self._push_key.authorization
        try:
            return tuple(
                PushOrder(each.id, each.push_endpoint, sign(each.push_endpoint, each.origin, now))
                for each in self._devices.living()
                if each.push_endpoint
            )
        except ImportError:
            raise Refused(NOT_INSTALLED, hint="whisper-tui phone says how to install it") from None

    def push_gone(self, order: PushOrder) -> None:
        """Forget an address that its push service does not know any more."""
        # It may have given another one meanwhile.
        if any(each.id == order.device_id and each.push_endpoint == order.endpoint for each in self._devices.living()):
            self._devices.push_to(order.device_id, "")

    async def phone_wait(self, device: str, since: int) -> int:
        """Return the revision once it is another one, or after a while."""
        self._phone(device)
        deadline = asyncio.get_running_loop().time() + LONGEST_WAIT_S
        while self._revision == since and (left := deadline - asyncio.get_running_loop().time()) > 0:
            changed = self._changed
            try:
                await asyncio.wait_for(changed.wait(), left)
            except TimeoutError:
                break
        self._phone(device)
        return self._revision

    async def phone_pairing_open(self, origin: str) -> PhonePairing:
        """Open a pairing."""
        await asyncio.to_thread(check_installed)
        self._check_file()
        return self._pairings.open(origin or self._settings.origin)

    async def phone_pairing(self) -> PhonePairing:
        """Return the pairing that is open."""
        return self._pairings.state()

    async def phone_confirm(self, device_id: str, by: Decider, *, add: bool) -> PhoneDevice:
        """Add the phone that waits, or refuse it; or trust one again after a kill."""
        found = self._pairings.confirm(device_id, lambda device: self._announce(device, "paired", by), add=add)
        if found is not None:
            return found.shown(confirmed=add)
        device = self._devices.named(device_id)
        if not add:
            return await self.phone_revoke(device.id, by)
        if device.doubted:
            self._announce(device, "confirmed", by)
            device = self._devices.confirm(device.id)
        return device.shown()

    async def phone_devices(self) -> tuple[PhoneDevice, ...]:
        """Return all phones."""
        self._check_file()
        return tuple(device.shown() for device in self._devices.all())

    async def phone_revoke(self, name: str, by: Decider) -> PhoneDevice:
        """Revoke a phone, and withdraw its yes that does not count yet."""
        device = self._devices.revoke(self._devices.named(name).id)
        self._yeses.withdraw_all_of(device.id, by)
        self._announce(device, "revoked", by)
        return device.shown()

    async def withdraw_yes(self, call_id: str, by: Decider) -> None:
        """Withdraw a phone's yes that does not count yet. Raises `Refused` if there is none."""
        if not self._yeses.withdraw(call_id, by):
            raise Refused(f"no phone has said yes to call {call_id}, or it counts already", hint="Look at it again")

    def _phone(self, token: str) -> PairedKey:
        self._check_file()
        return self._devices.with_token(token)

    def _words(self) -> PhoneWords:
        return self._load_words()

    def _check_file(self) -> None:
        if self._problem is not None:
            raise self._problem

    def _session(self, record: CallRecord) -> Session | None:
        return self._store.board.sessions.get(record.call.session_id)

    def _permitted(
        self, record: CallRecord, facts: ShownFacts, card: PhoneCall, phone: PairedKey
    ) -> tuple[tuple[PhoneDecision, ...], str]:
        return permitted(record, facts, card, phone, self._clock(), severe=self._settings.may_approve_severe)

    async def _card(self, call_id: str) -> tuple[CallRecord, ShownFacts, PhoneCall]:
        """Return a waiting call as it is after the facts about it were found, these facts, and its card."""
        for _ in range(LOOKS):
            revision, record = self._revision, waiting_record(self._store, call_id)
            document = seen_document(record)
            facts = await self._found(record)
            seen = digest_of(document)
            card = await asyncio.to_thread(self._words().card, record, self._session(record), facts, seen, revision)
            record = waiting_record(self._store, call_id)
            if seen_document(record) == document:
                return record, facts, card
        raise Refused(f"call {call_id} keeps changing while it is looked at", hint="Look at it again")

    async def _found(self, record: CallRecord) -> ShownFacts:
        """Return the facts about a call, as far as they can be found."""
        effects = await _unless_refused(self._facts.effects(record.id))
        later = {} if effects is None else {each.path: later_kind(each.real) for each in effects.files}
        later = {path: kind for path, kind in later.items() if kind}
        edits = await _unless_refused(self._facts.file_versions(record.id)) or ()
        preview = record.preview
        if preview is None or not preview.can_be_applied:
            return ShownFacts(effects, later, edits)
        try:
            page = await self._facts.preview_page(record.id, 0, MOST_EFFECTS)
            versions, whole = await self._versions(record.id, page.changes)
        except WhisperError as error:
            return ShownFacts(effects, later, edits, whole=False, problem=error.message)
        return ShownFacts(effects, later, edits, page.changes, versions, whole and page.total <= len(page.changes))

    async def _versions(self, call_id: str, changes: Sequence[PreviewChange]) -> tuple[tuple[FileVersions, ...], bool]:
        """Return the contents of changed files, until they have more lines than are shown."""
        found: list[FileVersions] = []
        lines = 0
        for change in changes:
            if change.kind != "file":
                continue
            if lines > 2 * MOST_LINES:
                return tuple(found), False
            versions = await self._facts.preview_versions(call_id, change.number)
            lines += sum((text or "").count("\n") for text in (versions.old, versions.new))
            found.append(versions)
        return tuple(found), True

    def _is_recorded(self, device: PairedKey) -> bool:
        found = self._store.board.phones.get(device.id)
        if found is None or found.change == "revoked":
            return False
        recorded = found.name, found.origin, found.public_key, found.may_approve_from
        return recorded == (device.name, device.origin, device.public_key, device.may_approve_from)

    def _is_doubted(self, device: PairedKey) -> bool:
        return self._store.board.phones[device.id].change == "doubted"

    def _announce(self, device: PairedKey, change: PhoneChange, by: Decider, *, signed_in: bool = False) -> None:
        event = PhoneChanged(
            at=self._clock(),
            device_id=device.id,
            name=device.name,
            change=change,
            synced=device.may_sync or device.synced,
            origin=device.origin,
            public_key=device.public_key,
            may_approve_from=device.may_approve_from,
            signed_in=signed_in,
            by=by,
        )
        self._store.record(event, durable=True)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, SetAside) and not event.back and event.call_id in self._store.board.promised:
            # Whoever sets it aside decides nothing: neither does a phone behind that person's back.
            self._store.retry_until_journaled(lambda: _ignore(self._yeses.withdraw(event.call_id, event.by)))
        if isinstance(event, _SHOWN):
            self._revision += 1
            self._changed.set()
            self._changed = asyncio.Event()


def _ignore(_result: object) -> None:
    """Take a result that does not matter."""


async def _unless_refused(asked: Awaitable[_T]) -> _T | None:
    """Return an answer. None: it was refused."""
    try:
        return await asked
    except WhisperError:
        return None
