"""Columns line up, and fit the terminal."""

import os
import pty
import re
import subprocess
import sys

from tests.rows import each_row
from tests.tui.scenes import workday
from whisper_tui.cli.commands.list_calls import _listed
from whisper_tui.cli.output_format import (
    PIPED,
    Table,
    age,
    cell,
    command_line,
    cut,
    fit,
    gravest,
    outcome,
    print_table,
    standing,
    styled_diff,
    width_of,
)
from whisper_tui.model.call_rows import call_row
from whisper_tui.model.event import AgentGaveUp
from whisper_tui.wire.server_state import brief_row

PROGRAM = """
from whisper_tui.cli.output_format import print_table
print_table(("ID", "COMMAND"), [("1", "x" * 100), ("22", "短い")])
"""


@each_row(("seconds", "shown"), [(-5, "0s"), (0.9, "0s"), (59.9, "59s"), (60, "1m"), (7200, "2h"), (200_000, "2d")])
def test_ages_are_short(seconds, shown):
    assert age(seconds) == shown


def test_cut_text_ends_with_an_ellipsis():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 4) == "abc…"
    assert cut("日本語", 5) == "日本…"
    assert cut("日本語", 4) == "日…"


def test_a_cell_is_exactly_as_wide_as_its_column():
    assert [width_of(cell(text, 6)) for text in ("", "abc", "abcdefgh", "日本語です", "e\u0301e\u0301")] == [6] * 5


def test_the_widest_columns_are_narrowed_first():
    widths = [3, 50, 20]
    fit(widths, 44)
    assert widths == [3, 18, 19]
    narrow = [8, 8, 8]
    fit(narrow, 5)
    assert narrow == [8, 8, 8]


def test_a_terminal_cuts_rows_to_its_width():
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    subprocess.run(["stty", "cols", "40"], stdin=theirs, check=True)
    subprocess.run([sys.executable, "-c", PROGRAM], stdout=theirs, env=environment, check=True, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode().splitlines()
    os.close(ours)
    assert [line.rstrip() for line in shown] == ["ID  COMMAND", "1   " + "x" * 35 + "…", "22  短い"]
    piped = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, check=True, timeout=60).stdout
    assert b"x" * 100 in piped


def test_in_a_pipe_a_row_is_wide_and_no_command_makes_it_wider():
    program = PROGRAM.replace("100", "4000")
    piped = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, timeout=60).stdout
    assert max(map(width_of, piped.decode().splitlines())) == PIPED


@each_row(
    ("risks", "shown"),
    [
        ([], ""),
        ([("substitution", False)], "▲ substitution"),
        ([("opaque", False), ("empty-variable", True)], "▲▲ empty variable +1"),
    ],
)
def test_the_gravest_risk_is_named_with_its_signs(risks, shown):
    row = {"risks": [{"id": id_, "sentence": "It does.", "grave": grave} for id_, grave in risks]}
    assert gravest(row) == shown


def test_a_row_says_that_code_of_the_call_was_not_inspected():
    unread = [{"name": "./deploy.py", "why": "code of python is not analysed"}]
    assert gravest({"risks": [], "not_inspected": unread}) == "not read"
    risk = {"id": "network", "sentence": "It does.", "grave": False}
    assert gravest({"risks": [risk], "not_inspected": unread}) == "▲ network, not read"


def test_the_state_of_a_call_is_shown_with_its_age():
    assert standing({"state": "running", "ending": None}, 61) == "running for 1m"
    assert standing({"state": "ended", "ending": "exited", "exit_code": 1}, 720) == "exit 1, 12m ago"


def test_a_command_is_shown_as_one_would_type_it():
    assert command_line(["echo", "two words", "\x1b"]) == "echo 'two words' '␛'"
    assert command_line("echo a\necho b") == "echo a␊echo b"


@each_row(
    ("row", "shown"),
    [
        ({"ending": None, "state": "running"}, "running"),
        ({"ending": "exited", "exit_code": 0}, "exit 0"),
        ({"ending": "signalled", "signal_name": "SIGKILL"}, "SIGKILL"),
        ({"ending": "failed_to_start"}, "not started"),
    ],
)
def test_an_outcome_is_named_shortly(row, shown):
    assert outcome(row) == shown


def test_a_table_in_parts_has_its_headings_once_and_becomes_wider(capsys):
    table = Table(("ID", "STATE"))
    for rows in ([("1", "waiting")], [("1000", "running")], []):
        table.print(rows)
    assert capsys.readouterr().out == "ID  STATE\n1   waiting\n1000  running\n"


@each_row(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
    ids=str,
)
def test_a_terminal_gets_colours_unless_the_user_rejects_them(variables, coloured):
    program = """
from whisper_tui.cli.output_format import print_table
print_table(("ID", "RISK", "STATE"), [("1", "▲▲ destructive", "waiting"), ("2", "▲ network", "running")])
"""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"PYTHONIOENCODING": "utf-8", "TERM": "xterm-256color", **variables}
    subprocess.run(["stty", "cols", "80"], stdin=theirs, check=True)
    subprocess.run([sys.executable, "-c", program], stdout=theirs, env=environment, check=True, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert ("\x1b[1;31m▲▲ destructive\x1b[0m" in shown, "\x1b" in shown) == (coloured, coloured)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert plain == ["ID  RISK            STATE", "1   ▲▲ destructive  waiting", "2   ▲ network       running"]


def test_a_difference_is_coloured_on_a_terminal_and_a_line_of_context_is_not(monkeypatch):
    text = "@@ -1,2 +1,2 @@\n-old\n+new\n +a line that stays"
    assert styled_diff(text) == text
    monkeypatch.setattr("whisper_tui.cli.output_format.shows_colours", lambda: True)
    assert styled_diff(text).splitlines() == [
        "\x1b[36m@@ -1,2 +1,2 @@\x1b[0m", "\x1b[31m-old\x1b[0m", "\x1b[32m+new\x1b[0m", " +a line that stays",
    ]  # fmt: skip


def test_the_brief_row_of_a_waiting_call_is_printed_as_its_whole_row():
    board = workday().supervisor.board
    gone = AgentGaveUp(at=1.0, call_id=next(iter(board.waiting)), why="it has ended")
    board.apply(gone)
    tools = {call_id for call_id in board.waiting if board.calls[call_id].function is not None}
    for call_id in board.waiting:
        record = board.calls[call_id]
        brief = brief_row(board, call_id)
        if call_id in tools:
            assert brief is None
            continue
        whole = call_row(record, board.sessions[record.call.session_id])
        assert brief is not None and brief.keys() <= whole.keys()
        assert [*_listed([brief])] == [*_listed([whole])]
    assert len(board.waiting) - len(tools) > 2 and brief_row(board, "none") is None
    assert any("agent gone" in line[1] for line in _listed([brief_row(board, gone.call_id)]))


def test_a_table_of_wide_and_narrow_letters_is_cut_as_each_cell_alone(capsys, monkeypatch):
    monkeypatch.setattr("whisper_tui.cli.output_format.PIPED", 40)
    texts = ["a" * 60, "日本" * 20, "ü" * 10, "", "b"]
    print_table(("ID", "COMMAND"), [(str(number), text) for number, text in enumerate(texts)])
    printed = capsys.readouterr().out.splitlines()
    assert printed[1:] == [f"{number}   {cell(text, 36)}".rstrip() for number, text in enumerate(texts)]
