"""Requests of agents: the command or the edits of files, the call and its session."""

import hashlib
import json
import re
import shlex
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from whisper_tui.model.value import Count, Value

CALL_ID = re.compile(r"^[1-9][0-9]{0,17}\Z", re.ASCII)
"""The id of a call: one spelling for each number, which fits into SQLite's integers of 63 bits."""
CallId = Annotated[str, Field(pattern=CALL_ID)]

LARGEST_EDITED = 4 << 20
"""Bytes of a file, or of its new content, beyond which neither content nor difference is looked at."""

AGENT_INSTRUCTIONS = "instructions that agents follow"
"""The kind of a file that agents read at the start of each session, or whenever its subject comes up."""


class WriteFile(Value):
    """Create a file, or replace all of its content."""

    kind: Literal["write"] = "write"
    path: str
    """Absolute, as the agent named it."""
    content: str


class ReplaceText(Value):
    """Replace a text in a file by another one."""

    kind: Literal["replace"] = "replace"
    path: str
    old: str
    """Empty: the file is created with the new text."""
    new: str
    every: bool = False
    """True if each occurrence is replaced. False: it has to occur exactly once."""


class Hunk(Value):
    """One part of a patch, without line numbers: it is found by its lines."""

    heading: str = ""
    """A line before the hunk that tells which of several equal places is meant. Empty: none."""
    lines: tuple[str, ...] = ()
    """Each begins with a blank (kept), a minus sign (removed) or a plus sign (added)."""
    at_end: bool = False
    """True if the hunk has to be at the end of the file."""


class PatchFile(Value):
    """Apply hunks to a file, and move it if a new path is given."""

    kind: Literal["patch"] = "patch"
    path: str
    hunks: tuple[Hunk, ...] = ()
    move_to: str | None = None
    """The absolute path that the file gets. None: it stays."""


class DeleteFile(Value):
    """Delete a file."""

    kind: Literal["delete"] = "delete"
    path: str


class EditCell(Value):
    """Change one cell of a notebook."""

    kind: Literal["cell"] = "cell"
    path: str
    cell: str = ""
    """The cell's id. Empty: the first one."""
    source: str = ""
    mode: Literal["replace", "insert", "delete"] = "replace"
    cell_type: Literal["", "code", "markdown"] = ""
    """Empty: as it is."""


FileChange = Annotated[
    WriteFile | ReplaceText | PatchFile | DeleteFile | EditCell,
    Field(discriminator="kind"),
]


def paths_of(change: FileChange) -> tuple[str, ...]:
    """Return the paths that a change writes or deletes."""
    moved = change.move_to if isinstance(change, PatchFile) else None
    return (change.path,) if moved is None else (change.path, moved)


EditAction = Literal["creates", "changes", "deletes", "moves"]


class EditedFile(Value):
    """One file that an edit changes, as it is on this machine at this moment. No content: only digests of it."""

    action: EditAction
    path: str
    """Absolute, as the agent named it."""
    real: str
    """The same with links resolved: the file that changes."""
    before: str | None = None
    """The SHA-256 of the content now. None: there is no such file, or it was not read (see `unread`)."""
    after: str | None = None
    """The SHA-256 of the content that the edit makes. None: it is deleted, or not known (see `problem`)."""
    size: Count | None = None
    """Bytes now. None: there is no such file."""
    mode: Count | None = None
    """Permission bits now. None: there is no such file."""
    links: Count = 1
    """Names that the file has on its file system. With more than one, a change appears under the others as well."""
    added: Count = 0
    """Lines that the edit adds."""
    removed: Count = 0
    moved_from: str = ""
    """The real path that a moved file had. Empty: it is not moved."""
    inside: str = ""
    """The real path from the workspace on. Empty: it is outside the workspace, or may mean a file outside of it."""
    through_link: bool = False
    """True if the path leads through a symbolic link."""
    sensitive: str = ""
    """The kind of file, if it decides what runs later or who may approve. Empty: it does not."""
    runs_later: str = ""
    """The kind of file, if an ordinary command of the project runs its content, or agents follow it. Empty: neither."""
    hidden: str = ""
    """The first character in the new text that makes it look like another one. Empty: there is none."""
    secret: bool = False
    """True if its name is that of a file with secrets."""
    binary: bool = False
    """True if the content now, or then, is no text."""
    unread: str = ""
    """Why the content was not read, as a clause. Empty: it was, or there is no such file."""
    problem: str = ""
    """Why the new content is not known, as a clause: the text to replace is not there. Empty: it is known."""

    @property
    def steers_agents(self) -> bool:
        """True if agents of later sessions follow its content."""
        return self.runs_later == AGENT_INSTRUCTIONS

    @property
    def outside(self) -> bool:
        """True if the real path is outside the workspace, or may be."""
        return not self.inside


