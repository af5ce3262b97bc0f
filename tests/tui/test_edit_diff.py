"""The card of an edit is the difference that it makes, and nothing is approved before it was there."""

import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.rows import each_row
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.edit_scenes import approved, edit, folder, one_edit, several_files
from tests.tui.scenes import Scenario
from whisper_tui.model.call import DeleteFile, EditedFile, FileVersions, ReplaceText, WriteFile
from whisper_tui.model.changed_blocks import changed_blocks
from whisper_tui.model.state import Waiting
from whisper_tui.model.verdict import Verdict
from whisper_tui.present.diff_text import MOST_CHANGED, FileDiff, file_diffs
from whisper_tui.tui.app import CockpitApp
from whisper_tui.tui.edit_diff import FRESH_S, SIDE_BY_SIDE, ColouredDiff, coloured_diffs, laid_out
from whisper_tui.tui.lines import width_of
from whisper_tui.tui.paragraphs_view import ParagraphsView


def versions(old: str | None, new: str | None, path: str = "/w/a.py") -> FileVersions:
    action = "creates" if old is None else "deletes" if new is None else "changes"
    size = None if old is None else len(old)
    return FileVersions(file=EditedFile(action=action, path=path, real=path, size=size), old=old, new=new)


def diff(old: str | None, new: str | None) -> FileDiff:
    return file_diffs((versions(old, new),), "/w")[0]


def shown(old: str | None, new: str | None, width: int = 80) -> str:
    rows = laid_out(coloured_diffs((versions(old, new),), "/w", mask=False), width)
    return "\n".join("".join(span.text for span in (*row.margin, *row.spans)) for row in rows)


def rebuilt(old: list[str], new: list[str]) -> list[str]:
    """The old lines with the blocks put in."""
    found: list[str] = []
    at = 0
    for low, high, new_low, new_high in changed_blocks(old, new):
        found += [*old[at:low], *new[new_low:new_high]]
        at = high
    return found + old[at:]


@each_row("seed", range(40))
def test_the_blocks_make_the_new_text_of_the_old_one(seed: int) -> None:
    chance = random.Random(seed)
    old = [chance.choice("abcdefgh") * chance.randint(1, 2) for _ in range(chance.randint(0, 60))]
    new = [line for line in old if chance.random() > 0.2]
    for _ in range(chance.randint(0, 8)):
        new.insert(chance.randint(0, len(new)), chance.choice("xyzabc"))
    assert rebuilt(old, new) == new


def test_a_changed_line_in_a_large_file_is_the_only_one_that_counts() -> None:
    old = [f"line {number}\n" for number in range(50_000)]
    new = [*old[:20_000], "another\n", *old[20_001:]]
    assert changed_blocks(old, new) == ((20_000, 20_001, 20_000, 20_001),)


def test_text_that_is_made_to_take_for_ever_still_has_a_difference() -> None:
    old, new = ["a\n", "b\n"] * 20_000, ["b\n", "b\n", "a\n"] * 14_000
    assert rebuilt(old, new) == new


def test_unchanged_lines_are_folded_and_counted() -> None:
    lines = [f"{number}\n" for number in range(100)]
    text = shown("".join(lines), "".join([*lines[:50], "new\n", *lines[51:]]))
    assert "⋯ 47 lines" in text and "⋯ 46 lines" in text
    assert " 51 − 50" in text and " 51 + new" in text


def test_the_part_of_a_line_that_differs_is_marked() -> None:
    (row,) = (row for row in diff("total = price * 2\n", "total = price * 3\n").rows if row.changed)
    assert row.old is not None and row.new is not None
    assert [row.new.text[low:high] for low, high in row.new.marked] == ["3"]
    assert [row.old.text[low:high] for low, high in row.old.marked] == ["2"]


def test_hidden_characters_tabs_and_line_ends_are_made_visible() -> None:
    text = shown("a\n", "\u202ea\x1b[31m\n\tb")
    assert "⟨U+202E⟩a␛[31m" in text and "→   b" in text and "⟨no line feed at the end⟩" in text


def test_a_line_whose_end_is_another_one_says_so() -> None:
    text = shown("one\ntwo\nthree\n", "one\r\ntwo\r\nthree\n")
    assert "CRLF line ends" in text and "⟨LF only⟩" in text


def test_a_blank_that_became_a_tab_does_not_look_the_same() -> None:
    text = shown("    x = 1\n", "\tx = 1\n")
    assert "−     x = 1" in text and "+ →   x = 1" in text


@each_row("width", [60, 99, SIDE_BY_SIDE, 141])
def test_every_row_has_the_width_that_there_is(width: int) -> None:
    rows = laid_out(coloured_diffs((versions("a = 1\n" * 9 + "漢字\tx\n", "b" * 500 + "\n"),), "/w", mask=False), width)
    lines = [row for row in rows if not row.margin and row.spans and "lines" not in row.spans[-1].text]
    assert lines and all(width_of(row.spans) <= width for row in lines)


