"""Subcommands that only look: they start no supervisor of their own, and one line fits a status bar."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, Instance
from tests.outside import outside_only
from whisper_tui.cli.commands.list_calls import FIRST_ROWS
from whisper_tui.system.state_directory import is_occupied
from whisper_tui.wire.light_client import light_client

pytestmark = outside_only


@pytest.mark.slow
def test_looking_into_a_home_without_a_journal_starts_no_supervisor(instance: Instance) -> None:
    for words in (("list",), ("ps",), ("history",)):
        assert instance.rows(*words) == []
        answer = instance.run(*words)
        assert (answer.returncode, answer.stderr) == (0, "") and answer.stdout.startswith("ID  ")
    assert "no call 1" in instance.run("show", "1").stderr
    assert instance.run("status", "--short").returncode == 3
    assert not (instance.root / "state" / "journal.sqlite").exists()
    assert not is_occupied(instance.home.state)


@pytest.mark.slow
def test_very_many_calls_are_listed_in_parts_each_once_and_in_order(instance: Instance) -> None:
    with light_client(instance.home) as supervisor:
        session = supervisor.ask("open_session", hello={"name": "agent", "root": str(instance.workspace)})["id"]
        for number in range(FIRST_ROWS + 30):
            command = {"kind": "shell", "text": f"make part{number}"}
            spec = {"command": command, "cwd": str(instance.workspace)}
            call = {"session_id": session, "tool": "run_shell_command", "arguments": {}, "spec": spec}
            supervisor.ask("submit", request=call)
        # What is over when its part is asked for is left out.
        assert [row["id"] for row in supervisor.ask("open_rows", call_ids=["2", "999", "1"])] == ["2", "1"]
    ids = [str(number) for number in range(1, FIRST_ROWS + 31)]
    assert [row["id"] for row in instance.rows("list")] == ids
    printed = instance.run("list").stdout.splitlines()
    assert [line.split()[0] for line in printed] == ["ID", *ids]


@pytest.mark.slow
def test_a_status_bar_gets_one_line(instance: Instance) -> None:
    stopped = instance.run("status", "--short")
    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (3, "", "")
    assert json.loads(instance.run("status", "--short", "--json").stdout)["class"] == "stopped"
    assert instance.run("restart").returncode == 0
    assert instance.run("status", "--short").stdout == "idle\n"
    instance.call("run_shell_command", command="echo 1")
    assert instance.run("status", "--short").stdout == "1 waiting\n"
    instance.call("run_shell_command", command="rm -rf build")
    assert instance.run("pause").returncode == 0
    assert instance.run("status", "--short").stdout == "2 waiting (▲▲ 1), paused\n"
    shown = json.loads(instance.run("status", "--short", "--json").stdout)
    assert shown == {"text": "2 waiting (▲▲ 1), paused", "class": "severe"}


@pytest.mark.slow
def test_list_waits_until_a_call_waits_for_a_human(instance: Instance) -> None:
    assert instance.run("restart").returncode == 0
    waiting = instance.start("list", "--wait", "--json", stdin=subprocess.DEVNULL)
    instance.until(lambda: len(Path(f"/proc/{waiting.pid}/net/unix").read_text()) and watches(instance) == 1)
    assert waiting.poll() is None
    instance.call("run_shell_command", command="echo 1")
    out, err = waiting.communicate(timeout=90)
    assert (waiting.returncode, err) == (0, "")
    assert [row["command"] for row in json.loads(out)] == ["echo 1"]
    assert instance.run("list", "--wait").returncode == 0


@pytest.mark.slow
def test_a_wait_that_nobody_reads_any_more_ends(instance: Instance) -> None:
    assert instance.run("restart").returncode == 0
    waiting = instance.start("list", "--wait", stdin=subprocess.DEVNULL)
    instance.until(lambda: watches(instance) == 1)
    assert waiting.stdout is not None
    waiting.stdout.close()
    assert waiting.wait(60) == 141


def watches(instance: Instance) -> int:
    """How many processes of `list --wait` have a connection: three descriptors and two sockets."""
    found = 0
    for process in instance._started:
        if process.poll() is None and "--wait" in process.args:
            links = [os.readlink(each) for each in Path(f"/proc/{process.pid}/fd").iterdir() if each.is_symlink()]
            found += sum(link.startswith("socket:") for link in links) >= 2
    return found


@pytest.mark.slow
def test_the_configuration_is_found_edited_and_checked(instance: Instance, tmp_path: Path) -> None:
    path = instance.root / "config" / "config.toml"
    assert instance.run("config", "path").stdout == f"{path}\n"
    assert instance.run("config", "check").stdout == f"There is no {path}: the defaults apply\n"
    editor = tmp_path / "editor"
    editor.write_text(
        f'#!/bin/sh\n{{ cat "$2"; echo \'[supervisor]\'; echo "$1"; }} > {tmp_path}/new\ncp {tmp_path}/new "$2"\n'
    )
    editor.chmod(0o755)
    for setting, code in (("workers = 3", 0), ("worker = 3", 5)):
        path.unlink(missing_ok=True)
        edited = subprocess.run(
            [*PROGRAM, "config", "edit", "--home", str(instance.root)],
            env={**os.environ, "VISUAL": f"{editor} '{setting}'"},
            capture_output=True,
            check=False,
            text=True,
            timeout=90,
        )
        assert (edited.returncode, path.stat().st_mode & 0o777) == (code, 0o600), edited.stderr
        assert (f"{path} is valid" in edited.stdout) == (code == 0)
    assert "'worker'" in instance.run("config", "check").stderr


@pytest.mark.slow
def test_a_configuration_file_in_the_wrong_place_is_pointed_out(instance: Instance) -> None:
    (instance.root / "config.toml").write_text("")
    answer = instance.run("config", "check")
    assert answer.returncode == 5 and "is not read" in answer.stderr


@pytest.mark.slow
def test_mistakes_in_keys_and_rules_are_found(instance: Instance) -> None:
    (instance.root / "config" / "config.toml").write_text("[keys]\nnonsense = 'K'\n")
    (instance.root / "config" / "rules.toml").write_text("[[allow]]\nname = 'x'\n")
    answer = instance.run("config", "check")
    assert answer.returncode == 5 and "nonsense" in answer.stderr and "rules.toml" in answer.stderr
