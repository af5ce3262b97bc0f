"""The text of a notification: for people who may stand beside the screen, and for the user's program."""

import json
from collections.abc import Sequence
from typing import Literal

from whisper_tui.model.board import Board
from whisper_tui.model.call_rows import call_row
from whisper_tui.model.masking import masked_record
from whisper_tui.model.run import StallNews
from whisper_tui.model.state import CallRecord
from whisper_tui.model.verdict import is_grave
from whisper_tui.present.quantities import count
from whisper_tui.present.session_text import session_label, session_label_of

TITLE = "whisper_tui"
MOST_ROWS = 20
"""The most calls in the JSON for the user's program. `new` counts the rest."""
MOST_NAMES = 2


def waiting_title(waiting: int, need_input: int = 0) -> str:
    """Return the title of the terminal window."""
    # Only numbers, because window titles are visible to bystanders and in screen sharing.
    parts = ([str(waiting)] if waiting else []) + ([f"{need_input} input"] if need_input else [])
    return f"({', '.join(parts)}) {TITLE}" if parts else TITLE


def _sessions(records: Sequence[CallRecord], board: Board) -> str:
    names = dict.fromkeys(session_label_of(each, board) for each in records)
    return ", ".join(list(names)[:MOST_NAMES])


def stall_text(records: Sequence[CallRecord], board: Board, news: StallNews) -> str:
    """Return a sentence about stalled runs, with the names of their sessions."""
    one, many = ("needs input", "need input") if news == "needs-input" else ("is stopped", "are stopped")
    return f"{count(len(records), 'command')} of {_sessions(records, board)} {one if len(records) == 1 else many}"


def alarm_text(records: Sequence[CallRecord], board: Board) -> str:
    """Return a sentence about calls with alarms, with the names of their sessions."""
    return f"ALARM: {count(len(records), 'approved call')} of {_sessions(records, board)}: something else may have run"


def waiting_text(records: Sequence[CallRecord], board: Board) -> str:
    """Return a sentence about new calls: which sessions ask, and the gravest risk."""
    # Commands are left out, because locked screens show notifications.
    sessions = dict.fromkeys(record.call.session_id for record in records)
    names = [session_label(board.sessions.get(id_), id_) for id_ in sessions]
    others = f" and {count(len(names) - MOST_NAMES, 'other')}" if len(names) > MOST_NAMES else ""
    who = ", ".join(names[:MOST_NAMES]) + others
    risks = [risk for record in records if record.verdict for risk in record.verdict.risks if is_grave(risk)]
    grave = f" ({risks[0].id.replace('-', ' ')})" if risks else ""
    # Calls of several seconds are told together, and an agent may have gone before.
    left = sum(record.agent_gave_up is not None for record in records)
    gone = "" if not left else " · agent gone" if left == len(records) else f" · agent of {left} gone"
    asks = count(len(records), "new call")
    return f"{asks} from {who}{grave}{gone} · {count(len(board.waiting), 'waits', 'wait')} for you"


def notification_json(
    records: Sequence[CallRecord], board: Board, event: Literal["waiting", "alarm", "phone"] | StallNews = "waiting"
) -> bytes:
    """Return a JSON object and a line feed: the calls as rows with their risks, and how many wait or are set aside.

    Secrets are masked even in calls that await a decision, because the program may send this anywhere.
    """
    rows = [
        {
            **call_row(masked_record(record), board.sessions.get(record.call.session_id)),
            "risks": [risk.id for risk in record.verdict.risks] if record.verdict else [],
        }
        for record in records[:MOST_ROWS]
    ]
    numbers = {"waiting": len(board.waiting), "aside": len(board.aside), "new": len(records)}
    content = {"event": event, **numbers, "calls": rows}
    return json.dumps(content).encode("ascii") + b"\n"
