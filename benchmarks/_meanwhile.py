"""Programs of `many_starts.py`: an echo server, and one that measures the answers of two servers at the same time.

Usage: python benchmarks/_meanwhile.py echo SOCKET
       python benchmarks/_meanwhile.py ask DIRECTORY SOCKET

They are processes of their own, because a thread would wait for the interpreter of the program that it measures beside.
The first one ends with SIGTERM. The second one prints `ready`, asks until its input ends, and prints what it found.
"""

import asyncio
import json
import sys
import threading
import time
from pathlib import Path

from measure import directories

from whisper_tui.wire.client import SupervisorClient

PAUSE_S = 0.005


async def echo(path: str) -> None:
    """Answer each line with itself."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(serve, path) as server:
        await server.serve_forever()


async def ask(place: Path, path: str) -> None:
    """Ask the supervisor and the echo server in turn; print the milliseconds until each answer, as JSON."""
    client = await SupervisorClient.connect(directories(place), start=False)
    reader, writer = await asyncio.open_unix_connection(path)
    found: dict[str, list[float]] = {"supervisor": [], "echo": []}
    told = threading.Thread(target=sys.stdin.read, daemon=True)
    told.start()
    print("ready", flush=True)
    while told.is_alive():
        begin = time.perf_counter()
        await client.session("s1")
        found["supervisor"].append((time.perf_counter() - begin) * 1000)
        await asyncio.sleep(PAUSE_S)
        begin = time.perf_counter()
        writer.write(b"hello\n")
        await reader.readline()
        found["echo"].append((time.perf_counter() - begin) * 1000)
        await asyncio.sleep(PAUSE_S)
    writer.close()
    await client.close()
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(echo(sys.argv[2]) if sys.argv[1] == "echo" else ask(Path(sys.argv[2]), sys.argv[3]))
