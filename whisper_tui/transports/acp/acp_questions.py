"""An agent's requests that wait for a decision: writes of files, and permission for what it does itself."""

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field

from whisper_tui.model.call import (
    LARGEST_EDITED,
    CommandSpec,
    DeleteFile,
    FileChange,
    FileEdits,
    Function,
    ReplaceText,
    Shell,
    WriteFile,
)
from whisper_tui.model.ending import Denied, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.tools.agent_text import failure_of
from whisper_tui.tools.supervised_tool import shell_of
from whisper_tui.transports.acp.acp_sessions import (
    INVALID_PARAMS,
    NOT_FOUND,
    AgentSessions,
    KnownAgent,
    Message,
    Params,
    RequestFailed,
    checked,
    decided_call,
)
from whisper_tui.transports.acp.acp_terminals import command_of
from whisper_tui.transports.hook.edit_answers import READ_AGAIN, StaleEdit, approved_contents, note_about, results_of
from whisper_tui.transports.json_lines import NOTE_KEY

LARGEST_READ = 16 << 20
"""Bytes of a file that an agent reads at once."""

MOST_CALLS = 1000
"""Tool calls whose kind is remembered for a question about them."""

WRITE_TOOL = "write_text_file"

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
KINDS = frozenset(get_args(ToolKind))
ACTING = frozenset({"edit", "delete", "move", "execute", "fetch"})
"""Kinds of tool calls that act on the machine, or reach beyond it."""


class ReadParams(Params):
    """The request to read a file."""

    path: str
    line: int | None = Field(default=None, ge=0)
    limit: int | None = Field(default=None, ge=0)


class WriteParams(Params):
    """The request to write a file."""

    path: str
    content: str = Field(max_length=LARGEST_EDITED)


class OfferedOption(BaseModel):
    """An answer that the agent offers."""

    optionId: str
    kind: str


class PermissionParams(Params):
    """The question about a tool call."""

    tool_call: dict[str, Any]
    options: tuple[OfferedOption, ...]


class Files:
    """Serves `fs/read_text_file`, and `fs/write_text_file` once the write is approved."""

    def __init__(self, sessions: AgentSessions, show: Callable[[str, Message], None]) -> None:
        self._sessions = sessions
        self._show = show

    async def read(self, params: object) -> Message:
        """Return a file or a range of its lines, as it is on the disk: that is what a write is compared with."""
        said = checked(ReadParams, params)
        data = await asyncio.to_thread(_readable, said.path)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise RequestFailed(f"{said.path} is not UTF-8 text") from error
        if said.line is None and said.limit is None:
            return {"content": text}
        first = max((said.line or 1) - 1, 0)
        lines = text.splitlines(keepends=True)
        return {"content": "".join(islice(lines, first, None if said.limit is None else first + said.limit))}

    async def write(self, params: object) -> Message:
        """Ask about a write, and make it as it was approved."""
        said = checked(WriteParams, params)
        if not Path(said.path).is_absolute():
            raise RequestFailed(f"the path {said.path!r} is not absolute", INVALID_PARAMS)
        change = WriteFile(path=said.path, content=said.content)
        spec = CommandSpec(
            command=FileEdits(tool=WRITE_TOOL, changes=(change,)), cwd=self._sessions.root(said.session_id)
        )
        try:
            record = await decided_call(self._sessions, said.session_id, spec, takes_change=True)
            refuse_unless_handed_over(record)
            note = await asyncio.to_thread(_make, record)
        except WhisperError as error:
            self._show_outcome(said, f"Not written: {error.sentence()}", failed=True)
            raise
        if not note:
            return {}
        self._show_outcome(said, note, failed=False)
        return {"_meta": {NOTE_KEY: note}}

    def _show_outcome(self, said: WriteParams, words: str, *, failed: bool) -> None:
        """Show the editor what became of a write, where it is not what the agent says about it."""
        call = {
            "sessionUpdate": "tool_call",
            "toolCallId": f"whisper-tui-write-{os.urandom(6).hex()}",
            "title": f"whisper_tui: {said.path}",
            "kind": "edit",
            "status": "failed" if failed else "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": words}}],
        }
        self._show(said.session_id, call)


