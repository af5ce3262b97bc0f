"""`status` and `stop`: the supervisor itself."""

import os
import signal
import sys
import time

from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.cli.words import age
from whisper_tui.model.errors import Unavailable
from whisper_tui.model.home import Home
from whisper_tui.model.text import visible
from whisper_tui.supervisor.state_directory import is_occupied
from whisper_tui.wire.asking import asking
from whisper_tui.wire.rendezvous import connect, peer_process

STOP_S = 60.0
"""Seconds that a supervisor has to stop."""


def add(verbs: Verbs) -> None:
    """Declare the subcommands."""
    status = verbs.add("status", "show whether a supervisor runs, and what it has to do; never starts one", _status)
    status.add_argument("--json", action="store_true", help="print one object")
    stop = verbs.add(
        "stop",
        "stop the supervisor",
        _stop,
        details="Commands go on without it, and the next whisper-tui command takes them back.",
    )
    stop.add_argument("--end-runs", action="store_true", help="end every running command and what it left behind, too")


def _status(options: Options) -> int:
    with asking(home_of(options), start=False) as supervisor:
        status = supervisor.ask("status")
    if options.json:
        print_json(status)
        return 0
    since = age(time.time() - status["started_at"])
    sys.stdout.write(
        f"Supervisor {status['version']} runs as pid {status['pid']} for {since}, in {status['home']}\n"
        f"{status['waiting']} waiting, {status['queued']} queued, {status['running']} running, "
        f"{status['workers']} workers\n"
    )
    if status["paused_since"] is not None:
        since, who = age(time.time() - status["paused_since"]), visible(status["paused_by"]["who"])
        sys.stdout.write(f"Everything is paused for {since}, by {who}: whisper-tui resume lets it go on\n")
    return 0


def _stop(options: Options) -> int:
    home = home_of(options)
    try:
        with asking(home, start=False) as supervisor:
            pid = supervisor.greeting["pid"]
            supervisor.ask("shutdown", end_runs=options.end_runs)
            supervisor.until_closed()
    except Unavailable:
        if options.end_runs:
            raise
        pid = _stop_by_signal(home)
    _wait_until_gone(home)
    sys.stdout.write(f"Stopped the supervisor (pid {pid})\n")
    return 0


def _stop_by_signal(home: Home) -> int:
    """Stop a supervisor that does not understand us: of another version, or stuck. Returns its pid."""
    connection = connect(home)
    if connection is None:
        raise Unavailable(f"no supervisor runs for {home.state}")
    with connection:
        pid, _ = peer_process(connection)
    os.kill(pid, signal.SIGTERM)
    return pid


def _wait_until_gone(home: Home) -> None:
    """Wait until its hold on the state directory ends, which it does with its process."""
    deadline = time.monotonic() + STOP_S
    while is_occupied(home.state):
        if time.monotonic() > deadline:
            raise Unavailable(f"the supervisor did not stop within {STOP_S:g} s", hint="Its log may say why")
        time.sleep(0.02)
