"""What the supervisor does with calls before anything starts."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Denied, Exited, FailedToStart, Withdrawn
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, InvalidRequest, Refused, UnknownCall
from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.policy.rules.rule import ExactRule, Rules
from whisper_tui.supervisor.approvals import approval_queue


async def test_a_call_that_no_rule_knows_waits_for_a_human(bench: Bench) -> None:
    call_id = await bench.submit(await bench.session(), "true")
    record = await bench.record(call_id)
    assert record.state.kind == "waiting"
    assert record.verdict is not None and record.verdict.kind == "ask"
    assert bench.executor.orders == {}


async def test_the_approved_program_is_the_one_that_starts(bench: Bench) -> None:
    call_id = await bench.submit(
        await bench.session(environment={"PATH": "/bin:/usr/bin", "FLAVOUR": "x"}), "true", "a b"
    )
    await bench.approve(call_id)
    order = bench.executor.orders[await bench.ordered(call_id)]
    assert order.spec == (await bench.record(call_id)).call.spec
    assert order.program == (await bench.record(call_id)).resolved.program  # type: ignore[union-attr]
    assert order.environment["FLAVOUR"] == "x"
    assert order.environment["WHISPER_TUI"] == "1"
    assert order.environment["WHISPER_TUI_CALL_ID"] == call_id


async def test_a_denied_call_never_starts_and_keeps_the_reason_verbatim(bench: Bench) -> None:
    call_id = await bench.submit(await bench.session(), "true")
    waiting = asyncio.create_task(bench.supervisor.outcome(call_id))
    await bench.deny(call_id, "use make test instead")
    record = await asyncio.wait_for(waiting, 60)
    assert isinstance(record.state, Ended)
    assert record.state.ending == Denied(by=HUMAN, reason="use make test instead")
    assert bench.executor.orders == {}


async def test_the_first_decision_wins(bench: Bench) -> None:
    call_id = await bench.submit(await bench.session(), "true")
    seen = (await bench.record(call_id)).seen_digest()
    await bench.supervisor.decide(call_id, Approve(), HUMAN, seen)
    with pytest.raises(AlreadyDecided):
        await bench.supervisor.decide(call_id, Approve(), HUMAN, seen)


async def test_a_decision_about_something_else_than_was_seen_is_refused(bench: Bench) -> None:
    call_id = await bench.submit(await bench.session(), "true")
    with pytest.raises(ChangedSinceSeen):
        await bench.supervisor.decide(call_id, Approve(), HUMAN, "what another call looked like")
    assert (await bench.record(call_id)).state.kind == "waiting"


async def test_an_edited_command_runs_instead_of_the_one_that_was_asked(bench: Bench) -> None:
    call_id = await bench.submit(await bench.session(), "rm", "-rf", "build")
    edited = CommandSpec(command=Argv(program="ls", args=("build",)), cwd=str(bench.workspace))
    await bench.approve(call_id, edited=edited)
    order = bench.executor.orders[await bench.ordered(call_id)]
    assert order.spec == edited
    assert order.program is not None and order.program.endswith("/ls")
    record = await bench.record(call_id)
    assert record.edited and record.call.spec.command.words() == ("rm", "-rf", "build")


async def edited_and_queued(bench: Bench) -> tuple[str, Path]:
    """A call whose edit was approved and waits for its turn, and the script that it would run."""
    script = bench.workspace / "tidy"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    call_id = await bench.submit(await bench.session(), text="rm -rf ~/*")
    await bench.supervisor.pause(HUMAN)
    await bench.approve(call_id, edited=CommandSpec(command=Shell(text="./tidy"), cwd=str(bench.workspace)))
    return call_id, script


async def check_the_request_waits_with_its_own_risks(bench: Bench, call_id: str) -> None:
    record = await bench.state(call_id, "waiting")
    assert isinstance(record.state, Waiting) and record.state.edited_before is not None
    assert record.spec == record.call.spec and record.state.returned_because
    assert record.verdict is not None and "destructive" in {risk.id for risk in record.verdict.risks}
    assert record.resolved is not None and record.resolved.commands[0].words[0] == "rm"


async def test_a_request_that_waits_again_after_an_edit_has_its_own_risks(bench: Bench) -> None:
    call_id, script = await edited_and_queued(bench)
    script.write_text("#!/bin/sh\necho other\n")
    await bench.supervisor.resume(HUMAN)
    await check_the_request_waits_with_its_own_risks(bench, call_id)


async def test_a_request_that_waits_again_after_a_kill_has_its_own_risks(bench: Bench) -> None:
    call_id, _ = await edited_and_queued(bench)
    await bench.kill()
    await check_the_request_waits_with_its_own_risks(bench, call_id)


async def test_an_edit_into_a_denied_command_is_refused_and_the_call_still_waits(bench: Bench) -> None:
    rules = Rules(deny=(ExactRule(name="no reboot", argv=("reboot",), justification="not on this machine"),))
    await bench.restart(rules)
    call_id = await bench.submit(await bench.session(), "true")
    with pytest.raises(Refused, match="not on this machine"):
        await bench.approve(call_id, edited=CommandSpec(command=Argv(program="reboot"), cwd=str(bench.workspace)))
    assert (await bench.record(call_id)).state.kind == "waiting"


async def test_a_denying_rule_ends_the_call_without_a_human(bench: Bench) -> None:
    await bench.restart(Rules(deny=(ExactRule(name="no reboot", argv=("reboot",), justification="ask the operator"),)))
    record = await bench.supervisor.outcome(await bench.submit(await bench.session(), "reboot"))
    assert isinstance(record.state, Ended) and isinstance(record.state.ending, Denied)
    assert record.state.ending.reason == "ask the operator"
    assert record.state.ending.by.surface == "rule"


async def test_an_allowing_rule_starts_the_call_without_a_human(bench: Bench) -> None:
    await bench.restart(Rules(allow=(ExactRule(name="harmless", argv=("true",)),)))
    call_id = await bench.submit(await bench.session(), "true")
    await bench.ordered(call_id)
    assert (await bench.record(call_id)).decided_by.surface == "rule"  # type: ignore[union-attr]


async def test_an_approval_for_the_session_lets_the_same_command_through_and_no_other(bench: Bench) -> None:
    session = await bench.session()
    await bench.approve(await bench.submit(session, "true", "test"), remember="exact_for_session")
    again, other = await bench.submit(session, "true", "test"), await bench.submit(session, "true", "tests")
    stranger = await bench.submit(await bench.session("another"), "true", "test")
    await bench.ordered(again)
    assert (await bench.record(other)).state.kind == "waiting"
    assert (await bench.record(stranger)).state.kind == "waiting"


async def test_a_revoked_approval_asks_again(bench: Bench) -> None:
    session = await bench.session()
    await bench.approve(await bench.submit(session, "true"), remember="exact_for_session")
    (grant,) = await bench.supervisor.grants()
    await bench.supervisor.revoke(grant.id, HUMAN)
    assert (await bench.record(await bench.submit(session, "true"))).state.kind == "waiting"
    assert await bench.supervisor.grants() == ()


async def test_remembered_approvals_count_their_uses_and_end_with_their_session(bench: Bench) -> None:
    session = await bench.session()
    await bench.approve(await bench.submit(session, "true"), remember="exact_for_session")
    await bench.submit(session, "true")
    await bench.submit(session, "true")
    assert [grant.uses for grant in await bench.supervisor.grants(session)] == [2]
    await bench.supervisor.close_session(session, "done")
    assert await bench.supervisor.grants() == ()


async def test_an_approval_for_the_session_answers_for_equal_calls_that_wait_already(bench: Bench) -> None:
    session = await bench.session()
    first, same, other = [await bench.submit(session, *words) for words in (("true",), ("true",), ("false",))]
    await bench.approve(first, remember="exact_for_session")
    await bench.ordered(same)
    assert (await bench.record(other)).state.kind == "waiting"


async def test_denying_and_stopping_denies_what_else_the_session_waits_for(bench: Bench) -> None:
    session, other = await bench.session(), await bench.session("other")
    first, second = await bench.submit(session, "true"), await bench.submit(session, "false")
    third = await bench.submit(other, "true")
    await bench.deny(first, "stop here", stop_session=True)
    assert (await bench.record(second)).state.kind == "ended"
    assert (await bench.record(third)).state.kind == "waiting"


async def test_the_same_key_in_the_same_session_is_the_same_call(bench: Bench) -> None:
    session = await bench.session()
    first = await bench.submit(session, "true", key="request-1")
    assert await bench.submit(session, "true", key="request-1") == first
    assert await bench.submit(session, "true", key="request-2") != first
    assert await bench.submit(await bench.session("other"), "true", key="request-1") != first


async def test_a_withdrawn_call_never_starts(bench: Bench) -> None:
    call_id = await bench.submit(await bench.session(), "true")
    await bench.supervisor.withdraw(call_id, "the agent cancelled it")
    record = await bench.supervisor.outcome(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Withdrawn(why="the agent cancelled it")
    with pytest.raises(AlreadyDecided):
        await bench.approve(call_id)


async def test_withdrawing_a_running_call_lets_it_run_unless_told(bench: Bench) -> None:
    call_id = await bench.submit(await bench.session(), "true")
    await bench.approve(call_id)
    key = await bench.ordered(call_id)
    bench.executor.spawn(key)
    await bench.state(call_id, "running")
    await bench.supervisor.withdraw(call_id, "cancelled")
    assert bench.executor.ended == []
    assert (await bench.record(call_id)).agent_gave_up == "cancelled"
    await bench.supervisor.withdraw(call_id, "cancelled", stop_running=True)
    assert bench.executor.ended == [key]
    bench.executor.finish(key, Exited(code=0))
    assert (await bench.supervisor.outcome(call_id)).state.kind == "ended"


async def test_text_that_cannot_be_stored_is_refused_in_one_sentence(bench: Bench) -> None:
    spec = CommandSpec(command=Argv(program="true"), cwd=str(bench.workspace))
    arguments = {"text": "\ud800"}
    request = CallRequest(session_id=await bench.session(), tool="t", arguments=arguments, spec=spec)
    with pytest.raises(InvalidRequest, match="not valid Unicode"):
        await bench.supervisor.submit(request)
    call_id = await bench.submit(request.session_id, "true")
    with pytest.raises(InvalidRequest, match="not valid Unicode"):
        await bench.deny(call_id, "because \udcff")
    edited = CommandSpec(command=Argv(program="echo", args=("\ud800",)), cwd=str(bench.workspace))
    with pytest.raises(InvalidRequest, match="not valid Unicode"):
        await bench.approve(call_id, edited=edited)
    assert (await bench.record(call_id)).state.kind == "waiting"


async def test_a_closed_session_can_submit_nothing(bench: Bench) -> None:
    session = await bench.session()
    await bench.supervisor.close_session(session, "the agent left")
    with pytest.raises(Refused, match="the agent left"):
        await bench.submit(session, "true")


async def test_an_unknown_call_is_named(bench: Bench) -> None:
    for unknown in ("999", "x", "-1", "", "9" * 40):
        with pytest.raises(UnknownCall, match="there is no call"):
            await bench.record(unknown)


async def test_a_program_swapped_after_the_approval_is_asked_again(bench: Bench) -> None:
    await bench.restart()
    session = await bench.session(environment={"PATH": f"{bench.workspace}/bin"})
    for name in ("old", "new"):
        (bench.workspace / name).mkdir()
        (bench.workspace / name / "tool").write_text("#!/bin/sh\n")
        (bench.workspace / name / "tool").chmod(0o755)
    (bench.workspace / "bin").symlink_to(bench.workspace / "old")
    call_id = await bench.submit(session, "tool")
    await bench.supervisor.pause(HUMAN)
    await bench.approve(call_id)
    assert (await bench.record(call_id)).state.kind == "queued"
    (bench.workspace / "old" / "tool").unlink()
    await bench.supervisor.resume(HUMAN)
    record = await bench.state(call_id, "waiting")
    assert "changed" in (record.state.returned_because or "")  # type: ignore[union-attr]


async def test_a_failed_order_is_reported(bench: Bench) -> None:
    bench.executor.refuse_starts = True
    call_id = await bench.submit(await bench.session(), "true")
    await bench.approve(call_id)
    record = await asyncio.wait_for(bench.supervisor.outcome(call_id), 60)
    assert isinstance(record.state, Ended) and isinstance(record.state.ending, FailedToStart)
    assert "no space" in record.state.ending.message


async def test_a_command_of_one_unset_variable_is_asked_like_any_other(bench: Bench) -> None:
    call_id = await bench.submit(await bench.session(), text="$NOT_SET")
    record = await bench.record(call_id)
    assert record.state.kind == "waiting"


async def test_an_error_while_judging_refuses_the_call_and_loses_neither_it_nor_the_supervisor(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise IndexError("list index out of range")

    session_id = await bench.session()
    monkeypatch.setattr("whisper_tui.supervisor.approvals.judge.evaluate", fail)
    call_id = await bench.submit(session_id, "true")
    record = await bench.record(call_id)
    assert isinstance(record.state, Ended) and isinstance(record.state.ending, Denied)
    assert record.state.ending.reason.startswith("whisper_tui itself failed while it judged this command (IndexError)")
    assert "list index out of range" in caplog.text
    monkeypatch.undo()
    await bench.restart()
    assert (await bench.record(call_id)).state == record.state
    assert (await bench.record(await bench.submit(await bench.session(), "true"))).state.kind == "waiting"


async def test_an_error_in_the_look_before_the_start_keeps_an_approved_call_from_starting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_id = await bench.submit(await bench.session(), "true")

    def fail(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("whisper_tui.supervisor.approvals.judge.resolve", fail)
    await bench.approve(call_id)
    record = await bench.state(call_id, "ended")
    assert isinstance(record.state, Ended) and isinstance(record.state.ending, Denied)
    assert bench.executor.orders == {}


async def test_a_sandbox_that_the_system_does_not_have_is_refused_and_the_call_keeps_waiting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_id = await bench.submit(await bench.session(), "make")
    monkeypatch.setattr(approval_queue, "sandbox_problem", lambda: "there is no Landlock")
    with pytest.raises(Refused, match="cannot run in a sandbox here: there is no Landlock"):
        await bench.decide(call_id, Approve(sandbox=Sandbox(kind="read-only")))
    assert (await bench.record(call_id)).state.kind == "waiting"


async def test_the_status_says_that_the_disk_is_full_before_anything_has_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await bench.supervisor.status()).problem is None
    real = os.statvfs(bench.home.state)
    full = os.statvfs_result((*real[:4], 1, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _path: full)
    problem = (await bench.supervisor.status()).problem
    assert problem is not None and "is full. Make room on it" in problem
