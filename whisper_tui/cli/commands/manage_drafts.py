"""`draft`: begins drafts of sessions, shows what their commands have changed, and makes that real or drops it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.commands.preview_calls import MOST_PRINTED, PAGE, line_of, print_diffs
from whisper_tui.cli.commands.undo_changes import confirm
from whisper_tui.cli.output_format import print_json
from whisper_tui.cli.subcommand import DONE, REFUSED, Options, Subcommands, add_action, supervisor_of
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count, date_and_time
from whisper_tui.system.host_files import named_path

if TYPE_CHECKING:
    from whisper_tui.wire.light_client import LightClient

_SESSION = "its session, by id, name or workspace (default: the only draft)"


def add_draft(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    parser = verbs.add(
        "draft",
        "let a session work in a private view of its files, and decide about all of it at the end",
        _list,
        details="From the start of a draft on, every command of the session runs at once, without a question, in one "
        "view of the files that nobody else sees. The real files stay as they are until the draft is applied. The "
        "network, services and what goes on in the background wait for a human.",
        examples=("draft start --session s3", "draft show --diff", "draft apply --but notes.txt", "draft drop"),
    )
    parser.set_defaults(json=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    start = add_action(actions, "start", "begin a draft of a session", _start)
    which = start.add_mutually_exclusive_group()
    which.add_argument("--session", metavar="SESSION", help="the session, by its id or name")
    which.add_argument("--project", metavar="DIR", help="the open session in this workspace (default: this directory)")
    show = add_action(actions, "show", "show what a draft would change, by file, and the calls that did it", _show)
    show.add_argument("--session", metavar="SESSION", default="", help=_SESSION)
    show.add_argument("--diff", action="store_true", help="print the differences in the contents of the files")
    show.add_argument("--times", action="store_true", help="also list files of which only the time differs")
    show.add_argument("--json", action="store_true", help="print one object: the draft and all its changes")
    apply = add_action(
        actions, "apply", "make a draft real, or a part of it: all or nothing, and undone by undo", _apply
    )
    apply.add_argument("paths", nargs="*", metavar="PATH", help="only these paths and what is below them")
    apply.add_argument("--session", metavar="SESSION", default="", help=_SESSION)
    apply.add_argument("--but", action="store_true", help="all but these paths; the draft stays")
    apply.add_argument("--call", nargs="+", metavar="ID", default=[], help="only what these calls have changed")
    apply.add_argument("--dry-run", action="store_true", help="only show what would be applied")
    apply.add_argument("--yes", action="store_true", help="do not ask")
    apply.add_argument("--json", action="store_true", help="print one object: what was applied")
    drop = add_action(actions, "drop", "discard a draft with all that it has changed", _drop)
    drop.add_argument("--session", metavar="SESSION", default="", help=_SESSION)
    drop.add_argument("--yes", action="store_true", help="do not ask")
    listing = add_action(actions, "list", "list the drafts", _list)
    listing.add_argument("--json", action="store_true", help="print one array of objects")


def _start(options: Options) -> int:
    session = options.session or str(Path(options.project or ".").resolve())
    with supervisor_of(options) as supervisor:
        draft = supervisor.ask("start_draft", session_id=session, by=decider())
    sys.stdout.write(f"{_named(draft)}: begun. Its commands change nothing real until whisper-tui draft apply\n")
    return DONE


def _list(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        drafts = supervisor.ask("drafts")
    if options.json:
        print_json(drafts)
        return DONE
    for draft in drafts:
        running = f", call {visible(draft['running'])} runs in it" if draft["running"] else ""
        sys.stdout.write(f"{_named(draft)}, since {date_and_time(draft['started_at'])}{running}\n")
    if not drafts:
        sys.stdout.write("There is no draft\n")
    return DONE


def _show(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        pages = list(_pages(supervisor, _session(options)))
        changes = [change for page in pages for change in page["changes"]]
        if options.json:
            print_json({**pages[0], "changes": changes})
            return DONE
        _print(pages[0], changes, times=options.times)
        if options.diff:
            shown = [each["change"] for each in changes if not each["only_time"]]
            session = pages[0]["draft"]["session_id"]
            print_diffs(lambda number: supervisor.ask("draft_versions", session_id=session, number=number), shown)
    return DONE


def _session(options: Options) -> str:
    """Return the session as the supervisor takes it: a workspace may be named from here."""
    word = str(options.session)
    return str(Path(word).resolve()) if "/" in word or word == "." else word


def _pages(supervisor: "LightClient", session: str) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        page = supervisor.ask("draft_page", session_id=session, after=after, limit=PAGE)
        yield page
        after += len(page["changes"])
        if after >= page["total"] or not page["changes"]:
            return


def _print(page: dict[str, Any], changes: list[dict[str, Any]], *, times: bool = False) -> None:
    shown = [each for each in changes if times or not each["only_time"]]
    sys.stdout.write(f"{_named(page['draft'])}: {count(len(shown), 'change')}\n")
    for each in shown[:MOST_PRINTED]:
        calls = f"  by {', '.join(map(visible, each['calls']))}" if each["calls"] else ""
        sys.stdout.write(f"{line_of(each['change'])}{calls}\n")
    if (more := len(shown) - MOST_PRINTED) > 0:
        sys.stdout.write(f"and {more:,} more; --json prints all\n")
    if hidden := len(changes) - len(shown):
        sys.stdout.write(f"Of {count(hidden, 'file')} only the time differs; --times lists them\n")
    for path in page["conflicts"]:
        sys.stdout.write(f"! {visible(path)} changed in the real files since: leave it out with --but\n")


def _apply(options: Options) -> int:
    if options.but and not options.paths:
        raise InvalidRequest("--but needs paths", hint="whisper-tui draft apply --but PATH")
    if options.call and options.paths:
        raise InvalidRequest("--call and paths are not given together", hint="Apply one after the other")
    order = {
        "session_id": _session(options),
        "paths": [named_path(path, str(Path.cwd())) for path in options.paths],
        "all_but": options.but,
        "calls": options.call,
    }
    with supervisor_of(options) as supervisor:
        page = next(_pages(supervisor, order["session_id"]))
        order = {**order, "session_id": page["draft"]["session_id"], "seen": page["draft"]["version"]}
        foretold = supervisor.ask("apply_draft", order={**order, "dry_run": True}, by=decider())
        if not options.json:
            _print_forecast(page, foretold)
        if options.dry_run:
            if options.json:
                print_json(foretold)
            return DONE if foretold["total"] else REFUSED
        confirm(options, "whisper-tui draft apply asks again", "applied")
        done = supervisor.ask("apply_draft", order=order, by=decider())
    if options.json:
        print_json(done)
    else:
        over = "The draft is over" if done["over"] else "The draft goes on"
        undo = f". whisper-tui undo {visible(done['call_id'])} takes it back" if done["call_id"] else ""
        sys.stdout.write(f"Applied: {count(done['total'], 'change')}{undo}. {over}\n")
    return DONE


def _print_forecast(page: dict[str, Any], foretold: dict[str, Any]) -> None:
    calls = f" of {count(len(foretold['calls']), 'call')}" if foretold["calls"] else ""
    sys.stdout.write(f"{_named(page['draft'])}: {count(foretold['total'], 'change')}{calls} will be real\n")
    for path in foretold["paths"]:
        sys.stdout.write(f"{visible(path)}\n")
    if (more := foretold["total"] - len(foretold["paths"])) > 0:
        sys.stdout.write(f"and {more:,} more\n")
    if flagged := page["counts"]["flagged"]:
        sys.stdout.write(
            f"! {count(flagged, 'change')} of the draft to look at first: whisper-tui draft show says why\n"
        )
    if page["counts"]["outside"]:
        sys.stdout.write(f"! {count(page['counts']['outside'], 'change')} of the draft outside the workspace\n")


def _drop(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        page = next(_pages(supervisor, _session(options)))
        sys.stdout.write(f"{_named(page['draft'])}: {count(page['total'], 'change')} will be discarded\n")
        confirm(options, "whisper-tui draft drop asks again", "dropped")
        supervisor.ask("drop_draft", session_id=page["draft"]["session_id"], by=decider())
    sys.stdout.write("Dropped\n")
    return DONE


def _named(draft: dict[str, Any]) -> str:
    return f"Draft of {visible(draft['name'])} ({visible(draft['session_id'])}) in {visible(draft['root'])}"
