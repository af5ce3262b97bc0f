"""The agent frameworks themselves, each with a scripted model: their calls are approved, changed and denied."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from whisper_tui import Approve, CallRecord, Deny, Function, in_process
from whisper_tui.library import Agent
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended, Waiting

Ask = Callable[[Agent, str, dict[str, Any]], Any]
"""Has a framework's agent call one tool with arguments, and returns the text that its model is given as the result."""


@pytest.fixture(params=["openai_agents", "pydantic_ai", "langchain", "google_adk", "smolagents"])
def ask(request: pytest.FixtureRequest) -> Ask:
    # Not at the top: every process that runs a part of the tests would import the frameworks to collect these.
    match request.param:
        case "google_adk":
            pytest.importorskip("google.adk", reason="pip install '.[google-adk]'")
            from tests.library import ask_google_adk

            return ask_google_adk.ask
        case "smolagents":
            pytest.importorskip("smolagents", reason="pip install '.[smolagents]'")
            from tests.library import ask_smolagents

            return ask_smolagents.ask
    from tests.library.frameworks import ASKING

    return ASKING[request.param]


@pytest.fixture
def sent() -> list[tuple[str, int]]:
    """The calls that reach the framework's own tool."""
    from tests.library.own_tool import SENT

    SENT.clear()
    return SENT


def everything(_record: CallRecord) -> Approve:
    return Approve()


async def test_an_approved_command_runs_and_the_model_gets_its_output(ask: Ask, tmp_path):
    async with in_process("my agent", root=tmp_path, decide=everything) as agent:
        told = await ask(agent, "execute_command", {"command": "echo", "args": ["hello"]})
    assert "hello" in told


async def test_the_model_is_told_why_a_command_was_denied(ask: Ask, tmp_path):
    async with in_process("my agent", root=tmp_path, decide=lambda _record: Deny(reason="not today")) as agent:
        told = await ask(agent, "execute_command", {"command": "touch", "args": ["made"]})
    assert told == "Denied by the human. Nothing ran. Reason: not today"
    assert not (tmp_path / "made").exists()


async def test_an_approved_call_of_an_own_tool_is_carried_out_and_recorded(ask: Ask, sent, tmp_path):
    async with in_process("my agent", root=tmp_path, decide=everything) as agent:
        assert await ask(agent, "send", {"to": "a@b.org"}) == "sent to a@b.org"
        record = await agent.supervision.record("1")
    assert sent == [("a@b.org", 1)]
    assert (record.call.tool, record.call.description) == ("send", "Send a letter.")
    assert isinstance(record.state, Ended)
    assert isinstance(record.state.ending, Exited)


async def test_a_denied_call_of_an_own_tool_does_not_reach_it(ask: Ask, sent, tmp_path):
    async with in_process("my agent", root=tmp_path, decide=lambda _record: Deny(reason="no letters")) as agent:
        told = await ask(agent, "send", {"to": "a@b.org"})
    assert told == "Denied by the human. Nothing ran. Reason: no letters"
    assert sent == []


async def test_changed_arguments_reach_the_own_tool_and_the_model_is_told(ask: Ask, sent, tmp_path):
    def change(record: CallRecord) -> Approve:
        command = record.spec.command
        assert isinstance(command, Function)
        changed = command.model_copy(update={"arguments": {"to": "c@d.org", "copies": 2}})
        return Approve(edited=record.spec.model_copy(update={"command": changed}))

    async with in_process("my agent", root=tmp_path, decide=change) as agent:
        told = await ask(agent, "send", {"to": "a@b.org"})
    assert sent == [("c@d.org", 2)]
    assert "The human changed the arguments" in told
    assert "sent to c@d.org" in told


async def until_it_waits(agent: Agent) -> CallRecord:
    """Return the call of the agent once it waits for a decision."""
    async for _events in agent.supervision.watch(0):
        for record in await agent.supervision.history(HistoryQuery()):
            if isinstance(record.state, Waiting):
                return record
    raise AssertionError("the supervisor has ended")


def nothing(_record: CallRecord) -> None:
    """Leave the decision to somebody else."""


async def test_a_pending_call_keeps_the_agent_waiting_until_somebody_decides(ask: Ask, sent, tmp_path):
    async with in_process("my agent", root=tmp_path, decide=nothing) as agent:
        asking = asyncio.create_task(ask(agent, "send", {"to": "a@b.org"}))
        record = await until_it_waits(agent)
        assert (sent, asking.done()) == ([], False)
        await agent.supervision.decide(record.id, Approve(), Decider(surface="library"), record.seen_digest())
        assert await asking == "sent to a@b.org"
    assert sent == [("a@b.org", 1)]


async def test_what_an_approved_command_has_changed_is_undone_by_the_id_of_its_call(ask: Ask, overlays, tmp_path):
    (work := tmp_path / "work").mkdir()
    (work / "kept.txt").write_text("before\n")
    async with in_process("my agent", root=work, decide=lambda _record: Approve(undoable=True)) as agent:
        await ask(agent, "run_shell_command", {"command": "echo after > kept.txt"})
        assert (work / "kept.txt").read_text() == "after\n"
        (record,) = await agent.supervision.history(HistoryQuery(session_id=agent.session.id))
        await agent.supervision.undo(record.id, (), "undo", Decider(surface="library"))
    assert (work / "kept.txt").read_text() == "before\n"
