"""The editor: colours, words of an argv one a line, every change in view, nothing approved unseen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.widgets import TextArea

from tests.rows import each_row
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario
from tests.tui.test_deciding import three_waiting
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Shell
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.state import Running, Waiting
from whisper_tui.present.diff_text import change_paragraphs
from whisper_tui.present.tool_text import MINUS
from whisper_tui.tui.dialogs.drafts import checked, draft_of
from whisper_tui.tui.dialogs.edit_dialog import ArgumentField, ArgumentsForm
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


@each_row(
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
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("3")
        await cockpit.press("e")
        await cockpit.sees("Edit call 3")
        area = cockpit.app.screen.query_one(TextArea)
        assert area.language == "bash"
        area.text = 'if true; then echo "x"; fi # why'
        await cockpit.sees("# why")
        colours = load_themes().good["whisper-dark"].theme
        drawn = {
            segment.text.strip(): segment.style.color.triplet.hex
            for strip in (area.render_line(y) for y in range(1))
            for segment in strip
            if segment.style is not None and segment.style.color is not None and segment.style.color.triplet
        }
        assert drawn["echo"] == colours.primary
        assert drawn["# why"] == colours.variables["muted"]


@pytest.mark.slow
async def test_every_change_is_in_view_before_it_is_approved() -> None:
    async with open_cockpit(three_waiting(), size=(200, 60)) as cockpit:
        await cockpit.select("3")
        await cockpit.press("e")
        await cockpit.sees("Will run: as requested")
        assert "what you changed" not in cockpit.text()
        cockpit.app.screen.query_one(TextArea).text = "echo 'rate = 30' > tax.conf"
        await cockpit.sees("Your changes to the request", f"{MINUS} │ echo 'rate = 20'", "+ │ echo 'rate = 30'")


@pytest.mark.slow
async def test_unseen_parts_of_an_edit_need_a_second_key() -> None:
    async with open_cockpit(three_waiting(), size=(100, 30)) as cockpit:
        await cockpit.select("3")
        await cockpit.press("e")
        await cockpit.sees("Edit call 3")
        cockpit.app.screen.query_one(TextArea).text = "\n".join(f"echo {number}" for number in range(200))
        await cockpit.sees("Will run: edited")
        await cockpit.press("ctrl+s")
        await cockpit.sees("of the command not shown")
        assert isinstance(cockpit.record("3").state, Waiting)
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("3").state, Running))


@pytest.mark.slow
async def test_earlier_reasons_are_offered() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("1")
        await cockpit.press("d")
        await cockpit.sees("Deny call 1")
        assert "Your earlier reasons" not in cockpit.text()
        await cockpit.press(*"use make", "enter")
        await cockpit.until(lambda: cockpit.selected == "2")
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.press("d")
        await cockpit.sees("Deny call 2", "Your earlier reasons", "use make")
        await cockpit.press("down", "shift+tab", *" first", "enter")
        await cockpit.until(lambda: not isinstance(cockpit.record("2").state, Waiting))
        assert cockpit.record("2").decision.reason == "use make first"
        await cockpit.until(lambda: cockpit.selected == "3")
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.press("d")
        await cockpit.sees("Deny call 3", "use make first")
        await cockpit.click("#recent", offset=(2, 1))
        await cockpit.press("enter")
        await cockpit.until(lambda: not isinstance(cockpit.record("3").state, Waiting))
        assert cockpit.record("3").decision.reason == "use make"


def asking(*args: str) -> Scenario:
    """An agent asks for git with these arguments."""
    scenario = Scenario.begin()
    spec = CommandSpec(command=Argv(program="git", args=args), cwd="/srv")
    scenario.supervisor.ask(CallRequest(session_id="s1", tool="execute_command", arguments={}, spec=spec))
    return scenario


@asynccontextmanager
async def form(scenario: Scenario, size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[Cockpit, ArgumentsForm]]:
    """The fields of its arguments; the focus is in the last one."""
    async with open_cockpit(scenario, size=size) as cockpit:
        await cockpit.select("1")
        await cockpit.press("e")
        await cockpit.sees("Arguments: Enter adds")
        found = cockpit.app.screen.query_one(ArgumentsForm)
        await cockpit.until(lambda: isinstance(cockpit.app.focused, ArgumentField) or not found.fields)
        yield cockpit, found


def ran(cockpit: Cockpit) -> tuple[str, ...]:
    command = cockpit.record("1").spec.command
    assert isinstance(command, Argv)
    return command.args


ROUGH = ("commit", "-m", "two 'words' \\ $X\nand a line ", "")


@pytest.mark.slow
async def test_each_argument_has_a_field_with_its_exact_value() -> None:
    async with form(asking(*ROUGH)) as (cockpit, fields):
        assert fields.values == ROUGH
        await cockpit.sees("Will run: as requested")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        assert ran(cockpit) == ROUGH and cockpit.record("1").spec == cockpit.record("1").call.spec


@pytest.mark.slow
async def test_arguments_are_added_moved_and_removed_by_keys() -> None:
    async with form(asking("commit", "-m", "words")) as (cockpit, fields):
        await cockpit.press("enter", *"a b", "ctrl+j", *"c")
        await cockpit.until(lambda: fields.values == ("commit", "-m", "words", "a b\nc"))
        await cockpit.press("alt+up", "alt+up")
        await cockpit.until(lambda: fields.values == ("commit", "a b\nc", "-m", "words"))
        await cockpit.press("up", "up", "alt+x")
        await cockpit.until(lambda: fields.values == ("a b\nc", "-m", "words"))
        await cockpit.press("down", "down", "alt+down")
        await cockpit.until(lambda: fields.values == ("a b\nc", "words", "-m"))
        await cockpit.sees("Will run: edited")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        assert ran(cockpit) == ("a b\nc", "words", "-m")


@pytest.mark.slow
async def test_arguments_are_added_moved_and_removed_with_the_mouse() -> None:
    async with form(asking("commit", "-m")) as (cockpit, fields):
        await cockpit.click("#argument-add")
        await cockpit.until(lambda: fields.values == ("commit", "-m", ""))
        await cockpit.press(*"words")
        await cockpit.click(".argument-down")
        await cockpit.until(lambda: fields.values == ("-m", "commit", "words"))
        await cockpit.click(".argument-remove")
        await cockpit.until(lambda: fields.values == ("commit", "words"))


@pytest.mark.slow
async def test_the_last_argument_can_be_removed_and_one_added_again() -> None:
    async with form(asking("commit")) as (cockpit, fields):
        await cockpit.press("alt+x")
        await cockpit.until(lambda: fields.values == ())
        await cockpit.click("#argument-add")
        await cockpit.until(lambda: fields.values == ("",))
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        assert ran(cockpit) == ("",)


@pytest.mark.slow
async def test_hundreds_of_arguments_are_typed_as_numbered_lines() -> None:
    async with open_cockpit(asking(*map(str, range(300)))) as cockpit:
        await cockpit.select("1")
        await cockpit.press("e")
        await cockpit.sees("Arguments, one per line, in shell quoting")
        assert cockpit.app.screen.query_one(TextArea).show_line_numbers


async def test_an_edit_that_was_not_sent_is_there_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lose(*_: object) -> None:
        raise Unavailable("the connection was lost")

    async with open_cockpit(three_waiting(), size=(200, 60)) as cockpit:
        await cockpit.select("3")
        with monkeypatch.context() as patched:
            patched.setattr(cockpit.scenario.supervisor, "decide", lose)
            await cockpit.press("e")
            await cockpit.sees("Edit call 3")
            cockpit.app.screen.query_one(TextArea).text = "echo 'rate = 30' > tax.conf"
            await cockpit.press("ctrl+s")
            await cockpit.sees("The connection was lost.")
        assert isinstance(cockpit.record("3").state, Waiting)
        await cockpit.press("e")
        await cockpit.sees("Edit call 3", "Will run: edited")
        assert cockpit.app.screen.query_one(TextArea).text == "echo 'rate = 30' > tax.conf"
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("3").state, Running))
        assert cockpit.record("3").spec.command == Shell(text="echo 'rate = 30' > tax.conf")


async def test_ctrl_home_and_ctrl_end_move_to_the_ends_of_the_text() -> None:
    async with open_cockpit(three_waiting(), size=(200, 60)) as cockpit:
        await cockpit.select("3")
        await cockpit.press("e")
        await cockpit.sees("Edit call 3")
        area = cockpit.app.screen.query_one(TextArea)
        area.text = "one\ntwo\nthree"
        await cockpit.press("ctrl+home")
        await cockpit.until(lambda: area.cursor_location == (0, 0))
        await cockpit.press("ctrl+end")
        await cockpit.until(lambda: area.cursor_location == (2, 5))
