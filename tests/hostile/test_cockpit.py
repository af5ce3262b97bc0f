"""Nothing that an agent writes acts in the cockpit or hides there, wherever it is shown."""

import pytest
from textual.widget import Widget
from textual.widgets import TextArea
from textual.widgets._toast import Toast

from tests.hostile.adversarial import Adversary, seated
from tests.hostile.screen import check, holds, missing, read_through, rows
from tests.hostile.texts import TEXTS, each_of, samples
from tests.tui.cockpit import Cockpit
from whisper_tui.model.call import Argv, Shell
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.text import is_hidden, without_hidden
from whisper_tui.present.words import LONGEST_NAME
from whisper_tui.tui.dialogs.edit_dialog import EditScreen
from whisper_tui.tui.paragraphs_view import ParagraphsView
from whisper_tui.tui.screens.history_screen import HistoryScreen
from whisper_tui.tui.screens.past_calls import PastList
from whisper_tui.tui.screens.rules_screen import RulesScreen

pytestmark = pytest.mark.slow

SAMPLES = samples()
each_text = each_of(SAMPLES)

FIELDS = (
    "risk",
    "says",
    "word",
    "/bin",
    "wrapper",
    "files",
    "unknown",
    "variable",
    "/real",
    "/cwd",
    "problem",
    "value",
    "name",
    "client",
    "v",
    "/root",
    "tool",
    "reason",
    "rule",
)
"""Words before the text in each field of a call that waits, as the stage of these tests fills them in."""


async def in_dialog(seat: Cockpit, key: str, view: str = "", *texts: str) -> None:
    """Open a dialog, look at it, read one of its texts through, and leave it."""
    below = len(seat.app.screen_stack)
    await seat.press(key)
    await seat.until(lambda: len(seat.app.screen_stack) > below)
    await seat.pilot.pause()
    check(seat)
    if view:
        shown = seat.app.screen.query_one(view, ParagraphsView)
        await seat.until(lambda: shown.virtual_size.height > 2)
        assert missing(await read_through(seat, shown), list(texts)) == []
    await seat.press("escape")
    await seat.until(lambda: len(seat.app.screen_stack) == below)


def squeezed_rows(seat: Cockpit, widget: Widget) -> str:
    return " ".join(" ".join(rows(seat, widget)).split())


def short_name(name: str) -> str:
    """As much of a name as is certainly shown."""
    return name[:LONGEST_NAME]


@each_text
async def test_a_call_in_full_shows_every_field_letter_by_letter(text: str, adversary: Adversary) -> None:
    argv, shell, function = adversary.ask_in_every_form()
    # Too narrow for a second column, in which the effects would stand beside what is read.
    async with seated(adversary, (120, 60)) as seat:
        await seat.press("m")
        view = seat.screen.query_one("#call-detail", ParagraphsView)
        for call_id, words in ((argv, ("program", *FIELDS)), (shell, ("run", *FIELDS)), (function, ("function",))):
            await seat.select(call_id)
            shown = await read_through(seat, view)
            assert missing(shown, [f"{word} {text}" for word in words]) == []


async def test_lists_show_each_text_in_a_row_of_its_own() -> None:
    adversary = Adversary("x")
    for text in TEXTS.values():
        adversary.ask(Shell(text=f"{text} end"))
    async with seated(adversary, (240, 80)) as seat:
        check(seat)
        await seat.press("ctrl+g", "ctrl+g")
        await seat.pilot.pause()
        check(seat)
        await seat.press("H")
        await seat.until(lambda: isinstance(seat.app.screen, HistoryScreen))
        await seat.sees("End of the history.")
        check(seat)
        listed = rows(seat, seat.app.screen.query_one(PastList))
        assert missing(listed, [text[:5] for text in TEXTS.values()]) == []


@each_text
async def test_dialogs_about_a_call_that_waits_show_it_letter_by_letter(text: str, adversary: Adversary) -> None:
    adversary.talk()
    adversary.remember()
    call_id = adversary.ask(Argv(program=f"program {text}", args=(text,)))
    async with seated(adversary) as seat:
        await seat.select(call_id)
        await read_through(seat, seat.screen.query_one("#call-detail", ParagraphsView))
        await in_dialog(seat, "e")
        await in_dialog(seat, "d")
        await in_dialog(seat, "D")
        await in_dialog(seat, "A", "#covered", f"program {text}")
        await in_dialog(seat, "N")
        await in_dialog(seat, "P", "#said", f"said {text}", f"asked {text}")
        await in_dialog(seat, "E")
        await seat.press("space")
        await in_dialog(seat, "R", "#batch", short_name(f"name {text}"))


