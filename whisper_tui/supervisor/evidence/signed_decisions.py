"""The signatures of decisions in an evidence file, verified by nothing but what is in it (decisions 40 and 41)."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from whisper_tui.model.call import CommandSpec
from whisper_tui.model.decision import Approve
from whisper_tui.model.desk_proof import DeskProof, check_statement, kept_form, read_signature, why_not_then
from whisper_tui.model.errors import InvalidRequest, NotAllowed, Refused, Unavailable
from whisper_tui.model.event import Decided, PhoneChanged, PhoneYes
from whisper_tui.model.evidence import SignatureFound
from whisper_tui.model.four_words import four_words
from whisper_tui.model.page_address import page_address
from whisper_tui.model.phone_proof import PhoneProof, decision_challenge, digest_of, seen_document
from whisper_tui.model.state import CallRecord
from whisper_tui.supervisor.approvals.ssh_signatures import verified
from whisper_tui.supervisor.phones.passkeys import check_installed, decoded, key_digest, used_key

_MAY_SYNC_AT, _MAY_SYNC = 32, 0x08
"""Where authenticator data says that an account can copy the key."""
LONGEST_WAIT_S = 120.0
SIGNING_SURFACES = frozenset({"cockpit", "command line", "library", "notification"})


@dataclass(frozen=True)
class ProvenKey:
    """The key of a proof, as far as verifying needs it."""

    credential_id: str
    public_key: str
    origin: str
    rp_id: str
    may_sync: bool
    sign_count: int = 0
    user: str = ""


def signature_of(
    decided: Decided, record: CallRecord, phones: Iterable[PhoneChanged], yes: PhoneYes | None
) -> SignatureFound:
    """Return the signature of a decision. `record`: the call as it was before; `phones`: all events of its phone.

    `yes`: the last event before it by which a phone said yes.
    """
    proof = decided.proof
    if isinstance(proof, DeskProof):
        return _desk_signature(decided, record, proof)
    if proof is None:
        return SignatureFound(signed="left out" if decided.by.surface == "phone" else "")
    found = SignatureFound(signed="wrong", phone=decided.by.who, origin=proof.origin, seen=proof.seen)
    try:
        same_record = _check_document(proof.document, proof.seen, record)
        if decided.by.surface != "phone":
            raise ValueError("the decision is said to be of another surface than a phone")
        if proof.decision == "deny" and decided.decision.kind == "deny":
            return found.model_copy(update={"signed": "denial", "same_record": same_record})
        key = key_digest(proof.public_key)
        found = found.model_copy(update={"key": key, "words": four_words(key), "same_record": same_record})
        _check_decision(decided, proof, record)
        _check_phone(decided, proof, phones, yes)
        challenge = decision_challenge(
            str(record.number), proof.seen, proof.decision, decoded(proof.nonce), proof.expires
        )
        check_installed()
    except NotAllowed as error:
        return found.model_copy(update={"why": error.message})
    except Refused as missing:
        return found.model_copy(update={"signed": "unchecked", "why": missing.message})
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        return found.model_copy(update={"why": str(error)})
    try:
        _verify(proof, challenge)
    except (NotAllowed, ValueError, RecursionError) as error:
        return found.model_copy(update={"why": error.message if isinstance(error, NotAllowed) else str(error)})
    return found.model_copy(update={"signed": "verified"})


def _desk_signature(decided: Decided, record: CallRecord, proof: DeskProof) -> SignatureFound:
    found = SignatureFound(signed="wrong", seen=digest_of(proof.document))
    try:
        read = read_signature(proof.signature)
        found = found.model_copy(
            update={"key": read.fingerprint, "public_key": read.public_key, "touched": read.touched}
        )
        same_record = _check_document(proof.document, found.seen, record)
        found = found.model_copy(update={"same_record": same_record})
        if decided.by.surface not in SIGNING_SURFACES:
            raise ValueError("the decision is said to be of another surface than the desk")
        signed, at = check_statement(proof, record, decided.by)
        if not kept_form(signed, decided.decision, record):
            raise ValueError("another decision was signed")
        if why := why_not_then(at, decided.at, getattr(record.state, "since", 0.0)):
            raise ValueError(why)
        verified(proof)
    except Unavailable as missing:
        return found.model_copy(update={"signed": "unchecked", "why": missing.message})
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        return found.model_copy(update={"why": str(error)})
    return found.model_copy(update={"signed": "verified"})


def _check_document(document: str, digest: str, record: CallRecord) -> bool:
    """Raise `ValueError` if what was seen is not the call of the events. Returns True if their digests agree, too."""
    if not document:
        return False
    if digest_of(document) != digest:
        raise ValueError("the document that was seen has another digest than the one that was signed")
    seen, told = json.loads(document), json.loads(seen_document(record))
    if not isinstance(seen, dict) or seen.keys() != told.keys():
        raise ValueError("the document that was seen is not one of this program")
    # Another version may spell the same command otherwise.
    if CommandSpec.model_validate_json(seen.pop("command")) != record.call.spec:
        raise ValueError("another command was seen")
    told.pop("command")
    same = bool(seen.pop("record") == told.pop("record"))
    if different := [name for name in told if seen[name] != told[name]]:
        raise ValueError(f"another {different[0]} was seen")
    return same


def _check_decision(decided: Decided, proof: PhoneProof, record: CallRecord) -> None:
    decision = decided.decision
    if not proof.document:
        raise ValueError("the document that was seen is missing")
    if not isinstance(decision, Approve) or proof.decision not in {"approve", "apply"}:
        raise ValueError("the phone has signed another decision")
    if (decision.preview is not None) != (proof.decision == "apply"):
        raise ValueError("the phone has signed another decision")
    report = record.preview.report if record.preview is not None else None
    if decision.preview is not None and (report is None or report.digest != decision.preview):
        raise ValueError("the phone has signed the changes of another preview")
    # An apply is of what was previewed, an edit as well, and has its undo by itself.
    edited = record.preview.edited if record.preview is not None else None
    applied = Approve(preview=decision.preview, edited=edited, undoable=False)
    if decision != (applied if decision.preview is not None else Approve()):
        raise ValueError("the phone has signed neither an edit nor a standing approval, and no other way to run it")


def _check_phone(decided: Decided, proof: PhoneProof, phones: Iterable[PhoneChanged], yes: PhoneYes | None) -> None:
    last = max((each for each in phones if each.seq < decided.seq), key=lambda each: each.seq, default=None)
    if last is None:
        raise ValueError("no event says that this phone was paired")
    if (last.public_key, last.origin, last.name) != (proof.public_key, proof.origin, decided.by.who):
        raise ValueError("its key is not the one with which this phone was paired")
    if last.change not in {"paired", "confirmed"}:
        raise ValueError(f"the phone was {last.change} before")
    try:
        named = page_address(proof.origin)
    except InvalidRequest as error:
        raise ValueError(error.message) from None
    if (named.origin, named.rp_id) != (proof.origin, proof.rp_id):
        raise ValueError("it was made for another page")
    if yes is None or yes.until is None or yes.by != decided.by:
        raise ValueError("no event says that this phone has said yes")
    if not proof.expires - LONGEST_WAIT_S - 1 <= yes.at < proof.expires or yes.at < last.may_approve_from:
        raise ValueError("it was made at another time than the decision")


def _verify(proof: PhoneProof, challenge: bytes) -> None:
    assertion = proof.assertion
    if assertion is None:
        raise ValueError("there is no signature")
    data = decoded(assertion.authenticator_data)
    key = ProvenKey(
        credential_id=assertion.credential_id,
        public_key=proof.public_key,
        origin=proof.origin,
        rp_id=proof.rp_id,
        may_sync=len(data) > _MAY_SYNC_AT and bool(data[_MAY_SYNC_AT] & _MAY_SYNC),
    )
    response = {
        "clientDataJSON": assertion.client_data,
        "authenticatorData": assertion.authenticator_data,
        "signature": assertion.signature,
    }
    named = assertion.credential_id
    used_key(key, challenge, json.dumps({"id": named, "rawId": named, "type": "public-key", "response": response}))
