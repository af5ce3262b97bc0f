"""The words by which a call is found again in the journal."""

from whisper_tui.model.call import ToolCall
from whisper_tui.model.command import Argv

LONGEST = 20_000
"""Characters of one call that are searched."""


def search_text(call: ToolCall) -> str:
    """Tool, command, directory and description, folded to one case, a line each."""
    command = call.spec.command
    words = " ".join(command.words()) if isinstance(command, Argv) else command.text
    text = "\n".join((call.tool, words, call.spec.cwd, call.description))[:LONGEST]
    return text.casefold().encode("utf-8", "replace").decode()
