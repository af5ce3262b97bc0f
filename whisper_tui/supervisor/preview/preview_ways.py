"""The ways to preview a command, from the most exact to the last, and which of them work here (decision 16).

1. `preview_process`: overlays that the keeper mounts in namespaces of its own
2. bubblewrap: for systems that give namespaces only to programs with a profile, of which bwrap is one. It mounts the
   same view, and starts Python in it as PID 1, which watches the command.
3. `confined`: a sandbox, in a copy of the workspace
4. `confined`: the same without a copy, and without writing

`python -m whisper_tui.supervisor.preview.preview_ways STORE HOME WAY…` tries them with a command that does nothing, and
prints the result as JSON; STORE is a directory that it makes. It is a process of its own, because what makes a view
forks and enters namespaces.
"""

import errno
import json
import os
import re
import shutil
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from whisper_tui.changes.file_trees import remove_tree
from whisper_tui.supervisor.keeper.limited_start import PreviewedCommand, ProcessLimits
from whisper_tui.supervisor.keeper.sandbox import Sandboxes
from whisper_tui.supervisor.preview import confined, preview_process
from whisper_tui.supervisor.preview.overlay_mounts import (
    Layer,
    NoPreview,
    bwrap_arguments,
    plan_layers,
    prepare,
    time_of_file_system,
)
from whisper_tui.supervisor.preview.preview_process import WAS_KILLED, Host, Init, PreviewStart, fork_host
from whisper_tui.supervisor.preview.watched_calls import NameServer, watching_filter
from whisper_tui.system import syscalls

OVERLAY, BUBBLEWRAP, COPY, READ_ONLY = "overlay", "bubblewrap", "copy", "read-only"
WAYS = (OVERLAY, BUBBLEWRAP, COPY, READ_ONLY)
_BWRAP = "bwrap"
OLDEST = (0, 11)
"""The first bubblewrap with an option for overlays."""
_PATIENCE_S = 5.0
_MOST_TRIES = 5
_LONGEST_PROBLEM = 300
_PACKAGE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
# Not by `__name__`: where the ways are tried, this module is the main one.
_MODULE = "whisper_tui.supervisor.preview.preview_ways"
_INSIDE = f"import sys; sys.path.insert(0, {_PACKAGE!r}); from {_MODULE} import be_init; be_init()"
_NOTHING = "/bin/true"
_MOST_PROBED = 1 << 20


def make_filters() -> None:
    """Make the filters of system calls that every preview uses, before the keepers are forked."""
    for closed in (True, False):
        watching_filter(closed=closed)


def start(order: PreviewStart, sandboxes: Sandboxes) -> int:
    """Start a command in the first of its ways that works. Returns the pid of the host.

    Raises `NoPreview` with the reason of each, or `OSError` and `ValueError` if the command itself cannot be started.
    """
    instead: list[tuple[str, str]] = list(order.options.get("instead", ()))
    for way in order.options["ways"]:
        try:
            return _start(way, order._replace(options={**order.options, "instead": instead}), sandboxes)
        except NoPreview as problem:
            remove_tree(order.store)
            instead.append((way, str(problem)))
    reasons = dict.fromkeys(reason for _, reason in instead)
    raise NoPreview("; ".join(reasons) or "its settings leave no way to do so")


def _start(way: str, order: PreviewStart, sandboxes: Sandboxes) -> int:
    if way == OVERLAY:
        return preview_process.start(order)
    if way == BUBBLEWRAP:
        return _start_by_bubblewrap(order)
    return confined.start(order, sandboxes, copies=way == COPY)


def _start_by_bubblewrap(order: PreviewStart) -> int:
    """Start a command in a view that bwrap mounts. Returns the pid of the host. Raises `NoPreview`, `OSError`."""
    if os.geteuid() == 0:
        raise NoPreview("it maps one user, and root has the files of all")
    bwrap = bubblewrap()
    left = _MOST_TRIES
    while True:
        os.mkdir(order.store, 0o700)
        layers: list[Layer] = []
        try:
            began = time_of_file_system(order.store)
            layers += plan_layers(order.store, order.options["roots"], memory=False)
            prepare(order.store, layers, began, memory=False)
            return fork_host(lambda connection, layers=layers: _BubblewrapHost(order, connection, bwrap, layers))  # type: ignore[misc]
        except NoPreview as problem:
            remove_tree(order.store)
            left -= 1
            # bwrap opens the directories by their paths. Other programs remove some of them in between, as in /tmp.
            missing = os.strerror(errno.ENOENT) in str(problem) or not all(map(os.path.lexists, _covered(layers)))
            if not left or not missing:
                raise


def _covered(layers: Iterable[Layer]) -> Iterator[str]:
    """Yield the paths that a view needs."""
    for layer in layers:
        yield layer["path"]
        yield from (os.path.join(layer["path"], name) for name, ctime in layer["base"].items() if ctime == -1)


