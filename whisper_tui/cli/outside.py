"""Verbs that decide without a supervisor, by writing the user's own files: not from inside a supervised command."""

from whisper_tui.model.errors import NotAllowed


def check_outside(what: str) -> None:
    """Raises `NotAllowed` inside a supervised command. `what`: a clause's subject, like `rules add`."""
    from whisper_tui.wire.peers import why_supervised_here

    problem = why_supervised_here()
    if problem is not None:
        raise NotAllowed(f"{what} was refused because {problem}", hint="Only a human, from a terminal, may do this")
