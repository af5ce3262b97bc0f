"""The proof of a decision from a phone: the document that was seen, and the signature over it (decision 40).

Everything that is needed to check it again is in the event of the decision.
"""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.state import CallRecord
from whisper_tui.model.value import Value

VERSION = "whisper-decision-v1"
"""The first field of what is signed."""
SEEN_VERSION = "whisper-seen-v1"
LONGEST_DOCUMENT = 262_144
"""Characters of a document that is kept with a decision. A call with a longer one is only denied by phones."""

LongestField = Annotated[str, Field(max_length=1_400)]
"""Base64url."""


class PhoneAssertion(Value):
    """The signature of a passkey, as WebAuthn has it: less than two kilobytes."""

    credential_id: LongestField
    client_data: LongestField
    authenticator_data: Annotated[str, Field(max_length=200)]
    signature: Annotated[str, Field(max_length=700)]


class PhoneProof(Value):
    """The device, the document that it showed, and what it signed."""

    device_id: str
    seen: str
    """SHA-256 of the document, in hex."""
    document: Annotated[str, Field(max_length=LONGEST_DOCUMENT)] = ""
    """All that the digest covers, as JSON. Empty: it was too long; then the call was only denied."""
    decision: Literal["deny", "set_aside", "approve", "apply"]
    nonce: str = ""
    """Base64url. Empty: nothing was signed."""
    expires: int = 0
    """Seconds since the epoch."""
    rp_id: str = ""
    origin: str = ""
    public_key: LongestField = ""
    """Base64url of the COSE key."""
    assertion: PhoneAssertion | None = None


def seen_document(record: CallRecord) -> str:
    """Return all that a yes from a phone is about, as canonical JSON."""
    verdict, preview = record.verdict, record.preview
    changes = preview.report.digest if preview is not None and preview.report is not None else ""
    dropped = preview is None or preview.dropped
    return json.dumps(
        {
            "version": SEEN_VERSION,
            # A cockpit over several machines puts the name of its machine before an id.
            "call": str(record.number),
            "command": record.call.spec.canonical(),
            "description": record.call.description,
            "directory": record.call.spec.cwd,
            "place": record.call.spec.place,
            "verdict": verdict.reason if verdict is not None else "",
            "risks": [[risk.id, risk.sentence] for risk in (verdict.risks if verdict is not None else ())],
            "preview": "" if dropped else changes,
            # The digest to which every approval is bound: programs, files and scripts as they were found (decision 23).
            "record": record.seen_digest(),
        },
        ensure_ascii=True,
        sort_keys=True,
        separators=(",", ":"),
    )


def digest_of(document: str) -> str:
    """Return the digest of a document that was seen."""
    return hashlib.sha256(document.encode()).hexdigest()


def decision_challenge(call_id: str, seen: str, decision: str, nonce: bytes, expires: int) -> bytes:
    """Return the bytes that a passkey signs for one decision."""
    fields = (VERSION.encode(), call_id.encode(), bytes.fromhex(seen), decision.encode(), nonce, str(expires).encode())
    # Each field with its length before it: no two decisions have the same bytes.
    return hashlib.sha256(b"".join(len(field).to_bytes(4, "big") + field for field in fields)).digest()