def test_a_wide_pane_has_both_versions_side_by_side() -> None:
    line = next(line for line in shown("a = 1\n", "a = 2\n", 120).splitlines() if "a = 1" in line)
    assert "− a = 1" in line and "+ a = 2" in line
    assert not any("a = 1" in line and "a = 2" in line for line in shown("a = 1\n", "a = 2\n", 80).splitlines())


def test_syntax_has_roles_and_keeps_the_text() -> None:
    (found,) = coloured_diffs((versions(None, 'def f():\n    return "x"  # why\n'),), "/w", mask=False)
    rows = laid_out((found,), 80)
    roles = {span.text: span.role for row in rows for span in row.spans}
    assert (roles["def"], roles["f"], roles["# why"]) == ("keyword", "name", "comment")
    assert any("".join(span.text for span in row.spans).strip() == '2 +     return "x"  # why' for row in rows)


def test_secrets_are_masked_where_they_are_to_be() -> None:
    each = versions("", "export API_TOKEN=correct-horse-battery\n")
    assert "correct-horse" in str(coloured_diffs((each,), "/w", mask=False))
    assert "correct-horse" not in str(coloured_diffs((each,), "/w", mask=True))


def test_too_many_changed_lines_are_counted_and_not_shown() -> None:
    found = diff("", "".join(f"{number}\n" for number in range(MOST_CHANGED + 500)))
    assert sum(row.changed for row in found.rows) == MOST_CHANGED and found.rows[-1].hidden == 500


def test_the_differing_part_of_a_very_long_line_is_shown() -> None:
    old = "x" * 500_000 + "old" + "y" * 500_000 + "\n"
    text = shown(old, old.replace("old", "new"))
    assert "new" in text and "499,900 characters not shown" in text and len(text) < 5000


def test_a_file_that_is_not_as_usual_says_so_in_its_heading() -> None:
    file = EditedFile(action="changes", path="/w/l", real="/etc/x", through_link=True, sensitive="a hook")
    found = FileVersions(file=file, not_shown="it is no text")
    rows = laid_out((ColouredDiff(file_diffs((found,), "/w")[0], {}, {}),), 80)
    text = "\n".join("".join(span.text for span in row.spans) for row in rows)
    for words in ("/etc/x", "outside the workspace", "symbolic link", "a hook", "not shown: it is no text"):
        assert words in text


@pytest.mark.slow
@pytest.mark.parametrize(("size", "beside"), [((80, 24), False), ((120, 40), False), ((170, 48), True)])
async def test_the_card_of_an_edit_is_its_difference(size: tuple[int, int], beside: bool) -> None:
    async with open_cockpit(one_edit(), size=size) as cockpit:
        await cockpit.sees('"pages": 20')
        assert any('"pages": 12' in line and '"pages": 20' in line for line in cockpit.text().splitlines()) == beside


async def test_several_files_are_listed_above_their_differences() -> None:
    async with open_cockpit(several_files(), size=(120, 50)) as cockpit:
        await cockpit.sees("• create pages/new.md +3", "• edit settings.py +1", "• delete old.txt", "+ # Moss")


def many_hunks() -> Scenario:
    """Two files, each with hunks that are far from each other."""
    scenario, root = Scenario.begin(), folder()
    changes = []
    for name, places in (("first.txt", (10, 60, 110)), ("second.txt", (20, 90))):
        (root / name).write_text("".join(f"{name} {number}\n" for number in range(150)))
        text = "".join(f"{name} {number}{' new' * (number in places)}\n" for number in range(150))
        changes.append(WriteFile(path=str(root / name), content=text))
    edit(scenario, root, *changes)
    return scenario


def marked_rows(cockpit: Cockpit) -> list[str]:
    """The rows of the card with the sign of the current file and hunk."""
    return [row.partition("▸")[2] for row in cockpit.text().splitlines() if "▸" in row]


