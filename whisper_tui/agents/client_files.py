"""Installations: requests, the content that files of clients should have, the difference from it, and atomic writes."""

import difflib
import os
import re
import shlex
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from whisper_tui.agents.documents import JsonDocument, JsonProblem, TomlDocument
from whisper_tui.agents.file_entries import Document, FileEntry, WrongShape
from whisper_tui.model.errors import BadConfiguration, Refused
from whisper_tui.model.text import visible

BACKUP = ".whisper-tui-backup"
"""The suffix of a backup's name. The backup is in the same directory as the file."""

Opener = Callable[[str], Document]
JSON: Opener = partial(JsonDocument, comments=False)
JSON_WITH_COMMENTS: Opener = partial(JsonDocument, comments=True)
TOML: Opener = TomlDocument


@dataclass(frozen=True)
class Shared:
    """A file of the client with some entries of whisper_tui. Entries in `unwanted` are removed."""

    path: Path
    opener: Opener
    wanted: tuple[FileEntry, ...] = ()
    unwanted: tuple[FileEntry, ...] = ()
    blank: str = ""
    """The initial text of a file that does not exist."""

    @classmethod
    def of(cls, path: Path, opener: Opener, entries: Iterable[tuple[FileEntry, bool]], blank: str = "") -> "Shared":
        """Return a file with entries of which each is wanted or not."""
        chosen: dict[bool, list[FileEntry]] = {True: [], False: []}
        for entry, wanted in entries:
            chosen[wanted].append(entry)
        return cls(path, opener, tuple(chosen[True]), tuple(chosen[False]), blank)


@dataclass(frozen=True)
class Own:
    """A file that only whisper_tui writes, recognized by its first line, `mark`. `text` None: remove the file."""

    path: Path
    mark: str
    text: str | None
    program: bool = False
    """True if the client starts the file."""


ClientFile = Shared | Own


@dataclass(frozen=True)
class Change:
    """The change of one file. `before` or `after` None: the file does not exist then."""

    path: Path
    before: str | None
    after: str | None
    backup: str | None = None
    """The text of the backup. None: keep an earlier backup."""
    drops_backup: bool = False
    program: bool = False
    """True if the file is one that is started."""


def backup_of(path: Path) -> Path:
    """Return the path of a file's backup."""
    return path.with_name(path.name + BACKUP)


