"""Finding calls in the journal; looking for words or names reads very many rows: it is done beside the event loop."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from whisper_tui.model.port import HistoryQuery
from whisper_tui.supervisor.journal_file import not_read

_SESSIONS_CALLED = """session_id IN (
    SELECT ?1 UNION ALL SELECT session_id FROM events
    WHERE session_id IS NOT NULL AND json_extract(body, '$.session.name') = ?1
)"""


def statement(query: HistoryQuery) -> tuple[str, tuple[object, ...]]:
    """What to ask the file for the ids of the calls that match, newest first."""
    conditions, values = ["1"], list[object]()
    if query.session is not None:
        conditions.append(_SESSIONS_CALLED)
        values.append(query.session)
    for condition, value in (
        ("id < ?", query.before and int(query.before)),
        ("id > ?", query.after and int(query.after)),
        ("session_id = ?", query.session_id),
        ("instr(words, ?)", query.text.casefold() or None),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    if query.open_only:
        conditions.append("open = 1")
    sql = f"SELECT id FROM calls WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?"  # noqa: S608
    return sql, (*values, query.limit)


async def find_beside(path: Path, query: HistoryQuery) -> list[str]:
    """Ids of the calls that match, read in a thread on a connection of its own. Raises `Unavailable`."""
    return await asyncio.to_thread(_find, path, query)


def _find(path: Path, query: HistoryQuery) -> list[str]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            return [str(row[0]) for row in db.execute(*statement(query))]
    except sqlite3.Error as error:
        raise not_read(path, error) from error
