"""Supervisors of several machines at one desk, over real ssh: each machine has its own network and its own sshd."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

import whisper_tui
from tests.cli.conftest import ANSWER_S, PROGRAM, Instance
from tests.cli.terminal import Terminal
from tests.outside import outside_only
from tests.rows import each_row
from tests.ssh_server import loopback_server, needs_sshd, other_machine
from whisper_tui.cli.other_machines import SshHost, by_host, is_elsewhere, without_host
from whisper_tui.model.errors import Unavailable
from whisper_tui.wire.light_client import light_client

pytestmark = [outside_only, pytest.mark.skipif(sys.platform != "linux", reason="network namespaces")]
SOURCE = str(Path(whisper_tui.__file__).parent.parent)


class Machine(Instance):
    """An instance whose programs run behind a server of ssh."""

    def __init__(self, root: Path, ssh: Any, inside: tuple[str, ...] = ()) -> None:
        root.mkdir()
        super().__init__(root)
        self.name, self.ssh, self.inside = ssh.name, ssh, inside

    def start(self, *words: str, **how: Any) -> "subprocess.Popen[str]":
        """Begin a command there."""
        pipe = subprocess.PIPE
        command = [*self.inside, *PROGRAM, *words, "--home", str(self.root)]
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=self.workspace, **how)
        self._started.append(process)
        return process

    def asks(self, command: str) -> "subprocess.Popen[str]":
        """An agent there asks for a shell command, which waits now."""
        process = self.start("call", "run_shell_command", json.dumps({"command": command}))
        self.until(lambda: command in self.waiting())
        return process

    def waiting(self) -> list[str]:
        """The commands that wait there. Starts no program, and no supervisor: it would be in our network."""
        try:
            with light_client(self.home, start=False) as supervisor:
                rows = supervisor.ask("rows", kind="list")
        except Unavailable:
            return []
        return [row["command"] for row in rows if row["state"] == "waiting"]

    @property
    def table(self) -> str:
        """What the desk's configuration says about it."""
        command = f"env PYTHONPATH={shlex.quote(SOURCE)} {shlex.join(PROGRAM)} --home {shlex.quote(str(self.root))}"
        return f"[hosts.{self.name}]\ncommand = {json.dumps(command)}\n"

    def cut(self) -> None:
        """End every session of ssh, and let nobody in."""
        self.ssh.stop()
        for process in psutil.process_iter():
            try:
                if not "".join(process.cmdline()[:1]).startswith("sshd"):
                    continue
                if str(self.root) in " ".join(each for child in process.children() for each in child.cmdline()):
                    process.kill()
            except psutil.Error:
                continue


