"""From the command line to a subcommand, and from any error to one sentence and an exit code."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import TracebackType

from whisper_tui.cli.standard_streams import FAILS_CLOSED, OutputLost, hold_descriptors, let_go, prepare
from whisper_tui.cli.subcommand import (
    DONE,
    INTERRUPTED,
    ON_HOSTS,
    OUTPUT_LOST,
    PIPE_CLOSED,
    REFUSED,
    UNAVAILABLE,
    WITH_IDS,
    Options,
    Subcommands,
    code_of,
    complain,
    verb_of,
)
from whisper_tui.model.errors import WhisperError

FAMILIES = {
    "whisper_tui.cli.commands.open_cockpit:add_demo": ("demo",),
    "whisper_tui.cli.commands.open_cockpit:add_watch": ("watch",),
    "whisper_tui.cli.commands.open_cockpit:add_attach": ("attach", "dial-stdio"),
    "whisper_tui.cli.commands.open_cockpit:add_bring": ("bring",),
    "whisper_tui.cli.commands.open_cockpit:add_serve": ("serve",),
    "whisper_tui.cli.commands.decide_by_phone:add_phone": ("phone",),
    "whisper_tui.cli.commands.agent_entry:add_mcp": ("mcp",),
    "whisper_tui.cli.commands.agent_entry:add_acp": ("acp",),
    "whisper_tui.cli.commands.agent_entry:add_hook": ("hook", "exec"),
    "whisper_tui.cli.commands.agent_entry:add_executor": ("executor",),
    "whisper_tui.cli.commands.agent_entry:add_gate": ("gate",),
    "whisper_tui.cli.commands.call_tool:add_call": ("call",),
    "whisper_tui.cli.commands.list_calls:add_listing": ("list", "ps", "history"),
    "whisper_tui.cli.commands.list_calls:add_show": ("show",),
    "whisper_tui.cli.commands.approve:add_decisions": ("approve", "deny"),
    "whisper_tui.cli.commands.set_aside:add_aside": ("aside",),
    "whisper_tui.cli.commands.jump_to_agent:add_jump": ("jump",),
    "whisper_tui.cli.commands.preview_calls:add_preview": ("preview",),
    "whisper_tui.cli.commands.undo_changes:add_undo": ("undo", "revert"),
    "whisper_tui.cli.commands.review_changes:add_review": ("review",),
    "whisper_tui.cli.commands.manage_drafts:add_draft": ("draft",),
    "whisper_tui.cli.commands.supervisor_control:add_signal": ("signal", "kill"),
    "whisper_tui.cli.commands.supervisor_control:add_start": ("start",),
    "whisper_tui.cli.commands.logs_export:add_logs": ("logs",),
    "whisper_tui.cli.commands.logs_export:add_export": ("export",),
    "whisper_tui.cli.commands.logs_export:add_story": ("story",),
    "whisper_tui.cli.commands.give_evidence:add_evidence": ("evidence",),
    "whisper_tui.cli.commands.approve:add_approvals": ("approvals", "revoke"),
    "whisper_tui.cli.commands.explain:add_explain": ("explain", "check"),
    "whisper_tui.cli.commands.manage_rules:add_rules": ("rules",),
    "whisper_tui.cli.commands.set_unasked:add_unasked": ("unasked",),
    "whisper_tui.cli.commands.manage_config:add_config": ("config",),
    "whisper_tui.cli.commands.manage_places:add_places": ("places",),
    "whisper_tui.cli.commands.supervisor_control:add_status": ("status", "restart", "stop"),
    "whisper_tui.cli.commands.supervisor_control:add_pause": ("pause", "resume"),
    "whisper_tui.cli.commands.supervisor_control:add_prune": ("prune",),
    "whisper_tui.cli.commands.shell_completion:add_completions": ("completions", "complete"),
    "whisper_tui.cli.commands.shell_completion:add_man": ("man",),
    "whisper_tui.cli.commands.supervisor_control:add_supervise": ("supervise",),
    "whisper_tui.cli.commands.call_tool:add_tools": ("tools",),
    "whisper_tui.cli.commands.call_tool:add_agent": ("agent",),
    "whisper_tui.cli.commands.install_client:add_install": ("install", "uninstall"),
    "whisper_tui.cli.commands.install_client:add_doctor": ("doctor",),
}
"""The functions that declare subcommands, in the order of the help, and what they declare."""
_FAMILY_OF = {verb: family for family, verbs in FAMILIES.items() for verb in verbs}


def parser(arguments: Sequence[str] = ()) -> Subcommands:
    """Build the parser. If the arguments name a subcommand, it holds only that one."""
    # Declaring all subcommands takes as long as everything else that a short command does.
    family = _FAMILY_OF.get(verb_of(arguments))
    verbs = Subcommands(_cockpit)
    for name in FAMILIES if family is None else (family,):
        _load(name)(verbs)
    return verbs


def _load(name: str) -> Callable[[Subcommands], None]:
    module, function = name.split(":")
    added: Callable[[Subcommands], None] = getattr(import_module(module), function)
    return added


def _cockpit(options: Options) -> int:
    from whisper_tui.cli.commands import open_cockpit

    return open_cockpit.open_cockpit_here(options)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. argparse itself exits after `--help` and wrong usage."""
    # A traceback on a terminal helps no user, and it could hold secrets of a command.
    sys.excepthook = _report_defect
    hold_descriptors()
    prepare()
    given = sys.argv[1:] if arguments is None else arguments
    try:
        options = parser(given).parse(given)
    except SystemExit as ending:
        code = ending.code or DONE
        raise SystemExit(_printed(FAILS_CLOSED.get(verb_of(given), code) if code else code)) from None
    return int(_printed(_carried_out(options, given)))


