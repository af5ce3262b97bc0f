"""What each client is sent fits what it shows its model whole, and says where the rest is."""

import asyncio
import json

import pytest

from tests.supervisor.hand_executor import HandExecutor
from whisper_tui.model.call import ClientInfo
from whisper_tui.model.run import OutputChunk, OutputSizes
from whisper_tui.transports.mcp.mcp_calls import output_budget

MUCH = b"".join(b"%06d\n" % number for number in range(14_000))


@pytest.fixture
def printing(monkeypatch):
    """Every run has printed a hundred thousand bytes on standard output."""

    def read_output(_self, _key, stream, offset, limit):
        data = MUCH if stream == "out" else b""
        return OutputChunk(data=data[offset : offset + limit], start=offset, size=len(data), ended=True)

    monkeypatch.setattr(HandExecutor, "read_output", read_output)
    monkeypatch.setattr(HandExecutor, "output_file", lambda *_: "/runs/1/out")
    monkeypatch.setattr(HandExecutor, "_sizes", lambda *_: OutputSizes(out=len(MUCH)))


@pytest.mark.parametrize(
    "client", ["claude-code", "codex-mcp-client", "gemini-cli-mcp-client", "opencode", "unheard-of"]
)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("run_shell_command", {"command": "seq"}),
        ("execute_command", {"command": "seq"}),
        ("ExecCommand", {"cmd": "seq", "max_output_tokens": 64_000}),
    ],
)
async def test_much_output_is_cut_to_what_the_client_shows(endpoint, human, bench, printing, client, tool, arguments):
    async with endpoint.client(name=client, mode="legacy") as agent:
        call = asyncio.create_task(agent.call_tool(tool, arguments))
        await human.waiting()
        await bench.approve("1")
        key = await bench.ordered("1")
        bench.executor.spawn(key)
        bench.executor.finish(key)
        result = await asyncio.wait_for(call, 60)
    room = output_budget(ClientInfo(name=client))
    (content,) = result.content
    assert 0.4 < room.filled(content.text, json.dumps(result.structured_content, ensure_ascii=False)) <= 1.0
    said = json.dumps(result.structured_content)
    assert "000000" in said and "013999" in said and "/runs/1/out" in said


async def test_a_long_file_is_cut_and_its_answer_says_how_to_see_the_rest(endpoint, bench):
    (bench.workspace / "long.txt").write_text("top\n" + "x" * 200_000 + "\nbottom")
    async with endpoint.client(name="codex-mcp-client", mode="legacy") as client:
        text = (await client.call_tool("read_file", {"path": "long.txt"})).content[0].text
    assert len(text) <= 11_000
    assert text.startswith("top\n") and text.endswith("bottom")
    assert "characters are left out here; ask for a part of it" in text


async def test_codex_says_which_model_asks_and_which_of_its_threads(endpoint, human, bench):
    meta = {"threadId": "t2", "sessionId": "t1", "x-codex-turn-metadata": {"model": "gpt-x"}}
    async with endpoint.lines() as agent:
        await agent.initialize("codex-mcp-client")
        agent.call(1, "execute_command", {"command": "ls"}, **meta)
        record = await human.waiting()
        (session,) = bench.supervisor._store.board.sessions.values()
        assert (session.client.name, session.client.model) == ("codex-mcp-client", "gpt-x")
        assert record.call.asker == "thread t2"
        agent.call(2, "execute_command", {"command": "pwd"}, threadId="t1", sessionId="t1")
        assert (await human.waiting("2")).call.asker == ""
        assert bench.supervisor._store.board.sessions[session.id].client.model == "gpt-x"


@pytest.mark.parametrize("turn", ["not JSON", 7, None, {"model": 7}, '{"model": "gpt-x"}'])
async def test_a_client_may_describe_itself_in_any_shape(endpoint, human, turn):
    async with endpoint.lines() as agent:
        await agent.initialize("codex-mcp-client")
        agent.call(1, "execute_command", {"command": "ls"}, **{"x-codex-turn-metadata": turn, "threadId": 1})
        assert (await human.waiting()).call.asker == ""