def refuse_unless_handed_over(record: CallRecord) -> None:
    """Raise `ToolFailure` for a call that was not approved, in words for the model."""
    ending = record.state.ending if isinstance(record.state, Ended) else None
    match ending:
        case HandedOver():
            return
        case Denied() | Withdrawn() | Lost():
            raise failure_of(ending, record.call.spec.command.kind)
        case _:
            raise RequestFailed(f"call {record.id} was carried out before")


def _readable(path: str) -> bytes:
    """Return the content of a regular file. Raises `RequestFailed`."""
    try:
        # A FIFO must not make this wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "its name contains a null character"
        raise RequestFailed(f"{path} cannot be read: {why}", NOT_FOUND) from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise RequestFailed(f"{path} is not a regular file")
        data = file.read(LARGEST_READ + 1)
    if len(data) > LARGEST_READ:
        raise RequestFailed(f"{path} is larger than {LARGEST_READ >> 20} MiB: read parts of it with a command")
    return data


def _make(record: CallRecord) -> str:
    """Make an approved write. Return the note for the model. Empty: it was made as the agent asked."""
    command = record.spec.command
    if not isinstance(command, FileEdits):
        raise RequestFailed("what was approved is no write of a file")
    contents = approved_contents(command, record.resolved.edits if record.resolved is not None else ())
    for result in (results := list(results_of(command, contents))):
        real = os.path.realpath(result.path)
        if real not in contents:
            raise StaleEdit(f"{result.path} is another file than the one that was approved", hint=READ_AGAIN)
        try:
            _write(real, contents[real], result.new)
        except OSError as error:
            raise RequestFailed(f"approved, but {result.path} could not be written: {error.strerror}") from error
    return note_about(results) if record.edited else ""


