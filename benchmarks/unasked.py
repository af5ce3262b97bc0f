"""What a command that runs unasked by its effects costs on its whole way, against the plain command; prints Markdown.

It runs in a view, its changes are read, judged, kept for undo and applied, and the agent gets its answer. Plain run and
call take turns, each in a fresh copy of the same workspace. Needs Linux with user namespaces, or root.

Usage: python benchmarks/unasked.py [ROUNDS]
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import directories, median, table
from preview import COMMANDS, Command, run

from whisper_tui.model.call import Argv, CallRequest, CommandSpec, SessionHello
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended
from whisper_tui.wire.client import SupervisorClient

LONGEST_MS, LONGEST_OF_TRUE_MS = 150, 40
"""How much longer than the plain command a call may take."""
PROGRAM_OF_THE_WORKSPACE = Command("`true`, a copy of it in the workspace", "./true", "cp /bin/true .")
"""`true` itself only reads, and so needs no view."""
SKIPPED = {"`true`", "rm -r, 200 files", "git stash and pop"}
"""Those need no view, or ask: so many deletions, and a stash."""
PAUSE_S = 0.05
CONFIGURATION = '[rules]\nunasked = "workspace"\n'


async def ask(door: SupervisorClient, text: str, workspace: Path) -> float:
    """Return the milliseconds from the submission of a call to its answer. Nobody may be asked."""
    session = await door.open_session(SessionHello(name="benchmark", root=str(workspace), environment=dict(os.environ)))
    spec = CommandSpec(command=Argv(program="bash", args=("-c", text)), cwd=str(workspace))
    begin = time.perf_counter()
    call = await door.submit(CallRequest(session_id=session.id, tool="execute_command", arguments={}, spec=spec))
    async with asyncio.timeout(60):
        record = await door.outcome(call)
    took = (time.perf_counter() - begin) * 1000
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0), record
    return took


async def compared(door: SupervisorClient, command: Command, place: Path, rounds: int) -> list[str]:
    """Return a row of the table."""
    template = place / "template"
    template.mkdir(parents=True)
    subprocess.run(["bash", "-ec", command.files or ":"], cwd=template, check=True, stdout=subprocess.DEVNULL)
    plain, ours = [], []
    for number in range(rounds):
        copies = [place / f"{way}{number}" for way in ("plain", "ours")]
        for copy in copies:
            subprocess.run(["cp", "-a", template, copy], check=True)
        plain.append(run(["bash", "-c", command.text], copies[0]).elapsed)
        await asyncio.sleep(PAUSE_S)
        ours.append(await ask(door, command.text, copies[1]))
        await asyncio.sleep(PAUSE_S)
    more = median(ours) - median(plain)
    bar = LONGEST_OF_TRUE_MS if command is PROGRAM_OF_THE_WORKSPACE else LONGEST_MS
    return [command.name, f"{median(plain):.0f}", f"{median(ours):.0f}", f"{more:.0f}", str(bar)]


async def main(rounds: int) -> None:
    """Measure against a supervisor of its own, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY"), ignore_cleanup_errors=True) as directory:
        root = Path(directory)
        (root / "config").mkdir(mode=0o700)
        (root / "config" / "config.toml").write_text(CONFIGURATION)
        (root / "config" / "config.toml").chmod(0o600)
        door = await SupervisorClient.connect(directories(root))
        chosen = (PROGRAM_OF_THE_WORKSPACE, *(each for each in COMMANDS if each.name not in SKIPPED))
        rows = [await compared(door, each, root / f"w{at}", rounds) for at, each in enumerate(chosen)]
        await door.shutdown()
        await door.close()
        while (root / "run" / "supervisor.sock").exists():
            await asyncio.sleep(0.05)
    title = f"Commands that run unasked by their effects: milliseconds, medians of {rounds} rounds in turn"
    head = ("command", "plain", "unasked", "more", "bar")
    table(f"{title}; load {os.getloadavg()[0]:.1f} at the end", head, rows)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 9))
