"""Calls and remembered approvals as ready rows, so that the lightest clients need not know the model."""

from collections.abc import Iterable
from typing import Any, Literal, Protocol

from whisper_tui.model.board import Board
from whisper_tui.model.port import HistoryQuery, Supervision
from whisper_tui.model.state import CallRecord
from whisper_tui.model.summary import Row, call_details, call_row, grant_row
from whisper_tui.wire.picture import Picture

RowKind = Literal["list", "ps", "history", "show", "approvals"]


class RowSource(Protocol):
    """What the server offers beside the port."""

    async def rows(
        self,
        kind: RowKind,
        *,
        call_id: str | None = None,
        limit: int = 50,
        session: str | None = None,
        text: str = "",
    ) -> list[dict[str, Any]]:
        """Rows of one kind. `show` wants a call id; the last three are about `history`."""
        ...


class Rows:
    """Makes the rows from the picture of now and from the journal."""

    def __init__(self, supervision: Supervision, picture: Picture) -> None:
        self._supervision = supervision
        self._picture = picture

    async def rows(
        self,
        kind: RowKind,
        *,
        call_id: str | None = None,
        limit: int = 50,
        session: str | None = None,
        text: str = "",
    ) -> list[dict[str, Any]]:
        """Rows of one kind: waiting ones first in `list`, newest first in `history`."""
        board = await self._picture.caught_up()
        match kind:
            case "list":
                return _call_rows(board, (*board.waiting, *board.held, *board.queued, *board.running))
            case "ps":
                return _call_rows(board, (*board.running, *board.unsettled))
            case "show":
                record = await self._supervision.record(call_id or "")
                return [call_details(record, board.sessions.get(record.call.session_id))]
            case "approvals":
                grants = await self._supervision.grants()
                return [grant_row(grant, board.sessions.get(grant.session_id)) for grant in grants]
            case "history":
                return await self._history(board, limit, session, text)

    async def _history(self, board: Board, limit: int, session: str | None, text: str) -> list[Row]:
        """A session is named by its id or by its name, which several may share."""
        named = [known.id for known in board.sessions.values() if session in {known.name, known.id}]
        wanted = [None] if session is None else sorted({session, *named})
        found: list[CallRecord] = []
        for session_id in wanted:
            found += await self._supervision.history(HistoryQuery(limit=limit, session_id=session_id, text=text))
        found.sort(key=lambda record: int(record.id), reverse=True)
        return [_row(board, record) for record in found[:limit]]


def _call_rows(board: Board, call_ids: Iterable[str]) -> list[Row]:
    return [_row(board, board.calls[call_id]) for call_id in call_ids]


def _row(board: Board, record: CallRecord) -> Row:
    return call_row(record, board.sessions.get(record.call.session_id))
