"""How soon 1,000 commands run at once, and how soon somebody else is answered meanwhile.

Usage: python benchmarks/many_starts.py [COMMANDS]
"""

import asyncio
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from measure import median, quantile, serial_popen_seconds, table

from whisper_tui.model.call import Argv, CallRequest, CommandSpec, SessionHello
from whisper_tui.system.state_directory import Directories
from whisper_tui.wire.client import SupervisorClient

COMMAND = ("sleep", "600")
CONFIGURATION = """
[supervisor]
workers = 1000
[[rules.allow]]
name = "the command that is measured"
argv = ["sleep", "600"]
"""
PAUSE_S = 0.005


def directories(place: Path) -> Directories:
    """The directories of a supervisor of its own."""
    return Directories(config=place / "config", state=place / "state", runtime=place / "run")


async def ask(place: Path, stop: threading.Event) -> list[float]:
    """Milliseconds until another connection is answered, again and again."""
    client, found = await SupervisorClient.connect(directories(place)), list[float]()
    while not stop.is_set():
        begin = time.perf_counter()
        await client.session("s1")
        found.append((time.perf_counter() - begin) * 1000)
        await asyncio.sleep(PAUSE_S)
    await client.close()
    return found


async def started(client: SupervisorClient, place: str, count: int) -> tuple[float, list[float]]:
    """Seconds until all of them run, and the answers meanwhile."""
    session = (await client.open_session(SessionHello(name="benchmark", root=place, environment=dict(os.environ)))).id
    spec = CommandSpec(command=Argv(program=COMMAND[0], args=COMMAND[1:]), cwd=place)
    request = CallRequest(session_id=session, tool="execute_command", arguments={}, spec=spec)

    async def start() -> None:
        await client.started(await client.submit(request))

    stop, begin = threading.Event(), time.perf_counter()
    # In a thread, because the loop that starts the commands is busy itself.
    asking = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(ask(Path(place), stop))))
    await asyncio.gather(*(start() for _ in range(count)))
    elapsed = time.perf_counter() - begin
    stop.set()
    return elapsed, await asking


async def main(count: int) -> None:
    """Both ways, one after the other."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY"), ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        (place / "config").mkdir(mode=0o700)
        (place / "config" / "config.toml").touch(mode=0o600)
        (place / "config" / "config.toml").write_text(CONFIGURATION)
        client = await SupervisorClient.connect(directories(place))
        base = await asyncio.to_thread(serial_popen_seconds, COMMAND, count)
        elapsed, answers = await started(client, directory, count)
        supervisor = (await client.status()).pid
        await client.shutdown(end_runs=True)
        await client.close()
        while Path(f"/proc/{supervisor}").exists():
            await asyncio.sleep(0.05)
    rows = [["subprocess.Popen", f"{base:.2f}", "1.00 times", ""]]
    told = f"{median(answers):.1f}, {quantile(answers, 0.99):.1f}"
    rows.append(["whisper_tui", f"{elapsed:.2f}", f"{elapsed / base:.2f} times", told])
    head = ("way", "all run after s", "ratio", "another connection is answered after ms: median, p99")
    table(f"{count:,} commands at once", head, rows)


if __name__ == "__main__":
    asyncio.run(main(int((sys.argv[1:] or ["1000"])[0])))