FileState = Literal["", "as_approved", "as_before", "differs"]
"""How a file on the disk compares with an edit that its agent was to make. Empty: it was not compared."""


class FileVersions(Value):
    """The content of an edited file before and after the edit, for people."""

    file: EditedFile
    old: str | None = None
    """None: there was no such file, or its content is not shown."""
    new: str | None = None
    """None: it is deleted, or its content is not shown."""
    not_shown: str = ""
    """Why the contents are not shown, as a clause. Empty: they are."""
    now: FileState = ""
    """How the file is now, if the edit was left to its agent."""


Unasked = Literal["nothing", "reading", "workspace"]
"""How much may run without anybody being asked, from the least on. `reading`: commands that only read. `workspace`:
edits of ordinary files there as well, and commands whose effects turn out to be ordinary changes of the workspace."""


class UnaskedLevel(Value):
    """How much a human lets run unasked, in one session or in all, instead of what the human's rules say."""

    level: Unasked
    until: float | None = None
    """Seconds since the epoch. None: it has no end of its own."""

    def holds(self, now: float) -> bool:
        """True if its time is not over."""
        return self.until is None or now < self.until

    @property
    def runs_work(self) -> bool:
        """True if commands that change only the workspace run unasked."""
        return self.level == "workspace"


class Argv(Value):
    """A program and its arguments; no shell ever sees them."""

    kind: Literal["argv"] = "argv"
    program: str
    """The program as asked: a name to look up in PATH, or a path."""
    args: tuple[str, ...] = ()

    def words(self) -> tuple[str, ...]:
        """The argv to execute."""
        return (self.program, *self.args)

    @property
    def text(self) -> str:
        """The words as a person would type them, quoted for a shell."""
        return shlex.join(self.words())


class Shell(Value):
    """A line of text that a shell interprets."""

    kind: Literal["shell"] = "shell"
    text: str
    shell: str = "bash"
    """The interpreter as asked: a name to look up in PATH, or a path."""
    login: bool = False
    """True if the shell reads the user's login files first."""

    def words(self) -> tuple[str, ...]:
        """The argv to execute; `--` keeps a text that starts with a dash from being read as an option.

        The command interpreter of Windows knows neither: its text follows `/c`.
        """
        if self.shell.lower().rpartition("\\")[2] in {"cmd", "cmd.exe"}:
            return (self.shell, "/c", self.text)
        # Without `--`, a text like `-x` would be an option of the shell.
        return (self.shell, "-lc" if self.login else "-c", "--", self.text)


class Function(Value):
    """A tool that whoever asked carries out in its own process, once that is approved. No executor ever starts it."""

    kind: Literal["function"] = "function"
    tool: str
    arguments: dict[str, Any]
    """As JSON."""
    about: Literal["", "web", "server", "subagent"] = ""
    """Kind of tool: it fetches from the web, belongs to an MCP server, or starts a sub-agent. Empty: another one."""
    targets: tuple[str, ...] = ()
    """The hosts that it fetches from, the server and its tool, or the name of the sub-agent."""

    def words(self) -> tuple[str, ...]:
        """The tool and its arguments, for people."""
        return (self.tool, json.dumps(self.arguments, ensure_ascii=False, sort_keys=True))

    def ordered(self) -> "Function":
        """The same call with its arguments in the order of their names, at every depth."""
        # json.dumps sorts at every depth; model_dump_json keeps the order in which the agent wrote them.
        arguments = json.loads(json.dumps(self.arguments, sort_keys=True))
        return self.model_copy(update={"arguments": arguments})

    @property
    def text(self) -> str:
        """The tool and its arguments on one line."""
        return " ".join(self.words())


class FileEdits(Value):
    """Changes of files that the agent's own edit tool makes, once they are approved. No executor ever makes them."""

    kind: Literal["edits"] = "edits"
    tool: str
    """The agent's name of the tool."""
    changes: tuple[FileChange, ...] = Field(min_length=1)
    """In their order: a later one finds what an earlier one has made."""
    takes_result: bool = True
    """True if the agent's program takes another result than the one that it asked for."""

    def words(self) -> tuple[str, ...]:
        """The tool and the files, for people."""
        return (self.tool, *dict.fromkeys(path for change in self.changes for path in paths_of(change)))

    @property
    def text(self) -> str:
        """The tool and the files on one line."""
        return " ".join(self.words())


