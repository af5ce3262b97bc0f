"""The conversation of a session: read in the cockpit, and answered there."""

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import Scenario
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import Refused
from whisper_tui.model.event import SessionClosed, SessionOpened, SessionSaid

MODEL = Decider(surface="agent", who="some/model")


def talkative(*, hears: bool = True) -> Scenario:
    """Session s1 has a model that said two things; a call of it waits."""
    scenario = Scenario.begin()
    opened = scenario.supervisor.events[0]
    assert isinstance(opened, SessionOpened)
    session = opened.session.model_copy(update={"hears": hears})
    scenario.supervisor.events[0] = opened.model_copy(update={"session": session})
    scenario.supervisor.board.sessions["s1"] = session
    scenario.ask("build")
    for text in ("I look at the files.\nThere are three.", "Now I build \x1b[31m[bold]them."):
        scenario.supervisor.happen(SessionSaid(at=scenario.clock(), session_id="s1", text=text, by=MODEL))
    return scenario


@pytest.mark.slow
async def test_capital_p_shows_the_models_messages_live_and_as_data() -> None:
    async with open_cockpit(talkative()) as cockpit:
        await cockpit.press("P")
        await cockpit.sees(
            "Conversation with s1 site builder", "some/model", "There are three.", "Now I build ␛[31m[bold]them."
        )
        more = SessionSaid(at=cockpit.scenario.clock(), session_id="s1", text="All is built.", by=MODEL)
        cockpit.scenario.supervisor.happen(more)
        await cockpit.sees("All is built.")


@pytest.mark.slow
async def test_typed_text_is_sent_to_the_agent() -> None:
    async with open_cockpit(talkative()) as cockpit:
        await cockpit.press("P")
        await cockpit.sees("Message to the agent")
        await cockpit.press(*"test it", "enter")
        await cockpit.until(lambda: len(cockpit.scenario.supervisor.board.said["s1"]) == 3)
        said = cockpit.scenario.supervisor.board.said["s1"][-1]
        assert (said.text, said.by) == ("test it", Decider(surface="cockpit", who="me"))
        await cockpit.sees("test it", "Message to the agent")
        await cockpit.press(*"again")
        await cockpit.click("#choose-say")
        await cockpit.until(lambda: cockpit.scenario.supervisor.board.said["s1"][-1].text == "again")


async def test_an_agent_that_does_not_listen_can_only_be_read() -> None:
    async with open_cockpit(talkative(hears=False)) as cockpit:
        await cockpit.press("P")
        await cockpit.sees("Now I build", "does not read messages")
        assert "Message to the agent" not in cockpit.text()


async def test_a_closed_session_accepts_no_messages() -> None:
    async with open_cockpit(talkative()) as cockpit:
        await cockpit.press("P")
        await cockpit.sees("Message to the agent")
        cockpit.scenario.supervisor.happen(SessionClosed(at=cockpit.scenario.clock(), session_id="s1", why="it left"))
        await cockpit.sees("its agent cannot receive messages any more")


async def test_an_unsent_message_stays_in_the_field() -> None:
    async with open_cockpit(talkative()) as cockpit:
        await cockpit.press("P", *"test it")
        cockpit.scenario.supervisor.broken = Refused("the line is dead")
        await cockpit.press("enter")
        await cockpit.sees("The line is dead.", "test it")


async def test_without_a_conversation_the_dialog_explains_how_to_start_one() -> None:
    async with open_cockpit(Scenario.begin()) as cockpit:
        await cockpit.press("P")
        await cockpit.sees("No agent reads messages here.")


@pytest.mark.slow
async def test_the_palette_opens_the_conversation_of_an_agent_without_calls() -> None:
    async with open_cockpit(talkative()) as cockpit:
        await cockpit.choose("Conversation  (P)")
        await cockpit.sees("Conversation with s1 site builder")


async def test_the_conversation_button_is_shown_only_during_a_conversation() -> None:
    async with open_cockpit(talkative()) as cockpit:
        await cockpit.until(lambda: not cockpit.screen.query_one("#do-talk").has_class("-meaningless"))
    scenario = Scenario.begin()
    scenario.ask("build")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("./build.sh")
        assert cockpit.screen.query_one("#do-talk").has_class("-meaningless")
