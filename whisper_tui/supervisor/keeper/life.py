"""The life of a keeper: it starts one command, stands by it and by what it leaves behind, and records what happens."""

import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import channels, layout, sandbox, spawn
from whisper_tui.supervisor.keeper.alarms import Alarms
from whisper_tui.supervisor.keeper.background import Background
from whisper_tui.supervisor.keeper.capture import Capture
from whisper_tui.supervisor.keeper.control import InputPump, Orders
from whisper_tui.supervisor.keeper.denials import Denials
from whisper_tui.supervisor.keeper.ending import Ender
from whisper_tui.supervisor.keeper.freezer import Freezer
from whisper_tui.supervisor.keeper.group import RunGroup
from whisper_tui.supervisor.keeper.job import Hints, Job
from whisper_tui.supervisor.keeper.last_directory import LastDirectory
from whisper_tui.supervisor.keeper.leader import Death, Leader
from whisper_tui.supervisor.keeper.moving import Mover
from whisper_tui.supervisor.keeper.processes import Descendants
from whisper_tui.supervisor.keeper.quota import Quota
from whisper_tui.supervisor.keeper.record import Records
from whisper_tui.supervisor.keeper.sandbox import Sandboxes

INTRODUCED_AFTER_S = 0.01
"""How long a command lives before it is announced; the end of a shorter one is announced with its start."""
DRAIN_S = 0.1
"""How long what was printed before the leader's end may take to be read before it is answered."""
FIRST_LOOK_S = 0.05
SOON_S = 0.01
"""How soon to look once a process left behind has ended."""
LAST_LOOK_S = 2.0
"""Seconds between two looks at the background, growing while nothing changes."""
QUIET_LOOK_S = 5.0
"""The longest pause between two looks for processes that left the tree of a living leader."""
FOREIGN_HOLDER_S = 1.0
"""How long an ended run may be kept open by a process that does not belong to it."""
TERMINAL_RETRY_S = 0.1
DISK_RETRY_S = 1.0


class Standing(NamedTuple):
    """What a process arranged before it took a job."""

    boot: str
    """The id of this boot of the machine."""
    wake: int
    """A descriptor that gets one byte for each signal: its number."""
    adopts: bool
    """Whether orphans become our children."""
    sandboxes: Sandboxes
    """Makes sandboxes, as far as the system has any."""


