"""Previews: what a command changed in a copy-on-write view of the files, before anybody let it run."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.call import CommandSpec, FileVersions
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Ending
from whisper_tui.model.run import OutputSizes
from whisper_tui.model.value import Count, Value

MOST_LISTED = 50
"""Attempts, or processes, that a report lists; what is beyond is counted."""
MOST_UNDONE = 10_000
"""Calls, or paths, that one undo names."""

ChangeAction = Literal["creates", "changes", "replaces", "deletes", "attributes", "links"]
"""`changes`: the content, in place. `replaces`: another file takes the name. `links`: a file gets a further name.

`attributes`: its mode, owner, extended attributes or times.
"""

ChangedKind = Literal["file", "directory", "link", "special"]


PreviewWay = Literal["overlay", "bubblewrap", "copy", "read-only"]
"""How a command is previewed, from the most exact way to the last (decision 16)."""

PreviewSetting = Literal["auto", "overlay", "bubblewrap", "copy", "read-only", "none"]
"""The way that a user wants. `auto`: the most exact one that works."""

EXACT_WAYS: tuple[PreviewWay, ...] = ("overlay", "bubblewrap")
"""Those in which a command finds all of its files under their own names, and may write to them."""

WAY_NAMES: Mapping[PreviewWay, str] = {
    "overlay": "namespaces and overlayfs",
    "bubblewrap": "bubblewrap",
    "copy": "a copy of the workspace, in the sandbox",
    "read-only": "a read-only run in the sandbox",
}


NOT_POSSIBLE = "not possible"
"""The beginning of the words about a machine on which nothing can be previewed."""


class PreviewSupport(Value):
    """The ways in which commands can be previewed on a machine."""

    ways: tuple[PreviewWay, ...] = ()
    """Those that work, the most exact first. None: commands cannot be previewed."""
    refused: tuple[tuple[PreviewWay, str], ...] = ()
    """Those that do not work, each with the reason as a clause."""
    problem: str = ""
    """Why none works, as a clause, if that is about none of them."""
    memory: bool = False
    """True if changes on overlays are held in memory: the disk of the recorded output cannot hold them."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the better ways, or all of them, do not work, each as a clause that names the way."""
        said = tuple(f"{WAY_NAMES[way]}: {reason}" for way, reason in self.refused)
        return (self.problem, *said) if self.problem else said

    @property
    def words(self) -> str:
        """How commands are previewed, as a clause."""
        if not self.ways:
            return f"{NOT_POSSIBLE} ({'; '.join(self.reasons)})"
        better = [reason for reason in self.reasons if not reason.startswith(f"{WAY_NAMES['read-only']}:")]
        because = f" ({'; '.join(better)})" if better and self.ways[0] not in EXACT_WAYS[:1] else ""
        in_memory = ", with the changes in memory" if self.memory else ""
        return f"with {WAY_NAMES[self.ways[0]]}{in_memory}{because}"


class PreviewChange(Value):
    """One change that a preview found. A tree that is created or deleted as a whole is one change."""

    number: Count
    """Its place in the list, from 0."""
    action: ChangeAction
    path: str
    """Absolute, links resolved."""
    kind: ChangedKind
    """The kind afterwards; of what is deleted, the kind before."""
    size_before: Count | None = None
    """Bytes. None: there was no such file."""
    size_after: Count | None = None
    mode_before: Count | None = None
    """Permission bits."""
    mode_after: Count | None = None
    below: Count = 0
    """Entries of a tree that is created or deleted with it."""
    outside: bool = False
    """True if it is outside the workspace."""
    moved_from: str = ""
    """Of a created file or directory: the path that it had before. Empty: it is new."""
    moved_to: str = ""
    """Of a deleted file or directory: the path that it has now. Empty: it is gone."""
    alike: Count | None = None
    """Of what was renamed: the percentage of its content that stayed. None: it was not renamed."""
    flags: tuple[str, ...] = ()
    """Special properties, as clauses: it runs later, it is executable, it has several names."""
    taken_back: bool = False
    """True if it was made real, and undone since."""


class ChangeCounts(Value):
    """The changes of a preview, counted; the entries of whole trees are included."""

    created: Count = 0
    changed: Count = 0
    deleted: Count = 0
    renamed: Count = 0
    """Those with another name than before, which are neither created nor deleted."""
    attributes: Count = 0
    outside: Count = 0
    """Those of all kinds that are outside the workspace."""
    flagged: Count = 0
    """Those that are special: see `PreviewChange.flags`."""

    @property
    def all(self) -> int:
        """All of them."""
        return self.created + self.changed + self.deleted + self.renamed + self.attributes


class ChangedFiles(Value):
    """The changes of a run that has ended, in short, as `git diff --stat` would tell them."""

    counts: ChangeCounts = ChangeCounts()
    added: Count | None = None
    """Lines of text that were added. None: they were not counted, because there are too many, or not all are text."""
    removed: Count | None = None
    paths: tuple[str, ...] = ()
    """Absolute paths of the first files, as examples."""


