"""What is said when somebody is called: in one line for people, and as JSON for a program."""

import json
from collections.abc import Sequence
from typing import Literal

from whisper_tui.model.board import Board
from whisper_tui.model.masked import masked_record
from whisper_tui.model.state import CallRecord
from whisper_tui.model.summary import call_row
from whisper_tui.tui.risk_words import is_grave
from whisper_tui.tui.words import called, count

TITLE = "whisper_tui"
MOST_ROWS = 20
"""Calls that a program is told in full."""
MOST_NAMES = 2


def waiting_title(waiting: int, need_input: int = 0) -> str:
    """The title of the terminal: only numbers, because everybody sees windows."""
    parts = ([str(waiting)] if waiting else []) + ([f"{need_input} input"] if need_input else [])
    return f"({', '.join(parts)}) {TITLE}" if parts else TITLE


def input_in_words(records: Sequence[CallRecord], board: Board) -> str:
    """Whose commands need input."""
    names = dict.fromkeys(called(board.sessions.get(each.call.session_id), each.call.session_id) for each in records)
    verb = "needs" if len(records) == 1 else "need"
    return f"{count(len(records), 'command')} of {', '.join(list(names)[:MOST_NAMES])} {verb} input"


def in_words(records: Sequence[CallRecord], board: Board) -> str:
    """Who asks and how grave it is. Commands are not in it: notifications are shown on locked screens."""
    sessions = dict.fromkeys(record.call.session_id for record in records)
    names = [called(board.sessions.get(id_), id_) for id_ in sessions]
    others = f" and {count(len(names) - MOST_NAMES, 'other')}" if len(names) > MOST_NAMES else ""
    who = ", ".join(names[:MOST_NAMES]) + others
    risks = [risk for record in records if record.verdict for risk in record.verdict.risks if is_grave(risk)]
    grave = f" ({risks[0].id.replace('-', ' ')})" if risks else ""
    asks = count(len(records), "new call")
    return f"{asks} from {who}{grave} · {count(len(board.waiting), 'waits', 'wait')} for you"


def as_json(records: Sequence[CallRecord], board: Board, event: Literal["waiting", "needs-input"] = "waiting") -> bytes:
    """One object and a line feed: the calls as rows with their risks, and how many wait in all.

    Secrets are replaced, though a human has still to decide: a program decides nothing, and may send this anywhere.
    """
    rows = [
        {
            **call_row(masked_record(record), board.sessions.get(record.call.session_id)),
            "risks": [risk.id for risk in record.verdict.risks] if record.verdict else [],
        }
        for record in records[:MOST_ROWS]
    ]
    content = {"event": event, "waiting": len(board.waiting), "new": len(records), "calls": rows}
    return json.dumps(content).encode("ascii") + b"\n"
