"""The calls that wait, in groups: the same rows whatever came and went, and lines that belong to one row each."""

import random

import pytest

from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import ME, ROOT, Scenario, workday
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Function, Shell
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.event import Decided
from whisper_tui.model.verdict import Risk, Verdict
from whisper_tui.tui.cockpit.call_list import CallList, ListLayout
from whisper_tui.tui.cockpit.call_roster import GROUPINGS, CallRoster, RowPlace, similarity_key
from whisper_tui.tui.cockpit.grouped_rows import GroupedTickets


def asked(scenario: Scenario, text: str, session: str = "s1") -> str:
    """Somebody asks for a line of a shell."""
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    return scenario.supervisor.ask(CallRequest(session_id=session, tool="run_shell_command", arguments={}, spec=spec))


def mixed() -> Scenario:
    """Two sessions ask for three kinds of commands, in turn."""
    scenario = Scenario.begin()
    for number in range(4):
        asked(scenario, f"make part{number}", "s1")
        asked(scenario, f"git log -{number}", "s2")
    asked(scenario, "git status", "s1")
    asked(scenario, "rm scratch", "s2")
    return scenario


def ids(roster: CallRoster) -> list[str | None]:
    return [roster.id_at(RowPlace("waiting", row)) for row in range(roster.count("waiting"))]


def test_groups_agree_with_plain_lists_after_any_changes() -> None:
    chance = random.Random(11)
    plain: dict[str, list[int]] = {}
    keys: list[str] = []
    grouped = GroupedTickets(lambda ticket: keys[ticket])
    for _ in range(4000):
        alive = [ticket for members in plain.values() for ticket in members]
        if alive and chance.random() < 0.48:
            gone = chance.choice(alive)
            plain[keys[gone]].remove(gone)
            if not plain[keys[gone]]:
                del plain[keys[gone]]
            grouped.discard(gone)
            grouped.discard(gone)
        else:
            key = str(chance.randrange(200))
            plain.setdefault(key, []).append(len(keys))
            keys.append(key)
            grouped.add(plain[key][-1])
            grouped.add(plain[key][-1])
    expected = [ticket for members in plain.values() for ticket in members]
    assert list(grouped) == expected == [grouped[row] for row in range(len(grouped))]
    assert [grouped.position(ticket) for ticket in expected] == list(range(len(expected)))
    assert grouped.groups == len(plain)
    line = 0
    for key, members in plain.items():
        assert grouped.at_line(line, 2)[0].key == key and grouped.at_line(line, 2)[1] is None
        for number, ticket in enumerate(members):
            row = grouped.position(ticket)
            assert grouped.at_line(line + 1 + 2 * number, 2)[1:] == (row, 0)
            assert grouped.at_line(line + 2 + 2 * number, 2)[1:] == (row, 1)
        line += 1 + 2 * len(members)


def test_calls_of_a_session_are_grouped_in_order_of_arrival() -> None:
    roster = CallRoster(mixed().supervisor.board, "session")
    assert ids(roster) == ["1", "3", "5", "7", "9", "2", "4", "6", "8", "10"]
    assert roster.groups is not None
    assert [roster.group_title(roster.groups.group_at(row).key) for row in (0, 5)] == [
        "site builder · claude-code",
        "release agent · codex",
    ]


def test_sessions_with_the_same_name_are_distinguished() -> None:
    scenario = Scenario.begin()
    for session in (scenario.supervisor.open("command line"), scenario.supervisor.open("command line")):
        asked(scenario, "make", session.id)
    groups = CallRoster(scenario.supervisor.board, "session")
    assert groups.groups is not None
    titles = [groups.group_title(groups.groups.group_at(row).key) for row in (0, 1)]
    assert titles == ["command line · s3", "command line · s4"]


def test_similar_calls_of_all_sessions_are_grouped() -> None:
    roster = CallRoster(mixed().supervisor.board, "similarity")
    assert ids(roster) == ["1", "3", "5", "7", "2", "4", "6", "8", "9", "10"]


