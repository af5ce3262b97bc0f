"""`supervise`, `status`, `restart`, `stop`, `pause`, `signal`, `prune` and others: the supervisor, and what it runs."""

import json
import os
import signal
import sys
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.output_format import cannot_work, place_lines, print_json
from whisper_tui.cli.subcommand import DONE, UNAVAILABLE, Options, Subcommands, complain, home_of, supervisor_of
from whisper_tui.model.errors import InvalidRequest, NotRunning, Refused, Unavailable, WhisperError
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import age

PROBE_S, PROBE_POLL_S = 10.0, 0.05
"""Seconds for which `status` waits until it is known how commands are previewed, and between two looks."""

if TYPE_CHECKING:
    from whisper_tui.system.state_directory import Directories
    from whisper_tui.wire.light_client import LightClient

STOP_S = 60.0
"""Seconds that a supervisor has to stop."""

_POLL_S = 0.02


def add_status(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    status = verbs.add("status", "show whether a supervisor runs, and its state; never starts one", _status)
    status.add_argument("--json", action="store_true", help="print one object")
    status.add_argument(
        "--short", action="store_true", help="print one line for a status bar; nothing, and exit 3, if none runs"
    )
    status.add_argument(
        "--panes", action="store_true", help="with --short in tmux: name the panes in which agents wait"
    )
    restart = verbs.add(
        "restart",
        "replace the supervisor by one of the installed version; commands keep running",
        _restart,
        details="The new supervisor takes over all calls, waiting ones too, and agents stay connected. If none runs, "
        "one is started.",
    )
    restart.add_argument("--if-running", action="store_true", help="start none if none runs")
    stop = verbs.add(
        "stop",
        "stop the supervisor until you start it again",
        _stop,
        details="Commands keep running without it. Agents cannot start it again: their calls are answered with the "
        "reason. whisper-tui, or any command of yours that needs the supervisor, starts it and takes the runs back.",
    )
    stop.add_argument(
        "--hold",
        action="store_true",
        help="do not let scripts and other commands start it again either; only whisper-tui and whisper-tui restart do",
    )
    stop.add_argument(
        "--end-runs", action="store_true", help="also end every running command and its background processes"
    )


MOST_ROWS = 200
"""Waiting calls up to which a status bar counts the severe ones; more rows would take too long every few seconds."""


def _short(options: Options) -> int:
    """Print the state in one line. With --json in the form that waybar reads."""
    try:
        with supervisor_of(options, start=False) as supervisor:
            status = supervisor.ask("status")
            rows = supervisor.ask("rows", kind="list") if 0 < status["waiting"] <= MOST_ROWS else []
    except Unavailable:
        if options.json:
            print_json({"text": "", "class": "stopped"}, indent=None)
        return UNAVAILABLE
    where = _where([row for row in rows if row["state"] == "waiting"]) if options.panes else ""
    severe = sum(row["state"] == "waiting" and any(risk["grave"] for risk in row.get("risks", ())) for row in rows)
    kinds = {
        "problem": "problem" if status["problem"] is not None else "",
        "severe": f"{status['waiting']} waiting (▲▲ {severe}){where}" if severe else "",
        "waiting": f"{status['waiting']} waiting{where}" if status["waiting"] and not severe else "",
        "paused": "paused" if status["paused_since"] is not None else "",
        "running": f"{status['running']} running" if status["running"] else "",
        "aside": f"{status['aside']} set aside" if status.get("aside") else "",
    }
    shown = {kind: text for kind, text in kinds.items() if text} or {"idle": "idle"}
    if options.json:
        print_json({"text": ", ".join(shown.values()), "class": next(iter(shown))}, indent=None)
    else:
        sys.stdout.write(", ".join(shown.values()) + "\n")
    return DONE


def settled_status(options: Options) -> dict[str, Any]:
    """Return the status of the running supervisor, once it is known how commands are previewed."""
    with supervisor_of(options, start=False) as supervisor:
        status: dict[str, Any] = supervisor.ask("status")
        until = time.monotonic() + PROBE_S
        while status.get("previews") == "" and time.monotonic() < until:
            time.sleep(PROBE_POLL_S)
            status = supervisor.ask("status")
    return status


def _where(waiting: list[dict[str, Any]]) -> str:
    """Return in which panes agents wait, the longest first. Empty: in none that is known."""
    from whisper_tui.cli.commands.jump_to_agent import panes_of_calls

    names = dict.fromkeys(visible(pane.name) for pane in panes_of_calls(waiting).values())
    return f" in {', '.join(names)}" if names else ""


def _status(options: Options) -> int:
    if options.panes and not options.short:
        raise InvalidRequest("--panes belongs to --short", hint="whisper-tui status --short --panes")
    if options.short:
        return _short(options)
    status = settled_status(options)
    if options.json:
        print_json({"aside": 0, **status})
        return 0
    aside = f"{status['aside']} set aside, " if status.get("aside") else ""
    since = age(time.time() - status["started_at"])
    sys.stdout.write(
        f"Supervisor {status['version']} runs as pid {status['pid']} for {since}, in {status['home']}\n"
        f"{status['waiting']} waiting, {aside}{status['queued']} queued, {status['running']} running, "
        f"{status['workers']} workers\n"
    )
    sys.stdout.write(f"Sandbox: {status['sandbox']}\n")
    if status.get("previews"):  # An older supervisor does not say.
        sys.stdout.write(f"Previews: {visible(status['previews'])}\n")
    sys.stdout.writelines(f"{line}\n" for line in place_lines(status.get("places", ())))
    if status.get("keeps"):  # An older supervisor does not say.
        sys.stdout.write(f"{status['keeps'][0].upper()}{status['keeps'][1:]}\n")
    if status["problem"] is not None:
        sys.stdout.write(f"{cannot_work(status['problem'])}\n")
    if status.get("notify_problem"):
        sys.stdout.write(f"{visible(status['notify_problem'])}\n")
    for sentence in status["unguarded"]:
        sys.stdout.write(f"{visible(sentence)}\n")
    if status.get("desks"):  # An older supervisor does not say.
        sys.stdout.write(f"{watched_from(status['desks'])}\n")
    if status["paused_since"] is not None:
        since, who = age(time.time() - status["paused_since"]), visible(status["paused_by"]["who"])
        sys.stdout.write(f"Everything is paused for {since}, by {who}: whisper-tui resume continues it\n")
    return 0


def watched_from(desks: list[str]) -> str:
    """Return the other machines from which somebody watches a supervisor, as a sentence."""
    return f"A cockpit on another machine is attached, from {visible(', '.join(desks))}"


def step_down(home: "Directories", *, end_runs: bool = False) -> int | None:
    """Stop the supervisor, whatever its version, and wait until its lock on the state directory is free.

    Commands keep running under their keepers. Returns its pid; None: none ran. Raises `WhisperError`.
    """
    from whisper_tui.system.processes import peer_process
    from whisper_tui.wire.light_client import LightClient
    from whisper_tui.wire.rendezvous import connect

    connection = connect(home)
    if connection is None:
        _wait_until_gone(home)
        return None
    pid, _ = peer_process(connection)
    try:
        with LightClient(connection) as supervisor:
            supervisor.ask("shutdown", end_runs=end_runs)
            supervisor.until_closed()
    except Unavailable:
        # A signal cannot ask for the runs to end, so only a plain stop falls back to it.
        if end_runs or not pid:
            raise
        # It is of a version that does not understand, or it is stuck.
        os.kill(pid, signal.SIGTERM)
    _wait_until_gone(home)
    return pid


def _wait_until_gone(home: "Directories") -> None:
    """Wait until no process holds the state directory."""
    from whisper_tui.system.state_directory import is_occupied

    # The lock is free only when the process has ended; the socket closes earlier.
    deadline = time.monotonic() + STOP_S
    while is_occupied(home.state):
        if time.monotonic() > deadline:
            raise Unavailable(f"the supervisor did not stop within {STOP_S:g} s", hint="Its log may say why")
        time.sleep(_POLL_S)


def _stop(options: Options) -> int:
    from pathlib import Path

    from whisper_tui.wire.rendezvous import for_agents, held, hold, release

    home = home_of(options)
    agents = _connected(options)
    earlier = held(home)
    if options.hold or Path(home.state).exists():
        # Before, not after: an agent that lost its supervisor asks for another one at once.
        try:
            hold(home, b"" if options.hold else for_agents())
        except OSError as error:
            # A full disk is a reason to stop it, so it stops. What was begun of the note holds everybody.
            if held(home) is None:
                complain(f"agents may start it again: that cannot be noted in {home.state}: {error.strerror}")
    try:
        pid = step_down(home, end_runs=options.end_runs)
        if pid is None and not options.hold:
            raise Unavailable(f"no supervisor runs for {home.state}", hint="whisper-tui restart starts one")
    except WhisperError:
        if earlier is None:
            release(home)
        else:
            with suppress(OSError):
                hold(home, earlier)
        raise
    sys.stdout.write("No supervisor ran\n" if pid is None else f"Stopped the supervisor (pid {pid})\n")
    by = "whisper-tui restart" if options.hold else "any other command of yours that needs it"
    sys.stdout.write(f"It stays stopped until you start it: whisper-tui, or {by}\n")
    if agents:
        who = "1 connected agent" if len(agents) == 1 else f"{len(agents)} connected agents"
        sys.stdout.write(f"Calls of {who} are refused until then: {visible(', '.join(agents))}\n")
    return 0


def _connected(options: Options) -> list[str]:
    """Return the names of the connected agents; empty if the supervisor cannot tell."""
    try:
        with supervisor_of(options, start=False) as supervisor:
            status = supervisor.ask("status")
    except WhisperError:
        return []
    # An older supervisor only counts them.
    names = status.get("agent_names") or ["their names are not known"] * bool(status.get("agents"))
    more = status.get("agents", 0) - len(names)
    return [*names, *([f"and {more} more"] if more > 0 else [])]


def _restart(options: Options) -> int:
    from whisper_tui.system.state_directory import is_occupied
    from whisper_tui.wire.rendezvous import replace

    home = home_of(options)
    from whisper_tui.cli.commands.manage_rules import check_outside  # loads pathlib, which `status` does without

    check_outside("restart", home)
    if options.if_running and not is_occupied(home.state):
        return DONE
    replace(home)
    with supervisor_of(options, start=False) as supervisor:
        now = supervisor.greeting
    sys.stdout.write(
        f"whisper_tui {now['supervisor']} (pid {now['pid']}) supervises {home.state} now; running commands continue\n"
    )
    return 0


def add_pause(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    verbs.add(
        "pause",
        "stop all processes of all runs, and start nothing new, until resume",
        _pause,
        details="Background processes are stopped, too, and time limits do not count meanwhile. The pause survives a "
        "restart of the supervisor. Runs can be ended and calls decided during it.",
    )
    verbs.add("resume", "continue everything that pause has stopped", _resume)


def _pause(options: Options) -> int:
    return _tell(options, "pause", "Everything is paused: whisper-tui resume continues it\n")


def _resume(options: Options) -> int:
    return _tell(options, "resume", "Everything continues\n")


def _tell(options: Options, operation: str, sentence: str) -> int:
    with supervisor_of(options) as supervisor:
        supervisor.ask(operation, by=decider())
    sys.stdout.write(sentence)
    return 0


def add_signal(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    sent = verbs.add("signal", "send a signal to runs or to their background processes", _signal)
    sent.add_argument("ids", nargs="+", metavar="ID", help="number of a call")
    sent.add_argument("signal", metavar="SIGNAL", help="name, with or without SIG, or number")
    sent.add_argument(
        "--target",
        choices=("tree", "group", "leader"),
        default="tree",
        help="every process of the run (default), its process group, or its first process alone",
    )
    kill = verbs.add(
        "kill",
        "end runs with all their processes: SIGTERM, then SIGKILL",
        _kill,
        details="It waits until they have ended. Processes that are still alive after the grace period of their call "
        "get SIGKILL.",
    )
    kill.add_argument("ids", nargs="+", metavar="ID", help="number of a call")
    kill.add_argument("--now", action="store_true", help="send SIGKILL at once")


def add_start(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    started = verbs.add(
        "start",
        "start queued calls at once, whatever runs and however little memory is left",
        _start,
        details="A call is queued while all workers are busy, or while little memory is available. list says why.",
    )
    started.add_argument("ids", nargs="+", metavar="ID", help="number of a call")


def _start(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        for call_id in dict.fromkeys(options.ids):
            supervisor.ask("start_anyway", call_id=call_id, by=decider())
            sys.stdout.write(f"Started call {call_id}\n")
    return 0


def _signal(options: Options) -> int:
    number = number_of(options.signal)
    with supervisor_of(options) as supervisor:
        for row in _alive(supervisor, options.ids):
            _send(supervisor, row, number, options.target)
            sys.stdout.write(f"Sent {_name(number)} to the {options.target} of call {row['id']}\n")
    return 0


def _kill(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        rows = _alive(supervisor, options.ids)
        for row in rows:
            _send(supervisor, row, signal.SIGKILL if options.now else signal.SIGTERM, "tree")
        begun = time.monotonic()
        for row in rows:
            if not options.now and not _ends_by(supervisor, row, begun + row["spec"]["grace_s"]):
                with suppress(NotRunning):  # It has ended meanwhile.
                    _send(supervisor, row, signal.SIGKILL, "tree")
            if not _ends_by(supervisor, row, time.monotonic() + KILLED_S):
                raise Refused(f"call {row['id']} is still alive after SIGKILL", hint="whisper-tui ps shows it")
            sys.stdout.write(f"Ended call {row['id']}\n")
    return 0


KILLED_S = 30.0
"""Seconds after SIGKILL in which the supervisor has to see that all processes are gone."""


def _ends_by(supervisor: "LightClient", row: dict[str, Any], moment: float) -> bool:
    """Wait until no process of a call is alive. False: it is not so by that moment of the monotonic clock."""
    while not supervisor.ask("rows", kind="show", call_id=row["id"])[0]["settled"]:
        if time.monotonic() >= moment:
            return False
        time.sleep(_POLL_S)
    return True


def _alive(supervisor: "LightClient", ids: list[str]) -> list[dict[str, Any]]:
    """Return the named calls, each once. Nothing is signalled unless all of them have living processes."""
    rows = [supervisor.ask("rows", kind="show", call_id=call_id)[0] for call_id in dict.fromkeys(ids)]
    for row in rows:
        if row["pid"] is None or row["settled"]:
            raise NotRunning(f"no process of call {row['id']} is alive", hint="whisper-tui ps shows what runs")
    return rows


def _send(supervisor: "LightClient", row: dict[str, Any], number: int, target: str) -> None:
    supervisor.ask("signal", call_id=row["id"], number=number, target=target, by=decider())


def number_of(text: str) -> int:
    """The number of a signal by its name or number. Raises `InvalidRequest`."""
    if text.isascii() and text.isdecimal():
        if int(text) in signal.valid_signals():
            return int(text)
    else:
        name = text.upper()
        found = signal.Signals.__members__.get(name if name.startswith("SIG") else f"SIG{name}")
        if found is not None:
            return int(found)
    raise InvalidRequest(f"there is no signal {text!r}", hint="Give a name like TERM, or a number like 15")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def add_prune(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "prune",
        "remove recorded output and undo data beyond the limits of [retention] and [undo]",
        _prune,
        details="The supervisor does the same every hour. Files of unfinished runs are never removed, and the journal "
        "keeps every call.",
    )
    parser.add_argument("--dry-run", action="store_true", help="report what would be removed, and remove nothing")
    parser.add_argument("--json", action="store_true", help="print one object")


def _prune(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        pruned = supervisor.ask("prune", dry_run=options.dry_run)
    if options.json:
        print_json(pruned)
        return 0
    verb = "Would remove" if options.dry_run else "Removed"
    sys.stdout.write(
        f"{verb} the output of {pruned['runs']:,} runs, {pruned['bytes']:,} bytes on the disk; "
        f"that of {pruned['kept_runs']:,}, {pruned['kept_bytes']:,} bytes, stays\n"
    )
    sys.stdout.write(
        f"{verb} what {pruned['undos']:,} more calls can be undone with, {pruned['undo_bytes']:,} bytes; "
        f"{pruned['kept_undos']:,} calls, {pruned['kept_undo_bytes']:,} bytes, can still be undone\n"
    )
    return 0


def add_supervise(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "supervise",
        "run the supervisor in the foreground; other subcommands start it automatically",
        _supervise,
        details="SIGTERM and Ctrl-C stop it; commands keep running, and the next supervisor takes them over.",
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="take over from a running supervisor; commands keep running",
    )
    parser.add_argument(
        "--tell",
        type=int,
        metavar="FD",
        help="detach, and report on this file descriptor when it is ready or why it failed (for starters)",
    )


def _supervise(options: Options) -> int:
    home = home_of(options)
    starter = _Starter(options.tell)
    starter.detach()
    try:
        import gc

        # What is loaded now lives as long as the supervisor, which switches the collector on again before it serves.
        gc.disable()
        from whisper_tui.cli.compose import supervise

        if options.replace:
            starter.take_turn(home)
        supervise(home, starter.ready, stop_other=step_down if options.replace else None)
    except WhisperError as error:
        starter.failed(error)
        raise
    sys.stderr.flush()
    # All is written. Tearing the interpreter down would take as long again as the stop did.
    os._exit(0)


class _Starter:
    """The process that started this one and waits for its report, if there is one."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self._turn = ExitStack()

    def detach(self) -> None:
        """Detach from the starter's processes and session."""
        if self._fd is None:
            return
        # Agents kill the process tree of a command or a hook; the supervisor must not be in it.
        os.set_inheritable(self._fd, False)
        if os.fork():
            os._exit(0)
        os.setsid()

    def take_turn(self, home: "Directories") -> None:
        """Take the start lock until this one is ready. A starter holds it already."""
        if self._fd is None:
            from whisper_tui.system.state_directory import prepare
            from whisper_tui.wire.rendezvous import PATIENCE_S, start_lock

            prepare(home)
            self._turn.enter_context(start_lock(home, time.monotonic() + PATIENCE_S))

    def ready(self) -> None:
        """Say that the socket answers."""
        self._turn.close()
        self._tell({"ready": True, "pid": os.getpid()})

    def failed(self, error: WhisperError) -> None:
        """Say why there will be no supervisor."""
        self._tell({"error": {"kind": error.kind, "message": error.message, "hint": error.hint}})

    def _tell(self, content: dict[str, object]) -> None:
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        try:
            os.write(fd, json.dumps(content).encode() + b"\n")
        except OSError as error:
            sys.stderr.write(
                f"whisper-tui: the program that started this supervisor no longer waits for it ({error.strerror})\n"
            )
        os.close(fd)
