"""The sandbox of a command: the kernel limits the files, programs and hosts that it can reach (decision 7).

Landlock covers files, TCP, signals and abstract sockets. A seccomp filter refuses what Landlock cannot restrict
(sockets, ptrace, mounts, namespaces, io_uring, keys, TIOCSTI) and reports attempts to change something; no_new_privs
and dropped capabilities keep a program from gaining rights. Neither root nor a helper program is needed.

All of it is set on threads of the keeper that only start the command: Linux keeps these restrictions per thread and
children inherit them. So the keeper itself stays unrestricted, and the start needs no fork, unless there are limits
(`limited_start`). The filter is set once, on a thread that stays and begins those of the commands.
`docs/sandbox.md` lists what is not prevented.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper.seccomp import filter_instructions
from whisper_tui.system import syscalls
from whisper_tui.system.bpf import Filter
from whisper_tui.system.confinement import FilteredThread, confine, probe, restrict
from whisper_tui.system.landlock_rules import READ, SystemRules

TMP = "tmp"
"""Directory within that of an attempt: the private TMPDIR of its command."""

_WRITE = READ | (
    syscalls.WRITE_FILE
    | syscalls.REMOVE_DIR
    | syscalls.REMOVE_FILE
    | syscalls.MAKE_DIR
    | syscalls.MAKE_REG
    | syscalls.MAKE_SOCK
    | syscalls.MAKE_FIFO
    | syscalls.MAKE_SYM
    | syscalls.REFER
    | syscalls.TRUNCATE
)


class Profile(NamedTuple):
    """The rights of one command beyond reading the system."""

    read: tuple[str, ...]
    execute: tuple[str, ...]
    write: tuple[str, ...]
    network: bool
    processes: bool
    """True if it may read /proc for processes; the kernel keeps their memory and environment closed."""
    docker: bool = False
    """True if the keeper answers it with the lists of the docker daemon."""


class SandboxedStart(NamedTuple):
    """A started command in its sandbox."""

    pid: int
    listener: int
    """The descriptor of its filter's notifications."""


def profile_of(spec: dict[str, Any]) -> Profile | None:
    """Return the profile of an attempt. None: it runs without a sandbox."""
    asked = spec.get("sandbox")
    if asked is None:
        return None
    read, execute, write = (tuple(asked[name]) for name in ("read", "execute", "write"))
    network, processes = bool(asked["network"]), bool(asked["processes"])
    return Profile(read, execute, write, network=network, processes=processes, docker=bool(asked.get("docker")))


class Sandboxes:
    """Creates sandboxes. What all of them share is prepared while no command waits."""

    def __init__(self) -> None:
        self.support = probe()
        self._system = SystemRules(self.support.version) if self.support.version else None
        self._filters: dict[tuple[bool, bool, bool], Filter] = {}
        self._threads: dict[tuple[bool, bool], FilteredThread] = {}
        """Those that start commands, by whether these may use the network, and get docker's lists."""
        self._ready = -1

    def prepare(self) -> None:
        """Prepare a thread, and a ruleset with the rules for the system, for the next command without network."""
        if self._system is not None and self._ready < 0:
            with suppress(OSError, RuntimeError):  # The second: the system allows no further thread.
                self._thread(network=False, docker=False)
                self._ready = self._system.ruleset()

    def end_threads(self) -> None:
        """End all threads, before a fork: the new process has none of them."""
        while self._threads:
            self._threads.popitem()[1].close()

    def close(self) -> None:
        """Close what was prepared."""
        self.end_threads()
        if self._system is not None:
            self._system.close()
        if self._ready >= 0:
            os.close(self._ready)
            self._ready = -1

    def start(self, profile: Profile, spawn: Callable[[], int]) -> SandboxedStart:
        """Call `spawn` in a sandbox. It starts a process and returns its pid. Raises its errors."""
        thread, rules = self._thread(network=profile.network, docker=profile.docker), self._rules_for(profile)

        def restricted() -> int:
            restrict(rules)
            return spawn()

        try:
            listener = thread.listener()
            try:
                return SandboxedStart(thread.call(restricted), listener)
            except BaseException:
                os.close(listener)
                raise
        finally:
            os.close(rules)

    def restriction(self, profile: Profile, *, watched: bool = False) -> Callable[[], int]:
        """Return a function that restricts the calling process and returns the descriptor for notifications.

        `watched`: the filter also tells about files that are only read.
        """
        listening = self._filter(network=profile.network, docker=profile.docker, watched=watched)
        rules = self._rules_for(profile)
        return lambda: confine(rules, listening)

    def _thread(self, *, network: bool, docker: bool) -> FilteredThread:
        kind = network, docker
        if kind not in self._threads:
            self._threads[kind] = FilteredThread(self._filter(network=network, docker=docker))
        return self._threads[kind]

    def _filter(self, *, network: bool, docker: bool, watched: bool = False) -> Filter:
        kind = network, docker, watched
        if kind not in self._filters:
            version = self.support.version
            found = filter_instructions(network=network, version=version, watched=watched, docker=docker)
            self._filters[kind] = Filter(found)
        return self._filters[kind]

    def _rules_for(self, profile: Profile) -> int:
        if self._system is None:
            raise OSError(errno.ENOSYS, self.support.problem)
        if self._ready >= 0 and not profile.network:
            rules, self._ready = self._ready, -1
        else:
            rules = self._system.ruleset(network=profile.network)
        try:
            for paths, rights in (
                (profile.read, READ),
                (profile.execute, READ | syscalls.EXECUTE),
                (profile.write, _WRITE),
                (("/proc",) if profile.processes else (), READ),
            ):
                for path in paths:
                    self._system.permit(rules, path, rights)
        except BaseException:
            os.close(rules)
            raise
        return rules
