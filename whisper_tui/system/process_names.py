"""Names of files that mean something else for each process: `/proc/self`, `/dev/fd/2`, `/dev/stdout`, `/dev/tty`.

The supervisor is another process than the command, so it never follows them: for a command, `/dev/stderr` is wherever
its second descriptor leads.
"""

import re

_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_OF_PROCESS = re.compile(r"(/proc/(?:self|thread-self|\d+)|/dev/(?:fd|stdin|stdout|stderr|tty))(?:/.*)?", re.DOTALL)
_DESCRIPTOR = re.compile(r"(?:/dev/fd|/proc/(?:self|thread-self)/fd)/(\d{1,4})")
_DIRECTORY = re.compile(r"/proc/(?:self|thread-self)/cwd(?=/|\Z)")

SAME_FOR_ALL = frozenset({"/proc/net", "/proc/mounts"})
"""Links into the own process that show the same to all processes of a container, and nothing private of one."""


def is_of_process(path: str) -> bool:
    """True if a path without `.` and `..` is such a name, or lies below one."""
    return path.startswith(("/proc/", "/dev/")) and _OF_PROCESS.fullmatch(path) is not None


def descriptor_of(path: str) -> int | None:
    """Return the number of the descriptor that a path names. None: it names none of the process that uses it."""
    if path in _STREAMS:
        return _STREAMS[path]
    match = _DESCRIPTOR.fullmatch(path)
    return int(match[1]) if match else None


def is_output(path: str) -> bool:
    """True if a path names the standard output or the standard error, whatever they are."""
    return descriptor_of(path) in {1, 2}


def in_directory(path: str, directory: str) -> str:
    """Return a path in which the directory of the process is replaced by the directory that it will have."""
    match = _DIRECTORY.match(path)
    return path if match is None else directory.rstrip("/") + path[match.end() :] or "/"
