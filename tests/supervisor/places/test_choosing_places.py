"""Where a call runs: named by the call, by its session, by a rule or by the human who edits it."""

from typing import Any

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, FileEdits, Function, WriteFile
from whisper_tui.model.decision import Approve
from whisper_tui.model.errors import Refused
from whisper_tui.model.run import Sandbox
from whisper_tui.model.state import CallRecord
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.places.place_settings import PlaceSettings

PLACES = (PlaceSettings("gpu1", "ssh", workspace="/data/project"), PlaceSettings("gpu2", "ssh"))
TO_GPU1 = Rules(ask=(Rule(name="train there", prefix=("python3", "train.py"), run_at="gpu1"),))


@pytest.fixture
async def placed(bench: Bench) -> Bench:
    bench.places = PLACES
    await bench.restart()
    return bench


async def submitted(bench: Bench, session_id: str, *words: str, place: str = "", **asked: Any) -> CallRecord:
    spec = CommandSpec(
        command=Argv(program=words[0], args=words[1:]), cwd=asked.pop("cwd", str(bench.workspace)), place=place
    )
    made: dict[str, Any] = {"tool": "execute_command", "arguments": {}, "spec": spec, **asked}
    return await bench.record(await bench.supervisor.submit(CallRequest(session_id=session_id, **made)))


async def test_a_call_runs_at_the_place_that_it_names_in_the_directory_that_stands_for_its_own(placed: Bench) -> None:
    session = await placed.session()
    below = str(placed.workspace / "sub")
    there = await submitted(placed, session, "make", place="gpu1", cwd=below)
    assert (there.spec.place, there.spec.cwd) == ("gpu1", "/data/project/sub")
    same = await submitted(placed, session, "make", place="gpu2", cwd=below)
    assert (same.spec.place, same.spec.cwd) == ("gpu2", below)
    outside = await submitted(placed, session, "make", place="gpu1", cwd="/opt/tools")
    assert outside.spec.cwd == "/opt/tools"


async def test_a_session_has_a_place_for_the_calls_that_name_none(placed: Bench) -> None:
    session = await placed.session(place="gpu1")
    assert (await submitted(placed, session, "make")).spec.place == "gpu1"
    assert (await submitted(placed, session, "make", place="gpu2")).spec.place == "gpu2"
    here = await submitted(placed, session, "make", place="here")
    assert (here.spec.place, here.spec.cwd) == ("", str(placed.workspace))


async def test_an_unknown_place_is_refused_with_those_that_there_are(placed: Bench) -> None:
    session = await placed.session()
    with pytest.raises(Refused, match="there is no place 'gpu3'") as refused:
        await submitted(placed, session, "make", place="gpu3")
    assert refused.value.hint is not None
    assert refused.value.hint.startswith('There are gpu1, gpu2; "here" is this machine. whisper-tui restart reads')
    with pytest.raises(Refused, match="there is no place 'gpu3'"):
        await placed.session(place="gpu3")


async def test_a_rule_moves_the_calls_that_name_no_place(bench: Bench) -> None:
    bench.places = PLACES
    await bench.restart(TO_GPU1)
    session = await bench.session()
    moved = await submitted(bench, session, "python3", "train.py")
    assert (moved.spec.place, moved.spec.cwd) == ("gpu1", "/data/project")
    assert (await submitted(bench, session, "python3", "train.py", place="gpu2")).spec.place == "gpu2"
    assert (await submitted(bench, session, "python3", "train.py", place="here")).spec.place == ""
    assert (await submitted(bench, session, "python3", "other.py")).spec.place == ""


async def test_a_rule_that_moves_to_an_unknown_place_runs_nothing_here(bench: Bench) -> None:
    bench.places = PLACES[1:]
    await bench.restart(TO_GPU1)
    session = await bench.session()
    with pytest.raises(Refused, match="there is no place 'gpu1'"):
        await submitted(bench, session, "python3", "train.py")


