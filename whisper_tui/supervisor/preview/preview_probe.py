"""Finds out how commands can be previewed on this machine: one that does nothing is started in a view of the files.

`python -m whisper_tui.supervisor.preview.preview_probe STORE HOME` prints it as JSON; STORE is a directory that it
makes. It is a process of its own, because what makes a view forks and enters namespaces.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from whisper_tui.supervisor.keeper.run_cgroup import RunCgroup
from whisper_tui.supervisor.keeper.spawn import ProcessLimits, fork_limited
from whisper_tui.supervisor.preview import preview_process
from whisper_tui.supervisor.preview.file_trees import remove_tree
from whisper_tui.supervisor.preview.overlay_mounts import NoPreview

PATIENCE_S = 20.0
"""Seconds after which the probe counts as failed: usually it takes a tenth of one."""
_NOTHING = "/bin/true"


class PreviewSupport(NamedTuple):
    """Previews on this machine."""

    how: str
    """How commands are previewed, in words. Empty: they cannot be."""
    problem: str = ""
    """Why they cannot be, as a clause. Empty: they can."""


def preview_support(store: str, home: str) -> PreviewSupport:
    """Return how commands can be previewed. It takes a moment. `store` does not exist yet, and will not afterwards."""
    if sys.platform != "linux":
        return PreviewSupport("", "previews need Linux")
    words = [sys.executable, "-m", __name__, store, home]
    try:
        told = subprocess.run(words, capture_output=True, timeout=PATIENCE_S, check=False, text=True).stdout
        return PreviewSupport(*json.loads(told))
    except (OSError, ValueError, TypeError, subprocess.TimeoutExpired) as error:
        return PreviewSupport("", f"the probe failed: {error}")


def _probe(store: str, home: str) -> PreviewSupport:
    options = {"roots": [home, "/tmp"], "hide": [], "network": False, "max_bytes": 1024 * 1024}  # noqa: S108

    def run(restrict: Callable[[], int]) -> tuple[int, int]:
        limits = ProcessLimits(None, None)
        return fork_limited(_NOTHING, [_NOTHING], {}, files=[], limits=limits, group=RunCgroup(), restrict=restrict)

    try:
        pid = preview_process.start(preview_process.PreviewStart(store, options, "/", None, run))
    except (NoPreview, OSError, ValueError) as problem:
        return PreviewSupport("", str(problem).rstrip("."))
    in_memory = os.path.exists(os.path.join(store, "t"))
    _, status = os.waitpid(pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        return PreviewSupport("", f"a command that does nothing ended with {code} in a preview")
    whose = "overlayfs as root" if os.geteuid() == 0 else "a user namespace and overlayfs"
    return PreviewSupport(f"with {whose}" + (", its changes in memory" if in_memory else ""))


def main() -> None:
    """Print how commands can be previewed."""
    store, home = sys.argv[1:]
    try:
        print(json.dumps(_probe(store, home)))
    finally:
        remove_tree(store)


if __name__ == "__main__":
    main()
