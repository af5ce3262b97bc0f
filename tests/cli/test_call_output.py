"""However much a command prints, `call` prints all of it, and the supervisor does not take it into its memory."""

import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, Instance
from tests.outside import outside_only
from whisper_tui.cli.commands import call_tool
from whisper_tui.model.errors import Unavailable
from whisper_tui.system.processes import peer_process
from whisper_tui.wire.light_client import SupervisorLost
from whisper_tui.wire.rendezvous import connect

pytestmark = outside_only

MIB = 1024 * 1024
FLOOD = 24 * MIB


def most_memory(instance: Instance) -> int:
    """Bytes that the supervisor has had at once."""
    connection = connect(instance.home)
    assert connection is not None
    with connection, open(f"/proc/{peer_process(connection)[0]}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def approved(instance: Instance, **arguments: object) -> "subprocess.Popen[str]":
    call = instance.call("run_shell_command", **arguments)
    (row,) = (row for row in instance.seen("list") if row["state"] == "waiting")
    assert instance.run("approve", row["id"]).returncode == 0
    return call


@pytest.mark.slow
def test_a_flood_of_zeros_is_printed_whole_and_never_held_by_the_supervisor(instance, tmp_path):
    assert instance.run("restart").returncode == 0
    before = most_memory(instance)
    call = approved(instance, command=f"head -c {FLOOD} /dev/zero; echo no >&2")
    with (tmp_path / "printed").open("w") as file:
        while piece := call.stdout.read(MIB):
            file.write(piece)
    assert call.wait(90) == 0
    assert most_memory(instance) - before < FLOOD
    text = (tmp_path / "printed").read_text()
    assert text.count("\\u0000") == FLOOD
    about = json.loads(text.replace("\\u0000", ""))
    assert (about["stdout"], about["stderr"], about["exitCode"]) == ("", "no\n", 0)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["run_shell_command", "execute_command_line"])
def test_long_output_is_the_same_text_as_short_output(instance, tool):
    assert instance.run("restart").returncode == 0
    (instance.workspace / "long").write_bytes(("é\x1b[31m".encode() * 9 + b"\xff\n") * (MIB // 16) + b"\xc3")
    call = instance.call(tool, command="cat long; printf end >&2")
    assert instance.run("approve", "1").returncode == 0
    out, err = call.communicate(timeout=90)
    assert (call.returncode, err) == (0, "")
    logged = subprocess.run(
        [*PROGRAM, "logs", "1", "--home", str(instance.root)], capture_output=True, timeout=90, check=True
    )
    told = json.loads(out)
    assert told["stdout"] == logged.stdout.decode(errors="replace")
    assert told["stderr"] == logged.stderr.decode() == "end"


@pytest.mark.slow
def test_output_that_was_dropped_when_it_was_captured_is_marked(instance):
    (instance.root / "config" / "config.toml").write_text(f"[supervisor]\nmax_output_bytes = {2 * MIB}\n")
    call = approved(instance, command=f"yes | head -c {8 * MIB}") if instance.run("restart").returncode == 0 else None
    assert call is not None
    out, _ = call.communicate(timeout=90)
    text = json.loads(out)["stdout"]
    assert "bytes were dropped here when the output was captured]" in text
    assert text.startswith("y\ny\n") and text.endswith("y\ny\n") and len(text) < 3 * MIB


@pytest.mark.slow
def test_giving_up_in_the_middle_of_long_output_harms_nobody(instance):
    assert instance.run("restart").returncode == 0
    call = approved(instance, command=f"head -c {FLOOD // 8} /dev/zero")
    assert call.stdout.read(1000).startswith("{")
    call.send_signal(signal.SIGTERM)
    call.communicate(timeout=90)
    assert instance.rows("show", "1")["ending"] == "exited"


def test_a_call_is_followed_through_any_number_of_restarts_and_not_for_ever_without_a_supervisor_that_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = list[int]()

    def ask(self: call_tool.ShellCall, talk: object) -> dict[str, object]:
        asked.append(1)
        if len(asked) > 9:
            return {"result": "at last"}
        raise SupervisorLost("lost")

    monkeypatch.setattr(call_tool, "reach", lambda _places: socket.socket())
    monkeypatch.setattr(call_tool, "AGAIN_S", 0.0)
    monkeypatch.setattr("whisper_tui.wire.rendezvous.stopped_on_purpose", lambda _home: False)
    monkeypatch.setattr(call_tool.ShellCall, "_ask", ask)
    caller = call_tool.ShellCall(("--home", str(tmp_path)), "name", "tool", {})
    assert caller.answer() == {"result": "at last"}
    asked.clear()
    monkeypatch.setattr(call_tool, "GIVES_UP_S", 0.0)
    with pytest.raises(Unavailable, match="again and again"):
        caller.answer()
