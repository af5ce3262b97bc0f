"""The calls that wait, in groups: the same rows whatever came and went, and lines that belong to one row each."""

import random

import pytest

from tests.tui.cockpit import cockpit
from tests.tui.scenes import ME, ROOT, Play, workday
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Function, Shell
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.event import Decided
from whisper_tui.model.verdict import Risk, Verdict
from whisper_tui.tui.cockpit.call_list import CallList, ListLayout
from whisper_tui.tui.cockpit.call_roster import GROUPINGS, CallRoster, RowPlace, similarity_key
from whisper_tui.tui.cockpit.grouped_rows import SPARE, FenwickTree, GroupedTickets


def asked(play: Play, text: str, session: str = "s1") -> str:
    """Somebody asks for a line of a shell."""
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    return play.stage.ask(CallRequest(session_id=session, tool="run_shell_command", arguments={}, spec=spec))


def mixed() -> Play:
    """Two sessions ask for three kinds of commands, in turn."""
    play = Play.begin()
    for number in range(4):
        asked(play, f"make part{number}", "s1")
        asked(play, f"git log -{number}", "s2")
    asked(play, "git status", "s1")
    asked(play, "rm scratch", "s2")
    return play


def ids(roster: CallRoster) -> list[str | None]:
    return [roster.id_at(RowPlace("waiting", row)) for row in range(roster.count("waiting"))]


def test_prefix_sums_agree_with_plain_addition() -> None:
    chance = random.Random(7)
    pairs: list[list[int]] = []
    sums = FenwickTree()
    for _ in range(500):
        if pairs and chance.random() < 0.5:
            at = chance.randrange(len(pairs))
            change = chance.randint(-pairs[at][0], 4)
            pairs[at][0] += change
            sums.add(at, change, 0)
        else:
            pairs.append([chance.randint(0, 4), 1])
            sums.append(*pairs[-1])
    before = [(sum(p[0] for p in pairs[:at]), at) for at in range(len(pairs))]
    assert [sums.before(at) for at in range(len(pairs))] == before
    for target in range(before[-1][0] + before[-1][1]):
        by_row = max(at for at in range(len(pairs)) if before[at][0] <= target)
        by_line = max(at for at in range(len(pairs)) if 2 * before[at][0] + before[at][1] <= target)
        assert sums.find(target) == by_row
        assert sums.find(target, per_row=2, per_head=1) == by_line


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
    assert len(grouped._slots) <= SPARE + 2 * len(plain) + 1
    line = 0
    for key, members in plain.items():
        assert grouped.at_line(line, 2)[0].key == key and grouped.at_line(line, 2)[1] is None
        for number, ticket in enumerate(members):
            row = grouped.position(ticket)
            assert grouped.at_line(line + 1 + 2 * number, 2)[1:] == (row, 0)
            assert grouped.at_line(line + 2 + 2 * number, 2)[1:] == (row, 1)
        line += 1 + 2 * len(members)


def test_calls_of_a_session_are_grouped_in_order_of_arrival() -> None:
    roster = CallRoster(mixed().stage.board, "session")
    assert ids(roster) == ["1", "3", "5", "7", "9", "2", "4", "6", "8", "10"]
    assert roster.groups is not None
    assert [roster.group_title(roster.groups.group_at(row).key) for row in (0, 5)] == [
        "site builder · claude-code",
        "release agent · codex",
    ]


def test_sessions_with_the_same_name_are_distinguished() -> None:
    play = Play.begin()
    for session in (play.stage.open("command line"), play.stage.open("command line")):
        asked(play, "make", session.id)
    groups = CallRoster(play.stage.board, "session")
    assert groups.groups is not None
    titles = [groups.group_title(groups.groups.group_at(row).key) for row in (0, 1)]
    assert titles == ["command line · s3", "command line · s4"]


def test_similar_calls_of_all_sessions_are_grouped() -> None:
    roster = CallRoster(mixed().stage.board, "likeness")
    assert ids(roster) == ["1", "3", "5", "7", "2", "4", "6", "8", "9", "10"]


def test_calls_with_the_same_first_words_are_similar() -> None:
    play = Play.begin()
    spec = CommandSpec(command=Shell(text="cd x && git push -f"), cwd=ROOT)
    verdict = Verdict(kind="ask", reason="", prefixes=(("cd",), ("git", "push")))
    request = CallRequest(session_id="s1", tool="t", arguments={}, spec=spec)
    found = [play.stage.ask(request, verdict)]
    for command in (Argv(program="/usr/bin/rm", args=("x",)), Function(tool="send_mail", arguments={})):
        other = CallRequest(session_id="s1", tool="t", arguments={}, spec=CommandSpec(command=command, cwd=ROOT))
        found.append(play.stage.ask(other))
    assert [similarity_key(play.stage.board.calls[id_]) for id_ in found] == ["cd · git push", "rm", "send_mail"]


def test_a_grouped_roster_follows_arrivals_and_decisions() -> None:
    play = mixed()
    roster = CallRoster(play.stage.board, "session")
    late = asked(play, "make late", "s1")
    play.deny("3", "no")
    roster.update([late, "3"])
    assert ids(roster) == ["1", "5", "7", "9", "11", "2", "4", "6", "8", "10"]
    roster.narrow("git")
    assert ids(roster) == ["2", "4", "6", "8", "9"]
    roster.group("arrival")
    assert ids(roster) == ["2", "4", "6", "8", "9"]


