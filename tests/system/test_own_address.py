"""Addresses of this machine are told from all others, without a word over the network."""

import socket

import psutil

from whisper_tui.system.own_address import is_own_address


def test_all_addresses_of_this_machine_are_its_own() -> None:
    of_interfaces = [each for found in psutil.net_if_addrs().values() for each in found]
    # Those of one link alone need its name beside them.
    own = [
        each.address
        for each in of_interfaces
        if each.family in {socket.AF_INET, socket.AF_INET6} and "%" not in each.address
    ]
    assert "127.0.0.1" in own
    assert [address for address in own if not is_own_address(address)] == []


def test_others_are_not() -> None:
    for address in ("203.0.113.7", "8.8.8.8", "2001:db8::1", "10.255.255.254"):
        assert not is_own_address(address)
