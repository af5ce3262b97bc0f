"""The overlays of a draft: made for its first command, and mounted again for each later one (decision 44).

One command at a time is on them. The lock on the draft's directory says so, because the kernel does not refuse the
overlays of an ordinary user twice.
"""

import fcntl
import os
import re
from collections.abc import Iterable

from whisper_tui.changes.draft_changes import BEGUN
from whisper_tui.changes.file_trees import remove_tree
from whisper_tui.changes.overlay_diff import LAYERS
from whisper_tui.supervisor.preview.overlay_mounts import (
    Layer,
    NoPreview,
    plan_layers,
    time_of_file_system,
    write_layers,
)
from whisper_tui.system import run_files

_DIRECTORY_OF_LAYER = re.compile(r"\d+[uw]\Z")


def locked(draft: str) -> int:
    """Wait until no command is on the overlays, and return what keeps others away, to be closed. Raises `NoPreview`."""
    try:
        lock = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NoPreview("its draft is over") from None
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def layers_of(draft: str, roots: Iterable[str]) -> list[Layer]:
    """Return the layers of a draft. The first time they are made. Raises `NoPreview`, `OSError`."""
    path = os.path.join(draft, LAYERS)
    if not os.path.exists(path):
        # A command may have been killed while they were made.
        for name in filter(_DIRECTORY_OF_LAYER.match, os.listdir(draft)):
            remove_tree(os.path.join(draft, name))
        made = plan_layers(draft, roots, memory=False)
        write_layers(draft, made, time_of_file_system(draft), memory=False)
    found: list[Layer] = run_files.read_json(path)["layers"]
    return found


def begin(draft: str, name: str) -> int:
    """Note that a command begins, by the name of its attempt. Returns the time, as the file system stamps it."""
    began = time_of_file_system(draft)
    directory = os.path.join(draft, BEGUN)
    os.makedirs(directory, 0o700, exist_ok=True)
    run_files.write_whole(os.path.join(directory, name), str(began).encode())
    return began
