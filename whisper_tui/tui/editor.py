"""The editor of the user, over the cockpit until it is left."""

import os
import shlex
import subprocess
from pathlib import Path

from textual.app import App, SuspendNotSupported

from whisper_tui.model.errors import Refused

VARIABLES = ("VISUAL", "EDITOR")
DEFAULT = "vi"


def edit(app: App[None], path: Path) -> None:
    """Let the user edit a private file. Raises `Refused` where there is no terminal or no editor."""
    named = next((os.environ[name] for name in VARIABLES if os.environ.get(name)), DEFAULT)
    by_hand = f"Edit {path} by hand"
    try:
        words = shlex.split(named)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=True)
        with app.suspend():
            subprocess.run([*words, str(path)], check=False)
    except SuspendNotSupported:
        raise Refused("there is no terminal here to edit in", hint=by_hand) from None
    except (OSError, ValueError) as error:
        raise Refused(f"the editor {named!r} cannot be started: {error}", hint=by_hand) from error
