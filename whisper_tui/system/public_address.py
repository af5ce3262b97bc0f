"""The addresses of a host, as far as they are somebody else's, on the internet.

A browser names the host to which the supervisor sends pushes. Without this, it could name one that only this machine
reaches.
"""

import ipaddress
import socket

from whisper_tui.system.own_address import is_own_address

_UNICAST = ipaddress.ip_network("2000::/3")
_TUNNELS = (ipaddress.ip_network("2001::/32"), ipaddress.ip_network("2002::/16"))
"""Teredo and 6to4: addresses of IPv4 are in them."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""The addresses by which a network of IPv6 alone reaches those of IPv4."""


class NotPublic(OSError):
    """A host has an address of this machine or of a private network."""


def public_addresses(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of a host. Raises `NotPublic` if any is not public, and `OSError` if there are none.

    It may wait for a name server, for as long as the system lets it.
    """
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    found = tuple(dict.fromkeys(str(info[4][0]) for info in infos))
    for address in found:
        if not is_public(address) or is_own_address(address):
            raise NotPublic(f"{host} is {address}, which is no address of another machine on the internet")
    return found


def is_public(address: str) -> bool:
    """True if an address is one of the internet, and of a single machine."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed.is_global and not parsed.is_multicast
    if parsed in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
    return parsed.is_global and parsed in _UNICAST and not any(parsed in tunnel for tunnel in _TUNNELS)
