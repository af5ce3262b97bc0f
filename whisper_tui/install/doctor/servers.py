"""Whether an MCP server that a client starts answers `initialize`."""

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from whisper_tui.install.doctor.programs import NotRun, end_group

PATIENCE_S = 30.0
"""Seconds that a server has: it may have to start a supervisor."""

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "whisper-tui-doctor", "version": "1"},
    },
}


def server_name(command: Sequence[str], environ: Mapping[str, str], cwd: Path, *, patience_s: float) -> str:
    """How the server calls itself. Raises `NotRun`."""
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
        return _initialized(process, patience_s)
    finally:
        end_group(process)


def _initialized(process: "subprocess.Popen[bytes]", patience_s: float) -> str:
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None  # noqa: S101  pipes
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
        process.stdin.flush()
    deadline = time.monotonic() + patience_s
    received = b""
    while b"\n" not in received:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise NotRun(f"it did not answer within {patience_s:g} s")
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            said = process.stderr.read().decode(errors="replace").strip().splitlines()
            raise NotRun(f"it ended: {said[-1] if said else 'it said nothing'}")
        received += piece
    return _name_in(received.partition(b"\n")[0])


def _name_in(line: bytes) -> str:
    try:
        answer: Any = json.loads(line)
        return str(answer["result"]["serverInfo"]["name"])
    except (ValueError, KeyError, TypeError) as error:
        raise NotRun(f"its answer is not one of MCP: {line[:200].decode(errors='replace')}") from error
