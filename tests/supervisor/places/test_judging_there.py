"""A command at a place is judged by the files and the login environment there, before it is asked and started."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.conftest import HUMAN, Bench
from tests.supervisor.places.far_root import FarRoot, SamePlace, User, another_root
from whisper_tui.effects import git_reader
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.errors import Refused, Unavailable
from whisper_tui.model.state import CallRecord
from whisper_tui.policy.rules.rule import NO_RULES, Rule, Rules
from whisper_tui.supervisor.approvals import resolve
from whisper_tui.supervisor.places import place_files
from whisper_tui.supervisor.places.place_settings import PlaceSettings
from whisper_tui.supervisor.runs.executor import RunKey

TRAIN = Rules(allow=(Rule(name="train", prefix=("train", "data"), place="gpu1", sandbox=False),))
UNKNOWN = "gpu1 is unreachable: the test says so, so what would run there is unknown"


@pytest.fixture
def far_tree(tmp_path: Path) -> Path:
    """The root directory of a place."""
    root = tmp_path / "far"
    for name in ("opt/tools/train", "usr/bin/bash", "home/me/data", "home/me/run.sh"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("#!/bin/bash\necho far\n")
        (root / name).chmod(0o755)
    return root


@pytest.fixture
async def far(far_tree: Path) -> AsyncIterator[FarRoot]:
    user = User(environment={"PATH": "/opt/tools:/usr/bin", "HOME": "/home/me", "MODEL": "large"})
    async with FarRoot(far_tree, user) as made:
        yield made


@pytest.fixture
async def placed(bench: Bench) -> Bench:
    await opened(bench)
    return bench


async def opened(
    bench: Bench, rules: Rules = NO_RULES, place: SamePlace | None = None, workspace: str = "/home/me"
) -> None:
    bench.places = PlaceSettings("gpu1", "ssh", workspace=workspace), PlaceSettings("gpu2", "ssh", workspace=workspace)
    await bench.restart(rules)
    bench.executor.places["gpu1"] = place or SamePlace("gpu1")


async def submitted(bench: Bench, session_id: str, text: str, place: str = "gpu1", cwd: str = "/home/me") -> CallRecord:
    spec = CommandSpec(command=Shell(text=text), cwd=cwd, place=place)
    made: dict[str, Any] = {"tool": "execute_command", "arguments": {}, "spec": spec}
    return await bench.record(await bench.supervisor.submit(CallRequest(session_id=session_id, **made)))


def reach(bench: Bench, place: SamePlace, user: User | None = None) -> None:
    """Have a place answer that was away."""
    place.hello = user or User()
    bench.executor.on_reached(place.name)


@another_root
async def test_programs_and_scripts_are_looked_up_there_with_the_path_of_the_login(bench: Bench, far: FarRoot):
    await opened(bench, place=far)
    session = await bench.session(environment={"PATH": "/agents/own", "HOME": "/agents/home"})
    asked = await submitted(bench, session, "train data; bash run.sh; cat $MODEL ~/x")
    assert asked.resolved is not None
    train, bash, cat = asked.resolved.commands
    assert (train.program, bash.program, cat.missing) == ("/opt/tools/train", "/usr/bin/bash", True)
    assert cat.words == ("cat", "large", "/home/me/x")
    assert set(asked.resolved.contents) >= {"/home/me/run.sh"}
    assert [code.path for code in asked.resolved.code] == ["/home/me/run.sh"]


@another_root
async def test_the_order_has_what_was_found_there_and_no_variable_of_the_agent(bench: Bench, far: FarRoot):
    await opened(bench, place=far)
    session = await bench.session(environment={"PATH": "/agents/own", "AGENTS_TOKEN": "secret"})
    asked = await submitted(bench, session, "train data")
    await bench.approve(asked.id)
    order = bench.executor.orders[await bench.ordered(asked.id)]
    assert (order.program, order.real_cwd) == ("/usr/bin/bash", "/home/me")
    assert set(order.files) == {"/usr/bin/bash", "/opt/tools/train"}
    assert order.environment == {"WHISPER_TUI": "1", "WHISPER_TUI_CALL_ID": asked.id}


@another_root
async def test_a_program_that_was_replaced_there_does_not_start(bench: Bench, far: FarRoot, far_tree: Path):
    await opened(bench, place=far)
    asked = await submitted(bench, await bench.session(), "train data")
    (far_tree / "opt/tools/train").write_text("another")
    await bench.approve(asked.id)
    again = await bench.state(asked.id, "waiting")
    assert again.verdict is not None
    assert "/opt/tools/train was replaced or changed" in again.verdict.reason
    assert not bench.executor.orders


@another_root
async def test_a_rule_for_the_place_starts_a_command_whose_program_is_only_there(bench: Bench, far: FarRoot):
    await opened(bench, TRAIN, far)
    asked = await submitted(bench, await bench.session(), "train data")
    order = bench.executor.orders[await bench.ordered(asked.id)]
    assert order.spec.place == "gpu1"


@another_root
async def test_a_human_moves_a_call_and_it_is_looked_up_there(bench: Bench, far: FarRoot):
    await opened(bench, place=far)
    asked = await submitted(bench, await bench.session(), "train data", place="", cwd=str(bench.workspace))
    assert asked.resolved is not None
    assert asked.resolved.commands[0].missing
    await bench.approve(asked.id, edited=asked.spec.model_copy(update={"place": "gpu1", "cwd": "/home/me"}))
    order = bench.executor.orders[await bench.ordered(asked.id)]
    assert "/opt/tools/train" in order.files


@another_root
async def test_an_exact_approval_binds_every_script_there(bench: Bench, far: FarRoot, far_tree: Path):
    await opened(bench, place=far)
    session = await bench.session()
    first = await submitted(bench, session, "bash run.sh")
    await bench.approve(first.id, remember="exact_for_session")
    assert (await submitted(bench, session, "bash run.sh")).verdict.kind == "allow"
    (far_tree / "home/me/run.sh").write_text("rm -rf /\n")
    assert (await submitted(bench, session, "bash run.sh")).verdict.kind == "ask"


@another_root
async def test_effects_are_those_that_it_would_have_there(bench: Bench, far: FarRoot):
    await opened(bench, place=far)
    asked = await submitted(bench, await bench.session(), "rm data absent")
    effects = await bench.supervisor.effects(asked.id)
    assert [path for removal in effects.removals for path in removal.paths] == ["/home/me/data"]


async def test_files_of_whisper_tui_there_are_not_left_to_a_rule(placed: Bench):
    await placed.restart(Rules(allow=(Rule(name="cp", prefix=("cp",), place="gpu1", sandbox=False),)))
    placed.executor.places["gpu1"] = SamePlace("gpu1")
    for target in (Path.home() / ".cache/whisper-tui/x", Path.home() / ".config/whisper-tui/config.toml"):
        asked = await submitted(placed, await placed.session(), f"cp a {target}", cwd="/tmp")
        assert asked.verdict is not None
        assert asked.verdict.kind == "ask"


async def test_a_place_that_is_away_leaves_its_calls_to_a_human_whatever_rules_allow(bench: Bench):
    away = SamePlace("gpu1")
    away.hello = None
    await opened(bench, TRAIN, away)
    asked = await submitted(bench, await bench.session(), "train data")
    assert asked.verdict is not None
    assert (asked.verdict.kind, asked.verdict.reason) == ("ask", UNKNOWN)
    assert asked.resolved is not None
    assert asked.resolved.program is None
    assert (await bench.supervisor.effects(asked.id)).unknown[0].reason == "gpu1 is unreachable: the test says so"


async def test_a_place_that_is_reached_again_has_its_calls_judged_and_started(bench: Bench):
    away = SamePlace("gpu1")
    away.hello = None
    rules = Rules(allow=(Rule(name="true", prefix=("true",), place="gpu1", sandbox=False),))
    await opened(bench, rules, away, workspace="/")
    session = await bench.session()
    allowed = await submitted(bench, session, "true", cwd="/")
    unlike = await submitted(bench, session, "false", cwd="/")
    reach(bench, away, SamePlace().hello)
    await bench.ordered(allowed.id)
    known = await bench.eventually(unlike.id, lambda record: record.resolved.program is not None)
    assert known.state.kind == "waiting"
    assert known.seen_digest() != unlike.seen_digest()


async def test_what_was_unknown_when_it_was_approved_is_asked_again_once_it_is_known(bench: Bench):
    away = SamePlace("gpu1")
    away.hello = None
    await opened(bench, place=away)
    asked = await submitted(bench, await bench.session(), "true", cwd="/")
    await bench.approve(asked.id)
    assert (await bench.record(asked.id)).state.kind == "queued"
    reach(bench, away, SamePlace().hello)
    again = await bench.state(asked.id, "waiting")
    assert again.verdict is not None
    assert f"it was approved when it was said that {UNKNOWN}" in again.verdict.reason
    assert again.resolved is not None
    assert again.resolved.program
    await bench.approve(asked.id)
    await bench.ordered(asked.id)


async def test_no_approval_is_remembered_for_what_nobody_knows(bench: Bench):
    away = SamePlace("gpu1")
    away.hello = None
    await opened(bench, place=away)
    asked = await submitted(bench, await bench.session(), "true", cwd="/")
    with pytest.raises(Refused, match="so its approval cannot be remembered"):
        await bench.approve(asked.id, remember="exact_for_session")
    assert (await bench.record(asked.id)).state.kind == "waiting"


async def test_a_call_waits_in_the_queue_while_its_place_is_away(placed: Bench):
    place = placed.executor.places["gpu1"]
    assert isinstance(place, SamePlace)
    asked = await submitted(placed, await placed.session(), "true", cwd="/")
    user, place.hello = place.hello, None
    await placed.approve(asked.id)
    await until(lambda: place.asked >= 1)
    assert (await placed.record(asked.id)).state.kind == "queued"
    with pytest.raises(Unavailable, match="gpu1 is unreachable"):
        await placed.supervisor.start_anyway(asked.id, HUMAN)
    reach(placed, place, user)
    await placed.ordered(asked.id)


async def test_nobody_here_waits_for_a_place_that_does_not_answer(placed: Bench):
    place = placed.executor.places["gpu1"]
    assert isinstance(place, SamePlace)
    place.gate.clear()
    one, other = await placed.session("one"), await placed.session("other")
    slow = asyncio.create_task(submitted(placed, one, "true", cwd="/"))
    await until(lambda: place.asked > 0)
    here = await submitted(placed, other, "true", place="", cwd="/")
    await placed.approve(here.id)
    await placed.ordered(here.id)
    there = await submitted(placed, other, "true", place="gpu2", cwd="/")
    assert there.verdict.kind == "ask"
    assert not slow.done()
    place.gate.set()
    assert (await slow).resolved.program


async def test_the_start_of_other_calls_does_not_wait_for_a_place_either(placed: Bench):
    place = placed.executor.places["gpu1"]
    assert isinstance(place, SamePlace)
    session = await placed.session()
    there, here = await submitted(placed, session, "true", cwd="/"), await submitted(placed, session, "true", "", "/")
    place.gate.clear()
    asked = place.asked
    await placed.approve(there.id)
    await until(lambda: place.asked > asked)
    await placed.approve(here.id)
    await placed.ordered(here.id)
    assert RunKey(there.id, 1) not in placed.executor.orders
    place.gate.set()
    await placed.ordered(there.id)


async def test_a_call_that_is_withdrawn_during_the_look_does_not_start(placed: Bench):
    place = placed.executor.places["gpu1"]
    assert isinstance(place, SamePlace)
    asked = await submitted(placed, await placed.session(), "true", cwd="/")
    place.gate.clear()
    before = place.asked
    await placed.approve(asked.id)
    await until(lambda: place.asked > before)
    await placed.supervisor.withdraw(asked.id, "changed its mind")
    place.gate.set()
    other = await submitted(placed, await placed.session("other"), "true", cwd="/")
    await placed.approve(other.id)
    await placed.ordered(other.id)
    assert RunKey(asked.id, 1) not in placed.executor.orders


async def test_a_pause_during_the_look_holds_the_start_back_until_it_ends(placed: Bench):
    place = placed.executor.places["gpu1"]
    assert isinstance(place, SamePlace)
    asked = await submitted(placed, await placed.session(), "true", cwd="/")
    place.gate.clear()
    before = place.asked
    await placed.approve(asked.id)
    await until(lambda: place.asked > before)
    await placed.supervisor.pause(HUMAN)
    place.gate.set()
    assert (await placed.record(asked.id)).state.kind == "queued"
    await placed.supervisor.resume(HUMAN)
    await placed.ordered(asked.id)


async def test_a_place_that_answers_nonsense_leaves_its_calls_to_a_human(bench: Bench):
    class Nonsense(SamePlace):
        async def answer(self, payload: bytes) -> bytes:
            return b"\x1b[2J nonsense"

    await opened(bench, TRAIN, Nonsense("gpu1"))
    asked = await submitted(bench, await bench.session(), "train data")
    assert asked.verdict is not None
    assert asked.verdict.kind == "ask"
    assert "gpu1 cannot be asked about its files" in asked.verdict.reason


async def test_an_examination_that_fails_refuses_the_call_and_stops_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    rules = Rules(allow=(Rule(name="true", prefix=("true",), place="gpu1", sandbox=False),))
    await opened(bench, rules, workspace="/")

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    session = await bench.session()
    asked = await submitted(bench, session, "false", cwd="/")
    monkeypatch.setattr(resolve, "_with_meaning", fail)
    await bench.approve(asked.id)
    assert (await bench.state(asked.id, "ended")).verdict.kind == "refuse"
    assert (await submitted(bench, session, "true", cwd="/")).verdict.kind == "refuse"
    assert not bench.supervisor.stopped.is_set()


async def test_after_a_kill_what_a_rule_allowed_is_looked_up_again_before_it_starts(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rules = Rules(allow=(Rule(name="x", prefix=("x",), place="gpu1", sandbox=False),))
    await opened(bench, rules, workspace="/")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/x").write_text("#!/bin/sh\n")
    (tmp_path / "bin/x").chmod(0o755)
    user = User(environment={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"})
    bench.executor.places["gpu1"] = SamePlace("gpu1", user)
    await bench.supervisor.pause(HUMAN)
    asked = await submitted(bench, await bench.session(), "x", cwd="/")
    assert asked.state.kind == "queued"
    (tmp_path / "bin/x").rename(tmp_path / "x")
    await bench.kill(rules)
    bench.executor.places["gpu1"] = SamePlace("gpu1", user)
    await bench.supervisor.resume(HUMAN)
    again = await bench.state(asked.id, "waiting")
    assert again.resolved is not None
    assert again.resolved.commands[0].missing


async def test_an_attempt_that_never_ran_there_is_judged_again_after_a_kill(placed: Bench):
    asked = await submitted(placed, await placed.session(), "true", cwd="/")
    await placed.approve(asked.id)
    key = await placed.ordered(asked.id)
    await placed.kill()
    placed.executor.places["gpu1"] = SamePlace("gpu1")
    placed.executor.never_ran(key)
    again = await placed.state(asked.id, "waiting")
    assert "the supervisor was killed meanwhile" in again.verdict.reason


async def test_no_git_of_this_machine_looks_at_a_repository_of_a_place(
    placed: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(git_reader.GitReader, "ask", lambda *_: pytest.fail("git was run"))
    asked = await submitted(placed, await placed.session(), "git reset --hard", cwd=str(tmp_path))
    assert not (await placed.supervisor.effects(asked.id)).files


async def test_a_look_before_the_start_needs_few_requests(placed: Bench):
    place = placed.executor.places["gpu1"]
    assert isinstance(place, SamePlace)
    asked = await submitted(placed, await placed.session(), "ls -la /etc | head; true", cwd="/")
    assert place.asked <= 3
    await placed.approve(asked.id)
    await placed.ordered(asked.id)
    assert place.asked <= 6
    assert place_files.MOST_ROUNDS > 6


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


@another_root
async def test_a_command_that_nobody_has_submitted_is_judged_as_it_would_run_there(bench: Bench, far: FarRoot):
    await opened(bench, TRAIN, far)
    here = str(bench.workspace)
    there = await bench.supervisor.judge_command("train data", here, place="gpu1")
    assert (there.verdict.kind, there.verdict.rule) == ("allow", "train"), there.verdict.reason
    assert there.resolved.commands[0].program == "/opt/tools/train"
    for place in ("", "here"):
        found = await bench.supervisor.judge_command("train data", here, place=place)
        assert (found.verdict.kind, found.resolved.commands[0].missing) == ("ask", True)
    with pytest.raises(Refused, match="there is no place 'gpu3'"):
        await bench.supervisor.judge_command("train data", here, place="gpu3")


@another_root
async def test_a_command_that_nobody_has_submitted_is_judged_at_the_place_to_which_a_rule_moves_it(
    bench: Bench, far: FarRoot
):
    moved = Rules(allow=(Rule(name="train", prefix=("train", "data"), run_at="gpu1", sandbox=False),))
    await opened(bench, moved, far)
    here = str(bench.workspace)
    found = await bench.supervisor.judge_command("train data", here)
    assert (found.verdict.kind, found.place) == ("allow", "gpu1"), found.verdict.reason
    assert found.resolved.commands[0].program == "/opt/tools/train"
    kept = await bench.supervisor.judge_command("train data", here, place="here")
    assert (kept.verdict.kind, kept.place) == ("ask", "")


async def test_a_command_that_nobody_has_submitted_is_asked_while_its_place_is_away(bench: Bench):
    away = SamePlace("gpu1")
    away.hello = None
    await opened(bench, TRAIN, away)
    found = await bench.supervisor.judge_command("train data", str(bench.workspace), place="gpu1")
    assert (found.verdict.kind, found.verdict.reason) == ("ask", UNKNOWN)
