"""However many ask for the supervisor at once, in whatever state things are, they meet at one."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.outside import outside_only
from whisper_tui.model.errors import BadConfiguration, BadStateDirectory, NotAllowed, Unavailable
from whisper_tui.system.processes import INSIDE, peer_process
from whisper_tui.system.state_directory import Directories, is_occupied
from whisper_tui.wire.client import SupervisorClient, ensure_supervisor
from whisper_tui.wire.light_client import LightClient, light_client
from whisper_tui.wire.rendezvous import connect, home_options, reach, replace

pytestmark = outside_only


def stop(home: Directories) -> None:
    connection = connect(home)
    if connection is not None:
        with connection:
            pid, _ = peer_process(connection)
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 60
    while is_occupied(home.state):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def home(tmp_path):
    made = Directories(config=tmp_path / "config", state=tmp_path / "state", runtime=tmp_path / "run")
    yield made
    stop(made)


def pid_of(home: Directories) -> int:
    with light_client(home) as supervisor:
        return supervisor.ask("status")["pid"]


def test_no_supervisor_runs_before_the_first_client(home):
    assert connect(home) is None
    with pytest.raises(Unavailable, match="no supervisor runs"), light_client(home, start=False):
        pass
    assert not Path(home.state).exists()


def test_a_started_supervisor_is_detached_from_its_starter(home):
    pid = pid_of(home)
    assert os.getsid(pid) == pid
    assert os.getpgid(pid) == pid
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        assert f"PPid:\t{os.getpid()}\n" not in status.read_text()
    assert pid_of(home) == pid


@pytest.mark.slow
def test_many_clients_at_once_start_one_supervisor(home):
    program = "import sys; from whisper_tui.cli import main; sys.exit(main())"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, "status", "--json", *home_options(home)]
            if number % 2
            else [sys.executable, "-c", program, "list", *home_options(home)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number in range(8)
    ]
    pids, threads = [], []
    for _ in range(6):
        threads.append(threading.Thread(target=lambda: pids.append(pid_of(home))))
        threads[-1].start()
    for thread in threads:
        thread.join(90)
    for number, process in enumerate(started):
        _, complaints = process.communicate(timeout=90)
        assert process.returncode == 0 or (number % 2 and b"No supervisor runs" in complaints), complaints
    assert len(pids) == 6 and len(set(pids)) == 1
    assert (Path(home.state) / "supervisor.log").read_text().count("serving") == 1


@pytest.mark.slow
def test_after_a_crash_the_next_one_who_asks_gets_a_new_one(home):
    first = pid_of(home)
    os.kill(first, signal.SIGKILL)
    while is_occupied(home.state):
        time.sleep(0.01)
    assert pid_of(home) != first


def test_a_long_path_is_no_obstacle_where_the_system_has_a_way(tmp_path):
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system has no way around its limit")
    root = tmp_path / ("a" * 100) / ("b" * 100)
    home = Directories(config=root / "config", state=root / "state", runtime=root / "run")
    try:
        assert pid_of(home) > 0
    finally:
        stop(home)


def test_directories_of_another_layout_are_handed_on(tmp_path):
    home = Directories(config=tmp_path / "c", state=tmp_path / "s", runtime=tmp_path / "s" / "run")
    assert home_options(home)[0] == "--directories"
    try:
        with light_client(home) as supervisor:
            assert supervisor.ask("status")["home"] == str(tmp_path / "s")
    finally:
        stop(home)


def test_a_broken_configuration_is_told_to_whoever_wanted_the_supervisor(home):
    Path(home.config).mkdir()
    (Path(home.config) / "config.toml").write_text("[supervisor]\nworker = 1\n")
    with pytest.raises(BadConfiguration, match="'worker'"):
        reach(home)


def test_a_state_directory_that_is_open_to_others_is_refused(home):
    Path(home.state).mkdir()
    Path(home.state).chmod(0o755)
    with pytest.raises(BadStateDirectory, match="open to other users"):
        reach(home)


def test_the_log_explains_a_supervisor_that_dies_silently(home, monkeypatch, tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho the disk is on fire >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(Unavailable, match="the disk is on fire"):
        reach(home)


def test_a_supervisor_that_never_answers_is_not_waited_for_for_ever(home, monkeypatch, tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexec sleep 5\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(Unavailable, match="did not answer in time"):
        reach(home, patience_s=0.3)


def test_a_supervised_command_may_not_start_one(home, monkeypatch):
    monkeypatch.setenv(INSIDE, "1")
    with pytest.raises(NotAllowed, match="supervised command"):
        reach(home)


def test_a_supervised_command_may_not_have_one_replaced(home, monkeypatch):
    before = pid_of(home)
    monkeypatch.setenv(INSIDE, "1")
    with pytest.raises(NotAllowed, match="supervised command"):
        replace(home)
    assert pid_of(home) == before


@pytest.mark.slow
def test_a_second_supervisor_says_who_was_first(home):
    pid = pid_of(home)
    command = [sys.executable, "-m", "whisper_tui", "supervise", *home_options(home)]
    second = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert second.returncode == 3
    assert f"pid {pid}" in second.stderr and "Traceback" not in second.stderr


def test_the_light_client_says_when_the_supervisor_goes_away(home):
    connection = reach(home)
    questions = LightClient(connection)
    stop(home)
    with pytest.raises(Unavailable, match="lost"):
        questions.ask("status")
    questions.close()


async def test_an_event_loop_waits_for_it_too(home):
    await ensure_supervisor(home)
    client = await SupervisorClient.connect(home)
    assert (await client.status()).home == str(home.state)
    await client.close()


def test_a_system_without_proc_is_named_at_once(home, tmp_path, monkeypatch):
    monkeypatch.setattr("whisper_tui.wire.rendezvous.PROCESSES", str(tmp_path / "nothing"))
    with pytest.raises(Unavailable, match="/proc is not mounted"):
        connect(home)
