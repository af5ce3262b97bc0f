"""The page of bounds says what is in force."""

import re
from pathlib import Path

from tests.rows import each_row
from whisper_tui.changes import file_trees, pre_images
from whisper_tui.cli import bring, far_output
from whisper_tui.model import api, board, event, phone, preview, protocol_version, push_endpoint
from whisper_tui.notify import phone_push
from whisper_tui.present import preview_text
from whisper_tui.supervisor import sessions
from whisper_tui.supervisor.approvals import admission, command_files, expand, judge
from whisper_tui.supervisor.journal import journal, store
from whisper_tui.supervisor.phones import phone_devices, phone_pairing, phone_sign_in, phone_yes
from whisper_tui.supervisor.places import far_agents, far_runs
from whisper_tui.supervisor.preview import preview_process
from whisper_tui.supervisor.runs import scheduling, start_order
from whisper_tui.transports import json_lines, loopback_http
from whisper_tui.transports.acp import acp_proxy, acp_questions, acp_terminals
from whisper_tui.transports.hook import exec_program, hook_program
from whisper_tui.transports.mcp import http_site, mcp_session
from whisper_tui.transports.phone import phone_site
from whisper_tui.tui.cockpit import preview_card
from whisper_tui.tui.dialogs import take_back_dialog
from whisper_tui.wire import client, federation, protocol, server
from whisper_tui.wire import connection as port_door
from whisper_tui.wire import server as places

PAGE = (Path(__file__).parent.parent / "docs" / "bounds.md").read_text(encoding="utf-8")

ROWS = {
    "machines | bytes of one's answer to `--host`, and of its messages": far_output.LARGEST_ANSWER,
    "machines | bytes of the answers of all to `--host all`": far_output.LARGEST_TOGETHER,
    "machines | seconds for which one of those answers may pause": far_output.SILENT_S,
    "machines | bytes that it sends before its board is whole": client.LARGEST_BOARD,
    "machines | calls, or sessions, of one in the cockpit": federation.MOST_CALLS,
    "machines | bytes of other text before an answer to `bring`": bring.MOST_HEARD,
    "socket | connections": places.MOST,
    "socket | seconds until the first line": server.HELLO_S,
    "socket | bytes of a line": protocol_version.LONGEST_REQUEST,
    "socket | requests of a connection that wait for answers": port_door.MOST_IN_FLIGHT,
    "socket | bytes of those requests": port_door.LARGEST_IN_FLIGHT,
    "socket | watchers among those requests": port_door.MOST_WATCHES,
    "socket | bytes of answers that a client has not read": port_door.MOST_UNREAD,
    "socket | bytes of one answer": protocol.LONGEST_ANSWER,
    "socket | calls in a page of history": api.LARGEST_PAGE,
    "socket | seconds for a client to take its last answer": server.FAREWELL_S,
    "agents | characters of a call, a decision or a session": journal.LARGEST,
    "agents | characters of an edit, or of a decision about one": journal.LARGEST_OF_EDITS,
    "agents | calls of a session that wait or run": admission.MOST_OF_A_SESSION,
    "agents | calls that wait or run, of all sessions": admission.MOST_CALLS,
    "agents | connections of agents at one place": far_agents.MOST_AGENTS,
    "agents | bytes of one of them that the supervisor has not read": far_agents.AHEAD,
    "agents | sessions that are open": admission.MOST_SESSIONS,
    "agents | characters of an agent's environment": sessions.LARGEST_ENVIRONMENT,
    "agents | characters of a message of a conversation": event.LONGEST_SAID,
    "agents | sessions whose calls' files are read at the same time": judge.EXAMINERS,
    "agents | bytes of a call's scripts that are hashed": command_files.MOST_DIGESTED,
    "agents | names that the patterns of a call may match": expand.MOST_NAMES,
    "commands | that run without asking, for each worker": scheduling.MOST,
    "commands | seconds for which one of them occupies a worker": int(scheduling.LONG_S),
    "commands | bytes of memory reserved for each that starts": scheduling.RESERVE,
    "MCP | bytes of a message": mcp_session.LONGEST_LINE,
    "editors | bytes of a message": json_lines.LONGEST_LINE,
    "editors | requests of an agent that are served at a time": acp_proxy.MOST_REQUESTS,
    "editors | terminals of an agent that it did not release": acp_terminals.MOST_TERMINALS,
    "editors | bytes of output in an answer": acp_terminals.MOST_OUTPUT,
    "editors | bytes of a file that is read": acp_questions.LARGEST_READ,
    "hooks | bytes of a request": hook_program.LONGEST_INPUT,
    "hooks | bytes of a piece of input to `exec`": exec_program.LARGEST,
    "previews | seconds of a preview": start_order.PREVIEW_TIMEOUT_S,
    "previews | bytes of the disk that the changes of a preview, or of a run in a view, take": (
        start_order.MOST_PREVIEWED_BYTES
    ),
    "previews | seconds after the first refused connection to another machine": preview_process.PATIENCE_S,
    "previews | files and directories that it changes": file_trees.MOST_ENTRIES,
    "previews | attempts to reach something, and processes left behind, that are listed": preview.MOST_LISTED,
    "previews | files that a card compares": preview_card.MOST_DIFFS,
    "previews | changes that a card lists": preview_text.MOST_ROWS,
    "undo | files and directories that are kept of a command by default": pre_images.MOST_ENTRIES,
    "undo | bytes that are copied of a command": pre_images.MOST_COPIED,
    "undo | seconds before the start in which its files are kept": pre_images.PATIENCE_S,
    "undo | free bytes of the disk below which nothing is kept": pre_images.LEAST_FREE,
    "undo | changes that the dialog lists one by one": take_back_dialog.MOST_LISTED,
    "places | days for which the output of an ended command stays there if nobody asks for it": far_runs.OLD_S / 86_400,
    "HTTP | connections": loopback_http.MOST_CONNECTIONS,
    "HTTP | seconds until the head of the first request": loopback_http.FIRST_REQUEST_WITHIN_S,
    "HTTP | bytes of a message": http_site.LARGEST,
    "HTTP | sessions": http_site.MOST_SESSIONS,
    "phone | bytes of a request": phone_site.LARGEST,
    "phone | pages that wait for news at once": phone_site.MOST_WAITS,
    f"phone | attempts to pair or sign in at once; then one each {phone_site.ATTEMPT_EVERY_S:g} s": phone_site.ATTEMPTS,
    "phone | wrong codes of a pairing": phone_pairing.MOST_WRONG,
    "phone | seconds for which a pairing is open": phone_pairing.OPEN_S,
    "phone | phones that are not revoked": phone_devices.MOST_DEVICES,
    "phone | waiting calls in its list": phone.MOST_ROWS,
    "phone | characters of a command": phone.LONGEST_COMMAND,
    "phone | lines of the differences of a preview": phone.MOST_LINES,
    "phone | characters of the answer of a passkey": phone.LONGEST_CREDENTIAL,
    "phone | requests of one phone that are not signed": phone_yes.MOST_ASKED,
    "phone | seconds to sign a request": phone_yes.SIGN_S,
    "phone | characters of the address of its pushes": push_endpoint.LONGEST_ENDPOINT,
    "phone | seconds for a push": phone_push.PUSH_S,
    "phone | bytes of the answer to a push": phone_push.LARGEST_ANSWER,
    "phone | requests to sign in that are not signed": phone_sign_in.MOST_BEGUN,
}


