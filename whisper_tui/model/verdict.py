"""What the policy says about a call, and what the system would really start."""

from typing import Literal

from pydantic import Field

from whisper_tui.model.sandbox import Sandbox
from whisper_tui.model.value import Value


class Risk(Value):
    """One thing a human should notice before deciding."""

    id: str
    """Stable, documented, lower-case with dashes."""
    sentence: str
    """Plain words for the approver."""
    span: tuple[int, int] | None = None
    """Characters of the shell text or joined argv that it is about; end exclusive."""


GRAVE = frozenset(
    {
        "control-characters", "deceptive-characters", "look-alikes", "hidden-tail", "soothing-words",
        "silent-description", "destructive", "empty-variable", "ends-processes", "privilege", "sends-data",
        "secret-in-arguments", "reads-secrets", "sensitive-write", "keystroke-injection",
        "unseen-script",
    }
)  # fmt: skip
"""Risks of what cannot be taken back, or of being led astray."""


def is_grave(risk: Risk) -> bool:
    """Whether a person should stop and read."""
    return risk.id in GRAVE


class Verdict(Value):
    """The policy's answer. Deny beats ask, ask beats allow."""

    kind: Literal["allow", "ask", "refuse"]
    reason: str
    """Why, in one sentence."""
    rule: str | None = None
    """The rule that decided, where one did."""
    grant_id: str | None = None
    """The remembered approval that allowed it, where one did."""
    sandbox: Sandbox | None = None
    """How it runs if nobody but this verdict allows it. None: unconfined."""
    risks: tuple[Risk, ...] = ()
    prefixes: tuple[tuple[str, ...], ...] = ()
    """Beginnings that may be remembered, one for each command of the call. Empty: only exactly as it is."""


class Redirect(Value):
    """One redirection of a command: what it opens in the place of one of its streams."""

    operator: str
    """As it is written, with the number of the descriptor where there is one: `>`, `2>>`."""
    target: str | None
    """The file, the descriptor, or the end mark of a here-document. None: only known when it runs."""
    access: Literal["none", "read", "null", "write", "net"]
    """What is opened: nothing, a file, the null device, or a connection."""


class Meaning(Value):
    """One command that would run, as far as it is known before it does."""

    words: tuple[str | None, ...]
    """Its words after expansion. None: only known when it runs. Empty: it only redirects or sets variables."""
    assignments: dict[str, str | None] = Field(default_factory=dict)
    """Variables that are set for it, or by it where it has no words. None: the value is only known when it runs."""
    redirects: tuple[Redirect, ...] = ()
    """Its redirections, in their order."""
    risks: tuple[str, ...] = ()
    """Ids of the risks of this command, each once."""
    missing: bool = False
    """Whether its program was looked for and not found."""
    wraps: bool = False
    """Whether it is only there to run the command after it."""
    program: str | None = None
    """Absolute path of its program. None: not found, built into the shell, or not known."""
    through: tuple[str, ...] = ()
    """The wrappers around it, outermost first."""
    expanded: tuple[str, ...] = ()
    """What was expanded, like `*.py: 12 files`, for people."""
    background: bool = False
    """Whether nobody waits for it."""
    unknown: str | None = None
    """Why it cannot be said what it runs in turn. None: it can."""


PlaceKind = Literal["file", "directory", "other", "process", "own", "above-own"]


class Place(Value):
    """Something that a word of a command names, where that is not what the word says by itself."""

    command: int
    """Which of the commands that would run it belongs to, counted from 0."""
    path: str
    """Its real path, links followed."""
    kind: PlaceKind
    """`other`: no file and no directory. `process`: it tells about a process. `own`: it is whisper_tui's own."""


class Repository(Value):
    """The git repository that a command is about, in absolute paths."""

    work_tree: str
    git_dir: str
    common_dir: str
    """Where its configuration and objects are: elsewhere than `git_dir` for a linked work tree."""
    modules: bool = False
    """Whether other repositories are, or could be, part of it; git reads their configuration, too."""


class Resolved(Value):
    """What the words of a command mean on this machine at this moment."""

    program: str | None = None
    """Absolute path of the program that would start. None: not found."""
    cwd: str | None = None
    """The working directory with links resolved. None: it does not exist."""
    problem: str | None = None
    """What would keep it from starting, in one sentence."""
    git_is_neutral: bool = False
    """Whether git's configuration here is known to run nothing by itself. False: it may, or nobody has looked."""
    repository: Repository | None = None
    """The repository around the working directory. None: there is none, or it is not known well enough."""
    places: tuple[Place, ...] = ()
    """Where words of a text lead that lead elsewhere than they say."""
    helpers: tuple[str, ...] = ()
    """Programs that those of the command would start in turn, as they are found in PATH."""
    shell: str | None = None
    """What reads a shell's text, links followed: `bash`, `dash`. None: no shell does, or nobody has looked."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Values of the variables that the text uses, as far as they are known and no secret."""
    commands: tuple[Meaning, ...] = ()
    """What will really run, each command with its words expanded as far as that is known."""
    more: int = 0
    """Commands that are left out of `commands`. None of them has a risk."""
    unread: str | None = None
    """Why there may be commands that nobody has read. None: the call was read to its end."""
    files: dict[str, str] = Field(default_factory=dict)
    """What is behind the paths of its programs and scripts, so that another file in the place of one shows."""
    sensitive: dict[str, str] = Field(default_factory=dict)
    """Files that it may write and that decide what runs later, or who may decide, by path: what each of them is."""
    contents: dict[str, str] = Field(default_factory=dict)
    """What its scripts hold, by path, as digests: a file can change without showing it."""