def test_each_line_of_a_grouped_list_belongs_to_one_row_or_heads_a_group() -> None:
    roster = CallRoster(mixed().stage.board, "session")
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
    layout = ListLayout(CallRoster(mixed().stage.board, "session"), 2)
    seen = []
    for top in range(layout.height - 1):
        first, second = layout.on_screen(0, top), layout.on_screen(1, top)
        assert first is not None and first.heading
        assert second is not None and second.group is not None
        seen.append(second.group.key)
    assert seen == ["s1"] * 11 + ["s2"] * (layout.height - 12)


def test_without_groups_only_the_heading_of_the_section_stays() -> None:
    layout = ListLayout(CallRoster(mixed().stage.board), 2)
    first, second = layout.on_screen(0, 5), layout.on_screen(1, 5)
    assert first is not None and first.heading
    assert second == layout.at(6)


async def test_ctrl_g_sorts_by_session_then_similarity_then_risk_then_arrival() -> None:
    async with cockpit(mixed()) as seat:
        seen = []
        for words in ("by session", "alike", "by risk", "Waiting for you  "):
            await seat.press("ctrl+g")
            await seat.sees(words)
            seen.append(seat.screen.roster.grouping)
            assert seat.selected == "1"
        assert seen == [*GROUPINGS[1:], "arrival"]


def test_sorted_by_risk_severe_calls_come_first_however_late_they_arrived() -> None:
    play = Play.begin()
    severe = Risk(id="destructive", sentence="Deletes files")
    some = Risk(id="network", sentence="Talks to a host")
    plain, risky, worst = play.ask("build"), play.ask("test", some), play.ask("clean", severe)
    roster = CallRoster(play.stage.board, "risk")
    assert ids(roster) == [worst, risky, plain]
    play.deny(worst, "no")
    late = play.ask("release", severe)
    roster.update([worst, late])
    assert ids(roster) == [late, risky, plain]


async def test_group_headings_show_the_common_part_and_the_count() -> None:
    async with cockpit(mixed()) as seat:
        await seat.press("ctrl+g")
        await seat.sees("┌ site builder", "┌ release agent")
        await seat.press("down", "down", "down", "down", "down")
        assert seat.selected == "2"
        await seat.press("ctrl+g")
        await seat.sees("┌ make", "┌ git", "┌ rm")
        heading = next(line for line in seat.text().splitlines() if "┌ git" in line)
        assert " 5 " in heading[:40]


@pytest.mark.slow
async def test_the_selected_row_is_never_below_the_headings_that_stay() -> None:
    async with cockpit(mixed(), size=(80, 24)) as seat:
        calls = seat.screen.query_one(CallList)
        await seat.press("ctrl+g")
        for key in [*["down"] * 9, *["up"] * 9]:
            await seat.press(key)
            await seat.pilot.pause()
            lines = [line for y in range(calls.size.height) if (line := calls.on_screen(y)) is not None]
            assert lines[0].heading
            selected = next(
                at for at, line in enumerate(lines) if line.place == calls.roster.place_of(seat.selected or "")
            )
            heading = next(line.group for line in reversed(lines[:selected]) if line.group is not None)
            assert heading.key == seat.record(seat.selected or "").call.session_id


@pytest.mark.slow
async def test_a_click_on_a_heading_selects_nothing_and_on_a_row_its_call() -> None:
    async with cockpit(mixed()) as seat:
        await seat.press("ctrl+g")
        lines = seat.text().splitlines()
        heading = next(y for y, line in enumerate(lines) if "┌ release agent" in line)
        await seat.click("#calls", offset=(6, heading - 1))
        assert seat.selected == "1"
        await seat.click("#calls", offset=(6, heading))
        await seat.until(lambda: seat.selected == "2")


async def test_a_click_on_the_heading_of_waiting_calls_groups_them() -> None:
    async with cockpit(mixed()) as seat:
        await seat.click("#calls", offset=(6, 0))
        await seat.sees("by session", "┌ release agent")
        assert seat.selected == "1"


async def test_a_decided_call_leaves_its_group_and_the_next_one_of_it_is_selected() -> None:
    async with cockpit(mixed()) as seat:
        await seat.press("ctrl+g")
        await seat.select("3")
        await seat.play.stage.decide("3", Deny(reason="no"), ME, seat.record("3").seen_digest())
        await seat.until(lambda: len(seat.screen.board.waiting) == 9)
        seat.screen.select_after("3")
        assert seat.selected in {"1", "5"}


@pytest.mark.slow
async def test_very_many_groups_can_be_reached() -> None:
    play = Play.begin()
    for number in range(3000):
        asked(play, f"tool{number} x")
    async with cockpit(play) as seat:
        await seat.press("ctrl+g", "ctrl+g")
        await seat.sees("┌ tool0")
        await seat.press("end")
        await seat.sees("┌ tool2999", "tool2999 x")
        play.stage.happen(Decided(at=play.clock(), call_id="1500", decision=Approve(), by=ME))
        await seat.until(lambda: len(seat.screen.board.waiting) == 2999)
        assert seat.selected == "3000"
        calls = seat.screen.query_one(CallList)
        await seat.until(lambda: calls.virtual_size.height == 2999 * 3 + 4)


async def test_groups_remain_after_a_filter_is_cleared() -> None:
    async with cockpit(workday()) as seat:
        await seat.press("ctrl+g", "slash", *"tag", "enter")
        await seat.until(lambda: seat.screen.roster.count("waiting") == 1)
        await seat.press("escape")
        await seat.sees("┌ site builder", "┌ release agent")
