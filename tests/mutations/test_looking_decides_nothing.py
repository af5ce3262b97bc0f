"""Code of a workspace gains nothing from a supervisor that looks at it: nothing runs, and nothing is decided."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.interpreter import PYTHON
from tests.mutations.conftest import Field, a_field
from tests.mutations.verbs import deciding
from tests.outside import needs_sandbox, outside_only
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.wire.protocol import SOCKET

SYSTEM_PYTHON = "/usr/bin/python3"
INTRUDER = str(Path(__file__).with_name("intruder.py"))
LOOKS = 12
"""How many waiting calls are looked at; the race was won at the first."""
pytestmark = [
    outside_only,
    needs_sandbox,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify"),
]

BUILD = """
git init -q -b main; git config user.name n; git config user.email e
for n in 1 2 3; do echo "$n" > "f$n"; done; git add .; git commit -qm first
echo 'f* filter=e' > .gitattributes; cp .git/config config.mild; cp .git/config config.evil
git config -f config.evil filter.e.clean 'sh payload.sh; cat'
git config -f config.evil core.fsmonitor 'sh payload.sh; false'
"""

RACER = """
import ctypes, os, select, sys, time
if os.fork():
    sys.exit(0)
os.setsid()
libc = ctypes.CDLL(None)
watch = libc.inotify_init()
libc.inotify_add_watch(watch, b".git", 0x10)  # IN_CLOSE_NOWRITE
def swap(name):
    with open(name, "rb") as file:
        content = file.read()
    with open(".git/config.new", "wb") as file:
        file.write(content)
    os.rename(".git/config.new", ".git/config")
open("ready", "w").close()
while True:
    for _ in range(2000):
        if select.select([watch], [], [], 0.05)[0]:
            break
        if os.path.exists("end"):
            sys.exit(0)
    if b"config\\0" not in os.read(watch, 65536):
        continue
    swap("config.evil")
    with open("swaps", "a") as file:
        file.write("x")
    for _ in range(8):
        for name in ("f1", "f2", "f3"):
            os.utime(name)
        time.sleep(0.05)
    swap("config.mild")
    with open("returns", "a") as file:
        file.write("x")
    while select.select([watch], [], [], 0)[0]:
        os.read(watch, 65536)
"""


@pytest.fixture(params=["a rule", "approved once"])
async def field(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Field]:
    tests = Rule(name="tests", prefix=(SYSTEM_PYTHON, "t.py"), sandbox="workspace")
    rules = Rules(read_only=False, allow=(tests,) if request.param == "a rule" else ())
    if request.param == "a rule" and not Path(SYSTEM_PYTHON).exists():
        pytest.skip(f"there is no {SYSTEM_PYTHON}")
    async with a_field(tmp_path, rules=rules) as made:
        made.root = tmp_path / "workspace"
        made.root.mkdir()
        yield made


async def leave_the_racer(field: Field, *, by_a_rule: bool) -> None:
    """What runs in the sandbox, or was approved, leaves a process in the background."""
    (field.root / "t.py").write_text(RACER)
    if by_a_rule:
        await field.ask(SYSTEM_PYTHON, "t.py")
    else:
        await field.runs(sys.executable, "-I", "t.py")
    await field.until((field.root / "ready").exists)


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


@pytest.mark.slow
async def test_settings_that_change_while_effects_are_stated_run_nothing_and_approve_nothing(
    field: Field, request: pytest.FixtureRequest
) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(field.root)}
    subprocess.run(["sh", "-euc", BUILD], cwd=field.root, check=True, env=environment)
    ran, answers = field.root / "ran", field.root / "answers"
    waiting = [await field.ask("git", "reset", "--hard", f"HEAD~{number}") for number in range(LOOKS)]
    record = await field.supervisor.record(waiting[0])
    decides = deciding(waiting[0], record.call.session_id, record.seen_digest())["decide"]
    address = str(field.home.runtime / SOCKET)
    words = [PYTHON, "-I", INTRUDER, address, str(answers), "double forked", json.dumps([["decide", decides]])]
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    (field.root / "payload.sh").write_text(f"echo ran > {ran}\n{quoted} >/dev/null 2>&1\n")
    await leave_the_racer(field, by_a_rule=request.node.callspec.id == "a rule")
    try:
        for call_id in waiting:
            await field.supervisor.effects(call_id)
            # The next look is at the mild configuration, as the first one was.
            await field.until(lambda: ran.exists() or size(field.root / "swaps") == size(field.root / "returns"))
            assert not ran.exists(), "a program of the repository ran"
        assert (field.root / "swaps").exists(), "the race was not run at all"
        assert not answers.exists()
        for call_id in waiting:
            assert (await field.supervisor.record(call_id)).state.kind == "waiting"
    finally:
        (field.root / "end").touch()
        await asyncio.sleep(0)
