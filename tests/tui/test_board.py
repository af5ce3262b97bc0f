"""The board at every width: columns, what a row says, paging through a long call, and what has not been seen of it."""

from pathlib import Path

import pytest

from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import ME, ROOT, Scenario, workday
from tests.tui.test_describe import text_of
from whisper_tui.model.call import CallRequest, CommandSpec, Function, Session, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.event import Decided, Started
from whisper_tui.model.packed_calls import call_line
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.verdict import GRAVE, Resolved, Risk, RunCode, Verdict
from whisper_tui.present.call_text import card, describe, heading
from whisper_tui.present.security_text import risk_line
from whisper_tui.tui.cockpit.call_roster import KEPT, CallRoster, listed
from whisper_tui.tui.cockpit.call_row import row_line
from whisper_tui.tui.paragraphs_view import ParagraphsView, SeenRows


def long_call(lines: int) -> Scenario:
    """A call of so many lines waits, and a short one."""
    scenario = Scenario.begin()
    for text in ("\n".join(f"echo {number}" for number in range(lines)), "true"):
        spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
        scenario.supervisor.ask(CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec))
    return scenario


def regions(cockpit: Cockpit) -> list[tuple[int, int, int, int]]:
    return [tuple(cockpit.screen.query_one(name).region) for name in ("#calls", "#call", "#output")]


@pytest.mark.parametrize(
    ("size", "columns"),
    [
        pytest.param((200, 60), 3, marks=pytest.mark.slow),
        ((120, 40), 2),
        pytest.param((80, 24), 1, marks=pytest.mark.slow),
    ],
)
async def test_the_width_decides_the_number_of_columns(size: tuple[int, int], columns: int) -> None:
    async with open_cockpit(workday(), size=size) as cockpit:
        await cockpit.select("6")
        await cockpit.until(lambda: len({x for x, _, _, _ in regions(cockpit)}) == columns)
        places = regions(cockpit)
        assert all(width >= 38 and height >= 5 for _, _, width, height in places)
        assert sum(width * height for _, _, width, height in places) <= size[0] * size[1]


@pytest.mark.slow
async def test_resizing_changes_the_number_of_columns() -> None:
    async with open_cockpit(workday(), size=(120, 40)) as cockpit:
        await cockpit.select("6")
        for width, columns in ((200, 3), (90, 1), (179, 2)):
            await cockpit.pilot.resize_terminal(width, 40)
            await cockpit.until(lambda columns=columns: len({x for x, _, _, _ in regions(cockpit)}) == columns)


async def test_a_row_shows_the_agent_the_age_and_the_risk_in_words() -> None:
    for size in ((80, 24), (120, 40)):
        async with open_cockpit(workday(), size=size) as cockpit:
            rows = "\n".join(cockpit.text().splitlines()[:9])
            for words in ("33s", "site builder", "▲▲ destructive", "not flagged"):
                assert words in rows


def test_a_severe_risk_comes_first_and_has_its_own_sign() -> None:
    network = Risk(id="network", sentence="x")
    assert "".join(span.text for span in risk_line(judged(network))) == "▲ network"
    both = risk_line(judged(network, Risk(id="destructive", sentence="x")))
    assert [(span.text, span.role) for span in both] == [("▲▲ destructive +1", "bad")]
    assert risk_line(judged())[0].text == "not flagged"


def test_a_call_that_runs_code_which_nobody_has_read_is_never_said_to_be_unflagged() -> None:
    code = RunCode(name="./deploy.py", not_inspected="code of python is not analysed")
    assert [span.text for span in risk_line(judged(code=code))] == ["not read"]
    network = Risk(id="network", sentence="x")
    assert "".join(span.text for span in risk_line(judged(network, code=code))) == "▲ network · not read"
    record = judged(network, code=code)
    rows = {
        width: "".join(span.text for span in row_line(record, None, 1, width, 0.0, whole=False)) for width in (30, 80)
    }
    assert "▲ network ?" in rows[30] and "▲ network · not read" in rows[80]
    assert listed("1", call_line(judged(code=code)), "waiting").risk == "not read"
    drawn = "\n".join("".join(span.text for span in each.spans) for each in card(judged(network, code=code), None))
    assert "Not read: ./deploy.py, code of python is not analysed." in drawn


def judged(*risks: Risk, code: RunCode | None = None) -> CallRecord:
    record = next(record for record in workday().supervisor.board.calls.values() if isinstance(record.state, Waiting))
    verdict = Verdict(kind="ask", reason="no rule matches this command", risks=risks)
    resolved = Resolved(cwd=record.spec.cwd, program="/usr/bin/bash", code=(code,) if code is not None else ())
    return record.model_copy(update={"verdict": verdict, "resolved": resolved})


def test_only_documented_risks_are_severe() -> None:
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
    assert {id_ for id_ in GRAVE if f"`{id_}`" not in page} == set()


async def test_a_long_call_is_paged_from_the_list_and_from_the_keyboard() -> None:
    async with open_cockpit(long_call(100)) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("echo 0")
        await cockpit.press("ctrl+d")
        await cockpit.sees("echo 45")
        await cockpit.press("ctrl+u")
        await cockpit.sees("echo 0")


