"""The wide reading: every simple command that bash could run from a text, wherever it stands."""

from whisper_tui.policy.reading.grammar import ScriptReader
from whisper_tui.policy.reading.syntax import Script, Unreadable


def read_script(text: str) -> Script:
    """Read a text as bash would. What cannot be read is told in `problem`; what came before it is kept."""
    found = Script()
    reader = ScriptReader(text, found)
    try:
        reader.read_all()
    except Unreadable as error:
        found.problem = str(error)
    except RecursionError:
        found.problem = "it is nested too deeply"
    return found
