"""What a previewed command cannot do: reach anything outside of its view, before anybody has approved it."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.changes.trees import as_nobody, described, public_directory
from tests.outside import EXHAUSTIVE, needs_overlays
from tests.supervisor.preview.escape_attempts import GROUPS, REACHED
from whisper_tui.supervisor.keeper.limited_start import PreviewedCommand
from whisper_tui.supervisor.preview.overlay_mounts import NoPreview
from whisper_tui.supervisor.preview.preview_process import PreviewStart, start
from whisper_tui.system import syscalls

pytestmark = needs_overlays

TIMEOUT, LONGEST_S = "/usr/bin/timeout", "20"
MARK = "PREVIEW_ESCAPE_TEST"
ABSTRACT = f"whisper-escape-{os.getpid()}"
CREATE, REMOVE = 0o1000, 0
"""Flags of shmget(2) and shmctl(2)."""

ATTEMPTS = [attempt for group in GROUPS.values() for attempt in group]
SETTINGS = [
    f"/proc/sys/{name}"
    for name in ("kernel/core_pattern", "kernel/panic", "kernel/randomize_va_space", "net/ipv4/ip_forward")
]
INTERFACE, ADDRESS = "escape0", "10.9.8.7"
"""A network interface that attempts make, and an address that they give to the loopback."""
PLANTED = [f"{place}/whisper-tui-escape" for place in ("/etc", "/usr", "/dev/shm", "/run", "/var/lib")]


class Outside:
    """What a previewed command must not touch: files, a process, and services on sockets."""

    def __init__(self, directory: Path) -> None:
        self.files = directory / "outside"
        self.files.mkdir()
        (self.files / "file").write_text("kept\n")
        (self.files / "directory").mkdir()
        os.mkfifo(self.files / "fifo")
        self._victim = subprocess.Popen(
            ["/bin/sleep", "600"], env={"TOKEN": "hidden"}, cwd=self.files, start_new_session=True
        )
        self.victim = self._victim.pid
        self._sockets = [_tcp(), _unix(str(self.files / "socket")), _unix(f"\0{ABSTRACT}")]
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind(("127.0.0.1", self.port))
        self._datagrams.setblocking(False)
        self._fifo = os.open(self.files / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        self._memory = syscalls.call("shmget", os.getpid(), 4096, CREATE | 0o666)
        self._before = self._seen()

    @property
    def port(self) -> int:
        return int(self._sockets[0].getsockname()[1])

    def _seen(self) -> dict[str, object]:
        found = Path(f"/proc/{self.victim}")
        limits, score = (found / "limits").read_text(), (found / "oom_score_adj").read_text()
        scheduling = (os.getpriority(os.PRIO_PROCESS, self.victim), os.sched_getaffinity(self.victim))
        # Other interfaces and routes come and go: those of other tests' machines, and of containers.
        return {
            "files": described(self.files),
            "limits": limits,
            "score": score,
            "scheduling": scheduling,
            "host name": socket.gethostname(),
            "interface": os.path.lexists(f"/sys/class/net/{INTERFACE}"),
            "loopback": (Path("/sys/class/net/lo/flags").read_text(), _is_own(ADDRESS), _is_own("127.0.0.1")),
            "keys": "whisper-escape" in Path("/proc/keys").read_text(),
            "swaps": Path("/proc/swaps").read_text(),
            **{setting: Path(setting).read_text() for setting in SETTINGS},
        }

    def touched(self) -> list[str]:
        """What was changed or reached."""
        found = []
        if self._victim.poll() is not None or "T (" in Path(f"/proc/{self.victim}/status").read_text():
            found.append("the process was ended or stopped")
        else:
            seen = self._seen()
            found += [
                f"{name} was {old}, and is {seen[name]}" for name, old in self._before.items() if old != seen[name]
            ]
        found += [path for path in PLANTED if os.path.lexists(path)]
        found += ["a connection arrived" for each in self._sockets if _arrived(each)]
        with suppress(BlockingIOError):
            self._datagrams.recv(10)
            found.append("a datagram arrived")
        with suppress(BlockingIOError):
            if os.read(self._fifo, 10):
                found.append("the FIFO got bytes")
        return found

    def close(self) -> None:
        for each in (*self._sockets, self._datagrams):
            each.close()
        os.close(self._fifo)
        syscalls.call("shmctl", self._memory, REMOVE, None)
        with suppress(ProcessLookupError):
            os.killpg(self.victim, signal.SIGKILL)
        self._victim.wait()


def _tcp() -> socket.socket:
    made = socket.create_server(("127.0.0.1", 0))
    made.setblocking(False)
    return made


def _unix(name: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(name)
    made.listen()
    made.setblocking(False)
    return made


def _is_own(address: str) -> bool:
    """True if an interface has this address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _arrived(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@contextmanager
def outside(directory: Path) -> Iterator[Outside]:
    made = Outside(directory)
    try:
        yield made
    finally:
        made.close()


def left_over(mark: str) -> list[int]:
    """The processes with this mark in their environment."""
    found = []
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdecimal() and mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
    return found


def is_inherited(fd: int) -> bool:
    """True if the process of the tests has got this descriptor from whoever has started it."""
    with suppress(OSError):
        return os.get_inheritable(fd)
    return False


def tried(world: Outside, directory: Path, attempt: str, number: int) -> None:
    """Preview one attempt, and check that nothing outside has noticed."""
    mark = f"{MARK}={os.getpid()}-{number}"
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "OUT": str(world.files),
        "VICTIM": str(world.victim),
        "PORT": str(world.port),
        "ABSTRACT": ABSTRACT,
        "SHARED_KEY": str(os.getpid()),
        "INHERITED": " ".join(str(fd) for fd in range(300) if is_inherited(fd)),
        "STORE": str(directory / f"s{number}"),
        "KEEPER": str(os.getpid()),
        "MARK_OF_VICTIM": "sleep 600",
        MARK: mark.partition("=")[2],
    }
    workspace = directory / f"w{number}"
    workspace.mkdir()
    options = {"roots": (str(workspace),), "hide": (), "network": False, "max_bytes": 1 << 30}
    null = os.open(os.devnull, os.O_RDWR)
    files = [(os.POSIX_SPAWN_DUP2, null, stream) for stream in range(3)]

    argv = ["timeout", "-s", "KILL", LONGEST_S, "bash", "-c", attempt]
    command = PreviewedCommand(TIMEOUT, argv, environment, files)
    pid = start(PreviewStart(str(directory / f"s{number}"), options, str(workspace), None, command))
    os.close(null)
    os.waitpid(pid, 0)
    report = json.loads((directory / f"s{number}" / "report.json").read_bytes())
    assert report["code"] != REACHED, attempt
    assert world.touched() == [], attempt
    assert left_over(mark) == [], attempt