def _carried_out(options: Options, given: Sequence[str]) -> int:
    """Run the subcommand. Any failure of `hook` and `exec` ends with an exit code that denies the command."""
    try:
        if options.verb in (ON_HOSTS | WITH_IDS) and (":" in " ".join(given) or getattr(options, "at_host", None)):
            from whisper_tui.cli.other_machines import is_elsewhere, run_elsewhere

            if is_elsewhere(options):
                return run_elsewhere(options, given)
        code: int = options.run(options)
    except (Exception, KeyboardInterrupt) as error:
        # Clients run the command after every exit code that they do not know as a denial (decision 17).
        closed: int | None = FAILS_CLOSED.get(options.verb)
        if closed is not None:
            complain(f"the command was not run: {error.sentence() if isinstance(error, WhisperError) else error!r}")
            return closed
        failed = _reported(error)
        if failed is None:
            raise
        return failed
    return code


def _reported(error: BaseException) -> int | None:
    """Print an error as one sentence and return its exit code. None: it is a defect of this program."""
    match error:
        case WhisperError():
            complain(error.sentence())
            return code_of(error)
        case KeyboardInterrupt():
            return INTERRUPTED
        case BrokenPipeError():
            let_go()
            return PIPE_CLOSED
        case OutputLost():
            complain(error.sentence())
            let_go()
            return OUTPUT_LOST
        case OSError():
            complain(_said_by(error))
            return UNAVAILABLE
        case _:
            return None


def _printed(code: str | int) -> str | int:
    """Flush standard output and return the exit code; a failed flush changes a success into an error."""
    # Output is buffered, so a full disk or a closed pipe shows only here.
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        let_go()
        return code or PIPE_CLOSED
    except OutputLost as error:
        if not code:
            complain(error.sentence())
        let_go()
        return code or OUTPUT_LOST
    return code


def _said_by(error: OSError) -> str:
    """Return the system's message with the file that it is about."""
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{where}{error.strerror or error}"


def _report_defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report a defect of whisper_tui itself, with its place, in one line."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" in {_file_of(trace)}, line {trace.tb_lineno}" if trace else ""
    complain(f"this is a defect of whisper_tui: {kind.__name__}{where}: {error}")
    sys.exit(REFUSED)


def _file_of(trace: TracebackType) -> str:
    return os.path.basename(trace.tb_frame.f_code.co_filename)  # noqa: PTH119  pathlib takes longer than Python to load
