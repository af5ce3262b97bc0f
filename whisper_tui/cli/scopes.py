"""How far an approval from the command line reaches, and what it would have let through before."""

import argparse
import shlex
from collections import Counter
from typing import Any

from whisper_tui.cli.parsing import Options
from whisper_tui.cli.words import command_line, masked_line
from whisper_tui.model.errors import InvalidRequest
from whisper_tui.wire.asking import Asking

SHOWN = 10
"""Different commands that are shown of those that an approval would have let through."""

_SAME_FILES = "It holds only while the scripts of the workspace that it runs are the same."

Scope = str | dict[str, Any] | None
"""As JSON. None: this call alone."""


def add_scope(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a scope."""
    scope = parser.add_argument_group("how far it reaches (without one of these: this call alone)")
    scope.add_argument(
        "--session",
        action="store_true",
        help="this exact command in this directory, for the session; scripts of the workspace must stay the same",
    )
    scope.add_argument(
        "--prefix", nargs="+", metavar="WORD", help="every command of the session that begins so; show offers some"
    )
    scope.add_argument("--within", metavar="DIR", help="with --prefix: only in this directory and below")
    scope.add_argument(
        "--save", choices=("project", "user"), help="with --prefix: as a rule, for this workspace or everywhere"
    )
    scope.add_argument("--for", dest="minutes", type=float, metavar="MINUTES", help="only so long")
    scope.add_argument("--times", type=int, metavar="N", help="only for so many more calls")
    scope.add_argument("--dry-run", action="store_true", help="only show which earlier calls it would have let through")


def scope_of(options: Options) -> Scope:
    """What the options choose. Raises `InvalidRequest` for what does not go together."""
    _check(options)
    if options.prefix is None:
        limits = {"uses": options.times, "minutes": options.minutes}
        if any(limit is not None for limit in limits.values()):
            return {"kind": "exact", **limits}
        return "exact_for_session" if options.session else None
    words = _words(options.prefix)
    if options.save is not None:
        return {"kind": "rule", "words": words, "where": options.save, "minutes": options.minutes}
    return {
        "kind": "prefix",
        "words": words,
        "directory": options.within,
        "uses": options.times,
        "minutes": options.minutes,
    }


def _check(options: Options) -> None:
    if options.times is not None and options.times < 1:
        raise InvalidRequest(f"--times must be at least 1, not {options.times}")
    if options.minutes is not None and not 0 < options.minutes < float("inf"):
        raise InvalidRequest(f"--for must be more than 0 minutes, not {options.minutes:g}")
    if options.save is not None and options.prefix is None:
        raise InvalidRequest(
            "a rule needs the beginning of the commands that it is for",
            hint=f"Name it with --prefix; whisper-tui show {options.ids[0]} offers some",
        )
    if options.save is not None and options.times is not None:
        raise InvalidRequest("a saved rule cannot be limited to a number of calls", hint="Use --for, or no --save")
    if options.within is not None and (options.prefix is None or options.save is not None):
        raise InvalidRequest("--within is about a prefix for the session", hint="Use it with --prefix, without --save")
    if options.session and options.save is not None:
        raise InvalidRequest("it is either for the session or saved as a rule", hint="Leave out --session or --save")
    if options.dry_run and not (options.session or options.prefix or options.minutes or options.times):
        raise InvalidRequest("--dry-run tries what is to be remembered", hint="Say it with --session or --prefix")


def _words(given: list[str]) -> list[str]:
    """The words of a prefix; one argument with blanks in it is split like a line for a shell."""
    if len(given) > 1 or not any(blank in given[0] for blank in " \t"):
        return given
    try:
        return shlex.split(given[0])
    except ValueError as error:
        raise InvalidRequest(f"--prefix cannot be split into words: {error}", hint="Check its quotes") from error


def covered(supervisor: Asking, call_id: str, scope: Scope, edited: dict[str, Any] | None) -> list[str]:
    """Which of the newest calls it would have let through, in lines. Raises `Refused` if it may not be given."""
    found = supervisor.ask("would_cover", call_id=call_id, scope=scope, edited=edited)
    ids = set(found["calls"])
    lines = [f"It would have let through {len(ids)} of the last {found['looked_at']} calls{':' if ids else ''}"]
    rows = supervisor.ask("rows", kind="history", limit=max(1, found["looked_at"])) if ids else []
    counted = Counter(masked_line(row["command"]) for row in rows if row["id"] in ids)
    lines += [f"  {times:>4} x  {command}" for command, times in counted.most_common(SHOWN)]
    if len(counted) > SHOWN:
        lines.append(f"  and {len(counted) - SHOWN} other commands")
    return lines


def meant(scope: Scope) -> str:
    """What is remembered, in one sentence."""
    if scope is None or isinstance(scope, str):
        return f"The same command in the same directory is allowed for the session. {_SAME_FILES}"
    minutes = f" for {scope['minutes']:g} minutes" if scope["minutes"] else ""
    times = f", {scope['uses']} more times" if scope.get("uses") else ""
    if scope["kind"] == "exact":
        return f"The same command in the same directory is allowed{minutes or ' for the session'}{times}. {_SAME_FILES}"
    shown = command_line(scope["words"])
    if scope["kind"] == "rule":
        where = "in this workspace" if scope["where"] == "project" else "everywhere"
        return f"A rule allows what begins with {shown} {where}{minutes}."
    place = f" in {command_line([scope['directory']])}" if scope["directory"] else ""
    return f"What begins with {shown} is allowed{place}{minutes or ' for the session'}{times}."
