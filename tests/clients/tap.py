"""Stands before the programs that a client starts, and records all that passes: arguments, variables, input, answer."""

import json
import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.clients.install import ROOT
from tests.interpreter import PYTHON
from whisper_tui.cli import main as whisper_tui

READ = 1 << 16
PROGRAM = """\
#!{python}
import sys

sys.path.insert(0, {root!r})
from tests.clients.tap import main

sys.exit(main({launcher!r}, {record!r}))
"""


def write_program(path: Path, launcher: Path, record: Path) -> None:
    """Write the program that a client starts in place of the launcher. It appends its lines to `record`."""
    path.parent.mkdir()
    path.write_text(PROGRAM.format(python=PYTHON, root=str(ROOT), launcher=str(launcher), record=str(record)))
    path.chmod(0o700)


def main(launcher: str, record: str) -> int:
    """Be the launcher, in this very process: the hook looks who its parent is. Returns the exit code."""
    sys.argv[0] = launcher
    started = {"process": os.getpid(), "argv": sys.argv[1:], "environment": dict(os.environ)}
    return _hook(Path(record), started) if sys.argv[1] == "hook" else _server(Path(record), started)


def _append(record: Path, **line: Any) -> None:
    with record.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")


def _hook(record: Path, started: dict[str, Any]) -> int:
    given = b"".join(iter(lambda: os.read(0, READ), b""))
    outer = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(given)
        files[0].seek(0)
        for descriptor, file in enumerate(files):
            os.dup2(file.fileno(), descriptor)
        code = _run()
        said = []
        for descriptor, kept in outer.items():
            os.dup2(kept, descriptor)
            files[descriptor].seek(0)
            said.append(files[descriptor].read())
    _append(record, **started, stdin=given.decode(), code=code, stdout=said[0].decode(), stderr=said[1].decode())
    for descriptor, data in enumerate(said, 1):
        os.write(descriptor, data)
    return code


def _server(record: Path, started: dict[str, Any]) -> int:
    _append(record, **started)
    outside_in, outside_out = os.dup(0), os.dup(1)
    inside_in, to_program = os.pipe()
    from_program, inside_out = os.pipe()
    os.dup2(inside_in, 0)
    os.dup2(inside_out, 1)
    os.close(inside_out)
    ends = ((outside_in, to_program, "client"), (from_program, outside_out, "server"))
    threads = [threading.Thread(target=_pass, args=(record, *each), daemon=True) for each in ends]
    for thread in threads:
        thread.start()
    code = _run()
    os.close(1)
    threads[1].join()
    return code


def _pass(record: Path, source: int, target: int, sender: str) -> None:
    """Forward everything, and record each line before it is forwarded."""
    held = b""
    while data := os.read(source, READ):
        *lines, held = (held + data).split(b"\n")
        for line in lines:
            if line.strip():
                _append(record, process=os.getpid(), sender=sender, message=json.loads(line))
        os.write(target, data)
    os.close(target)


def _run() -> int:
    try:
        return whisper_tui()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1


def recorded(record: Path) -> Sequence[dict[str, Any]]:
    """Return the lines of a record."""
    return [json.loads(line) for line in record.read_text().splitlines()]
