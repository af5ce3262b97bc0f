"""Where the machine gives runs control groups, `show` and `doctor` say so, and none stays behind."""

from pathlib import Path

import pytest

from tests.cli.conftest import ANSWER_S, Instance
from tests.outside import outside_only

pytestmark = outside_only


@pytest.mark.slow
def test_the_group_of_a_run_and_what_its_limits_are_about_is_shown(instance: Instance) -> None:
    (instance.root / "config" / "config.toml").write_text("[limits]\ncpu_s = 60\nmemory_bytes = 1073741824\n")
    calling = instance.call("run_shell_command", command="sleep 0.1")
    assert instance.run("approve", "1").returncode == 0
    assert calling.wait(timeout=ANSWER_S) == 0
    row = instance.rows("show", "1")
    status = instance.rows("status")
    shown, examined = instance.run("show", "1").stdout, instance.run("doctor", "gemini").stdout
    if status["counts"] is None:
        assert row["control_group"] is None and "memory limits count each process alone" in examined
        pytest.skip("the control group of the tests is not theirs to divide")
    assert row["control_group"] in shown and "60 s of processor time for all of it" in shown
    assert ("each run has a control group" in examined) == bool(status["counts"])
    assert not Path(row["control_group"]).exists()
