"""Approved edits on their way to the agent: files compared once more, and a human's result as arguments of its tool.

The agent's own program makes the edit a moment later. So the files are read here as late as possible (decision 28).
"""

import difflib
import hashlib
import os
import stat
from collections.abc import Iterable

from whisper_tui.agents.agent_tools import Content, FileResult
from whisper_tui.agents.hook_formats import HookFormat, HookRequest
from whisper_tui.model.call import LARGEST_EDITED, DeleteFile, EditedFile, FileEdits, WriteFile, paths_of
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.state import CallRecord

READ_AGAIN = "Read it again, and make the edit again"
LONGEST_DIFF = 6000
"""Characters of a human's change that the model is shown."""
LARGEST_COMPARED = 1 << 19
"""Characters of two contents beyond which the model is not shown the difference."""


class StaleEdit(Refused):
    """A file is not as it was when the edit was approved."""


def arguments_for(client: HookFormat, asked: HookRequest, record: CallRecord) -> tuple[Content | None, str]:
    """Return the arguments for the agent's tool, and a note for its model. None: those that it has sent.

    Reads files. Raises `WhisperError`, in words for the model, if the edit cannot be made as it was approved.
    """
    command = record.spec.command
    if not isinstance(command, FileEdits):
        return None, ""
    contents = approved_contents(command, record.resolved.edits if record.resolved is not None else ())
    if not record.edited:
        return ({**asked.tool_input, **asked.absolute} if asked.absolute else None), ""
    results = list(results_of(command, contents))
    return client.rewritten(asked, results), note_about(results)


def approved_contents(command: FileEdits, files: Iterable[EditedFile]) -> dict[str, bytes | None]:
    """Return the contents of an edit's files by their real paths. Raises `StaleEdit` if one was not approved so.

    A file that nobody has read at the approval is left out.
    """
    known = {file.real: file for file in files}
    contents: dict[str, bytes | None] = {}
    for path in dict.fromkeys(path for change in command.changes for path in paths_of(change)):
        real = os.path.realpath(path)
        file = known.get(real)
        if file is None:
            raise StaleEdit(f"{path} is another file than the one that was approved", hint=READ_AGAIN)
        if file.unread:
            continue
        content = _read(real)
        if (None if content is None else hashlib.sha256(content).hexdigest()) != file.before:
            raise StaleEdit(f"{path} has changed since the edit was approved, so nothing was changed", hint=READ_AGAIN)
        contents[real] = content
    return contents


def _read(path: str) -> bytes | None:
    """The content of a regular file. None: there is no file."""
    try:
        # A FIFO in its place must not make this wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StaleEdit(f"{path} cannot be read any more: {error.strerror}", hint=READ_AGAIN) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_EDITED:
            raise StaleEdit(f"{path} is no longer the file that was approved", hint=READ_AGAIN)
        held = bytearray()
        while len(held) <= LARGEST_EDITED and (piece := os.read(descriptor, 1 << 20)):
            held += piece
        return bytes(held)
    finally:
        os.close(descriptor)


def results_of(command: FileEdits, contents: dict[str, bytes | None]) -> Iterable[FileResult]:
    """Yield each file with the content that was approved. Raises `InvalidRequest` if that is no text."""
    for change in command.changes:
        real = os.path.realpath(change.path)
        if not isinstance(change, WriteFile | DeleteFile) or real not in contents:
            raise InvalidRequest("the human's result cannot be passed on", hint="Make the edit again")
        old = contents[real]
        try:
            text = None if old is None else old.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"{change.path} is not text, so its result cannot be passed on") from error
        yield FileResult(change.path, text, change.content if isinstance(change, WriteFile) else None)


def note_about(results: list[FileResult]) -> str:
    """Return the note for the model about a human's result."""
    files = ", ".join(result.path for result in results)
    note = f"The human changed the edit before it was made. {files} now holds what the human wrote"
    shown = "".join(map(_diff, results))
    if not shown or len(shown) > LONGEST_DIFF:
        return f"{note}: read it before you go on."
    return f"{note}. This was made instead of your edit:\n{shown}"


def _diff(result: FileResult) -> str:
    """The difference that was made to a file. Empty: it would take long."""
    old, new = result.old or "", result.new or ""
    if len(old) + len(new) > LARGEST_COMPARED:
        return ""
    made = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), result.path, result.path, n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in made)
