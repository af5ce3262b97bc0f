"""What the gateway adds to a call of another MCP server's tool, against the same server without it.

Usage: python benchmarks/gateway.py [ROUNDS]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import median, quantile, table

SERVER = """
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


def compare(direct: LineClient, gateway: LineClient, method: str, params: dict[str, Any], rounds: int) -> list[str]:
    """Medians of interleaved rounds, their difference and their ratio."""
    plain, ours = [], []
    for _ in range(rounds):
        plain.append(direct.milliseconds(method, params))
        time.sleep(PAUSE_S)
        ours.append(gateway.milliseconds(method, params))
        time.sleep(PAUSE_S)
    figures = (median(plain), quantile(plain, 0.95), median(ours), quantile(ours, 0.95), median(ours) - median(plain))
    return [*(f"{figure:.2f}" for figure in figures), f"{figures[2] / figures[0]:.1f} times"]


def main(rounds: int) -> None:
    """Measure both ways to the same server, in one run."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as directory:
        root = Path(directory)
        (root / "config").mkdir(mode=0o700)
        (root / "config" / "config.toml").write_text(CONFIGURATION)
        (root / "config" / "config.toml").chmod(0o600)
        whisper = [sys.executable, "-m", "whisper_tui"]
        server = [sys.executable, "-c", SERVER]
        begin = time.perf_counter()
        direct = LineClient(server)
        direct.milliseconds("ping", {})
        between = time.perf_counter()
        gateway = LineClient([*whisper, "mcp", "--home", directory, "--through", "bench", "--", *server])
        gateway.milliseconds("ping", {})
        starts = ((between - begin) * 1000, (time.perf_counter() - between) * 1000)
        call = {"name": "echo", "arguments": {"text": "x" * 100}}
        compare(direct, gateway, "tools/call", call, 5)
        rows = [
            ["a call that a rule allows", *compare(direct, gateway, "tools/call", call, rounds)],
            ["another request", *compare(direct, gateway, "resources/read", {"uri": "mem://a"}, rounds)],
        ]
        direct.close()
        gateway.close()
        subprocess.run([*whisper, "--home", directory, "stop"], check=True, stdout=subprocess.DEVNULL)
    head = ("request", "direct ms", "p95", "through the gateway ms", "p95", "added ms", "ratio of medians")
    table(f"One request to an MCP server, {rounds} interleaved rounds", head, rows)
    print(f"\nFrom the start to the first answer: {starts[0]:.0f} ms direct, {starts[1]:.0f} ms through the gateway.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 150)
