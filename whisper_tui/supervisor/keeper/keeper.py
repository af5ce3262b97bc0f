"""The keeper of one run: it starts the command, watches it and its background processes, and records the events.

A process drives any number of keepers in one loop, so that nothing here may wait.
"""

import os
import resource
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import channels, sandbox, spawn
from whisper_tui.supervisor.keeper.answering import AnsweringThread
from whisper_tui.supervisor.keeper.capture import COALESCE_S, Capture
from whisper_tui.supervisor.keeper.channels import ForeignOrders, InputPump, Job, OrderFifo, WakeupSender
from whisper_tui.supervisor.keeper.docker_lists import DockerLists
from whisper_tui.supervisor.keeper.held_runs import Guard, HeldRun
from whisper_tui.supervisor.keeper.keeper_loop import KeeperLoop
from whisper_tui.supervisor.keeper.last_output import deliver_last_output
from whisper_tui.supervisor.keeper.run_cgroup import CgroupMover, RunCgroup
from whisper_tui.supervisor.keeper.run_control import Death, Leader, Quota, RunEnder, RunFreezer
from whisper_tui.supervisor.keeper.run_records import BackgroundProcesses, RunRecords
from whisper_tui.supervisor.keeper.sandbox import Sandboxes
from whisper_tui.supervisor.keeper.seccomp import SeccompNotifications, ask_again
from whisper_tui.supervisor.keeper.spawn import LastDirectory
from whisper_tui.system import run_files
from whisper_tui.system.processes import Descendants

ANNOUNCED_AFTER_S = 0.01
"""Seconds before a command is announced and gets a control group. A shorter one is announced with its end."""
DRAIN_S = 0.1
"""How many seconds the keeper reads remaining output after the leader's end before it reports the end."""
HELD_CHECK_S = 0.02
"""Seconds between two looks at the processes that still hold the output after the leader's end."""
LAST_OUTPUT_S = 2.0
"""Seconds for which processes that only pass on the last output may delay the report of the end."""
FIRST_CHECK_S = 0.05
RECHECK_S = 0.01
"""Seconds until the next check of the background after one of its processes has ended."""
LONGEST_CHECK_PAUSE_S = 2.0
"""The longest pause between two checks of the background. The pause doubles while nothing changes."""
QUIET_CHECK_PAUSE_S = 5.0
"""The same while the leader is alive and there is no background."""
FOREIGN_HOLDER_S = 1.0
"""Seconds for which a process outside of an ended run may keep its output open."""
TERMINAL_RETRY_S = 0.1
DISK_RETRY_S = 1.0
NOBODY = Guard(None)
_RELAY = ("relay", "relay_in")
"""The roles of both ends of the relay of a terminal."""
GONE = "its keeper was ended from outside when it ended"
SOONEST_S, LATEST_S = 0.002, 1.0
"""Shortest and longest pause between two attempts to remove a control group."""


class KeeperSetup(NamedTuple):
    """The resources that a keeper prepares before it takes a job."""

    boot: str
    """The id of this boot of the machine."""
    loop: KeeperLoop
    """Drives its runs."""
    adopts: bool
    """True if orphaned processes become children of the keeper."""
    sandboxes: Sandboxes
    """Creates sandboxes if the system supports them."""
    guard: Guard = NOBODY
    """The parent, which holds what a successor would need."""
    has_long_run: Callable[[], object] = lambda: None
    """Called when a run is no short one."""


