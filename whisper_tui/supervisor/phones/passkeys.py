"""Passkeys of phones: the requests to make and to use one, and the verification of the answers (decision 40).

The verification is that of the library `webauthn`, which is loaded when a phone first needs it. What the signature
does not cover is not believed, and an answer with anything unknown in it is refused.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from whisper_tui.model.errors import NotAllowed, Refused
from whisper_tui.model.page_address import PageAddress
from whisper_tui.model.phone_proof import PhoneAssertion
from whisper_tui.model.strict_json import read_strict_json

NOT_INSTALLED = "phones need the extra `phone` of the package, which is not installed"
LONGEST_ID = 1_024
"""Bytes of the id of a credential, by WebAuthn's own limit."""
LONGEST_CLIENT_DATA = 1_000
"""Bytes of the client data of an assertion, so that its proof stays below two kilobytes."""
ES256, EDDSA, RS256 = -7, -8, -257
ALGORITHMS = (ES256, EDDSA, RS256)
_ATTACHMENTS = (None, "platform", "cross-platform")
_SIGNED = {"clientDataJSON", "authenticatorData", "signature"}
_TRANSPORTS = ("ble", "cable", "hybrid", "internal", "nfc", "smart-card", "usb")


class RelyingParty(Protocol):
    """The page for which a key was made."""

    @property
    def origin(self) -> str:
        """Its address, as browsers write it."""
        ...

    @property
    def rp_id(self) -> str:
        """Its name."""
        ...


@dataclass(frozen=True)
class NewKey:
    """A key that a phone has made."""

    credential_id: str
    public_key: str
    """Base64url of the COSE key."""
    sign_count: int
    may_sync: bool
    synced: bool


def check_installed() -> None:
    """Raise `Refused` if the library for passkeys is missing."""
    try:
        import webauthn  # noqa: F401
    except ImportError:
        raise Refused(NOT_INSTALLED, hint="whisper-tui phone says how to install it") from None


def registration_options(site: PageAddress, challenge: bytes, user: bytes, name: str) -> dict[str, Any]:
    """Return what a browser needs to make a key that verifies its user."""
    return {
        "rp": {"id": site.rp_id, "name": "whisper_tui"},
        "user": {"id": encoded(user), "name": name, "displayName": name},
        "challenge": encoded(challenge),
        "pubKeyCredParams": [{"type": "public-key", "alg": algorithm} for algorithm in ALGORITHMS],
        "timeout": 120_000,
        "excludeCredentials": [],
        "authenticatorSelection": {
            "residentKey": "preferred",
            "requireResidentKey": False,
            "userVerification": "required",
        },
        "attestation": "none",
    }


def request_options(site: RelyingParty, challenge: bytes, credential_id: str) -> dict[str, Any]:
    """Return what a browser needs to sign with this one key."""
    return {
        "challenge": encoded(challenge),
        "timeout": 120_000,
        "rpId": site.rp_id,
        "allowCredentials": [{"type": "public-key", "id": credential_id}],
        "userVerification": "required",
    }


def sign_in_options(challenge: bytes) -> dict[str, Any]:
    """Return what a browser needs to sign with whichever of its keys belongs to the name of the page."""
    return {"challenge": encoded(challenge), "timeout": 120_000, "allowCredentials": [], "userVerification": "required"}


def new_key(site: PageAddress, challenge: bytes, attestation: str) -> NewKey:
    """Verify the answer with a new key. Raises `NotAllowed`, with the reason."""
    check_installed()
    from webauthn import verify_registration_response
    from webauthn.helpers.cose import COSEAlgorithmIdentifier

    answer = _answer(attestation, "attestation", {"clientDataJSON", "attestationObject"})
    transports = answer.response.get("transports", [])
    if not isinstance(transports, list) or not all(each in _TRANSPORTS for each in transports):
        raise _refused("it names ways to reach the key that do not exist")
    # A key of this very machine could be used by whatever runs here.
    if site.is_loopback and not set(transports) - {"internal"}:
        raise NotAllowed(
            "this key was made on the machine that shows the page, so it is not taken",
            hint="Open the page on the phone, by a DNS name",
        )
    _check_same_site(answer.client_data)
    with _refusing():
        found = verify_registration_response(
            **_expected(site, challenge, answer),
            supported_pub_key_algs=[COSEAlgorithmIdentifier(each) for each in ALGORITHMS],
        )
    credential_id, public_key = encoded(found.credential_id), encoded(found.credential_public_key)
    if answer.id != credential_id:
        raise _refused("it names another key than the one that it holds")
    return NewKey(
        credential_id=credential_id,
        public_key=public_key,
        sign_count=found.sign_count,
        may_sync=found.credential_device_type.value == "multi_device",
        synced=found.credential_backed_up,
    )


@dataclass(frozen=True)
class UsedKey:
    """A signature that was verified."""

    sign_count: int
    synced: bool
    assertion: PhoneAssertion


class StoredKey(RelyingParty, Protocol):
    """A paired phone's key."""

    @property
    def credential_id(self) -> str:
        """Base64url."""
        ...

    @property
    def public_key(self) -> str:
        """Base64url of the COSE key."""
        ...

    @property
    def sign_count(self) -> int:
        """As the key has said it last; 0: it does not count."""
        ...

    @property
    def may_sync(self) -> bool:
        """True if an account can copy it."""
        ...

    @property
    def user(self) -> str:
        """Base64url of the handle of the user."""
        ...