def all_tried(directory: Path, attempts: list[str]) -> None:
    for number, attempt in enumerate(attempts):
        with outside(directory) as world:
            tried(world, directory, attempt, number)
        subprocess.run(["/bin/rm", "-rf", str(directory / "outside")], check=True)


def test_there_are_enough_attempts() -> None:
    assert len(set(ATTEMPTS)) == len(ATTEMPTS) >= 200


def test_no_socket_that_namespaces_do_not_confine_can_be_made() -> None:
    """Those to a hypervisor reach it from any namespace."""
    with public_directory() as directory:
        try:
            all_tried(directory, [attempt for attempt in GROUPS["services"] if "exit 99 if socket(S,40" in attempt])
        except NoPreview as problem:
            pytest.skip(str(problem))


# As root, one quarter of the attempts is made by root and another by an ordinary user; `make exhaustive` makes all.
@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_nothing_that_a_command_tries_in_a_preview_has_an_effect_outside(group: str) -> None:
    with public_directory() as directory:
        try:
            all_tried(directory, GROUPS[group] if EXHAUSTIVE or os.getuid() != 0 else GROUPS[group][::4])
        except NoPreview as problem:
            pytest.skip(str(problem))


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("group", GROUPS)
def test_nothing_that_an_ordinary_users_command_tries_has_an_effect_outside(group: str) -> None:
    with public_directory() as directory:
        directory.chmod(0o777)
        with as_nobody() as status:
            if status.child:
                all_tried(directory, GROUPS[group] if EXHAUSTIVE else GROUPS[group][1::4])
        assert status.code == 0
