"""Nothing that an agent writes acts in the cockpit or hides there, wherever it is shown."""

import pytest
from textual.widget import Widget
from textual.widgets import TextArea
from textual.widgets._toast import Toast

from tests.hostile.adversarial import Adversary, cockpit_of
from tests.hostile.screen import check, holds, missing, read_through, rows
from tests.hostile.texts import TEXTS, each_of, samples
from tests.tui.cockpit import Cockpit
from whisper_tui.model.call import Argv, Shell
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.text import is_hidden, without_hidden
from whisper_tui.present.session_text import LONGEST_NAME
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
"""Words before the text in each field of a call that waits, as the agent of these tests fills them in."""


async def in_dialog(cockpit: Cockpit, key: str, view: str = "", *texts: str) -> None:
    """Open a dialog, look at it, read one of its texts through, and leave it."""
    below = len(cockpit.app.screen_stack)
    await cockpit.press(key)
    await cockpit.until(lambda: len(cockpit.app.screen_stack) > below)
    await cockpit.pilot.pause()
    check(cockpit)
    if view:
        shown = cockpit.app.screen.query_one(view, ParagraphsView)
        await cockpit.until(lambda: shown.virtual_size.height > 2)
        assert missing(await read_through(cockpit, shown), list(texts)) == []
    await cockpit.press("escape")
    await cockpit.until(lambda: len(cockpit.app.screen_stack) == below)


def squeezed_rows(cockpit: Cockpit, widget: Widget) -> str:
    return " ".join(" ".join(rows(cockpit, widget)).split())


def short_name(name: str) -> str:
    """As much of a name as is certainly shown."""
    return name[:LONGEST_NAME]


@each_text
async def test_a_call_in_full_shows_every_field_letter_by_letter(text: str, adversary: Adversary) -> None:
    argv, shell, function = adversary.ask_in_every_form()
    # Too narrow for a second column, in which the effects would stand beside what is read.
    async with cockpit_of(adversary, (120, 60)) as cockpit:
        await cockpit.press("m")
        view = cockpit.screen.query_one("#call-detail", ParagraphsView)
        for call_id, words in ((argv, ("program", *FIELDS)), (shell, ("run", *FIELDS)), (function, ("function",))):
            await cockpit.select(call_id)
            shown = await read_through(cockpit, view)
            assert missing(shown, [f"{word} {text}" for word in words]) == []


async def test_lists_show_each_text_in_a_row_of_its_own() -> None:
    adversary = Adversary("x")
    for text in TEXTS.values():
        adversary.ask(Shell(text=f"{text} end"))
    async with cockpit_of(adversary, (240, 80)) as cockpit:
        check(cockpit)
        await cockpit.press("ctrl+g", "ctrl+g")
        await cockpit.pilot.pause()
        check(cockpit)
        await cockpit.press("H")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, HistoryScreen))
        await cockpit.sees("End of the history.")
        past = cockpit.app.screen.query_one(PastList)
        await cockpit.until(lambda: missing(rows(cockpit, past), [text[:3] for text in TEXTS.values()]) == [])
        check(cockpit)


@each_text
async def test_dialogs_about_a_call_that_waits_show_it_letter_by_letter(text: str, adversary: Adversary) -> None:
    adversary.talk()
    adversary.remember()
    call_id = adversary.ask(Argv(program=f"program {text}", args=(text,)))
    async with cockpit_of(adversary) as cockpit:
        await cockpit.select(call_id)
        await read_through(cockpit, cockpit.screen.query_one("#call-detail", ParagraphsView))
        await in_dialog(cockpit, "e")
        await in_dialog(cockpit, "d")
        await in_dialog(cockpit, "D")
        await in_dialog(cockpit, "A", "#covered", f"program {text}")
        await in_dialog(cockpit, "N")
        await in_dialog(cockpit, "P", "#said", f"said {text}", f"asked {text}")
        await in_dialog(cockpit, "E")
        await cockpit.press("space")
        await in_dialog(cockpit, "R", "#batch", short_name(f"name {text}"))


