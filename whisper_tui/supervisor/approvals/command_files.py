"""The files of a command: scripts that it would run, as they are and as they were approved, and files that decide."""

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b

from whisper_tui.effects.changes import ApprovedScript
from whisper_tui.effects.script_code import LARGEST_CODE, digest_of
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.effects import LONGEST_CODE
from whisper_tui.model.text import one_line_beginning
from whisper_tui.model.verdict import Meaning, OwnShell, Resolved, RunCode
from whisper_tui.policy.commands.argv import Argv
from whisper_tui.policy.commands.wrappers import BUILTINS
from whisper_tui.policy.risks.code_execution import is_interpreter
from whisper_tui.policy.risks.later_files import holds_sensitive, sensitive_kind
from whisper_tui.policy.risks.sensitive_paths import innermost, read_paths, written_paths
from whisper_tui.policy.view import view
from whisper_tui.programs.entries import entry_of
from whisper_tui.supervisor.approvals.expand import Expander, find_program
from whisper_tui.system import host_files
from whisper_tui.system.file_owners import others_may_change
from whisper_tui.system.host_files import read_regular
from whisper_tui.system.run_files import stamp_of

_CODE_FOLLOWS = frozenset({"-c", "-e", "-m", "-p", "--eval", "--print"})
"""Options of interpreters that code or a module's name follows, so that no operand is a script."""
_DATA_FOLLOWS = frozenset({"-c", "-m"})
"""Options of Python and of shells: after their value, every word is data."""
MOST_SCRIPTS = 1000
"""Limit of files that are watched for one call. A command with more names is longer than any that is judged."""

LARGEST_DIGESTED = 1 << 20
"""Size in bytes up to which the content of a file is hashed."""

MOST_DIGESTED = 16 << 20
"""Bytes of all files of one call that are hashed; of further files only the stamps count."""


def file_stamps(program: str, meanings: Iterable[Meaning], scripts: Iterable[str]) -> dict[str, str]:
    """Return the present identity of the file behind each path."""
    paths = dict.fromkeys([program, *scripts])
    for meaning in meanings:
        paths |= dict.fromkeys(filter(None, (meaning.program,)))
    stamps = {path: _stamp(path) for path in paths}
    return {path: found for path, found in stamps.items() if found is not None}


def _stamp(path: str) -> str | None:
    found = host_files.status(path)
    return None if found is None else stamp_of(found)


def what_changed(before: Resolved, now: Resolved) -> str:
    """Describe the first difference, as a clause."""
    if before.problem and before.problem != now.problem:
        return f"it was approved when it was said that {before.problem}"
    if before.cwd != now.cwd:
        return f"its working directory was {before.cwd} and is {now.cwd or 'gone'}"
    if changes_shell(before, now):
        return _changed_shell(before.own_shell, now.own_shell)
    if before.program != now.program:
        return f"its program was {before.program} and is {now.program or 'gone'}"
    pairs = zip(before.commands, now.commands, strict=False)
    for old, new in pairs:
        if old.program != new.program:
            name = (old.words[0] if old.words else None) or "one of its programs"
            return f"{name} was {old.program or 'not found'} and is {new.program or 'not found'}"
    for path in changed_edits(before, now):
        return f"{path} has another content"
    for path in changed_files(before, now):
        return f"{path} {'was replaced or changed' if path in now.files else 'is gone'}"
    return "its words now expand to something else"


def changes_shell(before: Resolved, now: Resolved) -> bool:
    """True if the command would run in another shell than a human has seen, or needs a profile that nobody has seen."""
    seen, found = before.own_shell or OwnShell(), now.own_shell or OwnShell()
    # Until the first command of a session, the profile is not known. Then most commands need none.
    another = seen.profile != found.profile if seen.profile else bool(found.only_there)
    return another or seen.program != found.program


def _changed_shell(before: OwnShell | None, now: OwnShell | None) -> str:
    seen, found = before or OwnShell(), now or OwnShell()
    if not seen.profile and found.only_there:
        return f"{found.only_there[0]} is defined in your shell's profile {found.profile}, which was not known yet"
    if seen.program != found.program:
        return f"its shell was {seen.program or 'bash'} and is {found.program or 'bash'}"
    return f"your shell's profile was {seen.profile} and is {found.profile or 'gone'}"


def changed_edits(before: Resolved, now: Resolved) -> Iterator[str]:
    """Yield the paths of an edit that lead to another file, or to another content, than before."""
    known = {file.path: file for file in before.edits}
    yield from (file.path for file in now.edits if known.get(file.path) != file)
    yield from known.keys() - {file.path for file in now.edits}