def read_file(path: Path) -> str | None:
    """Read a file with its line endings. None: there is no such file. Raises `BadConfiguration`."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadConfiguration(f"{path} is not UTF-8 text", hint="Nothing was changed. Correct it first") from error
    except OSError as error:
        raise BadConfiguration(
            f"{path} cannot be read: {error.strerror}", hint="Nothing was changed. Check its permissions"
        ) from error


def opened(path: Path, opener: Opener, text: str) -> Document:
    """Parse a text. Raises `BadConfiguration` with the file and the line if it is not valid."""
    try:
        document = opener(text)
    except JsonProblem as error:
        raise _broken(path, f"line {error.line}", f"is not valid JSON: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise _broken(path, "", f"is not valid TOML: {error}") from error
    if not isinstance(document.plain(), dict):
        raise _broken(path, "line 1", "does not hold an object")
    return document


def plain_of(path: Path, opener: Opener) -> Any:
    """Return the content of a file; `{}` if there is no such file. Raises `BadConfiguration`."""
    text = read_file(path)
    return {} if text is None else opened(path, opener, text).plain()


def shape_error(path: Path, error: WrongShape) -> BadConfiguration:
    """Return an error that names the file."""
    return BadConfiguration(f"{path}: {error}", hint="Nothing was changed. Correct it first")


def changes(files: Iterable[ClientFile]) -> list[Change]:
    """Return the changes that bring the files to the wanted content. Raises `WhisperError`; writes nothing."""
    found = [_own(file) if isinstance(file, Own) else _shared(file) for file in files]
    return [change for change in found if change is not None]


def _own(file: Own) -> Change | None:
    before = read_file(file.path)
    # A file of the same name without our first line belongs to somebody else. It is neither replaced nor removed.
    if before is not None and not before.startswith(file.mark):
        if file.text is None:
            return None
        raise Refused(f"{file.path} was not written by whisper_tui", hint="Move it away first")
    return None if before == file.text else Change(file.path, before, file.text, program=file.program)


def _shared(file: Shared) -> Change | None:
    text = read_file(file.path)
    if text is None and not file.wanted:
        return None
    document = opened(file.path, file.opener, text or file.blank)
    plain = document.plain()
    unwanted = [entry for entry in file.unwanted if entry.found(plain) is not None] if _is_ours(file, plain) else []
    if not unwanted and all(entry.holds(plain) for entry in file.wanted):
        return None
    try:
        return _installed_change(file, text, document) if file.wanted else _uninstalled(file, text or "", document)
    except WrongShape as error:
        raise shape_error(file.path, error) from error


def _installed_change(file: Shared, text: str | None, document: Document) -> Change:
    was_ours = _is_ours(file, document.plain())
    saved = read_file(backup_of(file.path))
    backup = text if text is None or not was_ours else None
    # The backup of an earlier installation is missing. The file without our entries is the next best original.
    if was_ours and saved is None and text is not None:
        without = opened(file.path, file.opener, text)
        _remove_all(file, without, None)
        backup = None if _is_empty(without) else without.text
    original = opened(file.path, file.opener, saved).plain() if saved is not None and was_ours else None
    for entry in file.unwanted if was_ours else ():
        entry.remove(document, original)
    for entry in file.wanted:
        if not entry.holds(document.plain()):
            entry.write(document)
    return Change(file.path, text, document.text, backup=backup, drops_backup=text is None)


def _is_ours(file: Shared, plain: Any) -> bool:
    """True if whisper_tui is installed in the file."""
    return any(entry.proves_install and entry.found(plain) is not None for entry in (*file.wanted, *file.unwanted))


def _uninstalled(file: Shared, text: str, document: Document) -> Change:
    """Return the original file if nobody has edited it since, and the file without our entries otherwise."""
    # No record of installations is kept. If the backup plus our entries equals the present text, nobody has edited it
    # (decision 20).
    saved = read_file(backup_of(file.path))
    ours = [entry for entry in (known.found(document.plain()) for known in file.unwanted) if entry is not None]
    if _reinstalled(file, saved, ours) == text:
        return Change(file.path, text, saved, drops_backup=True)
    _remove_all(file, document, None if saved is None else opened(file.path, file.opener, saved).plain())
    nothing_left = saved is None and _is_empty(document)
    return Change(file.path, text, None if nothing_left else document.text, drops_backup=True)


def _reinstalled(file: Shared, saved: str | None, entries: list[FileEntry]) -> str | None:
    """The backup with our entries as they are in the file. None: they cannot be added to it."""
    try:
        document = opened(file.path, file.opener, saved or file.blank)
        for entry in entries:
            if not entry.holds(document.plain()):
                entry.write(document)
    except (BadConfiguration, WrongShape):
        return None
    return document.text


def _remove_all(file: Shared, document: Document, original: Any) -> None:
    for entry in reversed((*file.wanted, *file.unwanted)):
        entry.remove(document, original)


def _is_empty(document: Document) -> bool:
    """True if nothing is left but the name of the schema and the version of the format."""
    return set(document.plain()) <= {"$schema", "version"}


def _broken(path: Path, line: str, problem: str) -> BadConfiguration:
    return BadConfiguration(
        f"{path}{', ' if line else ''}{line} {problem}", hint="Nothing was changed. Correct it, then try again"
    )


PRIVATE, PRIVATE_DIRECTORY, STARTED = 0o600, 0o700, 0o700

MADE = frozenset(
    (
        ".claude", ".codex", "rules", ".gemini", "policies", ".opencode", "opencode", "plugin", ".copilot", ".github",
        "hooks", ".qwen", ".kimi-code", ".kilo", "kilo", "gates",
    )
)  # fmt: skip
"""Directories of clients that are created if they are missing, and removed when they become empty."""


def difference(change: Change) -> Iterator[str]:
    """Yield the lines of a unified diff of one file, with invisible characters escaped."""
    names = (
        "/dev/null" if change.before is None else str(change.path),
        "/dev/null" if change.after is None else str(change.path),
    )
    before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
    for line in difflib.unified_diff(before, after, *names):
        yield visible(line.rstrip("\r\n"), keep_lines=True)
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def apply_changes(changes: Sequence[Change]) -> None:
    """Write all changes; if one cannot be written, undo those before it. Raises `WhisperError`."""
    # The user agreed to the diff that was shown. A file that has changed since would get another one.
    for change in changes:
        if read_file(change.path) != change.before:
            raise Refused(f"{change.path} has changed in the meantime, so nothing was written", hint="Try again")
    done: list[Change] = []
    try:
        for change in changes:
            if change.backup is not None:
                _write(backup_of(change.path), change.backup, PRIVATE)
            _become(change.path, change.after, STARTED if change.program else PRIVATE)
            done.append(change)
    except OSError as error:
        _undo(done)
        raise Refused(
            f"{error.filename or change.path} cannot be written: {error.strerror}, so nothing was changed",
            hint="Check its permissions and the free space",
        ) from error
    for change in changes:
        if change.drops_backup:
            backup_of(change.path).unlink(missing_ok=True)


def _undo(done: Sequence[Change]) -> None:
    for change in reversed(done):
        with suppress(OSError):
            _become(change.path, change.before, STARTED if change.program else PRIVATE)
            if change.backup is not None:
                backup_of(change.path).unlink(missing_ok=True)


def _become(path: Path, text: str | None, new: int) -> None:
    # A symbolic link stays, as dotfile managers need it: the file that it points to is written.
    real = Path(os.path.realpath(path))
    if text is None:
        real.unlink()
        _drop_empty(path.parent)
        return
    mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else new
    _write(real, text, mode)


def _write(path: Path, text: str, mode: int) -> None:
    """Replace a file atomically; create its directories."""
    # `parents` would create those above with the usual mode, and the supervisor's own must be private.
    for directory in reversed([each for each in (path.parent, *path.parent.parents) if not each.exists()]):
        directory.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Private at first, because settings may contain tokens. It gets the mode of the old file before the rename.
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _drop_empty(directory: Path) -> None:
    """Remove the directories that were created for our file alone."""
    while directory.name in MADE:
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent


DAY_S = 24 * 60 * 60
"""The timeout in seconds that clients get for a hook or a tool."""

DEADLINE_S = 86_100
"""Seconds after which hook and tools answer without a decision, before the client's own timeout."""

