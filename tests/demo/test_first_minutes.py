"""The first minutes of somebody new: the demo in a cockpit, played by keys as its captions say."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

import pytest

from tests.demo.instance import a_supervisor
from tests.tui.cockpit import Cockpit
from whisper_tui.demo import scripted_agents
from whisper_tui.demo.scripted_agents import captions, play_agent, temporary_workspace
from whisper_tui.demo.story import SCENES, WANTED, StoryScene
from whisper_tui.model.ending import Denied, Exited, HandedOver
from whisper_tui.model.state import CallRecord, Ended, Waiting
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.cockpit.call_panel import Guidance
from whisper_tui.tui.commands.undo_approval import UndoSettings

PLAYED = ("hours", "clean", "makefile", "clean-by-name", "release", "build", "test", "fix", "test-again", "price")


@dataclass
class Newcomer:
    """Somebody in front of the demo, who finds calls by their scenes."""

    cockpit: Cockpit
    scenes: dict[str, StoryScene]

    def record(self, scene: str) -> CallRecord | None:
        """The call of a scene; None: it was not submitted yet."""
        ids = [id_ for id_, found in self.scenes.items() if found.id == scene]
        return self.cockpit.screen.board.calls.get(ids[0]) if ids else None

    async def reach(self, scene: str) -> StoryScene:
        """Go to the waiting call of a scene by the key for the next one, and read its caption."""
        await self.cockpit.until(lambda: isinstance(getattr(self.record(scene), "state", None), Waiting))
        while self.cockpit.screen.shown is None or self.scenes[self.cockpit.screen.shown.id].id != scene:
            await self.cockpit.press("n")
        found = next(each for each in self.scenes.values() if each.id == scene)
        await self.cockpit.sees(found.caption[:60])
        await self.cockpit.until(lambda: not self.cockpit.screen.decisions.guard.holds_at(time.monotonic()))
        return found

    async def over(self, scene: str) -> CallRecord:
        """Wait until the call of a scene has ended."""
        await self.cockpit.until(lambda: isinstance(getattr(self.record(scene), "state", None), Ended))
        record = self.record(scene)
        assert record is not None
        return record


@asynccontextmanager
async def newcomer(monkeypatch: pytest.MonkeyPatch, *, undo_s: float = 0.3) -> AsyncIterator[Newcomer]:
    """The demo as `whisper-tui demo` shows it, with agents that need no time to think."""
    quick = tuple(replace(scene, pause_s=0.0) for scene in SCENES if scene.id in PLAYED)
    monkeypatch.setattr(scripted_agents, "SCENES", quick)
    scenes: dict[str, StoryScene] = {}

    with temporary_workspace(step_s=0) as workspace:
        async with a_supervisor(workspace) as supervisor:
            agents = asyncio.create_task(play_agent(supervisor, workspace, scenes))
            words = captions(agents, scenes)
            app = CockpitApp(
                supervisor, user="me", guidance=Guidance(caption=words), undo=UndoSettings("every", undo_s)
            )
            async with app.run_test(size=(130, 48), notifications=True) as pilot:
                yield Newcomer(Cockpit(app, pilot, scenario=None), scenes)  # type: ignore[arg-type]
            agents.cancel()
            with suppress(asyncio.CancelledError):
                await agents


@pytest.mark.slow
async def test_the_first_minutes_can_be_played_as_the_captions_say(monkeypatch: pytest.MonkeyPatch) -> None:
    async with newcomer(monkeypatch) as person:
        cockpit = person.cockpit
        await person.reach("hours")
        await cockpit.sees("1 − Open Monday to Friday, 9 to 17", "1 + Open Monday to Saturday, 9 to 18")
        await cockpit.press("a")
        await person.over("hours")

        await person.reach("clean")
        await cockpit.sees("▲▲ severe  Deletes recursively", "− cache, drafts")
        await cockpit.press("d", *"only the cache", "enter")
        assert isinstance((await person.over("clean")).state.ending, Denied)  # type: ignore[union-attr]
        await person.reach("clean-by-name")
        await cockpit.press("a")
        await person.over("clean-by-name")

        await person.reach("makefile")
        await cockpit.sees("mkdir -p build", "./release.sh production", "runs later")
        await cockpit.press("e")
        await cockpit.sees("Content of Makefile")
        await cockpit.press(*["down"] * 10, *["backspace"] * len("\t./release.sh production\n"), "ctrl+s")
        edited = await person.over("makefile")
        assert isinstance(edited.state, Ended) and edited.state.ending == HandedOver()
        assert [change.content for change in edited.spec.command.changes] == [WANTED]  # type: ignore[union-attr]

        await person.reach("release")
        await cockpit.press("e", *["backspace"] * len("production"), *"staging", "ctrl+s")
        released = await person.over("release")
        assert released.spec.command.words()[-1] == "staging"

        await person.reach("build")
        await cockpit.press("a")
        await person.over("build")
        await cockpit.sees("Built 4 pages and 12 images")  # in the strip of recent decisions

        await person.reach("test")
        await cockpit.press("F", "a")
        tested = await person.over("test")
        assert isinstance(tested.state, Ended) and tested.state.ending == Exited(code=1)

        await person.reach("fix")
        await cockpit.sees("− rate = 19", "+ rate = 20")
        await cockpit.press("a")
        again = await person.over("test-again")
        assert again.decided_by is not None and again.decided_by.surface == "memory"

        await person.reach("price")
        await cockpit.sees("shop", "set_price", "Always allow calls of mcp__shop__set_price")
        await cockpit.press("A", "down")
        await cockpit.sees("Ctrl+N: calls of every tool of shop")
        await cockpit.press("ctrl+s")
        await person.over("price")
        await cockpit.sees("whisper-tui install claude")


async def test_an_approval_of_the_demo_can_be_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with newcomer(monkeypatch, undo_s=60) as person:
        await person.reach("hours")
        # For a standing approval the time to undo it is as long as the settings say.
        await person.cockpit.press("F", "a")
        await person.cockpit.sees("Approving call")
        await person.cockpit.press("u")
        await person.reach("hours")


def test_the_first_calls_are_a_change_with_a_diff_a_real_risk_and_an_edit() -> None:
    first = [scene.id for scene in sorted(SCENES, key=lambda scene: scene.pause_s) if scene.follows is None][:3]
    assert first == ["hours", "clean", "makefile"]
