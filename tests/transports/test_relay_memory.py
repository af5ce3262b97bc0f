"""What a relay remembers of a conversation, and finds out from it."""

import os

from tests.rows import each_row
from tests.transports.relay_ends import INITIALIZE, answer, call
from whisper_tui.transports.mcp.relay import RelayState, client_name, parsed, workspace


@each_row(
    ("chosen", "said", "expected"),
    [
        ("/a", "/tmp", "/a"),
        (None, "/tmp", "/tmp"),
        (None, "/no/such", None),
        (None, "/x" * 3000, None),
        (None, "", None),
        ("b", "", "b"),
    ],
)
def test_the_workspace_is_the_chosen_one_or_the_clients_or_the_current_directory(chosen, said, expected):
    found = workspace(chosen, {"CLAUDE_PROJECT_DIR": said} if said else {})
    assert found == (os.path.join(os.getcwd(), expected) if expected else os.getcwd())


def test_the_clients_name_is_found_in_both_eras():
    meta = {"io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2"}}
    modern = {"method": "server/discover", "id": 1, "params": {"_meta": meta}}
    assert client_name(modern) == "claude-code"
    assert client_name(INITIALIZE) == "codex-mcp-client"
    assert client_name({"method": "ping", "id": 1}) is None
    assert client_name(None) is None


def test_a_refused_initialize_is_not_repeated_to_a_new_supervisor():
    memory = RelayState()
    memory.sent(INITIALIZE, b"initialize")
    memory.received({"jsonrpc": "2.0", "id": 0, "error": {"code": -32022}})
    assert memory.replay() == ([], None)


def test_a_number_and_the_same_digits_as_text_are_two_requests():
    memory = RelayState()
    memory.sent(call(1), b"number")
    memory.sent(call("1"), b"text")
    memory.received(answer("1"))
    assert memory.replay()[0] == [b"number"]


@each_row("line", [b"no JSON", b"[1]", b"7", b"\xff"])
def test_a_line_that_is_no_message_is_passed_on_and_not_remembered(line):
    memory = RelayState()
    memory.sent(parsed(line), line)
    assert not memory.has_pending
