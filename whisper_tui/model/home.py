"""Where one instance keeps its files."""

from pathlib import PurePath

from whisper_tui.model.value import Value


class Home(Value):
    """The directories of one instance: one supervisor, one journal, one socket."""

    config: PurePath
    state: PurePath
    runtime: PurePath
