"""`unasked`: how much runs without anybody being asked, and for how long."""

import sys
import time
from typing import TYPE_CHECKING, Any, get_args

from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.output_format import print_json
from whisper_tui.cli.subcommand import DONE, Options, Subcommands, check_minutes, minutes, supervisor_of
from whisper_tui.model.errors import InvalidRequest

if TYPE_CHECKING:
    from whisper_tui.wire.light_client import LightClient

AS_RULES = "rules"
"""The word for what the rules say."""


def add_unasked(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    unasked = verbs.add(
        "unasked",
        "show or set how much runs without asking",
        _unasked,
        details="nothing: every call waits. reading: commands that only read run at once. workspace: also edits of "
        "ordinary files there, and commands that turn out to change nothing else. rules: as your files say. Without "
        "--session and --for it is written into your rules file. What a project or a client asks about is asked in "
        "any case.",
        examples=("unasked workspace --for 2h", "unasked nothing --session s3", "unasked rules"),
    )
    unasked.add_argument("level", nargs="?", choices=("nothing", "reading", "workspace", AS_RULES))
    unasked.add_argument("--session", metavar="SESSION", help="only in this session, like s3")
    unasked.add_argument(
        "--for", dest="minutes", type=minutes, metavar="TIME", help="only for so long: 30 (minutes), 90m, 2h, 1d"
    )
    unasked.add_argument("--json", action="store_true", help="print one object: the levels, by session")


def _unasked(options: Options) -> int:
    if options.level is None and options.minutes is not None:
        raise InvalidRequest("--for needs a level", hint="Name one: nothing, reading or workspace")
    check_minutes(options.minutes)
    with supervisor_of(options) as supervisor:
        if options.level is not None:
            _set(supervisor, options)
        levels = supervisor.ask("status").get("unasked", {})
    if options.json:
        print_json(levels)
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(levels, options))
    return DONE


def _set(supervisor: "LightClient", options: Options) -> None:
    level = None if options.level == AS_RULES else options.level
    if level is None and options.minutes is not None:
        raise InvalidRequest("what your rules say holds without an end", hint="Leave out --for, or name a level")
    until = time.time() + options.minutes * 60 if options.minutes is not None else None
    supervisor.ask("set_unasked", level=level, session_id=options.session, until=until, by=decider())


def _lines(levels: dict[str, dict[str, Any]], options: Options) -> list[str]:
    from whisper_tui.model.call import Unasked, UnaskedLevel
    from whisper_tui.present.unasked_text import MEANING
    from whisper_tui.present.words import until_text

    lines, now = [], time.time()
    shown = {options.session: levels[options.session]} if options.session in levels else levels
    for session_id, said in shown.items():
        level = UnaskedLevel.model_validate(said)
        where = f"session {session_id}" if session_id else "all sessions" if len(levels) == 1 else "all other sessions"
        until = until_text(level.until, now, "")
        lines.append(f"{where}: {level.level}{f' {until}' if until else ''}: {MEANING[level.level]}")
    known = get_args(Unasked)
    now_level = shown.get(options.session or "", {}).get("level")
    if options.level in known and now_level in known and known.index(now_level) < known.index(options.level):
        lines.append("Your files let less run: whisper-tui config and whisper-tui rules list show them")
    return lines
