"""Calls as JSON lines: one object a call, in the form of `whisper-tui show --json`."""

import json

from whisper_tui.model.call import Session
from whisper_tui.model.masked import masked_record
from whisper_tui.model.port import Supervision
from whisper_tui.model.removed import output_was_removed
from whisper_tui.model.state import CallRecord
from whisper_tui.model.summary import call_details


async def json_line(supervision: Supervision, record: CallRecord, session: Session | None) -> str:
    """One call, with its line feed and without the secrets in its command.

    All of it is ASCII: what is not, and what a terminal obeys, is escaped as JSON.
    """
    removed = await output_was_removed(supervision, record)
    row = {**call_details(masked_record(record), session), "output_removed": removed}
    return json.dumps(row, ensure_ascii=True).replace("\x7f", "\\u007f") + "\n"
