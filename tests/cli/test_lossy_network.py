"""Machines behind a network of 200 ms that loses one packet in five, modelled between ssh and the supervisor."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import ANSWER_S, PROGRAM
from tests.cli.terminal import Terminal
from tests.cli.test_other_machines import Desk, Machine, pair
from tests.cli.test_three_machines import Screen
from tests.interpreter import PYTHON
from tests.outside import exhaustive_only, outside_only

__all__ = ["pair"]
pytestmark = [outside_only, exhaustive_only, pytest.mark.slow]

WIRE = Path(__file__).parents[2] / "benchmarks" / "_slow_wire.py"
DELAY_MS, LOST_PERCENT = 100, 20
SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
exec {python} -S {wire} {delay} {lost} {folder}/$2.stalled sh -c "$3"
"""


def lossy(desk: Desk) -> None:
    """Lead to all machines through such a network."""
    text = SSH.format(python=PYTHON, wire=shlex.quote(str(WIRE)), delay=DELAY_MS, lost=LOST_PERCENT, folder=desk.root)
    (desk.root / "bin" / "ssh").write_text(text)


def ends_well(agent: "subprocess.Popen[str]") -> None:
    """Wait for a command that was approved, bounded."""
    assert '"exitCode": 0' in agent.communicate(timeout=ANSWER_S)[0]


def test_no_key_waits_for_a_machine_and_each_decision_is_made_once(pair: tuple[Machine, Machine, Desk]) -> None:
    gpu1, gpu2, desk = pair
    agents = [gpu1.asks(f"echo once >> gpu1-{number}") for number in (1, 2)]
    agents.append(gpu2.asks("echo once >> gpu2-1"))
    lossy(desk)
    stalled = desk.root / "gpu1.stalled"
    with Terminal(
        [*PROGRAM, "attach", "gpu1", "gpu2", "--home", str(desk.root)], desk.environment, desk.workspace
    ) as at:
        screen = Screen(at)
        screen.shows("● 2 machines", "◆ 3 waiting", "Space Mark")
        screen.only("gpu1")
        screen.press_until(lambda: agents[0].poll() is not None, "gpu1:1")
        ends_well(agents[0])

        stalled.touch()
        screen.only("gpu1")
        # The next call is shown although nothing comes from the machine: the decision is on its way.
        screen.press_until(lambda: "Approving call gpu1:2" in screen.text(), "gpu1:2")
        screen.only("gpu2")
        screen.press_until(lambda: agents[2].poll() is not None, "gpu2:1")
        ends_well(agents[2])
        assert gpu1.waiting() == ["echo once >> gpu1-2"]
        stalled.unlink()
        ends_well(agents[1])
        screen.types(b"q")
        assert at.ends() == 0
    written = {path.name: path.read_text() for each in (gpu1, gpu2) for path in each.workspace.iterdir()}
    assert written == dict.fromkeys(("gpu1-1", "gpu1-2", "gpu2-1"), "once\n")
    assert len(gpu1.rows("history")) == 2
