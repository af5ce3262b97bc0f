"""Verbs that decide without a supervisor, by writing the user's own files: not from inside a supervised command."""

from contextlib import suppress

from whisper_tui.model.errors import NotAllowed, WhisperError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whisper_tui.config.trusted_content import Announce
    from whisper_tui.model.home import Home


def check_outside(what: str, home: "Home") -> None:
    """Raises `NotAllowed` inside a supervised command. `what`: a clause's subject, like `rules add`.

    The supervisor is told of the attempt, by being asked for what it refuses as well.
    """
    from whisper_tui.wire.peers import why_supervised_here

    problem = why_supervised_here()
    if problem is not None:
        _have_it_noted(home)
        raise NotAllowed(f"{what} was refused because {problem}", hint="Only a human, from a terminal, may do this")


def announce_to(home: "Home") -> "Announce":
    """What tells the supervisor which entries a human is about to write into a file of rules, and to take away."""

    def announce(path: str, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        from pathlib import Path

        from whisper_tui.cli.deciding import decider
        from whisper_tui.wire.asking import asking

        # The first supervisor trusts what it finds.
        if (Path(home.state) / "journal.sqlite").exists():
            with asking(home) as supervisor:
                supervisor.ask("trust_rules", path=path, add=add, remove=remove, by=decider())

    return announce


def _have_it_noted(home: "Home") -> None:
    from whisper_tui.cli.deciding import decider
    from whisper_tui.wire.asking import asking

    with suppress(WhisperError), asking(home, start=False) as supervisor:
        supervisor.ask("trust_rules", path="", by=decider())
