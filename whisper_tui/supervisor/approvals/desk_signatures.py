"""Signed decisions of the desk, verified before they count (decision 41)."""

import asyncio

from whisper_tui.model.decision import Decider, Decision
from whisper_tui.model.desk_proof import DeskProof, check_statement, why_not_then
from whisper_tui.model.errors import ChangedSinceSeen, NotAllowed
from whisper_tui.model.phone_proof import seen_document
from whisper_tui.model.state import CallRecord
from whisper_tui.supervisor.approvals.ssh_signatures import fingerprint_of, verified


async def check_key(key: str, proof: DeskProof | None) -> None:
    """Verify the signature of a decision. `key`: the file of the only key that may sign; empty: any, or none.

    Raises `NotAllowed` and `Unavailable`.
    """
    if proof is None:
        if key:
            message = "decisions at this desk are signed ([evidence] sign in config.toml), and this one is not"
            raise NotAllowed(message, hint="Decide in the cockpit, started anew, or by whisper-tui approve or deny")
        return
    try:
        signed = await asyncio.to_thread(verified, proof)
    except ValueError as error:
        raise _not_valid(str(error)) from None
    if key and await asyncio.to_thread(fingerprint_of, key) != signed.fingerprint:
        raise _not_valid(f"it is by the key {signed.fingerprint}, and [evidence] sign names another one")


def check_signed(proof: DeskProof, record: CallRecord, decision: Decision, by: Decider, now: float) -> None:
    """Raise `NotAllowed` or `ChangedSinceSeen` unless exactly this decision was signed, now, about this call."""
    if proof.document != seen_document(record):
        raise ChangedSinceSeen(f"call {record.id} has changed since it was shown", hint="Look at it again")
    try:
        signed, at = check_statement(proof, record, by)
    except ValueError as error:
        raise _not_valid(str(error)) from None
    if signed != decision:
        raise _not_valid("another decision was signed")
    if why := why_not_then(at, now, getattr(record.state, "since", 0.0)):
        raise _not_valid(why)


def _not_valid(why: str) -> NotAllowed:
    return NotAllowed(f"nothing was decided: the signature is not valid: {why}", hint="Decide again")
