"""What is said in a session: kept in order, bounded, and only where somebody listens."""

from contextlib import aclosing

import pytest

from tests.outside import outside_only
from whisper_tui.model.board import Board
from whisper_tui.model.call import SessionHello
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.event import LONGEST_SAID

pytestmark = outside_only

MODEL = Decider(surface="agent", who="some/model")
ADA = Decider(surface="cockpit", who="ada")


async def test_a_conversation_is_seen_by_whoever_comes_later(harness):
    session = await harness.api.open_session(SessionHello(name="talker", root=harness.session.root, hears=True))
    assert session.hears
    await harness.api.say(session.id, "I am done.", MODEL)
    await harness.api.say(session.id, "Now the tests\n⏳", ADA)
    board = Board()
    async with aclosing(harness.api.watch()) as events:
        async for batch in events:
            board.apply_all(batch)
            if len(board.said.get(session.id, ())) == 2:
                break
    assert [(said.text, said.by) for said in board.said[session.id]] == [
        ("I am done.", MODEL),
        ("Now the tests\n⏳", ADA),
    ]


async def test_messages_to_an_agent_that_does_not_listen_are_refused(harness):
    await harness.api.say(harness.session.id, "I work.", MODEL)
    with pytest.raises(Refused, match="does not listen"):
        await harness.api.say(harness.session.id, "Stop", ADA)
    await harness.api.close_session(harness.session.id, "done")
    with pytest.raises(Refused, match="is closed"):
        await harness.api.say(harness.session.id, "I work.", MODEL)


@pytest.mark.parametrize("text", ["", "x" * (LONGEST_SAID + 1)])
async def test_messages_have_bounds(harness, text):
    with pytest.raises(InvalidRequest, match="characters"):
        await harness.api.say(harness.session.id, text, MODEL)
