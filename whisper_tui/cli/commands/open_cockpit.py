"""The cockpit: in this terminal, as plain lines (`watch`), in a browser (`serve`), and over scripted calls (`demo`).

Also over other machines (`attach`), and whatever leads to them.
"""

import os
import sys

from whisper_tui.cli.subcommand import DONE, HERE, Options, Subcommands, home_of
from whisper_tui.model.errors import InvalidRequest, Unavailable
from whisper_tui.wire.protocol import DIAL

PIECE = 1 << 16


def open_cockpit_here(options: Options) -> int:
    """Open the cockpit until the human leaves it. Running commands continue."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequest(
            "the cockpit needs a terminal", hint="whisper-tui --help shows the subcommands that work without one"
        )
    if os.environ.get("TERM", "") in {"", "dumb"}:
        sys.stderr.write("TERM says that this terminal cannot show a full screen; this is `whisper-tui watch`.\n")
        return _follow(options, asks=True)
    home = home_of(options)
    import gc

    # What is loaded now lives as long as the cockpit, which switches the collector on again once it is drawn.
    gc.disable()
    from whisper_tui.cli.cockpit_launcher import open_cockpit

    return open_cockpit(home)


def add_attach(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    parser = verbs.add(
        "attach",
        "open one cockpit over the supervisors of several machines, by ssh",
        _attach,
        details="Without a HOST it shows this machine and all that the configuration file names under [hosts]. "
        "Calls, rules, history and decisions stay on their machines, which need whisper_tui and an ssh login that "
        "asks for no password. A machine that cannot be reached is shown as it was, in grey, and tried again.",
        examples=("attach gpu1 gpu2",),
    )
    parser.add_argument(
        "hosts",
        nargs="*",
        metavar="HOST",
        help=f"a name from [hosts], or one that ssh knows; `{HERE}` is this machine",
    )
    verbs.add(
        DIAL, "connect standard input and output to the supervisor of this machine, for a cockpit elsewhere", _dial
    )


def _attach(options: Options) -> int:
    """Open one cockpit over several machines until the human leaves it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequest(
            "the cockpit needs a terminal", hint="whisper-tui list --host all shows the calls without one"
        )
    home = home_of(options)
    from whisper_tui.cli.cockpit_launcher import open_attached
    from whisper_tui.cli.commands.manage_rules import check_outside

    # The supervisors there see ssh, and not who has started it here.
    check_outside("attach", home)
    return open_attached(home, options.hosts)


def _dial(options: Options) -> int:
    """Pass bytes on in both directions until one end closes."""
    import select

    from whisper_tui.wire.rendezvous import reach

    connection = reach(home_of(options))
    connection.setblocking(True)
    # Whoever is at the other end of ssh waits for each byte, so nothing is collected here.
    routes = {0: connection.fileno(), connection.fileno(): 1}
    while True:
        for source in select.select(list(routes), [], [])[0]:
            piece = os.read(source, PIECE)
            if not piece:
                return DONE
            while piece:
                piece = piece[os.write(routes[source], piece) :]


def add_bring(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "bring",
        "install whisper_tui on another machine, or upgrade it there, by ssh",
        _bring,
        details="It installs the version that runs here into an environment of its own below "
        "~/.local/share/whisper-tui there, with the link ~/.local/bin/whisper-tui, and replaces a running supervisor. "
        "It asks first, says how to undo it, and leaves an older version in place. The machine needs Python from 3.11 "
        "to 3.13.",
    )
    parser.add_argument("host", metavar="HOST", help="a name from [hosts], or one that ssh knows")
    parser.add_argument(
        "--wheels", metavar="DIR", help="send the packages in DIR along, for a machine that reaches no package index"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _bring(options: Options) -> int:
    from whisper_tui.cli.bring import bring

    return bring(options)


def add_watch(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "watch",
        "print what happens as plain lines, and ask about waiting calls; for screen readers",
        _watch,
        details="On a terminal it reads each waiting call out and takes an answer on a line; `help` lists the answers. "
        "In a pipe, or with --read-only, it asks nothing.",
    )
    parser.add_argument("--read-only", action="store_true", help="ask nothing")


def _watch(options: Options) -> int:
    return _follow(options, asks=not options.read_only and sys.stdin.isatty() and sys.stdout.isatty())


def _follow(options: Options, *, asks: bool) -> int:
    """Say what happens in plain lines until the human leaves."""
    import asyncio

    from whisper_tui.cli.standard_streams import while_somebody_reads
    from whisper_tui.cli.watch_session import WatchSession

    asyncio.run(while_somebody_reads(WatchSession(home_of(options), asks=asks).run()))
    return DONE


WEB_PORT = 8717


def add_serve(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "serve",
        "show the cockpit in a browser on this machine",
        _serve,
        details="It prints an address with a token in it; whoever has that address can approve commands. It listens on "
        "127.0.0.1 alone, until Ctrl-C. It needs the extra `web` of the package.",
    )
    parser.add_argument(
        "--port", type=int, default=WEB_PORT, metavar="N", help=f"the port; 0: any that is free (default: {WEB_PORT})"
    )


def _serve(options: Options) -> int:
    if not 0 <= options.port <= 65_535:
        raise InvalidRequest(f"there is no port {options.port}", hint="Name one from 1 to 65535, or 0 for any")
    home = home_of(options)
    try:
        from whisper_tui.cli.web_server import serve_cockpit
    except ModuleNotFoundError as error:
        from whisper_tui.cli.subcommand import how_to_install

        raise Unavailable(f"the module {error.name} is not installed", hint=how_to_install("web")) from error
    import asyncio

    asyncio.run(serve_cockpit(home, options.port))
    return DONE


def add_demo(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    verbs.add(
        "demo",
        "try it: scripted agents submit real commands in a temporary workspace",
        _demo,
        details="Without a terminal it prints a scripted session. It needs no key and no network.",
    )


def _demo(_: Options) -> int:
    from whisper_tui.cli.demo_run import run_demo

    return run_demo()
