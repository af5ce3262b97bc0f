"""The address of the page for phones: the name to which passkeys belong, and the origin that browsers send."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from whisper_tui.model.errors import InvalidRequest


@dataclass(frozen=True)
class PageAddress:
    """The address of the page, and the name to which its keys belong. Made by `page_address`."""

    origin: str
    """Without a path, and without the usual port."""
    rp_id: str
    """The name."""

    @property
    def is_https(self) -> bool:
        """True if it is reached over TLS."""
        return self.origin.startswith("https:")

    @property
    def hosts(self) -> frozenset[str]:
        """Each header Host that requests to it may have."""
        netloc = self.origin.partition("//")[2]
        usual = 443 if self.is_https else 80
        return frozenset({netloc} if ":" in netloc else {netloc, f"{netloc}:{usual}"})

    @property
    def is_loopback(self) -> bool:
        """True if only programs of the machine that shows the page can have opened it."""
        return self.rp_id == "localhost" or self.rp_id.endswith(".localhost")


def page_address(origin: str) -> PageAddress:
    """Return the address as browsers write it. Raises `InvalidRequest` if no passkey can belong to it."""
    try:
        parts = urlsplit(origin.strip().rstrip("/"))
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    plain = not (parts.path or parts.query or parts.fragment or parts.username or parts.password)
    if not host or not plain or parts.scheme not in {"http", "https"}:
        raise InvalidRequest(f"{origin!r} is no address of a page", hint="Give it like https://box.example.ts.net")
    if parts.scheme != "https" and not PageAddress("", host).is_loopback:
        raise InvalidRequest(f"{origin} is not https, where browsers have no passkeys", hint="Use its https address")
    if host.replace(".", "").isdigit() or ":" in host:
        raise InvalidRequest(f"{host} is an IP address, to which no passkey can belong", hint="Use a DNS name")
    if not host.isascii() or not all(label and len(label) < 64 for label in host.split(".")):
        raise InvalidRequest(f"{host!r} is no DNS name", hint="Give it like https://box.example.ts.net")
    default = 443 if parts.scheme == "https" else 80
    suffix = "" if port in {None, default} else f":{port}"
    return PageAddress(f"{parts.scheme}://{host}{suffix}", host)
