"""Approving more than one call: how far, how often, how long, and what it would have let through."""

import pytest
from textual.widgets import Input, OptionList

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import Play
from tests.tui.test_deciding import three_waiting
from whisper_tui.model.call import Argv, CommandSpec
from whisper_tui.model.decision import Approve, ExactScope, PrefixScope, RuleScope
from whisper_tui.model.state import Running, Waiting
from whisper_tui.model.verdict import Verdict
from whisper_tui.tui.dialogs.drafts import ScopeDraft, scope_of

SPEC = CommandSpec(command=Argv(program="git", args=("push",)), cwd="/srv")


def with_prefixes(*prefixes: tuple[str, ...]) -> Play:
    """Call 1 has a verdict that suggests these beginnings."""
    play = three_waiting()
    for number, event in enumerate(play.stage.events):
        if event.kind == "judged" and event.call_id == "1":
            verdict = Verdict(kind="ask", reason=event.verdict.reason, prefixes=prefixes)
            play.stage.events[number] = event.model_copy(update={"verdict": verdict})
            record = play.stage.board.calls["1"]
            play.stage.board.calls["1"] = record.model_copy(update={"verdict": verdict})
    return play


async def opened(seat: Cockpit, reach: int = 0) -> None:
    await seat.select("1")
    await seat.press("A")
    await seat.sees("Approve call 1, and more")
    await seat.press(*["down"] * reach)


@pytest.mark.parametrize(
    ("draft", "scope"),
    [
        (ScopeDraft("exact"), ExactScope()),
        (ScopeDraft("exact", uses="3"), ExactScope(uses=3)),
        (ScopeDraft("exact", minutes="2.5"), ExactScope(minutes=2.5)),
        (
            ScopeDraft("here", "git 'push'", "1", "9"),
            PrefixScope(words=("git", "push"), directory="/srv", uses=1, minutes=9),
        ),
        (ScopeDraft("session", "git push"), PrefixScope(words=("git", "push"))),
        (ScopeDraft("project", "git push", uses="nonsense"), RuleScope(words=("git", "push"))),
        (ScopeDraft("user", "git push", minutes="60"), RuleScope(words=("git", "push"), where="user", minutes=60)),
    ],
)
def test_a_draft_is_parsed_into_a_scope(draft: ScopeDraft, scope: object) -> None:
    problems: list[str] = []
    assert scope_of(draft, SPEC, problems) == scope
    assert problems == []


@pytest.mark.parametrize(
    ("draft", "problem"),
    [
        (ScopeDraft("here"), "Type the first words"),
        (ScopeDraft("here", "git 'push"), "The prefix contains an unclosed quote"),
        (ScopeDraft("here", "git\u200b push"), "an invisible character (U+200B)"),
        (ScopeDraft("exact", uses="0"), "whole number above 0"),
        (ScopeDraft("exact", uses="two"), "whole number above 0"),
        (ScopeDraft("exact", minutes="-1"), "Minutes must be a number above 0"),
        (ScopeDraft("exact", minutes="nan"), "Minutes must be a number above 0"),
    ],
)
def test_mistakes_in_a_scope_are_reported(draft: ScopeDraft, problem: str) -> None:
    problems: list[str] = []
    assert scope_of(draft, SPEC, problems) is None
    assert problem in problems[0]


@pytest.mark.slow
async def test_capital_a_approves_with_a_limit_of_uses_and_time() -> None:
    async with cockpit(three_waiting(), size=(200, 60)) as seat:
        await opened(seat)
        await seat.sees("Of the last 3 calls, 1 would have run without approval", "./build.sh")
        await seat.press("enter", "3", "tab", *"10", "ctrl+s")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        assert seat.record("1").decision == Approve(remember=ExactScope(uses=3, minutes=10))
        await seat.sees("3 more times")


