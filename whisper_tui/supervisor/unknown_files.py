"""Files of calls and sessions that the journal does not know, because it was moved away, emptied or restored."""

import logging
import os
import re
from collections.abc import Iterator

from whisper_tui.supervisor.journal.journal import Journal

_CALLS = {"runs": re.compile(r"(\d{1,18})\.\d+"), "edits": re.compile(r"(\d{1,18})")}
_SESSIONS = {"environments": re.compile(r"s(\d{1,18})\..*")}

_log = logging.getLogger(__name__)


def number_beyond(journal: Journal, state: str) -> None:
    """Let new calls and sessions have numbers that no file in the state directory bears.

    With a number again, a call would find the output of another one, and nothing could be started for it.
    """
    if journal.ended_cleanly and journal.last_seq:
        return
    call, session = _highest(state, _CALLS), _highest(state, _SESSIONS)
    if call > journal.last_call:
        _log.warning(
            "the journal ends at call %d, and there are files of calls up to %d: it was moved away, emptied or "
            "restored. The next call has the number %d; output without a record stays in %s/runs until it expires",
            journal.last_call,
            call,
            call + 1,
            state,
        )
    if call or session:
        journal.is_first = False
    journal.last_call = max(journal.last_call, call)
    journal.last_session = max(journal.last_session, session)


def _highest(state: str, kinds: dict[str, re.Pattern[str]]) -> int:
    return max(
        (number for directory, name in kinds.items() for number in _numbers(f"{state}/{directory}", name)), default=0
    )


def _numbers(directory: str, name: re.Pattern[str]) -> Iterator[int]:
    try:
        with os.scandir(directory) as found:
            yield from (int(match[1]) for each in found if (match := name.fullmatch(each.name)))
    except OSError:
        return
