"""A passkey in software: it makes real attestations and assertions, or wrong ones if a test asks for them."""

import base64
import hashlib
import json
import struct
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

USER_PRESENT, USER_VERIFIED, MAY_SYNC, SYNCED, HAS_KEY = 0x01, 0x04, 0x08, 0x10, 0x40


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Authenticator:
    """One key of one phone, and the browser around it."""

    origin: str = "https://box.example.ts.net"
    credential_id: bytes = b"a credential of a test"
    transports: tuple[str, ...] = ("hybrid", "internal")
    counts: bool = True
    may_sync: bool = False
    count: int = 0
    user: bytes = b""
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def attestation(self, options: dict[str, Any], **wrong: Any) -> str:
        """The answer to a request for a new key."""
        self.user = unb64(options["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        cose = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")})
        held = bytes(16) + struct.pack(">H", len(self.credential_id)) + self.credential_id + cose
        rp_id = wrong.get("rp_id", options["rp"]["id"])
        data = self._data(rp_id, wrong.get("flags", self._flags()) | HAS_KEY) + held
        attested = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        response = {
            "clientDataJSON": b64(self._client_data("webauthn.create", options["challenge"], **wrong)),
            "attestationObject": b64(attested),
            "transports": list(self.transports),
        }
        return json.dumps(self._credential(response))

    def assertion(self, options: dict[str, Any], **wrong: Any) -> str:
        """The answer to a request for a signature."""
        if self.counts:
            self.count += wrong.get("step", 1)
        data = self._data(wrong.get("rp_id", options["rpId"]), wrong.get("flags", self._flags()))
        client = self._client_data(wrong.get("type", "webauthn.get"), options["challenge"], **wrong)
        signed = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": b64(client),
            "authenticatorData": b64(data),
            "signature": b64(signed),
            "userHandle": b64(wrong.get("user", self.user)),
        }
        return json.dumps(self._credential(response, wrong.get("credential_id")))

    def _flags(self) -> int:
        return USER_PRESENT | USER_VERIFIED | (MAY_SYNC if self.may_sync else 0)

    def _data(self, rp_id: str, flags: int) -> bytes:
        return hashlib.sha256(rp_id.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client_data(self, kind: str, asked: str, /, **wrong: Any) -> bytes:
        content = {
            "type": kind,
            "challenge": wrong.get("challenge", asked),
            "origin": wrong.get("origin", self.origin),
            "crossOrigin": wrong.get("cross_origin", False),
        }
        return json.dumps(content, separators=(",", ":")).encode()

    def _credential(self, response: dict[str, Any], credential_id: bytes | None = None) -> dict[str, Any]:
        named = b64(credential_id or self.credential_id)
        return {
            "id": named,
            "rawId": named,
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "clientExtensionResults": {},
            "response": response,
        }
