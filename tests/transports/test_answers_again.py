"""What an agent was told, made again from the journal, beside what it was really told."""

import asyncio
import json
from functools import partial

import pytest

from tests.supervisor.hand_executor import HandExecutor
from tests.transports.endpoint_server import ECHO
from whisper_tui import Approve, Argv, CallRecord, Deny, ToolFailure, in_process
from whisper_tui.model.call import CommandSpec, Function
from whisper_tui.model.ending import FailedToStart, TimedOut
from whisper_tui.model.run import OutputChunk, OutputSizes
from whisper_tui.present.ending_text import AgentAnswer, AnswerPart, agent_answer_paragraphs
from whisper_tui.tools import standard_registry
from whisper_tui.transports.answers_again import BY_ITSELF, NO_ANSWER, RAN_ON, REMOVED, AnswersAgain

again = AnswersAgain(partial(standard_registry, longest_timeout_s=3600))
MUCH = b"".join(b"%06d\n" % number for number in range(14_000))


def parts_of(result) -> list[tuple[str, str]]:
    """The parts of an answer as the client has got it."""
    found = [("text", block.text) for block in result.content]
    if result.structured_content is not None:
        found.append(("structured content", json.dumps(result.structured_content, ensure_ascii=False, indent=2)))
    return found + ([("marked as", "an error")] if result.is_error else [])


async def asked(endpoint, human, tool, arguments, then, client="claude-code"):
    """Return the answer that an agent gets to its call, after `then` has decided about it."""
    async with endpoint.client(name=client, mode="legacy") as agent:
        call = asyncio.create_task(agent.call_tool(tool, arguments))
        await human.waiting()
        await then()
        return await asyncio.wait_for(call, 60)


async def told(bench, call_id="1") -> AgentAnswer:
    return await again(bench.supervisor, await bench.supervisor.record(call_id))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("execute_command", ECHO),
        ("run_shell_command", {"command": "echo hi"}),
    ],
)
async def test_a_result_is_told_again_as_the_agent_got_it(endpoint, human, bench, tool, arguments):
    result = await asked(endpoint, human, tool, arguments, human.approve_and_run)
    assert [*(await told(bench)).parts] == parts_of(result)
    assert any("hi" in text for _, text in parts_of(result))


@pytest.mark.parametrize("tool", ["execute_command", "run_shell_command", "ExecCommand"])
async def test_a_denial_is_told_again_in_the_words_of_the_human(endpoint, human, bench, tool):
    arguments = {"cmd": "rm x"} if tool == "ExecCommand" else {"command": "rm"}
    result = await asked(endpoint, human, tool, arguments, lambda: bench.deny("1", "not <here>"))
    found = await told(bench)
    assert [*found.parts] == parts_of(result) and "not <here>" in found.parts[0].text
    assert found.parts[-1] == AnswerPart("marked as", "an error")


async def test_the_note_about_an_edit_is_told_again(endpoint, human, bench):
    edited = CommandSpec(command=Argv(program="echo", args=("bye",)), cwd=str(bench.workspace))
    result = await asked(endpoint, human, "execute_command", ECHO, lambda: human.approve_and_run(edited=edited))
    found = await told(bench)
    assert [*found.parts] == parts_of(result)
    assert found.parts[0].text.startswith("The human changed the command before it ran. What ran: echo bye")


@pytest.mark.parametrize(
    "ending",
    [
        FailedToStart(problem="program_not_found", subject="echo", message="not found"),
        TimedOut(after_s=3),
    ],
)
async def test_other_ends_are_told_again(endpoint, human, bench, ending):
    async def finish():
        await bench.approve("1")
        key = await bench.ordered("1")
        if isinstance(ending, TimedOut):
            bench.executor.spawn(key)
        bench.executor.finish(key, ending)

    result = await asked(endpoint, human, "execute_command", ECHO, finish)
    assert [*(await told(bench)).parts] == parts_of(result)


@pytest.mark.parametrize("client", ["claude-code", "codex-mcp-client", "unheard-of"])
async def test_the_marks_of_a_cut_are_told_again_as_long_as_for_that_client(
    endpoint, human, bench, monkeypatch, client
):
    def read_output(_self, _key, stream, offset, limit):
        data = MUCH if stream == "out" else b""
        return OutputChunk(data=data[offset : offset + limit], start=offset, size=len(data), ended=True)

    monkeypatch.setattr(HandExecutor, "read_output", read_output)
    monkeypatch.setattr(HandExecutor, "output_file", lambda *_: "/runs/1/out")
    monkeypatch.setattr(HandExecutor, "_sizes", lambda *_: OutputSizes(out=len(MUCH)))
    arguments = {"command": "seq"}
    result = await asked(endpoint, human, "run_shell_command", arguments, human.approve_and_run, client=client)
    assert "bytes are left out here; all of it is in /runs/1/out" in result.content[0].text
    assert [*(await told(bench)).parts] == parts_of(result)


