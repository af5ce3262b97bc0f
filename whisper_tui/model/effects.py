"""Effects: the changes that a command would make, as far as they can be stated without running it (decision 30)."""

from typing import Annotated, Literal

from pydantic import Field

from whisper_tui.model.value import Count, Value
from whisper_tui.model.verdict import Risk

MOST_ENTRIES = 200
"""Entries of one kind; what is beyond is counted in an unknown effect."""

LONGEST_DIFF = 32_768
"""Characters of one diff."""

LONGEST_CODE = 32_768
"""Characters of the text of one script."""

FileAction = Literal[
    "writes", "appends to", "edits", "fills", "moves", "makes directory", "removes directory", "links", "touches",
    "changes mode of", "changes owner of",
]  # fmt: skip
"""`fills`: files below that directory are made or replaced, of which the names are not known."""

FileKind = Literal["absent", "file", "directory", "special", "unknown"]


class TextDiff(Value):
    """The difference that a write makes to the content of a file."""

    text: Annotated[str, Field(max_length=LONGEST_DIFF)]
    """A unified diff without its two header lines; empty if nothing changes."""
    added: Count
    """Lines that are added, also where the text of the diff is cut."""
    removed: Count
    cut: bool = False
    """True if the diff is longer than its text."""


class FileEffect(Value):
    """One file or directory that would be changed."""

    action: FileAction
    path: str
    """Absolute, as the command names it."""
    real: str
    """The same with links resolved: the file that changes."""
    before: FileKind = "unknown"
    """The kind of the file now, or at that point of the command."""
    size: Count | None = None
    """Bytes now. None: it is no file, or not known."""
    outside: bool = False
    """True if the real path is outside the workspace."""
    through_link: bool = False
    """True if the path leads through a symbolic link."""
    only_if: str = ""
    """The condition on which it happens, as a clause. Empty: if the command succeeds."""
    diff: TextDiff | None = None
    """None: the new content is not known, see `no_diff`."""
    no_diff: str = ""
    """Why there is no diff although content changes, as a clause."""
    detail: str = ""
    """More about it: the new mode or owner, the target of a link."""
    below: bool = False
    """True if files below it may change as well, without being listed."""
    script: str = ""
    """The script that brings it about. Empty: the command itself does."""


class Removal(Value):
    """Files that would be deleted together."""

    paths: tuple[str, ...]
    """The real paths of the files and trees, as far as they are named."""
    files: Count
    """Files and links below these paths."""
    bytes: Count
    complete: bool = True
    """False if there are more files than could be counted in time."""
    outside: bool = False
    """True if a path is outside the workspace."""
    restorable: Count | None = None
    """Files that git has unmodified. None: git was not asked."""
    modified: Count | None = None
    """Files that git has in another version."""
    untracked: Count | None = None
    """Files that git does not have."""
    ignored: Count | None = None
    """Files that git was told to ignore."""
    no_git: str = ""
    """Why git was not asked, as a clause."""
    missing: tuple[str, ...] = ()
    """Paths that are named and do not exist, so that nothing is deleted there."""
    script: str = ""
    """The script that brings it about. Empty: the command itself does."""


class DroppedCommit(Value):
    """A commit that no branch would hold any longer."""

    id: str
    """Abbreviated."""
    subject: str


class LostText(Value):
    """Lines that would be lost with a file, or with a stash."""

    path: str
    diff: TextDiff
    """From the text that is there to what is left of it."""


class GitEffect(Value):
    """One git command that changes a repository."""

    subcommand: str
    """With the option that makes it what it is: `reset --hard`, `branch -D`, `stash pop`."""
    repository: str | None = None
    """The work tree. None: no repository was found, or it may not be asked."""
    branch: str | None = None
    """The current branch. None: detached, or not known."""
    changed: Count | None = None
    """Files with uncommitted changes. None: not known."""
    remote: str | None = None
    """The remote that it talks to."""
    host: str | None = None
    """The host of that remote. None: none, or it is a directory of this machine."""
    target: str | None = None
    """The branch, tag or revision that it is about."""
    commits: Count | None = None
    """Commits that a push would add, as of the last fetch. None: not known."""
    drops: tuple[DroppedCommit, ...] = ()
    """Commits that it would drop or rewrite, newest first."""
    more_drops: Count = 0
    """Those that are not listed."""
    loses: tuple[LostText, ...] = ()
    """Text that no file and no commit would hold any longer, as far as it is listed; edits of files have their own."""
    unknown: str = ""
    """The question that git could not be asked, or did not answer, as a clause."""
    script: str = ""
    """The script that brings it about. Empty: the command itself does."""


