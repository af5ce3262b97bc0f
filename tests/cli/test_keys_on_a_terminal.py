"""Keys on a real terminal decide only about a call that was drawn there before they came."""

import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.cli.conftest import PROGRAM, Instance
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow
REFUSED = b"Nothing was decided"


@pytest.fixture
def waiting(instance: Instance) -> "Iterator[list[subprocess.Popen[str]]]":
    """Two calls wait."""
    asked = [instance.call("run_shell_command", command=f"touch {name}") for name in ("first", "second")]
    yield asked
    for process in asked:
        process.kill()
        process.wait()


@pytest.fixture
def terminal(instance: Instance, waiting: object) -> Iterator[Terminal]:
    """The cockpit, with the first of them on the screen."""
    environment = {**os.environ, "TMPDIR": str(instance.root), "HOME": str(instance.root)}
    with Terminal([*PROGRAM, "--home", str(instance.root)], environment, instance.workspace) as opened:
        opened.shows(b"touch first")
        opened.shows(b"touch second")
        settled(opened)
        yield opened


def settled(terminal: Terminal) -> None:
    """Wait until it draws nothing for longer than any guard asks for: 0.6 s, since ages are drawn every second."""
    sizes, deadline = [-1], time.monotonic() + 60
    while sizes[-4:] != [len(terminal.text)] * 4:
        assert time.monotonic() < deadline, "it draws again and again"
        sizes.append(len(terminal.text))
        time.sleep(0.2)


def states(instance: Instance) -> dict[str, str]:
    return {row["id"]: row["state"] for row in instance.rows("list")}


def test_a_key_in_one_write_with_the_one_that_selects_a_call_decides_nothing(
    instance: Instance, terminal: Terminal
) -> None:
    before = states(instance)
    assert set(before.values()) == {"waiting"}
    terminal.types(b"\x1b[Ba")
    terminal.shows(REFUSED)
    settled(terminal)
    assert states(instance) == before
    terminal.types(b"a")
    instance.until(lambda: states(instance).get("2") != "waiting")
    assert states(instance)["1"] == "waiting"


def test_a_key_for_the_call_before_does_not_decide_about_the_next_one_on_a_terminal_that_lags(
    instance: Instance, terminal: Terminal
) -> None:
    # The human sees the first call for as long as the terminal takes nothing, and types for it.
    os.kill(terminal.process.pid, 19)
    instance.run("deny", "1", "--reason", "decided elsewhere")
    terminal.types(b"a")
    os.kill(terminal.process.pid, 18)
    settled(terminal)
    assert states(instance).get("2") == "waiting"
    assert not (instance.workspace / "second").exists()


def test_enter_in_one_write_with_a_filter_ends_it(instance: Instance, terminal: Terminal) -> None:
    terminal.types(b"/second\r")
    terminal.shows(b"1 of 2")
    settled(terminal)
    # The field no longer takes keys, so the next one opens the help.
    terminal.types(b"?")
    terminal.shows(b"Keys and signs")
