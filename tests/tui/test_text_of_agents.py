"""Text of agents is data: nothing of it is read as markup, and nothing of it reaches the terminal."""

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import Scenario
from whisper_tui.model.call import Argv, CallRequest, ClientInfo, CommandSpec, SessionHello, Shell
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.verdict import Risk, Verdict

ADVERSARIAL = "[red]x[/red] [/] [@click=app.quit]go[/] \x1b[31m\x07\u202e\u200b end"
SHOWN = "[red]x[/red] [/] [@click=app.quit]go[/] ␛[31m␇⟨U+202E⟩⟨U+200B⟩ end"


async def adversarial_play(command: Shell | Argv) -> Scenario:
    scenario = Scenario.begin()
    hello = SessionHello(name=f"s {ADVERSARIAL}", root="/r/[b]", client=ClientInfo(name=ADVERSARIAL, version="[i]"))
    session = await scenario.supervisor.open_session(hello)
    spec = CommandSpec(command=command, cwd="/[b]x\x1b", environment={"A[b]": ADVERSARIAL})
    request = CallRequest(session_id=session.id, tool="[t]\x1b", arguments={}, spec=spec, description=ADVERSARIAL)
    risk = Risk(id="control-characters", sentence=f"risk {ADVERSARIAL}")
    scenario.supervisor.ask(request, Verdict(kind="ask", reason=ADVERSARIAL, risks=(risk,)))
    return scenario


def only_printable(text: str) -> bool:
    return all(ord(c) >= 0x20 and not 0x7F <= ord(c) < 0xA0 for c in text.replace("\n", "")) and "\u202e" not in text


@pytest.mark.slow
async def test_commands_descriptions_and_names_are_shown_letter_by_letter() -> None:
    for command in (Shell(text=ADVERSARIAL), Argv(program=ADVERSARIAL)):
        async with open_cockpit(await adversarial_play(command), size=(200, 60)) as cockpit:
            text = cockpit.text()
            assert only_printable(text)
            assert text.count("[red]x[/red] [/] [@click=app.quit]go[/]") >= 5


async def test_dialogs_and_toasts_show_it_letter_by_letter() -> None:
    async with open_cockpit(await adversarial_play(Shell(text=ADVERSARIAL)), size=(200, 60)) as cockpit:
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.press("e")
        await cockpit.sees("invisible character")
        assert only_printable(cockpit.text())
        await cockpit.press("escape", "D")
        await cockpit.sees("[red]x[/red]")
        assert only_printable(cockpit.text())
        await cockpit.press("escape")
        cockpit.screen.tell(ADVERSARIAL)
        await cockpit.sees("[@click=app.quit]go[/]")
        assert only_printable(cockpit.text())


async def test_an_error_of_the_supervisor_is_not_markup() -> None:
    async with open_cockpit(await adversarial_play(Shell(text="x"))) as cockpit:
        cockpit.scenario.supervisor.break_down(Unavailable(ADVERSARIAL))
        await cockpit.sees("[red]x[/red]")
        assert only_printable(cockpit.text())