class BlockedAccess(Value):
    """Something outside of its view that a command tried to reach."""

    what: Literal["network", "socket", "device", "write", "change", "reach"]
    """`write`: it would have written a file; `change`: its mode, owner or times; `reach`: it would have used it."""
    target: str
    """`host:port`, or a path. Empty: it is not known."""
    times: Count = 1


class PreviewReport(Value):
    """The outcome of a preview."""

    ending: Ending
    output: OutputSizes = OutputSizes()
    seconds: Annotated[float, Field(ge=0)] = 0.0
    digest: str = ""
    """The SHA-256 of all changes, to which an approval refers. Empty: there is nothing that could be applied."""
    counts: ChangeCounts = ChangeCounts()
    blocked: tuple[BlockedAccess, ...] = ()
    more_blocked: Count = 0
    """Those that are not listed."""
    left: tuple[str, ...] = ()
    """The command lines of processes that it left behind; they were ended with the preview."""
    stopped: Literal["", "time", "space", "network"] = ""
    """Why it was ended early: its time or its space was used up, or it waited for a refused connection."""
    problem: str = ""
    """Why its changes cannot be applied, as a clause. Empty: they can."""
    is_possible: bool = True
    """False: nothing can be previewed on this machine, as it is set up, so that another try would end the same way."""
    way: PreviewWay = "overlay"
    """How it was previewed."""
    instead: tuple[tuple[PreviewWay, str], ...] = ()
    """The better ways that did not work, each with the reason as a clause."""
    beyond_rule: tuple[str, ...] = ()
    """Of a command whose rule allows it by its effects: what goes beyond that rule, as clauses, so that a human
    decides. Empty: nothing does, or there is no such rule."""


class Preview(Value):
    """The newest preview of a call."""

    attempt: int
    """The attempt that was the preview: its output is found under that number."""
    by: Decider
    started_at: float
    """Seconds since the epoch."""
    edited: CommandSpec | None = None
    """The command that ran in the place of the requested one. None: the requested one did."""
    report: PreviewReport | None = None
    """None: it is running."""
    dropped: bool = False
    """True if its changes were discarded."""

    @property
    def can_be_applied(self) -> bool:
        """True if its changes are there to be made real."""
        return self.report is not None and bool(self.report.digest) and not self.report.problem and not self.dropped


class PreviewPage(Value):
    """A part of the changes of a preview, or of what an undo would undo."""

    changes: tuple[PreviewChange, ...] = ()
    total: Count = 0
    counts: ChangeCounts = ChangeCounts()
    conflicts: tuple[str, ...] = ()
    """Paths that are no longer as the command read them, or as it left them: nothing is applied, or undone, while
    it is about any of them."""


KeepsChanges = Literal["", "view", "copies"]
"""How the changes of a run are kept. `view`: they become real when it ends. `copies`: by pre-images of its files."""

UndoDirection = Literal["undo", "redo"]


class UndoOrder(Value):
    """An undo, or a redo, of several calls, as it is asked for."""

    call_ids: Annotated[tuple[str, ...], Field(max_length=MOST_UNDONE)]
    direction: UndoDirection
    paths: Annotated[tuple[str, ...], Field(max_length=MOST_UNDONE)] = ()
    """Only these, absolute, and what is below them. Empty: all that the calls have changed."""
    tell: bool = True
    """The agents are told."""
    dry_run: bool = False
    """Only say what would be done, and to which files."""
    with_versions: bool = False
    """A dry run returns the contents of these files as well."""


class UndoneFile(Value):
    """A file that an undo, or a redo, of several calls changes, from how it is now to how it will be."""

    path: str
    action: ChangeAction
    kind: ChangedKind
    calls: tuple[str, ...]
    """The calls whose changes of it are undone, or redone, in this order."""
    added: Count | None = None
    """Lines that it gets. None: they were not counted."""
    removed: Count | None = None
    versions: FileVersions | None = None
    """Its content, if that was asked for."""


class LeftOut(Value):
    """A call, or some of its changes, that an undo or a redo of several calls leaves as they are."""

    call_id: str
    paths: tuple[str, ...] = ()
    """The changes of the call that stay. None: all of it."""
    why: str
    """As a clause."""


class CallsUndone(Value):
    """The result of an undo, or a redo, of several calls, or its forecast."""

    calls: tuple[str, ...] = ()
    """The calls, in the order in which they are undone, or redone."""
    files: tuple[UndoneFile, ...] = ()
    """The first files that change, before it is done."""
    total: Count = 0
    left_out: tuple[LeftOut, ...] = ()


class Undo(Value):
    """An undo, or a redo, of the changes of a call."""

    direction: UndoDirection
    by: Decider
    at: float
    """Seconds since the epoch."""
    paths: tuple[str, ...] = ()
    """The paths that were asked for. Empty: all of them."""
    done: bool = False
    problem: str = ""
    """Why nothing was undone, as a clause. Empty: it was, or it is going on."""
