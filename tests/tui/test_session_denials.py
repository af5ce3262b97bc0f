"""Never in this session: what begins as a person said is denied, visibly, also after the cockpit was closed."""

import pytest

from tests.rows import each_row
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import ME, ROOT, Scenario
from tests.tui.test_deciding import three_waiting
from whisper_tui.model.call import Argv, CallRequest, Command, CommandSpec, Shell
from whisper_tui.model.decision import Decider, Deny, SessionDenial, beginnings
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.model.verdict import Meaning, Resolved, Verdict
from whisper_tui.tui.commands.several_calls import suggested_words


def ask(scenario: Scenario, command: Command, session_id: str = "s1", *meanings: Meaning) -> str:
    request = CallRequest(session_id=session_id, tool="t", arguments={}, spec=CommandSpec(command=command, cwd=ROOT))
    verdict = Verdict(kind="ask", reason="no rule is about it")
    return scenario.supervisor.ask(request, verdict, Resolved(cwd=ROOT, commands=meanings))


async def never(cockpit: Cockpit, call_id: str, words: str, reason: str = "") -> None:
    await cockpit.select(call_id)
    await cockpit.press("N")
    await cockpit.sees("Deny for session")
    await cockpit.press("home", "shift+end", "backspace", *words, "tab", *reason, "enter")


@each_row(
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


@each_row(
    ("text", "suggested"),
    [("echo 'rate = 20' > tax.conf", ("echo", "rate = 20")), ("echo it's here", ("echo", "it's")), ("", ())],
)
def test_a_suggested_prefix_keeps_quoted_words_whole(text: str, suggested: tuple[str, ...]) -> None:
    scenario = Scenario.begin()
    assert suggested_words(scenario.supervisor.board.calls[ask(scenario, Shell(text=text))]) == suggested


@pytest.mark.slow
async def test_capital_n_denies_this_call_waiting_calls_and_later_ones() -> None:
    scenario = three_waiting()
    again = ask(scenario, Argv(program="./build.sh", args=("twice",)))
    other = ask(scenario, Argv(program="./build.sh"), "s2")
    async with open_cockpit(scenario) as cockpit:
        await never(cockpit, "1", "./build.sh", "not today")
        await cockpit.until(lambda: all(isinstance(cockpit.record(id_).state, Ended) for id_ in ("1", again)))
        assert cockpit.record("1").decision == Deny(reason="not today")
        assert cockpit.record("1").decided_by == Decider(surface="cockpit", who="me")
        await cockpit.sees("1 prefix denied automatically")
        late = ask(scenario, Shell(text="./build.sh --late"))
        await cockpit.until(lambda: isinstance(cockpit.record(late).state, Ended))
        await cockpit.sees(f"Call {late} is denied: you denied './build.sh' for this session.")
        assert isinstance(cockpit.record("2").state, Waiting)
        assert isinstance(cockpit.record(other).state, Waiting)


@pytest.mark.slow
async def test_a_denial_is_lifted_in_its_dialog() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await never(cockpit, "1", "./build.sh")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Ended))
        assert cockpit.record("1").decision == Deny(reason="Not in this session.")
        await cockpit.select("1")
        await cockpit.press("N")
        await cockpit.sees("Denied already: './build.sh'.")
        await cockpit.press("ctrl+x")
        await cockpit.sees("Session denials removed: its calls are no longer denied automatically.")
        call = ask(cockpit.scenario, Argv(program="./build.sh"))
        await cockpit.until(lambda: call in cockpit.screen.board.waiting)
        assert "denied automatically" not in cockpit.text()
        assert isinstance(cockpit.record(call).state, Waiting)


@pytest.mark.slow
async def test_a_denial_applies_without_a_cockpit_and_another_one_lifts_it() -> None:
    scenario = three_waiting()
    async with open_cockpit(scenario) as cockpit:
        await never(cockpit, "1", "./build.sh")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Ended))
    scenario.clock.advance(1)
    call = ask(scenario, Argv(program="./build.sh"))
    assert isinstance(scenario.supervisor.board.calls[call].state, Ended)
    scenario.clock.advance(1)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("1 prefix denied automatically")
        assert f"Call {call} is denied" not in cockpit.text()
        await cockpit.select("2")
        await cockpit.press("N")
        await cockpit.sees("Denied already: './build.sh'.")
        await cockpit.press("ctrl+x")
        await cockpit.until(lambda: not scenario.supervisor.board.denials)


@pytest.mark.slow
async def test_a_closed_session_has_no_denials_in_the_status_bar() -> None:
    scenario = three_waiting()
    async with open_cockpit(scenario) as cockpit:
        await never(cockpit, "1", "./build.sh")
        await cockpit.sees("1 prefix denied automatically")
        await scenario.supervisor.close_session("s1", "it ended")
        await cockpit.until(lambda: "denied automatically" not in cockpit.text())


async def test_no_words_deny_nothing() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await never(cockpit, "1", "")
        await cockpit.sees("Type the words, with every quote closed.")
        await cockpit.press("escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        assert isinstance(cockpit.record("1").state, Waiting)


@pytest.mark.slow
async def test_a_click_and_the_palette_open_it_too() -> None:
    async with open_cockpit(three_waiting(), size=(320, 60)) as cockpit:
        await cockpit.select("1")
        await cockpit.click("#do-deny-class")
        await cockpit.sees("Deny for session", "also while no cockpit")
        await cockpit.press("escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        await cockpit.choose("Never  (N)")
        await cockpit.sees("Deny for session")