@each_text
async def test_the_editor_shows_what_was_asked_and_every_change(text: str, adversary: Adversary) -> None:
    call_id = adversary.ask(Shell(text=f"run {text}"))
    async with seated(adversary) as seat:
        await seat.select(call_id)
        await seat.press("e")
        await seat.until(lambda: isinstance(seat.app.screen, EditScreen))
        asked, field = seat.app.screen.query_one("#edit-asked", ParagraphsView), seat.app.screen.query_one(TextArea)
        await seat.until(lambda: asked.virtual_size.height > 2)
        assert missing(await read_through(seat, asked), [f"run {text}", f"/cwd {text}"]) == []
        assert not any(is_hidden(character) for character in field.text.replace("\n", "").replace("\t", ""))
        field.text = f"other {without_hidden(text)}"
        runs = seat.app.screen.query_one("#edit-runs", ParagraphsView)
        await seat.until(lambda: holds(seat, "other", runs))
        assert missing(await read_through(seat, asked), [f"/cwd {text}"]) == []


@each_text
async def test_running_and_background_processes_are_shown_with_escaped_text(text: str, adversary: Adversary) -> None:
    call_id = adversary.ask(Shell(text=f"run {text}"))
    adversary.run(call_id, f"printed {text}\n")
    async with seated(adversary) as seat:
        await seat.select(call_id)
        shown = await read_through(seat, seat.screen.query_one("#call-detail", ParagraphsView))
        assert missing(shown, [f"behind {text}", f"gave up {text}", short_name(f"who {text}")]) == []
        await in_dialog(seat, "b")
        await in_dialog(seat, "k")
        await in_dialog(seat, "x")
        for key in ("Z", "w", "W", "#", "#", "o", "o", "ctrl+f"):
            await seat.press(key)
            await seat.settled()
            check(seat, printed=True)


@each_text
async def test_every_ending_is_shown_letter_by_letter(text: str, adversary: Adversary) -> None:
    endings = adversary.endings()
    async with seated(adversary) as seat:
        view = seat.screen.query_one("#call-detail", ParagraphsView)
        for call_id, word in zip(endings, ("failed", "withdrawn", "lost", "denied"), strict=True):
            await seat.select(call_id)
            assert missing(await read_through(seat, view), [f"{word} {text}"]) == []


@each_text
async def test_history_and_figures_show_it_letter_by_letter(text: str, adversary: Adversary) -> None:
    call_id = adversary.ask(Shell(text=f"run {text}"))
    adversary.run(call_id, f"printed {text}\n")
    adversary.play.stage.finish(call_id)
    async with seated(adversary) as seat:
        await seat.press("H")
        await seat.until(lambda: isinstance(seat.app.screen, HistoryScreen) and seat.app.screen.record is not None)
        shown = await read_through(seat, seat.app.screen.query_one("#past-detail", ParagraphsView))
        assert missing(shown, [f"{word} {text}" for word in ("run", *FIELDS)]) == []
        await in_dialog(seat, "i")
        await seat.press("s", "slash", *"zzzz", "enter")
        await seat.sees("No matching calls.")
        check(seat)


@each_text
async def test_rules_and_approvals_show_it_letter_by_letter(text: str, adversary: Adversary) -> None:
    adversary.ask()
    adversary.remember()
    async with seated(adversary) as seat:
        await seat.press("L")
        await seat.until(lambda: isinstance(seat.app.screen, RulesScreen))
        words = seat.app.screen.query_one("#rules-words", ParagraphsView)
        await seat.until(lambda: words.virtual_size.height > 3)
        assert missing(await read_through(seat, words), [f"word {text}", f"/dir {text}", f"name {text}"]) == []
        await seat.press("down")
        await seat.until(lambda: "because" in squeezed_rows(seat, words))
        shown = await read_through(seat, words)
        assert missing(shown, [f"{word} {text}" for word in ("rule", "subject", "where", "because")]) == []
        await in_dialog(seat, "x")


@each_text
async def test_passing_words_and_lost_connections_show_it_letter_by_letter(text: str, adversary: Adversary) -> None:
    adversary.ask()
    async with seated(adversary) as seat:
        seat.screen.tell(f"told {text}")
        await seat.until(lambda: any(holds(seat, f"told {text}", toast) for toast in seat.app.screen.query(Toast)))
        check(seat)
        adversary.play.stage.break_down(Unavailable(f"broken {text}"))
        await seat.until(lambda: holds(seat, f"roken {text}"))
        check(seat)
