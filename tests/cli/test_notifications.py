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
