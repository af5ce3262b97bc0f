"""The agent's end of a conversation: bounded, and never in the way of the work."""

import asyncio

import pytest

from whisper_tui import Approve, in_process
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import InvalidRequest, Refused, Unavailable
from whisper_tui.model.event import LONGEST_SAID
from whisper_tui.transports.agent_loop import SessionConversation, bounded

HUMAN = Decider(surface="cockpit", who="ada")


def test_long_text_is_cut_and_marked():
    assert bounded("x" * LONGEST_SAID) == "x" * LONGEST_SAID
    cut = bounded("x" * (LONGEST_SAID + 1000))
    assert len(cut) <= LONGEST_SAID
    assert cut.endswith("1,064 more characters are in the agent's terminal")


async def test_a_session_that_does_not_listen_and_a_text_without_bounds_are_refused(tmp_path):
    async with in_process("agent", root=tmp_path, decide=lambda _call: Approve()) as agent:
        with pytest.raises(Refused, match="does not listen"):
            await agent.supervision.say(agent.session.id, "hello", HUMAN)
        for text in ("", "x" * (LONGEST_SAID + 1)):
            with pytest.raises(InvalidRequest, match="characters"):
                await agent.supervision.say(agent.session.id, text, Decider(surface="agent"))
        with pytest.raises(Refused, match="no session"):
            await agent.supervision.say("s77", "hello", HUMAN)


async def test_what_the_agent_says_itself_is_not_heard_and_what_cannot_be_shown_stops_nothing(tmp_path):
    async with in_process("agent", root=tmp_path, decide=lambda _call: Approve()) as agent:
        talk = SessionConversation(agent.supervision, agent.session.id, "m")
        async with talk.receiving():
            await talk.show_task("the task")
            await talk.show_answer("an answer")
            await agent.supervision.close_session(agent.session.id, "over")
            await talk.show_answer("nobody can read this")
            hearing = asyncio.create_task(talk.next_message())
            await asyncio.sleep(0)
            assert not hearing.done()
            await agent.supervision.close()
            with pytest.raises(Unavailable, match="the supervisor has stopped"):
                await asyncio.wait_for(hearing, 60)