def changed_files(before: Resolved, now: Resolved) -> Iterator[str]:
    """Yield the paths whose file has changed. Files that were not recorded before do not count as changed."""
    # A profile that nobody has seen is another question; see `changes_shell`.
    seen, found = before.own_shell or OwnShell(), now.own_shell or OwnShell()
    unseen = {found.profile} if not seen.profile else set()
    if before.files:
        paths = {**before.files, **now.files}.keys() - unseen
        yield from (path for path in sorted(paths) if before.files.get(path) != now.files.get(path))
    if before.contents:
        yield from (path for path, content in before.contents.items() if now.contents.get(path) != content)


def find_scripts(spec: CommandSpec, cwd: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that interpreters may run: scripts, files that they load first, and their input."""
    # Which operand is the script depends on the interpreter's options, and a file with the name of an option's value
    # can be a decoy. So every operand that is a file counts.
    seen = view(spec.command)
    explainer = Expander(cwd, {**environment, **spec.environment}, {})
    commands = [innermost(words) for words, _ in explainer.every_word(seen) if words]
    runners = [words for words in commands if _runs_code(words)]
    found = [path for words in runners for word in _given_code(words) for path in _files(word, cwd)]
    if any(_reads_code(words, cwd) for words in runners):
        found += [path for words in commands for word in words[1:] for path in _files(word, cwd)]
        found += [path for word in explainer.read_files(seen) for path in _files(word, cwd)]
    found += [path for words in commands if "/" in (words[0] or "") for path in _files(words[0], cwd)]
    return tuple(dict.fromkeys(found))[:MOST_SCRIPTS]


def contents_of(paths: Iterable[str]) -> dict[str, str]:
    """Return digests of files, and the stamps of large ones. Files that cannot be read are left out."""
    found, left = dict[str, str](), MOST_DIGESTED
    for path in paths:
        content, read = _content_of(path, min(left, LARGEST_DIGESTED))
        left -= read
        if content is not None:
            found[path] = content
    return found


def _content_of(path: str, largest: int) -> tuple[str | None, int]:
    """Return the digest of a file, or its stamp if it is larger, and the bytes that were read."""
    # A digest, because a write through a shared mapping need not change the times of the file. It is bounded, because
    # hashing also happens on the event loop, before each start.
    found = host_files.digest(path, largest)
    return (_stamp(path), 0) if found is None else found


LARGEST_PROFILE = 1 << 20
"""The largest profile of a shell in bytes."""

LONGEST_DEFINITION = 160
"""Characters of a definition that are kept."""

LARGEST_DEFINITION = 2000
"""Characters from which these are taken: blanks count as one."""


def own_shell_of(spec: CommandSpec, given: OwnShell | None, cwd: str, path: str) -> OwnShell | None:
    """Return the agent's own shell for a command, and the words of the command that its profile defines (decision 32).

    `given`: the shell and the profile of the session. None: the command runs as it was read, in bash.
    """
    if given is None or not isinstance(spec.command, Shell) or spec.command.shell.rpartition("/")[2] != "bash":
        return None
    text = _profile_text(given.profile)
    if text is None:
        return OwnShell(program=given.program) if given.program else None
    seen = view(spec.command)
    words = dict.fromkeys(word for each in seen.commands for word in each.argv[:1] if word)
    # An alias of zsh can stand for any word.
    others = dict.fromkeys(word for each in seen.commands for word in each.argv[1:] if word)
    defined = {word: found for word in words if (found := _definition(text, word))}
    defined |= {
        word: found for word in others if word not in defined and (found := _definition(text, word, anywhere=True))
    }
    missing = (word for word in defined if word not in BUILTINS and find_program(word, cwd, path) is None)
    return given.model_copy(update={"defines": defined, "only_there": tuple(missing)})


def _profile_text(path: str) -> str | None:
    """Return the text of a profile. None: there is none that only this user can write."""
    try:
        status = host_files.lstat(path) if path else None
    except (OSError, ValueError):
        return None
    if status is None or others_may_change(status, host_files.user_id()):
        return None
    content, _ = read_regular(path, LARGEST_PROFILE)
    return None if content is None or len(content) >= LARGEST_PROFILE else content.decode("utf-8", "replace")


def _definition(text: str, word: str, *, anywhere: bool = False) -> str:
    """Return the beginning of the definition of a word in a profile. Empty: the profile does not define it.

    Nothing is run for it, so more is found rather than less: each text that looks like a definition counts.
    `anywhere`: only what also holds for words that are no commands.
    """
    name = re.escape(word)
    alias = re.search(rf"^[ \t]*alias[ \t]+((?:--?\w*[ \t]+)*)['\"]?{name}=.*$", text, re.MULTILINE)
    if alias is not None and ("g" in alias[1] or not anywhere):
        return one_line_beginning(alias[0].strip(), LONGEST_DEFINITION)
    start = rf"(?:^|(?<=[\s;'\"({{]))(?:function[ \t]+{name}(?![\w.-])|{name}[ \t]*\([ \t]*\))"
    function = None if anywhere else re.search(start, text, re.MULTILINE)
    if function is None:
        return ""
    return one_line_beginning(text[function.start() : function.start() + LARGEST_DEFINITION], LONGEST_DEFINITION)


def _is_shell(name: str) -> bool:
    return entry_of(name).shell == "posix" or name in {"source", "."}


def _runs_code(words: Argv) -> bool:
    name = os.path.basename(words[0] or "") if words else ""  # noqa: PTH119
    return _is_shell(name) or entry_of(name).executes_files or is_interpreter(name)


def _given_code(words: Argv) -> list[str | None]:
    """Return the words that may be scripts. Operands of awk, sed and make are data, so only `-f FILE` counts there."""
    if not entry_of(os.path.basename(words[0] or "")).executes_files:  # noqa: PTH119
        # `python -c CODE a b`: what follows is in sys.argv and is not executed.
        ends = next((at for at, word in enumerate(words) if word in _DATA_FOLLOWS), len(words))
        return list(words[1:ends]) if _is_python_or_shell(words) else list(words[1:])
    named: list[str | None] = []
    for before, word in itertools.pairwise(words):
        if before in {"-f", "--file"} or (word or "").startswith(("-f", "--file=")):
            named.append(word)
    return named


def _is_python_or_shell(words: Argv) -> bool:
    name = os.path.basename(words[0] or "")  # noqa: PTH119
    return _is_shell(name) or name.startswith(("python", "pypy"))


def _reads_code(words: Argv, cwd: str) -> bool:
    """True if an interpreter may read its code from its input: no word is code or a file."""
    if entry_of(os.path.basename(words[0] or "")).executes_files:  # noqa: PTH119
        return False
    rest = words[1:]
    if "-" in rest or "-s" in rest or "/dev/stdin" in rest:
        return True
    return not any(word in _CODE_FOLLOWS for word in rest) and not any(_files(word, cwd) for word in rest)


def _files(word: str | None, cwd: str) -> list[str]:
    """Return the files that a word names, itself or as the value attached to an option."""
    if not word or "\0" in word:
        return []
    names = [word] if not word.startswith("-") else [word.partition("=")[2], word[2:] if word[1:2] != "-" else ""]
    paths = [os.path.join(cwd, name) for name in names if name]  # noqa: PTH118
    return [path for path in paths if host_files.is_file(path)]


MOST = 5
"""Limit of files that are named for one call."""


def sensitive_files(spec: CommandSpec, cwd: str, environment: Mapping[str, str], own: Sequence[str]) -> dict[str, str]:
    """Return the files that a command may write and that decide what runs later (decision 10), with their kinds."""
    # Each path counts both as written and as resolved: it may be a link, or may be replaced by one.
    found: dict[str, str] = {}
    looked = _PathLookup(cwd, environment.get("HOME") or host_files.home(), tuple(map(host_files.realpath, own)))
    for words, targets in _commands(spec, cwd, environment):
        looked.follow_cd(words)
        written = [*written_paths(words), *((target, False) for target in targets)]
        for path, kind in looked.kinds(written, read_paths(words)):
            found.setdefault(path, kind)
            # One file is enough to ask a human; the others only help to decide.
            if len(found) >= MOST:
                return found
    return found


def _commands(spec: CommandSpec, cwd: str, environment: Mapping[str, str]) -> Iterator[tuple[Argv, tuple[str, ...]]]:
    seen = view(spec.command)
    return Expander(cwd, {**environment, **spec.environment}, {}).every_word(seen)


_HOME_OF = re.compile(r"\A~(\+|[\w.-]*)(?=/)")
"""The home of a user at the beginning of a path."""


class _PathLookup:
    """Classifies the paths of one call, from each directory in which its commands may run."""

    def __init__(self, cwd: str, home: str, own: tuple[str, ...]) -> None:
        self._bases = [cwd]
        self._home = home
        self._own = own
        self._runs = tuple(each + "/runs" for each in own)

    def follow_cd(self, words: Argv) -> None:
        """Add the target of a `cd` to the directories that later paths may be relative to."""
        if words[:1] in {("cd",), ("pushd",)}:
            to = next((word for word in words[1:] if word is None or not word.startswith("-")), self._home)
            if to is not None:
                # Each `cd` doubles the possible directories, so only the first ones are followed.
                self._bases += [os.path.join(base, to) for base in self._bases[:4]]  # noqa: PTH118

    def kinds(self, written: Iterable[tuple[str, bool]], read: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield each sensitive file with its kind."""
        for path, fills in written:
            for place in self._places(path):
                kind = sensitive_kind(place, self._home, self._own)
                if kind is None and fills and holds_sensitive(place, self._home, self._own):
                    kind = "a directory that holds start-up files or settings"
                if kind is not None:
                    yield place, kind
        for path in read:
            for place in self._places(path):
                # The recorded output of commands lies there, and agents are told its path to read it.
                if not place.startswith(self._runs) and sensitive_kind(place, "", self._own) and self._is_own(place):
                    yield place, "the configuration or the state of whisper_tui"

    def _is_own(self, path: str) -> bool:
        return any(path == each or path.startswith(each + "/") for each in self._own)

    def _places(self, path: str) -> Iterator[str]:
        if "\0" in path or len(path) > 4096:
            return
        # In code, or in an argv without a shell, the program itself expands it.
        path = _HOME_OF.sub(self._home_of, path)
        for base in self._bases:
            named = os.path.join(base, path)  # noqa: PTH118
            place = os.path.normpath(named)
            yield place
            with suppress(ValueError):
                real = host_files.realpath(named, base)
                if real != place:
                    yield real

    def _home_of(self, match: re.Match[str]) -> str:
        """Return the directory that `~`, `~NAME` or `~+` means; a home is guessed, as the usual places tell enough."""
        name = match[1]
        if name == "+":
            return "."
        return self._home if not name else "/root" if name == "root" else f"/home/{name}"


MOST_KEPT, MOST_KEPT_BYTES = 500, 4 << 20
"""Files and bytes of the store of approved scripts; the oldest make room."""


class ApprovedScripts:
    """Texts of scripts as a human last approved them, so that a later call can show what has changed (decision 11).

    A file for each path, named by its digest, in a private directory beside the journal.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def keep(self, call_id: str, code: Iterable[RunCode]) -> None:
        """Keep the code of a call that was approved, unless a file has changed since it was judged."""
        for each in code:
            if each.path is None or each.digest is None:
                continue
            content, _ = read_regular(host_files.realpath(each.path), LARGEST_CODE)
            if content is not None and digest_of(content) == each.digest:
                self._write(each.path, call_id, content)
        self._make_room()

    def find(self, path: str) -> ApprovedScript | None:
        """Return the text of a script as it was approved. None: it never was, or was removed to make room."""
        content, _ = read_regular(os.path.join(self._directory, _name_of(path)), LARGEST_CODE)  # noqa: PTH118
        if content is None:
            return None
        call_id, _, text = content.partition(b"\n")
        digest, _, text = text.partition(b"\n")
        known = None if len(text) == LONGEST_CODE or b"\0" in text else text.decode("utf-8", "replace")
        return ApprovedScript(call_id.decode("ascii", "replace"), digest.decode("ascii", "replace"), known)

    def _write(self, path: str, call_id: str, content: bytes) -> None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)  # noqa: PTH103
        target = os.path.join(self._directory, _name_of(path))  # noqa: PTH118
        kept = b"\n".join((call_id.encode(), digest_of(content).encode(), content[:LONGEST_CODE]))
        descriptor = os.open(f"{target}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(kept)
        os.replace(f"{target}.new", target)  # noqa: PTH105

    def _make_room(self) -> None:
        try:
            with os.scandir(self._directory) as entries:
                known = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in entries)
        except FileNotFoundError:
            return
        size = sum(each for _, each, _ in known)
        while known and (len(known) > MOST_KEPT or size > MOST_KEPT_BYTES):
            _, less, path = known.pop(0)
            size -= less
            os.remove(path)  # noqa: PTH107


def _name_of(path: str) -> str:
    return blake2b(path.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
