"""The command line: the only place that wires the layers together."""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `whisper-tui` with these arguments, or those of the process. Returns the exit code."""
    from whisper_tui.cli.main import run

    return run(arguments)
