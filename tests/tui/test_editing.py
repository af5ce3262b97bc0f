"""The editor: colours, words of an argv one a line, every change in view, nothing approved unseen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.widgets import TextArea

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.scenes import Play
from tests.tui.test_deciding import three_waiting
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Shell
from whisper_tui.model.state import Running, Waiting
from whisper_tui.tui.dialogs.drafts import checked, draft_of
from whisper_tui.tui.dialogs.edit_dialog import MINUS, ArgumentField, ArgumentsForm, change_paragraphs
from whisper_tui.tui.theme import load_themes

ARGV = CommandSpec(command=Argv(program="git", args=("commit", "-m", "two words\nand a line")), cwd="/srv")


def shell(text: str) -> CommandSpec:
    return CommandSpec(command=Shell(text=text), cwd="/srv")


def shown(asked: CommandSpec, runs: CommandSpec) -> list[str]:
    """The rows of changes: the sign and the text, with what differs in brackets."""
    rows = []
    for paragraph in change_paragraphs(asked, runs):
        text = "".join(f"[{span.text}]" if span.role == "marked" else span.text for span in paragraph.spans)
        rows.append(f"{paragraph.margin[0].text.strip() or '='} {text}")
    return rows


@pytest.mark.parametrize(
    ("asked", "runs", "rows"),
    [
        (shell("make -j8 all"), shell("make -j2 all"), [f"{MINUS} make -[j8] all", "+ make -[j2] all"]),
        (shell("a\nb\nc"), shell("a\nc"), ["= a", f"{MINUS} [b]", "= c"]),
        (shell("a"), shell("a\nb"), ["= a", "+ [b]"]),
        (
            ARGV,
            ARGV.model_copy(update={"command": Argv(program="git", args=("commit",)), "timeout_s": 5.0}),
            [
                "= git",
                "= commit",
                f"{MINUS} [-m]",
                f"{MINUS} ['two words]␊[and a line']",
                f"{MINUS} Timeout  [none]",
                "+ Timeout  [5 s]",
            ],
        ),
        (
            shell("a"),
            shell("a").model_copy(update={"cwd": "/srv/x"}),
            ["= a", f"{MINUS} Directory  /srv", "+ Directory  /srv[/x]"],
        ),
    ],
)
def test_changes_are_shown_row_by_row_and_piece_by_piece(
    asked: CommandSpec, runs: CommandSpec, rows: list[str]
) -> None:
    assert shown(asked, runs) == rows


def test_arguments_are_one_per_line_and_mean_the_same() -> None:
    draft = draft_of(ARGV)
    assert draft.text.split("\n")[:2] == ["commit", "-m"]
    assert checked(draft, ARGV).spec == ARGV


@pytest.mark.slow
async def test_the_parts_of_a_shell_text_have_colours_of_the_theme() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("3")
        await seat.press("e")
        await seat.sees("Edit call 3")
        area = seat.app.screen.query_one(TextArea)
        assert area.language == "bash"
        area.text = 'if true; then echo "x"; fi # why'
        await seat.sees("# why")
        colours = load_themes().good["whisper-dark"].theme
        drawn = {
            segment.text.strip(): segment.style.color.triplet.hex
            for strip in (area.render_line(y) for y in range(1))
            for segment in strip
            if segment.style is not None and segment.style.color is not None and segment.style.color.triplet
        }
        assert drawn["echo"] == colours.primary
        assert drawn["# why"] == colours.variables["muted"]


async def test_every_change_is_in_view_before_it_is_approved() -> None:
    async with cockpit(three_waiting(), size=(200, 60)) as seat:
        await seat.select("3")
        await seat.press("e")
        await seat.sees("Will run: as requested")
        assert "what you changed" not in seat.text()
        seat.app.screen.query_one(TextArea).text = "echo 'rate = 30' > tax.conf"
        await seat.sees("Your changes to the request", f"{MINUS} │ echo 'rate = 20'", "+ │ echo 'rate = 30'")


@pytest.mark.slow
async def test_unseen_parts_of_an_edit_need_a_second_key() -> None:
    async with cockpit(three_waiting(), size=(100, 30)) as seat:
        await seat.select("3")
        await seat.press("e")
        await seat.sees("Edit call 3")
        seat.app.screen.query_one(TextArea).text = "\n".join(f"echo {number}" for number in range(200))
        await seat.sees("Will run: edited")
        await seat.press("ctrl+s")
        await seat.sees("of the command not shown")
        assert isinstance(seat.record("3").state, Waiting)
        await seat.press("ctrl+s")
        await seat.until(lambda: isinstance(seat.record("3").state, Running))


@pytest.mark.slow
async def test_earlier_reasons_are_offered() -> None:
    async with cockpit(three_waiting()) as seat:
        await seat.select("1")
        await seat.press("d")
        await seat.sees("Deny call 1")
        assert "Your earlier reasons" not in seat.text()
        await seat.press(*"use make", "enter")
        await seat.until(lambda: seat.selected == "2")
        seat.play.clock.advance(1)
        await seat.press("d")
        await seat.sees("Deny call 2", "Your earlier reasons", "use make")
        await seat.press("down", "enter")
        await seat.press(*" first", "enter")
        await seat.until(lambda: not isinstance(seat.record("2").state, Waiting))
        assert seat.record("2").decision.reason == "use make first"
        await seat.until(lambda: seat.selected == "3")
        seat.play.clock.advance(1)
        await seat.press("d")
        await seat.sees("Deny call 3", "use make first")
        await seat.click("#recent", offset=(2, 1))
        await seat.press("enter")
        await seat.until(lambda: not isinstance(seat.record("3").state, Waiting))
        assert seat.record("3").decision.reason == "use make"


def asking(*args: str) -> Play:
    """An agent asks for git with these arguments."""
    play = Play.begin()
    spec = CommandSpec(command=Argv(program="git", args=args), cwd="/srv")
    play.stage.ask(CallRequest(session_id="s1", tool="execute_command", arguments={}, spec=spec))
    return play


@asynccontextmanager
async def form(play: Play, size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[Cockpit, ArgumentsForm]]:
    """The fields of its arguments; the focus is in the last one."""
    async with cockpit(play, size=size) as seat:
        await seat.select("1")
        await seat.press("e")
        await seat.sees("Arguments: Enter adds")
        found = seat.app.screen.query_one(ArgumentsForm)
        await seat.until(lambda: isinstance(seat.app.focused, ArgumentField) or not found.fields)
        yield seat, found


def ran(seat: Cockpit) -> tuple[str, ...]:
    command = seat.record("1").spec.command
    assert isinstance(command, Argv)
    return command.args


ROUGH = ("commit", "-m", "two 'words' \\ $X\nand a line ", "")


@pytest.mark.slow
async def test_each_argument_has_a_field_with_its_exact_value() -> None:
    async with form(asking(*ROUGH)) as (seat, fields):
        assert fields.values == ROUGH
        await seat.sees("Will run: as requested")
        await seat.press("ctrl+s")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        assert ran(seat) == ROUGH and seat.record("1").spec == seat.record("1").call.spec


@pytest.mark.slow
async def test_arguments_are_added_moved_and_removed_by_keys() -> None:
    async with form(asking("commit", "-m", "words")) as (seat, fields):
        await seat.press("enter", *"a b", "ctrl+j", *"c")
        await seat.until(lambda: fields.values == ("commit", "-m", "words", "a b\nc"))
        await seat.press("alt+up", "alt+up")
        await seat.until(lambda: fields.values == ("commit", "a b\nc", "-m", "words"))
        await seat.press("up", "up", "alt+x")
        await seat.until(lambda: fields.values == ("a b\nc", "-m", "words"))
        await seat.press("down", "down", "alt+down")
        await seat.until(lambda: fields.values == ("a b\nc", "words", "-m"))
        await seat.sees("Will run: edited")
        await seat.press("ctrl+s")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        assert ran(seat) == ("a b\nc", "words", "-m")


@pytest.mark.slow
async def test_arguments_are_added_moved_and_removed_with_the_mouse() -> None:
    async with form(asking("commit", "-m")) as (seat, fields):
        await seat.click("#argument-add")
        await seat.until(lambda: fields.values == ("commit", "-m", ""))
        await seat.press(*"words")
        await seat.click(".argument-down")
        await seat.until(lambda: fields.values == ("-m", "commit", "words"))
        await seat.click(".argument-remove")
        await seat.until(lambda: fields.values == ("commit", "words"))


async def test_the_last_argument_can_be_removed_and_one_added_again() -> None:
    async with form(asking("commit")) as (seat, fields):
        await seat.press("alt+x")
        await seat.until(lambda: fields.values == ())
        await seat.click("#argument-add")
        await seat.until(lambda: fields.values == ("",))
        await seat.press("ctrl+s")
        await seat.until(lambda: isinstance(seat.record("1").state, Running))
        assert ran(seat) == ("",)


@pytest.mark.slow
async def test_hundreds_of_arguments_are_typed_as_numbered_lines() -> None:
    async with cockpit(asking(*map(str, range(300)))) as seat:
        await seat.select("1")
        await seat.press("e")
        await seat.sees("Arguments, one per line, in shell quoting")
        assert seat.app.screen.query_one(TextArea).show_line_numbers
