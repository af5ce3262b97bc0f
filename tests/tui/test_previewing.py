"""Previews in the cockpit: the changes of a waiting command are shown, and are what an approval makes real."""

from tests.tui.cockpit import Cockpit, cockpit, toast_text
from tests.tui.preview_scenes import (
    CHANGES,
    REPORT,
    applied,
    cannot_be_applied,
    end_preview,
    previewed,
    previewing,
    tidying,
)
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import FailedToStart
from whisper_tui.model.preview import ChangeCounts, PreviewReport
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.tui.dialogs.take_back_dialog import TakeBackScreen

TALL = (140, 110)


async def decide(seat: Cockpit, key: str) -> None:
    """Press a key some time after the selection has changed."""
    await seat.settled()
    seat.play.clock.advance(1)
    await seat.press(key)


async def test_a_key_previews_a_waiting_call_and_the_card_shows_what_it_changed() -> None:
    play, call_id = tidying()
    async with cockpit(play, size=TALL) as seat:
        await decide(seat, "s")
        await seat.until(lambda: "Preview  running for" in seat.text())
        end_preview(play, call_id)
        await seat.until(lambda: "hunk 1" in seat.text())
        text = seat.text()
    assert "3 created, 1 changed, 1 deleted, 1 with other attributes" in text
    assert "exit 0 after 0.40 s" in text
    assert "M settings.py" in text
    assert "A pages/  with 1 entry" in text
    assert "D old.txt" in text
    assert "P tidy.sh  mode 644 → 755  ! it is executable" in text
    assert "1 change outside the workspace." in text
    assert '"pages": 20' in text
    assert isinstance(play.stage.known(call_id).state, Waiting)


async def test_the_key_ends_a_preview_that_runs() -> None:
    play = previewing()
    async with cockpit(play, size=TALL) as seat:
        await seat.until(lambda: "Preview  running for" in seat.text())
        await decide(seat, "s")
        await seat.until(lambda: "was ended" in toast_text(seat.app))
        await seat.until(lambda: "running for" not in seat.text())
    preview = play.stage.known("1").preview
    assert preview is not None
    assert preview.dropped


async def test_apply_approves_exactly_the_preview_that_is_on_the_screen() -> None:
    play = previewed()
    async with cockpit(play, size=TALL) as seat:
        await seat.until(lambda: "make exactly these changes" in seat.text())
        await seat.until(lambda: not seat.screen.card.previews.asking)
        await decide(seat, "equals_sign")
        await seat.until(lambda: isinstance(play.stage.known("1").state, Ended))
        await seat.until(lambda: "as previewed" in toast_text(seat.app))
    assert play.stage.known("1").decision == Approve(preview=REPORT.digest)


async def test_approve_runs_the_command_for_real_although_there_is_a_preview() -> None:
    play = previewed()
    async with cockpit(play, size=TALL) as seat:
        await seat.until(lambda: "run it for real" in seat.text())
        await seat.until(lambda: not seat.screen.card.previews.asking)
        await decide(seat, "a")
        await seat.until(lambda: play.stage.known("1").decision is not None)
    assert play.stage.known("1").decision == Approve()


async def test_changes_that_were_not_on_the_screen_are_applied_at_the_second_key_only() -> None:
    play = previewed()
    async with cockpit(play, size=(80, 24)) as seat:
        await seat.until(lambda: "not seen yet" in seat.text())
        await decide(seat, "equals_sign")
        await seat.until(lambda: "press again to apply it anyway" in toast_text(seat.app))
        assert play.stage.known("1").decision is None
        await decide(seat, "equals_sign")
        await seat.until(lambda: play.stage.known("1").decision is not None)


async def test_what_changed_since_the_preview_is_named_and_prevents_the_application() -> None:
    play = cannot_be_applied()
    async with cockpit(play, size=TALL) as seat:
        await seat.until(lambda: "Changed since the preview" in seat.text())
        text = seat.text()
        await decide(seat, "equals_sign")
        await seat.until(lambda: "Nothing was decided" in toast_text(seat.app))
    assert play.stage.known("1").decision is None
    assert "make exactly these changes" not in text
    assert "It tried to reach stats.example.net:443 (3 times), over the network: refused." in text
    assert "It left a process behind, which ended with the preview: ./watch.sh garden" in text
    assert "It waited for a refused connection" in text