Command = Annotated[Argv | Shell | Function | FileEdits, Field(discriminator="kind")]
CarriedOut = Function | FileEdits
"""Commands that whoever asked carries out itself."""

PLACE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
"""The names of places, where commands can run besides this machine."""

# What runs on this machine is written as it was before there were places: journals, digests of approvals, and lines
# for programs of the version before stay the same.
PlaceName = Annotated[str, Field(pattern=f"^({PLACE_NAME})?$", exclude_if=not_)]
"""The name of a place. Empty: this machine."""
HERE = "here"
"""Names this machine where a place is chosen: a call of a session whose commands run at a place can name it."""


class CommandSpec(Value):
    """Everything that decides what a run does, apart from the inherited environment."""

    command: Command
    cwd: str
    """Absolute working directory; at a place, a directory there."""
    place: PlaceName = ""
    """Where it runs: the name of a place. Empty: this machine."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables added to the session's own; part of what is approved."""
    tty: bool = False
    """True if the command gets a terminal instead of pipes."""
    accepts_input: bool = False
    """True if standard input stays open. False: it is /dev/null."""
    timeout_s: float | None = Field(default=None, gt=0)
    """Seconds from the start of the process until it is ended. None: no limit."""
    grace_s: float = Field(default=3.0, ge=0)
    """Seconds between TERM and KILL when the run is ended."""

    def identity(self) -> str:
        """A digest of what makes two runs the same to a person: limits of time do not count."""
        # A standing approval must also match when an agent gives the same command more time.
        same = self.model_copy(update={"timeout_s": None, "grace_s": 0.0})
        return digest(same.canonical())

    def canonical(self) -> str:
        """This specification as text that is equal exactly when the specification is."""
        same: dict[str, object] = {"environment": dict(sorted(self.environment.items()))}
        if isinstance(self.command, Function):
            same["command"] = self.command.ordered()
        return self.model_copy(update=same).model_dump_json()


def digest(text: str) -> str:
    """A short fingerprint of a text: 32 hexadecimal digits of its SHA-256."""
    # Agents can send lone surrogates, which strict UTF-8 refuses.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


LONGEST_NAME = 1000
"""Characters of what an agent calls itself, its program or its session."""

LONGEST_PATH = 4096
"""Characters of a directory; no system takes longer ones."""

LARGEST_PID = 2**31 - 1

Trust = Literal["trusted_operator", "trusted_system", "trusted_integration", "untrusted_external"]


class ClientInfo(Value):
    """The agent's program, by its own account."""

    name: str
    version: str = ""
    model: str = ""
    """The language model behind it, where it says so."""


class SessionHello(Value):
    """Request to open a session, sent by a transport when an agent connects."""

    name: str = Field(max_length=LONGEST_NAME)
    """Shown in the queue."""
    root: str = Field(max_length=LONGEST_PATH)
    """Absolute path of the workspace."""
    client: ClientInfo | None = None
    pid: int | None = Field(default=None, ge=0, le=LARGEST_PID)
    """Process id of the agent's side of the connection, where known."""
    trust: Trust = "untrusted_external"
    environment: dict[str, str] = Field(default_factory=dict)
    """Environment of the agent's commands. Kept in a private file, never in the journal (decision 2)."""
    resume: str | None = None
    """The id of a session that this connection continues, after a supervisor went away."""
    shell: str = Field(default="", max_length=LONGEST_PATH)
    """Absolute path of the agent's own shell. Empty: bash, or one in which no command is run."""
    key: str | None = Field(default=None, max_length=LONGEST_NAME)
    """The agent's own name of its session, where it connects anew for every call: the same key is the same session."""
    hears: bool = False
    """True if the agent reads what is said to it in its session."""
    ends_with_connection: bool = False
    """True if the session is closed with the connection that has opened it: nobody else could go on with it."""
    place: PlaceName = ""
    """The place where its commands run if they name none. Empty: this machine."""
    relayed: bool = Field(default=False, exclude_if=not_)
    """True if the agent itself is at its place: its workspace is there, and nothing of it runs elsewhere."""


