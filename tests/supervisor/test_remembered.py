"""What is known of standing approvals leaves with what it is about."""

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.decision import ExactScope
from whisper_tui.supervisor.approvals.session_grants import FIRST_LOOK

SESSIONS = 5 * FIRST_LOOK


async def allowed(bench: Bench, session: str, *words: str) -> bool:
    return (await bench.record(await bench.submit(session, *words))).verdict.kind == "allow"


def known(bench: Bench) -> int:
    return len(bench.supervisor._parts.queue.judge._remembered)


@pytest.mark.slow
async def test_sessions_that_are_over_leave_and_find_their_approvals_again_when_they_come_back(bench: Bench) -> None:
    stays = await bench.session("stays")
    await bench.approve(await bench.submit(stays, "true"), remember=ExactScope())
    for number in range(SESSIONS):
        session = await bench.session(f"short {number}")
        await bench.approve(await bench.submit(session, "true"), remember=ExactScope())
        await bench.supervisor.close_session(session, "done")
        assert known(bench) <= 2 * FIRST_LOOK
    assert await allowed(bench, stays, "true")
    assert not await allowed(bench, stays, "false")
    assert await bench.session("short", resume=session) == session
    assert await allowed(bench, session, "true")


@pytest.mark.slow
async def test_used_up_and_revoked_approvals_leave_the_session(bench: Bench) -> None:
    session = await bench.session()
    await bench.approve(await bench.submit(session, "true"), remember=ExactScope())
    for number in range(SESSIONS):
        await bench.approve(await bench.submit(session, "echo", str(number)), remember=ExactScope(uses=1))
        grants = await bench.supervisor.grants(session)
        if number % 2:
            await bench.supervisor.revoke(grants[-1].id, HUMAN)
        else:
            assert await allowed(bench, session, "echo", str(number))
        assert not await allowed(bench, session, "echo", str(number))
        assert known(bench) <= 2 * FIRST_LOOK
    assert await allowed(bench, session, "true")
