"""How every subcommand declares itself, asks its supervisor, ends, and advises to install what it needs."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from whisper_tui import __version__
from whisper_tui.model.errors import BadConfiguration, InvalidRequest, Unavailable, UnknownCall, WhisperError
from whisper_tui.model.text import visible
from whisper_tui.system.own_program import start_of_this_process
from whisper_tui.wire import light_client as wire
from whisper_tui.wire.light_client import LightClient, connect_quickly, quick_runtime

if TYPE_CHECKING:
    from _socket import socket as Connection
    from pathlib import Path

    from whisper_tui.system.state_directory import Directories


DONE = 0
REFUSED = 1
WRONG_USE = 2
UNAVAILABLE = 3
UNKNOWN = 4
BAD_CONFIGURATION = 5
OUTPUT_LOST = 74
INTERRUPTED = 130
PIPE_CLOSED = 141

MEANINGS = {
    DONE: "success",
    REFUSED: "refused, or the tool call failed: standard error says why",
    WRONG_USE: "the command line or its input is wrong",
    UNAVAILABLE: "no supervisor runs, or it or its files cannot be used",
    UNKNOWN: "there is no such call",
    BAD_CONFIGURATION: "the configuration file cannot be used",
    OUTPUT_LOST: "standard output could not be written; the request may have been carried out",
    INTERRUPTED: "interrupted with Ctrl-C",
    PIPE_CLOSED: "the reader of the output closed it",
}

EPILOG = "exit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in MEANINGS.items())


def code_of(error: WhisperError) -> int:
    """The exit code for an error."""
    match error:
        case InvalidRequest() | WhisperError(kind="unknown_tool"):
            return WRONG_USE
        case UnknownCall():
            return UNKNOWN
        case Unavailable():
            return UNAVAILABLE
        case BadConfiguration():
            return BAD_CONFIGURATION
        case _:
            return REFUSED


def complain(sentence: str) -> None:
    """Print one line on standard error. Control characters in it are escaped."""
    first = sentence.split(" ", 1)[0]
    shown = visible(sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence, keep_lines=True)
    sys.stderr.write(f"whisper-tui: {shown}{'' if shown.endswith(('.', '!', '?', '…')) else '.'}\n")


Options = argparse.Namespace
Run = Callable[[Options], int]

GROUPS = {
    "Decide": (
        *("list", "preview", "approve", "deny", "aside", "undo", "review", "start", "signal", "kill", "jump"),
        *("pause", "resume", "approvals", "revoke", "revert", "draft"),
    ),
    "Inspect": (
        *("attach", "watch", "serve", "phone", "ps", "history", "show", "logs", "story", "export"),
        "evidence",
    ),
    "Rules": ("unasked", "explain", "rules", "config"),
    "Agents": ("install", "uninstall", "doctor", "mcp", "acp", "executor", "call", "tools", "agent", "demo"),
    "Service": ("status", "places", "restart", "stop", "bring", "prune", "completions", "man"),
}
"""The subcommands by their headings in the help. The others are internal: they work, and are not listed."""

ON_HOSTS = frozenset(
    ["list", "ps", "history", "export", "story", "status", "pause", "resume", "approvals", "rules", "doctor"]
)
"""The subcommands that take `--host`."""
WITH_IDS = frozenset(
    ["show", "approve", "deny", "aside", "preview", "undo", "start", "signal", "kill", "logs", "revoke", "revert"]
)
"""Those that take ids, which may have the name of a machine before them."""

HERE = "here"
"""The name of this machine among others."""

_DESCRIPTION = "Supervise every command that AI agents want to run. Without a subcommand it opens the cockpit."
_PLACES = {"--home": 1, "--directories": 3}
"""Options before the subcommand, and how many words follow them."""
_USUAL_COLUMNS = 80


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal."""

    def __init__(self, prog: str) -> None:
        # Without a width argparse asks `shutil`, which imports all compression modules at every start.
        super().__init__(prog, width=_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap the lines of a text; a row of the exit codes goes on below its meaning."""
        import textwrap  # only for a help, because it takes time to load

        lines: list[str] = []
        for line in text.split("\n"):
            below = " " * 7 if line.startswith(" ") else ""
            lines += textwrap.wrap(line, width, subsequent_indent=below) or [""]
        return "\n".join(indent + line for line in lines)


def _columns() -> int:
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named) > 0:
        return int(named)
    try:
        return os.get_terminal_size(1).columns or _USUAL_COLUMNS
    except OSError:
        return _USUAL_COLUMNS


class _Parser(argparse.ArgumentParser):
    """A parser whose errors suggest the word that was probably meant."""

    examples: Sequence[str] = ()
    """Command lines that the help ends with."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            hint = suggestion(str(value), known) or f" (choose from {', '.join(known)})"
            raise argparse.ArgumentError(action, f"invalid choice: {str(value)!r}{hint}")


def suggestion(given: str, known: Iterable[str]) -> str:
    """Return a question about the known word nearest to the given one, to be appended. Empty: none is near."""
    from difflib import get_close_matches  # only after a mistake, because it takes time to load

    near = get_close_matches(given, [*known], n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


class _MainParser(_Parser):
    """The parser of the whole command line, whose help lists the subcommands by their groups."""

    subcommands: "argparse._SubParsersAction[_Parser] | None" = None

    def format_help(self) -> str:
        """Return the help of the whole command line."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, [*self._actions], self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        shown = {} if self.subcommands is None else {each.dest: each for each in self.subcommands._choices_actions}
        for title, names in GROUPS.items():
            formatter.start_section(title)
            formatter.add_arguments([shown[name] for name in names if name in shown])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([action for action in self._actions if action.option_strings])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


class Subcommands:
    """The parser, to which subcommands are added."""

    def __init__(self, cockpit: Run) -> None:
        self.parser = _MainParser(prog="whisper-tui", description=_DESCRIPTION, epilog=EPILOG, formatter_class=_Help)
        self.parser.add_argument("--version", action="version", version=f"whisper-tui {__version__}")
        add_directory_options(self.parser, default=None)
        self.parser.set_defaults(run=cockpit)
        self._verbs = self.parser.add_subparsers(metavar="SUBCOMMAND", dest="verb", parser_class=_Parser)
        self.parser.subcommands = self._verbs

    def parse(self, arguments: Sequence[str]) -> Options:
        """Parse a command line. Raises `SystemExit` for `--help` and wrong use."""
        verb = verb_of(arguments)
        if verb and not verb.startswith("-") and verb not in self._verbs.choices:
            known = [name for names in GROUPS.values() for name in names]
            hint = suggestion(verb, known) or "; whisper-tui --help lists them"
            self.parser.error(f"there is no subcommand {verb!r}{hint}")
        options, rest = self.parser.parse_known_args(arguments)
        # argparse before Python 3.13 takes an optional word for missing if an option stands between it and the word
        # before: `exec TICKET --home DIR TEXT`, which is how hooks write it.
        if options.verb == "exec" and options.label is None and len(rest) == 1 and not rest[0].startswith("-"):
            options.label = rest.pop()
        # The same for `undo 7 --but notes.txt`.
        if hasattr(options, "paths") and not any(word.startswith("-") for word in rest):
            options.paths, rest = [*options.paths, *rest], []
        if rest:
            used = self._verbs.choices.get(options.verb, self.parser)
            known = [option for action in used._actions for option in action.option_strings]
            hint = suggestion(rest[0], known) if rest[0].startswith("-") else ""
            used.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
        return options

    def add(
        self, name: str, sentence: str, run: Run, *, details: str = "", examples: Sequence[str] = ()
    ) -> argparse.ArgumentParser:
        """Add a subcommand. `sentence` says what it does; `details` follows it in its own help, `examples` end it."""
        text = f"{sentence[:1].upper()}{sentence[1:]}." + (f" {details}" if details else "")
        lines = [f"whisper-tui {example}" for example in examples]
        epilog = "\n".join(("examples:", *(f"  {line}" for line in lines), "", EPILOG)) if examples else EPILOG
        parser = self._verbs.add_parser(name, help=sentence, description=text, epilog=epilog, formatter_class=_Help)
        parser.examples = lines
        add_directory_options(parser, default=argparse.SUPPRESS)
        if name in ON_HOSTS:
            add_host_option(parser, default=None)
        parser.set_defaults(run=run)
        return parser


_MINUTES = {"s": 1 / 60, "m": 1.0, "h": 60.0, "d": 1440.0}


def minutes(word: str) -> float:
    """Return the minutes of a time like `30`, `90m`, `2h` or `1d`. Raises `ValueError`."""
    number, unit = (word[:-1], word[-1]) if word[-1:] in _MINUTES else (word, "m")
    return float(number) * _MINUTES[unit]


def moment(word: str) -> float:
    """Return the last time, in seconds since the epoch, that is called `14:00`, or so long ago as `2h`.

    Raises `ValueError`.
    """
    now = time.time()
    if ":" not in word:
        return now - minutes(word) * 60
    hour, minute = time.strptime(word, "%H:%M")[3:5]
    today = time.localtime(now)
    found = time.mktime((*today[:3], hour, minute, 0, 0, 0, -1))
    return found if found <= now else time.mktime((*today[:2], today[2] - 1, hour, minute, 0, 0, 0, -1))


def check_minutes(given: float | None) -> None:
    """Raise `InvalidRequest` unless a time is positive and has an end. None: none was given."""
    if given is not None and not 0 < given < float("inf"):
        raise InvalidRequest(f"--for must be more than 0 minutes, not {given:g}")


def verb_of(arguments: Sequence[str]) -> str:
    """Return the subcommand that these arguments name. Empty: none, or only the full parser can tell."""
    rest = list(arguments)
    while rest and rest[0] in _PLACES:
        del rest[: 1 + _PLACES[rest[0]]]
    return rest[0] if rest else ""


def add_directory_options(parser: argparse.ArgumentParser, default: object) -> None:
    """Declare the options that choose the instance."""
    parser.add_argument(
        "--home",
        metavar="DIR",
        default=default,
        help="keep configuration, state and socket below DIR (also, where no agent starts it: WHISPER_TUI_HOME)",
    )
    # Hidden: `install` writes it into clients' files, so that a project's variables cannot move the directories.
    parser.add_argument("--directories", nargs=3, default=default, help=argparse.SUPPRESS)


def add_action(actions: Any, name: str, sentence: str, run: Run) -> argparse.ArgumentParser:
    """Declare one action of a subcommand, and return its parser. `actions`: what `add_subparsers` has returned."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=sentence, description=f"{sentence[:1].upper()}{sentence[1:]}."
    )
    add_directory_options(parser, default=argparse.SUPPRESS)
    parser.set_defaults(run=run)
    return parser


def add_host_option(parser: argparse.ArgumentParser, default: object) -> None:
    """Declare the option that names another machine."""
    parser.add_argument(
        "--host",
        dest="at_host",
        metavar="HOST",
        default=default,
        help="on another machine, by ssh: a name from [hosts] or one that ssh knows, or `all`",
    )


def home_options(options: Options) -> list[str]:
    """The options that chose the directories, as words."""
    if options.directories:
        return ["--directories", *options.directories]
    return [] if options.home is None else ["--home", options.home]


def without_home(given: Sequence[str]) -> list[str]:
    """Return a command line without the options that choose the directories."""
    words = list(given)
    for at in range(len(words) - 1, -1, -1):
        if words[at] in _PLACES:
            del words[at : at + 1 + _PLACES[words[at]]]
        elif words[at].startswith("--home="):
            del words[at]
    return words


def home_of(options: Options) -> "Directories":
    """The directories that the options and the environment choose. Raises `BadConfiguration`."""
    return home_at(home_options(options))


def home_for_agents(options: Options) -> "Directories":
    """Return the directories for a program that an agent starts. Its environment cannot choose them.

    Raises `BadConfiguration`.
    """
    return home_at(home_options(options), of_agents(os.environ))


@contextmanager
def supervisor_of(options: Options, *, start: bool = True) -> Iterator[LightClient]:
    """Connect to the supervisor that the options choose; `start` one if none runs.

    Raises `WhisperError`, and `Unavailable` if none runs and `start` is false.
    """
    places = home_options(options)
    # The quick connection avoids importing `socket` and `pathlib`; it gives up where it cannot be sure.
    connection = connect(places)
    with (
        LightClient(connection, _say_that_it_waits)
        if connection is not None
        else wire.light_client(home_at(places), start=start, waiting=_say_that_it_waits) as supervisor
    ):
        yield supervisor


def _say_that_it_waits() -> None:
    complain("still waiting for the supervisor, which does not answer: it is stopped (SIGSTOP) or very busy")


@contextmanager
def reader_of(options: Options) -> Iterator[LightClient | None]:
    """Connect like `supervisor_of`, for a subcommand that only reads.

    None: no supervisor has ever run for these directories, and none is started only to say so.
    """
    places = home_options(options)
    connection = connect(places)
    if connection is None:
        from pathlib import Path

        home = home_at(places)
        if not (Path(home.state) / "journal.sqlite").exists():
            from whisper_tui.config import load

            load(home)  # A broken configuration is reported as by the supervisor that would be started.
            yield None
            return
    with (
        LightClient(connection, _say_that_it_waits)
        if connection is not None
        else wire.light_client(home_at(places), waiting=_say_that_it_waits) as supervisor
    ):
        yield supervisor


def launcher() -> list[str]:
    """The words that start this program again, from anywhere, as a client's settings have them."""
    # Clients permit `exec` by these words, which an earlier version has written otherwise.
    if isolated := start_of_this_process():
        return isolated
    started = os.path.abspath(sys.argv[0])  # noqa: PTH100  pathlib takes longer than Python to load
    if os.path.basename(started) == "__main__.py" or not os.access(started, os.X_OK):  # noqa: PTH119
        return [sys.executable, "-m", "whisper_tui"]
    return [started]


def how_to_install(extra: str) -> str:
    """Return the command that adds an extra to this installation."""
    # From the directory it was installed from, never by name: anybody could register that name in the index.
    import shlex
    from importlib.util import find_spec

    folder, editable = _source()
    option = "-e " if editable else ""
    python = shlex.quote(sys.executable)
    # Environments that uv has made have no pip of their own.
    pip = f"{python} -m pip install" if find_spec("pip") is not None else f"uv pip install --python {python}"
    install = f"{pip} {option}"
    if folder is None:
        return f"In a checkout of whisper_tui: {install}'.[{extra}]'"
    return f"Run: {install}{shlex.quote(f'{folder}[{extra}]')}"


def _source() -> "tuple[Path | None, bool]":
    """Return the directory that was installed, if it still exists, and True if it is an editable installation."""
    # Loaded here: most subcommands never give this advice.
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    try:
        about = json.loads(distribution("whisper-tui").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None, False
    url = urlsplit(str(about.get("url", "")))
    folder = Path(unquote(url.path))
    if url.scheme != "file" or not (folder / "pyproject.toml").is_file():
        return None, False
    return folder, bool(about.get("dir_info", {}).get("editable"))


# The fastest connection, for programs that agents and scripts start with every command. `places` names the directories
# as options do: nothing, `--home DIR` or `--directories CONFIG STATE RUNTIME`. `environ` is the environment that may
# say where they are if the options do not.


def of_agents(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the environment that may choose directories for a program of an agent: `HOME` alone."""
    # A project's settings can give an agent any variable. One that moved the directories would send the question to
    # another instance, with rules that the project brings along.
    return {"HOME": environ["HOME"]} if environ.get("HOME") else {}


def connect(places: Sequence[str], environ: Mapping[str, str] = os.environ) -> "Connection | None":
    """Connect to the running supervisor. None: none runs, or only the slower way can tell. Raises nothing."""
    runtime = quick_runtime(places, environ)
    return connect_quickly(runtime) if runtime is not None else None


def connect_running(places: Sequence[str], environ: Mapping[str, str] = os.environ) -> "Connection":
    """Connect to the running supervisor, and start none. Raises `WhisperError`."""
    connection = connect(places, environ)
    if connection is None:
        from whisper_tui.wire import rendezvous

        connection = rendezvous.connect(home_at(places, environ))
    if connection is None:
        raise Unavailable("no supervisor runs")
    return connection


def reach(places: Sequence[str], environ: Mapping[str, str] = os.environ) -> "Connection":
    """Connect to the supervisor, and start one if none runs. Raises `WhisperError`."""
    connection = connect(places, environ)
    if connection is not None:
        return connection
    from whisper_tui.wire import rendezvous

    return rendezvous.reach(home_at(places, environ), for_agent=True)


def reach_again(places: Sequence[str], environ: Mapping[str, str] = os.environ) -> "Connection | None":
    """Connect again after a lost connection. None: the supervisor was stopped on purpose."""
    # A human who stopped it decides when it starts again, not a command that lost its connection.
    from whisper_tui.wire import rendezvous

    home = home_at(places, environ)
    return rendezvous.connect(home) if rendezvous.stopped_on_purpose(home) else rendezvous.reach(home, for_agent=True)


def home_at(places: Sequence[str], environ: Mapping[str, str] = os.environ) -> "Directories":
    """Return the directories that these options choose. Raises `BadConfiguration`."""
    from pathlib import Path

    from whisper_tui.config import find_directories
    from whisper_tui.system.state_directory import Directories

    if len(places) == 4:
        return Directories(*map(Path, places[1:]))
    return find_directories(places[1] if places else None, environ)
