"""Rules on effects, with real keepers: changes within a rule become real by themselves, and all others wait."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.outside import needs_overlays
from tests.supervisor.conftest import HUMAN
from tests.supervisor.test_previews import LiveBench
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended, Waiting
from whisper_tui.model.verdict import PreviewCondition
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.tools.agent_text import agent_note

pytestmark = needs_overlays


def rules(condition: PreviewCondition | None, name: str = "build", **more: object) -> Rules:
    said = {"name": name, "anything": True, "allow_if_preview": condition} | more
    return Rules(ask=(Rule.model_validate(said),))


BUILD = PreviewCondition(writes_within=("build/**", "there/**"))


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveBench]:
    made = LiveBench(tmp_path)
    (made.workspace / "kept.txt").write_text("kept\n")
    (made.workspace / "there").mkdir()
    await made.open(rules(BUILD))
    yield made
    await made.supervisor.close()


async def waits_because(live: LiveBench, text: str) -> str:
    """Why a call waits for its human although a rule looks at its effects."""
    call_id = await live.asked(text)
    report = await live.report(call_id)
    record = await live.record(call_id)
    assert isinstance(record.state, Waiting) and record.decision is None
    return "; ".join(report.beyond_rule)


async def test_changes_within_a_rule_become_real_without_a_human(live: LiveBench) -> None:
    call_id = await live.asked("mkdir build; cat /proc/sys/kernel/random/uuid | tee build/id; chmod +x build/id")
    record = await live.over(call_id)
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    assert (live.workspace / "build" / "id").read_bytes() == await live.output(call_id)
    assert record.applies and not record.decided_by_human
    assert record.decided_by is not None and (record.decided_by.surface, record.decided_by.who) == ("rule", "build")
    note = agent_note(record)
    assert note is not None and note.startswith("The user's rule build let this command run in a preview")
    await live.supervisor.undo(call_id, (), "undo", HUMAN)
    assert live.files() == {"kept.txt": "kept\n"}


@pytest.mark.parametrize(("variable", "is_permitted"), [("ASIMI_CLI", True), ("GIT_DIR", False), ("OTHER", False)])
async def test_variables_that_mark_the_commands_of_agents_keep_no_rule_from_permitting_effects(
    live: LiveBench, variable: str, *, is_permitted: bool
) -> None:
    """The tool for a line of shell text adds one to every command."""
    spec = CommandSpec(command=Shell(text="mkdir build"), cwd=str(live.workspace), environment={variable: "1"})
    session_id = await live.session()
    request = CallRequest(
        session_id=session_id, tool="run_shell_command", arguments={}, spec=spec, description="a test", key=None
    )
    call_id = await live.supervisor.submit(request)
    if is_permitted:
        assert (await live.over(call_id)).applies
    else:
        record = await live.until(call_id, lambda record: isinstance(record.state, Waiting))
        assert record.verdict is not None and not record.verdict.allow_if_preview
    assert (live.workspace / "build").exists() == is_permitted


async def test_a_further_name_of_a_file_within_the_rule_is_permitted(live: LiveBench) -> None:
    (live.workspace / "there" / "file").write_text("x")
    await live.over(await live.asked("ln there/file there/other"))
    assert (live.workspace / "there" / "other").samefile(live.workspace / "there" / "file")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo x > other.txt", "other.txt, where the rule permits no writes"),
        ("mkdir build; echo x > build/x; ln -s ../kept.txt build/l; echo y > build/l", "kept.txt, where the rule"),
        ("mkdir -p build; exit 3", "exit code is 3"),
        ("kill -9 $$", "did not exit by itself"),
        ("rm kept.txt", "deletes 1"),
        ("mkdir build; touch build/s; chmod u+s build/s", "rights of its owner"),
        ("exec 3<>/dev/tcp/192.0.2.1/443", "192.0.2.1:443"),
        ("sleep 600 >/dev/null 2>&1 & disown", "sleep 600"),
        ("mkdir build; ln kept.txt build/l", "build/l becomes a further name of"),
        ("ln kept.txt there/l", "there/l becomes a further name of"),
        ("mkdir build; mkfifo build/f", "other programs can wait for it"),
        ("mkdir build; echo x > build/.envrc", "loads in its directory"),
        ("mkdir build; echo x > build/.npmrc", "loads in its directory"),
        ("mkdir build; echo x > build/conftest.py", "settings of tests"),
        ("mkdir build; echo x > build/sitecustomize.py", "every program of its language loads"),
        ("mkdir build; echo x > build/x.pth", "every program of its language loads"),
        ("mkdir -p build/node_modules/.bin; echo x > build/node_modules/.bin/tsc", "a program of the project"),
        ("mkdir build; echo x > build/gradlew", "a build file"),
        ("mkdir build; echo x > build/CLAUDE.md", "agents"),
    ],
)
@pytest.mark.few(4)
async def test_changes_beyond_a_rule_wait_for_a_human(live: LiveBench, text: str, why: str) -> None:
    before = live.files()
    assert why in await waits_because(live, text)
    assert live.files() == before


async def test_a_rule_can_permit_some_deletions_and_another_exit_code(live: LiveBench) -> None:
    await live.restart(rules(PreviewCondition(writes_within=("*.txt",), deletes=1, exit_code=2)))
    record = await live.over(await live.asked("rm kept.txt; exit 2"))
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=2)
    assert live.files() == {}


async def test_every_rule_that_asks_must_permit_the_effects(live: LiveBench) -> None:
    stricter = Rule(name="notes", program="touch", allow_if_preview=PreviewCondition(writes_within=("notes/**",)))
    await live.restart(Rules(ask=(*rules(BUILD).ask, stricter)))
    assert "where the rule permits no writes" in await waits_because(live, "mkdir build; touch build/x")
    plain = Rule(name="always asked", program="touch")
    await live.restart(Rules(ask=(*rules(BUILD).ask, plain)))
    call_id = await live.asked("mkdir build; touch build/y")
    assert (await live.record(call_id)).preview is None


async def test_a_preview_that_a_human_began_is_left_to_the_human(live: LiveBench) -> None:
    await live.restart(rules(None))
    call_id = await live.asked("mkdir build")
    await live.previewed(call_id)
    await live.restart(rules(BUILD))
    assert isinstance((await live.record(call_id)).state, Waiting)


async def test_a_rule_that_was_changed_meanwhile_permits_nothing(live: LiveBench) -> None:
    await live.restart(rules(PreviewCondition()))
    call_id = await live.asked("mkdir build")
    report = await live.report(call_id)
    assert report.beyond_rule
    await live.restart(rules(BUILD))
    assert isinstance((await live.record(call_id)).state, Waiting)
    await live.decide(call_id, Approve(preview=report.digest))
    await live.over(call_id)
    assert (live.workspace / "build").is_dir()


async def test_a_file_that_changes_while_it_is_previewed_leaves_the_decision_to_a_human(live: LiveBench) -> None:
    await live.restart(rules(PreviewCondition(writes_within=("*.txt",))))
    call_id = await live.asked("echo more >> kept.txt; echo ready; sleep 1")
    await live.until(call_id, lambda record: record.preview is not None)
    async with asyncio.timeout(60):
        while await live.output(call_id) != b"ready\n":
            await asyncio.sleep(0.01)
    (live.workspace / "kept.txt").write_text("someone else\n")
    await live.report(call_id)
    record = await live.until(call_id, lambda record: isinstance(record.state, Waiting) and record.decision is None)
    assert record.preview is not None
    assert (live.workspace / "kept.txt").read_text() == "someone else\n"


async def test_the_next_supervisor_makes_permitted_changes_real(live: LiveBench) -> None:
    # As if it had been killed between the two events.
    live.supervisor._parts.pool.previews._decide = lambda *decision: None
    call_id = await live.asked("mkdir build")
    await live.report(call_id)
    assert isinstance((await live.record(call_id)).state, Waiting)
    await live.restart(rules(BUILD))
    await live.over(call_id)
    assert (live.workspace / "build").is_dir()