@each_text
async def test_the_editor_shows_what_was_asked_and_every_change(text: str, adversary: Adversary) -> None:
    call_id = adversary.ask(Shell(text=f"run {text}"))
    async with cockpit_of(adversary) as cockpit:
        await cockpit.select(call_id)
        await cockpit.press("e")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, EditScreen))
        asked, field = (
            cockpit.app.screen.query_one("#edit-asked", ParagraphsView),
            cockpit.app.screen.query_one(TextArea),
        )
        await cockpit.until(lambda: asked.virtual_size.height > 2)
        assert missing(await read_through(cockpit, asked), [f"run {text}", f"/cwd {text}"]) == []
        assert not any(is_hidden(character) for character in field.text.replace("\n", "").replace("\t", ""))
        field.text = f"other {without_hidden(text)}"
        runs = cockpit.app.screen.query_one("#edit-runs", ParagraphsView)
        await cockpit.until(lambda: holds(cockpit, "other", runs))
        assert missing(await read_through(cockpit, asked), [f"/cwd {text}"]) == []


@each_text
async def test_running_and_background_processes_are_shown_with_escaped_text(text: str, adversary: Adversary) -> None:
    call_id = adversary.ask(Shell(text=f"run {text}"))
    adversary.run(call_id, f"printed {text}\n")
    async with cockpit_of(adversary) as cockpit:
        await cockpit.select(call_id)
        shown = await read_through(cockpit, cockpit.screen.query_one("#call-detail", ParagraphsView))
        assert missing(shown, [f"behind {text}", f"gave up {text}", short_name(f"who {text}")]) == []
        await in_dialog(cockpit, "b")
        await in_dialog(cockpit, "x")
        for key in ("Z", "w", "W", "#", "#", "o", "o", "ctrl+f"):
            await cockpit.press(key)
            await cockpit.settled()
            check(cockpit, printed=True)


@each_text
async def test_every_ending_is_shown_letter_by_letter(text: str, adversary: Adversary) -> None:
    endings = adversary.endings()
    async with cockpit_of(adversary) as cockpit:
        view = cockpit.screen.query_one("#call-detail", ParagraphsView)
        for call_id, word in zip(endings, ("failed", "withdrawn", "lost", "denied"), strict=True):
            await cockpit.select(call_id)
            assert missing(await read_through(cockpit, view), [f"{word} {text}"]) == []


@each_text
async def test_history_and_figures_show_it_letter_by_letter(text: str, adversary: Adversary) -> None:
    call_id = adversary.ask(Shell(text=f"run {text}"))
    adversary.run(call_id, f"printed {text}\n")
    adversary.scenario.supervisor.finish(call_id)
    async with cockpit_of(adversary) as cockpit:
        await cockpit.press("H")
        await cockpit.until(
            lambda: isinstance(cockpit.app.screen, HistoryScreen) and cockpit.app.screen.record is not None
        )
        shown = await read_through(cockpit, cockpit.app.screen.query_one("#past-detail", ParagraphsView))
        assert missing(shown, [f"{word} {text}" for word in ("run", *FIELDS)]) == []
        await in_dialog(cockpit, "i")
        await cockpit.press("s", "slash", *"zzzz", "enter")
        await cockpit.sees("No matching calls.")
        check(cockpit)


@each_text
async def test_rules_and_approvals_show_it_letter_by_letter(text: str, adversary: Adversary) -> None:
    adversary.ask()
    adversary.remember()
    async with cockpit_of(adversary) as cockpit:
        await cockpit.press("L")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, RulesScreen))
        words = cockpit.app.screen.query_one("#rules-words", ParagraphsView)
        await cockpit.until(lambda: words.virtual_size.height > 3)
        assert missing(await read_through(cockpit, words), [f"word {text}", f"/dir {text}", f"name {text}"]) == []
        await cockpit.press("down")
        await cockpit.until(lambda: "because" in squeezed_rows(cockpit, words))
        shown = await read_through(cockpit, words)
        assert missing(shown, [f"{word} {text}" for word in ("rule", "subject", "where", "because")]) == []
        await in_dialog(cockpit, "x")


@each_text
async def test_passing_words_and_lost_connections_show_it_letter_by_letter(text: str, adversary: Adversary) -> None:
    adversary.ask()
    async with cockpit_of(adversary) as cockpit:
        cockpit.screen.tell(f"told {text}")
        # a message covers no call that waits, so the end of a very long one has no room
        told = f"told {text[:60]}"
        await cockpit.until(lambda: any(holds(cockpit, told, toast) for toast in cockpit.app.screen.query(Toast)))
        check(cockpit)
        adversary.scenario.supervisor.break_down(Unavailable(f"broken {text}"))
        await cockpit.until(lambda: holds(cockpit, f"roken {text}"))
        check(cockpit)
