"""The network addresses of this machine."""

import socket
from contextlib import suppress


def is_own_address(address: str) -> bool:
    """True if an IP address is one of this machine."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # Nothing is sent: the system only chooses the address from which it would send, which is the same one at home.
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return bool(probe.getsockname()[0] == address)
    return False
