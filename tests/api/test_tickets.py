"""Calls that start only when their agent shows a ticket, or that their agent runs itself."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.api.conftest import Harness
from whisper_tui.model.call import CallRequest, CommandSpec, SessionHello, Shell
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.ending import Exited, HandedOver, Withdrawn
from whisper_tui.model.errors import NotAllowed, Refused
from whisper_tui.model.state import Claim, Ended


async def ask(harness: Harness, text: str, ticket: str | None = "secret", **request: Any) -> str:
    spec = CommandSpec(command=Shell(text=text), cwd=harness.session.root)
    asked = CallRequest(session_id=harness.session.id, tool="Bash", arguments={}, spec=spec, ticket=ticket, **request)
    return await harness.api.submit(asked)


async def test_an_approved_call_with_a_ticket_waits_until_it_is_shown(harness: Harness) -> None:
    call_id = await ask(harness, "echo ran")
    waiting = asyncio.create_task(harness.api.decided(call_id))
    await harness.decide(call_id, Approve())
    assert (await waiting).state.kind == "held"
    with pytest.raises(NotAllowed):
        await harness.api.claim(call_id, "guessed", Claim(by="one"))
    assert (await harness.api.record(call_id)).state.kind == "held"
    await harness.api.claim(call_id, "secret", Claim(by="one"))
    record = await harness.api.outcome(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert await harness.output(call_id) == b"ran\n"


async def test_a_ticket_starts_one_run_and_its_claimer_may_say_so_again(harness: Harness) -> None:
    call_id = await ask(harness, "echo ran >> ran")
    await harness.decide(call_id, Approve())
    first = await harness.api.claim(call_id, "secret", Claim(by="one"))
    assert first.claim == Claim(by="one")
    await harness.api.outcome(call_id)
    assert (await harness.api.claim(call_id, "secret", Claim(by="one"))).state.kind == "ended"
    with pytest.raises(Refused, match="used before"):
        await harness.api.claim(call_id, "secret", Claim(by="another"))
    with open(f"{harness.session.root}/ran") as file:
        assert file.read() == "ran\n"


@pytest.mark.parametrize("denied", [False, True])
async def test_a_call_that_is_not_approved_cannot_be_claimed(harness: Harness, denied: bool) -> None:
    call_id = await ask(harness, "touch ran")
    if denied:
        await harness.decide(call_id, Deny(reason="use make"))
    with pytest.raises(Refused, match="use make" if denied else "not approved yet"):
        await harness.api.claim(call_id, "secret", Claim(by="one"))
    assert not os.path.exists(f"{harness.session.root}/ran")


async def test_a_claim_brings_standard_input_and_leaves_out_variables(harness: Harness) -> None:
    hello = SessionHello(name="a", root=harness.session.root, environment={**os.environ, "TOKEN": "t", "KEPT": "k"})
    harness.session = await harness.api.open_session(hello)
    call_id = await ask(harness, "cat; echo $KEPT-$TOKEN-$PAGER")
    await harness.decide(call_id, Approve())
    claim = Claim(by="one", stdin=True, without=("TOKEN",), environment={"PAGER": "cat"})
    await harness.api.claim(call_id, "secret", claim)
    await harness.api.started(call_id)
    await harness.api.write_stdin(call_id, b"typed\n", eof=True)
    assert await harness.output(call_id) == b"typed\nk--cat\n"


async def test_a_call_that_its_agent_runs_is_handed_over_once_and_nothing_is_started(harness: Harness) -> None:
    call_id = await ask(harness, "touch ran", by_agent=True)
    await harness.decide(call_id, Approve())
    record = await harness.api.hand_over(call_id, "secret")
    assert isinstance(record.state, Ended) and record.state.ending == HandedOver()
    with pytest.raises(Refused):
        await harness.api.claim(call_id, "secret", Claim(by="one"))
    assert not os.path.exists(f"{harness.session.root}/ran")


async def test_a_call_whose_agent_takes_no_change_is_approved_as_it_is_or_not_at_all(harness: Harness) -> None:
    call_id = await ask(harness, "touch ran", by_agent=True, takes_change=False)
    edited = CommandSpec(command=Shell(text="touch other"), cwd=harness.session.root)
    with pytest.raises(Refused, match="takes no change of a call") as caught:
        await harness.decide(call_id, Approve(edited=edited))
    assert "Deny it and say what to do instead" in caught.value.sentence()
    assert (await harness.api.record(call_id)).state.kind == "waiting"
    await harness.decide(call_id, Approve())
    assert (await harness.api.hand_over(call_id, "secret")).state.kind == "ended"


async def test_a_call_for_the_supervisor_is_not_handed_over(harness: Harness) -> None:
    call_id = await ask(harness, "true")
    await harness.decide(call_id, Approve())
    with pytest.raises(Refused):
        await harness.api.hand_over(call_id, "secret")


async def test_calls_that_nobody_can_start_are_withdrawn(harness: Harness) -> None:
    approved, waiting = await ask(harness, "echo 1"), await ask(harness, "echo 2")
    await harness.decide(approved, Approve())
    await harness.api.close_session(harness.session.id, "the agent ended")
    gone = await harness.api.outcome(approved)
    assert isinstance(gone.state, Ended) and isinstance(gone.state.ending, Withdrawn)
    assert (await harness.api.record(waiting)).state.kind == "waiting"
    await harness.decide(waiting, Approve())
    later = await harness.api.outcome(waiting)
    assert isinstance(later.state, Ended) and isinstance(later.state.ending, Withdrawn)


async def test_a_call_that_was_left_waits_on_and_is_rejoined_by_the_same_request(harness: Harness) -> None:
    first = await ask(harness, "make", dedup_key="make", rejoin=True)
    second = await ask(harness, "make", dedup_key="make", rejoin=True)
    assert first != second
    await harness.api.leave(first, "the agent's time was over")
    record = await harness.api.record(first)
    assert record.state.kind == "waiting" and record.agent_gave_up == "the agent's time was over"
    assert await ask(harness, "make", dedup_key="make", rejoin=True) == first
    assert (await harness.api.record(first)).agent_gave_up is None
    assert await ask(harness, "make", dedup_key="make", rejoin=True) not in {first, second}


async def test_a_call_that_ended_while_its_agent_was_away_is_rejoined_once(harness: Harness) -> None:
    first = await ask(harness, "echo done", ticket=None, dedup_key="done", rejoin=True)
    await harness.api.leave(first, "the agent's time was over")
    await harness.decide(first, Approve())
    await harness.api.outcome(first)
    assert await ask(harness, "echo done", ticket=None, dedup_key="done", rejoin=True) == first
    assert await ask(harness, "echo done", ticket=None, dedup_key="done", rejoin=True) != first


@pytest.mark.slow
async def test_the_same_key_is_the_same_session_until_its_program_ends(harness: Harness) -> None:
    program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    hello = SessionHello(name="agent", root=harness.session.root, key="agent:1", pid=program.pid)
    first = await harness.api.open_session(hello)
    assert (await harness.api.open_session(hello)).id == first.id
    assert (await harness.api.open_session(hello.model_copy(update={"key": "agent:2"}))).id != first.id
    program.communicate(b"\n")
    async with asyncio.timeout(60):
        async for batch in harness.api.watch():
            if any(event.kind == "session_closed" and event.session_id == first.id for event in batch):
                break
    again = await harness.api.open_session(hello.model_copy(update={"pid": os.getpid()}))
    assert (again.id, again.closed_at, again.pid) == (first.id, None, os.getpid())


async def test_an_offer_to_remember_shows_what_it_would_have_covered(harness: Harness) -> None:
    from whisper_tui.model.decision import ExactScope, PrefixScope

    calls = [await harness.submit(text=text) for text in ("make test", "make test -k a", "make clean", "rm -rf /tmp/x")]
    prefix = await harness.api.would_cover(calls[0], PrefixScope(words=("make", "test")))
    assert (prefix.looked_at, prefix.calls) == (4, (calls[0],))
    exact = await harness.api.would_cover(calls[2], ExactScope(uses=2))
    assert exact.calls == (calls[2],)
    with pytest.raises(Refused, match="too short"):
        await harness.api.would_cover(calls[0], PrefixScope(words=("make",)))
