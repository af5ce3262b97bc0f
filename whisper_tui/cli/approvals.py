"""`approvals` and `revoke`: what is remembered as approved."""

import sys
import time

from whisper_tui.cli.asking import asking
from whisper_tui.cli.deciding import decider
from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs
from whisper_tui.cli.table import print_table
from whisper_tui.cli.words import age, command_line
from whisper_tui.model.text import visible


def add(verbs: Verbs) -> None:
    """Declare the subcommands."""
    approvals = verbs.add("approvals", "show the remembered approvals that hold", _approvals)
    approvals.add_argument("--json", action="store_true", help="print one array of objects")
    revoke = verbs.add("revoke", "forget a remembered approval", _revoke)
    revoke.add_argument("id", metavar="ID", help="its id, as approvals shows it")


def _approvals(options: Options) -> int:
    with asking(options) as supervisor:
        rows = supervisor.ask("rows", kind="approvals")
    if options.json:
        print_json(rows)
        return 0
    print_table(
        ("ID", "AGE", "USES", "UNTIL", "SESSION", "COMMAND", "DIRECTORY"),
        [
            (
                row["id"],
                age(time.time() - row["granted_at"]),
                str(row["uses"]) + (f" of {row['most_uses']}" if row["most_uses"] else ""),
                time.strftime("%H:%M:%S", time.localtime(row["until"])) if row["until"] else "its session ends",
                visible(row["session"]),
                f"{command_line(row['prefix'])} …" if row["prefix"] else command_line(row["command"]),
                visible((row["directory"] or "anywhere") if row["prefix"] else row["cwd"]),
            )
            for row in rows
        ],
    )
    return 0


def _revoke(options: Options) -> int:
    with asking(options) as supervisor:
        supervisor.ask("revoke", grant_id=options.id, by=decider())
    sys.stdout.write(f"Revoked {options.id}\n")
    return 0