@each_row("row", ROWS)
def test_a_row_of_the_table_has_the_number_that_is_in_force(row: str) -> None:
    (cells,) = re.findall(rf"^\| {re.escape(row)} \| ([^|]*) \|", PAGE, re.MULTILINE)
    assert f"{ROWS[row]:,.0f}" in re.findall(r"[\d,]*\d", cells)


def test_the_table_has_no_other_rows_than_these_and_those_about_memory() -> None:
    rows = re.findall(r"^\| (\w+ \| [^|]*) \|", PAGE, re.MULTILINE)
    others = {
        "interface | what",
        "socket | connections of one process",
        "agents | bytes of memory that these take, about",
    }
    others |= {f"socket | connections of all that {origin}s have started" for origin in places.SHARES}
    assert set(rows) == ROWS.keys() | others
    memory = re.findall(r"^\| agents \| bytes of memory that these take, about \| ([^|]*) \|", PAGE, re.MULTILINE)
    assert memory == [f"{admission.LARGEST_OF_A_SESSION:,}", f"{admission.LARGEST:,}"]


@each_row("origin", places.SHARES)
def test_the_share_of_what_commands_and_agents_have_started_is_the_one_in_force(origin: places.Origin) -> None:
    (share,) = re.findall(
        rf"^\| socket \| connections of all that {origin}s have started \| (.*?) of those", PAGE, re.M
    )
    assert share == {2: "half", 4: "a quarter"}[places.SHARES[origin]]


def test_usage_of_memory_is_reported() -> None:
    for number in (board.ENDED_KEPT, board.ENDED_LARGEST, store.MOST_RECENT, store.LARGEST_RECENT):
        assert f"{number:,}" in PAGE
