"""Which files a command would run: its programs, and the scripts that it gives to interpreters."""

import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.verdict import Meaning, Resolved
from whisper_tui.policy.dangers.code import is_interpreter
from whisper_tui.policy.sensitive_paths import innermost
from whisper_tui.policy.view import view
from whisper_tui.policy.wrappers.peeled import Argv
from whisper_tui.policy.wrappers.table import SHELLS
from whisper_tui.supervisor.keeper.stamp import stamp
from whisper_tui.supervisor.meaning import Explainer

_SHELLS = frozenset({*SHELLS, "source", "."})
_CODE_FOLLOWS = frozenset({"-c", "-e", "-m", "-p", "--eval", "--print"})
"""Options of interpreters after which comes code, or the name of a module, and no script."""
_DATA_FOLLOWS = frozenset({"-c", "-m"})
"""Options of Python and of shells behind which everything is data."""
_LANGUAGES = frozenset({"awk", "gawk", "mawk", "nawk", "sed", "gsed", "make", "gmake", "just"})
"""Other programs that are given what to do in a file."""

MOST_SCRIPTS = 1000
"""Files that are watched for one call. More names hardly fit into a text that is judged at all."""

LARGEST_DIGESTED = 1 << 20
"""Bytes of a file of which the content is looked at."""


def files_behind(program: str, meanings: Iterable[Meaning], scripts: Iterable[str]) -> dict[str, str]:
    """What is behind the path of each of them now."""
    paths = dict.fromkeys([program, *scripts])
    for meaning in meanings:
        paths |= dict.fromkeys(filter(None, (meaning.program,)))
    stamps = {path: stamp(path) for path in paths}
    return {path: found for path, found in stamps.items() if found is not None}


def what_changed(before: Resolved, now: Resolved) -> str:
    """The first thing that is not as it was, as a clause."""
    if before.cwd != now.cwd:
        return f"its working directory was {before.cwd} and is {now.cwd or 'gone'}"
    if before.program != now.program:
        return f"its program was {before.program} and is {now.program or 'gone'}"
    pairs = zip(before.commands, now.commands, strict=False)
    for old, new in pairs:
        if old.program != new.program:
            name = (old.words[0] if old.words else None) or "one of its programs"
            return f"{name} was {old.program or 'not found'} and is {new.program or 'not found'}"
    for path in changed_files(before, now):
        return f"{path} {'was replaced or changed' if path in now.files else 'is gone'}"
    return "what its words stand for is different"


def changed_files(before: Resolved, now: Resolved) -> Iterator[str]:
    """Paths behind which there is another file. Where nobody had looked, nothing counts as changed."""
    if before.files:
        yield from (path for path in {**before.files, **now.files} if before.files.get(path) != now.files.get(path))
    if before.contents:
        yield from (path for path, content in before.contents.items() if now.contents.get(path) != content)


def scripts_behind(spec: CommandSpec, cwd: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Files that programs which run code are given, in every place: scripts, what they load first, and their input.

    Which of an interpreter's operands is the script depends on its options, and a file with the name of an option's
    value can be put there as a decoy. So each that is a file counts.
    """
    seen = view(spec.command)
    explainer = Explainer(cwd, {**environment, **spec.environment}, {})
    commands = [innermost(words) for words, _ in explainer.every_word(seen) if words]
    runners = [words for words in commands if _runs_code(words)]
    found = [path for words in runners for word in _given_code(words) for path in _files(word, cwd)]
    if any(_reads_code(words, cwd) for words in runners):
        found += [path for words in commands for word in words[1:] for path in _files(word, cwd)]
        found += [path for word in explainer.read_files(seen) for path in _files(word, cwd)]
    found += [path for words in commands if "/" in (words[0] or "") for path in _files(words[0], cwd)]
    return tuple(dict.fromkeys(found))[:MOST_SCRIPTS]


def content_of(path: str) -> str | None:
    """What a file holds, as a digest; of a large one what tells it from another. None: it cannot be read.

    A digest, because a mapping of the file that is shared changes the content without changing the times.
    """
    try:
        if os.stat(path).st_size > LARGEST_DIGESTED:  # noqa: PTH116
            return stamp(path)
        with open(path, "rb") as file:  # noqa: PTH123
            return blake2b(file.read(LARGEST_DIGESTED), digest_size=16).hexdigest()
    except (OSError, ValueError):
        return stamp(path)


def _runs_code(words: Argv) -> bool:
    name = os.path.basename(words[0] or "") if words else ""  # noqa: PTH119
    return name in _SHELLS or name in _LANGUAGES or is_interpreter(name)


def _given_code(words: Argv) -> list[str | None]:
    """The words among which its scripts are: for awk and its like, which mostly get text, what an option names."""
    if os.path.basename(words[0] or "") not in _LANGUAGES:  # noqa: PTH119
        ends = next((at for at, word in enumerate(words) if word in _DATA_FOLLOWS), len(words))
        return list(words[1:ends]) if _is_python_or_shell(words) else list(words[1:])
    named: list[str | None] = []
    for before, word in itertools.pairwise(words):
        if before in {"-f", "--file"} or (word or "").startswith(("-f", "--file=")):
            named.append(word)
    return named


def _is_python_or_shell(words: Argv) -> bool:
    name = os.path.basename(words[0] or "")  # noqa: PTH119
    return name in _SHELLS or name.startswith(("python", "pypy"))


def _reads_code(words: Argv, cwd: str) -> bool:
    """Whether its code may come from its input: nothing among its words is code, or a file."""
    if os.path.basename(words[0] or "") in _LANGUAGES:  # noqa: PTH119
        return False
    rest = words[1:]
    if "-" in rest or "-s" in rest or "/dev/stdin" in rest:
        return True
    return not any(word in _CODE_FOLLOWS for word in rest) and not any(_files(word, cwd) for word in rest)


def _files(word: str | None, cwd: str) -> list[str]:
    """The files that a word, or the value that is attached to an option in it, names."""
    if not word or "\0" in word:
        return []
    names = [word] if not word.startswith("-") else [word.partition("=")[2], word[2:] if word[1:2] != "-" else ""]
    paths = [os.path.join(cwd, name) for name in names if name]  # noqa: PTH118
    return [path for path in paths if _is_file(path)]


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return False
