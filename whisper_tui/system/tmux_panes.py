"""The panes of tmux in which agents are, found by their terminals.

Neither is an agent asked for its pane nor are its variables read: they may name a server of tmux that is not the
user's, and a client of tmux does what its server says.
"""

import os
import subprocess
from collections.abc import Iterable
from typing import NamedTuple

ANSWER_S = 10
_FORMAT = "#{pane_tty} #{pane_id} #{session_name}:#{window_index}.#{pane_index}"


class Pane(NamedTuple):
    """One pane of the user's tmux."""

    id: str
    """Such as `%3`."""
    name: str
    """Its session, window and number, such as `work:1.0`."""


def panes_of(pids: Iterable[int]) -> dict[int, Pane]:
    """Return the pane of each process that is in one. Outside of tmux there is none."""
    wanted = sorted(set(pids))
    if not wanted or "TMUX" not in os.environ:
        return {}
    listed = _output("tmux", "list-panes", "-a", "-F", _FORMAT)
    by_terminal = {tty: Pane(id_, name) for tty, id_, name in (line.split(" ", 2) for line in listed)}
    processes = _output("ps", "-o", "pid=,tty=", "-p", ",".join(map(str, wanted)))
    terminals = {int(pid): f"/dev/{tty}" for pid, tty in (line.split() for line in processes)}
    return {pid: by_terminal[tty] for pid, tty in terminals.items() if tty in by_terminal}


def show(pane: Pane) -> bool:
    """Make it the pane that the user sees, whatever session and window it is in. False: tmux does not do it."""
    try:
        shown = subprocess.run(
            ["tmux", "switch-client", "-t", pane.id], stderr=subprocess.DEVNULL, timeout=ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return shown.returncode == 0


def _output(*words: str) -> list[str]:
    """Return the lines that a program prints. Empty: it is not there, or has nothing to say."""
    try:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines()