def test_calls_with_the_same_first_words_are_similar() -> None:
    scenario = Scenario.begin()
    spec = CommandSpec(command=Shell(text="cd x && git push -f"), cwd=ROOT)
    verdict = Verdict(kind="ask", reason="", prefixes=(("cd",), ("git", "push")))
    request = CallRequest(session_id="s1", tool="t", arguments={}, spec=spec)
    found = [scenario.supervisor.ask(request, verdict)]
    for command in (Argv(program="/usr/bin/rm", args=("x",)), Function(tool="send_mail", arguments={})):
        other = CallRequest(session_id="s1", tool="t", arguments={}, spec=CommandSpec(command=command, cwd=ROOT))
        found.append(scenario.supervisor.ask(other))
    assert [similarity_key(scenario.supervisor.board.calls.line(id_)) for id_ in found] == [
        "cd · git push",
        "rm",
        "send_mail",
    ]


def test_a_grouped_roster_follows_arrivals_and_decisions() -> None:
    scenario = mixed()
    roster = CallRoster(scenario.supervisor.board, "session")
    late = asked(scenario, "make late", "s1")
    scenario.deny("3", "no")
    roster.update(roster.board.calls.lines([late, "3"]))
    assert ids(roster) == ["1", "5", "7", "9", "11", "2", "4", "6", "8", "10"]
    roster.narrow("git")
    assert ids(roster) == ["2", "4", "6", "8", "9"]
    roster.group("arrival")
    assert ids(roster) == ["2", "4", "6", "8", "9"]


def test_each_line_of_a_grouped_list_belongs_to_one_row_or_heads_a_group() -> None:
    roster = CallRoster(mixed().supervisor.board, "session")
    for row_lines in (1, 2):
        layout = ListLayout(roster, row_lines)
        lines = [layout.at(line) for line in range(layout.height)]
        assert [line.heading for line in lines if line is not None].count(True) == 1
        assert [at for at, line in enumerate(lines) if line is not None and line.group] == [1, 2 + 5 * row_lines]
        places = [line.place for line in lines if line is not None and line.place is not None]
        assert len(places) == 10 * row_lines
        assert all(layout.at(layout.line_of(place)).place == place for place in places)
        assert all(layout.headings_above(place) == 2 for place in places)


def test_the_headings_of_the_section_and_group_stay_above_scrolled_rows() -> None:
    layout = ListLayout(CallRoster(mixed().supervisor.board, "session"), 2)
    seen = []
    for top in range(layout.height - 1):
        first, second = layout.on_screen(0, top), layout.on_screen(1, top)
        assert first is not None and first.heading
        assert second is not None and second.group is not None
        seen.append(second.group.key)
    assert seen == ["s1"] * 11 + ["s2"] * (layout.height - 12)


def test_without_groups_only_the_heading_of_the_section_stays() -> None:
    layout = ListLayout(CallRoster(mixed().supervisor.board), 2)
    first, second = layout.on_screen(0, 5), layout.on_screen(1, 5)
    assert first is not None and first.heading
    assert second == layout.at(6)


async def test_ctrl_g_sorts_by_session_then_similarity_then_risk_then_arrival() -> None:
    async with open_cockpit(mixed()) as cockpit:
        seen = []
        for words in ("by session", "alike", "by risk", "Waiting for you  "):
            await cockpit.press("ctrl+g")
            await cockpit.sees(words)
            seen.append(cockpit.screen.roster.grouping)
            assert cockpit.selected == "1"
        assert seen == [*GROUPINGS[1:], "arrival"]


def test_sorted_by_risk_severe_calls_come_first_however_late_they_arrived() -> None:
    scenario = Scenario.begin()
    severe = Risk(id="destructive", sentence="Deletes files")
    some = Risk(id="network", sentence="Talks to a host")
    plain, risky, worst = scenario.ask("build"), scenario.ask("test", some), scenario.ask("clean", severe)
    roster = CallRoster(scenario.supervisor.board, "risk")
    assert ids(roster) == [worst, risky, plain]
    scenario.deny(worst, "no")
    late = scenario.ask("release", severe)
    roster.update(roster.board.calls.lines([worst, late]))
    assert ids(roster) == [late, risky, plain]


