"""`history refused` and `history rules`: who tried to decide and may not, and how the files of rules changed."""

import sqlite3
import sys
import time
from pathlib import Path
from typing import Literal

from whisper_tui.cli.exit_codes import DONE
from whisper_tui.cli.json_text import print_json
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.home import Home

KINDS = {"refused": "attempt_refused", "rules": "rules_changed"}
NOTHING = {
    "refused": "Nobody who may not decide has tried to",
    "rules": "The files of rules are as they were when whisper_tui began to look at them",
}

# The facts themselves are read, and not the tables beside them that lead to them: only facts are in the chain.
_NEWEST = "SELECT body FROM events WHERE instr(body, ?) ORDER BY seq DESC"


def notices(home: Home, about: Literal["refused", "rules"], limit: int, *, as_json: bool) -> int:
    """Print the newest of them, newest first. Needs no supervisor, and starts none."""
    from whisper_tui.model.event import EVENT, AttemptRefused, RulesChanged
    from whisper_tui.tui.refused_words import refused_sentence, rules_sentence

    told = []
    for body in _bodies(Path(home.state) / "journal.sqlite", KINDS[about]):
        event = EVENT.validate_json(body)
        if isinstance(event, AttemptRefused):
            sentence: str | None = refused_sentence(event)
        else:
            sentence = rules_sentence(event) if isinstance(event, RulesChanged) else None
        if sentence is not None:
            told.append((event, sentence))
        if len(told) >= limit:
            break
    if as_json:
        print_json([event.model_dump(mode="json") for event, _ in told])
        return DONE
    for event, sentence in told:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at))
        sys.stdout.write(f"{at}  {sentence}\n")
    if not told:
        sys.stdout.write(f"{NOTHING[about]}\n")
    return DONE


def _bodies(path: Path, kind: str) -> list[str]:
    if not path.exists():
        raise Unavailable(f"there is no journal {path}", hint="Choose another --home")
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)
        try:
            return [body for (body,) in db.execute(_NEWEST, (f'"kind":"{kind}"',))]
        finally:
            db.close()
    except sqlite3.Error as error:
        raise Unavailable(f"the journal {path} cannot be read: {error}") from error
