"""Running clients that were started with an option that leaves their hook out: nothing they do is seen here."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from whisper_tui.agents.profile import ClientProfile

_PROC = Path("/proc")
MOST_NAMED = 5
"""Running clients of one kind that are named."""
FIRST_WORDS = 3
"""Words of a command line among which the client's program is: an interpreter and its options may come first."""


class RunningClient(NamedTuple):
    """A process of this user that was started as a client without its hook."""

    pid: int
    option: str
    """The option or variable that leaves the hook out."""
    directory: Path | None
    """Its working directory. None: it is not known."""


WithoutHook = Callable[[Sequence[str], Mapping[str, str]], str]
"""Returns the option or variable with which a command line and its environment leave the hook out. Empty: none does."""


def option_of(*options: str, variables: Sequence[str] = ()) -> WithoutHook:
    """Return a function that finds one of these options, or variables, in a command line and its environment."""

    def found(words: Sequence[str], environ: Mapping[str, str]) -> str:
        named = next((word for word in words if word.partition("=")[0] in options), "")
        return named or next((name for name in variables if environ.get(name, "0") not in ("", "0", "false")), "")

    return found


def unhooked(name: str, without_hook: WithoutHook, environ: Mapping[str, str]) -> Iterator[RunningClient]:
    """Yield the running clients of this user, with this home, that run without their hook. On Linux alone."""
    for words, pid in _command_lines():
        if not any(word.rpartition("/")[2] == name for word in words[:FIRST_WORDS]):
            continue
        theirs = _environment(pid)
        if theirs.get("HOME") != environ.get("HOME"):
            continue
        own = words[: words.index("--")] if "--" in words else words
        if option := without_hook(own, theirs):
            yield RunningClient(pid, option, _directory(pid))


def unhooked_sentences(profile: ClientProfile, environ: Mapping[str, str]) -> list[str]:
    """Return a sentence for each running client without its hook."""
    if profile.without_hook is None:
        return []
    found = unhooked(profile.name, profile.without_hook, environ)
    return [
        f"{profile.title} (pid {each.pid}) runs without whisper_tui's hook: it was started with {each.option}"
        for each in islice(found, MOST_NAMED)
    ]


def _command_lines() -> Iterator[tuple[list[str], int]]:
    """Yield the command lines of this user's processes."""
    with suppress(OSError):
        for process in _PROC.iterdir():
            if not process.name.isdecimal():
                continue
            # A process may end at any moment, and that of another user is not ours to read.
            with suppress(OSError):
                if process.stat().st_uid == os.getuid():
                    yield _texts(process / "cmdline"), int(process.name)


def _environment(pid: int) -> dict[str, str]:
    with suppress(OSError):
        pairs = (text.partition("=") for text in _texts(_PROC / str(pid) / "environ"))
        return {name: value for name, _, value in pairs}
    return {}


def _directory(pid: int) -> Path | None:
    with suppress(OSError):
        return (_PROC / str(pid) / "cwd").readlink()
    return None


def _texts(path: Path) -> list[str]:
    return [part.decode("utf-8", "replace") for part in path.read_bytes().split(b"\0") if part]
