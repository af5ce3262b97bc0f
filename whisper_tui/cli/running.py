"""`status`, `restart` and `stop`: the supervisor itself."""

import sys
import time

from whisper_tui.cli.asking import asking
from whisper_tui.cli.json_text import print_json
from whisper_tui.cli.parsing import Options, Verbs, home_of
from whisper_tui.cli.words import age, cannot_work
from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.model.text import visible


def add(verbs: Verbs) -> None:
    """Declare the subcommands."""
    status = verbs.add("status", "show whether a supervisor runs, and what it has to do; never starts one", _status)
    status.add_argument("--json", action="store_true", help="print one object")
    verbs.add(
        "restart",
        "hand over to a supervisor of this version; what runs goes on",
        _restart,
        details="The supervisor that runs steps down, and a new one takes over its calls, its waiting ones too. Agents "
        "stay connected. Where none runs, one is started.",
    )
    stop = verbs.add(
        "stop",
        "stop the supervisor",
        _stop,
        details="Commands go on without it, and the next whisper-tui command takes them back. Connected agents "
        "start it again with their next call, unless it is held.",
    )
    stop.add_argument(
        "--hold", action="store_true", help="let nobody start it again but a human: whisper-tui, whisper-tui restart"
    )
    stop.add_argument("--end-runs", action="store_true", help="end every running command and what it left behind, too")


def _status(options: Options) -> int:
    with asking(options, start=False) as supervisor:
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
    sys.stdout.write(f"Sandbox: {status['sandbox']}\n")
    if status.get("keeps"):  # An older supervisor does not say.
        sys.stdout.write(f"{status['keeps'][0].upper()}{status['keeps'][1:]}\n")
    if status["problem"] is not None:
        sys.stdout.write(f"{cannot_work(status['problem'])}\n")
    for sentence in status["unguarded"]:
        sys.stdout.write(f"{visible(sentence)}\n")
    if status["paused_since"] is not None:
        since, who = age(time.time() - status["paused_since"]), visible(status["paused_by"]["who"])
        sys.stdout.write(f"Everything is paused for {since}, by {who}: whisper-tui resume lets it go on\n")
    return 0


def _stop(options: Options) -> int:
    from whisper_tui.wire.rendezvous import hold, release
    from whisper_tui.wire.stepping_down import step_down

    home = home_of(options)
    agents = _connected(options)
    if options.hold:
        hold(home)  # Before, not after: an agent that lost its supervisor asks for another one at once.
    try:
        pid = step_down(home, end_runs=options.end_runs)
    except WhisperError:
        if options.hold:
            release(home)
        raise
    if pid is None and not options.hold:
        raise Unavailable(f"no supervisor runs for {home.state}", hint="Any other whisper-tui command starts one")
    sys.stdout.write("No supervisor ran\n" if pid is None else f"Stopped the supervisor (pid {pid})\n")
    if options.hold:
        sys.stdout.write("It stays stopped until you start it: whisper-tui, or whisper-tui restart\n")
    elif agents:
        who = "1 connected agent" if agents == 1 else f"{agents} connected agents"
        sys.stdout.write(f"{who} will start it again with the next call; stop --hold keeps it stopped\n")
    return 0


def _connected(options: Options) -> int:
    """How many agents would start it again. Nothing of that is worth a failure."""
    try:
        with asking(options, start=False) as supervisor:
            return int(supervisor.ask("status").get("agents", 0))
    except WhisperError:
        return 0


def _restart(options: Options) -> int:
    from whisper_tui.wire.rendezvous import replace

    home = home_of(options)
    replace(home)
    with asking(options, start=False) as supervisor:
        now = supervisor.greeting
    sys.stdout.write(
        f"whisper_tui {now['supervisor']} (pid {now['pid']}) supervises {home.state} now; what ran goes on\n"
    )
    return 0