def _write(real: str, before: bytes | None, text: str | None) -> None:
    """Write one file in its place, if it still is as it was approved. None as text: delete it."""
    if text is None:
        if before is not None:
            Path(real).unlink()
        return
    if before is None:
        Path(real).parent.mkdir(parents=True, exist_ok=True)
        # Exclusive: what somebody else has created meanwhile was not approved to be replaced.
        descriptor = os.open(real, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    else:
        descriptor = os.open(real, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "wb" if before is None else "r+b") as file:
        # In the open file itself, as late as possible: nobody can exchange it any more.
        if before is not None and _digest(file.read(LARGEST_EDITED + 1)) != _digest(before):
            raise StaleEdit(f"{real} has changed since the edit was approved, so nothing was changed", hint=READ_AGAIN)
        file.seek(0)
        file.truncate()
        file.write(text.encode())


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class PermissionQuestions:
    """Answers `session/request_permission`, once for each action, and by the kind of an option alone."""

    def __init__(self, sessions: AgentSessions) -> None:
        self._sessions = sessions
        self.agent: KnownAgent | None = None
        """The row of the agent. None: it has not said who it is."""
        self._shell = shell_of(sessions.environment)
        self._calls: dict[tuple[str, str], Message] = {}

    def note(self, session_id: str, update: Message) -> None:
        """Remember what an agent has said about a tool call: its question may leave that out."""
        key = (session_id, str(update.get("toolCallId")))
        known = self._calls.pop(key, {})
        told = {name: update[name] for name in ("kind", "title", "rawInput", "content") if update.get(name)}
        self._calls[key] = {**known, **told}
        if len(self._calls) > MOST_CALLS:
            del self._calls[next(iter(self._calls))]

    def is_choice(self, params: object) -> bool:
        """True for a question between several answers, like the next step of a plan: it allows no action by itself.

        Only the person in the editor sees the answers, so it is theirs.
        """
        try:
            said = checked(PermissionParams, params)
        except RequestFailed:
            return False
        call, kind = self._call(said)
        acts = kind in ACTING or _command_in(_given(call), self._shell) is not None or bool(_diffs(call))
        return not acts and _count(said.options, "allow_once") > 1

    def _call(self, said: PermissionParams) -> tuple[Message, str]:
        """Return all that is known about the tool call of a question, and its kind."""
        known = self._calls.get((said.session_id, str(said.tool_call.get("toolCallId"))), {})
        call = {**known, **{name: value for name, value in said.tool_call.items() if value}}
        kind = call.get("kind")
        return call, str(kind) if kind in KINDS else "other"

    async def ask(self, params: object) -> Message:
        """Return the outcome for the agent."""
        said = checked(PermissionParams, params)
        call, kind = self._call(said)
        if self._comes_back(kind, call):
            return picked(said.options, "allow_once")
        try:
            spec = await asyncio.to_thread(self._spec, said.session_id, kind, call)
            title = str(call.get("title") or "")
            record = await decided_call(self._sessions, said.session_id, spec, description=title)
            refuse_unless_handed_over(record)
            command = record.spec.command
            if isinstance(command, FileEdits):
                edits = record.resolved.edits if record.resolved is not None else ()
                await asyncio.to_thread(approved_contents, command, edits)
        except (WhisperError, RequestFailed):
            # The protocol has no place for the reason, nor for a human's change.
            return picked(said.options, "reject_once", "reject_always")
        return picked(said.options, "allow_once")

    def _comes_back(self, kind: str, call: Message) -> bool:
        """True if the proxy is asked about the same action again, as a terminal or as a write."""
        if self.agent is None:
            return False
        if kind == "execute" or _command_in(_given(call), self._shell) is not None:
            return self.agent.shell == "terminal"
        return kind == "edit" and self.agent.writes

    def _spec(self, session_id: str, kind: str, call: Message) -> CommandSpec:
        """Return the call to ask about. Reads the files of an edit."""
        root = self._sessions.root(session_id)
        given = _given(call)
        command = _command_in(given, self._shell)
        if command is not None:
            cwd = next((given[key] for key in ("cwd", "workdir", "directory") if isinstance(given.get(key), str)), root)
            return CommandSpec(command=command, cwd=str(Path(root) / cwd))
        diffs = _diffs(call)
        if diffs and kind == "edit":
            changes = tuple(_change(each, root) for each in diffs)
            return CommandSpec(command=FileEdits(tool="edit", changes=changes, takes_result=False), cwd=root)
        shown = {"title": str(call.get("title") or ""), "input": given, **({"changes": diffs} if diffs else {})}
        # The kind is all that tells one tool from another: titles are sentences of the agent.
        return CommandSpec(command=Function(tool=f"acp__{kind}", arguments=shown), cwd=root)


def _given(call: Message) -> Message:
    """Return the arguments of the agent's tool."""
    raw = call.get("rawInput")
    return raw if isinstance(raw, dict) else {} if raw is None else {"input": raw}


def _diffs(call: Message) -> list[Message]:
    """Return the changes of files that a tool call shows."""
    content = call.get("content")
    parts = content if isinstance(content, list) else []
    return [each for each in parts if isinstance(each, dict) and each.get("type") == "diff"]


def _count(options: tuple[OfferedOption, ...], kind: str) -> int:
    return sum(option.kind == kind for option in options)


def _command_in(given: Message, shell: str) -> Any:
    """Return the command that an agent asks about. None: it asks about something else."""
    match given.get("command"):
        case str(text) if text.strip():
            return Shell(text=text, shell=shell)
        case [str(program), *rest] if program and all(isinstance(word, str) for word in rest):
            return command_of(program, tuple(rest), shell) if rest else Shell(text=program, shell=shell)
        case _:
            return None


def _change(diff: Message, root: str) -> FileChange:
    """Return the change that an agent shows as a diff: of a whole file, or of a part of it."""
    path, old, new = diff.get("path"), diff.get("oldText"), diff.get("newText")
    if not isinstance(path, str) or not path or not isinstance(old, str | None) or not isinstance(new, str | None):
        raise RequestFailed("the diff of the question is wrong", INVALID_PARAMS)
    named = str(Path(root) / path)
    if new is None:
        return DeleteFile(path=named)
    if not old:
        return WriteFile(path=named, content=new)
    try:
        whole = _readable(named) == old.encode()
    except (RequestFailed, UnicodeEncodeError):
        whole = False
    # Where the file holds more than the old text, only that part is replaced.
    return WriteFile(path=named, content=new) if whole else ReplaceText(path=named, old=old, new=new)


def picked(options: tuple[OfferedOption, ...], *kinds: str) -> Message:
    """Return the answer with the option of the first of these kinds that is there. Without one the turn is cancelled.

    Of several that allow something none is chosen.
    """
    # Never by position or id: an agent names them as it likes.
    for kind in kinds:
        for option in options:
            if option.kind == kind and (kind != "allow_once" or _count(options, kind) == 1):
                return {"outcome": {"outcome": "selected", "optionId": option.optionId}}
    return {"outcome": {"outcome": "cancelled"}}
