"""Where one instance keeps its files."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import PurePath


class Home(NamedTuple):
    """The directories of one instance: one supervisor, one journal, one socket.

    A plain tuple, because the lightest commands need it and must not wait for the model to be imported.
    """

    config: "PurePath"
    state: "PurePath"
    runtime: "PurePath"
