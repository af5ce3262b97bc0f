"""A bridge to a program in a Ray cluster: standard input and output here, methods of an actor there. A script.

ray_bridge.py hold ADDRESS ACTOR RESOURCES ARGV…   create the actor, which keeps ARGV running, unless it lives
ray_bridge.py withdraw ADDRESS ACTOR RESOURCES     end the actor, if there is one
ray_bridge.py run ADDRESS ACTOR RESOURCES ARGV…    run ARGV beside it, connected to this process
"""

import fcntl
import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress
from typing import IO, Any, NamedTuple, cast

NO_RAY, NO_CLUSTER, NO_ACTOR, LOST, NOT_STARTED = 69, 70, 75, 76, 126
"""Exit codes: Ray is not installed; the cluster is not reached; there is no actor, or it has no room; it has ended;
the program cannot be started."""
NAMESPACE = "whisper-tui"
PIECE = 1 << 20
"""Bytes of one message."""
READ_S = 5.0
"""Seconds after which a read without data is answered, so that the actor sees that somebody reads."""
GONE_S = 30.0
"""Seconds without a read after which a program is ended: its bridge was killed."""
MOST_FAILURES = 30
"""Failures in a row of the host process, each within `SOON_S`, after which it is not started again."""
SOON_S = 5.0
"""Seconds within which an end is a failure, and for which an actor is waited for that no node can have."""
READY_S = 20.0
"""Seconds that the cluster has to find room for the actor."""


class _Connected(NamedTuple):
    process: subprocess.Popen[bytes]
    input: IO[bytes]
    output: IO[bytes]