OR_REFUSE = "|| exit 2"
"""Appended to the hook's command line. It turns every failure into the exit code that clients treat as a denial."""

OR_GO_ON = "|| true"
"""Appended to the command line of the hook after a tool: what has run already is held up by no failure."""

AFTER = "--after"
"""The option of the hook after a tool, which only compares what ran with what was approved (decision 34)."""

AFTER_DEADLINE_S, AFTER_TIMEOUT_S = 10, 30
"""Seconds that the hook after a tool takes at most, and that its client gets as timeout."""

# Without an underscore, because one client does not allow it in the names of servers.
SERVER = "whisper"
"""The name of the MCP server in clients."""

PROGRAM = "whisper-tui"
_MODULE = ["-m", "whisper_tui"]
_ISOLATED = ({"-I"}, {"-E", "-P"})
"""Options of Python with which neither a directory nor variables choose what it imports."""
_EXECUTABLE = re.compile(r"(?:.*/)?whisper-tui|.*/whisper_tui/__main__\.py")


class Launch(NamedTuple):
    """The command line of this installation and of one of its instances."""

    program: tuple[str, ...]
    """The interpreter, isolated, and the program, by their absolute paths."""
    home: tuple[str, ...] = ()
    """The options that choose an instance."""

    def hook(self, client: str, *, agent_runs: bool = False, deadline_s: int = DEADLINE_S) -> tuple[str, ...]:
        """Return the hook's command line, which a client runs before each command."""
        runs = ("--agent-runs",) if agent_runs else ()
        return (*self.program, "hook", client, *self.home, "--deadline", str(deadline_s), *runs)

    def hook_text(
        self, client: str, *, agent_runs: bool = False, closed: bool = True, deadline_s: int = DEADLINE_S
    ) -> str:
        """Return the hook's command line for a shell. `closed`: a failing hook denies the command."""
        # Clients run the command when the hook is missing, killed or broken (decision 17).
        words = shlex.join(self.hook(client, agent_runs=agent_runs, deadline_s=deadline_s))
        return f"{words} {OR_REFUSE}" if closed else words

    def after_text(self, client: str) -> str:
        """Return the command line of the hook after a tool for a shell."""
        return f"{shlex.join((*self.hook(client, deadline_s=AFTER_DEADLINE_S), AFTER))} {OR_GO_ON}"

    def server(self, *, own_shell: bool = False) -> tuple[str, ...]:
        """Return the command line of the MCP server. `own_shell`: a hook supervises the client's own shell."""
        # A model that has two ways to run a command pays for both in each turn, and mixes them.
        words = ("--own-shell",) if own_shell else ()
        return (*self.program, "mcp", *self.home, "--wait", str(DEADLINE_S), *words)

    def gate(self, client: str, *, shell: str, deadline_s: int) -> tuple[str, ...]:
        """Return the command line of the program that a client takes for this shell, whose arguments follow."""
        return (*self.program, "gate", *self.home, "--deadline", str(deadline_s), "--shell", shell, client, "--")

    @property
    def state(self) -> Path | None:
        """The directory of the supervisor's state. None: the options do not name it."""
        match self.home:
            case ("--directories", _, state, _):
                return Path(state)
            case ("--home", home):
                return Path(home) / "state"
            case _:
                return None

    def exec(self) -> str:
        """Return the prefix of every approved command line that a client's shell gets."""
        return shlex.join((*self.program, "exec"))


