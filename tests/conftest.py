"""For every test."""

import resource
import signal
import sys

import pytest

from whisper_tui.supervisor.keeper.mark import FILE_LOCKS

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever starts tests in the background of a shell has them ignore it, and every program that they start with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # The same for whoever starts them with nohup: programs that end with their terminal then rightly would not.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

_LOCKS = resource.getrlimit(FILE_LOCKS) if sys.platform == "linux" else (0, 0)


@pytest.fixture
def unmarked() -> None:
    """Agents that earlier tests played in this very process may have left a mark on it, which stays for good."""
    if sys.platform == "linux" and resource.getrlimit(FILE_LOCKS) != _LOCKS:
        pytest.skip("an earlier test in this process played an agent: run this file alone")
