"""Finding calls in the journal; looking for words or names reads very many rows: it is done beside the event loop."""

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from whisper_tui.model.port import HistoryQuery
from whisper_tui.supervisor.journal_file import not_read
from whisper_tui.supervisor.word_index import attach, parts_of

_EVERYWHERE = "calls"
_INDEXED = "search.parts CROSS JOIN calls ON calls.id = parts.rowid"


def statement(query: HistoryQuery, parts: str | None = None) -> tuple[str, tuple[object, ...]]:
    """What to ask the file for the ids of the calls that match, newest first. `parts`: what the index is asked for."""
    number = "calls.id" if parts is None else "parts.rowid"
    conditions, values = ["1"], list[object]()
    for condition, value in (
        ("parts MATCH ?", parts),
        (f"{number} < ?", query.before and int(query.before)),
        (f"{number} > ?", query.after and int(query.after)),
        ("session_id IN (SELECT ? UNION ALL SELECT id FROM sessions WHERE name = ?)", query.session),
        ("session_id = ?", query.session_id),
        ("instr(calls.words, ?)", query.text.casefold() or None),
    ):
        if value is not None:
            conditions.append(condition)
            values += [value] * condition.count("?")
    if query.open_only:
        conditions.append("open = 1")
    source = _EVERYWHERE if parts is None else _INDEXED
    sql = f"SELECT calls.id FROM {source} WHERE {' AND '.join(conditions)} ORDER BY {number} DESC LIMIT ?"  # noqa: S608
    return sql, (*values, query.limit)


async def find_beside(path: Path, query: HistoryQuery) -> list[str]:
    """Ids of the calls that match, read in a thread on a connection of its own. Raises `Unavailable`."""
    return await asyncio.to_thread(_find, path, query)


def _find(path: Path, query: HistoryQuery) -> list[str]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            parts = parts_of(query.text.casefold())
            if parts is not None:
                with suppress(sqlite3.Error):  # The index is spoilt or half removed: the journal itself has it all.
                    return _by_index(db, attach(db, path), query, parts)
            return _ids(db, query)
    except sqlite3.Error as error:
        raise not_read(path, error) from error


def _by_index(db: sqlite3.Connection, covered: int, query: HistoryQuery, parts: str) -> list[str]:
    """Those that the index does not know yet, which are the newest, and then those that it knows."""
    newest = query.model_copy(update={"after": str(max(covered, int(query.after or 0)))})
    found = _ids(db, newest)
    left = query.limit - len(found)
    if not left or not covered:
        return found
    before = min(covered + 1, int(query.before or covered + 1))
    older = query.model_copy(update={"limit": left, "before": str(before)})
    return found + _ids(db, older, parts)


def _ids(db: sqlite3.Connection, query: HistoryQuery, parts: str | None = None) -> list[str]:
    return [str(row[0]) for row in db.execute(*statement(query, parts))]
