"""The demo's agents in a terminal: they ask at their own pace, and take whatever a human decides."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from tests.demo.instance import a_supervisor
from whisper_tui.demo import scripted_agents
from whisper_tui.demo.scripted_agents import play_agent, temporary_workspace
from whisper_tui.demo.scripted_human import observing
from whisper_tui.demo.story import SCENES, StoryScene
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.decision import Approve, Decider, Decision, Deny
from whisper_tui.model.state import CallRecord

HUMAN = Decider(surface="demo", who="a test")
QUICK = ("build", "test", "fix", "test-again", "release", "clean", "clean-by-name")


def quickly(ids: Iterable[str]) -> tuple[StoryScene, ...]:
    """Scenes without the time that agents think."""
    return tuple(replace(scene, pause_s=0.0) for scene in SCENES if scene.id in set(ids))


async def play(monkeypatch: pytest.MonkeyPatch, decide: Callable[[CallRecord], Decision]) -> list[CallRecord]:
    """Play some scenes with a human who decides by a function. Returns the calls in their order."""
    monkeypatch.setattr(scripted_agents, "SCENES", quickly(QUICK))
    with temporary_workspace(step_s=0) as workspace:
        async with a_supervisor(workspace) as supervisor, observing(supervisor) as onlooker:
            async with asyncio.timeout(60):
                playing = asyncio.create_task(play_agent(supervisor, workspace))
                while not playing.done():
                    for call_id in tuple(onlooker.board.waiting):
                        record = await supervisor.record(call_id)
                        if record.state.kind == "waiting":
                            await supervisor.decide(call_id, decide(record), HUMAN, record.seen_digest())
                    await asyncio.sleep(0.01)
                await playing
            return list(reversed(await supervisor.history(HistoryQuery(limit=100))))


def commands(records: Iterable[CallRecord]) -> list[str]:
    """The last word of each command that was asked for."""
    return [record.call.spec.command.words()[-1] for record in records]


async def test_an_agent_that_is_approved_does_not_ask_again_in_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    records = await play(monkeypatch, lambda _: Approve())
    assert "rm -rf cache drafts" in commands(records)
    assert "rm -rf cache" not in commands(records)
    assert len(records) == len(QUICK) - 1


async def test_a_denied_agent_follows_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    records = await play(monkeypatch, lambda _: Deny(reason="no"))
    assert commands(records).count("rm -rf cache") == 1
    assert all(record.process is None for record in records)


async def test_a_scene_is_asked_only_after_its_predecessor_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    records = await play(monkeypatch, lambda _: Approve())
    ended = {record.call.spec.command.words()[-1]: record for record in records}
    fix = ended["echo 'rate = 20' > tax.conf"]
    assert [record.call.submitted_at >= fix.state.at for record in records if commands([record]) == ["./test.sh"]] == [
        False,
        True,
    ]


async def test_the_agents_stop_when_the_demo_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_workspace(step_s=0) as workspace:
        async with a_supervisor(workspace) as supervisor, observing(supervisor) as onlooker:
            playing = asyncio.create_task(play_agent(supervisor, workspace))
            await onlooker.see("1", lambda _: True, "to arrive")
            playing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await playing
