"""`serve`: the cockpit in a browser on this machine, for whoever has the address with its token."""

from whisper_tui.cli.exit_codes import DONE
from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.model.errors import InvalidRequest, Unavailable

PORT = 8717


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "serve",
        "show the cockpit in a browser on this machine",
        _serve,
        details="It prints an address with a token in it; whoever has that address can approve commands. It listens on "
        "127.0.0.1 alone, until Ctrl-C. It needs the extra `web` of the package.",
    )
    parser.add_argument(
        "--port", type=int, default=PORT, metavar="N", help=f"the port; 0: any that is free (default: {PORT})"
    )


def _serve(options: Options) -> int:
    if not 0 <= options.port <= 65_535:
        raise InvalidRequest(f"there is no port {options.port}", hint="Name one from 1 to 65535, or 0 for any")
    home = home_of(options)
    try:
        from whisper_tui.cli.serving import serve_cockpit
    except ModuleNotFoundError as error:
        from whisper_tui.cli.extras import how_to_install

        raise Unavailable(f"the module {error.name} is not installed", hint=how_to_install("web")) from error
    import asyncio

    asyncio.run(serve_cockpit(home, options.port))
    return DONE