class HostEffect(Value):
    """A machine that a command would talk to."""

    host: str
    """Name or address. Empty: it is only known when it runs."""
    program: str
    elsewhere: bool = True
    """False if it is this machine."""
    source: str = ""
    """Where the name comes from: the configuration file, context or variable. Empty: it is in the command."""
    script: str = ""
    """The script that brings it about. Empty: the command itself does."""


class CodeRisk(Risk):
    """A risk of code that is not part of the command."""

    line: Count | None = None
    """The line of the file, from 1. None: it is about all of the code."""

    def sentence_about(self, code: str) -> str:
        """Return its sentence as a risk of the call that runs this code, by its name."""
        return f"{code}{f' line {self.line}' if self.line else ''}: {self.sentence}"


class CodeEffect(Value):
    """Code that would run and that is not part of the command."""

    name: str
    """As a person would call it: `./deploy.sh`, `npm run build`, `make test`."""
    path: str | None = None
    """The file that holds it. None: it was not found."""
    size: Count | None = None
    digest: str | None = None
    """First digits of the SHA-256 of the file."""
    text: Annotated[str, Field(max_length=LONGEST_CODE)] = ""
    cut: bool = False
    """True if the code is longer than its text."""
    inspected: bool = False
    """True if its commands were read and `risks` holds what was found."""
    not_inspected: str = ""
    """Why it was not inspected, as a clause."""
    risks: tuple[CodeRisk, ...] = ()
    approved_in: str | None = None
    """The call with which a human last approved its file. None: none is known."""
    changed: bool = False
    """True if the file has changed since."""
    since: TextDiff | None = None
    """The difference since then. None: there is none, or the text of then or of now is not known."""
    script: str = ""
    """The script that runs it. Empty: the command does."""


class UnknownEffect(Value):
    """Something that cannot be stated before the command runs."""

    about: Literal["files", "hosts", "git", "processes", "everything"]
    command: str
    """The beginning of the command that it is about."""
    reason: str
    script: str = ""
    """The script that brings it about. Empty: the command itself does."""


StepMark = Literal["deletes", "writes", "network", "runs code", "unknown", "reads"]
"""`reads`: it certainly does nothing else. `unknown`: it may do anything."""


class StepEffect(Value):
    """One command of a chain, with all that it runs in turn."""

    start: Count
    """Its first character in the shell text."""
    end: Count
    marks: tuple[StepMark, ...] = ()


class Effects(Value):
    """All that can be stated about the changes of one call; what cannot is an entry, too. Nothing runs for it."""

    directory: str
    """The working directory, links resolved."""
    files: tuple[FileEffect, ...] = ()
    removals: tuple[Removal, ...] = ()
    git: tuple[GitEffect, ...] = ()
    hosts: tuple[HostEffect, ...] = ()
    code: tuple[CodeEffect, ...] = ()
    secret_variables: tuple[str, ...] = ()
    """Names of variables with secrets in the environment of the command."""
    secret_files: tuple[str, ...] = ()
    """Files with secrets that the command names."""
    named_secrets: tuple[str, ...] = ()
    """Variables with secrets that the command names."""
    shown_secrets: tuple[str, ...] = ()
    """Files and variables with secrets that its output may show to the model."""
    unknown: tuple[UnknownEffect, ...] = ()
    steps: tuple[StepEffect, ...] = ()
    """The commands between the operators of a shell text, in their order. Empty: it was not read to its end."""
    complete: bool = True
    """False if the time was over before everything had been looked at."""

    @property
    def files_are_certain(self) -> bool:
        """True if no files can change but those that are stated."""
        unsure = any(each.about in {"files", "everything"} for each in self.unknown)
        return self.complete and not unsure and not self.code
