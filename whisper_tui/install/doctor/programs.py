"""Programs that are run to be looked at: bounded in time, in a process group of their own, ended whole."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

VERSION_S = 20.0
"""Seconds that a program has to tell its version."""

_VERSION = re.compile(r"\b(\d+)\.(\d+)\.(\d+)")


class Answer(NamedTuple):
    """What a program said."""

    code: int
    out: str
    err: str


class NotRun(Exception):
    """It could not be started, or did not end in time. The message says which."""


def run(command: Sequence[str], environ: Mapping[str, str], cwd: Path, *, given: str = "", patience_s: float) -> Answer:
    """What a program answers. Raises `NotRun`."""
    try:
        process = subprocess.Popen(
            command,
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise NotRun(f"{command[0]} cannot be started: {error.strerror}") from error
    try:
        out, err = process.communicate(given.encode(), timeout=patience_s)
    except subprocess.TimeoutExpired as error:
        raise NotRun(f"there was no answer within {patience_s:g} s") from error
    finally:
        if process.poll() is None:
            end_group(process)
    return Answer(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a program that was started here, with what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def program_of(name: str, environ: Mapping[str, str]) -> str | None:
    """Where a client is. None: it is not on PATH."""
    return shutil.which(name, path=environ.get("PATH"))


def version_of(program: str, environ: Mapping[str, str]) -> str | None:
    """What a program says of its version, as three numbers. None: nothing of the kind."""
    try:
        answer = run([program, "--version"], environ, Path("/"), patience_s=VERSION_S)
    except NotRun:
        return None
    found = _VERSION.search(answer.out) or _VERSION.search(answer.err)
    return ".".join(found.groups()) if found else None


def numbers(version: str) -> tuple[int, ...]:
    """A version, to be compared."""
    return tuple(int(part) for part in version.split("."))