@pytest.mark.slow
async def test_a_suggested_prefix_can_be_edited_with_a_live_preview() -> None:
    async with cockpit(with_prefixes(("./build.sh", "--all"), ("make", "clean")), size=(200, 60)) as seat:
        await opened(seat, 1)
        words = seat.app.screen.query_one("#words", Input)
        assert words.value == "./build.sh --all"
        await seat.sees("0 would have run without approval", "Not this one: the same call again would still be asked.")
        await seat.sees("Contains 2 commands")
        await seat.press("ctrl+n")
        assert words.value == "make clean"
        words.value = "echo 'rate"
        await seat.sees("The prefix contains an unclosed quote")
        await seat.press("ctrl+s")
        assert isinstance(seat.record("1").state, Waiting)
        words.value = 'echo "\'rate"'
        await seat.sees("1 would have run without approval", "echo 'rate = 20' > tax.conf")
        await seat.press("ctrl+s")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        remembered = PrefixScope(words=("echo", "'rate"), directory="/home/me/garden")
        assert seat.record("1").decision == Approve(remember=remembered)


@pytest.mark.parametrize(
    ("suggested", "reach", "words"),
    [
        ((), 1, "No suggestion: no rule can be made of this command."),
        ((("make", "clean"),), 1, "There is no other suggestion."),
        ((("make", "clean"),), 0, "A suggestion is for commands that start with some words"),
    ],
)
async def test_where_there_is_no_next_suggestion_the_key_says_why(
    suggested: tuple[tuple[str, ...], ...], reach: int, words: str
) -> None:
    async with cockpit(with_prefixes(*suggested), size=(200, 60)) as seat:
        await opened(seat, reach)
        await seat.press("ctrl+n")
        await seat.sees(words)


async def test_a_refused_scope_shows_the_reason_of_the_api() -> None:
    async with cockpit(three_waiting(), size=(200, 60)) as seat:
        await opened(seat, 2)
        seat.app.screen.query_one("#words", Input).value = "rm"
        await seat.sees("This cannot be remembered like that: 'rm' is too short")
        await seat.press("ctrl+s")
        assert len(seat.app.screen_stack) == 2
        assert isinstance(seat.record("1").state, Waiting)


@pytest.mark.parametrize(("reach", "where"), [(3, "project"), (4, "user")])
async def test_a_rule_is_saved_for_the_project_or_the_user(reach: int, where: str) -> None:
    async with cockpit(with_prefixes(("./build.sh", "--all"))) as seat:
        await opened(seat, reach)
        await seat.press("ctrl+s")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        assert seat.record("1").decision == Approve(remember=RuleScope(words=("./build.sh", "--all"), where=where))
        await seat.sees("a rule is saved")


@pytest.mark.slow
async def test_escape_approves_nothing() -> None:
    async with cockpit(three_waiting()) as seat:
        await opened(seat)
        await seat.press("escape")
        await seat.until(lambda: len(seat.app.screen_stack) == 1)
        assert isinstance(seat.record("1").state, Waiting)


@pytest.mark.slow
async def test_a_click_and_the_palette_open_it_too() -> None:
    async with cockpit(three_waiting(), size=(200, 60)) as seat:
        await seat.select("1")
        await seat.click("#do-approve-scope")
        await seat.sees("Approve call 1, and more")
        await seat.click("#choose-approve")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        await seat.until(lambda: seat.selected == "2")
        seat.play.clock.advance(1)
        await seat.choose("Approve more…  (A)")
        await seat.sees("Approve call 2, and more")
        assert seat.app.screen.query_one(OptionList).highlighted == 0


async def test_an_edited_command_can_be_approved_with_a_scope() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("3")
        await seat.press("e", "end", *"x", "ctrl+o")
        await seat.sees("Approve call 3, and more", "tax.confx")
        await seat.press("enter", "2", "ctrl+s")
        await seat.until(lambda: isinstance(seat.record("3").state, Running))
        decision = seat.record("3").decision
        assert isinstance(decision, Approve) and decision.remember == ExactScope(uses=2)
        assert decision.edited is not None
