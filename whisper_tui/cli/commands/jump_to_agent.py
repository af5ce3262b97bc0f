"""`jump`: shows the pane of tmux in which an agent waits."""

import os
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.subcommand import DONE, Options, Subcommands, supervisor_of
from whisper_tui.model.errors import InvalidRequest, Refused, UnknownCall
from whisper_tui.model.text import visible

if TYPE_CHECKING:
    from whisper_tui.system.tmux_panes import Pane

Row = dict[str, Any]


def add_jump(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    jump = verbs.add(
        "jump",
        "show the pane of tmux in which an agent waits",
        _jump,
        details="Without ID: the agent that waits longest, of those that are in a pane. Start it in tmux, for example "
        "by a key: bind-key j run-shell 'whisper-tui jump'.",
    )
    jump.add_argument("id", nargs="?", metavar="ID", help="number of a call")


def panes_of_calls(rows: list[Row]) -> dict[str, "Pane"]:
    """Return the pane of the agent of each call, by the id of the call, for agents that are in one."""
    # It loads what starts processes, which takes as long as all else of a short command.
    from whisper_tui.system.tmux_panes import panes_of

    agents = {row["id"]: row["agent_pid"] for row in rows if row.get("agent_pid")}  # An older supervisor does not say.
    found = panes_of(agents.values())
    return {call_id: found[pid] for call_id, pid in agents.items() if pid in found}


def _jump(options: Options) -> int:
    if "TMUX" not in os.environ:
        raise InvalidRequest("this is not in tmux", hint="Start it in a pane, or by a key of tmux")
    with supervisor_of(options, start=False) as supervisor:
        rows = supervisor.ask("rows", kind="list")
    asked = [row for row in rows if (row["id"] == options.id if options.id else row["state"] == "waiting")]
    if not asked:
        raise UnknownCall(f"there is no open call {options.id}") if options.id else Refused("no call waits")
    from whisper_tui.system.tmux_panes import show

    panes = panes_of_calls(asked)
    if not panes:
        raise Refused(f"{visible(asked[0]['session'])}, the agent of call {asked[0]['id']}, is in no pane of this tmux")
    if not show(next(iter(panes.values()))):
        raise Refused("tmux did not show the pane", hint="Is a terminal attached to it?")
    return DONE
