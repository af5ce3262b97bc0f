"""The command lines of engines, and the loop that keeps a host process, without an engine."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.rows import each_row
from tests.supervisor.engine.conftest import until
from whisper_tui.model.errors import BadConfiguration, Unavailable
from whisper_tui.supervisor.places import far_host, ray_bridge
from whisper_tui.supervisor.places.cluster_transports import (
    KubernetesTransport,
    RayTransport,
    SlurmTransport,
    resources,
)
from whisper_tui.supervisor.places.far_host import LOCKED, SOCKET
from whisper_tui.supervisor.places.place_settings import Engine, PlaceSettings
from whisper_tui.supervisor.places.place_transports import (
    ContainerTransport,
    PlaceTransport,
    SystemdTransport,
    engine_name,
    kept,
)


def settings(by: Engine, **options: str) -> PlaceSettings:
    return PlaceSettings("gpu1", by, options)


def test_a_container_is_entered_as_its_settings_say():
    docker = ContainerTransport(settings("docker", container="work", user="me", context="far"))
    assert docker.command(["a", "b c"]) == [
        *("docker", "--context", "far", "exec", "-i", "--user", "me", "work"),
        *("a", "b c"),
    ]
    podman = ContainerTransport(settings("podman", container="work", connection="far"))
    assert podman.command(["a"]) == ["podman", "--connection", "far", "exec", "-i", "work", "a"]


def test_a_pod_is_entered_in_its_namespace_and_context():
    pod = KubernetesTransport(settings("kubernetes", image="i", pod="p", namespace="n", context="c"), "near")
    expected = ["kubectl", "--context=c", "--namespace=n", "exec", "-i", "p", "--container=place", "--", "a"]
    assert pod.command(["a"]) == expected


def test_systemd_and_slurm_are_reached_over_ssh_if_they_have_a_host():
    assert SystemdTransport(settings("systemd"), "near").command(["a", "b c"]) == ["a", "b c"]
    assert SystemdTransport(settings("systemd", host="far"), "near").command(["a", "b c"])[-3:] == [
        "--",
        "far",
        "a 'b c'",
    ]
    assert SlurmTransport(settings("slurm", host="login"), "near").command(["a"])[-2] == "login"


def test_near_ends_and_places_have_names_of_their_own_in_an_engine():
    names = {engine_name(place, near) for place in ("gpu1", "gpu.1", "gpu-1", "GPU-1", "x" * 64) for near in ("a", "b")}
    assert len(names) == 10
    assert all(len(name) <= 63 and name.replace("-", "").isalnum() and name.islower() for name in names)
    assert engine_name("gpu1", "a") == engine_name("gpu1", "a")


@each_row(
    ("said", "expected"),
    [
        ({}, {"num_cpus": 1.0, "num_gpus": 0.0}),
        ({"cpus": "0.5", "gpus": "2"}, {"num_cpus": 0.5, "num_gpus": 2.0}),
        ({"memory": "8G"}, {"num_cpus": 1.0, "num_gpus": 0.0, "memory": 8 << 30}),
        ({"memory": "100"}, {"num_cpus": 1.0, "num_gpus": 0.0, "memory": 100}),
        ({"resources": "a=2, b"}, {"num_cpus": 1.0, "num_gpus": 0.0, "resources": {"a": 2.0, "b": 1.0}}),
    ],
)
def test_resources_are_told_to_ray_in_its_words(said: dict[str, str], expected: dict[str, object]):
    assert resources(settings("ray", **said)) == expected


@each_row(
    "said",
    [{"cpus": "many"}, {"gpus": "-1"}, {"memory": "G"}, {"memory": "1.5G"}, {"resources": "a=b"}, {"cpus": "nan"}],
)
def test_resources_that_cannot_be_read_are_an_error(said: dict[str, str]):
    with pytest.raises(BadConfiguration):
        RayTransport(settings("ray", **said), "near")


@pytest.mark.parametrize(
    ("transport", "advice"),
    [
        (ContainerTransport(settings("docker", container="c")), "Install docker"),
        (KubernetesTransport(settings("kubernetes", image="i"), "near"), "Install kubectl on this machine"),
        (SystemdTransport(settings("systemd"), "near"), 'Use by = "ssh" for a machine without systemd-run'),
        (SlurmTransport(settings("slurm"), "near"), "Install Slurm's client commands, or name a login node"),
    ],
)
async def test_an_engine_that_is_not_installed_is_named_with_what_to_do(
    transport: PlaceTransport, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for program in ("sh", "id", "date"):
        (tmp_path / program).symlink_to(f"/bin/{program}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable) as raised:
        await transport.hold(["true"])
    assert advice in raised.value.hint


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
async def test_without_ray_the_extra_is_named():
    transport = RayTransport(settings("ray"), "near")
    with pytest.raises(Unavailable, match="not installed") as raised:
        await transport.hold(["true"])
    assert "pip install '.[ray]'" in raised.value.hint
    bridge = subprocess.run(transport.command(["true"]), capture_output=True, text=True, check=False)
    assert (bridge.returncode, bridge.stdout) == (ray_bridge.NO_RAY, "")
    assert "[ray]" in bridge.stderr


def runs_of(tmp_path: Path, *codes: int) -> int:
    """Keep a process that ends with these exit codes, one after the other, and return how often it ran."""
    counter = tmp_path / "runs"
    program = "import sys; f = open(sys.argv[1], 'a+'); f.seek(0); n = len(f.read()); f.write('x'); f.close()\n"
    program += "sys.exit(int(sys.argv[2 + n]))"
    words = [sys.executable, "-c", program, str(counter), *map(str, codes)]
    subprocess.run(kept(words), check=True, timeout=60)
    return len(counter.read_text())


def test_a_host_process_that_fails_is_started_again_until_it_has_nothing_to_do(tmp_path: Path):
    assert runs_of(tmp_path, 1, 0) == 2


def test_what_lives_on_by_itself_needs_no_second_host_process(tmp_path: Path):
    assert runs_of(tmp_path, LOCKED, 0) == 1


STAYS = (
    "import sys; from whisper_tui.supervisor.places import far_host; far_host.IDLE_S = float(sys.argv[3]);"
    "far_host.serve(sys.argv[1], sys.argv[2], stays=True)"
)


@contextmanager
def staying(directory: Path, idle_s: float) -> Iterator["subprocess.Popen[bytes]"]:
    """A host process that stays, and ends after so many seconds in which nobody needs it."""
    package = Path(far_host.__file__).parents[3]
    process = subprocess.Popen([sys.executable, "-c", STAYS, str(directory), str(package), str(idle_s)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def answers(directory: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        return asked.connect_ex(str(directory / SOCKET)) == 0


async def test_a_host_process_that_stays_follows_one_that_was_killed(tmp_path: Path):
    with staying(tmp_path, 600) as first:
        await until(lambda: answers(tmp_path))
        with staying(tmp_path, 600) as second:
            first.kill()
            first.wait()
            await until(lambda: answers(tmp_path))
            assert second.poll() is None


async def test_a_host_process_that_stays_ends_with_one_that_nobody_needs(tmp_path: Path):
    with staying(tmp_path, 3) as first:
        await until(lambda: answers(tmp_path))
        with staying(tmp_path, 600) as second:
            assert await asyncio.to_thread(first.wait, 60) == 0
            assert await asyncio.to_thread(second.wait, 60) == 0
            assert not answers(tmp_path)


def test_an_actor_that_no_node_can_ever_have_is_told_from_one_that_waits() -> None:
    wanted = ray_bridge.needs({"num_cpus": 2.0, "num_gpus": 0.0, "memory": 100, "resources": {"a100": 1.0}})
    assert wanted == {"CPU": 2.0, "memory": 100, "a100": 1.0}
    node = {"CPU": 2.0, "memory": 100.0, "a100": 1.0, "node:10.0.0.1": 1.0}
    assert ray_bridge.has_all(node, wanted)
    for missing in wanted:
        assert not ray_bridge.has_all({**node, missing: 0.5}, wanted)