def bubblewrap() -> str:
    """Return the path of a bwrap that knows overlays. Raises `NoPreview`."""
    import subprocess  # large, and every preview loads this module

    found = shutil.which(_BWRAP)
    if found is None:
        raise NoPreview("it is not installed")
    try:
        said = subprocess.run([found, "--version"], capture_output=True, timeout=_PATIENCE_S, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise NoPreview(f"{found} does not say its version: {error}") from None
    numbers = re.search(rb"(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST:
        version = said.decode(errors="replace").strip()[:80]
        raise NoPreview(f"{found} is {version or 'of an unknown version'}, and overlays need 0.11")
    return found


class _BubblewrapHost(Host):
    """The host of a command in a view that bwrap mounts."""

    way = "bubblewrap"

    def __init__(self, order: PreviewStart, connection: socket.socket, bwrap: str, layers: Sequence[Layer]) -> None:
        super().__init__(order, connection)
        self._bwrap = bwrap
        self._layers = layers

    def _report(self) -> dict[str, Any]:
        reading, writing = os.pipe()
        job = os.memfd_create("job")
        below = {layer["path"]: os.path.relpath(layer["upper"], self._store) for layer in self._layers}
        os.write(job, json.dumps({"order": self._order, "uppers": below}).encode())
        log = os.path.join(self._store, "bwrap.log")
        kept = (
            self._connection.fileno(),
            writing,
            job,
            self._store_fd,
            *(action[1] for action in self._order.command.files),
        )
        pid = os.fork()
        if not pid:
            self._become_bubblewrap(kept, log)
        os.close(writing)
        if not os.read(reading, 1):
            os.waitpid(pid, 0)
            with open(log, encoding="utf-8", errors="replace") as file:
                raise NoPreview(file.read(_LONGEST_PROBLEM).strip() or "it has ended at once")
        self._connection.close()
        return self._wait(pid, reading)

    def _init_of(self, pid: int) -> int:
        # bwrap itself would end at the signal, and the report with it.
        with suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            if children := file.read().split():
                return int(children[0])
        return pid

    def _become_bubblewrap(self, kept: Sequence[int], log: str) -> None:
        try:
            for fd in kept:
                os.set_inheritable(fd, True)
            os.dup2(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600), 2)
            inside = [sys.executable, "-I", "-S", "-B", "-c", _INSIDE, *map(str, kept[:4])]
            os.execv(self._bwrap, [_BWRAP, *self._arguments(), "--", *inside])
        except OSError as error:
            os.write(2, str(error).encode())
        finally:
            os._exit(1)

    def _arguments(self) -> Iterator[str]:
        hide, network = self._options.get("hide", ()), bool(self._options.get("network"))
        return bwrap_arguments(self._store, self._layers, hide, self._order.terminal, network=network)


class _InitInside(Init):
    """PID 1 in the view that bwrap has mounted."""

    def _mount(self, layers: Sequence[Layer]) -> None:
        """Do nothing: the view is there."""

    def _network(self) -> NameServer | None:
        # bwrap closes the network. A server for names would need capabilities that nobody has in it.
        self._targets.answers_names = False
        return None


def be_init() -> None:
    """Be PID 1 in the view; the arguments are the descriptors of the connection, the result and the job."""
    connection, result, job, store_fd = map(int, sys.argv[1:])
    os.lseek(job, 0, os.SEEK_SET)
    with open(job, encoding="utf-8") as file:
        told = json.load(file)
    os.write(result, b"\n")
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            os.set_inheritable(int(name), int(name) <= 2)
    store, options, cwd, terminal, command = told["order"]
    program, argv, environment, files, limits = command
    made = PreviewedCommand(program, argv, environment, files, ProcessLimits(*limits))
    order = PreviewStart(store, options, cwd, terminal, made)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    # The view hides the store, so its directories are reached from the descriptor.
    uppers = {path: f"/proc/self/fd/{store_fd}/{name}" for path, name in told["uppers"].items()}
    _InitInside(order, socket.socket(fileno=connection), result, uppers).serve(())


def _probe(store: str, home: str, ways: Iterable[str]) -> dict[str, Any]:
    """Return the ways that work, and the reasons why the others before the last of them do not."""
    found: list[str] = []
    refused: list[tuple[str, str]] = []
    memory, sandboxes = False, Sandboxes()
    workspace = f"{store}.workspace"
    for way in ways:
        if way == BUBBLEWRAP and OVERLAY in found:
            # It could do nothing that overlays cannot.
            continue
        os.makedirs(workspace, exist_ok=True)
        options: Mapping[str, Any] = {
            "roots": [home, "/tmp"],  # noqa: S108 (covered, not used)
            "hide": [],
            "network": False,
            "max_bytes": _MOST_PROBED,
            "workspace": workspace,
            "inside": [workspace],
            "readable": [],
            "ways": [way],
        }
        order = PreviewStart(store, dict(options), workspace, None, PreviewedCommand(_NOTHING, [_NOTHING], {}, []))
        try:
            pid = start(order, sandboxes)
            memory = memory or os.path.exists(os.path.join(store, "t"))
            if code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
                raise NoPreview(WAS_KILLED if code < 0 else f"a command that does nothing ended with {code}")
            found.append(way)
        except (NoPreview, OSError, ValueError) as problem:
            refused.append((way, str(problem).rstrip(".")))
        finally:
            remove_tree(store)
            remove_tree(workspace)
    return {"ways": found, "refused": refused, "memory": memory}


def main() -> None:
    """Print how commands can be previewed."""
    store, home, *ways = sys.argv[1:]
    print(json.dumps(_probe(store, home, ways)))


if __name__ == "__main__":
    main()
