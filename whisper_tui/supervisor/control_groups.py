"""Where runs have control groups (version 2): below the group of this process, if it may divide that."""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whisper_tui.supervisor.executor import RunKey
from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.group import RunGroup

LEAF = "whisper-tui"
"""The group that a supervisor moves to: the kernel counts nothing below a group with processes of its own."""
COUNTS = ("memory", "pids")
"""The controllers that limits need."""
_NEEDED = ("cgroup.kill", "cgroup.freeze")
_UNITS = (".scope", ".service", ".slice")


@dataclass(frozen=True)
class ControlGroups:
    """The group that is divided among the runs."""

    base: Path
    counts: tuple[str, ...]
    """What the kernel counts, and limits, for each run as a whole."""

    @classmethod
    def found(cls) -> "ControlGroups | None":
        """None: there are no such groups, or ours are not for us to divide.

        Alone in a group that was delegated to it, this process moves to a group below that, so that runs are counted.
        """
        own = own_group()
        if own is None:
            return None
        in_leaf = own.name == LEAF
        base = own.parent if in_leaf else own
        try:
            alone = in_leaf or (_is_delegated(base) and _members(base) == [os.getpid()])
            leaf = base / (LEAF if alone else f"{LEAF}-{os.getpid()}")
            leaf.mkdir(exist_ok=True)
            usable = all((leaf / name).exists() for name in _NEEDED)
            if usable and alone:
                _write(leaf / "cgroup.procs", "0")
                return cls(base, _counting(base))
            leaf.rmdir()
        except OSError:
            return None
        return cls(base, ()) if usable and os.access(base / "cgroup.procs", os.W_OK) else None

    def place(self, runs: str, key: RunKey) -> dict[str, Any]:
        """What the keeper of an attempt is told: which group to make, and what is counted in it."""
        name = f"{_prefix(runs)}{key.call_id}.{key.attempt}"
        return {"path": str(self.base / name), "counts": list(self.counts)}

    def sweep(self, runs: str) -> None:
        """Remove the groups of runs that are over: a keeper that was killed while no supervisor ran left its own."""
        prefix = _prefix(runs)
        try:
            groups = [entry for entry in os.scandir(self.base) if entry.name.startswith(prefix)]
        except OSError:
            return
        for group in groups:
            attempt = Path(runs, group.name.removeprefix(prefix))
            if not attempt.is_dir() or (attempt / layout.DONE).exists():
                RunGroup(group.path).remove()


def _prefix(runs: str) -> str:
    """How the names of the groups of one instance begin."""
    return f"whisper-{hashlib.sha256(os.fsencode(runs)).hexdigest()[:12]}-"


def own_group(process: Path = Path("/proc/self")) -> Path | None:
    """The directory of a process's group of version 2. None: it has none that can be seen."""
    try:
        groups = (process / "cgroup").read_text().splitlines()
        mounts = [line.split() for line in (process / "mountinfo").read_text().splitlines()]
    except OSError:
        return None
    name = next((line.removeprefix("0::") for line in groups if line.startswith("0::")), None)
    for mount in mounts:
        root, place = mount[3], Path(mount[4])
        if name is not None and mount[mount.index("-") + 1] == "cgroup2" and Path(name).is_relative_to(root):
            return place / Path(name).relative_to(root)
    return None


def _members(group: Path) -> list[int]:
    return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]


def _is_delegated(group: Path) -> bool:
    """What systemd has not given away it sets up anew at any time; it marks what it has."""
    if group.suffix not in _UNITS:
        return True
    return any(_marked(group, name) for name in ("user.delegate", "trusted.delegate"))


def _marked(group: Path, name: str) -> bool:
    try:
        return os.getxattr(group, name) == b"1"
    except OSError:
        return False


def _counting(base: Path) -> tuple[str, ...]:
    """Have the kernel count each group below this one, as far as it can. Returns what it counts."""
    control = base / "cgroup.subtree_control"
    for controller in COUNTS:
        with suppress(OSError):
            _write(control, f"+{controller}")
    counted = control.read_text().split()
    return tuple(each for each in COUNTS if each in counted)


def _write(path: Path, text: str) -> None:
    with path.open("r+b", buffering=0) as file:
        file.write(text.encode())
