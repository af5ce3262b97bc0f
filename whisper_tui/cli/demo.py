"""`demo`: a scripted agent whose calls are real, in a workspace and under a supervisor of its own."""

from whisper_tui.cli.parsing import Options, Verbs


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    verbs.add(
        "demo",
        "watch a scripted agent propose real commands, in a temporary workspace",
        _demo,
        details="Without a terminal it decides by a printed script. It needs no key and no network.",
    )


def _demo(_: Options) -> int:
    from whisper_tui.cli.stage import run_demo

    return run_demo()
