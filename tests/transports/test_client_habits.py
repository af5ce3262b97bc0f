"""What is known of each client decides how long its calls wait and how much it is sent."""

import pytest

from whisper_tui.model.call import ClientInfo
from whisper_tui.tools.room import Room
from whisper_tui.transports.client_habits import LONG_WAIT_S, SHOWN_BY_ALL, UNKNOWN_WAIT_S, patience, shown


@pytest.mark.parametrize(
    ("name", "version", "progress", "seconds"),
    [
        ("opencode", "1.18.33", True, 50),
        ("codex-mcp-client", "0.169.0", True, 280),
        ("gemini-cli-mcp-client", "0.61.0", False, 570),
        ("claude-code", "2.1.329", True, LONG_WAIT_S),
        ("claude-code", "2.2.0", True, LONG_WAIT_S),
        ("claude-code", "2.1.329", False, 280),
        ("claude-code", "2.1.197", True, 280),
        ("claude-code", "next", True, 280),
        ("mcp", "0.1.0", False, 280),
        ("mcp-inspector", "2.12.0", False, UNKNOWN_WAIT_S),
        ("something else", "1", True, UNKNOWN_WAIT_S),
    ],
)
def test_each_client_is_answered_before_it_gives_up(name, version, progress, seconds):
    assert patience(ClientInfo(name=name, version=version), progress=progress) == seconds


def test_a_client_that_has_not_said_who_it_is_is_taken_for_an_impatient_one():
    assert patience(None, progress=True) == UNKNOWN_WAIT_S


@pytest.mark.parametrize(
    ("name", "room"),
    [
        ("claude-code", Room(48 * 1024, in_bytes=True)),
        ("codex-mcp-client", Room(11_000)),
        ("gemini-cli-mcp-client", Room(39_000)),
        ("opencode", Room(50_000, in_bytes=True, lines=1_900)),
        ("mcp", SHOWN_BY_ALL),
        ("anything", SHOWN_BY_ALL),
    ],
)
def test_each_client_is_sent_what_it_shows_whole(name, room):
    assert shown(ClientInfo(name=name)) == room
    assert shown(None) == SHOWN_BY_ALL
