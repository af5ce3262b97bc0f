"""Every tool over real processes: whatever they print comes back right, and tasks are what they were."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.interpreter import PYTHON
from whisper_tui import Approve, in_process

BOTH = """
import os, threading
def write(fd, byte):
    with os.fdopen(fd, "wb") as file:
        file.write(byte * 200_000)
threads = [threading.Thread(target=write, args=pair) for pair in ((1, b"o"), (2, b"e"))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
ERR_WHILE_OUT_IS_OPEN = """
import os, sys
os.write(1, b"begun")
with os.fdopen(2, "wb") as file:
    file.write(b"e" * 200_000)
os.write(1, b" done")
"""
SPLIT = """
import os, time
for byte in "grö€😀".encode():
    os.write(1, bytes([byte]))
    time.sleep(0.02)
"""
STRANGE = r"""
import os
os.write(1, b"a\0b\xff\xfec\n")
"""
LONG_LINE = """
import os
with os.fdopen(1, "wb") as file:
    file.write(b"x" * 10_000_000 + b"\\n")
"""


@pytest.fixture
async def agent(tmp_path):
    async with in_process("tester", root=tmp_path, decide=lambda _record: Approve()) as opened:
        yield opened


@pytest.fixture(params=["execute_command", "execute_command_line", "run_shell_command"])
def run(request, agent, tmp_path):
    """Runs a Python program by one of the tools that answer with whole streams; gives both streams and the code."""

    async def run_program(program: str):
        (tmp_path / "program.py").write_text(program)
        line = f"{PYTHON} program.py"
        match request.param:
            case "execute_command":
                answer = await agent.call(request.param, {"command": sys.executable, "args": ["program.py"]})
                return answer["stdout"], answer["stderr"], answer["return_code"]
            case "execute_command_line":
                answer = await agent.call(request.param, {"command": line})
                return answer["stdout"], answer["stderr"], answer["returncode"]
            case _:
                answer = await agent.call(request.param, {"command": line})
                return answer["stdout"], answer["stderr"], answer["exitCode"]

    return run_program


async def test_two_hundred_thousand_bytes_on_both_streams_at_once_are_all_there(run):
    assert await run(BOTH) == ("o" * 200_000, "e" * 200_000, 0)


async def test_a_full_stderr_does_not_hold_up_an_open_stdout(run):
    assert await run(ERR_WHILE_OUT_IS_OPEN) == ("begun done", "e" * 200_000, 0)


async def test_a_character_that_comes_in_pieces_is_whole(run):
    assert await run(SPLIT) == ("grö€😀", "", 0)


async def test_a_nul_byte_stays_and_what_is_no_utf_8_is_shown_as_such(run):
    assert await run(STRANGE) == ("a\0b\ufffd\ufffdc\n", "", 0)


async def test_a_line_of_ten_megabytes_is_one_line(run):
    out, err, code = await run(LONG_LINE)
    assert (len(out), out.count("\n"), set(out), err, code) == (10_000_001, 1, {"x", "\n"}, "", 0)


async def exec_command(agent, tmp_path: Path, program: str, **arguments):
    (tmp_path / "program.py").write_text(program)
    call = {"cmd": f"exec {PYTHON} program.py", "login": False, "shell": "bash", **arguments}
    envelope = await agent.call("ExecCommand", call)
    assert envelope["status"] == "success", envelope
    return envelope["result"]


async def test_exec_command_cuts_both_streams_and_keeps_them_whole_in_files(agent, tmp_path):
    result = await exec_command(agent, tmp_path, BOTH, max_output_tokens=1000)
    assert result["truncated"] and result["exit_status"] == 0
    for name, byte in (("stdout", b"o"), ("stderr", b"e")):
        preview = result[f"{name}_preview"]
        assert preview.startswith(byte.decode() * 1000) and preview.endswith(byte.decode() * 1000)
        assert len(preview) < 2500
        path = result["artifacts"][result[f"{name}_artifact"]]["path"]
        assert Path(path).read_bytes() == byte * 200_000


async def test_exec_command_shows_strange_bytes_and_divided_characters_like_the_others(agent, tmp_path):
    assert (await exec_command(agent, tmp_path, SPLIT))["stdout_preview"] == "grö€😀"
    assert (await exec_command(agent, tmp_path, STRANGE))["stdout_preview"] == "a\0b\ufffd\ufffdc\n"


async def test_a_line_of_ten_megabytes_is_an_artifact_of_exec_command(agent, tmp_path):
    result = await exec_command(agent, tmp_path, LONG_LINE)
    path = Path(result["artifacts"][0]["path"])
    assert path.stat().st_size == 10_000_001
    assert len(result["stdout_preview"]) < 33_000


async def test_a_promoted_task_is_the_same_process_and_answers_what_is_typed(agent, tmp_path):
    program = "import os\nprint(os.getpid(), flush=True)\nprint('hello', input(), flush=True)"
    result = await exec_command(agent, tmp_path, program, accepts_input=True, yield_time_ms=0)
    task_id = result["task_handle"]["task_id"]
    pid = (await agent.supervision.started(task_id)).process.leader.pid
    sent = await agent.call("TaskInput", {"task_id": task_id, "text": "you\n"})
    assert sent["status"] == "success", sent
    over = (await agent.call("TaskOutput", {"task_id": task_id}))["result"]
    assert over["retrieval_status"] == "success"
    assert over["output"] == f"{pid}\nhello you\n"
    assert over["task"]["status"] == "completed"


async def test_a_task_with_a_terminal_has_one(agent, tmp_path):
    result = await exec_command(agent, tmp_path, "import sys\nprint(sys.stdin.isatty(), sys.stdout.isatty())", tty=True)
    assert result["stdout_preview"].strip() == "True True"


async def test_a_stopped_task_is_gone_with_its_children(agent, tmp_path):
    program = "import subprocess, time\nprint(subprocess.Popen(['sleep', '300']).pid, flush=True)\ntime.sleep(300)"
    result = await exec_command(agent, tmp_path, program, yield_time_ms=0)
    task_id = result["task_handle"]["task_id"]
    async with asyncio.timeout(60):
        while not (
            output := (await agent.call("TaskOutput", {"task_id": task_id, "block": False}))["result"]["output"]
        ):
            await asyncio.sleep(0.02)
    stopped = (await agent.call("TaskStop", {"task_id": task_id}))["result"]
    assert (stopped["outcome"], stopped["task"]["status"]) == ("stopped", "cancelled")
    async with asyncio.timeout(60):
        while alive(int(output)):
            await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_background_processes_of_a_shell_command_are_named(agent):
    result = await agent.call("run_shell_command", {"command": "sleep 300 & echo $!"})
    assert result["backgroundPids"] == [int(result["stdout"])]
    assert result["exitCode"] == 0


async def test_a_line_that_is_not_a_program_has_the_codes_of_the_shell(agent, tmp_path):
    (tmp_path / "data").write_text("no program")
    assert (await agent.call("execute_command_line", {"command": "no-such-program-here"}))["returncode"] == 127
    assert (await agent.call("execute_command_line", {"command": "./data"}))["returncode"] == 126


async def test_every_command_can_tell_under_whom_it_runs(agent):
    result = await agent.call("execute_command_line", {"command": "echo $WHISPER_TUI $WHISPER_TUI_CALL_ID"})
    assert result["stdout"] == "1 1\n"
    result = await agent.call("run_shell_command", {"command": "echo $ASIMI_CLI $WHISPER_TUI"})
    assert result["stdout"] == "1 1\n"


async def test_time_runs_from_the_start_of_the_process_and_the_output_until_then_is_kept(agent):
    result = await agent.call(
        "execute_command", {"command": "sh", "args": ["-c", "echo begun; sleep 60"], "timeout": 1}
    )
    assert result == {"stdout": "begun\n", "stderr": "", "return_code": None, "timed_out": True}
