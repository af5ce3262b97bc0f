"""Which files a command would run: its programs, and the scripts that it gives to interpreters."""

import os
import stat
from collections.abc import Iterable, Iterator

from whisper_tui.model.verdict import Meaning, Resolved
from whisper_tui.policy.dangers.code import is_interpreter
from whisper_tui.policy.wrappers.table import SHELLS
from whisper_tui.supervisor.keeper.stamp import stamp

_SHELLS = frozenset({*SHELLS, "source", "."})
_CODE_FOLLOWS = frozenset({"-c", "-e", "-m", "-p", "--eval", "--print"})
"""Options of interpreters after which comes code, or the name of a module, and no script."""


def files_behind(program: str, meanings: Iterable[Meaning], cwd: str) -> dict[str, str]:
    """What is behind the path of each of them now."""
    paths = dict.fromkeys([program])
    for meaning in meanings:
        paths |= dict.fromkeys(filter(None, (meaning.program, _script(meaning.words, cwd))))
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


def _script(words: tuple[str | None, ...], cwd: str) -> str | None:
    """The file that an interpreter is given to run."""
    name = os.path.basename((words[0] if words else None) or "")  # noqa: PTH119
    if name not in _SHELLS and not is_interpreter(name):
        return None
    code = {"-c"} if name in _SHELLS else _CODE_FOLLOWS
    for word in words[1:]:
        if word is None or word in code:
            return None
        path = os.path.join(cwd, word)  # noqa: PTH118
        if not word.startswith("-") and _is_file(path):
            return path
    return None


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return False
