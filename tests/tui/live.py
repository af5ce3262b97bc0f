"""The cockpit over a supervisor whose commands are real processes."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from textual.pilot import Pilot

from tests.tui.cockpit import toast_text
from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.model.decision import Approve, Decider
from whisper_tui.model.state import CallRecord
from whisper_tui.policy.rules.rule import NO_RULES, Rules
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.supervisor.supervisor import Supervisor
from whisper_tui.system.state_directory import Directories
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.cockpit_screen import CockpitScreen

HUMAN = Decider(surface="library", who="tester")
PATIENCE = 3000


@dataclass
class Live:
    """A running cockpit, and a session whose commands are approved at once."""

    supervisor: Supervisor
    app: CockpitApp
    pilot: Pilot[None]
    session_id: str
    workspace: Path

    async def start(self, text: str, *, tty: bool = False, accepts_input: bool = False) -> str:
        """Start a line of bash; returns its call once the process is there and the cockpit shows it."""
        spec = CommandSpec(
            command=Shell(text=text), cwd=str(self.workspace), tty=tty, accepts_input=accepts_input or tty, grace_s=0.5
        )
        request = CallRequest(session_id=self.session_id, tool="run_shell_command", arguments={}, spec=spec)
        call_id = await self.supervisor.submit(request)
        record = await self.supervisor.record(call_id)
        if record.state.kind == "waiting":
            await self.supervisor.decide(call_id, Approve(), HUMAN, record.seen_digest())
        await asyncio.wait_for(self.supervisor.started(call_id), 60)
        await self.until(lambda: call_id in self.screen.board.calls and self.board(call_id).process is not None)
        return call_id

    @property
    def screen(self) -> CockpitScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, CockpitScreen)
        return screen

    def board(self, call_id: str) -> CallRecord:
        """The call as the cockpit knows it."""
        return self.screen.board.calls[call_id]

    def text(self) -> str:
        """What is on the terminal."""
        update = self.app.screen._compositor.render_update(full=True, screen_stack=self.app._background_screens)
        return "\n".join("".join(s.text for piece in pieces for s in piece) for pieces in update.strips)  # type: ignore[union-attr]

    async def until(self, condition: Callable[[], Any]) -> None:
        for _ in range(PATIENCE):
            if condition():
                return
            await self.pilot.pause(0.03)
        raise AssertionError(f"the condition was not met; on the screen:\n{self.text()}")

    async def press(self, key: str) -> None:
        """Press a key once what is on the screen has been there for so long that keys are meant for it."""
        decisions = self.screen.decisions
        await self.until(lambda: not decisions.guard.holds_at(monotonic()))
        decisions.typing.forget()
        await self.pilot.press(key)

    async def sees(self, *words: str) -> None:
        def are_there() -> bool:
            shown = f"{self.text()}\n{toast_text(self.app)}"  # drawn once for all words
            return all(word in shown for word in words)

        await self.until(are_there)


@asynccontextmanager
async def live(
    directory: Path, size: tuple[int, int] = (120, 40), rules: Rules = NO_RULES, **settings: int
) -> AsyncIterator[Live]:
    """A cockpit over real processes; at the end all of them are ended."""
    home = Directories(config=directory / "config", state=directory / "state", runtime=directory / "run")
    workspace = directory / "workspace"
    workspace.mkdir()
    executor = LocalExecutor(home.state / "runs")
    supervisor = Supervisor(home, executor, settings=SupervisorSettings(**{"workers": 4, **settings}), rules=rules)
    await supervisor.open()
    hello = SessionHello(name="agent", root=str(workspace), environment={"PATH": os.environ["PATH"]})
    session = await supervisor.open_session(hello)
    app = CockpitApp(supervisor, user="me")
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            yield Live(supervisor, app, pilot, session.id, workspace)
    finally:
        await supervisor.shutdown(end_runs=True)
        await supervisor.close()
