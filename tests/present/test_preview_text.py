"""Previews in words: as lines of `watch`, and in a Markdown document."""

from tests.tui.edit_scenes import GARDEN
from tests.tui.preview_scenes import CHANGES, ME, REPORT, applied, cannot_be_applied
from whisper_tui.cli.watch_text import happened
from whisper_tui.export.document import call_report
from whisper_tui.model.ending import Exited
from whisper_tui.model.event import Decided, PreviewEnded, PreviewStarted, UndoEnded, UndoStarted
from whisper_tui.model.preview import BlockedAccess, ChangeCounts, PreviewReport, PreviewSupport
from whisper_tui.present.preview_text import (
    blocked_text,
    change_line,
    counts_text,
    findings_text,
    way_text,
    without_renamed,
)


def test_watch_reads_a_preview_out_with_everything_that_was_refused() -> None:
    scenario = cannot_be_applied()
    record = scenario.supervisor.known("1")
    assert record.preview is not None and record.preview.report is not None
    started = happened(PreviewStarted(at=0, call_id="1", attempt=1, by=ME), scenario.supervisor.board)
    assert started is not None and started.endswith("Call 1 is previewed by me in the cockpit: ./tidy.sh --all.")
    over = happened(PreviewEnded(at=0, call_id="1", attempt=1, report=record.preview.report), scenario.supervisor.board)
    assert over is not None
    assert "3 created, 1 changed, 1 deleted, 1 with other attributes; exit 7." in over
    assert "stats.example.net:443" in over and "./watch.sh garden" in over


def test_watch_says_that_a_preview_was_approved_and_that_it_was_taken_back() -> None:
    scenario = applied()
    record = scenario.supervisor.known("1")
    assert record.decision is not None
    approved = happened(Decided(at=0, call_id="1", decision=record.decision, by=ME), scenario.supervisor.board)
    assert approved is not None and "is approved, as previewed by me" in approved
    scenario.supervisor.happen(UndoStarted(at=0, call_id="1", direction="undo", by=ME))
    ended = UndoEnded(at=0, call_id="1")
    scenario.supervisor.happen(ended)
    said = happened(ended, scenario.supervisor.board)
    assert said is not None and said.endswith("The changes of call 1 were undone by me in the cockpit.")
    failed = UndoEnded(at=0, call_id="1", problem="a.txt has changed since")
    said = happened(failed, scenario.supervisor.board)
    assert said is not None and said.endswith("were not undone: a.txt has changed since.")


def test_the_row_of_a_moved_file_says_where_it_comes_from() -> None:
    moved = CHANGES[2].model_copy(update={"moved_from": f"{GARDEN}/notes.md", "alike": 100})
    edited = moved.model_copy(update={"alike": 87, "mode_before": 0o644, "mode_after": 0o755})
    lines = ["".join(span.text for span in change_line(each, str(GARDEN))) for each in (moved, edited)]
    assert lines[0] == "renamed notes.md → pages/moss.md  23 B"
    assert lines[1] == "renamed notes.md → pages/moss.md  23 B · 87% the same · mode 644 → 755"


def test_the_old_name_is_listed_where_it_is_special_or_the_new_one_is_not_listed() -> None:
    new = CHANGES[2].model_copy(update={"moved_from": CHANGES[3].path, "alike": 100})
    old = CHANGES[3].model_copy(update={"moved_to": new.path})
    assert without_renamed((old, new)) == [new]
    assert without_renamed((old,)) == [old]
    for update in ({"flags": ("it is a hook of git",)}, {"outside": True}):
        special = old.model_copy(update=update)
        assert without_renamed((special, new)) == [special, new]


def test_counts_name_only_what_there_is() -> None:
    assert counts_text(ChangeCounts()) == "no file is changed"
    assert counts_text(ChangeCounts(created=1200)) == "1,200 created"
    assert counts_text(REPORT.counts) == "3 created, 1 changed, 1 deleted, 1 with other attributes"


async def test_a_report_says_that_a_call_was_applied_and_taken_back() -> None:
    scenario = applied()
    scenario.supervisor.happen(UndoStarted(at=0, call_id="1", direction="undo", by=ME), UndoEnded(at=0, call_id="1"))
    report = await call_report(scenario.supervisor, scenario.supervisor.known("1"), None)
    assert "Applied from its preview: it did not run again" in report
    assert "* Its changes: `undone 1970-01-01 00:00:00 UTC by me in the cockpit`" in report


def test_an_inexact_way_to_preview_says_what_it_cannot_show_and_why_it_was_used() -> None:
    assert list(way_text(REPORT)) == []
    refused = (("overlay", "the system gives it no namespaces"), ("bubblewrap", "it is not installed"))
    copied = list(way_text(REPORT.model_copy(update={"way": "copy", "instead": refused})))
    assert copied[0] == "Previewed with a copy of the workspace, in the sandbox."
    assert "absolute paths into the workspace" in copied[1]
    assert copied[2:] == [
        "Not with namespaces and overlayfs: the system gives it no namespaces.",
        "Not with bubblewrap: it is not installed.",
    ]
    assert "It could write nothing" in " ".join(way_text(REPORT.model_copy(update={"way": "read-only"})))


def test_refusals_are_named_as_what_a_real_run_would_do_or_as_what_was_tried() -> None:
    write, change = BlockedAccess(what="write", target="/a"), BlockedAccess(what="change", target="/b", times=2)
    assert blocked_text(write, "read-only") == "It would write to /a."
    assert blocked_text(write, "copy") == "It tried to write to /a: refused."
    assert blocked_text(change, "read-only") == "It would change the attributes of /b (2 times)."
    reach = BlockedAccess(what="reach", target="/srv/a")
    assert blocked_text(reach, "copy") == "It tried to use /srv/a by this path, which its copy does not have: refused."
    nameless = BlockedAccess(what="network", target="")
    assert blocked_text(nameless, "copy") == "It tried to reach another machine, over the network: refused."
    device = BlockedAccess(what="device", target="/dev/sda")
    assert blocked_text(device) == "It tried to write to /dev/sda, where the preview has no device: refused."


def test_a_read_only_run_says_how_many_files_it_would_write_to() -> None:
    tried = (BlockedAccess(what="write", target="/a"), BlockedAccess(what="change", target="/b"))
    report = PreviewReport(
        ending=Exited(code=0), way="read-only", blocked=(*tried, BlockedAccess(what="network", target=""))
    )
    assert findings_text(report) == "it would write to 2 files"
    assert findings_text(report.model_copy(update={"more_blocked": 3})) == "it would write to 2 files and more"
    assert findings_text(report.model_copy(update={"blocked": ()})) == "no file would be changed"
    assert findings_text(PreviewReport(ending=Exited(code=0))) == "no file is changed"


def test_the_ways_of_a_machine_are_named_with_the_reasons_against_better_ones() -> None:
    assert PreviewSupport(ways=("overlay", "copy", "read-only")).words == "with namespaces and overlayfs"
    found = PreviewSupport(
        ways=("copy", "read-only"), refused=(("overlay", "no namespaces"), ("bubblewrap", "too old"))
    )
    assert found.words == (
        "with a copy of the workspace, in the sandbox (namespaces and overlayfs: no namespaces; bubblewrap: too old)"
    )
    assert PreviewSupport(problem="previews need Linux").words == "not possible (previews need Linux)"
