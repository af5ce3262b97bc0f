"""The network of a previewed command: every address is its own and refuses at once, and names are given and noted."""

import fcntl
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

from whisper_tui.supervisor.preview.watched_calls import DNS, BlockedTargets

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_RTM_NEWROUTE = 24
_NLM_F_REQUEST_CREATE = 0x405
_RT_TABLE_LOCAL, _RTPROT_BOOT, _SCOPE_HOST, _SCOPE_UNIVERSE, _RTN_LOCAL = 255, 3, 254, 0, 2
_RTA_OIF, _LOOPBACK = 4, 1
_IP_PKTINFO, _IPV6_RECVPKTINFO, _IPV6_PKTINFO = 8, 49, 50
_TYPE_A, _TYPE_AAAA, _CLASS_IN = 1, 28, 1
_HEADER = 12
_LONGEST_QUESTION = 4096


def close_network() -> None:
    """Make every address one of this machine in a network namespace of its own: nothing leaves, nothing hangs."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as routes:
        for family in (socket.AF_INET, socket.AF_INET6):
            scope = _SCOPE_HOST if family == socket.AF_INET else _SCOPE_UNIVERSE
            body = struct.pack("BBBBBBBBI", family, 0, 0, 0, _RT_TABLE_LOCAL, _RTPROT_BOOT, scope, _RTN_LOCAL, 0)
            body += struct.pack("=HHI", 8, _RTA_OIF, _LOOPBACK)
            routes.send(struct.pack("=IHHII", 16 + len(body), _RTM_NEWROUTE, _NLM_F_REQUEST_CREATE, 1, 0) + body)
            routes.recv(_LONGEST_QUESTION)


class NameServer:
    """Gives each name an address of 198.18.0.0/15, which belongs to nobody, and remembers which name that was."""

    def __init__(self, targets: BlockedTargets) -> None:
        self._targets = targets
        self._addresses: dict[str, str] = {}
        self.sockets = list(_listening())
        """Sockets that answer questions; none if this user may not open the port."""

    def answer(self, at: socket.socket) -> None:
        """Answer one question."""
        with suppress(OSError, IndexError, struct.error):
            data, passed, _, sender = at.recvmsg(_LONGEST_QUESTION, 256)
            name, kind, end = _question(data)
            record = b""
            if kind in {_TYPE_A, _TYPE_AAAA}:
                address = self._address_of(name)
                if kind == _TYPE_A:
                    record = b"\xc0\x0c" + struct.pack("!HHIH", _TYPE_A, _CLASS_IN, 1, 4) + socket.inet_aton(address)
            header = data[:2] + struct.pack("!HHHHH", 0x8180, 1, 1 if record else 0, 0, 0)
            at.sendmsg([header + data[_HEADER:end] + record], list(_same_source(passed)), 0, sender)

    def _address_of(self, name: str) -> str:
        if name not in self._addresses:
            number = len(self._addresses) + 1
            self._addresses[name] = f"198.18.{number >> 8 & 255}.{number & 255}"
            self._targets.names[self._addresses[name]] = name
        return self._addresses[name]


def _listening() -> Iterator[socket.socket]:
    for family, anywhere, level, option in (
        (socket.AF_INET, "", socket.IPPROTO_IP, _IP_PKTINFO),
        (socket.AF_INET6, "::", socket.IPPROTO_IPV6, _IPV6_RECVPKTINFO),
    ):
        with suppress(OSError):
            made = socket.socket(family, socket.SOCK_DGRAM)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.setsockopt(level, option, 1)
            made.bind((anywhere, DNS))
            made.setblocking(False)
            yield made


def _question(data: bytes) -> tuple[str, int, int]:
    """Return the name and the type of the first question, and where it ends."""
    labels, at = [], _HEADER
    while data[at]:
        length = data[at]
        labels.append(data[at + 1 : at + 1 + length].decode(errors="replace"))
        at += length + 1
    return ".".join(labels), struct.unpack("!H", data[at + 1 : at + 3])[0], at + 5


def _same_source(passed: list[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the control message that has an answer come from the address that was asked."""
    for level, kind, raw in passed:
        if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
            yield level, kind, struct.pack("=i", 0) + raw[8:12] + bytes(4)
        elif level == socket.IPPROTO_IPV6 and kind == _IPV6_PKTINFO:
            yield level, kind, raw[:16] + struct.pack("=i", 0)
