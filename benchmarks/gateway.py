"""What the gateway adds to a call of another MCP server's tool, against the same server without it.

Usage: python benchmarks/gateway.py [ROUNDS]
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from measure import median, quantile, table

ECHO = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"content": [{"type": "text", "text": message.get("params", {}).get("name", "")}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
CONFIGURATION = """
[[rules.allow]]
name = "the tool that is measured"
tool = "mcp__bench__echo"
anything = true
"""
SERVER = [sys.executable, "-c", ECHO]
WHISPER = [sys.executable, "-m", "whisper_tui"]
MEMORY = "/dev/shm"
"""A directory in memory, where Linux has one: there a call waits for no disk."""
PAUSE_S = 0.02
"""Between two calls, so that none pays for what the other one left to do."""


class LineClient:
    """An MCP client that measures the time from a line to its answer."""

    def __init__(self, words: list[str]) -> None:
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._last_id = 0

    def milliseconds(self, method: str, params: dict[str, Any]) -> float:
        """Send one request and wait for its answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        line = json.dumps(request).encode() + b"\n"
        begin = time.perf_counter()
        self._process.stdin.write(line)
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        elapsed = (time.perf_counter() - begin) * 1000
        said = json.loads(answer)
        if said["id"] != self._last_id or said["result"].get("isError"):
            raise RuntimeError(f"the request failed: {said}")
        return elapsed

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Disk:
    """What the disk of a directory takes to keep two pages."""

    def __init__(self, directory: str) -> None:
        self._file = os.open(f"{directory}/flushed", os.O_CREAT | os.O_WRONLY, 0o600)

    def milliseconds(self) -> float:
        """Write and flush. Returns what the flush took."""
        os.write(self._file, b"x" * 8192)
        begin = time.perf_counter()
        os.fsync(self._file)
        return (time.perf_counter() - begin) * 1000


def compare(
    direct: LineClient, gateway: LineClient, method: str, params: dict[str, Any], rounds: int, disk: Disk
) -> list[str]:
    """Medians of interleaved rounds, their difference and their ratio, and of a flush of the disk meanwhile."""
    plain: list[float] = []
    ours: list[float] = []
    flushes: list[float] = []
    ways: list[tuple[list[float], Callable[[], float]]] = [
        (plain, partial(direct.milliseconds, method, params)),
        (ours, partial(gateway.milliseconds, method, params)),
        (flushes, disk.milliseconds),
    ]
    for _ in range(rounds):
        # A flush also writes what other programs have left since the one before, so none must always come second.
        random.shuffle(ways)
        for taken, way in ways:
            taken.append(way())
            time.sleep(PAUSE_S)
    added = median(ours) - median(plain)
    figures = (median(plain), quantile(plain, 0.95), median(ours), quantile(ours, 0.95), added, median(flushes))
    return [*(f"{figure:.2f}" for figure in figures), f"{figures[2] / figures[0]:.1f} times"]


def instance(directory: str) -> list[str]:
    """Make an instance whose rules allow the tool. Returns the words that start its gateway."""
    (Path(directory) / "config").mkdir(mode=0o700)
    configuration = Path(directory) / "config" / "config.toml"
    configuration.write_text(CONFIGURATION)
    configuration.chmod(0o600)
    return [*WHISPER, "mcp", "--home", directory, "--through", "bench", "--", *SERVER]


def main(rounds: int) -> None:
    """Measure both ways to the same server, in one run."""
    with ExitStack() as places:
        on_disk, *in_memory = (
            places.enter_context(tempfile.TemporaryDirectory(dir=place))
            for place in (os.environ.get("BENCH_DIRECTORY"), *([MEMORY] if os.path.isdir(MEMORY) else []))
        )
        begin = time.perf_counter()
        direct = LineClient(SERVER)
        direct.milliseconds("ping", {})
        between = time.perf_counter()
        gateways = [LineClient(instance(on_disk))]
        gateways[0].milliseconds("ping", {})
        starts = ((between - begin) * 1000, (time.perf_counter() - between) * 1000)
        gateways += [LineClient(instance(directory)) for directory in in_memory]
        call = {"name": "echo", "arguments": {"text": "x" * 100}}
        disks = [Disk(on_disk), *map(Disk, in_memory)]
        rows = []
        for gateway, disk, where in zip(gateways, disks, ("", ", its journal in memory"), strict=False):
            compare(direct, gateway, "tools/call", call, 5, disk)
            row = compare(direct, gateway, "tools/call", call, rounds, disk)
            rows.append([f"a call that a rule allows{where}", *row])
        another = compare(direct, gateways[0], "resources/read", {"uri": "mem://a"}, rounds, disks[0])
        rows.append(["another request", *another])
        for client in (direct, *gateways):
            client.close()
        for directory in (on_disk, *in_memory):
            subprocess.run([*WHISPER, "--home", directory, "stop"], check=True, stdout=subprocess.DEVNULL)
    head = (
        "request",
        "direct ms",
        "p95",
        "through the gateway ms",
        "p95",
        "added ms",
        "a flush ms",
        "ratio of medians",
    )
    table(f"One request to an MCP server, {rounds} interleaved rounds", head, rows)
    print(
        "\nA call is flushed to the disk before it reaches the server: `a flush` is what that took in the same rounds."
    )
    print(f"From the start to the first answer: {starts[0]:.0f} ms direct, {starts[1]:.0f} ms through the gateway.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 150)
