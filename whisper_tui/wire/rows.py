"""Calls and remembered approvals as ready rows, so that the lightest clients need not know the model."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol

from whisper_tui.model.board import Board
from whisper_tui.model.call import Session
from whisper_tui.model.masked import as_shown, masked_grant
from whisper_tui.model.port import HistoryQuery, Page, Supervision
from whisper_tui.model.removed import output_was_removed
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
        limit: Page = 50,
        session: str | None = None,
        text: str = "",
        unmasked: bool = False,
    ) -> list[dict[str, Any]]:
        """Rows of one kind. `show` wants a call id; `limit`, `session` and `text` are about `history`.

        Secrets are replaced, but in calls that wait for a human; `unmasked`: nowhere.
        """
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
        unmasked: bool = False,
    ) -> list[dict[str, Any]]:
        """Rows of one kind: waiting ones first in `list`, newest first in `history`."""
        board = self._picture.board
        shown = _whole if unmasked else as_shown
        match kind:
            case "list":
                return _call_rows(board, shown, (*board.waiting, *board.held, *board.queued, *board.running))
            case "ps":
                return _call_rows(board, shown, (*board.running, *board.unsettled))
            case "show":
                record = await self._supervision.record(call_id or "")
                row = call_details(shown(record), await self._session(record))
                return [{**row, "output_removed": await output_was_removed(self._supervision, record)}]
            case "approvals":
                return [
                    grant_row(grant if unmasked else masked_grant(grant), board.sessions.get(grant.session_id))
                    for grant in await self._supervision.grants()
                ]
            case "history":
                records = await self._supervision.history(HistoryQuery(limit=limit, session=session, text=text))
                return [call_row(shown(record), await self._session(record)) for record in records]

    async def _session(self, record: CallRecord) -> Session:
        """The session of any call, of whatever age."""
        session_id = record.call.session_id
        return self._picture.board.sessions.get(session_id) or await self._supervision.session(session_id)


def _whole(record: CallRecord) -> CallRecord:
    return record


def _call_rows(board: Board, shown: Callable[[CallRecord], CallRecord], call_ids: Iterable[str]) -> list[Row]:
    records = (board.calls[call_id] for call_id in call_ids)
    still = board.paused is not None
    return [call_row(shown(record), board.sessions.get(record.call.session_id), still=still) for record in records]