class Keeper:
    """The keeper of one run."""

    def __init__(self, job: Job, setup: KeeperSetup) -> None:
        self._job = job
        self._spec = job.spec
        self._children = setup.loop.children
        self._sandboxes = setup.sandboxes
        self._guard = setup.guard
        self._has_long_run = setup.has_long_run
        self._notifications: SeccompNotifications | None = None
        self._answering: AnsweringThread | None = None
        self._wakeups = WakeupSender(job.directory)
        self._poll = setup.loop.poll_for(self)
        self._timers = setup.loop.timers_for(self)
        self._capture = Capture(job.directory, job.spec, self._poll, self._be_held_no_more)
        self._group = RunCgroup()
        self._records = RunRecords(job.directory, setup.boot, self._group)
        self._descendants = Descendants(os.getpid(), adopts=setup.adopts, heads=lambda: self._children.of(self.leader))
        self._mover = CgroupMover(self._descendants, self._group)
        self.leader: Leader = Leader(self._descendants, lambda name, told: self._note(**{name: told}))
        self._background = BackgroundProcesses(job.directory, setup.boot, self._descendants)
        self._ender = RunEnder(
            self._descendants, self._timers, self._nobody_left, self._group, noted=lambda at: self._note(kills_at=at)
        )
        self._quota = Quota(
            job.spec,
            self._timers,
            self.leader,
            self._ender,
            self._group,
            noted=lambda limit: self._note(exceeded=limit),
        )
        self._freezer = RunFreezer(
            self._descendants, self._timers, self._ender, self._group, noted=lambda told: self._note(frozen=told)
        )
        self._orders: OrderFifo | None = None
        self._foreign_orders = ForeignOrders(job.directory, self._timers, self._wakeups)
        self._input: InputPump | None = None
        self._input_ends = False
        """True if the guardian knows that it is to end."""
        self._terminal = -1
        self._last_directory: LastDirectory | None = None
        self._end_reported = False
        self._nobody = False
        """True once no process of the run is left."""
        self._held_looks = 0
        """Looks at the holders of the output in a row at which none of them would deliver anything."""
        self._held_until: float | None = None
        self._timed_out = False
        self._check_pause = FIRST_CHECK_S
        self._orphaned = -1
        """A descriptor of its leader, if nobody reaps that."""
        self._finishes = False
        self.over = False

    def start(self) -> None:
        """Start the command, or record why it cannot be started."""
        try:
            self._start()
        except spawn.StartFailed as failure:
            self._give_up(failure)

    def do_after(self, seconds: float, action: Callable[[], None]) -> None:
        """Call `action` once, if the run lasts that long."""
        self._timers.set_timer(seconds, "after", action)

    def close(self) -> None:
        """Close everything."""
        self._capture.close()
        if self._last_directory is not None:
            self._last_directory.close()
        if self._input is not None:
            self._input.close()
        if self._orphaned >= 0:
            self._poll.unregister(self._orphaned)
        if self._orders is not None:
            self._poll.unregister(self._orders.fd)
            os.close(self._orders.fd)
        self.leader.close()
        self._records.close()
        self._wakeups.close()
        # The lock is last: releasing it tells the supervisor that this keeper is gone.
        os.close(self._job.lock)
        self._guard.drop(self._job.directory)

    def _start(self) -> None:
        ours = channels.terminal() if self._spec["tty"] else channels.pipes(takes_input=self._spec["input"])
        with ExitStack() as undone:
            for fd in (*ours.sources, *ours.theirs, *ours.relay):
                undone.callback(os.close, fd)
            self._take_input(ours)
            listener = self._start_with(ours)
            self._have_held(ours, listener)
            undone.pop_all()
        if listener >= 0:
            self._answer(listener)
        if self._last_directory is not None:
            self._last_directory.has_started()
        for fd in ours.theirs:
            os.close(fd)
        # Before the output can fill the disk, and before a short command is announced.
        self._capture.on_large = self._records.reserve
        for number, fd in enumerate(ours.sources):
            self._capture.add(fd, number, ours.relay, is_terminal=self._spec["tty"])
        if self._input is not None:
            self._input.watch(self._poll)
        if self._spec["timeout"] is not None:
            self._timers.set_timer(self._spec["timeout"], "timeout", self._on_timeout)
        self._timers.set_timer(ANNOUNCED_AFTER_S, "introduce", self._announce)
        self._timers.set_timer(self._check_pause, "look", self._check)

    def _answer(self, listener: int, refused: Sequence[Sequence[str]] = ()) -> None:
        """Answer what the sandbox asks."""
        opened = self._spec["sandbox"]
        docker = DockerLists(opened["docker"]) if opened.get("docker") else None
        writable = (*opened["write"], os.devnull, "/dev/tty")
        self._notifications = SeccompNotifications(
            listener, writable, docker=docker, refused=refused, noted=lambda told: self._note(refused=told)
        )
        self._answering = AnsweringThread(self._notifications, self._poll)

    def _have_held(self, ours: channels.Channels, listener: int) -> None:
        """Have the parent hold what a successor needs."""
        fds = {"lock": self._job.lock} | {str(number): fd for number, fd in enumerate(ours.sources)}
        fds |= dict(zip(_RELAY, ours.relay, strict=False))
        facts: dict[str, Any] = {"end": None}
        if self._input is not None:
            fds |= {"target": ours.target, "input": self._input.source}
            facts["end"] = ours.end_of_input.hex() if ours.end_of_input is not None else None
        if listener >= 0:
            fds["listener"] = listener
            facts["sandbox"] = self._spec["sandbox"]
        if self._last_directory is not None:
            fds["directory"] = self._last_directory.report
        leader = self.leader
        facts |= {"pid": leader.pid, "born": leader.born, "born_at": leader.born_at, "terminal": self._records.terminal}
        self._note(fds, **facts)

    def _note(self, fds: Mapping[str, int] = {}, /, **facts: Any) -> None:
        """Have the parent hold descriptors, and what no file says, before it is true."""
        if not self._guard.hold(self._job.directory, fds, **facts):
            self._be_held_no_more()

    def _be_held_no_more(self) -> None:
        """Have nothing of this run held any more: from now on its files and channels do not tell everything."""
        self._guard.drop(self._job.directory)
        self._guard = NOBODY

    def take_over(self, held: HeldRun) -> None:
        """Go on with a run whose keeper was killed. Its leader is a child of the parent of this process."""
        fds, facts = held.fds, held.facts
        self._group.take_over(self._spec, self._sums())
        self._children.expect(self.leader, self._group, self._spec.get("order_key"), marks=False)
        self.leader.take_over(facts, fds.get("leader", -1))
        self._children.have_started(self.leader)
        self._records.terminal = facts["terminal"]
        self._spec = {**self._spec, "sandbox": facts.get("sandbox", self._spec.get("sandbox"))}
        self._capture.on_large = self._records.reserve
        self._capture.take_over()
        if self._spec["tty"]:
            self._terminal = fds["0"]
        for number in (0, 1):
            if str(number) in fds:
                relay = [fds[role] for role in _RELAY] if self._spec["tty"] else ()
                self._capture.add(fds[str(number)], number, relay, is_terminal=self._spec["tty"])
        if "target" in fds:
            end = bytes.fromhex(facts["end"]) if facts["end"] is not None else None
            self._input = InputPump(
                self._path(run_files.INPUT), fds["target"], end, self._be_held_no_more, fds["input"]
            )
            self._input_ends = bool(facts.get("input_ends"))
            if self._input_ends:
                self._input.finish()
        if "orders" in fds:
            self._watch_orders(fds["orders"])
        if "listener" in fds:
            self._answer(fds["listener"], facts.get("refused", ()))
        if "directory" in fds:
            self._last_directory = LastDirectory.taken_over(fds["directory"])
        self._timed_out = bool(facts.get("timed_out"))
        self._quota.take_over(facts.get("exceeded"))
        self._background.take_over()
        self._end_reported = self._records.take_over()
        if (death := held.death) is not None:
            self.leader.has_died(death)
        elif self._end_reported or facts.get("gone"):
            self.lose(GONE)
        self._take_over_timers(facts)

    def _take_over_timers(self, facts: Mapping[str, Any]) -> None:
        frozen = facts.get("frozen")
        if self._spec["timeout"] is not None and not self._timed_out and not self._end_reported:
            left = self.leader.born + self._spec["timeout"] - time.monotonic() if frozen is None else frozen["timeout"]
            self._timers.set_timer(max(0.0, left), "timeout", self._on_timeout)
            if frozen is not None:
                self._timers.suspend("timeout")
        self._freezer.take_over(frozen)
        self._ender.take_over(facts.get("kills_at"))
        # Also what a filter had asked the keeper before, and never got an answer to.
        if self._notifications is not None:
            ask_again(self._descendants.now())
        self._timers.set_timer(0.0, "introduce", self._announce)
        self._timers.set_timer(self._check_pause, "look", self._check)

    def watch_leader(self) -> None:
        """Watch a leader that nobody reaps any more who would tell how it has ended."""
        if self.leader.death is None and not self.over:
            self._orphaned = self.leader.pidfd
            self._poll.register(self._orphaned, select.POLLIN)

    def lose(self, why: str) -> None:
        """Record that nobody knows how the leader has ended."""
        if self.leader.death is None:
            self.leader.has_died(Death(0, resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()))
            if not self._end_reported:
                self._records.lost(why)
            self._end_reported = True

    def _sums(self) -> list[str]:
        try:
            return list(run_files.read_json(self._path(run_files.PID))["sums"])
        except (OSError, ValueError):
            return []

    def _take_input(self, ours: channels.Channels) -> None:
        if self._spec["tty"]:
            self._terminal = ours.sources[0]
            self._records.terminal = os.ttyname(ours.theirs[0])
        if ours.target >= 0:
            try:
                self._input = InputPump(
                    self._path(run_files.INPUT), ours.target, ours.end_of_input, self._be_held_no_more
                )
            except OSError as error:
                os.close(ours.target)
                raise spawn.no_channel("an input channel", error) from None

    def _start_with(self, ours: channels.Channels) -> int:
        """Start the leader. Return the descriptor of its sandbox's notifications, or -1. Raises `StartFailed`."""
        self._group.prepare(self._spec)
        environment, actions = self._job.environment, ours.actions
        if self._spec.get("sandbox") is not None:
            terminal = (os.ttyname(ours.theirs[0]), "/dev/tty") if self._spec["tty"] else ()
            self._spec, environment = spawn.with_private_directory(
                self._spec, environment, self._path(sandbox.TMP), terminal
            )
        self._children.expect(self.leader, self._group, self._spec.get("order_key"))
        spawn.enter(self._spec["cwd"])
        try:
            spawn.check_unchanged(self._spec)
            if self._spec.get("tells_directory"):
                asked = self._last_directory = spawn.last_directory(environment)
                environment, actions = asked.environment, [*actions, *asked.actions]
            pid, listener = spawn.spawn(
                self._spec, environment, actions, self._group, self._sandboxes, target=ours.target
            )
        finally:
            # posix_spawn cannot set a working directory, so the keeper changed its own for the moment of the start.
            os.chdir("/")
        self.leader.has_started(pid)
        self._children.have_started(self.leader)
        return listener

    def _give_up(self, failure: spawn.StartFailed) -> None:
        """Record why the command was not started. If the disk is full, this is tried again until there is space."""
        sandboxed = self._spec.get("sandbox") is not None
        if self._records.written(lambda: self._records.failed(failure, sandboxed=sandboxed)):
            self._finish()
        else:
            self._timers.set_timer(DISK_RETRY_S, "record", lambda: self._give_up(failure))

    def _announce(self) -> None:
        """Announce the command, move it into a group, and accept orders."""
        # Entering a group takes up to 10 ms on an idle machine. Short commands never pay that (decision 14).
        self._group.make(self._spec)
        self._mover.begin()
        self._quota.watch()
        try:
            if self._orders is None:
                self._watch_orders()
            self._records.spawned(self.leader)
        except OSError:
            self._timers.set_timer(DISK_RETRY_S, "introduce", self._announce)
            return
        self._wakeups.send(run_files.PID)

    def _watch_orders(self, fd: int = -1) -> None:
        self._orders = OrderFifo(self._path(run_files.CONTROL), self._spec.get("order_key"), fd)
        self._poll.register(self._orders.fd, select.POLLIN)
        if fd < 0:
            self._note({"orders": self._orders.fd})

    def stores_alone(self, fd: int) -> Callable[[int], bool] | None:
        """Return what stores the next bytes of a pipe, and returns whether there may be more. None: it is no pipe."""
        return self._capture.pump if self._capture.has(fd) and self._terminal < 0 else None

    def handle_event(self, fd: int, event: int) -> None:
        """Handle an event of one of its descriptors."""
        if self._capture.has(fd):
            self._capture.pump(fd)
        elif self._answering is not None and self._notifications is not None and fd == self._notifications.listener:
            self._answering.handle_event(event)
        elif fd == self._orphaned:
            self._poll.unregister(fd)
            self._orphaned = -1
            self.lose("the processes that kept it were ended from outside while it ran")
        else:
            # Orders are handled before input that arrives with them: a terminal must have its size first.
            if self._orders is not None:
                for order in self._orders.read():
                    self._execute(order)
                self._foreign_orders.note(self._orders)
            if self._input is not None:
                self._input.move()

    def has_lost_child(self) -> None:
        """Take note that one of its processes, or of those of an unknown run, was reaped."""
        if self._end_reported and not self._finishes:
            self._timers.set_timer(RECHECK_S, "look", self._check)

    def end_as_asked(self) -> None:
        """End it, because this process was asked to end."""
        self._ender.end(self._spec["grace"])

    def after_turn(self) -> None:
        """Do what depends on all that has happened to it in one turn of the loop."""
        if self._finishes:
            return
        timeline = self._capture.timeline
        if timeline.fresh:
            # Later than at once, so that a burst is one row. A full disk is tried again with the next bytes.
            self._timers.set_timer_once(COALESCE_S, "index", timeline.flush)
        if self._input is not None:
            self._watch_input(self._input)
        if self._capture.paused:
            self._timers.set_timer_once(TERMINAL_RETRY_S, "terminal", self._capture.resume)
        if self.leader.death is not None:
            if not self._end_reported and not self._timers.is_set("record") and not self._awaits_output():
                self._report_end(self.leader.death)
            self._finish_if_over()

    def _watch_input(self, pump: InputPump) -> None:
        pump.watch(self._poll)
        if self._input_ends and not pump.ending:
            self._input_ends = False
            self._note(input_ends=False)
        if pump.closed:
            # Only then does the command see the end of its input.
            self._guard.release(self._job.directory, "target")
            self._guard.release(self._job.directory, "input")
            self._input = None

    def _awaits_output(self) -> bool:
        """True while processes that the leader has left behind deliver the rest of its output."""
        if self._capture.at_end or self._terminal >= 0 or self._ender.asked:
            return False
        now = time.monotonic()
        if self._held_until is None:
            self._held_until = now + LAST_OUTPUT_S
        if self._timers.is_set("held"):
            return True
        delivers = deliver_last_output(each.pid for each in self._descendants.now())
        # The first look may come before a process that was just forked has its descriptors.
        self._held_looks = 0 if delivers else self._held_looks + 1
        if self._held_looks > 1 or now >= self._held_until:
            return False
        self._timers.set_timer(HELD_CHECK_S, "held", lambda: None)
        return True

    def _report_end(self, death: Death) -> None:
        """Report the end of the leader, even if background processes are still alive."""
        self._timers.cancel("timeout")
        self._capture.drain(DRAIN_S)
        self._capture.timeline.flush()
        if self._nobody_left():
            self._background.all_gone()
        elif self._background.look(None):
            self._background.save()
        facts = self._facts()
        if not self._records.written(lambda: self._records.ended(self.leader, death, facts)):
            # Setting it is enough: the end of a turn in which a timer was due comes here again.
            self._timers.set_timer(DISK_RETRY_S, "record", lambda: None)
            return
        self._end_reported = True
        if self._finish_if_over():
            return
        if self._timers.cancel("introduce"):
            self._announce()
        self._wakeups.send(run_files.EXIT)
        self._check_pause = FIRST_CHECK_S
        self._timers.set_timer(self._check_pause, "look", self._check)

    def _facts(self) -> dict[str, Any]:
        totals, dropped = self._capture.totals, self._capture.dropped
        return {
            "out": totals[0],
            "err": totals[1],
            "dropped_out": dropped[0],
            "dropped_err": dropped[1],
            "timed_out": self._spec["timeout"] if self._timed_out else None,
            "by_us": self.leader.ended_by_us,
            "limit": self._quota.broken(),
            "background": self._background.snapshot(),
            "blocked": self._notifications.report(self._error_output()) if self._notifications is not None else None,
            "directory": self._last_directory.read() if self._last_directory is not None else None,
        }

    def _error_output(self) -> bytes:
        """Return the end of a failed command's error output."""
        # If the command succeeded, the sandbox has refused nothing that it needed.
        death = self.leader.death
        if death is None or death.status == 0:
            return b""
        return self._capture.latest(0 if self._spec["tty"] else 1)

    def _finish_if_over(self) -> bool:
        if self._finishes or not self._end_reported or not self._nobody_left():
            return self._finishes
        if self._terminal >= 0 and not self._capture.at_end:
            self._capture.drain(DRAIN_S)
            self._capture.close_sources()
        # A process outside of the run may hold the pipe, and may never close it.
        if not self._capture.at_end and self._ender.asked:
            self._timers.set_timer_once(FOREIGN_HOLDER_S, "foreign", self._capture.close_sources)
        self._timers.cancel("look")
        if self._background.all_gone():
            self._background.save()
            self._wakeups.send(run_files.BACKGROUND)
        if self._capture.at_end:
            self._finish()
        return self._finishes

    def _nobody_left(self) -> bool:
        """True if no process of the run is left."""
        if not self._nobody:
            self._children.reap()
            # Without a child there is no process of it, unless orphans are not adopted.
            self._nobody = (
                self.leader.death is not None
                and not self._children.of(self.leader)
                and not (self._descendants.can_hide and self._descendants.now())
            )
        return self._nobody

    def _finish(self) -> None:
        self._finishes = True
        self._capture.finish()
        if self._input is not None:
            self._input.close()
        if self._mover.moves:
            self._wakeups.send(run_files.EXIT)
        self._finish_group()

    def _finish_group(self, pause_s: float = SOONEST_S) -> None:
        """Remove the control group, which some kernels release late, and then all that is left."""
        if self._mover.moves or (not self._group.is_removed() and pause_s < LATEST_S):
            self._timers.set_timer(pause_s, "group", lambda: self._finish_group(min(2 * pause_s, LATEST_S)))
            return
        if self._orders is not None:
            self._foreign_orders.tell(self._orders)
        if self._answering is not None:
            self._answering.close()
        if self._spec.get("sandbox") is not None:
            run_files.remove_tree(self._path(sandbox.TMP))
        # DONE is written last: once it exists, readers treat all other files as complete.
        self._records.done(self._capture.totals if self._capture.uncounted else None)
        self._wakeups.send(run_files.DONE)
        self.over = True

    def _check(self) -> None:
        if self._check_pause == FIRST_CHECK_S:
            self._has_long_run()
        changed = self._background.look(self.leader.if_alive)
        if changed:
            self._background.save()
            self._wakeups.send(run_files.BACKGROUND)
        quiet = self.leader.if_alive is not None and not self._background.any_alive
        longest = QUIET_CHECK_PAUSE_S if quiet else LONGEST_CHECK_PAUSE_S
        self._check_pause = FIRST_CHECK_S if changed else min(2 * self._check_pause, longest)
        self._capture.retry()
        self._timers.set_timer(self._check_pause, "look", self._check)

    def _on_timeout(self) -> None:
        if self.leader.if_alive is not None:
            self._timed_out = True
            self._note(timed_out=True)
            self._end(self._spec["grace"])

    def _end(self, grace_s: float) -> None:
        self.leader.note_sent(signal.SIGTERM, signal.SIGKILL)
        self._ender.end(grace_s)

    def _execute(self, order: dict[str, Any]) -> None:
        match order:
            case {"do": "signal", "number": signal.SIGKILL, "target": "tree"}:
                self.leader.note_sent(signal.SIGKILL)
                self._ender.kill()
            case {"do": "signal", "number": int(number), "target": str(target)} if number in signal.valid_signals():
                self.leader.signal(number, target)
            case {"do": "end", "grace": int() | float() as grace}:
                self._end(grace)
            case {"do": "freeze" | "thaw" as what}:
                self._freezer.execute(what)
            case {"do": "eof"} if self._input is not None:
                self._input_ends = True
                self._note(input_ends=True)
                self._input.finish()
            case {"do": "resize", "rows": int(rows), "columns": int(columns)} if self._terminal >= 0:
                self._capture.resize(self._terminal, rows, columns)

    def _path(self, name: str) -> str:
        return os.path.join(self._job.directory, name)
