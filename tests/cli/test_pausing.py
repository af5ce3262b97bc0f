"""`pause` and `resume`, as people run them."""

import os
import signal
import sys
import time

import pytest

from tests.outside import outside_only

pytestmark = outside_only


@pytest.mark.slow
def test_nothing_starts_while_everything_is_paused_even_when_the_supervisor_is_restarted(instance):
    paused = instance.run("pause")
    assert (paused.returncode, paused.stderr) == (0, "")
    instance.call("execute_command", command="echo", args=["went on"])
    assert instance.run("approve", "1").returncode == 0
    assert instance.run("stop").returncode == 0
    assert instance.rows("show", "1")["state"] == "queued"
    told = instance.run("status").stdout
    assert "Everything is paused" in told and "whisper-tui resume" in told
    assert instance.rows("status")["paused_by"]["surface"] == "command line"
    assert instance.run("resume").returncode == 0
    assert instance.run("logs", "-f", "1").stdout == "went on\n"
    assert instance.rows("status")["paused_since"] is None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_run_that_gets_no_further_says_why_in_list_ps_and_show(instance):
    instance.call("ExecCommand", cmd="read -r line", accepts_input=True)
    instance.call("ExecCommand", cmd="exec sleep 1000")
    for call_id in ("1", "2"):
        assert instance.run("approve", call_id).returncode == 0
    pid = instance.until(lambda: next((row["pid"] for row in instance.seen("ps") if row["id"] == "2"), None))
    os.kill(pid, signal.SIGSTOP)
    asks, stopped = instance.until(lambda: len(found := stalled(instance)) == 2 and found)
    assert (asks["id"], asks["paused"], stopped["id"], stopped["needs_input_since"]) == ("1", False, "2", None)
    assert asks["since"] - 1 <= asks["needs_input_since"] <= time.time() - 3
    for words in (("list",), ("ps",)):
        told = instance.run(*words).stdout
        assert "needs input" in told and "paused" in told
    assert "needs input for" in instance.run("show", "1").stdout
    assert "paused for" in instance.run("show", "2").stdout


def stalled(instance):
    return [row for row in instance.seen("ps") if row["needs_input_since"] or row["paused"]]
