"""Questions of a subcommand to its supervisor."""

from collections.abc import Iterator
from contextlib import contextmanager

from whisper_tui.cli.parsing import Options, places_of
from whisper_tui.cli.reaching import connect, home_at
from whisper_tui.wire import asking as wire
from whisper_tui.wire.asking import Asking


@contextmanager
def asking(options: Options, *, start: bool = True) -> Iterator[Asking]:
    """The supervisor that the options choose. `start`: whether it is started when it does not run.

    Raises `WhisperError`; `Unavailable` when none runs and none is to be started.
    """
    places = places_of(options)
    connection = connect(places)
    with Asking(connection) if connection is not None else wire.asking(home_at(places), start=start) as supervisor:
        yield supervisor