async def test_unknown_parts_are_named_and_nothing_is_invented(endpoint, human, bench, monkeypatch):
    await asked(endpoint, human, "ExecCommand", {"cmd": "x", "yield_time_ms": 0}, human.approve_and_run)
    assert await told(bench) == AgentAnswer(caveats=(RAN_ON,))
    record = await bench.supervisor.record("1")
    monkeypatch.setattr(HandExecutor, "read_output", lambda *_: OutputChunk(data=b"", start=0, size=0, ended=True))
    monkeypatch.setattr(HandExecutor, "_sizes", lambda *_: OutputSizes(out=3))
    output = record.state.model_copy(update={"output": OutputSizes(out=3)})
    assert await again(bench.supervisor, record.model_copy(update={"state": output})) == AgentAnswer(caveats=(REMOVED,))


async def test_an_open_call_has_no_answer_yet(endpoint, human, bench):
    async with endpoint.client(mode="legacy") as agent:
        call = asyncio.create_task(agent.call_tool("execute_command", ECHO))
        await human.waiting()
        assert await told(bench) == AgentAnswer(caveats=(NO_ANSWER,))
        await bench.deny("1", "no")
        await asyncio.wait_for(call, 60)


async def test_an_agent_that_no_longer_waited_is_named_beside_its_answer(endpoint, human, bench):
    async with endpoint.client(mode="legacy") as agent:
        call = asyncio.create_task(agent.call_tool("execute_command", ECHO))
        await human.waiting()
        call.cancel()
        await human.left()
    await bench.deny("1", "too late")
    found = await told(bench)
    assert "too late" in found.parts[0].text and "no longer waited" in found.caveats[0]


async def test_the_answer_of_the_library_is_told_again(tmp_path):
    def decide(record: CallRecord):
        return Deny(reason="not here") if "rm" in record.spec.command.words() else Approve()

    async with in_process("my agent", root=tmp_path, decide=decide) as agent:
        answer = await agent.answer("execute_command", {"command": "sh", "args": ["-c", "echo hi; echo no >&2"]})
        found = await again(agent.supervision, await agent.supervision.record("1"))
        assert found.parts == (
            AnswerPart("result", json.dumps(answer.result, indent=2)),
            AnswerPart("text", answer.text),
        )
        answer = await agent.answer("ExecCommand", {"cmd": "echo hi", "yield_time_ms": 3_600_000})
        found = await again(agent.supervision, await agent.supervision.record("2"))
        assert found.parts == (
            AnswerPart("result", json.dumps(answer.result, indent=2)),
            AnswerPart("text", answer.text),
        )
        with pytest.raises(ToolFailure) as failed:
            await agent.answer("execute_command", {"command": "rm"})
        found = await again(agent.supervision, await agent.supervision.record("3"))
        assert found.parts == (AnswerPart("error", failed.value.sentence()),)


async def test_a_tool_of_the_agent_is_not_run_again_to_learn_what_it_said(tmp_path):
    (outside := tmp_path / "outside").write_text("secret")
    (tmp_path / "in").mkdir()

    async with in_process("my agent", root=tmp_path / "in", decide=lambda _: Approve()) as agent:
        assert await agent.call("read_file", {"path": str(outside)}) == "secret"
        record = await agent.supervision.record("1")
        assert isinstance(record.spec.command, Function)
        assert await again(agent.supervision, record) == AgentAnswer(caveats=(BY_ITSELF,))
        assert await agent.supervision.record("1") == record


def test_the_section_shows_each_part_masked_bounded_and_harmless() -> None:
    text = "\n".join(["curl -H 'Authorization: Bearer abcdefghijklmnop123456'", "\x1b[2J", *map(str, range(500))])
    shown = agent_answer_paragraphs(AgentAnswer((AnswerPart("text", text),), ("A sentence.",)))
    lines = ["".join(span.text for span in paragraph.spans) for paragraph in shown]
    assert lines[1:4] == ["What the agent was told", "A sentence.", "text"]
    assert "abcdefghijklmnop" not in lines[4] and "\x1b" not in "".join(lines)
    assert lines[-1] == "… 302 more lines; whisper-tui show ID --told prints all"
    assert agent_answer_paragraphs(None) == ()
