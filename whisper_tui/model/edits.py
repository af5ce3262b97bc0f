"""Edits of files: the changes that an agent's edit tool asks for, and each file with what they make of it."""

from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.value import Count, Value

LARGEST_EDITED = 4 << 20
"""Bytes of a file, or of its new content, beyond which neither content nor difference is looked at."""


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
    """The kind of file, if its content is run by an ordinary command of the project. Empty: it is not."""
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


EditMode = Literal["rules", "ask", "allow"]
"""How the edits of a session are judged: by the rules, each asked, or those allowed that the rules would only ask."""
