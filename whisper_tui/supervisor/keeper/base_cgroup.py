"""The control group in which each run gets a group of its own: ours, if it is delegated to us (decision 14)."""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup
from whisper_tui.system import run_files

LEAF = "whisper-tui"
"""The group that the supervisor moves to, because a group with processes of its own cannot count its subgroups."""
COUNTS = ("memory", "pids")
"""The controllers that limits need."""
_NEEDED = ("cgroup.kill", "cgroup.freeze")
_UNITS = (".scope", ".service", ".slice")


@dataclass(frozen=True)
class Cgroups:
    """The group in which each run gets a subgroup."""

    base: Path
    counts: tuple[str, ...]
    """The resources that the kernel counts and limits for each run as a whole."""

    @classmethod
    def find(cls) -> "Cgroups | None":
        """Find the base group. None: there are no control groups, or ours is not delegated to us.

        If this process is alone in a delegated group, it moves to a subgroup, so that the kernel can count the runs.
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

    def group_order(self, directory: str) -> dict[str, Any]:
        """Return the keeper's order for the group of an attempt: its path, and what is counted in it."""
        runs, name = os.path.split(directory)
        return {"path": str(self.base / f"{_prefix(runs)}{name}"), "counts": list(self.counts)}

    def sweep(self, runs: str) -> None:
        """Remove the groups of runs that are over."""
        # A keeper that was killed while no supervisor was running has left its group behind.
        prefix = _prefix(runs)
        try:
            groups = [entry for entry in os.scandir(self.base) if entry.name.startswith(prefix)]
        except OSError:
            return
        for group in groups:
            attempt = Path(runs, group.name.removeprefix(prefix))
            if not attempt.is_dir() or (attempt / run_files.DONE).exists():
                RunCgroup(group.path).remove()


def _prefix(runs: str) -> str:
    """Return the prefix of the names of all groups of one instance."""
    return f"whisper-{hashlib.sha256(os.fsencode(runs)).hexdigest()[:12]}-"


def own_group(process: Path = Path("/proc/self")) -> Path | None:
    """Return the directory of a process's control group. None: it has no visible group of version 2."""
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
    """True if systemd has delegated the group to us, or does not manage it."""
    # systemd may reset any group that it has not delegated. It marks delegated ones with an attribute.
    if group.suffix not in _UNITS:
        return True
    return any(_marked(group, name) for name in ("user.delegate", "trusted.delegate"))


def _marked(group: Path, name: str) -> bool:
    try:
        return os.getxattr(group, name) == b"1"
    except OSError:
        return False


def _counting(base: Path) -> tuple[str, ...]:
    """Enable the controllers for the groups below this one. Return those that the kernel provides."""
    control = base / "cgroup.subtree_control"
    for controller in COUNTS:
        with suppress(OSError):
            _write(control, f"+{controller}")
    counted = control.read_text().split()
    return tuple(each for each in COUNTS if each in counted)


def _write(path: Path, text: str) -> None:
    with path.open("r+b", buffering=0) as file:
        file.write(text.encode())
