"""Asking Codex itself which hooks it sees and whether it trusts them, through its app-server."""

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE_S = 20.0
"""Seconds that Codex has to answer."""

_HELLO = {
    "id": 1,
    "method": "initialize",
    "params": {"clientInfo": {"name": "whisper_tui", "title": "whisper_tui", "version": "1"}},
}


@dataclass(frozen=True)
class SeenHook:
    """A hook as Codex sees it: `key` and `hash` are what its trust is kept under."""

    key: str
    command: str
    hash: str
    trusted: bool
    enabled: bool


class NoAnswer(Exception):
    """Codex is not there, or did not say. The message says which."""


def hooks_of(environ: Mapping[str, str], directory: Path, *, patience_s: float = PATIENCE_S) -> list[SeenHook]:
    """The hooks before tools that Codex would run in a directory. Raises `NoAnswer`."""
    program = shutil.which("codex", path=environ.get("PATH"))
    if program is None:
        raise NoAnswer("codex is not on PATH")
    listing = {"id": 2, "method": "hooks/list", "params": {"cwds": [str(directory)]}}
    try:
        answer = _ask([program, "app-server"], environ, directory, listing, patience_s)
    except OSError as error:
        raise NoAnswer(f"codex cannot be started: {error.strerror}") from error
    try:
        return [_seen(hook) for row in answer["data"] for hook in row["hooks"] if hook["eventName"] == "preToolUse"]
    except (KeyError, TypeError) as error:
        raise NoAnswer("codex does not tell its hooks in a form that is known here") from error


@contextmanager
def staged(name: str, text: str, environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """An environment in which Codex has one configuration file of that name and nothing else."""
    with tempfile.TemporaryDirectory(prefix="whisper-tui-", ignore_cleanup_errors=True) as directory:
        Path(directory, name).write_text(text, encoding="utf-8")
        yield {**environ, "CODEX_HOME": directory}


def _ask(
    command: list[str], environ: Mapping[str, str], directory: Path, request: dict[str, Any], patience_s: float
) -> Any:
    """The result of one request."""
    deadline = time.monotonic() + patience_s
    where = directory if directory.is_dir() else Path("/")
    with subprocess.Popen(
        command,
        env=dict(environ),
        cwd=where,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdin is not None and process.stdout is not None  # noqa: S101  both are pipes
            for message in (_HELLO, {"method": "initialized"}, request):
                process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            return _result(process.stdout.fileno(), request["id"], deadline)
        except BrokenPipeError as error:
            raise NoAnswer("codex ended before it answered") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(BrokenPipeError):
                process.communicate()


def _result(source: int, number: int, deadline: float) -> Any:
    received = b""
    while True:
        while b"\n" in received:
            line, _, received = received.partition(b"\n")
            with suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                    if "result" not in message:
                        raise NoAnswer("this version of codex does not tell its hooks")
                    return message["result"]
        ready, _, _ = select.select([source], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(source, 65536) if ready else b""
        if not piece:
            raise NoAnswer("codex ended before it answered" if ready else "codex did not answer in time")
        received += piece


def _seen(hook: dict[str, Any]) -> SeenHook:
    return SeenHook(
        key=hook["key"],
        command=hook.get("command") or "",
        hash=hook["currentHash"],
        trusted=hook.get("trustStatus") in {"trusted", "managed"} or bool(hook.get("isManaged")),
        enabled=bool(hook.get("enabled", True)),
    )
