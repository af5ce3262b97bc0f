"""The end of a process whose input and output are lines that are forwarded."""

import subprocess
import threading
from contextlib import suppress

from whisper_tui.transports.json_lines import LineWriter

GRACE_S = 1.5
"""Seconds that a started process has to end, first by itself, and again after SIGTERM. Clients kill after two each."""


def end_process(
    process: subprocess.Popen[bytes], writer: LineWriter, reading: threading.Thread, *, at_once: bool
) -> int:
    """End a started process as clients do: close its input, then SIGTERM, then SIGKILL. Return its exit code."""
    if not at_once:
        writer.finish(GRACE_S)
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    steps = (process.terminate, process.kill) if at_once else (lambda: None, process.terminate, process.kill)
    for step in steps:
        step()
        try:
            process.wait(GRACE_S)
            break
        except subprocess.TimeoutExpired:
            continue
    reading.join(GRACE_S)
    code = process.wait()
    return 128 - code if code < 0 else code
