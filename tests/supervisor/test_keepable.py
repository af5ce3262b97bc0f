"""What the journal could not give back as it is never gets in, so a supervisor can always be started again."""

import math

import pytest
from pydantic import ValidationError

from tests.rows import each_row
from tests.supervisor.conftest import Bench
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, FileEdits, Function, SessionHello, WriteFile
from whisper_tui.model.decision import Deny
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.supervisor.journal.journal import LARGEST, LARGEST_OF_EDITS
from whisper_tui.supervisor.sessions import LARGEST_ENVIRONMENT


def nested(levels: int) -> object:
    value: object = "the core"
    for _ in range(levels):
        value = [value]
    return value


async def ask(bench: Bench, argument: object, description: str = "") -> str:
    arguments = {"value": argument}
    spec = CommandSpec(command=Function(tool="own", arguments=arguments), cwd=str(bench.workspace))
    request = CallRequest(
        session_id=await bench.session(), tool="own", arguments=arguments, spec=spec, description=description
    )
    return await bench.supervisor.submit(request)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (math.nan, "cannot give back"),
        (math.inf, "cannot give back"),
        (nested(195), "cannot give back"),
        (nested(900), "too many levels"),
        ("\ud800", "not valid Unicode"),
        ("x" * LARGEST, "2,097,152"),
    ],
    ids=["no number", "infinity", "deep", "deeper", "lone surrogate", "large"],
)
async def test_calls_that_the_journal_cannot_store_are_refused(bench, argument, words):
    with pytest.raises(InvalidRequest, match=words):
        await ask(bench, argument)
    kept = await ask(bench, nested(100), "y" * 1_000_000)
    await bench.restart()
    assert (await bench.record(kept)).call.arguments == {"value": nested(100)}


async def test_an_edit_may_be_longer_than_other_calls_and_has_a_bound_as_well(bench):
    async def edit(size: int) -> str:
        change = WriteFile(path=str(bench.workspace / "large"), content="x" * size)
        spec = CommandSpec(command=FileEdits(tool="Write", changes=(change,)), cwd=str(bench.workspace))
        request = CallRequest(session_id=await bench.session(), tool="Write", arguments={}, spec=spec)
        return await bench.supervisor.submit(request)

    with pytest.raises(InvalidRequest, match=f"{LARGEST_OF_EDITS:,}"):
        await edit(LARGEST_OF_EDITS)
    call_id = await edit(LARGEST)
    with pytest.raises(InvalidRequest, match="2,097,152"):
        await bench.decide(call_id, Deny(reason="x" * LARGEST))


async def test_a_reason_that_is_too_large_decides_nothing(bench):
    call_id = await bench.submit(await bench.session(), "true")
    with pytest.raises(InvalidRequest, match="2,097,152"):
        await bench.decide(call_id, Deny(reason="no" * LARGEST))
    assert (await bench.record(call_id)).state.kind == "waiting"


@pytest.mark.parametrize("field", ["timeout_s", "grace_s"])
def test_an_infinite_time_is_refused(field):
    with pytest.raises(ValidationError, match="finite number"):
        CommandSpec.model_validate({"command": Argv(program="true"), "cwd": "/", field: math.inf})


@each_row("hello", [{"pid": 2**31}, {"pid": -1}, {"name": "n" * 1001}, {"root": "/" + "d" * 4096}, {"key": "k" * 1001}])
def test_a_session_that_no_system_could_have_is_refused(hello):
    with pytest.raises(ValidationError):
        SessionHello.model_validate({"name": "agent", "root": "/", **hello})


async def test_a_workspace_with_a_null_byte_is_refused(bench):
    with pytest.raises(InvalidRequest, match="not an absolute path"):
        await bench.session(root="/\0")


async def test_an_environment_that_is_too_large_is_refused_and_nothing_is_opened(bench):
    with pytest.raises(InvalidRequest, match="can be kept"):
        await bench.session(environment={"A": "x" * LARGEST_ENVIRONMENT})
    assert bench.supervisor._store.board.sessions == {}


async def test_a_signal_that_the_system_does_not_have_is_refused_and_not_journaled(bench):
    call_id = await bench.submit(await bench.session(), "true")
    await bench.approve(call_id)
    bench.executor.spawn(await bench.ordered(call_id))
    await bench.state(call_id, "running")
    before = bench.supervisor._store.journal.last_seq
    with pytest.raises(InvalidRequest, match="no signal 99999"):
        await bench.supervisor.signal(call_id, 99_999, "tree", by={"surface": "cockpit"})
    assert bench.supervisor._store.journal.last_seq == before