async def test_unseen_rows_are_counted_until_they_were_visible() -> None:
    async with open_cockpit(long_call(100)) as cockpit:
        await cockpit.select("1")
        call = cockpit.screen.query_one("#call-detail", ParagraphsView)
        await cockpit.until(lambda: 0 < call.unseen < 100)
        await cockpit.sees(f"▼ {call.unseen} lines not seen yet (Ctrl+D)")
        for _ in range(4):
            await cockpit.press("ctrl+d")
        await cockpit.until(lambda: call.unseen == 0)
        assert "not seen yet" not in cockpit.text()
        await cockpit.press("ctrl+u", "ctrl+u", "ctrl+u")
        assert call.unseen == 0


async def test_going_straight_to_the_end_leaves_the_middle_unseen() -> None:
    async with open_cockpit(long_call(200)) as cockpit:
        await cockpit.select("1")
        call = cockpit.screen.query_one("#call-detail", ParagraphsView)
        await cockpit.until(lambda: call.unseen > 100)
        await cockpit.press("tab", "G")
        await cockpit.until(lambda: "echo 199" in cockpit.text())
        assert call.unseen > 80


async def test_seen_rows_are_forgotten_for_another_call_or_width() -> None:
    async with open_cockpit(long_call(60)) as cockpit:
        await cockpit.select("1")
        call = cockpit.screen.query_one("#call-detail", ParagraphsView)
        await cockpit.press("ctrl+d", "ctrl+d", "ctrl+d")
        await cockpit.until(lambda: call.unseen == 0)
        await cockpit.select("2")
        await cockpit.until(lambda: call.unseen == 0)
        await cockpit.select("1")
        await cockpit.until(lambda: call.unseen > 0)
        await cockpit.settled()
        await cockpit.press("ctrl+d", "ctrl+d", "ctrl+d")
        await cockpit.until(lambda: call.unseen == 0)
        await cockpit.pilot.resize_terminal(100, 20)
        await cockpit.until(lambda: call.unseen > 0)


async def test_ages_that_grow_do_not_make_a_call_unseen() -> None:
    async with open_cockpit(long_call(60)) as cockpit:
        await cockpit.select("1")
        call = cockpit.screen.query_one("#call-detail", ParagraphsView)
        await cockpit.press("ctrl+d", "ctrl+d", "ctrl+d")
        await cockpit.until(lambda: call.unseen == 0)
        cockpit.scenario.clock.advance(3600)
        cockpit.screen.refresh_call()
        await cockpit.sees("for 1 h")
        assert call.unseen == 0


def test_rows_count_as_seen_once_they_were_shown() -> None:
    seen = SeenRows()
    seen.of([3, 4, 5, 9], "text")
    assert seen.missing == 4
    seen.show(0, 5)
    assert seen.missing == 2
    seen.of([4, 5, 6, 10], "text")
    seen.show(10, 1)
    assert seen.missing == 1
    seen.of([4, 5, 6, 10], "another text")
    assert seen.missing == 4


def test_the_trust_of_a_session_is_shown_in_words() -> None:
    scenario = workday()
    record = scenario.supervisor.board.calls["7"]
    session = scenario.supervisor.board.sessions["s1"]
    said = set()
    for trust in ("trusted_operator", "trusted_system", "trusted_integration", "untrusted_external"):
        trusted = Session.model_validate(dict(session) | {"trust": trust})
        text = text_of(describe(record, trusted, scenario.clock()))
        said.add(next((line for line in text.splitlines() if line.startswith(" Trust")), "nothing: so is every other"))
    assert len(said) == 4 and "nothing: so is every other" in said


def test_the_last_calls_of_the_session_are_shown_with_their_outcomes() -> None:
    scenario = workday()
    roster = CallRoster(scenario.supervisor.board)
    record = scenario.supervisor.board.calls["7"]
    text = text_of(describe(record, None, scenario.clock(), roster.beside(record)))
    last = text[text.index("Last calls") :]
    order = ["◆ waiting  echo", "✘ denied  rm -rf cache", "✔ exit 0  ./serve.sh", "✘ exit 1  ./test.sh"]
    assert [last.index(words) for words in order] == sorted(last.index(words) for words in order)
    assert "./tag.sh" not in last
    assert len(roster.beside(record)) <= KEPT - 1


def test_later_calls_are_among_the_last_calls() -> None:
    scenario = workday()
    roster = CallRoster(scenario.supervisor.board)
    late = scenario.ask("fix")
    roster.update(roster.board.calls.lines([late]))
    assert roster.beside(scenario.supervisor.board.calls["7"])[0].id == late


def test_a_tool_that_its_agent_executes_is_never_shown_as_starting() -> None:
    scenario = Scenario.begin()
    spec = CommandSpec(command=Function(tool="read_file", arguments={"path": "x"}), cwd=ROOT)
    call = scenario.supervisor.ask(CallRequest(session_id="s1", tool="read_file", arguments={}, spec=spec))
    scenario.supervisor.happen(
        Decided(at=scenario.clock(), call_id=call, decision=Approve(), by=ME),
        Started(at=scenario.clock(), call_id=call, attempt=1, spec=spec),
    )
    words = "".join(span.text for span in heading(scenario.supervisor.board.calls[call], scenario.clock()))
    assert "▶ run by its agent" in words
    assert "starting" not in words


async def test_the_outcomes_of_the_last_calls_are_updated() -> None:
    scenario = Scenario.begin()
    first, second = scenario.ask("build"), scenario.ask("test")
    scenario.approve(first)
    async with open_cockpit(scenario, size=(120, 60)) as cockpit:
        await cockpit.select(second)
        await cockpit.press("m")
        await cockpit.sees("Last calls  ▶ running")
        scenario.end(first)
        await cockpit.sees("Last calls  ✔ exit 0")
