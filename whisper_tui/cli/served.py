"""The cockpit as a browser is shown it: started by `serve`, spoken to through its standard input and output."""

import sys
from pathlib import Path

from whisper_tui.cli.main import complain
from whisper_tui.cli.screen import open_cockpit
from whisper_tui.model.errors import WhisperError
from whisper_tui.model.home import Home


def main() -> int:
    """Open the cockpit of the directories that the arguments name."""
    config, state, runtime = map(Path, sys.argv[1:])
    try:
        return open_cockpit(Home(config=config, state=state, runtime=runtime))
    except WhisperError as error:
        complain(error.sentence())
        return 1


if __name__ == "__main__":
    sys.exit(main())