def split(command: Any) -> list[str]:
    """Return the words of a command line; none if it is not valid."""
    try:
        return shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return []


def is_hook(words: Sequence[str], client: str) -> bool:
    """True if a command line is the hook of any installation for this client."""
    return any(
        words[place : place + 2] == ["hook", client] and is_launcher(words[:place]) for place in range(1, len(words))
    )


def is_our_hook(client: str, handler: object) -> bool:
    """True if a handler in a client's settings starts the hook of any installation."""
    return isinstance(handler, dict) and is_hook(split(handler.get("command")), client)


def is_launcher(words: Sequence[str]) -> bool:
    """True if the words of a command line start whisper_tui."""
    return bool(words) and (_EXECUTABLE.fullmatch(words[-1]) is not None or list(words[-2:]) == _MODULE)


def is_approved(pattern: str) -> bool:
    """True if a pattern matches the approved commands of any installation."""
    words = split(pattern)
    return words[-2:] == ["exec", "*"] and is_launcher(words[:-2])


def is_gateway(words: Sequence[str], launch: Launch) -> bool:
    """True if a command line puts another MCP server behind the queue of this instance."""
    return "--through" in _own_words(words) and is_server(words, launch)


def is_server(words: Sequence[str], launch: Launch) -> bool:
    """True if a command line starts the MCP server of this instance, or its gateway."""
    # Earlier versions started the program without the interpreter, or the module.
    earlier = ((PROGRAM,), launch.program[-1:], (*launch.program[:1], *_MODULE))
    launcher = next((each for each in (launch.program, *earlier) if each and tuple(words[: len(each)]) == each), ())
    own, places = _own_words(words)[len(launcher) :], launch.home
    chosen = [at for at, word in enumerate(own) if word.startswith(("--home", "--directories"))]
    # With other directories, another supervisor would be asked: perhaps one of the agent's own.
    same = own[chosen[0] : chosen[0] + len(places)] == list(places) if chosen else not places
    return bool(launcher) and own[:1] == ["mcp"] and len(chosen) <= 1 and same


def _own_words(words: Sequence[str]) -> list[str]:
    """The words of a command line before those of another server."""
    return list(words[: words.index("--") if "--" in words else None])


def is_isolated(words: Sequence[str]) -> bool:
    """True if no `PYTHONPATH` and no directory can replace what a command line starts."""
    launcher = set(launcher_of(words)[1:-1])
    return any(options <= launcher for options in _ISOLATED)


def launcher_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command line that start whisper_tui."""
    for place in range(1, len(words)):
        if is_launcher(words[:place]):
            return tuple(words[:place])
    return ()


@dataclass(frozen=True)
class InstallRequest:
    """A request to install into one client, for the user or for one project."""

    launch: Launch
    environ: Mapping[str, str]
    project: Path | None = None
    """The project's directory, absolute. None: user-wide."""
    hook: bool = True
    """True if the commands of the client's own shell tool wait in the queue."""
    tools: bool = True
    """True if the hook sees the client's other tools too: edits, the web, other servers, sub-agents."""
    mcp: bool = True
    """True if the client is offered the tools of whisper_tui."""
    agent_runs: bool = False
    """True if the agent runs the approved commands of its shell itself."""
    executor: bool = False
    """True if the client leaves its commands and files to our environment, instead of asking the hook about them."""
    gateway: bool = False
    """True if the MCP servers of others that the client starts are put behind the gateway."""

    @property
    def tells_model(self) -> bool:
        """True if a hook at the start of a session tells the model about whisper_tui."""
        # The instructions of the MCP server say the same, and nothing is said twice (decision 20).
        return self.hook and not self.mcp

    @property
    def user_directory(self) -> Path:
        """The user's home directory."""
        return Path(self.environ.get("HOME") or Path.home())


@dataclass(frozen=True)
class InstallPlan:
    """The files of a client with the content that they should have, and notes for the user."""

    files: list[ClientFile]
    notes: list[str] = field(default_factory=list)
    """Sentences about remaining steps and limitations."""
