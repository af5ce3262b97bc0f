"""A window that a human opens by a click is none of the supervisor's processes."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, os, sys, time
from pathlib import Path
from whisper_tui.notify.window_launcher import WindowLauncher
from whisper_tui.system import processes
from whisper_tui.system.ancestry import ancestry, read_process
file = Path(sys.argv[1])
launcher = WindowLauncher(("sh", "-c", 'echo $$ > "$0.part"; mv "$0.part" "$0"; exec sleep 300', str(file)), os.environ)
missing = WindowLauncher(("/not/there",), os.environ)
processes.mark_supervisor()
print(asyncio.run(launcher.open()) or "started")
print(asyncio.run(missing.open()))
deadline = time.monotonic() + 60
while not file.exists():
    assert time.monotonic() < deadline
    time.sleep(0.01)
pid = int(file.read_text())
print(processes.mark_in_limits(Path(f"/proc/{pid}/limits").read_bytes()))
line = ancestry(pid, read_process)
print(os.getpid() in {seen.pid for seen in line}, len(processes.children_of(os.getpid())))
launcher.close()
missing.close()
os.kill(pid, 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="marks are seen only on Linux")
def test_a_window_has_no_mark_and_no_supervisor_among_its_ancestors(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "pid")]
    ran = subprocess.run(words, capture_output=True, check=True, text=True, timeout=90)
    assert ran.stdout.splitlines() == ["started", "No such file or directory", "None", "False 0"]
