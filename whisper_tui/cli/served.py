"""The cockpit as a browser is shown it: started by `serve`, spoken to through its standard input and output."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from whisper_tui.cli.main import complain
from whisper_tui.cli.screen import open_cockpit
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.home import Home

LOOK_S = 1.0
"""How often it is looked whether `serve` is still there."""


def _end_with(parent: int) -> None:
    """Nobody can close the page of a `serve` that was killed."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    """Open the cockpit of the directories that the arguments name."""
    config, state, runtime = map(Path, sys.argv[1:])
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        return open_cockpit(Home(config=config, state=state, runtime=runtime))
    except WhisperError as error:
        complain(error.sentence())
        return 1


if __name__ == "__main__":
    sys.exit(main())
