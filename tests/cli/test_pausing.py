"""`pause` and `resume`, as people run them."""

from tests.outside import outside_only

pytestmark = outside_only


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
