"""`whisper-tui agent`: a model works on a task, and a human decides about its calls."""

import asyncio
import os
import signal
import sys

import pytest

from tests.cli.conftest import PROGRAM, Instance
from tests.transports.scripted_model import ScriptedModel, call, text
from whisper_tui.config import find_directories
from whisper_tui.model.board import Board
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import Refused
from whisper_tui.wire.client import SupervisorClient


async def agent(instance: Instance, model: ScriptedModel, *words: str, key: str | None = "a secret key"):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    if key is not None:
        environment["OPENROUTER_API_KEY"] = key
    return await asyncio.create_subprocess_exec(
        *PROGRAM,
        *("agent", "what is here?", "--model", "some/model", "--base-url", model.url, "--home", str(instance.root)),
        *words,
        env=environment,
        cwd=instance.workspace,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def waiting(instance: Instance) -> str:
    async with asyncio.timeout(90):
        while True:
            rows = [row for row in await asyncio.to_thread(instance.seen, "list") if row["state"] == "waiting"]
            if rows:
                return str(rows[0]["id"])
            await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_a_task_is_worked_on_and_its_commands_wait_for_a_human_and_do_not_get_the_key(instance: Instance):
    arguments = '{"command": "env; echo found"}'
    model = ScriptedModel(
        [*text("I look."), call(0, "c1", "run_shell_command", arguments)], text("Nothing\x1b[2J here.")
    )
    async with model.open():
        process = await agent(instance, model)
        call_id = await waiting(instance)
        assert (await asyncio.to_thread(instance.run, "approve", call_id, "--yes")).returncode == 0
        async with asyncio.timeout(90):
            out, err = await process.communicate()
    assert process.returncode == 0, err
    assert "I look." in out.decode() and "here." in out.decode() and "\x1b" not in out.decode()
    assert "the model asks for run_shell_command" in err.decode()
    answer = model.requests[1]["messages"][-1]["content"]
    assert "found" in answer and "a secret key" not in answer


@pytest.mark.slow
async def test_without_a_key_nothing_is_begun(instance: Instance):
    model = ScriptedModel()
    async with model.open():
        process = await agent(instance, model, key=None)
        _, err = await process.communicate()
    assert process.returncode != 0
    assert b"There is no key for the model's service" in err
    assert model.requests == [] and not (instance.root / "state").exists()


@pytest.mark.slow
async def test_the_tools_can_be_a_set(instance: Instance):
    model = ScriptedModel(text("done"))
    async with model.open():
        process = await agent(instance, model, "--set", "argv")
        await process.communicate()
    assert process.returncode == 0
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["execute_command"]


async def test_without_the_client_the_extra_is_named(instance: Instance):
    program = "import sys; sys.modules['openai'] = None; from whisper_tui.cli import main; sys.exit(main())"
    words = ("agent", "x", "--model", "m", "--home", str(instance.root))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *words, stderr=asyncio.subprocess.PIPE
    )
    _, err = await process.communicate()
    assert (
        process.returncode != 0 and b"[agent]" in err and b"-m pip install" in err and b"whisper-tui[agent]" not in err
    )


async def said(instance: Instance, session_id: str, texts: int) -> list[tuple[str, str]]:
    """What was said in a session, by which surface, once there is so much of it."""
    supervision = await SupervisorClient.connect(find_directories(str(instance.root), {}), start=False)
    try:
        board = Board()
        async with asyncio.timeout(90):
            async for events in supervision.watch():
                board.apply_all(events)
                found = board.said.get(session_id, ())
                if len(found) >= texts:
                    return [(event.by.surface, event.text) for event in found]
    finally:
        await supervision.close()
    raise AssertionError("the supervisor stopped")


async def say(instance: Instance, session_id: str, text: str) -> None:
    supervision = await SupervisorClient.connect(find_directories(str(instance.root), {}), start=False)
    try:
        await supervision.say(session_id, text, Decider(surface="cockpit", who="me"))
    finally:
        await supervision.close()


@pytest.mark.slow
async def test_a_staying_agent_works_on_messages_and_its_answers_are_journaled(instance: Instance):
    model = ScriptedModel(text("One ", "file."), text("It is empty."))
    async with model.open():
        process = await agent(instance, model, "--stay")
        while not (instance.root / "state").exists():
            await asyncio.sleep(0.1)
        async with asyncio.timeout(90):
            while len(model.requests) < 1:
                await asyncio.sleep(0.1)
        assert await said(instance, "s1", 2) == [("command line", "what is here?"), ("agent", "One file.")]
        await say(instance, "s1", "look into it")
        assert (await said(instance, "s1", 4))[2:] == [("cockpit", "look into it"), ("agent", "It is empty.")]
        assert process.returncode is None
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(90):
            out, _ = await process.communicate()
    assert "One file." in out.decode() and "It is empty." in out.decode()
    users = [message["content"] for message in model.requests[1]["messages"] if message["role"] == "user"]
    assert users == ["what is here?", "look into it"]


@pytest.mark.slow
async def test_an_agent_that_does_not_stay_gets_no_messages(instance: Instance):
    model = ScriptedModel([*text("I look."), call(0, "c1", "run_shell_command", '{"command": "true"}')], text("Done."))
    async with model.open():
        process = await agent(instance, model)
        call_id = await waiting(instance)
        with pytest.raises(Refused, match="does not listen"):
            await say(instance, "s1", "something else")
        assert (await asyncio.to_thread(instance.run, "deny", call_id, "--reason", "no")).returncode == 0
        async with asyncio.timeout(90):
            await process.communicate()
    assert process.returncode == 0
