"""A supervisor's engine in a process of its own, to be killed: starts the runs of a plan, takes back those it started.

The plan is a directory. `plan.json` holds the runs; `started/<call>.<attempt>` is made before a start, as a journal
would be; `ended/<call>` holds the ending once a run is over.
"""

import asyncio
import json
import os
import sys
from collections import deque
from pathlib import Path
from typing import Any

from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.supervisor.runs.executor import Executor, HasEnded, HasSettled, NeverRan, RunKey, StartOrder
from whisper_tui.supervisor.runs.local_executor import LocalExecutor

MOST_AT_ONCE = 20


class Plan:
    """What is to be run, what was started, what has ended."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started = directory / "started"
        self.ended = directory / "ended"

    def runs(self) -> dict[str, str]:
        return json.loads((self.directory / "plan.json").read_text())

    def attempts(self) -> dict[str, int]:
        """The last attempt of each call that was started."""
        last: dict[str, int] = {}
        for path in self.started.iterdir():
            call, _, attempt = path.name.rpartition(".")
            last[call] = max(last.get(call, 0), int(attempt))
        return last

    def note_end(self, key: RunKey, told: dict[str, Any]) -> None:
        temporary = self.directory / f"ended.{key.call_id}.tmp"
        temporary.write_text(json.dumps({"attempt": key.attempt, **told}))
        temporary.rename(self.ended / key.call_id)


async def main(directory: Path, executor: Executor) -> None:
    plan = Plan(directory)
    await executor.open()
    commands, attempts = plan.runs(), plan.attempts()
    endings: dict[RunKey, dict[str, Any]] = {}
    following: set[str] = set()

    async def start(call: str, attempt: int) -> None:
        key = RunKey(call, attempt)
        following.add(call)
        (plan.started / f"{call}.{attempt}").touch()
        spec = CommandSpec(command=Shell(text=commands[call]), cwd=str(directory))
        await executor.start(StartOrder(key=key, spec=spec, program="/bin/bash", environment=dict(os.environ)))

    for call, attempt in attempts.items():
        if not (plan.ended / call).exists():
            following.add(call)
            await executor.attach(RunKey(call, attempt))
    waiting = deque(call for call in commands if call not in attempts)
    print("ready", flush=True)
    while waiting and len(following) < MOST_AT_ONCE:
        await start(waiting.popleft(), 1)
    async for report in _each(executor) if following else _nothing():
        call = report.key.call_id
        if isinstance(report, HasEnded):
            endings[report.key] = {"ending": report.ending.model_dump(), "output": report.output.model_dump()}
        elif isinstance(report, NeverRan):
            await start(call, report.key.attempt + 1)
        elif isinstance(report, HasSettled):
            plan.note_end(report.key, endings[report.key])
            following.discard(call)
            if waiting:
                await start(waiting.popleft(), 1)
            elif not following:
                break
    await executor.close()


async def _each(executor: Executor) -> Any:
    async for reports in executor.reports():
        for report in reports:
            yield report


async def _nothing() -> Any:
    return
    yield


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), LocalExecutor(Path(sys.argv[1]) / "runs")))
