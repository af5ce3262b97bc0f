"""Docker's lists run unasked only where they can be those of the daemon of this machine."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker_daemon import DockerDaemon
from tests.interpreter import PYTHON
from tests.rows import each_row
from tests.supervisor.test_previews import LiveBench
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.ending import Exited
from whisper_tui.model.state import Ended
from whisper_tui.model.verdict import Verdict
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.supervisor.runs import sandboxed_docker
from whisper_tui.supervisor.runs.sandboxed_docker import docker_in_sandbox, docker_problem
from whisper_tui.system.confinement import probe

needs_sandbox = pytest.mark.skipif(bool(probe().problem), reason=f"no sandbox here: {probe().problem}")
READING = Rules(unasked="reading", read_only=True)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an empty home; the daemon's socket would be in it."""
    (tmp_path / "home" / ".docker").mkdir(parents=True)
    (tmp_path / "workspace").mkdir(exist_ok=True)
    monkeypatch.setattr(sandboxed_docker, "SOCKET", str(tmp_path / "d.sock"))
    return tmp_path


@pytest.fixture
def daemon(place: Path) -> Iterator[DockerDaemon]:
    made = DockerDaemon(place / "d.sock")
    yield made
    made.close()


def environment(place: Path, **variables: str) -> dict[str, str]:
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(place / "home"), **variables}


def configured(place: Path, text: str) -> None:
    (place / "home" / ".docker" / "config.json").write_text(text)


def test_the_usual_daemon_answers(place: Path, daemon: DockerDaemon) -> None:
    socket = str(place / "d.sock")
    assert not docker_problem(environment(place))
    configured(place, json.dumps({"auths": {"x": {"auth": "eDp5"}}, "currentContext": "default", "psFormat": "x"}))
    given = docker_in_sandbox(environment(place))
    assert given == ({"DOCKER_HOST": f"unix://{socket}", "DOCKER_CONFIG": "/nonexistent"}, socket)
    assert not docker_problem(environment(place, DOCKER_CONTEXT="default"))
    configured(place, '{"currentContext": "far"}')
    assert not docker_problem(environment(place, DOCKER_HOST=f"unix://{socket}"))
    assert not docker_problem(environment(place, DOCKER_CONTEXT="default"))


def test_without_a_daemon_docker_itself_says_so(place: Path) -> None:
    assert not docker_problem(environment(place))


def test_another_daemon_is_asked_about(place: Path, daemon: DockerDaemon) -> None:
    assert "DOCKER_HOST is tcp://far:2375" in docker_problem(environment(place, DOCKER_HOST="tcp://far:2375"))
    assert "its context is far" in docker_problem(environment(place, DOCKER_CONTEXT="far"))
    configured(place, '{"currentContext": "far"}')
    assert "its context is far" in docker_problem(environment(place))
    assert docker_in_sandbox(environment(place)) == ({}, "")
    other = place / "other"
    other.mkdir()
    assert not docker_problem(environment(place, DOCKER_CONFIG=str(other)))
    (other / "config.json").write_text('{"currentContext": "near"}')
    assert "its context is near" in docker_problem(environment(place, DOCKER_CONFIG=str(other)))


@pytest.mark.parametrize("text", ['{"CURRENTCONTEXT": "far"}', '{"currentContext": "far", "CurrentContext": ""}'])
def test_a_context_counts_as_docker_reads_it(text: str, place: Path, daemon: DockerDaemon) -> None:
    configured(place, text)
    assert "its context is far" in docker_problem(environment(place))
    assert "its context is far" in docker_problem(environment(place, DOCKER_CONTEXT=""))


def test_a_configuration_in_a_relative_directory_is_asked_about(place: Path, daemon: DockerDaemon) -> None:
    assert "depends on where docker starts" in docker_problem(environment(place, DOCKER_CONFIG="conf"))
    assert not docker_problem(environment(place, DOCKER_CONFIG="conf", DOCKER_CONTEXT="default"))


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", '{"currentContext": 1}', "\x00", "", "[" * 500_000, '{"a":' * 100_000]
)
def test_a_configuration_that_cannot_be_read_is_asked_about(text: str, place: Path) -> None:
    configured(place, text)
    assert "config.json cannot be read" in docker_problem(environment(place))


def test_a_configuration_that_is_no_file_is_asked_about(place: Path) -> None:
    os.mkfifo(place / "home" / ".docker" / "config.json")
    assert "config.json cannot be read" in docker_problem(environment(place))


