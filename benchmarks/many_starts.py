"""How soon 1,000 commands run at once, and how soon somebody else is answered meanwhile.

Usage: python benchmarks/many_starts.py [COMMANDS]
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from measure import directories, median, quantile, serial_popen_seconds, table

from whisper_tui.model.call import Argv, CallRequest, CommandSpec, SessionHello
from whisper_tui.wire.client import SupervisorClient

COMMAND = ("sleep", "600")
CONFIGURATION = """
[supervisor]
workers = 1000
[[rules.allow]]
name = "the command that is measured"
argv = ["sleep", "600"]
"""
PROGRAM = Path(__file__).with_name("_meanwhile.py")


@asynccontextmanager
async def asked_meanwhile(place: Path, found: dict[str, list[float]]) -> AsyncIterator[None]:
    """Ask the supervisor and an idle echo server until the end of the block; `found` gets the milliseconds of each."""
    words, socket, pipe = (sys.executable, str(PROGRAM)), place / "echo.sock", asyncio.subprocess.PIPE
    echo = await asyncio.create_subprocess_exec(*words, "echo", socket)
    try:
        async with asyncio.timeout(30):
            while not socket.exists():
                await asyncio.sleep(0.01)
        asker = await asyncio.create_subprocess_exec(*words, "ask", place, socket, stdin=pipe, stdout=pipe)
        assert asker.stdout is not None
        await asker.stdout.readline()
        yield
        told, _ = await asker.communicate(b"")
        found.update(json.loads(told))
    finally:
        # The asker ends with its input, at the latest when this program does.
        echo.terminate()
        await echo.wait()


async def started(client: SupervisorClient, place: str, count: int) -> tuple[float, dict[str, list[float]]]:
    """Seconds until all of them run, and the answers meanwhile."""
    session = (await client.open_session(SessionHello(name="benchmark", root=place, environment=dict(os.environ)))).id
    spec = CommandSpec(command=Argv(program=COMMAND[0], args=COMMAND[1:]), cwd=place)
    request = CallRequest(session_id=session, tool="execute_command", arguments={}, spec=spec)

    async def start() -> None:
        await client.started(await client.submit(request))

    answers: dict[str, list[float]] = {}
    async with asked_meanwhile(Path(place), answers):
        begin = time.perf_counter()
        await asyncio.gather(*(start() for _ in range(count)))
        elapsed = time.perf_counter() - begin
    return elapsed, answers


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
    rows = [["subprocess.Popen", f"{base:.2f}", "1.00 times", "", ""]]
    told = {name: f"{median(each):.1f}, {quantile(each, 0.99):.1f}" for name, each in answers.items()}
    row = [f"{elapsed:.2f}", f"{elapsed / base:.2f} times", told["supervisor"], told["echo"]]
    rows.append(["whisper_tui", *row])
    others = ("another connection is answered after ms: median, p99", "an idle echo server meanwhile")
    head = ("way", "all run after s", "ratio", *others)
    table(f"{count:,} commands at once", head, rows)


if __name__ == "__main__":
    asyncio.run(main(int((sys.argv[1:] or ["1000"])[0])))