class PlaceActor:
    """Lives in the cluster: keeps the host process, and programs that are connected to bridges."""

    def __init__(self, argv: list[str]) -> None:
        self._programs: dict[str, _Connected] = {}
        self._read_at: dict[str, float] = {}
        # A thread, and no process: nothing that keeps a host process is left behind by an actor that is killed.
        self._keeping = threading.Thread(target=self._keep, args=(argv,), daemon=True)
        self._keeping.start()

    def ready(self) -> bool:
        """Return True if the host process is kept. False: it was given up."""
        return self._keeping.is_alive()

    def _keep(self, argv: list[str]) -> None:
        """Run the host process again whenever it fails. Once nobody needs it, end the actor and free what it has."""
        failures = 0
        while failures < MOST_FAILURES:
            began = time.monotonic()
            # A session of its own: a worker of Ray that is ended sends signals to its group.
            host = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
            if host.wait() == 0:
                os._exit(0)
            failures = failures + 1 if time.monotonic() - began < SOON_S else 0
            time.sleep(1)

    def start(self, name: str, argv: list[str]) -> str:
        """Start a program by a name that is used once. Return why it cannot be started, or nothing."""
        try:
            process = subprocess.Popen(argv, stdin=-1, stdout=-1, bufsize=0, start_new_session=True)
        except OSError as error:
            return str(error)
        program = _Connected(process, cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout))
        widen(program.input.fileno())
        widen(program.output.fileno())
        self._programs[name], self._read_at[name] = program, time.monotonic()
        threading.Thread(target=self._end_unread, args=(name, process), daemon=True).start()
        return ""

    def write(self, name: str, data: bytes) -> None:
        """Write to its input, and wait while that is full. No data: end of input."""
        pipe = self._programs[name].input
        view = memoryview(data)
        with suppress(BrokenPipeError):
            while view:
                view = view[pipe.write(view) :]
            if not data:
                pipe.close()

    def read(self, name: str) -> bytes | int | None:
        """Return a piece of its output, or its exit code. None: there was no output for some seconds."""
        program = self._programs[name]
        self._read_at[name] = time.monotonic()
        if not select.select([program.output], [], [], READ_S)[0]:
            return None
        return program.output.read(PIECE) or program.process.wait()

    def _end_unread(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """End a program that nobody reads any more, and forget it."""
        while time.monotonic() - self._read_at[name] < GONE_S:
            time.sleep(READ_S)
        process.kill()
        process.wait()
        del self._programs[name], self._read_at[name]


def widen(pipe: int) -> None:
    """Let a pipe hold as much as one message: each message takes a way through several processes of Ray."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIECE)


def main(mode: str, address: str, actor: str, resources: str, *argv: str) -> int:
    """Run one of the modes."""
    # Ray prints where it likes; what is printed here is read as the output of the program there.
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        import ray
        from ray.exceptions import RayError
    except ImportError:
        return _fail(NO_RAY, "the package ray is not installed; it comes with the extra [ray]")
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # noqa: BLE001 - Ray raises a dozen kinds, and some are no RayError
        return _fail(NO_CLUSTER, f"the Ray cluster {address} is not reached: {error}")
    try:
        if mode == "withdraw":
            with suppress(ValueError):
                ray.kill(ray.get_actor(actor))
            return 0
        if mode == "hold":
            return _hold(ray, actor, json.loads(resources), list(argv))
        return _Bridge(ray, ray.get_actor(actor), output).run(list(argv))
    except ValueError:
        return _fail(NO_ACTOR, f"there is no actor {actor}")
    except RayError as error:
        return _fail(LOST, f"the actor {actor} is lost: {type(error).__name__}")


def _hold(ray: Any, name: str, resources: dict[str, Any], argv: list[str]) -> int:
    """Have the actor: of two who create it at once, both get the same one."""
    kind = ray.remote(PlaceActor)
    # It is never restarted and no call is repeated: Ray would do so on another node, where nothing is known.
    actor = kind.options(
        name=name,
        get_if_exists=True,
        lifetime="detached",
        max_restarts=0,
        max_task_retries=0,
        max_concurrency=64,
        **resources,
    ).remote(argv)
    wanted = needs(resources)
    fits = any(has_all(node["Resources"], wanted) for node in ray.nodes() if node["Alive"])
    try:
        kept = ray.get(actor.ready.remote(), timeout=READY_S if fits else SOON_S)
    except ray.exceptions.GetTimeoutError:
        # It stays in the queue of the cluster in both cases: an autoscaler adds nodes for what waits there.
        said = ", ".join(f"{amount:g} {what}" for what, amount in wanted.items())
        if fits:
            return _fail(NO_ACTOR, f"the cluster has no room for the actor {name} yet, which needs {said}")
        return _fail(NO_ACTOR, f"no node of the cluster is large enough for the actor {name}, which needs {said}")
    if not kept:
        ray.kill(actor)
        return _fail(NO_ACTOR, f"the actor {name} could not keep its host process, and is made anew")
    return 0


def needs(resources: dict[str, Any]) -> dict[str, float]:
    """Return the resources of an actor by the names that nodes have for them."""
    named = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
    wanted = {named[key]: resources[key] for key in named if key in resources} | resources.get("resources", {})
    return {what: amount for what, amount in wanted.items() if amount}


def has_all(node: dict[str, float], wanted: dict[str, float]) -> bool:
    """True if a node that runs nothing would have all of it."""
    return all(node.get(what, 0.0) >= amount for what, amount in wanted.items())


class _Bridge:
    """Connects this process to one program."""

    def __init__(self, ray: Any, actor: Any, output: int) -> None:
        self._ray, self._actor, self._output = ray, actor, output
        self._name = uuid.uuid4().hex

    def run(self, argv: list[str]) -> int:
        """Return the exit code of the program."""
        if problem := self._ray.get(self._actor.start.remote(self._name, argv)):
            return _fail(NOT_STARTED, problem)
        threading.Thread(target=self._forward_input, daemon=True).start()
        while True:
            piece = self._ray.get(self._actor.read.remote(self._name))
            if isinstance(piece, int):
                return piece if piece >= 0 else 128 - piece
            view = memoryview(piece or b"")
            while view:
                view = view[os.write(self._output, view) :]

    def _forward_input(self) -> None:
        # One write at a time: a program that does not read holds back whoever writes here.
        widen(0)
        with suppress(Exception):
            while data := os.read(0, PIECE):
                self._ray.get(self._actor.write.remote(self._name, data))
            self._ray.get(self._actor.write.remote(self._name, b""))


def _fail(code: int, message: str) -> int:
    print(" ".join(message.split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    result = main(*sys.argv[1:])
    sys.stderr.flush()
    # Threads of Ray would be waited for; the program there has ended.
    os._exit(result)
