"""The agent loop against a scripted service: what is sent, what is asked, what the model gets to read."""

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from tests.transports.scripted_model import ScriptedModel, call, text
from whisper_tui import Approve, CallRecord, Deny, in_process
from whisper_tui.model.errors import Unavailable
from whisper_tui.transports.agent_loop import Conversation, TooManySteps

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ECHO = json.dumps({"command": "echo", "args": ["hello"]})


def client_of(model: ScriptedModel, **settings) -> "AsyncOpenAI":
    from openai import AsyncOpenAI  # each process that collects this module would load its hundreds of types

    return AsyncOpenAI(api_key="a key", base_url=model.url, **settings)


async def run(model: ScriptedModel, tmp_path, *, decide=lambda _call: Approve(), said=None, **settings):
    async with (
        model.open(),
        in_process("agent", root=tmp_path, decide=decide) as agent,
        client_of(model, max_retries=0) as client,
    ):
        say = (said if said is not None else []).append
        conversation = Conversation(client, "some/model", agent.tools, say=say, **settings)
        return await conversation.ask("say hello"), conversation


def told(model: ScriptedModel, request: int = 1) -> list[dict]:
    """The tool messages in a request."""
    return [message for message in model.requests[request]["messages"] if message["role"] == "tool"]


async def test_text_streams_piece_by_piece_and_the_last_words_are_returned(tmp_path):
    model, said = ScriptedModel(text("Hel", "lo", ".")), []
    answer, _ = await run(model, tmp_path, said=said)
    assert (answer, said) == ("Hello.", ["Hel", "lo", "."])
    assert "authorization: bearer a key" in model.headers[0].lower()


async def test_the_definitions_of_all_tools_are_sent_with_every_request(tmp_path):
    model = ScriptedModel(text("done"))
    await run(model, tmp_path)
    request = model.requests[0]
    assert request["stream"] is True and request["model"] == "some/model"
    names = [tool["function"]["name"] for tool in request["tools"]]
    assert {"execute_command", "ExecCommand", "run_shell_command"} <= set(names)
    assert [message["role"] for message in request["messages"]] == ["system", "user"]


async def test_a_call_in_pieces_is_put_together_run_and_answered(tmp_path):
    pieces = [call(0, "c1", "execute_command", ECHO[:7]), call(0, arguments=ECHO[7:20]), call(0, arguments=ECHO[20:])]
    model = ScriptedModel([*text("Let me see."), *pieces], text("It said hello."))
    answer, _ = await run(model, tmp_path)
    assert answer == "It said hello."
    assistant, tool = model.requests[1]["messages"][-2:]
    assert assistant["content"] == "Let me see."
    assert assistant["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "execute_command", "arguments": ECHO}}
    ]
    assert (tool["role"], tool["tool_call_id"]) == ("tool", "c1")
    assert json.loads(tool["content"])["stdout"] == "hello\n"


async def test_parallel_calls_whose_pieces_come_in_turns_wait_in_the_queue_together(tmp_path):
    one, two = (json.dumps({"command": "echo", "args": [word]}) for word in ("one", "two"))
    pieces = [
        call(0, "c1", "execute_command", one[:5]),
        call(1, "c2", "execute_command", two[:9]),
        call(0, arguments=one[5:]),
        call(1, arguments=two[9:]),
    ]
    model = ScriptedModel(pieces, text("done"))
    both, asked = asyncio.Event(), []

    async def decide(record: CallRecord) -> None:
        asked.append(record)
        if len(asked) == 2:
            both.set()

    async with (
        model.open(),
        in_process("agent", root=tmp_path, decide=decide) as agent,
        client_of(model) as client,
    ):
        working = asyncio.create_task(Conversation(client, "m", agent.tools, say=lambda _: None).ask("go"))
        async with asyncio.timeout(60):
            await both.wait()
            for record in reversed(asked):
                await agent.supervision.decide(record.id, Approve(), record_decider(), record.seen_digest())
            await working
    answers = told(model)
    assert [answer["tool_call_id"] for answer in answers] == ["c1", "c2"]
    assert [json.loads(answer["content"])["stdout"] for answer in answers] == ["one\n", "two\n"]


