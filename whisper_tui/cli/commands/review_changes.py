"""`review`: what calls have changed, those that nobody was asked about since a human has looked last, or all."""

import sys
import time
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.commands.preview_calls import confirm
from whisper_tui.cli.output_format import print_json
from whisper_tui.cli.subcommand import DONE, REFUSED, Options, Subcommands, complain, minutes, supervisor_of
from whisper_tui.model.errors import InvalidRequest, Refused, WhisperError
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
        "--done marks them as seen; --undo undoes them, the newest first. undo undoes one of them, or single "
        "files. With --all these are all of the last 1,000 calls that changed files, also those that you approved.",
        examples=("review --files", "review --done", "review --all --session shop --for 3h --undo --except 12"),
    )
    review.add_argument("--all", action="store_true", help="also those that were approved, and those seen before")
    review.add_argument("--session", metavar="SESSION", help="only those of this session, by its name or id")
    review.add_argument(
        "--for", dest="minutes", type=minutes, metavar="TIME", help="only those of so long: 90m, 2h, 1d"
    )
    review.add_argument("--except", dest="but", metavar="ID", nargs="+", default=[], help="without these calls")
    review.add_argument("--files", action="store_true", help="list the files, and the calls that changed each")
    review.add_argument("--done", action="store_true", help="mark all of them as seen")
    review.add_argument("--undo", action="store_true", help="undo all of them")
    review.add_argument("--yes", action="store_true", help="do not ask")
    review.add_argument("--json", action="store_true", help="print the calls as show --json does")


def _review(options: Options) -> int:
    if options.done and (options.session or options.minutes or options.undo or options.all or options.but):
        raise InvalidRequest("--done is about all of them", hint="Use it alone")
    if options.all and options.undo and not (options.session or options.minutes):
        raise InvalidRequest("--all --undo would undo everything", hint="Add --session SESSION or --for TIME")
    with supervisor_of(options) as supervisor:
        rows = supervisor.ask("rows", kind="changes" if options.all else "review", session=options.session)
        rows = [row for row in rows if row["id"] not in options.but]
        if options.minutes is not None:
            rows = [row for row in rows if row["since"] > time.time() - options.minutes * 60]
        if options.json:
            print_json(rows)
        else:
            told = _by_file(rows) if options.files else _by_call(rows, "" if options.all else _UNASKED)
            sys.stdout.writelines(f"{line}\n" for line in told)
        if not rows:
            return DONE
        if options.undo:
            return _undo(supervisor, rows, options)
        if options.done:
            supervisor.ask("mark_reviewed", until=max(row["since"] for row in rows), by=decider())
            sys.stdout.write("Marked as seen\n")
    return DONE


def _undo(supervisor: "LightClient", rows: list[Row], options: Options) -> int:
    """Take the calls back, the newest first. One that cannot be undone does not keep the others."""
    rows = [row for row in rows if not row["not_undoable_because"]]
    if not rows:
        raise Refused("none of these calls can be undone", hint="whisper-tui show ID says why")
    confirm(options, "whisper-tui review --undo asks again")
    failed = 0
    for row in sorted(rows, key=lambda row: row["since"], reverse=True):
        try:
            supervisor.ask("undo", call_id=row["id"], paths=(), direction="undo", by=decider())
            sys.stdout.write(f"Call {visible(row['id'])}: undone\n")
        except WhisperError as error:
            failed += 1
            complain(f"call {visible(row['id'])} was not undone: {error.sentence()}")
    return REFUSED if failed else DONE


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
