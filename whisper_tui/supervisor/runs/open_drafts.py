"""The drafts that are open: their directories, and the turns of the commands that run in them (decision 44)."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from whisper_tui.changes.draft_changes import DraftChanges
from whisper_tui.changes.file_trees import remove_tree
from whisper_tui.model.draft import SessionDraft
from whisper_tui.model.errors import Refused
from whisper_tui.model.state import CallRecord, Running, Starting, Waiting
from whisper_tui.supervisor.journal.store import Store
from whisper_tui.supervisor.runs.executor import RunKey
from whisper_tui.system import run_files

OVER = "the draft of its session is over"
_ABOUT = "draft.json"
_GONE = ".gone-"


class OpenDrafts:
    """Knows the drafts of all sessions. Each has a directory, which outlives the supervisor."""

    def __init__(self, store: Store, directory: Path) -> None:
        self.directory = directory
        self._store = store
        self._drafts: dict[str, SessionDraft] = {}
        self._changes: dict[str, DraftChanges] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        for entry in directory.iterdir() if directory.is_dir() else ():
            if entry.name.startswith(_GONE):
                remove_tree(str(entry))
            elif (about := _read(entry / _ABOUT)) is not None:
                self._drafts[about.session_id] = about

    def has(self, session_id: str) -> bool:
        """True if a session has a draft."""
        return session_id in self._drafts

    @property
    def all(self) -> Mapping[str, SessionDraft]:
        """All of them, by session."""
        return self._drafts

    def about(self, session_id: str) -> SessionDraft:
        """Return the draft of a session as it is now. Raises `Refused`."""
        draft = self._drafts.get(session_id)
        if draft is None:
            raise Refused(f"session {session_id} has no draft", hint="whisper-tui draft list shows all drafts")
        running = self.running(session_id)
        return draft.model_copy(update={"version": self.changes(session_id).version, "running": running})

    def running(self, session_id: str) -> str | None:
        """Return a call of a session whose command is on the files of its draft now. None: there is none."""
        board = self._store.board
        calls = (board.calls.get(call_id) for call_id in board.open_in.get(session_id, ()))
        return next((each.id for each in calls if each is not None and each.in_draft and _is_on_files(each)), None)

    def path(self, session_id: str) -> str:
        """Return the directory of the draft of a session."""
        return str(self.directory / session_id)

    def changes(self, session_id: str) -> DraftChanges:
        """Return the changes of the draft of a session. Raises `Refused`."""
        if session_id not in self._drafts:
            raise Refused(f"session {session_id} has no draft", hint="whisper-tui draft list shows all drafts")
        return self._changes.setdefault(session_id, DraftChanges(self.path(session_id)))

    def begin(self, draft: SessionDraft) -> None:
        """Begin a draft. Raises `OSError`."""
        self.directory.mkdir(0o700, exist_ok=True)
        directory = self.directory / draft.session_id
        remove_tree(str(directory))  # One that was never begun to its end.
        directory.mkdir(0o700)
        run_files.write_whole(str(directory / _ABOUT), draft.model_dump_json().encode(), durable=True)
        self._drafts[draft.session_id] = draft

    def end(self, session_id: str) -> Callable[[], None]:
        """End a draft, with all that it has changed. Returns what removes its files, for a thread."""
        del self._drafts[session_id]
        self._changes.pop(session_id, None)
        gone = str(self.directory / f"{_GONE}{session_id}")
        remove_tree(gone)
        Path(self.path(session_id)).rename(gone)
        return lambda: remove_tree(gone)

    def turn(self, session_id: str) -> asyncio.Lock:
        """Return the turn on the files of a draft: one command at a time is on them, in their order."""
        return self._turns.setdefault(session_id, asyncio.Lock())

    async def over(self, call_id: str) -> None:
        """Wait until nothing of a call runs in its draft."""
        while _is_on_files(self._store.board.calls.get(call_id)):
            await self._store.news()

    async def note(self, session_id: str, key: RunKey) -> None:
        """Note what an attempt has changed in a draft that has ended. Raises `OSError`."""
        if self.has(session_id):
            await asyncio.to_thread(self.changes(session_id).note, f"{key.call_id}.{key.attempt}")


def _read(path: Path) -> SessionDraft | None:
    try:
        return SessionDraft.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None  # Killed while it was begun: nothing has run in it.


def _is_on_files(record: CallRecord | None) -> bool:
    if record is None:
        return False
    preview = record.preview
    if isinstance(record.state, Waiting):
        return preview is not None and preview.report is None and not preview.dropped
    return isinstance(record.state, Starting | Running)
