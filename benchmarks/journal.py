"""What a fact costs before its effect: the journal against a line in a file, with and without waiting for the disk."""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from whisper_tui.model.call import Argv, CommandSpec, Session, ToolCall
from whisper_tui.model.ending import Withdrawn
from whisper_tui.model.event import EVENT, Event, Finished, SessionOpened, Submitted
from whisper_tui.supervisor.journal.journal import Journal
from whisper_tui.supervisor.journal.store import Store

ROUNDS, FACTS = 5, 400
HISTORY = 20_000
"""Calls in the journal that is opened."""


def call(number: int) -> Submitted:
    """A call as agents make them."""
    spec = CommandSpec(command=Argv(program="pytest", args=("-x", f"tests/test_{number}.py")), cwd="/srv/project")
    arguments = {"command": "pytest", "args": ["-x", f"tests/test_{number}.py"]}
    return Submitted(
        at=time.time(),
        call=ToolCall(
            id=str(number),
            session_id="s1",
            tool="execute_command",
            arguments=arguments,
            spec=spec,
            submitted_at=time.time(),
        ),
    )


def opened() -> SessionOpened:
    """The session of all calls."""
    return SessionOpened(at=0.0, session=Session(id="s1", name="benchmark", root="/srv/project", opened_at=0.0))


def microseconds(write: Callable[[Event], object], first: int) -> float:
    """Median time of writing one fact."""
    took = []
    for number in range(first, first + FACTS):
        fact = call(number)
        began = time.perf_counter()
        write(fact)
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e6


def costs(place: Path) -> list[tuple[str, float, float]]:
    """Journal and file, in turns: name, median microseconds, spread between rounds."""
    journal = Journal(place / "journal.sqlite")
    journal.append((opened(),))
    file = (place / "lines").open("ab", buffering=0)

    def line(event: Event) -> None:
        file.write(EVENT.dump_json(event) + b"\n")

    def flushed_line(event: Event) -> None:
        line(event)
        os.fsync(file.fileno())

    ways: dict[str, Callable[[Event], object]] = {
        "line in a file": line,
        "journal": lambda event: journal.append((event,)),
        "line in a file, flushed": flushed_line,
        "journal, flushed": lambda event: journal.append((event,), durable=True),
    }
    rounds: dict[str, list[float]] = {name: [] for name in ways}
    number = 1
    for _ in range(ROUNDS):
        for name, write in ways.items():
            rounds[name].append(microseconds(write, number))
            number += FACTS
    file.close()
    journal.close()
    return [(name, statistics.median(took), max(took) - min(took)) for name, took in rounds.items()]


def opening(place: Path) -> tuple[float, float]:
    """Seconds to take up a long history, and to read the same facts from a file and parse them as plain JSON."""
    journal = Journal(place / "long.sqlite")
    facts: list[Event] = [opened()]
    for number in range(1, HISTORY + 1):
        facts.append(call(number))
        facts.append(Finished(at=0.0, call_id=str(number), ending=Withdrawn(why="benchmark")))
    journal.append(facts)
    journal.close()
    lines = place / "long.jsonl"
    lines.write_bytes(b"".join(EVENT.dump_json(fact) + b"\n" for fact in facts))
    began = time.perf_counter()
    ledger = Store(Journal(place / "long.sqlite"))
    took = time.perf_counter() - began
    ledger.close()
    began = time.perf_counter()
    with lines.open("rb") as file:
        for line in file:
            json.loads(line)
    return took, time.perf_counter() - began


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        print("### Time to journal an event\n")
        print("| way | median µs | spread between rounds |\n|---|---:|---:|")
        for way, median, spread in costs(place):
            print(f"| {way} | {median:.0f} | {spread:.0f} |")
        took, plain = opening(place)
        print(
            f"\nLoading a history of {HISTORY:,} calls: {took:.2f} s (reading all of it as plain JSON: {plain:.2f} s)."
        )


if __name__ == "__main__":
    main()
