"""A call as a row: every key is always there, and no ending looks like another."""

import json

from tests.model.build import (
    HUMAN,
    a_board,
    a_grant,
    a_process,
    a_session,
    a_shell,
    decided,
    finished,
    judged,
    left_behind,
    opened,
    spawned,
    started,
    submitted,
)
from tests.rows import each_row
from whisper_tui.model.call_rows import call_details, call_row, grant_row
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Denied, Exited, FailedToStart, Lost, Signalled, TimedOut, Withdrawn, signal_name
from whisper_tui.model.event import BackgroundSeen
from whisper_tui.model.run import Blocked, BlockedAttempt, ControlGroup, Limits, Sandbox

RUN = (opened(), submitted(), judged(), decided(decision=Approve()), started(), spawned())


def row(*events):
    return call_row(a_board(*events).record("1"), a_session())


@each_row(("length", "state"), [(2, "waiting"), (3, "waiting"), (4, "queued"), (5, "starting"), (6, "running")])
def test_the_state_is_named_in_one_word(length, state):
    found = row(*RUN[:length])
    assert found["state"] == state
    assert found.keys() == row(*RUN, finished()).keys()


@each_row(
    ("ending", "expected"),
    [
        (Exited(code=0), ("exited", 0, None, None, None)),
        (Signalled(number=9, by_us=True), ("signalled", None, 9, "SIGKILL", "sent through whisper_tui")),
        (Signalled(number=11, by_us=False), ("signalled", None, 11, "SIGSEGV", None)),
        (TimedOut(after_s=1.5), ("timed_out", None, None, None, "its time limit of 1.5 s was reached")),
        (Denied(by=HUMAN, reason="no"), ("denied", None, None, None, "no")),
        (Withdrawn(why="changed"), ("withdrawn", None, None, None, "changed")),
        (Lost(why="reboot"), ("lost", None, None, None, "reboot")),
        (
            FailedToStart(problem="program_not_found", subject="x", message="there is no x"),
            ("failed_to_start", None, None, None, "there is no x"),
        ),
    ],
)
def test_an_ending_is_described_exactly(ending, expected):
    found = row(*RUN, finished(ending=ending))
    assert tuple(found[key] for key in ("ending", "exit_code", "signal", "signal_name", "reason")) == expected


@each_row(
    ("limit", "reason"),
    [
        ("cpu", "its CPU time limit of 9 s was reached"),
        ("memory", "its processes together reached the memory limit of 67,108,864 bytes"),
        ("processes", "it exceeded the limit of 5 processes"),
    ],
)
def test_the_limit_that_ended_a_run_is_its_reason_whoever_sent_the_signal(limit, reason):
    limits = Limits(cpu_s=9, memory_bytes=67_108_864, processes=5)
    run = (*RUN[:4], started().model_copy(update={"limits": limits}), spawned())
    for by_us in (True, False):
        assert row(*run, finished(ending=Signalled(number=9, by_us=by_us, limit=limit)))["reason"] == reason


def test_additional_limits_of_a_control_group_are_described():
    group = ControlGroup(path="/sys/fs/cgroup/whisper-1.1", sums=("memory_bytes",))
    grouped = spawned().model_copy(update={"process": a_process().model_copy(update={"group": group})})
    found = [call_details(a_board(*RUN[:5], last).record("1"), a_session()) for last in (grouped, spawned())]
    assert [(each["control_group"], each["summed"]) for each in found] == [(group.path, ["memory_bytes"]), (None, [])]


def test_an_argv_is_an_array_and_a_shells_line_its_text():
    assert row(submitted())["command"] == ["git", "status"]
    assert row(submitted(spec=a_shell("a | b")))["command"] == "a | b"


def test_an_edit_is_shown_beside_the_original():
    edited = decided(decision=Approve(edited=a_shell("make", cwd="/elsewhere")))
    found = row(opened(), submitted(spec=a_shell("rm -rf x")), judged(), edited)
    assert (found["command"], found["cwd"]) == ("make", "/elsewhere")
    assert found["asked"] == {"command": "rm -rf x", "cwd": "/srv/project", "place": None}
    assert row(*RUN)["asked"] is None


def test_a_row_names_the_place_and_the_one_that_was_asked_for():
    moved = decided(decision=Approve(edited=a_shell("make", place="gpu1")))
    found = row(opened(), submitted(spec=a_shell("make", place="gpu2")), judged(), moved)
    assert (found["place"], found["asked"]["place"]) == ("gpu1", "gpu2")
    assert row(*RUN)["place"] is None


def test_background_processes_are_listed_with_whether_they_live():
    seen = BackgroundSeen(at=5.0, call_id="1", processes=(left_behind(7), left_behind(8, alive=False)))
    assert [(one["pid"], one["alive"]) for one in row(*RUN, seen)["background"]] == [(7, True), (8, False)]


def test_a_session_that_is_forgotten_is_named_by_its_id():
    assert call_row(a_board(*RUN).record("1"), None)["session"] == "s1"


def test_details_can_be_written_as_json_and_hold_what_a_decision_needs():
    record = a_board(*RUN, finished()).record("1")
    details = json.loads(json.dumps(call_details(record, a_session())))
    assert details["seen"] == record.seen_digest()
    assert details["spec"]["command"]["program"] == "git"
    assert (details["decision"], details["decided_by"]["who"], details["attempt"]) == ("approve", "ada", 1)


def test_a_remembered_approval_is_a_row_too():
    assert grant_row(a_grant(), None)["session"] == "s1"
    assert grant_row(a_grant(), a_session())["command"] == ["git", "status"]


def test_signals_without_a_name_keep_their_number():
    assert (signal_name(15), signal_name(40)) == ("SIGTERM", "SIG40")


def test_blocked_attempts_are_in_fields_and_in_words():
    blocked = Blocked(attempts=(BlockedAttempt(what="write", subject="/x"),), more=2)
    ended = finished().model_copy(update={"blocked": blocked})
    confined = decided(decision=Approve(sandbox=Sandbox(kind="workspace")))
    record = a_board(*RUN[:3], confined, *RUN[4:], ended).record("1")
    found = call_details(record, a_session())
    assert found["blocked"]["words"] == "tried to write /x and 2 more"
    assert found["blocked"]["attempts"] == [{"what": "write", "subject": "/x"}]
    assert found["sandbox"]["kind"] == "workspace"
    assert found["sandbox"]["words"] == "writes only in the workspace, no network"
    assert call_row(record, None)["blocked"] == found["blocked"]
    plain = call_details(a_board(*RUN, finished()).record("1"), a_session())
    assert (plain["sandbox"], plain["blocked"]) == (None, None)
