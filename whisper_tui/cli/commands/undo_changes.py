"""`undo`: undoes what one call has changed, or what several have, as one plan; or makes it again."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.commands.preview_calls import SIGNS, changes_of, print_changes
from whisper_tui.cli.commands.review_changes import changed_rows
from whisper_tui.cli.output_format import print_json, styled_diff
from whisper_tui.cli.subcommand import DONE, REFUSED, Options, Subcommands, complain, moment, supervisor_of
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import count
from whisper_tui.system.host_files import named_path

if TYPE_CHECKING:
    from whisper_tui.wire.light_client import LightClient

_VERBS = (
    ("undo", "undo what calls have changed, as far as it was kept"),
    ("revert", "another name of undo"),
)
_NOT_KEPT = "cannot be undone: "
MOST_NAMED = 200
"""Files of a plan that are printed; `--json` prints a thousand."""


def add_undo(verbs: Subcommands) -> None:
    """Declare the subcommand and its other name."""
    for verb, about in _VERBS:
        _add(verbs, verb, about)


def _add(verbs: Subcommands, verb: str, about: str) -> None:
    undo = verbs.add(
        verb,
        about,
        _undo,
        details="Changes of a command are kept if they were applied from a preview, if the call was approved with "
        "--undoable, and by default if it had a severe risk. Of one call all of them are undone, or all below the "
        "named paths, which begin in the directory of the call; if a file is no longer as it was left, nothing is "
        "done. Several calls (ID,ID or --session, --since, --unasked) are undone as one plan, the newest first, which "
        "is shown before; what somebody else has changed since is left out and named. The agents are told with their "
        "next calls, unless their sessions are over.",
        examples=(f"{verb} 7", f"{verb} 7 --but notes.txt", f"{verb} --session shop --since 14:00 --except 12 --diff"),
    )
    undo.add_argument("id", metavar="ID", nargs="?", help="number of the call, or of several: 7,9,12")
    undo.add_argument("paths", nargs="*", metavar="PATH", help="undo only these paths and what is below them")
    undo.add_argument("--session", metavar="SESSION", help="undo the calls of this session, by its name or id")
    undo.add_argument("--since", type=moment, metavar="TIME", help="undo the calls since 14:00, or so long ago: 2h, 1d")
    undo.add_argument("--unasked", action="store_true", help="undo what was changed unasked since the last review")
    undo.add_argument("--except", dest="without", metavar="ID", nargs="+", default=[], help="but not these calls")
    undo.add_argument("--but", action="store_true", help="undo all but these paths")
    undo.add_argument("--redo", action="store_true", help="redo changes that were undone")
    undo.add_argument("--diff", action="store_true", help="print the differences in the contents of the files")
    undo.add_argument("--dry-run", action="store_true", help="only show what would be undone")
    undo.add_argument("--quiet", action="store_true", help="do not tell the agents")
    undo.add_argument("--yes", action="store_true", help="do not ask")
    undo.add_argument("--json", action="store_true", help="print the plan of several calls, and what was done")


def _undo(options: Options) -> int:
    chooses = bool(options.session or options.since is not None or options.unasked)
    if not chooses and options.id is None:
        raise InvalidRequest("undo needs a call", hint="Name one, or use --session, --since or --unasked")
    several = chooses or "," in options.id
    if several and options.but:
        raise InvalidRequest("--but is about one call", hint="--except ID leaves out calls")
    if not several and (options.without or options.diff or options.json):
        raise InvalidRequest("--except, --diff and --json are about several calls", hint="preview ID --diff shows one")
    with supervisor_of(options) as supervisor:
        if not several:
            return _undo_one(supervisor, options)
        paths = [options.id, *options.paths] if chooses and options.id is not None else options.paths
        return _undo_several(supervisor, _chosen(supervisor, options, chooses=chooses), paths, options)


def _undo_one(supervisor: "LightClient", options: Options) -> int:
    record = supervisor.ask("record", call_id=options.id)
    direction = "redo" if options.redo else "undo"
    more = {"all_but": True} if options.but else {}
    if record["call"]["spec"]["command"]["kind"] == "edits":
        if options.paths or options.but:
            raise InvalidRequest("an edit is undone whole", hint=f"whisper-tui undo {options.id}")
    else:
        if options.but and not options.paths:
            raise InvalidRequest("--but needs paths", hint=f"whisper-tui undo {options.id} --but PATH")
        paths = [named_path(path, record["call"]["spec"]["cwd"]) for path in options.paths]
        changes = [
            change
            for change in changes_of(supervisor, options.id)
            if (not paths or _is_named(change, paths) != options.but) and change["taken_back"] == options.redo
        ]
        sys.stdout.write("These changes will be redone:\n" if options.redo else "These changes will be undone:\n")
        print_changes(changes)
    if options.dry_run:
        return DONE
    if record["call"]["spec"]["command"]["kind"] != "edits":
        confirm(options, f"whisper-tui undo {options.id} asks again")
    supervisor.ask(
        "undo",
        call_id=options.id,
        paths=options.paths,
        direction=direction,
        by=decider(),
        **more,
        **({"tell": False} if options.quiet else {}),
    )
    sys.stdout.write(f"Call {visible(options.id)}: {'redone' if options.redo else 'undone'}\n")
    return DONE


def confirm(options: Options, again: str, done: str = "undone") -> None:
    """Ask on a terminal. Raises `Refused` with the hint `again` unless it is confirmed. `done`: what would be."""
    if options.yes:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused(f"nothing was {done}: there is no terminal to ask on", hint="Use --yes")
    sys.stdout.write("Go on? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused(f"nothing was {done}", hint=again)


def _is_named(change: dict[str, Any], paths: list[str]) -> bool:
    return any(change["path"] == path or change["path"].startswith(f"{path}/") for path in paths)


def _chosen(supervisor: "LightClient", options: Options, *, chooses: bool) -> list[str]:
    """Return the ids of the chosen calls."""
    if not chooses:
        ids = [word for word in options.id.split(",") if word]
    else:
        kind = "undone" if options.redo else "review" if options.unasked else "changes"
        rows = changed_rows(supervisor, kind, options.session, options.since)
        for row in rows if kind == "changes" else ():
            if row["not_undoable_because"] and row["id"] not in options.without:
                complain(f"call {row['id']} {_NOT_KEPT}{row['not_undoable_because']}")
        ids = [row["id"] for row in rows if options.redo or not row["not_undoable_because"]]
    found = [id_ for id_ in ids if id_ not in options.without]
    if not found:
        raise Refused(
            f"there is nothing to {'redo' if options.redo else 'undo'}", hint="whisper-tui review --all lists"
        )
    return found


def _undo_several(supervisor: "LightClient", ids: list[str], paths: list[str], options: Options) -> int:
    direction, word = ("redo", "redone") if options.redo else ("undo", "undone")
    order = {
        "call_ids": ids,
        "paths": [named_path(path, str(Path.cwd())) for path in paths],
        "direction": direction,
        "tell": not options.quiet,
    }
    foretold = {**order, "dry_run": True, "with_versions": options.diff}
    plan = supervisor.ask("undo_calls", order=foretold, by=decider())
    if not options.json:
        _print_plan(plan, word)
    if options.dry_run or not plan["calls"]:
        if options.json:
            print_json(plan)
        return DONE if plan["calls"] else REFUSED
    confirm(options, "The same command asks again")
    done = supervisor.ask("undo_calls", order=order, by=decider())
    if options.json:
        print_json({**plan, "calls": done["calls"], "left_out": done["left_out"]})
    else:
        sys.stdout.write(f"{count(len(done['calls']), 'call')} {word}: {', '.join(map(visible, done['calls']))}\n")
        if done["left_out"] != plan["left_out"]:
            _print_left(done["left_out"])
    return REFUSED if done["left_out"] else DONE


def _print_plan(plan: dict[str, Any], word: str) -> None:
    calls = plan["calls"]
    sys.stdout.write(f"{count(len(calls), 'call')} will be {word}, in this order: {', '.join(map(visible, calls))}\n")
    for file in plan["files"][:MOST_NAMED]:
        lines = "" if file["added"] is None else f"  +{file['added']} −{file['removed']}"
        mark = "/" if file["kind"] == "directory" else ""
        sys.stdout.write(f"{SIGNS[file['action']]} {visible(file['path'])}{mark}{lines}\n")
        if file["versions"] is not None:
            _print_diff(file)
    if (more := plan["total"] - MOST_NAMED) > 0:
        sys.stdout.write(f"and {more:,} more\n")
    _print_left(plan["left_out"])


def _print_left(left_out: list[dict[str, Any]]) -> None:
    for each in left_out:
        what = ", ".join(map(visible, each["paths"])) if each["paths"] else "all of it"
        sys.stdout.write(f"! left out of call {visible(each['call_id'])}: {what}: {visible(each['why'])}\n")


def _print_diff(file: dict[str, Any]) -> None:
    from difflib import unified_diff

    versions, path = file["versions"], visible(file["path"])
    if versions["not_shown"]:
        sys.stdout.write(f"  not shown: {visible(versions['not_shown'])}\n")
        return
    old, new = ((versions[side] or "").splitlines() for side in ("old", "new"))
    for line in unified_diff(old, new, path, path, lineterm=""):
        sys.stdout.write(f"{styled_diff(visible(line))}\n")
