"""How every subcommand declares itself: a name, a sentence, its options and what it does."""

import argparse
import os
from collections.abc import Callable, Sequence

from whisper_tui import __version__
from whisper_tui.cli.exit_codes import EPILOG
from whisper_tui.cli.reaching import home_at, of_agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whisper_tui.model.home import Home

Options = argparse.Namespace
Run = Callable[[Options], int]

_DESCRIPTION = "Supervise every command that AI agents want to run. Without a subcommand it opens the cockpit."
_PLACES = {"--home": 1, "--directories": 3}
"""Options before the subcommand, and how many words follow them."""
_USUAL_COLUMNS = 80


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal; argparse itself would load `shutil`, and compression with it, at every start."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named) > 0:
        return int(named)
    try:
        return os.get_terminal_size(1).columns or _USUAL_COLUMNS
    except OSError:
        return _USUAL_COLUMNS


class Verbs:
    """The parser, to which subcommands are added."""

    def __init__(self, cockpit: Run) -> None:
        self.parser = argparse.ArgumentParser(
            prog="whisper-tui", description=_DESCRIPTION, epilog=EPILOG, formatter_class=_Help
        )
        self.parser.add_argument("--version", action="version", version=f"whisper-tui {__version__}")
        add_places(self.parser, default=None)
        self.parser.set_defaults(run=cockpit)
        self._verbs = self.parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", dest="verb")

    def add(self, name: str, sentence: str, run: Run, *, details: str = "") -> argparse.ArgumentParser:
        """A new subcommand. `sentence` says what it does; `details` follows it in its own help."""
        text = f"{sentence[:1].upper()}{sentence[1:]}." + (f" {details}" if details else "")
        parser = self._verbs.add_parser(name, help=sentence, description=text, epilog=EPILOG, formatter_class=_Help)
        add_places(parser, default=argparse.SUPPRESS)
        parser.set_defaults(run=run)
        return parser


def verb_of(arguments: Sequence[str]) -> str:
    """The subcommand that these arguments name; nothing if none is named, or if that takes a parser to tell."""
    rest = list(arguments)
    while rest and rest[0] in _PLACES:
        del rest[: 1 + _PLACES[rest[0]]]
    return rest[0] if rest else ""


def add_places(parser: argparse.ArgumentParser, default: object) -> None:
    """Let a subcommand be told which instance it is about."""
    parser.add_argument(
        "--home",
        metavar="DIR",
        default=default,
        help="keep configuration, state and socket below DIR (also, where no agent starts it: WHISPER_TUI_HOME)",
    )
    parser.add_argument("--directories", nargs=3, default=default, help=argparse.SUPPRESS)


def places_of(options: Options) -> list[str]:
    """The options that chose the directories, as words."""
    if options.directories:
        return ["--directories", *options.directories]
    return [] if options.home is None else ["--home", options.home]


def home_of(options: Options) -> "Home":
    """The directories that the options and the environment choose. Raises `BadConfiguration`."""
    return home_at(places_of(options))


def home_for_agents(options: Options) -> "Home":
    """The directories for what an agent starts: its environment does not choose. Raises `BadConfiguration`."""
    return home_at(places_of(options), of_agents(os.environ))
