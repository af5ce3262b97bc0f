"""`places`: how the places of the configuration are reached, to try one, and to let one go."""

import sys

from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.output_format import place_lines, print_json
from whisper_tui.cli.subcommand import DONE, UNAVAILABLE, Options, Subcommands, supervisor_of
from whisper_tui.model.errors import InvalidRequest


def add_places(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    places = verbs.add(
        "places",
        "list the places where commands run, try one, or let it go",
        _places,
        details="A place is connected when a call first needs it, and let go once nobody has used it for a while. "
        "release lets it go now: the Slurm job, the Pod or the Ray actor that holds it ends, and nothing of it is "
        "billed any more. test connects it, and says what is wrong if that fails.",
        examples=("places", "places test gpu1", "places release batch"),
    )
    places.add_argument("action", nargs="?", choices=("list", "test", "release"), default="list", help="default: list")
    places.add_argument("name", nargs="?", metavar="NAME", help="of a place, for test and release")
    places.add_argument("--json", action="store_true", help="print them as JSON")


def _places(options: Options) -> int:
    if (options.name is None) != (options.action == "list"):
        raise InvalidRequest(
            "list is about all places" if options.name else f"{options.action} needs the name of a place",
            hint="whisper-tui places lists them",
        )
    with supervisor_of(options) as supervisor:
        if options.name is None:
            found = supervisor.ask("status").get("places", [])
        else:
            connected = options.action == "test"
            found = [supervisor.ask("connect_place", place_name=options.name, by=decider(), connected=connected)]
    if options.json:
        print_json(found)
    else:
        sys.stdout.writelines(f"{line}\n" for line in place_lines(found))
        if not found:
            sys.stdout.write("There are no places: name one in config.toml, as docs/places.md says\n")
    unreached = options.action == "test" and not found[0]["reached"]
    return UNAVAILABLE if unreached else DONE
