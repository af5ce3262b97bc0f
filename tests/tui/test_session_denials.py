"""Never in this session: what begins as a person said is denied, visibly, also after the cockpit was closed."""

import pytest

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import ME, ROOT, Play
from tests.tui.test_deciding import three_waiting
from whisper_tui.model.call import Argv, CallRequest, Command, CommandSpec, Shell
from whisper_tui.model.decision import Decider, Deny, SessionDenial, beginnings
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.model.verdict import Meaning, Resolved, Verdict
from whisper_tui.tui.commands.several_calls import suggested_words


def ask(play: Play, command: Command, session_id: str = "s1", *meanings: Meaning) -> str:
    request = CallRequest(session_id=session_id, tool="t", arguments={}, spec=CommandSpec(command=command, cwd=ROOT))
    verdict = Verdict(kind="ask", reason="no rule is about it")
    return play.stage.ask(request, verdict, Resolved(cwd=ROOT, commands=meanings))


async def never(seat: Cockpit, call_id: str, words: str, reason: str = "") -> None:
    await seat.select(call_id)
    await seat.press("N")
    await seat.sees("Block for session")
    await seat.press("home", "shift+end", "backspace", *words, "tab", *reason, "enter")


@pytest.mark.parametrize(
    ("command", "meanings", "refused"),
    [
        (Argv(program="npm", args=("publish", "--tag", "x")), (), True),
        (Argv(program="npm", args=("pack",)), (), False),
        (Shell(text="npm publish"), (), True),
        (Shell(text="npm   publish --dry-run"), (), True),
        (Shell(text="npm publisher"), (), False),
        (Shell(text="npm 'publish' --tag \"it's\""), (), True),
        (Shell(text="npm 'publish again'"), (), False),
        (Shell(text="npm publish it's"), (), True),
        (Shell(text="cd x && npm publish"), (), False),
        (Shell(text="cd x && npm publish"), (Meaning(words=("cd", "x")), Meaning(words=("npm", "publish"))), True),
        (Shell(text="$X"), (Meaning(words=(None, "publish")),), False),
    ],
)
def test_calls_with_the_denied_prefix_are_refused(
    command: Command, meanings: tuple[Meaning, ...], refused: bool
) -> None:
    denial = SessionDenial(id="d1", session_id="s1", words=("npm", "publish"), denied_at=0.0, by=ME)
    resolved = Resolved(cwd=ROOT, commands=meanings)
    assert denial.matches(beginnings(command, Verdict(kind="ask", reason="no rule is about it"), resolved)) is refused


@pytest.mark.parametrize(
    ("text", "suggested"),
    [("echo 'rate = 20' > tax.conf", ("echo", "rate = 20")), ("echo it's here", ("echo", "it's")), ("", ())],
)
def test_a_suggested_prefix_keeps_quoted_words_whole(text: str, suggested: tuple[str, ...]) -> None:
    play = Play.begin()
    assert suggested_words(play.stage.board.calls[ask(play, Shell(text=text))]) == suggested


@pytest.mark.slow
async def test_capital_n_denies_this_call_waiting_calls_and_later_ones() -> None:
    play = three_waiting()
    again = ask(play, Argv(program="./build.sh", args=("twice",)))
    other = ask(play, Argv(program="./build.sh"), "s2")
    async with cockpit(play) as seat:
        await never(seat, "1", "./build.sh", "not today")
        await seat.until(lambda: all(isinstance(seat.record(id_).state, Ended) for id_ in ("1", again)))
        assert seat.record("1").decision == Deny(reason="not today")
        assert seat.record("1").decided_by == Decider(surface="cockpit", who="me")
        await seat.sees("1 prefix denied automatically")
        late = ask(play, Shell(text="./build.sh --late"))
        await seat.until(lambda: isinstance(seat.record(late).state, Ended))
        await seat.sees(f"Call {late} is denied: you denied './build.sh' for this session.")
        assert isinstance(seat.record("2").state, Waiting)
        assert isinstance(seat.record(other).state, Waiting)


@pytest.mark.slow
async def test_a_denial_is_lifted_in_its_dialog() -> None:
    async with cockpit(three_waiting()) as seat:
        await never(seat, "1", "./build.sh")
        await seat.until(lambda: isinstance(seat.record("1").state, Ended))
        assert seat.record("1").decision == Deny(reason="Not in this session.")
        await seat.select("1")
        await seat.press("N")
        await seat.sees("Denied already: './build.sh'.")
        await seat.press("ctrl+x")
        await seat.sees("Session denials removed: every call of this session is asked again.")
        call = ask(seat.play, Argv(program="./build.sh"))
        await seat.until(lambda: call in seat.screen.board.waiting)
        assert "denied automatically" not in seat.text()
        assert isinstance(seat.record(call).state, Waiting)


@pytest.mark.slow
async def test_a_denial_applies_without_a_cockpit_and_another_one_lifts_it() -> None:
    play = three_waiting()
    async with cockpit(play) as seat:
        await never(seat, "1", "./build.sh")
        await seat.until(lambda: isinstance(seat.record("1").state, Ended))
    play.clock.advance(1)
    call = ask(play, Argv(program="./build.sh"))
    assert isinstance(play.stage.board.calls[call].state, Ended)
    play.clock.advance(1)
    async with cockpit(play) as seat:
        await seat.sees("1 prefix denied automatically")
        assert f"Call {call} is denied" not in seat.text()
        await seat.select("2")
        await seat.press("N")
        await seat.sees("Denied already: './build.sh'.")
        await seat.press("ctrl+x")
        await seat.until(lambda: not play.stage.board.denials)


@pytest.mark.slow
async def test_a_closed_session_has_no_denials_in_the_status_bar() -> None:
    play = three_waiting()
    async with cockpit(play) as seat:
        await never(seat, "1", "./build.sh")
        await seat.sees("1 prefix denied automatically")
        await play.stage.close_session("s1", "it ended")
        await seat.until(lambda: "denied automatically" not in seat.text())


async def test_no_words_deny_nothing() -> None:
    async with cockpit(three_waiting()) as seat:
        await never(seat, "1", "")
        await seat.sees("Type the words, with every quote closed.")
        await seat.press("escape")
        await seat.until(lambda: len(seat.app.screen_stack) == 1)
        assert isinstance(seat.record("1").state, Waiting)


@pytest.mark.slow
async def test_a_click_and_the_palette_open_it_too() -> None:
    async with cockpit(three_waiting(), size=(200, 60)) as seat:
        await seat.select("1")
        await seat.click("#do-deny-class")
        await seat.sees("Block for session", "also while no cockpit")
        await seat.press("escape")
        await seat.until(lambda: len(seat.app.screen_stack) == 1)
        await seat.choose("Never  (N)")
        await seat.sees("Block for session")
