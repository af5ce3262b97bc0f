"""The demo has rules of its own: they can be tried in its cockpit, and end with it."""

from pathlib import Path

from tests.api.conftest import Harness
from tests.outside import outside_only
from whisper_tui.cli import demo_run
from whisper_tui.demo.scripted_agents import temporary_workspace
from whisper_tui.model.call import SessionHello
from whisper_tui.model.decision import Approve, RuleScope

pytestmark = outside_only


async def test_a_rule_that_is_saved_in_the_demo_holds_there() -> None:
    with temporary_workspace(step_s=0) as workspace:
        root = str(workspace.root)
        async with demo_run._supervisor(workspace) as supervisor:
            listed = await supervisor.rule_list()
            assert not listed.read_only_runs, "every command of the story is asked"
            assert (await supervisor.judge_command("touch x", root)).verdict.kind == "ask"
            hello = SessionHello(name="agent", root=root, environment=workspace.environment)
            harness = Harness(supervisor, await supervisor.open_session(hello))
            asked = await harness.submit("touch", "x")
            await harness.decide(asked, Approve(remember=RuleScope(words=("touch", "x"), where="user")))
            await supervisor.outcome(asked)
            assert (await supervisor.judge_command("touch x", root)).verdict.kind == "allow"
            again = await supervisor.outcome(await harness.submit("touch", "x"))
            assert again.decided_by is not None and again.decided_by.surface == "rule"
        assert Path(listed.path).is_relative_to(workspace.place)
