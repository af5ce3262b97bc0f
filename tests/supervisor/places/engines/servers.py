"""Engines of the tests' own: docker, podman, Slurm, the user's systemd and Ray, for real, in a directory of their own.

Each is started if its programs are installed, and asked for nothing but the loopback.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

PATIENCE_S = 180.0
SYSTEMD = Path("/lib/systemd/systemd")
PYTHON = "/usr/bin/python3"
"""The interpreter that containers see, which have /usr of this machine."""


@dataclass
class EngineServer:
    """An engine that runs, and the settings of a place in it."""

    options: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    """Those by which the commands of the engine find it."""
    python: str = sys.executable
    directory: Path = Path()
    """A directory of its own for files, of the same name in the place."""


def needs(*programs: str) -> None:
    """Skip the test if a program is not installed, or this is not root."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if missing := [name for name in programs if shutil.which(name, path=path) is None]:
        pytest.skip(f"{', '.join(missing)} not installed here; CONTRIBUTING.md says how")
    if os.geteuid() != 0:
        pytest.skip("only root can start this engine here")


def until(holds: Callable[[], bool], about: Path | None = None) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(about.read_text(errors="replace")[-3000:] if about and about.exists() else "too late")
        time.sleep(0.05)


@contextmanager
def running(
    words: list[str], log: Path, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in a session of its own, and end it by its process id afterwards."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    with log.open("ab") as out:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            env={**os.environ, **(variables or {}), "PATH": path},
        )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


def succeeds(words: list[str], variables: Mapping[str, str]) -> bool:
    return subprocess.run(words, env={**os.environ, **variables}, capture_output=True, check=False).returncode == 0