def record_decider():
    from whisper_tui.model.decision import Decider

    return Decider(surface="library", who="tester")


async def test_a_denial_is_read_by_the_model_in_the_humans_words(tmp_path):
    model = ScriptedModel([call(0, "c1", "execute_command", ECHO)], text("All right."))
    await run(model, tmp_path, decide=lambda _call: Deny(reason="too loud"))
    assert "too loud" in told(model)[0]["content"] and "Nothing ran" in told(model)[0]["content"]


async def test_a_denial_of_exec_command_has_its_own_lines(tmp_path):
    model = ScriptedModel([call(0, "c1", "ExecCommand", '{"cmd": "ls"}')], text("All right."))
    await run(model, tmp_path, decide=lambda _call: Deny(reason="too loud"))
    assert told(model)[0]["content"].startswith("Command failed\napproval_denied: ")


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("execute_command", '{"command": ', "the arguments are not JSON"),
        ("execute_command", '{"comand": "ls"}', "has no argument 'comand'"),
        ("execute_command", "", "'command' is missing"),
        ("sing", "{}", "there is no tool 'sing'"),
    ],
)
async def test_a_call_that_cannot_be_is_told_to_the_model_and_asks_nobody(tmp_path, name, arguments, words):
    asked = []
    model = ScriptedModel([call(0, "c1", name, arguments)], text("I see."))
    await run(model, tmp_path, decide=asked.append)
    assert words in told(model)[0]["content"]
    assert asked == []


async def test_an_edited_command_is_told(tmp_path):
    def decide(record: CallRecord) -> Approve:
        command = record.spec.command.model_copy(update={"args": ("softly",)})
        return Approve(edited=record.spec.model_copy(update={"command": command}))

    model = ScriptedModel([call(0, "c1", "execute_command", ECHO)], text("I see."))
    await run(model, tmp_path, decide=decide)
    content = told(model)[0]["content"]
    assert content.startswith("The human changed the command") and "softly\\n" in content


async def test_a_model_that_never_stops_is_stopped(tmp_path):
    model = ScriptedModel(*([call(0, f"c{number}", "TaskList", "{}")] for number in range(3)))
    with pytest.raises(TooManySteps, match="after 3 steps"):
        await run(model, tmp_path, steps=3)


async def test_a_service_that_refuses_is_one_sentence(tmp_path):
    model = ScriptedModel()
    model.status = "401 Unauthorized"
    with pytest.raises(Unavailable, match="no such key"):
        await run(model, tmp_path)


async def test_a_second_question_continues_the_conversation(tmp_path):
    model = ScriptedModel(text("first"), text("second"))
    async with (
        model.open(),
        in_process("agent", root=tmp_path, decide=lambda _call: Approve()) as agent,
        client_of(model) as client,
    ):
        conversation = Conversation(client, "m", agent.tools, say=lambda _: None)
        assert [await conversation.ask("a"), await conversation.ask("b")] == ["first", "second"]
    assert [message["content"] for message in model.requests[1]["messages"][1:]] == ["a", "first", "b"]


async def test_a_conversation_that_is_given_up_withdraws_what_waits(tmp_path):
    waits = asyncio.Event()
    model = ScriptedModel([call(0, "c1", "execute_command", ECHO)])
    async with (
        model.open(),
        in_process("agent", root=tmp_path, decide=lambda _call: waits.set()) as agent,
        client_of(model) as client,
    ):
        working = asyncio.create_task(Conversation(client, "m", agent.tools, say=lambda _: None).ask("go"))
        async with asyncio.timeout(60):
            await waits.wait()
        working.cancel()
        await asyncio.wait([working])
        assert (await agent.supervision.record("1")).state.ending.kind == "withdrawn"
