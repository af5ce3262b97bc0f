"""What a command costs on its whole way, socket, policy, journal, pool, keeper and answer, against `subprocess.run`.

Usage: python benchmarks/whole_way.py [ROUNDS]
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import directories, median, quantile, table

from whisper_tui.model.call import Argv, CallRequest, CommandSpec, SessionHello
from whisper_tui.wire.client import SupervisorClient

COMMAND = ("bash", "-c", "true")
AT_ONCE = 200
PAUSE_S = 0.03
"""Between two commands, so that neither side pays for what the other one left to do."""
CONFIGURATION = """
[supervisor]
workers = 8
[[rules.allow]]
name = "the command that is measured"
argv = ["bash", "-c", "true"]
"""


async def ask(door: SupervisorClient, session_id: str, directory: str) -> None:
    """One call from its submission to its answer; a rule allows it, so no human is waited for."""
    spec = CommandSpec(command=Argv(program=COMMAND[0], args=COMMAND[1:]), cwd=directory)
    call = await door.submit(CallRequest(session_id=session_id, tool="execute_command", arguments={}, spec=spec))
    await door.outcome(call)


async def one_by_one(door: SupervisorClient, session_id: str, directory: str, rounds: int) -> list[str]:
    """Medians of interleaved rounds, in milliseconds, and their ratio."""
    ours, plain = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        await ask(door, session_id, directory)
        ours.append((time.perf_counter() - begin) * 1000)
        await asyncio.sleep(PAUSE_S)
        begin = time.perf_counter()
        subprocess.run(COMMAND, capture_output=True, check=True)
        plain.append((time.perf_counter() - begin) * 1000)
        await asyncio.sleep(PAUSE_S)
    figures = (median(plain), quantile(plain, 0.95), median(ours), quantile(ours, 0.95))
    return ["`bash -c true`", *(f"{figure:.2f}" for figure in figures), f"{figures[2] / figures[0]:.1f} times"]


async def at_once(door: SupervisorClient, session_id: str, directory: str) -> float:
    """Commands a second when many are asked for together."""
    begin = time.perf_counter()
    await asyncio.gather(*(ask(door, session_id, directory) for _ in range(AT_ONCE)))
    return AT_ONCE / (time.perf_counter() - begin)


async def main(rounds: int) -> None:
    """Measure against a supervisor of its own, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY"), ignore_cleanup_errors=True) as directory:
        root = Path(directory)
        home = directories(root)
        (root / "config").mkdir(mode=0o700)
        (root / "config" / "config.toml").write_text(CONFIGURATION)
        (root / "config" / "config.toml").chmod(0o600)
        door = await SupervisorClient.connect(home)
        hello = SessionHello(name="benchmark", root=directory, environment=dict(os.environ))
        session_id = (await door.open_session(hello)).id
        await one_by_one(door, session_id, directory, 5)
        row = await one_by_one(door, session_id, directory, rounds)
        together = await at_once(door, session_id, directory)
        await door.shutdown()
        await door.close()
        while (root / "run" / "supervisor.sock").exists():
            await asyncio.sleep(0.05)
    head = ("command", "subprocess.run ms", "p95", "whisper_tui ms", "p95", "ratio of medians")
    table(f"From submission to answer over the socket, {rounds} interleaved rounds", head, [row])
    print(f"\n{AT_ONCE} at once on 8 workers: {together:.0f} commands a second.")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 150))