@pytest.mark.slow
async def test_keys_go_to_hunks_and_files_and_the_heading_says_where() -> None:
    async with open_cockpit(many_hunks(), size=(170, 24)) as cockpit:
        await cockpit.sees("file 1 of 2, hunk 1 of 3", "▸ • edit first.txt")
        for key, words, row in (
            ("right_curly_bracket", "file 1 of 2, hunk 1 of 3", "first.txt 10 new"),
            ("right_curly_bracket", "file 1 of 2, hunk 2 of 3", "first.txt 60 new"),
            ("right_curly_bracket", "file 1 of 2, hunk 3 of 3", "first.txt 110 new"),
            ("right_curly_bracket", "file 2 of 2, hunk 1 of 2", "second.txt 20 new"),
            ("left_curly_bracket", "file 1 of 2, hunk 3 of 3", "first.txt 110 new"),
            ("greater_than_sign", "file 2 of 2, hunk 1 of 2", "edit second.txt"),
            ("right_curly_bracket", "file 2 of 2, hunk 2 of 2", "second.txt 90 new"),
            ("right_curly_bracket", "This is the last hunk.", "second.txt 90 new"),
            ("greater_than_sign", "This is the last file.", "second.txt 90 new"),
            ("less_than_sign", "file 1 of 2, hunk 1 of 3", "edit first.txt"),
            ("less_than_sign", "This is the first file.", "edit first.txt"),
        ):
            await cockpit.press(key)
            await cockpit.sees(words, row)
        assert isinstance(cockpit.record("1").state, Waiting)


async def test_where_all_of_an_edit_is_on_the_screen_a_sign_goes_from_hunk_to_hunk() -> None:
    async with open_cockpit(many_hunks(), size=(170, 100)) as cockpit:
        await cockpit.sees("file 1 of 2, hunk 1 of 3", "second.txt 90 new")
        seen = []
        for _ in range(5):
            await cockpit.press("right_curly_bracket")
            await cockpit.until(lambda: marked_rows(cockpit)[:2] not in seen)
            seen.append(marked_rows(cockpit)[:2])
        await cockpit.sees("file 2 of 2, hunk 2 of 2")
        assert [listed.split()[2] for listed, _ in seen] == ["first.txt"] * 3 + ["second.txt"] * 2


@pytest.mark.slow
async def test_the_keys_of_hunks_and_files_work_in_the_history_as_well() -> None:
    scenario = many_hunks()
    approved(scenario, "1")
    async with open_cockpit(scenario, size=(170, 24)) as cockpit:
        await cockpit.press("H", "down")
        await cockpit.sees("history", "file")
        for key, row in (
            ("greater_than_sign", "edit second.txt"),
            ("right_curly_bracket", "second.txt 90 new"),
            ("left_curly_bracket", "second.txt 20 new"),
            ("less_than_sign", "edit first.txt"),
            ("less_than_sign", "This is the first file."),
        ):
            await cockpit.press(key)
            await cockpit.sees(row)


async def test_scrolling_by_hand_moves_the_position_on() -> None:
    async with open_cockpit(many_hunks(), size=(120, 24)) as cockpit:
        await cockpit.sees("file 1", "hunk 1")
        await cockpit.press("ctrl+d", "ctrl+d", "ctrl+d", "ctrl+d")
        await cockpit.until(lambda: any(f"file 2{of}2" in cockpit.text() for of in (" of ", "/")))
        await cockpit.press("left_curly_bracket", "left_curly_bracket", "left_curly_bracket")
        await cockpit.until(lambda: any(f"file 1{of}2" in cockpit.text() for of in (" of ", "/")))


async def test_the_keys_of_hunks_say_that_a_command_has_none() -> None:
    scenario = Scenario.begin()
    scenario.ask("build")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.press("right_curly_bracket")
        await cockpit.sees("Next hunk is not possible: call 1 edits no files, and was not previewed.")


async def test_a_terminal_that_becomes_wide_shows_the_versions_side_by_side() -> None:
    async with open_cockpit(one_edit(), size=(120, 40)) as cockpit:
        await cockpit.sees('"pages": 20')
        await cockpit.pilot.resize_terminal(170, 40)
        await cockpit.until(
            lambda: any('"pages": 12' in line and '"pages": 20' in line for line in cockpit.text().splitlines())
        )


async def test_a_long_difference_is_laid_out_anew_for_a_narrow_terminal_before_it_counts_as_shown() -> None:
    scenario, root = Scenario.begin(), folder()
    text = "".join(f"number {number}\n" for number in range(3000))
    (root / "long.txt").write_text(text)
    edit(scenario, root, WriteFile(path=str(root / "long.txt"), content=text.replace("number", "line")))
    async with open_cockpit(scenario, size=(170, 40)) as cockpit:
        await cockpit.sees("− number 0", "+ line 0")
        await cockpit.pilot.resize_terminal(100, 40)
        await cockpit.sees("− number 1", "not seen yet")
        # The words are there in both layouts, so the new one has to be waited for.
        await cockpit.until(
            lambda: not any("− number 1" in row and "+ line 1" in row for row in cockpit.text().splitlines())
        )
        card, edits = cockpit.screen.query_one("#call-detail", ParagraphsView), cockpit.screen.card.edits
        # A terminal that becomes narrower takes the card through several widths.
        await cockpit.still()
        await cockpit.until(lambda: card.unseen > 5000 and not edits.asking and not edits.is_missing(cockpit.shown))
        await cockpit.can_be_seen()
        scenario.clock.advance(30)
        await cockpit.press("a")
        await cockpit.sees("not on the screen yet")
        assert isinstance(cockpit.record("1").state, Waiting)


