"""`prune`: remove the output that is older or more than the configuration wants to keep."""

import sys

from whisper_tui.cli.asking import asking
from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs


def add(verbs: Verbs) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "prune",
        "remove recorded output that is older or more than [retention] in the configuration keeps",
        _prune,
        details="The supervisor does it by itself every hour. The files of runs that are not over are never removed, "
        "and the journal is not touched.",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    parser.add_argument("--json", action="store_true", help="print one object")


def _prune(options: Options) -> int:
    with asking(options) as supervisor:
        pruned = supervisor.ask("prune", dry_run=options.dry_run)
    if options.json:
        print_json(pruned)
        return 0
    verb = "Would remove" if options.dry_run else "Removed"
    sys.stdout.write(
        f"{verb} the output of {pruned['runs']:,} runs, {pruned['bytes']:,} bytes on the disk; "
        f"that of {pruned['kept_runs']:,}, {pruned['kept_bytes']:,} bytes, stays\n"
    )
    return 0
