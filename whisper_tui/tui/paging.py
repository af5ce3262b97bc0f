"""Output in the pager of the user, over the cockpit until it is left."""

import os
import shlex
import subprocess
from pathlib import Path

from textual.app import App, SuspendNotSupported

from whisper_tui.model.errors import Refused

DEFAULT = "less"
LESS = "R"
"""How `less` is told to show colours, unless the user tells it something."""


def page(app: App[None], path: Path) -> None:
    """Let the user read a file. Raises `Refused` where there is no terminal or no pager."""
    named = os.environ.get("PAGER") or DEFAULT
    try:
        words = shlex.split(named)
        environment = {"LESS": LESS} | dict(os.environ)
        with app.suspend():
            subprocess.run([*words, str(path)], check=False, env=environment)
    except SuspendNotSupported:
        raise Refused("there is no terminal here for a pager", hint="Save the output with S instead") from None
    except (OSError, ValueError) as error:
        raise Refused(f"the pager {named!r} cannot be started: {error}", hint="Set PAGER to another one") from error
