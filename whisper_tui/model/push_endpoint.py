"""The address at a push service that wakes one browser, as that browser gives it."""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from whisper_tui.model.errors import InvalidRequest

LONGEST_ENDPOINT = 1_000
"""Characters of an address."""
_PLAIN = re.compile(r"[!-~]+")
_NAME = re.compile(r"([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
"""A DNS name of several labels, the last of which no IP address has."""


class PushEndpoint(NamedTuple):
    """An address, in its parts. Made by `push_endpoint`."""

    host: str
    port: int
    target: str
    """Path and query."""

    @property
    def origin(self) -> str:
        """The service, as the signature of a push names it."""
        return f"https://{self.host}" if self.port == 443 else f"https://{self.host}:{self.port}"


class PushOrder(NamedTuple):
    """A push to one phone."""

    device_id: str
    endpoint: str
    authorization: str
    """The header by which its service knows who sends it."""


def push_endpoint(text: str) -> PushEndpoint:
    """Return the parts of an address. Raises `InvalidRequest` unless it is one of https at a DNS name."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    is_plain = len(text) <= LONGEST_ENDPOINT and _PLAIN.fullmatch(text) and "#" not in text and "\\" not in text
    named = _NAME.fullmatch(host) and len(host) <= 253 and "@" not in parts.netloc and port != 0
    if not is_plain or parts.scheme != "https" or not named:
        raise InvalidRequest(
            "this is no address of a push service: those are https, at a DNS name", hint="Use another browser"
        )
    target = parts.path or "/"
    return PushEndpoint(host, port or 443, f"{target}?{parts.query}" if parts.query else target)
