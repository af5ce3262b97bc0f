"""Notifications by the supervisor, with no cockpit open."""

import json
import sys
from pathlib import Path

import pytest

from tests.outside import outside_only

pytestmark = outside_only


def configure(instance, file: Path, program: str, **settings: object) -> None:
    lines = {"command": [sys.executable, "-c", program], "command_timeout_s": 60, **settings}
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())
    (instance.root / "config" / "config.toml").write_text(f"[calling]\n{text}")


def given(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.slow
def test_the_users_program_is_started_for_a_waiting_call_while_no_cockpit_is_open(instance, tmp_path):
    news = tmp_path / "news"
    configure(instance, news, f"import sys; open({str(news)!r}, 'ab').write(sys.stdin.buffer.read())")
    instance.call("execute_command", command="true")
    (told,) = instance.until(lambda: given(news))
    assert (told["event"], told["waiting"], [call["id"] for call in told["calls"]]) == ("waiting", 1, ["1"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_the_users_program_is_started_for_a_run_that_needs_input(instance, tmp_path):
    news = tmp_path / "news"
    configure(instance, news, f"import sys; open({str(news)!r}, 'ab').write(sys.stdin.buffer.read())")
    instance.call("ExecCommand", cmd="read -r line", accepts_input=True)
    assert instance.run("approve", "1").returncode == 0
    told = instance.until(lambda: [each for each in given(news) if each["event"] == "needs-input"])
    assert [call["id"] for call in told[0]["calls"]] == ["1"]


@pytest.mark.slow
def test_a_program_that_fails_is_named_by_status(instance, tmp_path):
    configure(instance, tmp_path / "news", "import sys; sys.exit(3)")
    instance.call("execute_command", command="true")
    problem = instance.until(lambda: instance.rows("status")["notify_problem"])
    assert problem.endswith("failed: exited with 3")
    assert problem in instance.run("status").stdout


TRIES = """
import os, subprocess, sys
way, log, words = sys.argv[1], sys.argv[2], sys.argv[3:]
if way != "directly":
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    parent = os.getppid()
    while os.getppid() == parent != 1:
        pass
environment = {} if way == "as an orphan with no environment" else os.environ
done = subprocess.run(words, env=environment, capture_output=True, text=True)
with open(log + ".part", "w") as file:
    file.write(done.stdout + done.stderr)
os.rename(log + ".part", log)
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["directly", "as an orphan", "as an orphan with no environment"])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has marks, by which an orphan is known")
@pytest.mark.few(1)
def test_the_users_program_decides_nothing_and_its_attempt_is_recorded(way, instance, tmp_path):
    log = tmp_path / "log"
    words = [sys.executable, "-m", "whisper_tui", "approve", "1", "--yes", "--home", str(instance.root)]
    lines = {"command": [sys.executable, "-c", TRIES, way, str(log), *words], "command_timeout_s": 60}
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())
    (instance.root / "config" / "config.toml").write_text(f"[calling]\n{text}")
    instance.call("execute_command", command="true")
    instance.until(log.exists)
    assert "a supervisor has started" in log.read_text()
    assert instance.rows("show", "1")["state"] == "waiting"
    assert "a supervisor has started" in instance.run("history", "refused").stdout


@pytest.mark.slow
def test_what_a_supervisor_does_not_start_decides_as_before(instance):
    instance.call("execute_command", command="true")
    instance.until(lambda: instance.rows("list"))
    assert instance.run("approve", "1").returncode == 0