async def test_a_preview_that_cannot_be_made_says_why_and_cannot_be_applied() -> None:
    play, call_id = tidying()
    async with cockpit(play, size=TALL) as seat:
        await decide(seat, "s")
        await seat.until(lambda: play.stage.known(call_id).preview is not None)
        failed = FailedToStart(problem="other", subject="sh", message="The system gives it no namespaces.")
        report = PreviewReport(ending=failed, problem="the system gives it no namespaces", counts=ChangeCounts())
        end_preview(play, call_id, report, ())
        await seat.until(lambda: "It cannot be applied: the system gives it no namespaces." in seat.text())
        await decide(seat, "equals_sign")
        await seat.until(lambda: "has no preview that could be applied" in toast_text(seat.app))
    assert play.stage.known(call_id).decision is None


async def test_a_supervisor_that_cannot_preview_is_quoted() -> None:
    play, call_id = tidying()
    play.stage.preview_problem = "the system gives a process no namespaces"
    async with cockpit(play, size=TALL) as seat:
        await decide(seat, "s")
        await seat.until(lambda: "the system gives a process no namespaces" in toast_text(seat.app))
    assert play.stage.known(call_id).preview is None


async def test_a_key_approves_a_call_so_that_it_can_be_taken_back() -> None:
    play, call_id = tidying()
    async with cockpit(play, size=TALL) as seat:
        await decide(seat, "tilde")
        await seat.until(lambda: play.stage.known(call_id).decision is not None)
        await seat.until(lambda: "can be taken back after its end" in toast_text(seat.app))
    assert play.stage.known(call_id).decision == Approve(undoable=True)


async def test_a_row_says_that_its_call_was_previewed_or_taken_back() -> None:
    play = previewed()
    async with cockpit(play, size=(120, 30)) as seat:
        await seat.until(lambda: "--all      previewed" in seat.text())
    play = applied()
    async with cockpit(play, size=(120, 30)) as seat:
        assert "taken back" not in seat.text()
        await decide(seat, "J")
        await seat.until(lambda: isinstance(seat.app.screen, TakeBackScreen))
        await seat.press("ctrl+s")
        await seat.until(lambda: "taken back" in seat.text())


async def test_taking_back_shows_the_reverse_difference_first_and_then_all_of_it() -> None:
    play = applied()
    async with cockpit(play, size=TALL) as seat:
        await seat.until(lambda: "takes them back" in seat.text())
        await decide(seat, "J")
        await seat.until(lambda: '"pages": 20' in seat.text() and isinstance(seat.app.screen, TakeBackScreen))
        assert "Take back what call 1 changed" in seat.text()
        assert play.stage.known("1").undo is None
        await seat.press("ctrl+s")
        await seat.until(lambda: play.stage.known("1").undo is not None)
        await seat.until(lambda: "makes them again" in seat.text())
        undo = play.stage.known("1").undo
        assert undo is not None
        assert (undo.direction, undo.paths, undo.done) == ("undo", (), True)
        await decide(seat, "J")
        await seat.until(lambda: "Make again what call 1 changed" in seat.text())
        await seat.press("ctrl+s")
        await seat.until(lambda: (now := play.stage.known("1").undo) is not None and now.direction == "redo")


async def test_single_files_can_be_taken_back() -> None:
    play = applied()
    async with cockpit(play, size=TALL) as seat:
        await decide(seat, "J")
        await seat.until(lambda: isinstance(seat.app.screen, TakeBackScreen))
        await seat.press("a", "ctrl+s")
        await seat.until(lambda: "Nothing is chosen" in toast_text(seat.app))
        await seat.press("down", "down", "space", "ctrl+s")
        await seat.until(lambda: play.stage.known("1").undo is not None)
    undo = play.stage.known("1").undo
    assert undo is not None
    assert undo.paths == (CHANGES[3].path,)


async def test_leaving_the_dialog_takes_nothing_back() -> None:
    play = applied()
    async with cockpit(play, size=TALL) as seat:
        await decide(seat, "J")
        await seat.until(lambda: isinstance(seat.app.screen, TakeBackScreen))
        await seat.press("escape")
        await seat.until(lambda: not isinstance(seat.app.screen, TakeBackScreen))
    assert play.stage.known("1").undo is None


async def test_a_refused_undo_is_said_with_the_paths() -> None:
    play = applied()
    page = play.stage.preview_pages["1"]
    async with cockpit(play, size=TALL) as seat:
        await decide(seat, "J")
        await seat.until(lambda: isinstance(seat.app.screen, TakeBackScreen))
        play.stage.preview_pages["1"] = page.model_copy(update={"conflicts": (CHANGES[0].path,)})
        await seat.press("ctrl+s")
        await seat.until(lambda: CHANGES[0].path in toast_text(seat.app))
    assert play.stage.known("1").undo is None


async def test_the_output_of_a_preview_is_shown_while_the_call_waits() -> None:
    async with cockpit(previewed(), size=TALL) as seat:
        await seat.until(lambda: "nobody uses it" in seat.text())
