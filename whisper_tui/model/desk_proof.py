"""The proof of a decision at the desk: what was seen and decided, and an ssh key's signature over it (decision 41).

Everything that is needed to check it again is in the event of the decision.
"""

import base64
import binascii
import hashlib
import json
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter

from whisper_tui.model.call import HERE
from whisper_tui.model.decision import Approve, Decider, Decision
from whisper_tui.model.phone_proof import LONGEST_DOCUMENT, digest_of
from whisper_tui.model.state import CallRecord
from whisper_tui.model.value import Value

VERSION = "whisper-desk-decision-v1"
NAMESPACE = "whisper-tui-decision"
"""The purpose of the signature, which `ssh-keygen` puts into the signed bytes."""
LONGEST_STATEMENT = 33_554_432
"""Characters of what is signed: the largest edit that a request can carry."""
_MAGIC = b"SSHSIG"
_TOUCHED = 0x01
"""The flag by which a FIDO key says that its user was present."""
_DECISION: TypeAdapter[Decision] = TypeAdapter(Decision)


class DeskProof(Value):
    """A decision at the desk: the document that was shown, what was decided, and the signature over both."""

    document: Annotated[str, Field(max_length=LONGEST_DOCUMENT)]
    """All that was seen, as JSON: as for a phone."""
    statement: Annotated[str, Field(max_length=LONGEST_STATEMENT)]
    """The signed text, as JSON: call, digest of the document, decision, author and time."""
    signature: Annotated[str, Field(max_length=8192)]
    """Base64 of what `ssh-keygen -Y sign` has written. The public key is in it."""


SIGNED_S = 120.0
"""Seconds within which a signature counts."""


def why_not_then(at: float, now: float, since: float) -> str:
    """Return why a signature of one time cannot be for a decision of another, as a clause. Empty: it can.

    `since`: when the call began to wait for this decision, so that no signature counts twice.
    """
    if not -SIGNED_S <= now - at <= SIGNED_S:
        return f"it was made {abs(now - at):,.0f} seconds {'before' if now > at else 'after'} the decision"
    return "it was made before the call waited for this decision" if at < since else ""


class SshSignature(NamedTuple):
    """The key of a signature of OpenSSH, by its own word."""

    public_key: str
    """As in a line of `authorized_keys`."""
    fingerprint: str
    """As `ssh-keygen -l` prints it: `SHA256:…`."""
    touched: bool
    """True if a FIDO key says that a person touched it."""


def statement_of(record: CallRecord, document: str, decision: Decision, by: Decider, at: float) -> str:
    """Return what is signed, in its one spelling. `at`: seconds since the epoch."""
    return _spelled(
        {
            "version": VERSION,
            # A cockpit over several machines puts the name of its machine before an id.
            "call": str(record.number),
            "seen": digest_of(document),
            "decision": decision.model_dump(mode="json"),
            "by": by.model_dump(mode="json"),
            "at": at,
        }
    )


def _spelled(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def check_statement(proof: DeskProof, record: CallRecord, by: Decider) -> tuple[Decision, float]:
    """Return the decision that was signed, and its time. Raises `ValueError` with a clause unless it is about this."""
    try:
        content = json.loads(proof.statement)
        decision, at = _DECISION.validate_python(content["decision"]), content["at"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("what was signed cannot be read") from None
    if not isinstance(at, float) or _spelled(content) != proof.statement:
        raise ValueError("what was signed is not spelled as this program spells it")
    named: dict[str, Any] = {"version": VERSION, "call": str(record.number), "seen": digest_of(proof.document)}
    named["by"] = by.model_dump(mode="json")
    if content.keys() != {*named, "decision", "at"}:
        raise ValueError("what was signed is not a decision of this program")
    if wrong := [name for name, value in named.items() if content[name] != value]:
        raise ValueError(f"another {wrong[0]} was signed")
    return decision, at


def kept_form(signed: Decision, kept: Decision, record: CallRecord) -> bool:
    """True if a decision in the journal is the signed one, as the supervisor keeps that."""
    if not isinstance(signed, Approve) or not isinstance(kept, Approve):
        return signed == kept
    if signed.preview is not None:
        # Exactly what was previewed, and nothing that runs later.
        previewed = record.preview.edited if record.preview is not None else None
        if signed.edited not in {None, previewed}:
            return False
        signed = signed.model_copy(update={"edited": previewed, "undoable": False, "sandbox": None})
    if (edited := signed.edited) is not None:
        if edited.place == HERE:
            edited = edited.model_copy(update={"place": ""})
        # An edit that changes nothing is none.
        signed = signed.model_copy(update={"edited": None if edited == record.call.spec else edited})
    if kept.sandbox is not None and signed.sandbox is not None:
        # The supervisor adds the programs whose files it opens.
        opened = signed.sandbox.model_copy(update={"programs": kept.sandbox.programs})
        signed = signed.model_copy(update={"sandbox": opened})
    return signed == kept


def read_signature(text: str) -> SshSignature:
    """Return what a signature says about its key. Raises `ValueError` unless it has its one spelling.

    It is not verified by that: only `ssh-keygen` does.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is no base64") from None
    if base64.b64encode(data).decode() != text or data[:10] != _MAGIC + b"\x00\x00\x00\x01":
        raise ValueError("it is no signature of OpenSSH")
    key, namespace, reserved, hashed, signed = _strings(data[10:], 5)
    if namespace != NAMESPACE.encode() or reserved or hashed not in {b"sha256", b"sha512"}:
        raise ValueError("it is for something else")
    name = _first_strings(key, 1)[0][0].decode("ascii", "replace")
    (made_with, _), rest = _first_strings(signed, 2)
    is_fido = name.startswith("sk-")
    if len(rest) != (5 if is_fido else 0) or made_with.startswith(b"sk-") != is_fido:
        raise ValueError("it is no signature of OpenSSH")
    fingerprint = base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
    return SshSignature(
        f"{name} {base64.b64encode(key).decode()}", f"SHA256:{fingerprint}", is_fido and bool(rest[0] & _TOUCHED)
    )


def _strings(data: bytes, number: int) -> list[bytes]:
    found, rest = _first_strings(data, number)
    if rest:
        raise ValueError("something follows the signature")
    return found


def _first_strings(data: bytes, number: int) -> tuple[list[bytes], bytes]:
    """Return so many fields with their lengths before them, and what follows."""
    found = list[bytes]()
    for _ in range(number):
        size = int.from_bytes(data[:4], "big")
        if len(data) < 4 + size:
            raise ValueError("it is cut off")
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found, data
