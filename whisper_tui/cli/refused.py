"""`history refused`: who tried to decide and may not."""

import json
import sqlite3
import sys
import time
from pathlib import Path

from whisper_tui.cli.exit_codes import DONE
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.home import Home

_NEWEST = "SELECT body FROM events WHERE seq IN (SELECT seq FROM refused ORDER BY seq DESC LIMIT ?) ORDER BY seq DESC"


def refused(home: Home, limit: int, *, as_json: bool) -> int:
    """Print the newest refused attempts of the journal, newest first. Needs no supervisor, and starts none."""
    from whisper_tui.model.event import EVENT, AttemptRefused
    from whisper_tui.tui.refused_words import refused_sentence

    bodies = _bodies(Path(home.state) / "journal.sqlite", limit)
    if as_json:
        sys.stdout.write(json.dumps([json.loads(body) for body in bodies], indent=2) + "\n")
        return DONE
    for attempt in map(EVENT.validate_json, bodies):
        if isinstance(attempt, AttemptRefused):
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(attempt.at))
            sys.stdout.write(f"{at}  {refused_sentence(attempt)}\n")
    if not bodies:
        sys.stdout.write("Nobody who may not decide has tried to\n")
    return DONE


def _bodies(path: Path, limit: int) -> list[str]:
    if not path.exists():
        raise Unavailable(f"there is no journal {path}", hint="Choose another --home")
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)
        try:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'refused'").fetchone():
                return []
            return [body for (body,) in db.execute(_NEWEST, (limit,))]
        finally:
            db.close()
    except sqlite3.Error as error:
        raise Unavailable(f"the journal {path} cannot be read: {error}") from error