def run(words: list[str], variables: Mapping[str, str]) -> str:
    done = subprocess.run(words, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _empty_image(directory: Path) -> Path:
    """An image with nothing but directories: containers see /usr of this machine."""
    root = directory / "root"
    for name in ("usr", "tmp", "proc", "dev", "sys", "root", "etc", "var", "run"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        if Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    with tarfile.open(directory / "image.tar", "w") as image:
        image.add(root, ".")
    return directory / "image.tar"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Containers:
    """docker or podman, and one container that is the place."""

    def __init__(self, program: str, variables: Mapping[str, str], flags: tuple[str, ...], directory: Path) -> None:
        self.program, self.variables, self.flags = program, variables, flags
        self.files = directory / "files"
        self.files.mkdir()
        run([program, "import", str(_empty_image(directory)), "whisper-test:1"], variables)

    def start(self) -> None:
        """Make the container anew. It sees /usr, and the directory of the test's files."""
        # The first process has to end zombies, which keepers leave to it.
        waits = ["sh", "-c", "while sleep 1; do :; done"]
        mounts = ["-v", "/usr:/usr:ro", "-v", f"{self.files}:{self.files}"]
        words = [self.program, "run", "-d", "--name", "place", "--network", "none", *self.flags, *mounts]
        run([*words, "whisper-test:1", *waits], self.variables)

    def remove(self) -> None:
        """Remove the container and all that runs in it."""
        run([self.program, "rm", "-f", "place"], self.variables)

    def server(self) -> EngineServer:
        return EngineServer({"container": "place"}, self.variables, PYTHON, self.files)


@contextmanager
def docker(directory: Path) -> Iterator[Containers]:
    """A daemon of docker, with its files in a directory."""
    needs("dockerd", "docker", "containerd")
    socket = f"unix://{directory}/docker.sock"
    words = ["dockerd", "--data-root", f"{directory}/data", "--exec-root", f"{directory}/exec", "-H", socket]
    words += ["-p", f"{directory}/pid", "--storage-driver", "vfs", "--iptables=false", "--bridge=none"]
    variables = {"DOCKER_HOST": socket}
    with running(words, directory / "log"):
        until(lambda: succeeds(["docker", "version"], variables), directory / "log")
        yield from _with_container(Containers("docker", variables, (), directory))


@contextmanager
def podman(directory: Path) -> Iterator[Containers]:
    """podman, which has no daemon, with its storage in a directory."""
    needs("podman", "runc")
    (directory / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{directory}/storage"\nrunroot = "{directory}/run"\n'
    )
    (directory / "containers.conf").write_text('[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\n')
    variables = {
        "CONTAINERS_STORAGE_CONF": f"{directory}/storage.conf",
        "CONTAINERS_CONF": f"{directory}/containers.conf",
    }
    flags = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
    yield from _with_container(Containers("podman", variables, flags, directory))


def _with_container(containers: Containers) -> Iterator[Containers]:
    containers.start()
    try:
        yield containers
    finally:
        containers.remove()


@contextmanager
def systemd(directory: Path) -> Iterator[EngineServer]:
    """The user's instance of systemd."""
    needs("systemd-run", "unshare")
    runtime = directory / "runtime"
    runtime.mkdir(mode=0o700)
    variables = {"XDG_RUNTIME_DIR": str(runtime)}
    # It only starts where systemd is the first process, which it sees by this directory.
    script = (
        "mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && "
        f"exec {SYSTEMD} --user --log-target=console"
    )
    with running(["unshare", "--mount", "sh", "-c", script], directory / "log", variables):
        until(lambda: succeeds(["systemctl", "--user", "list-units"], variables), directory / "log")
        yield EngineServer({}, variables, directory=directory)


@contextmanager
def slurm(directory: Path) -> Iterator[EngineServer]:
    """A cluster of one node on the loopback, with munge."""
    needs("slurmctld", "slurmd", "munged", "srun")
    (directory / "munge.key").write_bytes(os.urandom(1024))
    (directory / "munge.key").chmod(0o600)
    controller, node = _free_port(), _free_port()
    (directory / "slurm.conf").write_text(
        "ClusterName=test\nSlurmctldHost=localhost(127.0.0.1)\nAuthType=auth/munge\nCryptoType=crypto/munge\n"
        f"SlurmctldPort={controller}\nSlurmdPort={node}\nAuthInfo=socket={directory}/munge.sock\n"
        f"StateSaveLocation={directory}/state\nSlurmdSpoolDir={directory}/spool\n"
        f"SlurmctldPidFile={directory}/ctld.pid\nSlurmdPidFile={directory}/slurmd.pid\n"
        f"SlurmctldLogFile={directory}/log\nSlurmdLogFile={directory}/node.log\n"
        "MpiDefault=none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nReturnToService=2\n"
        "SlurmUser=root\nSlurmdUser=root\nSwitchType=switch/none\nSchedulerType=sched/builtin\nSchedulerParameters=sched_interval=1\n"
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nJobAcctGatherType=jobacct_gather/none\n"
        "AccountingStorageType=accounting_storage/none\nKillWait=1\n"
        "NodeName=n1 NodeAddr=127.0.0.1 NodeHostname=localhost CPUs=2 State=UNKNOWN\n"
        "PartitionName=all Nodes=n1 Default=YES MaxTime=INFINITE State=UP\n"
    )
    for name in ("state", "spool"):
        (directory / name).mkdir()
    variables = {"SLURM_CONF": f"{directory}/slurm.conf"}
    munge = ["munged", "--foreground", "--force", f"--key-file={directory}/munge.key"]
    munge += [f"--socket={directory}/munge.sock", f"--pid-file={directory}/munge.pid"]
    munge += [f"--seed-file={directory}/munge.seed", f"--log-file={directory}/munge.log"]
    with ExitStack() as servers:
        servers.enter_context(running(munge, directory / "munge.log"))
        until((directory / "munge.sock").exists, directory / "munge.log")
        servers.enter_context(running(["slurmctld", "-D"], directory / "log", variables))
        servers.enter_context(running(["slurmd", "-D", "-N", "n1"], directory / "node.log", variables))
        idle = ["sh", "-c", "sinfo --noheader --format=%t | grep -q idle"]
        until(lambda: succeeds(idle, variables), directory / "log")
        try:
            yield EngineServer({}, variables, directory=directory)
        finally:
            succeeds(["scancel", "--full", "--user=root", "--signal=KILL"], variables)
            succeeds(["scancel", "--user=root"], variables)
            until(lambda: run(["squeue", "--noheader"], variables) == "", directory / "log")


class RayCluster:
    """A head and one node that has the resource `gpu`, as processes of this machine."""

    def __init__(self, process: "subprocess.Popen[bytes]", directory: Path) -> None:
        self._process, self._directory = process, directory
        self.address = self._said()

    def tell(self, order: str) -> str:
        """Give an order to the process that holds the cluster, and return what it says."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n".encode())
        self._process.stdin.flush()
        return self._said()

    def _said(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().strip()
        assert line, (self._directory / "log").read_text()[-3000:]
        return line

    def server(self) -> EngineServer:
        options = {"address": self.address, "cpus": "0.5", "resources": "gpu=1"}
        return EngineServer(options, {}, directory=self._directory)


_HOLDS_CLUSTER = """
import os, sys
said = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)
from ray.cluster_utils import Cluster
small = {"object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **small})
add = lambda: cluster.add_node(num_cpus=8, resources={"gpu": 8}, **small)
node = add()
print(cluster.address, file=said, flush=True)
for order in sys.stdin:
    if order.strip() == "kill node":
        cluster.remove_node(node, allow_graceful=False)
    else:
        node = add()
    print("done", file=said, flush=True)
cluster.shutdown()
"""


@contextmanager
def ray(directory: Path) -> Iterator[RayCluster]:
    """A cluster of Ray with two nodes."""
    if find_spec("ray") is None:
        pytest.skip("ray is not installed here: make test-engines installs it")
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLDS_CLUSTER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield RayCluster(process, directory)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
