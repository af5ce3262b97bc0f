"""`prune`, and what is said of output that is gone."""

import os

import pytest

from tests.outside import outside_only

pytestmark = outside_only


@pytest.mark.slow
def test_removed_output_is_reported_and_the_call_is_still_known(instance):
    (instance.root / "config" / "config.toml").write_text("[retention]\ndays = 1\n")
    call = instance.call("execute_command", command="echo", args=["hello"])
    assert instance.run("approve", "1").returncode == 0
    call.communicate(timeout=90)
    instance.until(lambda: instance.seen("show", call_id="1")[0]["settled"])
    assert instance.rows("prune")["runs"] == 0
    assert instance.run("logs", "1").stdout == "hello\n"
    (attempt,) = (instance.home.state / "runs").glob("1.*")
    os.utime(attempt / "done", (1, 1))
    assert instance.rows("prune", "--dry-run")["runs"] == 1
    assert "Removed the output of 1 runs" in instance.run("prune").stdout
    assert not attempt.exists()
    shown = instance.rows("show", "1")
    assert (shown["output_removed"], shown["output"]["out"], shown["exit_code"]) == (True, 6, 0)
    assert "6 bytes, and 0 of errors, removed from the disk" in instance.run("show", "1").stdout
    logs = instance.run("logs", "-f", "1")
    assert (logs.returncode, logs.stdout) == (0, "") and "was removed" in logs.stderr
    assert instance.run("history", "verify").returncode == 0