class Session(Value):
    """One agent connection. Approval memory lives and dies with it."""

    id: str
    name: str
    root: str
    client: ClientInfo | None = None
    pid: int | None = None
    started: int | None = Field(default=None, exclude_if=not_)
    """When the process with this pid started, as the system counts: a pid alone is another program's some day.

    None: it is not known, as in sessions of earlier versions.
    """
    trust: Trust = "untrusted_external"
    key: str | None = None
    shell: str = ""
    """Its own shell, in which the commands run that a human has approved (decision 32). Empty: they run in bash."""
    hears: bool = False
    unasked: UnaskedLevel | None = Field(default=None, exclude_if=not_)
    """How much of it runs unasked. None: as in all sessions."""
    place: PlaceName = ""
    """The place where its commands run if they name none."""
    relayed: bool = Field(default=False, exclude_if=not_)
    """True if the agent itself is at its place: its workspace is there, and nothing of it runs elsewhere."""
    opened_at: float
    """Seconds since the epoch."""
    closed_at: float | None = None
    closed_because: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, said: object) -> object:
        """Sessions used to have a mode of edits, which was always the usual one when they were opened."""
        return {name: value for name, value in said.items() if name != "edits"} if isinstance(said, dict) else said

    @property
    def root_here(self) -> str:
        """The workspace on this machine. Empty: it is at a place."""
        return "" if self.relayed else self.root


NO_CHANGE, DENY_INSTEAD = "this agent's program takes no change of a call", "Deny it and say what to do instead"
"""The reason why a call can only be approved or denied, and what to do."""


class CallRequest(Value):
    """A tool call on its way in: validated arguments and the command that they mean."""

    # Journals and older clients write `twin` and `join_twin`, so these stay the names of the two fields on the wire.
    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    session_id: str
    tool: str
    arguments: dict[str, Any]
    """The arguments as the agent sent them."""
    spec: CommandSpec
    description: str = ""
    """The agent's own words about the command."""
    key: str | None = None
    """Makes submitting idempotent: the same key in the same session is the same call."""
    dedup_key: str | None = Field(default=None, alias="twin")
    """Deduplication key: calls of a session with the same one are the same to the agent. None: no deduplication."""
    join_open: bool = Field(default=False, alias="join_twin")
    """True if an open call with the same deduplication key replaces this one, so that nobody is asked twice."""
    rejoin: bool = False
    """True if a call with the same key whose agent stopped waiting for the answer replaces this one."""
    question: str | None = None
    """The client's own id of the call, with what it asks. A call with the same one that has not started yet takes the
    place of this one, so that two hooks of one call ask once. None: only `key` and `dedup_key` count."""
    asker: str = ""
    """Subagent that makes the call. Empty: the agent itself."""
    ticket: str | None = None
    """A secret that has to be shown before it starts, once it is approved. None: it starts by itself."""
    background: bool = False
    """True if its agent goes on at once and does not wait for its end."""
    follows: bool = False
    """True if the agent's own shell goes on where the command has ended."""
    by_agent: bool = False
    """True if the agent runs it itself once it is approved, out of the supervisor's sight."""
    takes_change: bool = True
    """False if the agent can only be told yes or no: an edited call would be carried out as it was asked."""
    past_hook: bool = False
    """True if it came to the agent's shell without an approval: it replaces what was approved, or no hook was asked.
    The call of the session that asked for the same, approved or waiting, takes its place."""


class ToolCall(CallRequest):
    """A tool call that the journal knows."""

    id: str
    """Short decimal number, unique in one state directory."""
    submitted_at: float
    """Seconds since the epoch."""


_OBJECT = 64
"""Bytes of the overhead of one Python object."""


def memory_weight(call: ToolCall) -> int:
    """Estimate the memory of a call in bytes; rather too high than too low."""
    spec = call.spec
    parts = (call.arguments, call.description, _words_of(spec.command), spec.environment, spec.cwd)
    return sum(map(_weight_of, parts))


def _words_of(command: Command) -> object:
    match command:
        case Argv(program=program, args=args):
            return (program, args)
        case Shell(text=text, shell=shell):
            return (text, shell)
        case FileEdits():
            return command.model_dump()["changes"]
        case _:
            return command.arguments


def _weight_of(value: object) -> int:
    match value:
        case str():
            # CPython needs up to four bytes per character as soon as one of them is wide.
            return _OBJECT + len(value) * (1 if value.isascii() else 4)
        case dict():
            return _OBJECT + sum(_weight_of(name) + _weight_of(part) for name, part in value.items())
        case list() | tuple():
            return _OBJECT + sum(map(_weight_of, value))
        case int():
            return _OBJECT + value.bit_length() // 8
        case _:
            return _OBJECT
