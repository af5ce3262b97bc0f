"""The key that signs pushes to phones (VAPID, RFC 8292), in a private file of the state directory.

Signed here and not by a library: a push without content is a request with one header, and `pywebpush` is two HTTP
clients and the encryption of contents that are never sent.
"""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from whisper_tui.model.errors import Refused
from whisper_tui.model.push_endpoint import push_endpoint
from whisper_tui.supervisor.phones.passkeys import encoded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

FILE = "push-key.pem"
VALID_S = 12 * 3600
"""Seconds for which a signature is valid; the standard lets it be a day."""


class PushKey:
    """Made when a phone first asks for it. Browsers give their addresses for this key alone."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE
        self._key: EllipticCurvePrivateKey | None = None

    def public(self) -> str:
        """Return the public key as browsers take it: base64url of the uncompressed point. Raises `Refused`."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return encoded(self._private().public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))

    def authorization(self, endpoint: str, subject: str, now: float) -> str:
        """Return the header of a push to this address. `subject`: the page that it is for. Raises `Refused`."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        claims: dict[str, str | int] = {"aud": push_endpoint(endpoint).origin, "exp": int(now) + VALID_S}
        if subject.startswith("https:"):
            claims["sub"] = subject
        parts = ({"typ": "JWT", "alg": "ES256"}, claims)
        text = ".".join(encoded(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
        numbers = decode_dss_signature(self._private().sign(text.encode(), ECDSA(hashes.SHA256())))
        signature = encoded(b"".join(number.to_bytes(32, "big") for number in numbers))
        return f"vapid t={text}.{signature}, k={self.public()}"

    def _private(self) -> "EllipticCurvePrivateKey":
        if self._key is None:
            try:
                self._key = self._read() if self._path.exists() else self._made()
            except OSError as error:
                raise Refused(f"{self._path} cannot be used, so no phone is notified: {error.strerror}") from error
            except (ValueError, TypeError) as error:
                raise Refused(
                    f"{self._path} is damaged, so no phone is notified", hint="Delete it, and switch them on again"
                ) from error
        return self._key

    def _read(self) -> "EllipticCurvePrivateKey":
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self._path.read_bytes(), None)
        if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
            raise ValueError("it is a key of another kind")
        return key

    def _made(self) -> "EllipticCurvePrivateKey":
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = generate_private_key(SECP256R1())
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        unfinished = self._path.with_name(f"{FILE}.{os.getpid()}")
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._path)
        return key
