"""The conversation of a session: read in the cockpit, and answered there."""

import pytest

from tests.tui.cockpit import cockpit
from tests.tui.scenes import Play
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import Refused
from whisper_tui.model.event import SessionClosed, SessionOpened, SessionSaid

MODEL = Decider(surface="agent", who="some/model")


def talkative(*, hears: bool = True) -> Play:
    """Session s1 has a model that said two things; a call of it waits."""
    play = Play.begin()
    opened = play.stage.events[0]
    assert isinstance(opened, SessionOpened)
    session = opened.session.model_copy(update={"hears": hears})
    play.stage.events[0] = opened.model_copy(update={"session": session})
    play.stage.board.sessions["s1"] = session
    play.ask("build")
    for text in ("I look at the files.\nThere are three.", "Now I build \x1b[31m[bold]them."):
        play.stage.happen(SessionSaid(at=play.clock(), session_id="s1", text=text, by=MODEL))
    return play


@pytest.mark.slow
async def test_capital_p_shows_the_models_messages_live_and_as_data() -> None:
    async with cockpit(talkative()) as seat:
        await seat.press("P")
        await seat.sees(
            "Conversation with site builder", "some/model", "There are three.", "Now I build ␛[31m[bold]them."
        )
        more = SessionSaid(at=seat.play.clock(), session_id="s1", text="All is built.", by=MODEL)
        seat.play.stage.happen(more)
        await seat.sees("All is built.")


@pytest.mark.slow
async def test_typed_text_is_sent_to_the_agent() -> None:
    async with cockpit(talkative()) as seat:
        await seat.press("P")
        await seat.sees("Message to the agent")
        await seat.press(*"test it", "enter")
        await seat.until(lambda: len(seat.play.stage.board.said["s1"]) == 3)
        said = seat.play.stage.board.said["s1"][-1]
        assert (said.text, said.by) == ("test it", Decider(surface="cockpit", who="me"))
        await seat.sees("test it", "Message to the agent")
        await seat.press(*"again")
        await seat.click("#choose-say")
        await seat.until(lambda: seat.play.stage.board.said["s1"][-1].text == "again")


async def test_an_agent_that_does_not_listen_can_only_be_read() -> None:
    async with cockpit(talkative(hears=False)) as seat:
        await seat.press("P")
        await seat.sees("Now I build", "does not read messages")
        assert "Message to the agent" not in seat.text()


async def test_a_closed_session_accepts_no_messages() -> None:
    async with cockpit(talkative()) as seat:
        await seat.press("P")
        await seat.sees("Message to the agent")
        seat.play.stage.happen(SessionClosed(at=seat.play.clock(), session_id="s1", why="it left"))
        await seat.sees("its agent cannot receive messages any more")


async def test_an_unsent_message_stays_in_the_field() -> None:
    async with cockpit(talkative()) as seat:
        await seat.press("P", *"test it")
        seat.play.stage.broken = Refused("the line is dead")
        await seat.press("enter")
        await seat.sees("The line is dead.", "test it")


async def test_without_a_conversation_the_dialog_explains_how_to_start_one() -> None:
    async with cockpit(Play.begin()) as seat:
        await seat.press("P")
        await seat.sees("No agent reads messages here.")


@pytest.mark.slow
async def test_the_palette_opens_the_conversation_of_an_agent_without_calls() -> None:
    async with cockpit(talkative()) as seat:
        await seat.choose("Conversation  (P)")
        await seat.sees("Conversation with site builder")


async def test_the_conversation_button_is_shown_only_during_a_conversation() -> None:
    async with cockpit(talkative()) as seat:
        await seat.until(lambda: not seat.screen.query_one("#do-talk").has_class("-meaningless"))
    play = Play.begin()
    play.ask("build")
    async with cockpit(play) as seat:
        await seat.sees("./build.sh")
        assert seat.screen.query_one("#do-talk").has_class("-meaningless")
