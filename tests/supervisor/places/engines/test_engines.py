"""A place in each engine: a command there is followed through all that the engine does to it."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.supervisor.engine.conftest import until
from tests.supervisor.places.conftest import processes_with
from tests.supervisor.places.engines.conftest import ENGINES, EnginePlace, end
from tests.supervisor.places.engines.fake_kubernetes import FakeKubernetes, Pod
from tests.supervisor.places.engines.ray_faults import actors
from tests.supervisor.places.engines.servers import PATIENCE_S, Containers, EngineServer, RayCluster, run, succeeds
from whisper_tui.model.ending import Exited, Lost, Signalled
from whisper_tui.supervisor.runs.executor import NeverRan, RunKey

pytestmark = pytest.mark.slow
each_engine = pytest.mark.parametrize("server", ENGINES, indirect=True)
WAITS = "echo began; until test -e go; do sleep 0.02; done; echo went; exit 5"


async def began(place: EnginePlace) -> RunKey:
    """Start a command that goes on once there is a file, and wait until it runs."""
    key = await place.start(f"echo x >> starts; {WAITS}", environment={})
    await until(lambda: place.out(key) == b"began\n")
    return key


async def goes_on(place: EnginePlace, key: RunKey) -> None:
    """Let it end, and see that it was started once and that nothing was lost."""
    (place.workspace / "go").touch()
    await place.settled(key)
    assert await place.ended(key) == Exited(code=5)
    assert place.out(key) == b"began\nwent\n"
    assert (place.workspace / "starts").read_text() == "x\n"


@each_engine
async def test_output_exit_code_input_and_signals_are_those_of_the_command(place: EnginePlace):
    data = os.urandom(300_000)
    copies = await place.start("cat; cat /dev/null >&2; echo end >&2; exit 7", environment={}, accepts_input=True)
    await place.executor.write_stdin(copies, data, eof=True)
    await place.settled(copies)
    assert place.out(copies) == data
    assert place.err(copies) == b"end\n"
    assert await place.ended(copies) == Exited(code=7)
    sleeps = await place.start("exec sleep 600", environment={})
    await place.spawned(sleeps)
    await place.executor.signal(sleeps, signal.SIGINT, "leader")
    await place.settled(sleeps)
    assert await place.ended(sleeps) == Signalled(number=signal.SIGINT, by_us=True)


@each_engine
async def test_a_command_outlives_the_host_process_and_is_followed_on(place: EnginePlace):
    key = await began(place)
    (killed,) = place.host_pids()
    os.kill(killed, signal.SIGKILL)
    await until(lambda: place.executor.problem is not None)
    await place.reached()
    await goes_on(place, key)


@each_engine
async def test_a_command_outlives_the_supervisor_and_is_followed_on(place: EnginePlace):
    key = await began(place)
    await place.close()
    (place.workspace / "go").touch()
    place.told = []
    await place.open()
    await place.executor.attach(key)
    await goes_on(place, key)


@each_engine
async def test_an_attempt_that_was_never_ordered_is_revoked(place: EnginePlace):
    key = RunKey("77", 1)
    await place.executor.attach(key)
    await place.settled(key)
    assert place.of(key) == [NeverRan(key)]


@each_engine
async def test_two_near_ends_have_a_host_process_each(place: EnginePlace, server: EngineServer):
    other = EnginePlace(place.settings.by, server)
    other.there = place.there
    other.settings = place.settings
    await other.open()
    try:
        keys = await asyncio.gather(place.run("echo one", environment={}), other.run("echo two", environment={}))
        assert [place.out(keys[0]), other.out(keys[1])] == [b"one\n", b"two\n"]
        assert len(place.host_pids()) == 2
    finally:
        await end(other)


async def lost(place: EnginePlace, take_away: Callable[[], object]) -> None:
    """Take the place away while a command runs there, and see that it is reported lost and not started again."""
    key = await began(place)
    await asyncio.to_thread(take_away)
    await place.settled(key)
    ending = await place.ended(key)
    # Slurm asks before it kills, and the keeper may still have written that down.
    assert isinstance(ending, Lost) or ending == Signalled(number=signal.SIGTERM, by_us=False), ending
    assert (place.workspace / "starts").read_text() == "x\n"
    again = await place.run("echo there again", environment={})
    assert place.out(again) == b"there again\n"


@pytest.mark.parametrize("server", ["docker", "podman"], indirect=True)
async def test_a_container_that_is_made_anew_has_lost_its_commands(place: EnginePlace, request: pytest.FixtureRequest):
    containers: Containers = request.getfixturevalue(f"{place.settings.by}_server")

    def take_away() -> None:
        containers.remove()
        subprocess.run(["rm", "-r", str(place.there)], check=True)
        containers.start()

    await lost(place, take_away)


@pytest.mark.parametrize("server", ["docker", "podman"], indirect=True)
async def test_a_container_that_is_restarted_has_lost_its_commands(place: EnginePlace):
    restart = [place.settings.by, "restart", "--time", "0", "place"]
    await lost(place, lambda: run(restart, place.server.variables))


@pytest.mark.parametrize("server", ["docker", "podman"], indirect=True)
async def test_a_container_that_is_stopped_is_unreachable_with_the_engines_reason(place: EnginePlace):
    run([place.settings.by, "stop", "--time", "0", "place"], place.server.variables)
    try:
        await until(lambda: "running" in (place.executor.problem or ""))
    finally:
        run([place.settings.by, "start", "place"], place.server.variables)


@pytest.mark.parametrize("server", ["slurm"], indirect=True)
async def test_a_cancelled_job_has_lost_its_commands(place: EnginePlace):
    await lost(place, lambda: run(["scancel", "--user=root"], place.server.variables))


@pytest.mark.parametrize("server", ["slurm"], indirect=True)
async def test_a_job_that_waits_is_unreachable_with_slurms_reason(server: EngineServer):
    run(["scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=repair"], server.variables)
    place = EnginePlace("slurm", server)
    try:
        opening = asyncio.create_task(place.open())
        await until(lambda: "is pending (" in (place.problem or ""))
        run(["scontrol", "update", "NodeName=n1", "State=RESUME"], server.variables)
        running = ["sh", "-c", "squeue --noheader --states=RUNNING --format=%j | grep -q whisper-tui-gpu1"]
        await until(lambda: succeeds(running, server.variables))
        place.executor.connection.try_now()
        await opening
    finally:
        succeeds(["scontrol", "update", "NodeName=n1", "State=RESUME"], server.variables)
        await end(place)


@pytest.mark.parametrize("server", ["slurm"], indirect=True)
async def test_a_job_that_waits_for_nobody_is_cancelled(server: EngineServer):
    run(["scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=repair"], server.variables)
    place = EnginePlace("slurm", server)
    waiting = ["squeue", "--noheader", "--states=PENDING", "--format=%j"]
    opening = asyncio.create_task(place.open())
    try:
        await until(lambda: "whisper-tui-gpu1" in run(waiting, server.variables))
        await until(lambda: "is pending (" in (place.problem or ""))
        await place.executor.let_go()
        await until(lambda: "whisper-tui-gpu1" not in run(waiting, server.variables))
        assert place.problem is None
    finally:
        opening.cancel()
        run(["scontrol", "update", "NodeName=n1", "State=RESUME"], server.variables)
        await end(place)


@pytest.mark.parametrize("server", ["ray"], indirect=True)
async def test_an_actor_that_waits_for_nobody_is_ended(server: EngineServer):
    place = EnginePlace("ray", EngineServer({**server.options, "cpus": "64"}, {}, directory=server.directory))
    opening = asyncio.create_task(place.open())
    try:
        await until(lambda: "is large enough for the actor" in (place.problem or ""))
        await place.executor.let_go()
        found = f"import ray; ray.init('{server.options['address']}', namespace='whisper-tui', log_to_driver=False);"
        found += "print('named', ray.util.list_named_actors())"
        _, _, actor, *_ = place.executor.connection.summary.split()
        await until(lambda: actor not in run([server.python, "-c", found], {}))
    finally:
        opening.cancel()
        await end(place)


@pytest.mark.parametrize("server", ["slurm"], indirect=True)
async def test_the_environment_of_the_supervisor_stays_here(server: EngineServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("A_SECRET", "of this machine")
    place = EnginePlace("slurm", server)
    await place.open()
    try:
        key = await place.run("env; tr '\\0' '\\n' </proc/$PPID/environ", environment={})
        assert b"SLURM_JOB_ID=" in place.out(key)
        assert b"A_SECRET" not in place.out(key)
    finally:
        await end(place)


@pytest.mark.parametrize("server", ["kubernetes"], indirect=True)
async def test_a_deleted_pod_has_lost_its_commands(place: EnginePlace, kubernetes_server: FakeKubernetes):
    *_, name = kubernetes_server.pods
    created = kubernetes_server.created

    def take_away() -> None:
        run(["kubectl", "delete", "pod", name], place.server.variables)
        subprocess.run(["rm", "-r", str(place.there)], check=True)

    await lost(place, take_away)
    assert kubernetes_server.created == created + 1


@pytest.mark.parametrize("server", ["kubernetes"], indirect=True)
async def test_a_pod_that_has_ended_is_made_anew(place: EnginePlace, kubernetes_server: FakeKubernetes):
    *_, pod = kubernetes_server.pods.values()

    def take_away() -> None:
        assert pod.first is not None
        os.kill(pod.first.pid, signal.SIGKILL)

    await lost(place, take_away)


@pytest.mark.parametrize("server", ["kubernetes"], indirect=True)
async def test_a_pod_that_waits_is_unreachable_with_the_clusters_reason(
    server: EngineServer, kubernetes_server: FakeKubernetes
):
    kubernetes_server.next_waits_for = "ImagePullBackOff"
    place = EnginePlace("kubernetes", server)
    opening = asyncio.create_task(place.open())
    try:
        await until(lambda: "ImagePullBackOff: back-off pulling image" in (place.problem or ""))
    finally:
        kubernetes_server.next_waits_for = ""
        opening.cancel()
        await place.close()


@pytest.mark.parametrize("server", ["kubernetes"], indirect=True)
async def test_a_pod_of_somebody_else_is_left_alone(server: EngineServer, kubernetes_server: FakeKubernetes):
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "other", "labels": {}},
        "spec": {"containers": [{"name": "app"}]},
    }
    kubernetes_server.pods["other"] = Pod(manifest, server.directory / "other")
    place = EnginePlace("kubernetes", EngineServer({**server.options, "pod": "other"}, directory=server.directory))
    opening = asyncio.create_task(place.open())
    try:
        await until(lambda: "the Pod other was not made for places" in (place.problem or ""))
        assert list(kubernetes_server.pods)[-1] == "other"
    finally:
        opening.cancel()
        await place.close()
        del kubernetes_server.pods["other"]


@pytest.mark.parametrize("server", ["systemd"], indirect=True)
async def test_a_unit_that_is_stopped_leaves_its_commands_alone(place: EnginePlace):
    key = await began(place)
    run(["systemctl", "--user", "stop", "whisper-tui-gpu1-*"], place.server.variables)
    for pid in place.host_pids():
        os.kill(pid, signal.SIGKILL)
    await until(lambda: place.executor.problem is not None)
    await place.reached()
    await goes_on(place, key)


@pytest.mark.parametrize("server", ["ray"], indirect=True)
async def test_a_command_outlives_its_actor_on_the_same_node(place: EnginePlace):
    key = await began(place)
    kill = f"import ray; ray.init('{place.settings.options['address']}', namespace='whisper-tui', log_to_driver=False);"
    kill += "[ray.kill(ray.get_actor(each)) for each in ray.util.list_named_actors()]"
    await asyncio.to_thread(run, [place.server.python, "-c", kill], {})
    await until(lambda: place.executor.problem is not None)
    await place.reached()
    await goes_on(place, key)


@pytest.mark.parametrize("server", ["systemd", "slurm", "kubernetes", "ray"], indirect=True)
async def test_a_place_that_is_let_go_holds_nothing_and_is_made_anew_for_the_next_command(place: EnginePlace):
    await place.run("echo before", environment={})
    await until(lambda: not place.executor.state().running)
    await place.executor.let_go()
    await until(lambda: not kept_by(place))
    if place.settings.by == "slurm":
        jobs = ["squeue", "--noheader", "--states=RUNNING,PENDING"]
        await until(lambda: run(jobs, place.server.variables) == "")
    if place.settings.by == "ray":
        await until(lambda: not actors())
    await place.executor.reach()
    await place.reached()
    again = await place.run("echo after", environment={})
    assert place.out(again) == b"after\n"


def kept_by(place: EnginePlace) -> list[bytes]:
    """The processes at the place of its host processes, and of whatever keeps them."""
    pids = {*place.staying_pids(), *processes_with(b"serve", os.fsencode(place.there)), *place.host_pids()}
    return [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids if pid != os.getpid() and _is_there(pid)]


def _is_there(pid: int) -> bool:
    """True if a process is no request to Ray from here."""
    return b"hold" not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


@pytest.mark.parametrize("server", ["ray"], indirect=True)
async def test_actors_that_are_killed_leave_nothing_behind_that_runs_on(place: EnginePlace):
    for _ in range(3):
        for pid in actors():
            os.kill(pid, signal.SIGKILL)
        await until(lambda: place.executor.problem is not None)
        await place.reached()
        # The first host process serves on, and the one of the living actor waits for its end.
        await until(lambda: len(kept_by(place)) == 2)
    assert len(actors()) == 1


@pytest.mark.parametrize("server", ["ray"], indirect=True)
@pytest.mark.timeout(2 * PATIENCE_S)
async def test_a_node_that_is_gone_makes_the_place_unreachable_until_it_is_back(
    place: EnginePlace, ray_server: RayCluster
):
    await asyncio.to_thread(ray_server.tell, "kill node")
    try:
        await until(lambda: "has no room" in (place.executor.problem or ""))
    finally:
        await asyncio.to_thread(ray_server.tell, "add node")
    async with asyncio.timeout(PATIENCE_S):
        while place.executor.problem is not None:
            place.executor.connection.try_now()
            await asyncio.sleep(0.5)
    again = await place.run("echo there again", environment={})
    assert place.out(again) == b"there again\n"