def test_a_socket_that_is_none_or_leads_elsewhere_is_asked_about(place: Path) -> None:
    socket = place / "d.sock"
    socket.write_text("")
    assert "no socket of root or of this user" in docker_problem(environment(place))
    socket.unlink()
    podman = DockerDaemon(place / "podman.sock")
    socket.symlink_to(place / "podman.sock")
    assert "no socket of root or of this user" in docker_problem(environment(place))
    podman.close()


def test_a_socket_that_the_user_may_not_use_is_asked_about(
    place: Path, daemon: DockerDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(place / "d.sock"))
    assert "this user may not connect" in docker_problem(environment(place))


def judged(text: str, place: Path, **variables: str) -> Verdict:
    spec = CommandSpec(command=Shell(text=text), cwd=str(place / "workspace"))
    return judge_alone(spec, READING, environment(place, **variables), root=str(place / "workspace"), now=0.0)[0]


LISTS = """
docker ps
docker ps -a --format '{{.Names}}'
docker images -q
docker image ls
docker container ls --all
docker volume ls
docker network ls
docker version
docker info
docker --version
docker ps | grep web | wc -l
timeout 5 docker ps
docker ps && docker images
"""


@needs_sandbox
@each_row("text", LISTS.strip().splitlines())
def test_lists_run_unasked(text: str, place: Path, daemon: DockerDaemon) -> None:
    verdict = judged(text, place)
    assert (verdict.kind, verdict.sandbox is not None) == ("allow", True)


OTHERS = """
docker -H tcp://far:2375 ps
docker --host=tcp://far:2375 ps
docker --context far ps
docker -c far ps
docker --config . ps
DOCKER_HOST=tcp://far:2375 docker ps
env DOCKER_HOST=tcp://far:2375 docker ps
export DOCKER_HOST=tcp://far:2375; docker ps
DOCKER_CONFIG=. docker ps
docker inspect web
docker logs web
docker system df
docker context ls
docker compose ps
docker ps -q | xargs docker inspect
docker ps > list
docker rm web
docker run --rm alpine
./docker ps
podman ps
nerdctl ps
"""


@needs_sandbox
@each_row("text", OTHERS.strip().splitlines())
def test_other_calls_of_docker_are_asked(text: str, place: Path, daemon: DockerDaemon) -> None:
    assert judged(text, place).kind == "ask"


@needs_sandbox
def test_a_docker_of_the_workspace_is_asked_about(place: Path, daemon: DockerDaemon) -> None:
    own = place / "workspace" / "docker"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert judged("docker ps", place, PATH=f"{own.parent}:/usr/bin:/bin").kind == "ask"


@needs_sandbox
def test_another_daemon_is_asked_about_with_the_reason(place: Path, daemon: DockerDaemon) -> None:
    verdict = judged("docker ps | head", place, DOCKER_HOST="ssh://far")
    assert verdict.kind == "ask"
    assert "does not reach docker: DOCKER_HOST is ssh://far, which may be another daemon" in verdict.reason
    assert judged("ls", place, DOCKER_HOST="ssh://far").kind == "allow"


CLIENT = f"""#!{PYTHON} -IS
import os, socket, sys
host = os.environ["DOCKER_HOST"].removeprefix("unix://")
with socket.socket(socket.AF_UNIX) as made:
    made.connect_ex(host)
    made.sendall(b"GET /v1.50/containers/json HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    answer = made.recv(4096).decode().rpartition("\\r\\n")[2]
    print(answer, os.environ["DOCKER_CONFIG"])
"""
"""Stands in for docker, of which not every machine has one."""


@needs_sandbox
@pytest.mark.parametrize("sandbox", ["read-only", "workspace"])
async def test_a_call_gets_the_lists_of_the_daemon(sandbox: str, place: Path, daemon: DockerDaemon) -> None:
    programs = place / "programs"
    programs.mkdir()
    (programs / "docker").write_text(CLIENT)
    (programs / "docker").chmod(0o755)
    live = LiveBench(place)
    opened = {"prefix": ("docker", "ps"), "sandbox": sandbox, "execute": (str(programs), sys.prefix, sys.base_prefix)}
    await live.open(Rules(allow=(Rule.model_validate({"name": "docker", **opened}),)))
    session = await live.session(environment=environment(place, PATH=f"{programs}:/usr/bin:/bin"))
    record = await live.over(await live.submit(session, text="docker ps"))
    assert isinstance(record.state, Ended)
    assert record.state.ending == Exited(code=0)
    assert await live.output(record.id) == b"[]\n /nonexistent\n"
    assert daemon.asked == [b"GET /v1.50/containers/json HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n"]
    await live.supervisor.close()
