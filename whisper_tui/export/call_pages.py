"""Calls from the journal, page by page, so that not all of them are in memory at once."""

from collections.abc import AsyncIterator

from whisper_tui.model.api import HistoryQuery, Supervision
from whisper_tui.model.board import Board
from whisper_tui.model.call import Session
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.state import CallRecord

PAGE = 200
"""Calls in one page."""


async def newest_first(supervision: Supervision, query: HistoryQuery) -> AsyncIterator[tuple[CallRecord, ...]]:
    """Yield pages of matching calls, newest first. The limit of the query is the length of a page."""
    while page := await supervision.history(query):
        yield page
        if len(page) < query.limit:
            return
        query = query.model_copy(update={"before": page[-1].id})


async def oldest_first(supervision: Supervision, session_id: str | None = None) -> AsyncIterator[CallRecord]:
    """Yield all calls, or those of one session, oldest first. Calls that arrive meanwhile are omitted."""
    # The API only pages backwards from the newest call, so the starts of the pages are collected first.
    query = HistoryQuery(limit=PAGE, session_id=session_id)
    starts: list[str] = []
    async for page in newest_first(supervision, query):
        starts.append(str(int(page[0].id) + 1))
    for before in reversed(starts):
        for record in reversed(await supervision.history(query.model_copy(update={"before": before}))):
            yield record


async def current_board(supervision: Supervision) -> Board:
    """Return a board that includes the newest call."""
    newest = await supervision.history(HistoryQuery(limit=1))
    board = Board()
    if not newest:
        return board
    async for events in supervision.watch(None):
        board.apply_all(events)
        if newest[0].id in board.calls:
            break
    return board


async def sessions_named(supervision: Supervision, name: str) -> tuple[Session, ...]:
    """Return the sessions with an id or name, oldest first. Raises `InvalidRequest` if there is none."""
    # The board drops old sessions, so they are found through the calls in the history.
    board = await current_board(supervision)
    found = {session.id: session for session in board.sessions.values() if name in {session.id, session.name}}
    async for page in newest_first(supervision, HistoryQuery(limit=PAGE, session=name)):
        for session_id in {record.call.session_id for record in page} - found.keys():
            found[session_id] = await supervision.session(session_id)
    if not found:
        raise InvalidRequest(f"there is no session {name!r} with calls", hint="whisper-tui history names sessions")
    return tuple(sorted(found.values(), key=lambda session: session.opened_at))