async def test_rows_of_a_difference_have_to_be_seen_before_an_approval() -> None:
    scenario, root = Scenario.begin(), folder()
    call_id = edit(scenario, root, WriteFile(path=str(root / "long.txt"), content="one more\n" * 200))
    async with open_cockpit(scenario, size=(120, 40)) as cockpit:
        await cockpit.sees("not seen yet")
        await cockpit.can_be_seen()
        scenario.clock.advance(30)
        await cockpit.press("a")
        await cockpit.sees("not on the screen yet")
        assert isinstance(cockpit.record(call_id).state, Waiting)


async def test_nothing_is_approved_before_the_files_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = one_edit()
    go_on = threading.Event()

    def slowly(
        found: Sequence[FileVersions], root: str, verdict: Verdict | None, *, mask: bool
    ) -> tuple[ColouredDiff, ...]:
        go_on.wait(20)
        return coloured_diffs(found, root, verdict, mask=mask)

    monkeypatch.setattr("whisper_tui.tui.edit_diff.coloured_diffs", slowly)
    app = CockpitApp(scenario.supervisor, user="me", clock=scenario.clock)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        cockpit = Cockpit(app, pilot, scenario)
        try:
            await cockpit.sees("Reading the files …")
            await cockpit.can_be_seen()
            scenario.clock.advance(30)
            await cockpit.press("a")
            await cockpit.sees("the files of this edit are still being read")
            assert isinstance(cockpit.record("1").state, Waiting)
        finally:
            go_on.set()
        await cockpit.sees('"pages": 20')
        await cockpit.can_be_seen()
        scenario.clock.advance(30)
        await cockpit.press("a")
        await cockpit.until(lambda: not isinstance(cockpit.record("1").state, Waiting))


async def test_an_edit_whose_result_is_not_known_shows_what_was_asked_for() -> None:
    scenario, root = Scenario.begin(), folder()
    (root / "a.txt").write_text("one\n")
    edit(scenario, root, ReplaceText(path=str(root / "a.txt"), old="not there", new="the new words"))
    async with open_cockpit(scenario, size=(120, 40)) as cockpit:
        await cockpit.sees("its new content is not known", "As the agent asked for it", "the new words")


async def test_a_file_that_changes_while_its_edit_waits_is_shown_as_it_is_now() -> None:
    scenario, root = Scenario.begin(), folder()
    path = root / "a.txt"
    path.write_text("one\n")
    edit(scenario, root, WriteFile(path=str(path), content="two\n"))
    async with open_cockpit(scenario, size=(120, 40)) as cockpit:
        await cockpit.sees("− one", "+ two")
        path.write_text("three\n")
        scenario.clock.advance(5)
        await cockpit.sees("− three", "The file has changed since")


async def test_an_ended_edit_keeps_its_difference() -> None:
    scenario, root = Scenario.begin(), folder()
    (root / "a.txt").write_text("one\n")
    call_id = edit(scenario, root, DeleteFile(path=str(root / "a.txt")))
    approved(scenario, call_id)
    async with open_cockpit(scenario, size=(120, 40)) as cockpit:
        await cockpit.select(call_id)
        await cockpit.sees("− one")


async def test_the_card_of_an_ended_edit_says_whether_its_agent_has_made_it() -> None:
    scenario, root = Scenario.begin(), folder()
    path = root / "a.txt"
    path.write_text("one\n")
    call_id = edit(scenario, root, WriteFile(path=str(path), content="two\n"))
    approved(scenario, call_id)
    async with open_cockpit(scenario, size=(120, 40)) as cockpit:
        await cockpit.select(call_id)
        await cockpit.sees("✔ approved", "which makes the edit", "now as before the edit")
        path.write_text("two\n")
        scenario.clock.advance(FRESH_S)
        await cockpit.sees("now as it was approved")
        path.write_text("three\n")
        await cockpit.press("H", "down")
        await cockpit.sees("now other than approved")


async def test_the_history_shows_the_difference_of_an_edit() -> None:
    scenario, root = Scenario.begin(), folder()
    (root / "a.txt").write_text("one\n")
    approved(scenario, edit(scenario, root, DeleteFile(path=str(root / "a.txt"))))
    async with open_cockpit(scenario, size=(120, 40)) as cockpit:
        await cockpit.press("H", "down")
        await cockpit.sees("history", "delete a.txt", "− one")


def test_the_stage_reads_real_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    scenario = Scenario.begin()
    call_id = edit(scenario, tmp_path, WriteFile(path=str(tmp_path / "a.txt"), content="two\n"))
    resolved = scenario.supervisor.board.calls[call_id].resolved
    assert resolved is not None and [file.added for file in resolved.edits] == [1]
