"""`python -m whisper_tui` is `whisper-tui`."""

import sys

from whisper_tui.cli import main

if __name__ == "__main__":
    sys.exit(main())
