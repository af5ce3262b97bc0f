"""A stand-in for the API server of Kubernetes, for the real kubectl: Pods, and programs in them over WebSocket.

A Pod is a process namespace of this machine: it ends with its first process, as a real one. There are no nodes, no
images, no scheduler and no kubelet.
"""

import asyncio
import json
import os
import shutil
import signal
import struct
import sys
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

from tests.supervisor.places.engines.servers import EngineServer

PROTOCOL = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, RESULT, CLOSE = 0, 1, 2, 3, 255
_API = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
    {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "shortNames": ["po"],
     "verbs": ["create", "delete", "get", "list"]},
    {"name": "pods/exec", "singularName": "", "namespaced": True, "kind": "PodExecOptions", "verbs": ["create", "get"]},
]}  # fmt: skip


class Pod:
    """One Pod: its manifest, and its first process."""

    def __init__(self, manifest: dict[str, Any], home: Path) -> None:
        self.manifest = manifest
        self.home = home
        self.uid = str(uuid.uuid4())
        self.first: Process | None = None
        self.waits_for = ""
        """Why it does not run, as a reason of the cluster."""

    async def start(self) -> None:
        self.home.mkdir()
        container = self.manifest["spec"]["containers"][0]
        self.first = await asyncio.create_subprocess_exec(
            "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *container["command"],
            env=self._environment(), start_new_session=True,
        )  # fmt: skip

    async def end(self) -> None:
        """End everything in it, and throw its files away."""
        if self.first is not None and self.first.returncode is None:
            self.first.kill()
            await self.first.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    async def run(self, command: list[str]) -> Process:
        """Start a further program in it."""
        assert self.first is not None
        children = Path(f"/proc/{self.first.pid}/task/{self.first.pid}/children")
        while not (found := children.read_text().split()):
            await asyncio.sleep(0.01)
        inside = ["nsenter", "--pid", "--mount", "-t", found[0], *command]
        return await asyncio.create_subprocess_exec(
            *inside, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=self._environment()
        )

    def status(self) -> dict[str, Any]:
        container = self.manifest["spec"]["containers"][0]
        status: dict[str, Any] = {"phase": "Pending"}
        if self.waits_for:
            state = {"waiting": {"reason": self.waits_for, "message": "back-off pulling image"}}
            status["containerStatuses"] = [{"name": container["name"], "state": state}]
        elif self.first is not None:
            code = self.first.returncode
            status["phase"] = "Running" if code is None else "Succeeded" if code == 0 else "Failed"
        about = {**self.manifest["metadata"], "namespace": "default", "uid": self.uid}
        return {**self.manifest, "metadata": about, "status": status}

    def _environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


class FakeKubernetes:
    """The API server, and all Pods."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pods: dict[str, Pod] = {}
        self.created = 0
        self.next_waits_for = ""
        """The reason why Pods that are created from now on do not run."""
        self.config = directory / "kubeconfig"

    def server(self) -> EngineServer:
        return EngineServer({"image": "python:3.13"}, {"KUBECONFIG": str(self.config)}, directory=self.directory)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve on a port of the loopback."""
        app = web.Application()
        pods = "/api/v1/namespaces/default/pods"
        app.router.add_get("/version", _always({"major": "1", "minor": "32", "gitVersion": "v1.32.0"}))
        app.router.add_get("/api", _always({"kind": "APIVersions", "versions": ["v1"]}))
        app.router.add_get("/apis", _always({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}))
        app.router.add_get("/api/v1", _always(_API))
        app.router.add_post(pods, self._create)
        app.router.add_get(f"{pods}/{{name}}", self._get)
        app.router.add_delete(f"{pods}/{{name}}", self._delete)
        app.router.add_get(f"{pods}/{{name}}/exec", self._exec)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"http://{host}:{port}"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": {}}],
        }))  # fmt: skip
        try:
            yield
        finally:
            for pod in self.pods.values():
                await pod.end()
            await runner.cleanup()

    async def _create(self, request: web.Request) -> web.Response:
        manifest = await request.json()
        name = manifest["metadata"]["name"]
        if name in self.pods:
            return _failure(409, "AlreadyExists", f'pods "{name}" already exists')
        self.created += 1
        pod = self.pods[name] = Pod(manifest, self.directory / f"pod{self.created}")
        pod.waits_for = self.next_waits_for
        if not pod.waits_for:
            await pod.start()
        return await _answer(pod.status(), 201)

    async def _get(self, request: web.Request) -> web.Response:
        pod = self.pods.get(request.match_info["name"])
        return _missing(request) if pod is None else await _answer(pod.status())

    async def _delete(self, request: web.Request) -> web.Response:
        pod = self.pods.get(request.match_info["name"])
        if pod is None:
            return _missing(request)
        wanted = (await request.json()).get("preconditions", {}) if request.can_read_body else {}
        if wanted.get("uid", pod.uid) != pod.uid:
            return _failure(409, "Conflict", "the UID in the precondition is another one")
        del self.pods[request.match_info["name"]]
        await pod.end()
        return await _answer(pod.status())

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        pod = self.pods.get(request.match_info["name"])
        if pod is None:
            return _missing(request)
        if pod.status()["status"]["phase"] != "Running":
            return _failure(400, "BadRequest", "cannot exec into a container in a completed pod")
        socket = web.WebSocketResponse(protocols=[PROTOCOL], max_msg_size=1 << 24)
        await socket.prepare(request)
        process = await pod.run(request.query.getall("command"))
        assert process.stdout is not None and process.stderr is not None
        writing = asyncio.create_task(_write_input(socket, process))
        await asyncio.gather(_send(socket, STDOUT, process.stdout), _send(socket, STDERR, process.stderr))
        code = await process.wait()
        writing.cancel()
        with suppress(ConnectionError, RuntimeError):
            await socket.send_bytes(bytes([RESULT]) + json.dumps(_result(code)).encode())
            await socket.close()
        return socket


async def _write_input(socket: web.WebSocketResponse, process: Process) -> None:
    assert process.stdin is not None
    try:
        async for message in socket:
            if message.type is not WSMsgType.BINARY:
                break
            if message.data[0] == CLOSE:
                process.stdin.close()
            elif message.data[0] == STDIN:
                process.stdin.write(message.data[1:])
                await process.stdin.drain()
    except ConnectionError:
        return
    # The connection was lost: what it has started ends, as its output has no reader.
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)


async def _send(socket: web.WebSocketResponse, channel: int, stream: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while data := await stream.read(1 << 15):
            await socket.send_bytes(struct.pack("B", channel) + data)


def _result(code: int) -> dict[str, Any]:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    message = f"command terminated with exit code {code}"
    return {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": message,
            "details": {"causes": causes}}  # fmt: skip


def _always(body: dict[str, Any]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return await _answer(body)

    return answer


async def _answer(body: dict[str, Any], status: int = 200) -> web.Response:
    return web.json_response(body, status=status)


def _missing(request: web.Request) -> web.Response:
    return _failure(404, "NotFound", f'pods "{request.match_info["name"]}" not found')


def _failure(code: int, reason: str, message: str) -> web.Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }
    return web.json_response(body, status=code)
