"""How long the programs take to start that agents and people start often, against a bare Python.

Usage: python benchmarks/starts.py [ROUNDS]
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import median, quantile, table

SCRIPT = str(Path(sys.executable).parent / "whisper-tui")
BARE = (sys.executable, "-c", "pass")
CANARY = {
    "session_id": "benchmark",
    "cwd": "/",
    "tool_name": "Bash",
    "tool_input": {"command": "touch whisper-tui-canary-0123456789"},
}
"""What a hook is told to stop at once: it goes the whole way to the supervisor and back, and asks nobody."""
TRUE = json.dumps({"command": "true"})
FLOOR = (sys.executable, "-c", "import argparse, contextlib, fcntl, json, os, shlex, typing, _socket")
"""What a subcommand that asks the supervisor cannot do without: options, JSON and a socket."""
LOOKS = ("list", "ps", "show 1", "history", "status", "logs 1", "rules list", "explain -- ls", "doctor")
"""Subcommands that people and scripts run often."""
PAUSE_S = 0.02


def seconds(words: tuple[str, ...], given: bytes) -> float:
    """One start, from its beginning to its end."""
    begin = time.perf_counter()
    subprocess.run(words, input=given, capture_output=True, check=True)
    return time.perf_counter() - begin


def processor_ms(words: tuple[str, ...]) -> float:
    """The processor time of one start, of the program and of the kernel for it: other programs hardly change it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # `doctor` ends with 1 where it finds something.
    subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check="doctor" not in words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def compare_processor_time(programs: dict[str, tuple[str, ...]], rounds: int) -> None:
    """Print a table of the processor time of programs, measured in turn; the first one is the baseline."""
    found: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, words in programs.items():
            found[name].append(processor_ms(words))
    base = median(next(iter(found.values())))
    rows = [
        [name, f"{median(times):.1f}", f"{min(times):.1f}", f"{median(times) / base:.1f} times"]
        for name, times in found.items()
    ]
    head = ("program", "median ms", "least ms", "ratio of medians")
    table(f"Processor time of starts, {rounds} interleaved rounds", head, rows)


def compare(name: str, words: tuple[str, ...], given: bytes, rounds: int) -> list[str]:
    """One row: medians and 95th percentiles in milliseconds, and the ratio of the medians."""
    ours, bare = [], []
    for _ in range(rounds):
        ours.append(seconds(words, given) * 1000)
        time.sleep(PAUSE_S)
        bare.append(seconds(BARE, b"") * 1000)
        time.sleep(PAUSE_S)
    figures = (median(bare), median(ours), quantile(ours, 0.95))
    return [name, *(f"{figure:.1f}" for figure in figures), f"{figures[1] / figures[0]:.1f} times"]


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def initialize_ms(home: tuple[str, ...]) -> float:
    """From the start of the relay to the answer to `initialize`."""
    begin = time.perf_counter()
    with subprocess.Popen((SCRIPT, "mcp", *home), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
        assert relay.stdin is not None and relay.stdout is not None
        relay.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        relay.stdin.flush()
        answer = json.loads(relay.stdout.readline())
        took = (time.perf_counter() - begin) * 1000
        relay.stdin.close()
    assert answer["result"]["serverInfo"], answer
    return took


def compare_initialize(home: tuple[str, ...], rounds: int) -> None:
    """Print how soon an agent's `initialize` is answered, with and without a supervisor that runs already."""
    warm, cold, bare = list[float](), list[float](), list[float]()
    for _ in range(rounds):
        bare.append(seconds(BARE, b"") * 1000)
        warm.append(initialize_ms(home))
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as directory:
            cold.append(initialize_ms(("--home", directory)))
            subprocess.run((SCRIPT, "stop", "--home", directory), capture_output=True, check=True)
    base = median(bare)
    rows = [
        [name, f"{median(times):.0f}", f"{quantile(times, 0.95):.0f}", f"{median(times) / base:.1f} times"]
        for name, times in (("bare Python", bare), ("a supervisor runs", warm), ("none runs yet", cold))
    ]
    table(
        f"From the start of `whisper-tui mcp` to its answer, {rounds} rounds", ("", "median ms", "p95", "ratio"), rows
    )


def main(rounds: int) -> None:
    """Measure against a supervisor of its own."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as directory:
        home = ("--home", directory)
        hook, canary = (SCRIPT, "hook", "claude", *home), json.dumps(CANARY).encode()
        subprocess.run((SCRIPT, "list", *home), capture_output=True, check=True)
        rows = [
            compare("`whisper-tui hook claude`, answered", hook, canary, rounds),
            compare("`whisper-tui list`", (SCRIPT, "list", *home), b"", rounds),
            compare("`whisper-tui call` of `true`", (SCRIPT, "call", *home, "execute_command", TRUE), b"", rounds),
            compare("`whisper-tui --version`", (SCRIPT, "--version"), b"", rounds),
        ]
        head = ("program", "bare Python ms", "ours ms", "p95", "ratio of medians")
        table(f"Starts, {rounds} interleaved rounds", head, rows)
        print()
        verbs = {f"`whisper-tui {look}`": look.split() for look in LOOKS}
        programs = {
            "`python -c pass`": BARE,
            "the modules that options, JSON and a socket need": FLOOR,
            **{name: (SCRIPT, verb, *home, *rest) for name, (verb, *rest) in verbs.items()},
        }
        compare_processor_time(programs, max(5, rounds // 4))
        print()
        compare_initialize(home, max(5, rounds // 4))
        subprocess.run((SCRIPT, "stop", *home), capture_output=True, check=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