async def test_a_call_that_the_agent_carries_out_itself_stays_here(placed: Bench) -> None:
    session = await placed.session(place="gpu1")
    root = str(placed.workspace)
    edit = FileEdits(tool="Write", changes=(WriteFile(path=f"{root}/a", content="x"),))
    for command in (edit, Function(tool="send_mail", arguments={})):
        spec = CommandSpec(command=command, cwd=root)
        assert (await submitted(placed, session, "x", spec=spec)).spec.place == ""
        with pytest.raises(Refused, match="is carried out by the agent itself, so it runs on this machine"):
            await submitted(placed, session, "x", spec=spec.model_copy(update={"place": "gpu2"}))
    assert (await submitted(placed, session, "make", by_agent=True)).spec.place == ""
    with pytest.raises(Refused, match="the agent runs this command itself, so it runs on this machine"):
        await submitted(placed, session, "make", by_agent=True, place="gpu2")


async def test_the_shell_of_an_agent_follows_no_command_to_a_place(placed: Bench) -> None:
    session = await placed.session()
    assert (await submitted(placed, session, "make", follows=True)).call.follows
    assert not (await submitted(placed, session, "make", place="gpu1", follows=True)).call.follows


async def test_a_human_moves_a_call_and_what_runs_is_what_was_approved(placed: Bench) -> None:
    session = await placed.session()
    asked = await submitted(placed, session, "true")
    edited = asked.spec.model_copy(update={"place": "gpu2", "cwd": "/tmp"})
    await placed.approve(asked.id, edited=edited)
    order = placed.executor.orders[await placed.ordered(asked.id)]
    assert (order.spec.place, order.spec.cwd) == ("gpu2", "/tmp")
    back = await submitted(placed, session, "true", place="gpu2", cwd="/tmp")
    await placed.approve(back.id, edited=back.spec.model_copy(update={"place": "here"}))
    assert placed.executor.orders[await placed.ordered(back.id)].spec.place == ""


async def test_a_human_moves_no_call_to_an_unknown_place_or_one_that_its_agent_runs(placed: Bench) -> None:
    session = await placed.session()
    asked = await submitted(placed, session, "true")
    with pytest.raises(Refused, match="there is no place 'gpu3'"):
        await placed.approve(asked.id, edited=asked.spec.model_copy(update={"place": "gpu3"}))
    own = await submitted(placed, session, "true", by_agent=True)
    with pytest.raises(Refused, match="the agent runs this command itself, so it cannot run at gpu1"):
        await placed.approve(own.id, edited=own.spec.model_copy(update={"place": "gpu1"}))
    assert (await placed.record(asked.id)).state.kind == "waiting"


async def test_what_works_on_this_machine_only_is_refused_at_a_place(placed: Bench) -> None:
    session = await placed.session()
    asked = await submitted(placed, session, "true", place="gpu1")
    with pytest.raises(Refused, match="there is no sandbox at gpu1"):
        await placed.decide(asked.id, Approve(sandbox=Sandbox()))
    with pytest.raises(Refused, match="changes are kept on this machine only"):
        await placed.decide(asked.id, Approve(undoable=True))
    with pytest.raises(Refused, match="views of the files are made on this machine only"):
        await placed.supervisor.preview(asked.id, HUMAN)
    here = await submitted(placed, session, "true")
    with pytest.raises(Refused, match="views of the files are made on this machine only"):
        await placed.supervisor.preview(here.id, HUMAN, here.spec.model_copy(update={"place": "gpu1"}))


async def test_an_approval_for_the_session_is_for_its_place(placed: Bench) -> None:
    session = await placed.session()
    first = await submitted(placed, session, "true")
    await placed.approve(first.id, remember="exact_for_session")
    assert (await submitted(placed, session, "true")).verdict.kind == "allow"
    assert (await submitted(placed, session, "true", place="gpu2")).verdict.kind == "ask"


async def test_a_denial_for_the_session_is_for_every_place(placed: Bench) -> None:
    session = await placed.session()
    await placed.supervisor.deny_for_session(session, ("make",), "not now", HUMAN)
    for place in ("", "gpu1", "gpu2"):
        assert (await submitted(placed, session, "make", "all", place=place)).verdict.kind == "refuse"


async def test_a_waiting_call_whose_place_left_the_configuration_runs_nowhere(placed: Bench) -> None:
    session = await placed.session()
    asked = await submitted(placed, session, "true", place="gpu1")
    placed.places = PLACES[1:]
    await placed.restart()
    with pytest.raises(Refused, match="there is no place 'gpu1'"):
        await placed.approve(asked.id)
    await placed.approve(asked.id, edited=asked.spec.model_copy(update={"place": "gpu2", "cwd": "/tmp"}))
    assert placed.executor.orders[await placed.ordered(asked.id)].spec.place == "gpu2"