async def test_group_headings_show_the_common_part_and_the_count() -> None:
    async with open_cockpit(mixed()) as cockpit:
        await cockpit.press("ctrl+g")
        await cockpit.sees("┌ s1 site builder", "┌ s2 release agent")
        await cockpit.press("down", "down", "down", "down", "down")
        assert cockpit.selected == "2"
        await cockpit.press("ctrl+g")
        await cockpit.sees("┌ make", "┌ git", "┌ rm")
        heading = next(line for line in cockpit.text().splitlines() if "┌ git" in line)
        assert " 5 " in heading[:40]


@pytest.mark.slow
async def test_the_selected_row_is_never_below_the_headings_that_stay() -> None:
    async with open_cockpit(mixed(), size=(80, 24)) as cockpit:
        calls = cockpit.screen.query_one(CallList)
        await cockpit.press("ctrl+g")
        for key in [*["down"] * 9, *["up"] * 9]:
            await cockpit.press(key)
            await cockpit.pilot.pause()
            lines = [line for y in range(calls.size.height) if (line := calls.on_screen(y)) is not None]
            assert lines[0].heading
            selected = next(
                at for at, line in enumerate(lines) if line.place == calls.roster.place_of(cockpit.selected or "")
            )
            heading = next(line.group for line in reversed(lines[:selected]) if line.group is not None)
            assert heading.key == cockpit.record(cockpit.selected or "").call.session_id


@pytest.mark.slow
async def test_a_click_on_a_heading_selects_nothing_and_on_a_row_its_call() -> None:
    async with open_cockpit(mixed()) as cockpit:
        await cockpit.press("ctrl+g")
        lines = cockpit.text().splitlines()
        heading = next(y for y, line in enumerate(lines) if "┌ s2 release agent" in line)
        await cockpit.click("#calls", offset=(6, heading - 1))
        assert cockpit.selected == "1"
        await cockpit.click("#calls", offset=(6, heading))
        await cockpit.until(lambda: cockpit.selected == "2")


async def test_a_click_on_the_heading_of_waiting_calls_groups_them() -> None:
    async with open_cockpit(mixed()) as cockpit:
        await cockpit.click("#calls", offset=(6, 0))
        await cockpit.sees("by session", "┌ s2 release agent")
        assert cockpit.selected == "1"


async def test_a_decided_call_leaves_its_group_and_the_next_one_of_it_is_selected() -> None:
    async with open_cockpit(mixed()) as cockpit:
        await cockpit.press("ctrl+g")
        await cockpit.select("3")
        await cockpit.scenario.supervisor.decide("3", Deny(reason="no"), ME, cockpit.record("3").seen_digest())
        await cockpit.until(lambda: len(cockpit.screen.board.waiting) == 9)
        cockpit.screen.select_after("3")
        assert cockpit.selected in {"1", "5"}


@pytest.mark.slow
async def test_very_many_groups_can_be_reached() -> None:
    scenario = Scenario.begin()
    for number in range(3000):
        asked(scenario, f"tool{number} x")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("ctrl+g", "ctrl+g")
        await cockpit.sees("┌ tool0")
        await cockpit.press("end")
        await cockpit.sees("┌ tool2999", "tool2999 x")
        scenario.supervisor.happen(Decided(at=scenario.clock(), call_id="1500", decision=Approve(), by=ME))
        await cockpit.until(lambda: len(cockpit.screen.board.waiting) == 2999)
        assert cockpit.selected == "3000"
        calls = cockpit.screen.query_one(CallList)
        await cockpit.until(lambda: calls.virtual_size.height == 2999 * 3 + 4)


@pytest.mark.slow
async def test_groups_remain_after_a_filter_is_cleared() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.press("ctrl+g", "slash", *"tag", "enter")
        await cockpit.until(lambda: cockpit.screen.roster.count("waiting") == 1)
        await cockpit.press("escape")
        await cockpit.sees("┌ s1 site builder", "┌ s2 release agent")
