"""Is `whisper-tui`, and writes down which of its functions are called: `python recorder.py ANSWER ARGUMENTS...`.

It begins to record with SIGUSR1, and writes what it has recorded into the file ANSWER with SIGUSR2.
"""

import inspect
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

import whisper_tui

PACKAGE = os.path.dirname(whisper_tui.__file__) + os.sep
Functions = list[tuple[str, str]]
"""Functions of the package: their file in it, and their qualified name."""


class Recorder:
    """Collects the functions that are called between `begin` and `end`, in this thread and in those started later."""

    def __init__(self) -> None:
        self._entered: set[CodeType] = set()
        self._records = False
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def begin(self) -> None:
        """Forget what was recorded, and record."""
        self._entered = set()
        self._records = True

    def end(self) -> Functions:
        """Return what was recorded. A module that was imported on the way is no function."""
        self._records = False
        return sorted(
            (code.co_filename.removeprefix(PACKAGE), code.co_qualname)
            for code in self._entered
            if code.co_filename.startswith(PACKAGE) and code.co_flags & inspect.CO_OPTIMIZED
        )

    def remove(self) -> None:
        """Let programs run at their usual speed again."""
        threading.setprofile(None)
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and self._records:
            self._entered.add(frame.f_code)


def main(answer: Path) -> int:
    """Be `whisper-tui` with what is left of the command line."""
    from whisper_tui.cli import main as whisper

    recorder = Recorder()

    def write() -> None:
        unfinished = answer.with_suffix(".part")
        unfinished.write_text(json.dumps(recorder.end()))
        unfinished.rename(answer)

    signal.signal(signal.SIGUSR1, lambda *_: recorder.begin())
    signal.signal(signal.SIGUSR2, lambda *_: write())
    return whisper()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv.pop(1))))