def named_key(assertion: str) -> str:
    """Return the id of the key by which a signature says to be made. Raises `NotAllowed`."""
    return _answer(assertion, "assertion", _SIGNED).id


def used_key(key: StoredKey, challenge: bytes, assertion: str) -> UsedKey:
    """Verify a signature over a challenge by this key, with user verification. Raises `NotAllowed`, with the reason."""
    check_installed()
    from webauthn import verify_authentication_response

    answer = _answer(assertion, "assertion", _SIGNED)
    if answer.id != key.credential_id:
        raise _refused("it was made with another key")
    handle = answer.response.get("userHandle")
    if handle not in (None, "", key.user):
        raise _refused("it belongs to another user")
    if "transports" in answer.response or len(decoded(answer.response["clientDataJSON"])) > LONGEST_CLIENT_DATA:
        raise _refused("it holds more than a signature")
    _check_same_site(answer.client_data)
    with _refusing():
        found = verify_authentication_response(
            **_expected(key, challenge, answer),
            credential_public_key=decoded(key.public_key),
            credential_current_sign_count=key.sign_count,
        )
    if (found.credential_device_type.value == "multi_device") != key.may_sync:
        raise _refused("the key says something else about its copies than when it was paired")
    return UsedKey(
        sign_count=found.new_sign_count,
        synced=found.credential_backed_up,
        assertion=PhoneAssertion(
            credential_id=answer.id,
            client_data=answer.response["clientDataJSON"],
            authenticator_data=answer.response["authenticatorData"],
            signature=answer.response["signature"],
        ),
    )


def _expected(site: RelyingParty, challenge: bytes, answer: "_BrowserAnswer") -> dict[str, Any]:
    """Return an answer for the library, and what it must be about."""
    return {
        "credential": answer.plain,
        "expected_challenge": challenge,
        "expected_rp_id": site.rp_id,
        "expected_origin": site.origin,
        "require_user_verification": True,
    }


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse what the library does not verify: it raises whatever its parsers raise, and each means no."""
    try:
        yield
    except Exception as error:
        raise _refused(_reason(error)) from error


@dataclass(frozen=True)
class _BrowserAnswer:
    """The answer of a browser, of which every part is known."""

    id: str
    response: Mapping[str, Any]
    client_data: Mapping[str, Any]

    @property
    def plain(self) -> dict[str, Any]:
        """The parts that are verified."""
        names = ("clientDataJSON", "attestationObject", "authenticatorData", "signature")
        response = {name: self.response[name] for name in names if name in self.response}
        return {"id": self.id, "rawId": self.id, "type": "public-key", "response": response}


def _answer(text: str, what: str, needed: set[str]) -> _BrowserAnswer:
    """Read the JSON of a credential. Raises `NotAllowed` for anything that no browser sends."""
    try:
        content = read_strict_json(text)
        if not isinstance(content, dict):
            raise ValueError("it is no object")
        known = {"id", "rawId", "type", "response", "clientExtensionResults", "authenticatorAttachment"}
        if not {"id", "rawId", "type", "response"} <= set(content) <= known:
            raise ValueError("it has other members than a credential")
        credential_id, response = content["id"], content["response"]
        optional = {"clientExtensionResults": dict, "authenticatorAttachment": str | None}
        wrong = [name for name, kind in optional.items() if name in content and not isinstance(content[name], kind)]
        if wrong or content.get("authenticatorAttachment") not in _ATTACHMENTS or content["type"] != "public-key":
            raise ValueError("it is no key of a browser")
        if credential_id != content["rawId"] or not 0 < len(decoded(credential_id)) <= LONGEST_ID:
            raise ValueError("it names two keys, or none")
        extra = {"userHandle", "transports", "publicKey", "publicKeyAlgorithm", "authenticatorData"}
        if not isinstance(response, dict) or not needed <= set(response) <= needed | extra:
            raise ValueError("its response has other members")
        for name in needed:
            decoded(response[name])
        client_data = read_strict_json(decoded(response["clientDataJSON"]).decode())
        if not isinstance(client_data, dict):
            raise ValueError("its client data is no object")
    except (ValueError, TypeError) as error:
        raise NotAllowed(f"this {what} cannot be read: {_reason(error)}", hint="Try again on the phone") from None
    return _BrowserAnswer(credential_id, response, client_data)


def _check_same_site(client_data: Mapping[str, Any]) -> None:
    """Raise `NotAllowed` if the page was shown inside of a page of another site."""
    if client_data.get("crossOrigin", False) is not False or "topOrigin" in client_data:
        raise _refused("the page was shown inside of another one")


def _refused(why: str) -> NotAllowed:
    return NotAllowed(f"the phone's key was not accepted: {why}", hint="Look at the call again, and try once more")


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return f"{text[:1].lower()}{text[1:200]}"


def encoded(data: bytes) -> str:
    """Return bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Return the bytes of base64url. Raises `ValueError` unless it is exactly as `encoded` writes it."""
    if not isinstance(text, str):
        raise ValueError("it is no text")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"it is no base64url: {error}") from None
    # Several spellings of the same bytes would make changed answers valid.
    if encoded(data) != text:
        raise ValueError("it is no base64url in the usual form")
    return data


def key_digest(public_key: str) -> str:
    """Return the digest of a public key, in hex."""
    return hashlib.sha256(decoded(public_key)).hexdigest()
