"""`list`, `ps` and `history`: many calls, one line each."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from whisper_tui.cli.asking import asking
from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.cli.table import print_table
from whisper_tui.cli.words import age, cannot_work, command_line, gravest, outcome, state
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.text import visible

Row = dict[str, Any]
Lines = Iterator[tuple[str, ...]]


def add(verbs: Verbs) -> None:
    """Declare the subcommands."""
    listed = verbs.add("list", "show the calls that wait for a human, are queued or run", _list)
    listed.add_argument("--json", action="store_true", help="print one array of objects")
    running = verbs.add("ps", "show what runs, and what commands have left behind in the background", _ps)
    running.add_argument("--json", action="store_true", help="print one array of objects")
    history = verbs.add("history", "show earlier calls, newest first", _history)
    history.add_argument(
        "action",
        nargs="?",
        choices=("verify", "refused", "rules"),
        help="verify: follow the journal's chain instead; refused: show who tried to decide and may not; "
        "rules: show how the files of rules changed, and who trusted that",
    )
    history.add_argument("--head", metavar="END", help="with verify: the end that was printed before")
    history.add_argument("--limit", type=int, default=50, metavar="N", help="at most N calls (default: 50)")
    history.add_argument("--session", metavar="NAME", help="only calls of the sessions with this name or id")
    history.add_argument("--text", default="", metavar="TEXT", help="only calls that mention this text")
    history.add_argument("--json", action="store_true", help="print one array of objects")


def _list(options: Options) -> int:
    with asking(options) as supervisor:
        status = supervisor.ask("status")
        rows = supervisor.ask("rows", kind="list")
    if status["problem"] is not None:
        sys.stderr.write(f"whisper-tui: {cannot_work(status['problem'])}\n")
    for sentence in status["unguarded"]:
        sys.stderr.write(f"whisper-tui: {visible(sentence)}\n")
    if any(row["state"] == "queued" for row in rows) and status["paused_since"] is None and status.get("busy"):
        sys.stderr.write(f"whisper-tui: queued commands wait for a worker: {status['busy']}\n")
    return _print(options, ("ID", "STATE", "AGE", "RISK", "SESSION", "COMMAND", "DESCRIPTION"), _listed, rows)


def _ps(options: Options) -> int:
    return _show(options, ("ID", "PID", "STATE", "AGE", "SESSION", "COMMAND"), _processes, kind="ps")


def _history(options: Options) -> int:
    if options.action == "verify":
        from whisper_tui.cli.verify import verify

        return verify(home_of(options), options.head, as_json=options.json)
    if options.head is not None:
        raise InvalidRequest("--head belongs to history verify", hint="whisper-tui history verify --head END")
    if options.limit < 1:
        raise InvalidRequest(f"--limit must be at least 1, not {options.limit}")
    if options.action is not None:
        from whisper_tui.cli.refused import notices

        return notices(home_of(options), options.action, options.limit, as_json=options.json)
    headings = ("ID", "OUTCOME", "AGE", "RISK", "SESSION", "COMMAND", "DESCRIPTION")
    chosen = {"limit": options.limit, "session": options.session, "text": options.text}
    return _show(options, headings, _past, kind="history", **chosen)


def _show(options: Options, headings: tuple[str, ...], lines: Callable[[list[Row]], Lines], **query: Any) -> int:
    with asking(options) as supervisor:
        rows = supervisor.ask("rows", **query)
    return _print(options, headings, lines, rows)


def _print(options: Options, headings: tuple[str, ...], lines: Callable[[list[Row]], Lines], rows: list[Row]) -> int:
    if options.json:
        print_json(rows)
    else:
        print_table(headings, lines(rows))
    return 0


def _listed(rows: list[Row]) -> Lines:
    for row in rows:
        yield row["id"], state(row), _age(row), gravest(row), *_words(row)


def _processes(rows: list[Row]) -> Lines:
    for row in rows:
        if row["state"] != "ended":
            pid = str(row["pid"] or "")
            yield row["id"], pid, state(row), _age(row), visible(row["session"]), _command(row)
        for process in row["background"]:
            if process["alive"]:
                command = visible(process["command"])
                yield row["id"], str(process["pid"]), "background", _age(row), visible(row["session"]), command


def _past(rows: list[Row]) -> Lines:
    for row in rows:
        yield row["id"], outcome(row), _age(row), gravest(row), *_words(row)


def _words(row: Row) -> tuple[str, str, str]:
    return visible(row["session"]), _command(row), visible(row["description"])


def _age(row: Row) -> str:
    return age(time.time() - row["since"])


def _command(row: Row) -> str:
    return command_line(row["command"]) + (" (edited)" if row["asked"] else "")
