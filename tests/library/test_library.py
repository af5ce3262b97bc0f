"""The library: what an agent's author writes, over real commands."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

import whisper_tui
from tests.tools.post_tool import Post
from whisper_tui import (
    AITool,
    Approve,
    ArgumentError,
    Argv,
    CallRecord,
    Deny,
    Function,
    ToolFailure,
    connect,
    in_process,
)
from whisper_tui.library import Agent
from whisper_tui.model.ending import Exited, Withdrawn
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.state import Ended
from whisper_tui.policy.rules.rule import Rule, Rules


def everything(_record: CallRecord) -> Approve:
    return Approve()


async def test_a_program_can_be_its_own_supervisor_and_human(tmp_path):
    async with in_process("my agent", root=tmp_path, decide=everything) as agent:
        result = await agent.call("execute_command", {"command": "pwd"})
    assert result == {"stdout": f"{tmp_path}\n", "stderr": "", "return_code": 0, "timed_out": False}


async def test_a_call_names_the_place_where_it_runs_and_a_session_has_one(tmp_path):
    asked: list[str] = []

    def decide(record: CallRecord) -> Deny:
        asked.append(record.spec.place)
        return Deny(reason="seen")

    places = {"gpu1": {"by": "ssh"}, "gpu2": {"by": "ssh"}}
    async with in_process("my agent", root=tmp_path, decide=decide, places=places, place="gpu1") as agent:
        assert "place" in agent.tools.get_tool_by_name("run_shell_command").parameters_schema["properties"]
        for place in ("", "gpu2", "here"):
            assert "seen" in await agent.tell("execute_command", {"command": "true"}, place=place)
        with pytest.raises(ToolFailure, match="seen"):
            await agent.call("run_shell_command", {"command": "true", "place": "gpu2"}, place="here")
        with pytest.raises(WhisperError, match="there is no place 'gpu3'"):
            await agent.call("execute_command", {"command": "true"}, place="gpu3")
    assert asked == ["gpu1", "gpu2", "", "gpu2"]


async def test_a_tool_of_the_program_runs_at_no_place(tmp_path):
    class SendMail(AITool):
        name = "send_mail"
        description = "Sends a mail"
        parameters_schema = {"type": "object", "properties": {}}  # noqa: RUF012

        def get_ai_prompt_instructions(self) -> str:
            return self.description

        async def execute(self, **_arguments: object) -> str:
            return "sent"

    places = {"gpu1": {"by": "ssh"}}
    async with in_process(
        "my agent", root=tmp_path, decide=everything, places=places, place="gpu1", tools=[SendMail()]
    ) as agent:
        assert await agent.call("send_mail", {}) == "sent"
        with pytest.raises(WhisperError, match="is carried out by the agent itself"):
            await agent.call("send_mail", {}, place="gpu1")


async def test_the_decision_may_be_a_denial_or_take_its_time(tmp_path):
    async def decide(record: CallRecord):
        await asyncio.sleep(0)
        return Deny(reason="not here") if record.spec.command.words()[0] == "rm" else Approve()

    async with in_process("my agent", root=tmp_path, decide=decide) as agent:
        with pytest.raises(ToolFailure, match="not here"):
            await agent.call("execute_command", {"command": "rm", "args": ["x"]})
        assert (await agent.call("execute_command", {"command": "true"}))["return_code"] == 0


async def test_a_decision_that_fails_denies_the_call_and_is_raised_at_the_end(tmp_path):
    def decide(_record: CallRecord) -> Approve:
        raise LookupError("no such person")

    with pytest.raises(LookupError, match="no such person"):
        async with in_process("my agent", root=tmp_path, decide=decide) as agent:
            with pytest.raises(ToolFailure, match="the program that decides has failed: LookupError"):
                await agent.call("execute_command", {"command": "true"})


async def test_a_block_of_the_program_runs_once_it_is_approved_and_its_end_is_recorded(tmp_path):
    seen = []

    def decide(record: CallRecord) -> Approve:
        seen.append((record.call.tool, record.call.description, record.spec.command.text))
        return Approve()

    async with in_process("my agent", root=tmp_path, decide=decide) as agent:
        async with agent.approved("send_mail", {"to": "a@b.org"}, "Invite the guests") as arguments:
            assert arguments == {"to": "a@b.org"}
            assert arguments.told is None
        ended = await agent.supervision.record("1")
        with pytest.raises(KeyError):
            async with agent.approved("send_mail", {"to": "c@d.org"}):
                raise KeyError("secret")
        failed = await agent.supervision.record("2")
    assert seen[0] == ("send_mail", "Invite the guests", 'send_mail {"to": "a@b.org"}')
    assert [record.state.ending for record in (ended, failed) if isinstance(record.state, Ended)] == [
        Exited(code=0),
        Exited(code=1, problem="it raised KeyError"),
    ]


async def test_a_denied_block_is_not_entered(tmp_path):
    async with in_process("my agent", root=tmp_path, decide=lambda _record: Deny(reason="no mail")) as agent:
        with pytest.raises(ToolFailure, match="Reason: no mail"):
            async with agent.approved("send_mail", {}):
                pytest.fail("it was entered")


async def test_hosts_make_a_block_a_call_to_the_web_that_rules_know(tmp_path):
    rules = Rules(allow=(Rule(name="docs", host="docs.example.org"),))

    def decide(_record: CallRecord) -> Deny:
        return Deny(reason="asked")

    async with in_process("my agent", root=tmp_path, decide=decide, rules=rules) as agent:
        async with agent.approved("get", {"path": "/"}, hosts=["docs.example.org"]) as arguments:
            assert arguments.told is None or "rule" in arguments.told
        with pytest.raises(ToolFailure, match="asked"):
            async with agent.approved("get", {"path": "/"}, hosts=["example.org"]):
                pytest.fail("it was entered")


async def test_a_block_that_is_given_up_while_it_waits_is_withdrawn(tmp_path):
    seen = asyncio.Event()

    def later(_record: CallRecord) -> None:
        seen.set()

    async def ask(agent: Agent) -> None:
        async with agent.approved("send_mail", {}):
            pytest.fail("it was entered")

    async with in_process("my agent", root=tmp_path, decide=later) as agent:
        asking = asyncio.create_task(ask(agent))
        async with asyncio.timeout(60):
            await seen.wait()
        asking.cancel()
        await asyncio.wait([asking])
        record = await agent.supervision.record("1")
    assert asking.cancelled()
    assert isinstance(record.state, Ended)
    assert isinstance(record.state.ending, Withdrawn)


async def test_a_call_that_the_program_leaves_open_waits_for_somebody_else(tmp_path):
    seen = asyncio.Event()

    def later(_record: CallRecord) -> None:
        seen.set()

    async with in_process("my agent", root=tmp_path, decide=later) as agent:
        call = asyncio.create_task(agent.call("execute_command", {"command": "true"}))
        async with asyncio.timeout(60):
            await seen.wait()
        assert not call.done()
        await agent.supervision.withdraw("1", "never mind")
        with pytest.raises(ToolFailure, match="Never mind"):
            await call


async def test_wrong_arguments_raise_and_nobody_is_asked(tmp_path):
    async with in_process("my agent", root=tmp_path, decide=everything) as agent:
        with pytest.raises(ArgumentError, match="'command'"):
            await agent.call("execute_command", {})
        assert (await agent.supervision.status()).waiting == 0


def edited(record: CallRecord) -> Approve:
    return Approve(edited=record.spec.model_copy(update={"command": Argv(program="echo", args=("edited",))}))


async def test_a_changed_command_is_reported_in_the_result(tmp_path):
    async with in_process("my agent", root=tmp_path, decide=edited) as agent:
        asked = {"command": "touch", "args": ["asked"]}
        result = await agent.call("execute_command", asked)
        assert (result["stdout"], result["return_code"]) == ("edited\n", 0)
        assert "The human changed the command before it ran. What ran: echo edited" in result["told"]
        assert json.dumps(result).startswith('{"told": ')
        line = await agent.call("ExecCommand", {"cmd": "touch asked"})
        assert "What ran: echo edited" in line["told"]
        answer = await agent.answer("execute_command", asked)
        assert "told" not in answer.result and "What ran: echo edited" in str(answer.told)
        assert (await agent.tell("execute_command", asked)).startswith("The human changed the command")
        assert not (tmp_path / "asked").exists()


async def test_a_model_gets_one_text_of_bounded_length(tmp_path):
    async with in_process("my agent", root=tmp_path, decide=everything) as agent:
        much = {"command": "seq", "args": ["300000"]}
        assert len((await agent.call("execute_command", much))["stdout"]) == 1_988_895
        for longest in (500, 30_000):
            text = await agent.tell("execute_command", much, longest=longest)
            assert longest / 2 < len(text) <= longest
            assert "left out here" in text and "299999" in text
        both = await asyncio.gather(agent.tell("execute_command", much), agent.call("execute_command", much))
        assert (len(both[0]) <= 30_000, len(both[1]["stdout"])) == (True, 1_988_895)


async def test_a_model_learns_why_nothing_ran(tmp_path):
    async with in_process("my agent", root=tmp_path, decide=lambda _: Deny(reason="not here")) as agent:
        assert "not here" in await agent.tell("execute_command", {"command": "touch", "args": ["x"]})
        assert "'command' is missing" in await agent.tell("execute_command", {})
        with pytest.raises(ToolFailure, match="'command' is missing"):
            await agent.call("execute_command", {})
        assert "'verbose'" in json.dumps(await agent.call("ExecCommand", {"cmd": "x", "verbose": True}))


async def test_a_tool_of_the_authors_own_is_asked_about(tmp_path):
    asked: list[CallRecord] = []

    def decide(record: CallRecord) -> Approve:
        asked.append(record)
        return Approve()

    async with in_process("my agent", root=tmp_path, decide=decide, tools=[Post()]) as agent:
        assert await agent.call("post", {"text": "hello"}) == {"posted": "hello"}
    assert [record.spec.command for record in asked] == [Function(tool="post", arguments={"text": "hello"})]


async def test_runs_end_with_the_block_and_the_journal_stays(tmp_path):
    home = tmp_path / "home"
    async with in_process("my agent", root=tmp_path, home=str(home), decide=everything) as agent:
        envelope = await agent.call("ExecCommand", {"cmd": "exec sleep 300", "yield_time_ms": 0, "login": False})
        task_id = envelope["result"]["task_handle"]["task_id"]
    async with in_process("again", root=tmp_path, home=str(home), decide=everything) as agent:
        record = await agent.supervision.record(task_id)
        assert record.state.ending.kind == "signalled"


@pytest.mark.slow
async def test_the_users_supervisor_is_started_and_a_tool_of_the_authors_own_goes_through_its_queue(tmp_path):
    home = str(tmp_path / "home")

    async def human() -> None:
        async with asyncio.timeout(60):
            while True:
                listed = await whisper("list", "--json", "--home", home)
                if '"waiting"' in listed:
                    await whisper("approve", "1", "--home", home)
                    return
                await asyncio.sleep(0.1)

    try:
        async with connect("my agent", root=tmp_path, home=home, tools=[Post()]) as agent:
            approving = asyncio.create_task(human())
            async with asyncio.timeout(90):
                assert await agent.call("post", {"text": "hello"}) == {"posted": "hello"}
            await approving
            assert (await agent.supervision.record("1")).state.ending.kind == "exited"
    finally:
        await whisper("stop", "--end-runs", "--home", home)


async def whisper(*words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "whisper_tui", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    out, _ = await process.communicate()
    return out.decode()


def test_every_name_of_the_library_is_there_and_known_to_type_checkers():
    stub = (Path(whisper_tui.__file__).parent / "__init__.pyi").read_text()
    for name in whisper_tui.__all__:
        assert getattr(whisper_tui, name) is not None
        assert f" as {name}\n" in stub or f"{name}: str" in stub
    assert stub.count(" as ") == len(whisper_tui.__all__) - 1
    with pytest.raises(AttributeError, match="nothing"):
        whisper_tui.nothing  # noqa: B018


def test_importing_the_package_loads_nothing_else():
    program = "import json, sys, whisper_tui; print(json.dumps([m for m in sys.modules if 'whisper_tui.' in m]))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(answer.stdout) == []