class Keeper:
    """The keeper of one run."""

    def __init__(self, job: Job, standing: Standing) -> None:
        self._job = job
        self._spec = job.spec
        self._wake = standing.wake
        self._sandboxes = standing.sandboxes
        self._denials: Denials | None = None
        self._hints = Hints(job.directory)
        self._poll = select.poll()
        self._alarms = Alarms()
        self._capture = Capture(job.directory, job.spec, self._poll)
        self._group = RunGroup()
        self._records = Records(job.directory, standing.boot, self._group)
        self._descendants = Descendants(os.getpid(), adopts=standing.adopts)
        self._mover = Mover(self._descendants, self._group)
        self._leader = Leader(self._descendants)
        self._background = Background(job.directory, standing.boot, self._descendants)
        self._ender = Ender(self._descendants, self._alarms, self._leader.reap, self._group)
        self._quota = Quota(job.spec, self._alarms, self._leader, self._ender, self._group)
        self._freezer = Freezer(self._descendants, self._alarms, self._ender, self._group)
        self._orders: Orders | None = None
        self._input: InputPump | None = None
        self._terminal = -1
        self._last_directory: LastDirectory | None = None
        self._answered = False
        self._timed_out = False
        self._look_pause = FIRST_LOOK_S
        self._over = False

    def run(self) -> None:
        """Live until nothing of the command is left."""
        try:
            self._start()
        except spawn.StartFailed as failure:
            self._give_up(failure)
        while not self._over:
            self._turn()

    def do_after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do this once if the run lives so long."""
        self._alarms.ring_in(seconds, "after", action)

    def close(self) -> None:
        """Let go of everything, the lock last."""
        self._capture.close()
        if self._last_directory is not None:
            self._last_directory.close()
        if self._input is not None:
            self._input.close()
        if self._orders is not None:
            os.close(self._orders.fd)
        self._records.close()
        self._hints.close()
        os.close(self._job.lock)

    def _start(self) -> None:
        ours = self._open_channels()
        self._group.prepare(self._spec)
        environment = self._private_directory(ours)
        spawn.enter(self._spec["cwd"])
        try:
            spawn.check_unchanged(self._spec)
            environment, actions = self._ask_where_it_ends(environment, ours.actions)
            pid, listener = spawn.spawn(self._spec, environment, actions, self._group, self._sandboxes)
        finally:
            os.chdir("/")
        self._leader.has_started(pid)
        if listener >= 0:
            self._denials = Denials(listener, (*self._spec["sandbox"]["write"], os.devnull, "/dev/tty"))
            self._poll.register(listener, select.POLLIN)
        if self._last_directory is not None:
            self._last_directory.has_started()
        for fd in ours.theirs:
            os.close(fd)
        for number, fd in enumerate(ours.sources):
            self._capture.add(fd, number, is_terminal=self._spec["tty"])
        self._poll.register(self._wake, select.POLLIN)
        if self._input is not None:
            self._input.watch(self._poll)
        if self._spec["timeout"] is not None:
            self._alarms.ring_in(self._spec["timeout"], "timeout", self._time_is_over)
        self._alarms.ring_in(INTRODUCED_AFTER_S, "introduce", self._introduce)
        self._alarms.ring_in(self._look_pause, "look", self._look)

    def _private_directory(self, ours: channels.Channels) -> dict[str, str]:
        """The environment; a sandboxed command has an empty TMPDIR of its own in it, and its own terminal is open."""
        asked = self._spec.get("sandbox")
        if asked is None:
            return self._job.environment
        temporary = self._path(sandbox.TMP)
        try:
            os.mkdir(temporary, 0o700)
        except OSError as error:
            raise spawn.no_channel("a temporary directory", error) from None
        own = [temporary, os.ttyname(ours.theirs[0]), "/dev/tty"] if self._spec["tty"] else [temporary]
        self._spec = {**self._spec, "sandbox": {**asked, "write": [*asked["write"], *own]}}
        return {**self._job.environment, "TMPDIR": temporary}

    def _ask_where_it_ends(
        self, environment: dict[str, str], actions: list[tuple[Any, ...]]
    ) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
        """The environment and the file actions of the start."""
        if not self._spec.get("tells_directory"):
            return environment, actions
        try:
            asked = self._last_directory = LastDirectory(environment)
        except OSError as error:
            raise spawn.no_channel("a way to tell its last directory", error) from None
        return asked.environment, [*actions, *asked.actions]

    def _open_channels(self) -> channels.Channels:
        ours = channels.terminal() if self._spec["tty"] else channels.pipes(takes_input=self._spec["input"])
        if self._spec["tty"]:
            self._terminal = ours.sources[0]
        if ours.target >= 0:
            try:
                self._input = InputPump(self._path(layout.INPUT), ours.target, ours.end_of_input)
            except OSError as error:
                raise spawn.no_channel("a way for input", error) from None
        return ours

    def _give_up(self, failure: spawn.StartFailed) -> None:
        """Record why nothing was started, if need be when the disk has room again."""
        sandboxed = self._spec.get("sandbox") is not None
        while not self._records.written(lambda: self._records.failed(failure, sandboxed=sandboxed)):
            time.sleep(DISK_RETRY_S)
        self._finish()

    def _introduce(self) -> None:
        """Say who runs, and listen to orders. What lasts so long is worth a group, too."""
        self._group.make(self._spec)
        self._mover.begin()
        self._quota.watch()
        try:
            if self._orders is None:
                self._orders = Orders(self._path(layout.CONTROL))
                self._poll.register(self._orders.fd, select.POLLIN)
            self._records.spawned(self._leader)
        except OSError:
            self._alarms.ring_in(DISK_RETRY_S, "introduce", self._introduce)
            return
        self._hints.give(layout.PID)

    def _turn(self) -> None:
        timeline = self._capture.timeline
        ready: list[tuple[int, int]] = self._poll.poll(0) if timeline.dirty else []
        if not ready:
            if timeline.dirty:
                timeline.flush()
            ready = self._poll.poll(self._alarms.milliseconds_left())
        for fd, event in ready:
            self._attend(fd, event)
        self._alarms.ring()
        if self._input is not None:
            self._input.watch(self._poll)
        if self._capture.paused:
            self._alarms.ring_in_once(TERMINAL_RETRY_S, "terminal", self._capture.resume)
        if self._leader.death is not None:
            if not self._answered:
                self._answer(self._leader.death)
            self._finish_if_over()

    def _attend(self, fd: int, event: int) -> None:
        if self._capture.has(fd):
            self._capture.pump(fd)
        elif fd == self._wake:
            self._hear_signals()
        elif self._denials is not None and fd == self._denials.listener:
            if not (event & select.POLLIN and self._denials.answer()):
                self._poll.unregister(fd)
                self._denials.close()
        else:
            # Orders were given before the input that comes together with them: a terminal has its size first.
            for order in self._orders.read() if self._orders is not None else ():
                self._obey(order)
            if self._input is not None:
                self._input.move()

    def _hear_signals(self) -> None:
        numbers = os.read(self._wake, 4096)
        if signal.SIGTERM in numbers:
            self._ender.end(self._spec["grace"])
        if signal.SIGCHLD in numbers:
            self._leader.reap()
            if self._answered:
                self._alarms.ring_in(SOON_S, "look", self._look)

    def _answer(self, death: Death) -> None:
        """The leader ended: that is what is answered, whatever lives on."""
        self._alarms.cancel("timeout")
        self._capture.drain(DRAIN_S)
        self._capture.timeline.flush()
        nobody_left = self._leader.reap()
        if nobody_left:
            self._background.all_gone()
        elif self._background.look(None):
            self._background.save()
        facts = self._facts()
        if not self._records.written(lambda: self._records.ended(self._leader, death, facts)):
            time.sleep(DISK_RETRY_S)
            return
        self._answered = True
        if self._finish_if_over():
            return
        if self._alarms.cancel("introduce"):
            self._introduce()
        self._hints.give(layout.EXIT)
        self._look_pause = FIRST_LOOK_S
        self._alarms.ring_in(self._look_pause, "look", self._look)

    def _facts(self) -> dict[str, Any]:
        totals, dropped = self._capture.totals, self._capture.dropped
        return {
            "out": totals[0],
            "err": totals[1],
            "dropped_out": dropped[0],
            "dropped_err": dropped[1],
            "timed_out": self._spec["timeout"] if self._timed_out else None,
            "by_us": self._leader.ended_by_us,
            "limit": self._quota.broken(),
            "background": self._background.picture(),
            "blocked": self._denials.report(self._error_output()) if self._denials is not None else None,
            "directory": self._last_directory.read() if self._last_directory is not None else None,
        }

    def _error_output(self) -> bytes:
        """The end of what a failed command said; one that ended well was kept from nothing it needed."""
        death = self._leader.death
        if death is None or death.status == 0:
            return b""
        return self._capture.latest(0 if self._spec["tty"] else 1)

    def _finish_if_over(self) -> bool:
        if self._over or not self._answered or not self._leader.reap():
            return self._over
        if self._terminal >= 0 and not self._capture.at_end:
            self._capture.drain(DRAIN_S)
            self._capture.close_sources()
        if not self._capture.at_end and self._ender.asked:
            self._alarms.ring_in_once(FOREIGN_HOLDER_S, "foreign", self._capture.close_sources)
        self._alarms.cancel("look")
        if self._background.all_gone():
            self._background.save()
            self._hints.give(layout.BACKGROUND)
        if self._capture.at_end:
            self._finish()
        return self._over

    def _finish(self) -> None:
        self._over = True
        self._capture.finish()
        if self._input is not None:
            self._input.close()
        if self._mover.moves:
            self._hints.give(layout.EXIT)
            self._mover.wait()
        self._group.remove()
        if self._denials is not None:
            self._denials.close()
        if self._spec.get("sandbox") is not None:
            layout.remove_tree(self._path(sandbox.TMP))
        self._records.done(self._capture.totals if self._capture.uncounted else None)
        self._hints.give(layout.DONE)

    def _look(self) -> None:
        changed = self._background.look(self._leader.if_alive)
        if changed:
            self._background.save()
            self._hints.give(layout.BACKGROUND)
        quiet = self._leader.if_alive is not None and not self._background.someone_alive
        longest = QUIET_LOOK_S if quiet else LAST_LOOK_S
        self._look_pause = FIRST_LOOK_S if changed else min(2 * self._look_pause, longest)
        self._capture.retry()
        self._alarms.ring_in(self._look_pause, "look", self._look)

    def _time_is_over(self) -> None:
        if self._leader.if_alive is not None:
            self._timed_out = True
            self._end(self._spec["grace"])

    def _end(self, grace_s: float) -> None:
        self._leader.note_sent(signal.SIGTERM, signal.SIGKILL)
        self._ender.end(grace_s)

    def _obey(self, order: dict[str, Any]) -> None:
        match order:
            case {"do": "signal", "number": signal.SIGKILL, "target": "tree"}:
                self._leader.note_sent(signal.SIGKILL)
                self._ender.kill()
            case {"do": "signal", "number": int(number), "target": str(target)} if number in signal.valid_signals():
                self._leader.signal(number, target)
            case {"do": "end", "grace": int() | float() as grace}:
                self._end(grace)
            case {"do": "freeze" | "thaw" as what}:
                self._freezer.obey(what)
            case {"do": "eof"} if self._input is not None:
                self._input.finish()
            case {"do": "resize", "rows": int(rows), "columns": int(columns)} if self._terminal >= 0:
                self._capture.resize(self._terminal, rows, columns)

    def _path(self, name: str) -> str:
        return os.path.join(self._job.directory, name)
