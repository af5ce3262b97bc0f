"""The changes that were found so far, each with the state before it and its diff; the view of the disk follows them."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from whisper_tui.effects.file_view import LARGEST_COMPARED, Deadline, FileView, Found
from whisper_tui.effects.text_walk import Step
from whisper_tui.model.changed_blocks import CONTEXT, Block, changed_blocks, lines_of
from whisper_tui.model.effects import (
    LONGEST_DIFF,
    MOST_ENTRIES,
    CodeEffect,
    FileAction,
    FileEffect,
    GitEffect,
    HostEffect,
    Removal,
    StepMark,
    TextDiff,
    UnknownEffect,
)
from whisper_tui.system import host_files, process_names

MOST_PATHS = 50
"""Paths that one removal names."""

LARGEST_DIFFS = 262_144
"""Characters of all diffs of a call together."""

NO_PARENT = "its directory exists by then"
CONTENT_UNKNOWN = "the content is only known when it runs"

MOST_LINES = 40_000
"""Lines of both texts together that are compared."""

MOST_COMPARISONS = 10_000
"""Comparisons of lines within a changed block; a larger one is shown as removed and added."""

MOST_CODE = 20
"""Pieces of code of one call."""
MORE_CODE = "more code that it may run"
"""The name of all that is left out."""


_MARKS: dict[str, StepMark] = {"files": "writes", "git": "writes", "hosts": "network"}
"""Things that may happen where they cannot be stated; `unknown` is anything else."""


class ReadScript(NamedTuple):
    """Shell code of a file whose commands are looked at, too."""

    step: Step
    """The command that runs it."""
    name: str
    text: str
    directory: str
    """The directory of its file."""
    language: str
    starts_there: bool = False
    """True if it runs in the directory of its file, not in that of the command."""
    runs: bool = True
    """False if it may not run, because what it makes is up to date."""


class ApprovedScript(NamedTuple):
    """A script as a human last approved it."""

    call_id: str
    digest: str
    text: str | None
    """None: it is too long to be kept, or binary."""


class Changes:
    """Collects effects, a bounded number of each kind."""

    def __init__(
        self, view: FileView, deadline: Deadline, approved: Callable[[str], ApprovedScript | None] | None = None
    ) -> None:
        """`approved`: finds a script as it was approved, by its path."""
        self._approved = approved
        self.view = view
        self.deadline = deadline
        self.files: list[FileEffect] = []
        self.removals: list[tuple[Removal, tuple[str, ...]]] = []
        """Each with the real paths of the files that it deletes, as far as they were kept."""
        self.git: list[GitEffect] = []
        self.hosts: list[HostEffect] = []
        self.code: list[CodeEffect] = []
        self.unknowns: list[UnknownEffect] = []
        self.scripts: list[ReadScript] = []
        """Shell code that was read and of which the commands were not looked at yet."""
        self.script = ""
        """The script whose commands are looked at. Empty: they are those of the call."""
        self.marks: set[StepMark] = set()
        """The effects of the command that is looked at, also where an entry of another one says so already."""
        self._diffs = 0

    def unknown(self, step: Step | None, about: str, reason: str) -> None:
        """Say that something cannot be stated, once."""
        self.marks.add(_MARKS.get(about, "unknown"))
        text = " ".join(printable(step.text if step else "").split())
        entry = UnknownEffect.model_validate(
            {"about": about, "command": text if len(text) <= 80 else text[:79] + "…", "reason": reason}
        )
        if entry not in self.unknowns and len(self.unknowns) < MOST_ENTRIES:
            self.unknowns.append(entry)

    def add_code(self, code: CodeEffect) -> None:
        """Record a piece of code, once."""
        self.marks.add("runs code")
        found = {each.id for each in code.risks}
        self.marks |= {"network"} if found & {"network", "sends-data"} else set()
        self.marks |= {"deletes"} if any(each.sentence.startswith("Deletes ") for each in code.risks) else set()
        code = code.model_copy(update={"script": self.script, **self._since_approval(code)})
        if code in self.code:
            return
        if len(self.code) < MOST_CODE:
            self.code.append(code)
        else:
            self.leave_out_code(f"it runs more than {MOST_CODE} scripts")

    def leave_out_code(self, why: str) -> None:
        """Say, once and as a clause, why more code may run than is recorded."""
        self.marks.add("runs code")
        if not self.code or self.code[-1].name != MORE_CODE:
            self.code.append(CodeEffect(name=MORE_CODE, not_inspected=why))

    def _since_approval(self, code: CodeEffect) -> dict[str, object]:
        """The approval of a file, and what has changed in it since."""
        found = self._approved(code.path) if self._approved is not None and code.path and code.digest else None
        if found is None:
            return {}
        facts: dict[str, object] = {"approved_in": found.call_id, "changed": found.digest != code.digest}
        if found.digest != code.digest and found.text is not None:
            now, _ = host_files.read_regular(host_files.realpath(code.path or ""), LARGEST_COMPARED)
            if now is not None:
                facts["since"] = diff_of(found.text.encode(), now, lambda: self.deadline.left < 0.05)[0]
        return facts

    def mark(self) -> tuple[int, ...]:
        """The number of entries of each kind so far."""
        return len(self.files), len(self.removals), len(self.git), len(self.hosts), len(self.unknowns)

    def said_by(self, script: str, mark: tuple[int, ...]) -> None:
        """Say of all entries behind a mark that a script brings them about."""
        files, removals, git, hosts, unknowns = mark
        said = {"script": script}
        self.files[files:] = [each.model_copy(update=said) for each in self.files[files:]]
        self.removals[removals:] = [(each.model_copy(update=said), names) for each, names in self.removals[removals:]]
        self.git[git:] = [each.model_copy(update=said) for each in self.git[git:]]
        self.hosts[hosts:] = [each.model_copy(update=said) for each in self.hosts[hosts:]]
        self.unknowns[unknowns:] = [each.model_copy(update=said) for each in self.unknowns[unknowns:]]

    def forget_repeated(self, mark: tuple[int, ...]) -> bool:
        """Forget all entries behind a mark. Returns True if one of them says what none before the mark does."""
        files, removals, git, hosts, unknowns = mark
        known = {each.path for each in self.files[:files]}
        known.update(path for each, _ in self.removals[:removals] for path in each.paths)
        filled = tuple(each.path.rstrip("/") + "/" for each in self.files[:files] if each.below)
        changed = [each.path for each in self.files[files:]]
        changed += (path for each, _ in self.removals[removals:] for path in each.paths)
        doubts = any(each not in self.unknowns[:unknowns] for each in self.unknowns[unknowns:])
        del self.files[files:], self.removals[removals:], self.git[git:], self.hosts[hosts:], self.unknowns[unknowns:]
        self.scripts.clear()
        return doubts or any(path not in known and not path.startswith(filled) for path in changed)

    def find(self, step: Step, path: str | None, *, follow: bool = True) -> Found | None:
        """Look at a path that a command names. None: it is not known, which is then recorded."""
        found = None if path is None else self.view.find(path, step.directory, follow=follow)
        if found is not None and found.is_link and found.as_directory:
            # A slash at the end makes some programs follow a link, and others fail.
            self.unknown(step, "files", f"programs take {path} for the link, or for what it leads to")
            found = self.view.find(f"{path}.", step.directory)
        if found is not None and found.of_process and not self._is_stream(step, found):
            self.unknown(step, "files", f"where {found.path} leads is only known to the command itself")
            return None
        if found is None:
            reason = "a path is only known when it runs"
            if path is not None and step.directory is None:
                reason = f"the directory of {path} is only known when it runs"
            self.unknown(step, "files", reason)
        return found

    @staticmethod
    def _is_stream(step: Step, found: Found) -> bool:
        """True if a name means an output of the command or its terminal, none of which is a file that it opened."""
        turned = any(each.operator in {"<&", ">&"} and each.target not in {"1", "2", "-"} for each in step.redirections)
        return found.real == "/dev/tty" or (process_names.is_output(found.real) and not turned)

    def write(
        self,
        step: Step,
        found: Found,
        content: bytes | None,
        *,
        why: str = CONTENT_UNKNOWN,
        action: FileAction = "writes",
        only_if: str = "",
        detail: str = "",
    ) -> None:
        """The file gets this content, or content that is not known, with the reason."""
        if found.kind == "directory" or found.as_directory or found.real == "/dev/null" or found.of_process:
            return
        diff, no_diff = None, why
        if content is not None:
            diff, no_diff = self._diff(found, content)
        only_if = only_if or self._needs_parent(found)
        self._add(found, action, only_if=only_if, detail=detail, diff=diff, no_diff=no_diff)
        if found.kind != "special":
            self.view.note(found.real, "file", content if not only_if else None)

    def append(
        self, step: Step, found: Found, content: bytes | None, *, why: str = CONTENT_UNKNOWN, only_if: str = ""
    ) -> None:
        """The file gets more content at its end."""
        old, reason = self.view.content(found)
        if content is None or old is None:
            reason = why if content is None else reason
            self.write(step, found, None, why=reason, action="appends to", only_if=only_if)
        else:
            self.write(step, found, old + content, action="appends to")

    def _diff(self, found: Found, content: bytes) -> tuple[TextDiff | None, str]:
        old, reason = self.view.content(found)
        if old is None:
            return None, reason
        if self._diffs > LARGEST_DIFFS:
            return None, "the other diffs of this command are already too large"
        diff, reason = diff_of(old, content, lambda: self.deadline.left < 0.05)
        self._diffs += len(diff.text) if diff is not None else 0
        return diff, reason

    def _needs_parent(self, found: Found) -> str:
        parent = os.path.dirname(found.real)
        return "" if self.view.is_directory(parent) else NO_PARENT

    def change(
        self,
        step: Step,
        found: Found,
        action: FileAction,
        *,
        only_if: str = "",
        detail: str = "",
        below: bool = False,
    ) -> None:
        """Something about a path changes other than its content."""
        self._add(found, action, only_if=only_if, detail=detail, below=below)

    def fill(
        self, step: Step, found: Found, *, detail: str = "", only_if: str = "", may_lead_out: bool, links: bool = True
    ) -> None:
        """Files below a directory are made or replaced, of which the names are not known.

        `may_lead_out`: one of them may be written through a link that is there; `links`: some of them may be links.
        """
        if may_lead_out:
            self.unknown(step, "files", f"a link below {found.path} may lead what is written there to another place")
        self._add(found, "fills", only_if=only_if, detail=detail, below=True)
        self.view.note_unsure(found.real, links=links)

    def make_directory(self, step: Step, found: Found, *, only_if: str = "") -> None:
        """A directory that does not exist is made."""
        self._add(found, "makes directory", only_if=only_if or self._needs_parent(found))
        self.view.note(found.real, "directory")

    def move(self, step: Step, found: Found, target: Found, *, only_if: str = "") -> None:
        """A file or a tree gets another name."""
        content = self.view.content(found)[0] if found.kind == "file" else None
        self._add(found, "moves", only_if=only_if, detail=target.path, below=found.kind == "directory")
        if found.kind == "directory":
            self._add(target, "fills", only_if=only_if, detail="all that is moved", below=True)
            self.view.note(found.real, "absent")
            self.view.note_unsure(target.real)
            return
        self.write(step, target, content, why="the moved file is not text or is too large", only_if=only_if)
        if found.is_link:
            self.view.note_link(target.real)
        if found.real != target.real:
            self.view.note(found.real, "absent")

    def remove(self, step: Step, targets: Sequence[Found]) -> None:
        """Files and trees are deleted."""
        present = [each for each in targets if each.kind != "absent"]
        missing = [printable(each.path) for each in targets if each.kind == "absent"]
        if not targets:
            return
        self.marks.add("deletes")
        files = size = 0
        complete = True
        names: list[str] = []
        for each in present:
            if each.made and each.kind == "file":
                files, size = files + 1, size + (each.size or 0)
                names.append(each.real)
                continue
            tree = self.view.tree(each.real)
            files, size, complete = files + tree.files, size + tree.bytes, complete and tree.complete
            names += tree.names
        removal = Removal(
            paths=tuple(printable(each.real) for each in present[:MOST_PATHS]),
            files=files,
            bytes=size,
            complete=complete and not self.deadline.was_missed,
            outside=any(self.view.is_outside(each.real) for each in present),
            missing=tuple(missing[:MOST_PATHS]),
        )
        if len(present) > MOST_PATHS:
            self.unknown(step, "files", f"{len(present) - MOST_PATHS:,} more paths are deleted")
        if len(self.removals) < MOST_ENTRIES:
            self.removals.append((removal, tuple(names)))
        for each in present:
            self.view.note(each.real, "absent")

    def _add(
        self,
        found: Found,
        action: FileAction,
        *,
        only_if: str = "",
        detail: str = "",
        diff: TextDiff | None = None,
        no_diff: str = "",
        below: bool = False,
    ) -> None:
        self.marks.add("deletes" if action == "removes directory" else "writes")
        if len(self.files) >= MOST_ENTRIES:
            self.unknown(None, "files", f"more than {MOST_ENTRIES} files are changed")
            return
        self.files.append(
            FileEffect(
                action=action,
                path=printable(found.path),
                real=printable(found.real),
                before=found.kind,
                size=found.size,
                outside=self.view.is_outside(found.real),
                through_link=found.through_link,
                only_if=only_if,
                diff=diff,
                no_diff=no_diff,
                detail=printable(detail),
                below=below,
            )
        )


def printable(text: str) -> str:
    """A name from the disk or an agent as text that can be sent: bytes that are no UTF-8 are shown as escapes."""
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "surrogatepass")
    return raw.decode("utf-8", "backslashreplace")


def diff_of(old: bytes, new: bytes, is_late: Callable[[], bool]) -> tuple[TextDiff | None, str]:
    """Compare two contents. Returns None and the reason, as a clause, where there is nothing to show as text.

    `is_late`: True once there is no time to match similar blocks line by line; then they are shown whole.
    """
    if b"\0" in old or b"\0" in new:
        return None, "the content is binary"
    try:
        before, after = lines_of(old.decode()), lines_of(new.decode())
    except UnicodeDecodeError:
        return None, "the content is not UTF-8 text"
    if len(before) + len(after) > MOST_LINES:
        return None, f"the texts have more than {MOST_LINES:,} lines"
    blocks = changed_blocks(before, after, most=MOST_COMPARISONS, is_late=is_late)
    added = sum(high - low for _, _, low, high in blocks)
    removed = sum(high - low for low, high, _, _ in blocks)
    text, cut = _text(blocks, before, after)
    return TextDiff(text=text, added=added, removed=removed, cut=cut), ""


def _text(blocks: Iterable[Block], before: Sequence[str], after: Sequence[str]) -> tuple[str, bool]:
    """The unified diff, cut to its longest length, and whether it was cut."""
    parts: list[str] = []
    length = 0
    for group in _groups(blocks):
        lead, tail = min(CONTEXT, group[0][0]), min(CONTEXT, len(before) - group[-1][1])
        at, end = group[0][0] - lead, group[-1][1] + tail
        lines = [f"@@ -{_range(at, end)} +{_range(group[0][2] - lead, group[-1][3] + tail)} @@\n"]
        for low, high, new_low, new_high in group:
            lines += [" " + line for line in before[at:low]]
            lines += ["-" + line for line in before[low:high]]
            lines += ["+" + line for line in after[new_low:new_high]]
            at = high
        lines += [" " + line for line in before[at:end]]
        for line in lines:
            whole = line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
            length += len(whole)
            if length > LONGEST_DIFF:
                return "".join(parts), True
            parts.append(whole)
    return "".join(parts), False


def _groups(blocks: Iterable[Block]) -> list[list[Block]]:
    """Changes that are near to each other: the unchanged lines around them meet."""
    groups: list[list[Block]] = []
    for block in blocks:
        if groups and block[0] - groups[-1][-1][1] <= 2 * CONTEXT:
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start if length == 0 else start + 1},{length}"
