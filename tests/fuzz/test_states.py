"""Random histories of calls against a model: the first decision counts, and nothing runs without one."""

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.fuzz.profile import fuzzed
from tests.fuzz.target import Target, until
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, Refused, WhisperError
from whisper_tui.model.state import CallRecord

pytestmark = pytest.mark.slow

BY = {"surface": "library", "who": "fuzz"}
AFTER_APPROVAL = {"queued", "starting", "running", "ended"}


class Desk(RuleBasedStateMachine):
    """Calls that write their number when they run, and what a model says about them.

    Which of two humans is first is chance, so what may be done next does not depend on whether a call was approved.
    """

    target: Target

    def __init__(self) -> None:
        super().__init__()
        self.sessions: list[str] = []
        self.waiting: dict[str, Path] = {}
        self.approved: dict[str, Path] = {}
        self.refused: dict[str, Path] = {}
        self.open_session()

    def ask(self, operation: str, **arguments: Any) -> Any:
        with self.target.asking() as client:
            return client.ask(operation, **arguments)

    def record(self, call_id: str) -> CallRecord:
        return CallRecord.model_validate(self.ask("record", call_id=call_id))

    def marks(self, path: Path) -> int:
        return len(path.read_text().splitlines()) if path.exists() else 0

    @rule()
    def open_session(self) -> None:
        hello = {"name": "fuzz", "root": str(self.target.workspace)}
        self.sessions.append(self.ask("open_session", hello=hello)["id"])

    @rule(which=st.integers(0, 99), twice=st.booleans(), timeout=st.sampled_from([None, 60, 1e300]))
    def submit(self, which: int, twice: bool, timeout: float | None) -> None:
        mark = self.target.workspace / f"mark-{len(list(self.target.workspace.iterdir()))}-{which}"
        mark.touch()
        request = {
            "session_id": self.sessions[which % len(self.sessions)],
            "tool": "execute_command",
            "arguments": {"which": which},
            "key": str(mark),
            "spec": {
                "command": {"kind": "argv", "program": "sh", "args": ["-c", 'echo ran >> "$0"', str(mark)]},
                "cwd": str(self.target.workspace),
                "timeout_s": timeout,
            },
        }
        # A session may have ended: its agent's process is nobody's, so it lives until it is closed.
        call_id = self.ask("submit", request=request)
        assert not twice or self.ask("submit", request=request) == call_id
        self.waiting[call_id] = mark

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 99), back=st.booleans())
    def set_aside(self, which: int, back: bool) -> None:
        call_id = sorted(self.waiting)[which % len(self.waiting)]
        self.ask("set_aside", call_id=call_id, by=BY, back=back)
        record = self.record(call_id)
        assert record.state.kind == "waiting" and (record.aside is None) == back

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 99), approve=st.booleans())
    def decide(self, which: int, approve: bool) -> None:
        call_id = sorted(self.waiting)[which % len(self.waiting)]
        decision = {"kind": "approve"} if approve else {"kind": "deny", "reason": "no"}
        self.ask("decide", call_id=call_id, decision=decision, by=BY, seen=self.record(call_id).seen_digest())
        (self.approved if approve else self.refused)[call_id] = self.waiting.pop(call_id)

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 99), seen=st.text(max_size=40))
    def decide_about_something_else(self, which: int, seen: str) -> None:
        call_id = sorted(self.waiting)[which % len(self.waiting)]
        with pytest.raises((ChangedSinceSeen, Refused)):
            self.ask("decide", call_id=call_id, decision={"kind": "approve"}, by=BY, seen=seen)
        assert self.record(call_id).state.kind == "waiting"

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 99))
    def decide_at_once(self, which: int) -> None:
        """Two humans, two answers: one of them counts, and the other is told."""
        call_id = sorted(self.waiting)[which % len(self.waiting)]
        seen = self.record(call_id).seen_digest()
        outcomes: dict[str, WhisperError | None] = {}

        def decide(kind: str) -> None:
            try:
                self.ask("decide", call_id=call_id, decision={"kind": kind}, by=BY, seen=seen)
                outcomes[kind] = None
            except WhisperError as error:
                outcomes[kind] = error

        humans = [threading.Thread(target=decide, args=(kind,)) for kind in ("approve", "deny")]
        for human in humans:
            human.start()
        for human in humans:
            human.join()
        (won,) = [kind for kind, error in outcomes.items() if error is None]
        assert isinstance(outcomes["deny" if won == "approve" else "approve"], AlreadyDecided)
        (self.approved if won == "approve" else self.refused)[call_id] = self.waiting.pop(call_id)

    @precondition(lambda self: self.refused or self.approved)
    @rule(which=st.integers(0, 99), kind=st.sampled_from(["approve", "deny"]))
    def decide_again(self, which: int, kind: str) -> None:
        decided = sorted(self.refused | self.approved)
        call_id = decided[which % len(decided)]
        with pytest.raises(AlreadyDecided):
            seen = self.record(call_id).seen_digest()
            self.ask("decide", call_id=call_id, decision={"kind": kind}, by=BY, seen=seen)

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 99))
    def withdraw(self, which: int) -> None:
        call_id = sorted(self.waiting)[which % len(self.waiting)]
        self.ask("withdraw", call_id=call_id, why="not wanted", stop_running=True)
        self.refused[call_id] = self.waiting.pop(call_id)

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        self.ask("pause" if paused else "resume", by=BY)

    @precondition(lambda self: self.approved or self.refused or self.waiting)
    @rule()
    def kill_the_supervisor(self) -> None:
        self.target.restart()

    @invariant()
    def every_call_is_where_the_model_has_it(self) -> None:
        for call_id, mark in self.waiting.items():
            assert self.record(call_id).state.kind == "waiting"
            assert self.marks(mark) == 0
        for call_id, mark in self.refused.items():
            assert self.record(call_id).state.kind == "ended"
            assert self.marks(mark) == 0
        for call_id, mark in self.approved.items():
            assert self.record(call_id).state.kind in AFTER_APPROVAL
            assert self.marks(mark) <= 1

    def teardown(self) -> None:
        """An approved call runs once, and succeeds."""
        self.ask("resume", by=BY)
        for call_id, mark in self.approved.items():
            until(lambda call_id=call_id: self.record(call_id).state.kind == "ended")
            assert self.record(call_id).state.ending.kind == "exited"
            assert self.marks(mark) == 1
        for call_id in self.waiting:
            self.ask("withdraw", call_id=call_id, why="over")
        for session_id in self.sessions:
            self.ask("close_session", session_id=session_id, why="over")


def test_random_lives_of_calls_follow_the_model(own_target: Target):
    class OnTarget(Desk):
        target = own_target

    run_state_machine_as_test(OnTarget, settings=fuzzed(2, stateful_step_count=15))