class Desk(Instance):
    """The instance at which somebody sits, and the machines of its configuration."""

    def __init__(self, root: Path, machines: list[Machine], extra: str = "") -> None:
        root.mkdir()
        super().__init__(root)
        configuration = root / "config" / "config.toml"
        configuration.write_text("".join(machine.table for machine in machines) + extra)
        configuration.chmod(0o600)
        programs = root / "bin"
        programs.mkdir()
        everything = root / "ssh_config"
        everything.write_text("".join(machine.ssh.config.read_text() for machine in machines))
        (programs / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {everything} "$@"\n')
        (programs / "ssh").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        # Whoever runs tests in parallel sets these; the size of a terminal is its own.
        for name in ("COLUMNS", "LINES"):
            self.environment.pop(name, None)

    def start(self, *words: str, **how: Any) -> "subprocess.Popen[str]":
        """Begin a command at the desk."""
        return super().start(*words, env=self.environment, **how)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    """Two machines, each in a network of its own."""
    with ExitStack() as stack:
        found = []
        for name in ("gpu1", "gpu2"):
            server = stack.enter_context(other_machine(tmp_path / f"sshd-{name}", name))
            found.append(Machine(tmp_path / name, *server))
            stack.callback(found[-1].close)
        yield found


@pytest.fixture
def desk(tmp_path: Path, machines: list[Machine]) -> Iterator[Desk]:
    found = Desk(tmp_path / "desk", machines)
    yield found
    found.close()


FAKE_SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
if [ "$2" = away ]; then echo "ssh: connect to host away port 22: No route to host" >&2; exit 255; fi
shift 2
exec sh -c "$*"
"""
"""A program in the place of ssh, all of whose machines are this one, but for `away`."""


@pytest.fixture
def near(tmp_path: Path) -> Iterator[tuple[Machine, Desk]]:
    """A machine that is reached without a network, and a desk that knows another one, too."""
    machine = Machine(tmp_path / "gpu1", SimpleNamespace(name="gpu1", config=tmp_path / "ssh_config"))
    machine.ssh.config.touch()
    desk = Desk(tmp_path / "desk", [machine], "[hosts.away]\n")
    (desk.root / "bin" / "ssh").write_text(FAKE_SSH)
    yield machine, desk
    desk.close()
    machine.close()


@pytest.mark.slow
def test_subcommands_list_and_decide_on_other_machines(near):
    machine, desk = near
    agent = machine.asks("touch made")
    listed = desk.run("list", "--host", "all", "--json")
    assert [(row["host"], row["command"]) for row in json.loads(listed.stdout)] == [("gpu1", "touch made")]
    assert listed.returncode == 3
    assert "machine away cannot be reached, so nothing is known of it. Try: ssh away true" in listed.stderr
    assert "Approved 1" in desk.run("approve", "gpu1:1").stdout
    assert '"exitCode": 0' in agent.communicate(timeout=ANSWER_S)[0]
    for words in (("history", "verify", "--json"), ("export", "--format", "jsonl")):
        answer = desk.run(*words, "--host", "gpu1")
        assert answer.returncode == 0 and json.loads(
            answer.stdout.splitlines()[0] if "jsonl" in words else answer.stdout
        )


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Machine, Machine, Desk]]:
    """Two machines that are reached without a network, and a desk that knows another one, too."""
    found = []
    for name in ("gpu1", "gpu2"):
        found.append(Machine(tmp_path / name, SimpleNamespace(name=name, config=tmp_path / "ssh_config")))
    found[0].ssh.config.touch()
    desk = Desk(tmp_path / "desk", found, "[hosts.away]\n")
    (desk.root / "bin" / "ssh").write_text(FAKE_SSH)
    yield found[0], found[1], desk
    for each in (desk, *found):
        each.close()


def two_hours_ahead(desk: Desk, name: str) -> None:
    """Let the clock of a machine, and no other one, differ from ours."""
    clock = desk.root / "wrong" / "date"
    clock.parent.mkdir()
    clock.write_text("#!/bin/sh\necho $(($(/bin/date +%s) + 7200))\n")
    clock.chmod(0o755)
    ssh = desk.root / "bin" / "ssh"
    ssh.write_text(ssh.read_text().replace("shift 2\n", f'[ "$2" = {name} ] && PATH={clock.parent}:$PATH\nshift 2\n'))


@pytest.mark.slow
def test_the_history_of_all_machines_is_one_list_in_the_order_of_our_time(pair):
    gpu1, gpu2, desk = pair
    for machine, command in ((gpu1, "echo first"), (gpu2, "echo second"), (gpu1, "echo third")):
        agent = machine.asks(command)
        waiting = next(row["id"] for row in machine.rows("list"))
        assert machine.run("approve", waiting).returncode == 0
        agent.communicate(timeout=ANSWER_S)
    listed = desk.run("history", "--host", "all", "--json")
    assert (listed.returncode, "machine away cannot be reached" in listed.stderr) == (3, True)
    told = [(row["host"], row["id"], row["command"]) for row in json.loads(listed.stdout)]
    assert told == [("gpu1", "2", "echo third"), ("gpu2", "1", "echo second"), ("gpu1", "1", "echo first")]
    table = desk.run("history", "--host", "all", "--limit", "2").stdout.splitlines()
    assert [line.split()[0] for line in table] == ["ID", "gpu1:2", "gpu2:1"]
    two_hours_ahead(desk, "gpu2")
    rows = json.loads(desk.run("history", "--host", "all", "--json").stdout)
    assert [row["host"] for row in rows] == ["gpu1", "gpu1", "gpu2"]
    assert 7000 < rows[1]["submitted_at"] - rows[2]["submitted_at"] < 7300


@pytest.mark.slow
def test_calls_of_several_machines_are_exported_into_one_file_at_the_desk(pair):
    gpu1, gpu2, desk = pair
    for machine in (gpu1, gpu2):
        machine.asks("touch made")
    path = desk.workspace / "calls.jsonl"
    answer = desk.run("export", "--format", "jsonl", "-o", path.name, "--host", "all")
    assert (answer.returncode, "machine away cannot be reached" in answer.stderr) == (3, True)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["host"], row["id"]) for row in rows] == [("gpu1", "1"), ("gpu2", "1")]
    assert path.stat().st_mode & 0o777 == 0o600
    named = desk.run("export", "gpu2:1", "gpu1:1", "--format", "jsonl")
    assert [json.loads(line)["host"] for line in named.stdout.splitlines()] == ["gpu1", "gpu2"]
    report = desk.run("export", "--format", "markdown", "--session", "s1", "--host", "all").stdout
    names = [line for line in report.splitlines() if line.startswith("# Machine")]
    assert names == ["# Machine gpu1", "# Machine gpu2"]
    recording = desk.run("export", "gpu1:1", "gpu2:1", "--format", "asciicast")
    assert (recording.returncode, "is of one call" in recording.stderr) == (2, True)


@pytest.mark.slow
def test_rules_of_another_machine_are_changed_there(pair):
    gpu1, gpu2, desk = pair
    added = desk.run("rules", "add", "allow", "touch", "--host", "gpu1", "--sandbox", "off")
    assert f"Added to {gpu1.root / 'config' / 'rules.toml'}: allow touch" in added.stdout, added.stderr
    assert (
        '"exitCode": 0'
        in gpu1.start("call", "run_shell_command", '{"command": "touch made"}').communicate(timeout=ANSWER_S)[0]
    )
    gpu2.asks("touch made")
    rows = json.loads(desk.run("rules", "list", "--json", "--host", "all").stdout)
    assert [(row["machine"], row["name"]) for row in rows if row["name"] == "touch"] == [("gpu1", "touch")]
    assert "Removed 1 rule" in desk.run("rules", "--host", "gpu1", "remove", "touch").stdout
    gpu1.asks("touch made")


@each_row(
    ("given", "sent"),
    [
        ("rules add deny --host a -- curl --host b", "rules add deny -- curl --host b"),
        ("rules --host=a list", "rules list"),
        ("list --hos a", "list"),
    ],
)
def test_the_option_alone_is_left_out_of_what_is_sent(given, sent):
    assert without_host(given.split()) == sent.split()


def test_a_number_without_a_machine_is_sent_to_none(near):
    _, desk = near
    mixed = desk.run("approve", "gpu1:1", "1")
    assert (mixed.returncode, "'1' names no machine" in mixed.stderr) == (2, True)
    away = desk.run("approve", "away:1")
    assert (away.returncode, "machine away cannot be reached" in away.stderr) == (3, True)


@each_row(
    ("words", "ids", "sent"),
    [
        ("show gpu1:7 --json", ["gpu1:7"], {"gpu1": "show 7 --json"}),
        ("approve --yes a:1 b:2 a:3", ["a:1", "b:2", "a:3"], {"a": "approve --yes 1 3", "b": "approve --yes 2"}),
        ("revoke me@a.b:g4", ["me@a.b:g4"], {"me@a.b": "revoke g4"}),
        ("deny a:1 b:2 wrong", ["a:1", "b:2", "wrong"], {"a": "deny 1 wrong", "b": "deny 2 wrong"}),
    ],
)
def test_each_machine_gets_its_own_ids(words, ids, sent):
    options = Namespace(verb=words.split()[0], ids=ids)
    assert is_elsewhere(options)
    assert {host: " ".join(own) for host, own in by_host(options, words.split()).items()} == sent


@each_row("ids", [["7"], ["7", "host:80"], ["a:b"], ["-x:1"], ["a:"]])
def test_other_words_name_no_machine(ids):
    assert not is_elsewhere(Namespace(verb="deny", ids=ids))


@pytest.mark.slow
@needs_sshd
def test_subcommands_decide_over_real_ssh_on_the_machine_that_is_named(machines, desk):
    agents = [machine.asks(f"touch on-{machine.name}") for machine in machines]
    rows = desk.rows("list", "--host", "all")
    assert [(row["host"], row["command"]) for row in rows] == [("gpu1", "touch on-gpu1"), ("gpu2", "touch on-gpu2")]
    assert desk.run("deny", "gpu2:1", "not now").returncode == 0
    assert "not now" in "".join(agents[1].communicate(timeout=ANSWER_S))
    assert "Approved 1" in desk.run("approve", "gpu1:1").stdout
    assert '"exitCode": 0' in agents[0].communicate(timeout=ANSWER_S)[0]
    assert (machines[0].workspace / "on-gpu1").exists()


@pytest.mark.slow
@needs_sshd
def test_one_cockpit_shows_all_machines_and_decides_on_each(machines, desk):
    agents = [machines[0].asks("touch on-gpu1")]
    program = [*PROGRAM, "attach", "gpu1", "gpu2", "--home", str(desk.root)]
    with Terminal(program, desk.environment, desk.workspace) as terminal:
        terminal.shows("● 2 machines".encode())
        terminal.shows(b"Call gpu1:1")
        (address,) = machines[0].rows("status")["desks"]
        assert address in machines[0].run("doctor").stdout
        terminal.types(b"a")
        terminal.shows(b"Call gpu1:1 is approved")
        assert '"exitCode": 0' in agents[0].communicate(timeout=ANSWER_S)[0]
        agents.append(machines[1].asks("touch on-gpu2"))
        terminal.shows(b"touch on-gpu2")
        terminal.types(b"n")
        terminal.shows(b"Call gpu2:1")
        terminal.text = b""
        machines[1].cut()
        terminal.shows("○ 1 of 2 machines".encode())
        terminal.text = b""
        machines[1].ssh.start()
        terminal.shows("● 2 machines".encode())
        # A killed supervisor is replaced by the next connection, and what it had been asked still waits.
        machines[1].kill_supervisor(signal.SIGKILL)
        machines[1].asks("touch afterwards")
        terminal.shows(b"touch afterwards")
        terminal.types(b"a")
        terminal.shows(b"Call gpu2:1 is approved")
        terminal.types(b"q")
        assert terminal.ends() == 0
    assert '"exitCode": 0' in agents[1].communicate(timeout=ANSWER_S)[0]
    machines[0].until(lambda: not machines[0].rows("status")["desks"])
    decided = machines[1].rows("show", "1")
    assert "@" in json.dumps(decided)


@pytest.mark.slow
@needs_sshd
def test_an_agent_is_set_up_by_ssh_and_asks_the_supervisor_of_its_own_machine(tmp_path, agent_process):
    home = tmp_path / "there"
    home.mkdir()
    with other_machine(tmp_path / "sshd", "gpu1", f"HOME={home}") as server:
        machine = Machine(tmp_path / "gpu1", *server)
        (machine.home.config / "rules.toml").unlink()  # it says how much may run unasked, so it would not be asked
        desk = Desk(tmp_path / "desk", [machine])
        there = f"env PYTHONPATH={shlex.quote(SOURCE)} {shlex.join(PROGRAM)} --home {machine.root} install claude"
        with Terminal(["ssh", "-t", "gpu1", there], desk.environment, desk.workspace) as terminal:
            terminal.shows(b"Write this? [y/N]")
            terminal.types(b"y\r")
            terminal.shows(b"1, 2 or 3 [2]:")
            terminal.types(b"\r")
            terminal.shows(b"Wrote ")
            assert terminal.ends() == 0
        hooks = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]["PreToolUse"]
        question = {"session_id": "agent-1", "cwd": str(machine.workspace), "hook_event_name": "PreToolUse"}
        question |= {"tool_name": "Bash", "tool_input": {"command": "touch made"}, "tool_use_id": "toolu_1"}
        how: dict[str, Any] = {"stdout": subprocess.PIPE, "cwd": machine.workspace, "text": True}
        words = (*machine.inside, "env", f"HOME={home}", "/bin/sh", "-c")
        hook = agent_process.starts(*words, hooks[0]["hooks"][0]["command"])
        asking = subprocess.Popen(hook, stdin=subprocess.PIPE, **how)
        asking.stdin.write(json.dumps(question))
        asking.stdin.close()
        asking.stdin = None
        machine.until(lambda: "touch made" in machine.waiting())
        assert desk.run("approve", "gpu1:1").returncode == 0
        answer = json.loads(asking.communicate(timeout=ANSWER_S)[0])
        ticket = answer["hookSpecificOutput"]["updatedInput"]["command"]
        subprocess.run(agent_process.starts(*words, ticket), check=True, timeout=ANSWER_S, **how)
        assert (machine.workspace / "made").exists()
        examined = json.loads(desk.run("doctor", "claude", "--json", "--host", "gpu1").stdout)
        about = machine.rows("status")
        assert (examined["supervisor"]["pid"], examined["supervisor"]["home"]) == (about["pid"], about["home"])
        for each in (desk, machine):
            each.close()


@needs_sshd
def test_a_machine_with_another_host_key_is_unreachable(tmp_path, monkeypatch):
    with loopback_server(tmp_path / "sshd", "gpu1") as ssh:
        address, port = (re.search(rf"{word} (\S+)", ssh.config.read_text())[1] for word in ("HostName", "Port"))
        other = (tmp_path / "sshd" / "user.pub").read_text()
        (tmp_path / "sshd" / "known").write_text(f"[{address}]:{port} {other}")
        desk = Desk(tmp_path / "desk", [])
        (desk.root / "ssh_config").write_text(ssh.config.read_text())
        monkeypatch.setenv("PATH", desk.environment["PATH"])
        host = SshHost("gpu1", "gpu1", "")
        host.connect()
        assert str(host.explain(Unavailable("lost"))) == "Host key verification failed"
        answer = desk.run("bring", "gpu1", "--yes")
        assert "nothing was installed: Host key verification failed" in answer.stderr
        host.close()


@pytest.mark.slow
@needs_sshd
def test_a_machine_without_whisper_tui_says_what_to_do(tmp_path):
    with loopback_server(tmp_path / "sshd", "bare") as ssh:
        machine = Machine(tmp_path / "bare", ssh)
        desk = Desk(tmp_path / "desk", [])
        (desk.root / "ssh_config").write_text(ssh.config.read_text())
        program = [*PROGRAM, "attach", "bare", "--home", str(desk.root)]
        with Terminal(program, desk.environment, desk.workspace) as terminal:
            terminal.shows(b"whisper-tui bring bare")
            terminal.types(b"q")
            terminal.ends()
        machine.close()
