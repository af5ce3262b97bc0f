"""`review`: what calls have changed, those that nobody was asked about since a human has looked last, or all."""

import sys
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.output_format import print_json
from whisper_tui.cli.subcommand import DONE, Options, Subcommands, moment, supervisor_of
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.text import visible

if TYPE_CHECKING:
    from whisper_tui.wire.light_client import LightClient

Row = dict[str, Any]
_UNASKED = " unasked since the last review"


def add_review(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    review = verbs.add(
        "review",
        "show what was changed unasked since you last looked",
        _review,
        details="These are calls that rules, standing approvals or their effects allowed, and that changed files. "
        "--done marks them as seen; undo undoes them. With --all these are all of the last 1,000 calls that changed "
        "files, also those that you approved.",
        examples=("review --files", "review --done", "review --all --session shop --since 14:00"),
    )
    review.add_argument("--all", action="store_true", help="also those that were approved, and those seen before")
    review.add_argument("--session", metavar="SESSION", help="only those of this session, by its name or id")
    review.add_argument("--since", type=moment, metavar="TIME", help="only those since 14:00, or so long ago: 2h, 1d")
    review.add_argument("--files", action="store_true", help="list the files, and the calls that changed each")
    review.add_argument("--done", action="store_true", help="mark all of them as seen")
    review.add_argument("--json", action="store_true", help="print the calls as show --json does")


def _review(options: Options) -> int:
    if options.done and (options.session or options.since or options.all):
        raise InvalidRequest("--done is about all of them", hint="Use it alone")
    with supervisor_of(options) as supervisor:
        rows = changed_rows(supervisor, "changes" if options.all else "review", options.session, options.since)
        if options.json:
            print_json(rows)
        else:
            told = _by_file(rows) if options.files else _by_call(rows, "" if options.all else _UNASKED)
            sys.stdout.writelines(f"{line}\n" for line in told)
        if rows and options.done:
            supervisor.ask("mark_reviewed", until=max(row["since"] for row in rows), by=decider())
            sys.stdout.write("Marked as seen\n")
    return DONE


def changed_rows(supervisor: "LightClient", kind: str, session: str | None, since: float | None) -> list[Row]:
    """Return the rows of calls that changed files, of a session and since a time if these are given."""
    rows = supervisor.ask("rows", kind=kind, session=session)
    return [row for row in rows if since is None or row["since"] >= since]


def _by_call(rows: list[Row], which: str) -> list[str]:
    from whisper_tui.cli.commands.list_calls import words_of
    from whisper_tui.model.preview import ChangedFiles
    from whisper_tui.present.preview_text import changed_text
    from whisper_tui.present.quantities import count, date_and_time

    if not rows:
        return [f"Nothing was changed{which}"]
    lines = [f"{count(len(rows), 'call')} changed files{which or ', or may have'}:"]
    for row in rows:
        when, session = date_and_time(row["since"]), visible(row["session"])
        lines.append(f"{visible(row['id'])}  {when}  {session}  {words_of(row)}")
        if row["changed"] is not None:
            lines.append(f"    {changed_text(ChangedFiles.model_validate(row['changed']), row['cwd'])}")
        if row["not_undoable_because"]:
            lines.append(f"    cannot be undone: {visible(row['not_undoable_because'])}")
    return lines


def _by_file(rows: list[Row]) -> list[str]:
    from whisper_tui.model.preview import ChangedFiles
    from whisper_tui.present.quantities import count

    calls: dict[str, list[str]] = {}
    for row in rows:
        edited = [each["path"] for each in row["edits"]]
        changed = ChangedFiles.model_validate(row["changed"] or {})
        for path in (*edited, *changed.paths):
            calls.setdefault(path, []).append(row["id"])
        if (left := changed.counts.all - len(changed.paths)) > 0:
            calls.setdefault(count(left, "more file"), []).append(row["id"])
    return [f"{visible(path)}  {' '.join(map(visible, ids))}" for path, ids in sorted(calls.items())]
