"""The life of a keeper: it starts one command, stands by it and by what it leaves behind, and records what happens."""

import fcntl
import os
import select
import signal
import struct
import termios
import time
from typing import Any, NamedTuple

from whisper_tui.supervisor.keeper import layout, spawn
from whisper_tui.supervisor.keeper.alarms import Alarms
from whisper_tui.supervisor.keeper.background import Background
from whisper_tui.supervisor.keeper.capture import Capture
from whisper_tui.supervisor.keeper.control import InputPump, Orders
from whisper_tui.supervisor.keeper.ending import Ender
from whisper_tui.supervisor.keeper.job import Hints, Job
from whisper_tui.supervisor.keeper.processes import Descendants
from whisper_tui.supervisor.keeper.record import Death, Records
from whisper_tui.supervisor.keeper.signals import send_to_all, send_to_group

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
ROWS, COLUMNS = 24, 80


class Standing(NamedTuple):
    """What a process arranged before it took a job."""

    boot: str
    """The id of this boot of the machine."""
    wake: int
    """A descriptor that gets one byte for each signal: its number."""
    adopts: bool
    """Whether orphans become our children."""


class Keeper:
    """One keeper. Making it opens its files; `OSError` means that nothing was started."""

    def __init__(self, job: Job, hints: Hints, standing: Standing) -> None:
        self._job = job
        self._wake = standing.wake
        self._hints = hints
        self._poll = select.poll()
        self._alarms = Alarms()
        self._capture = Capture(job.directory, job.spec, self._poll)
        self._records = Records(job.directory, standing.boot)
        self._descendants = Descendants(os.getpid(), adopts=standing.adopts)
        self._background = Background(job.directory, standing.boot, self._descendants)
        self._ender = Ender(self._descendants, self._alarms, self._reap)
        self._orders = Orders(self._path(layout.CONTROL))
        self._input: InputPump | None = None
        self._input_watched = -1
        self._terminal = -1
        self._leader = 0
        """Pid of the leader, and its group. While `_death` is None it is not reaped, so it can be nobody else's."""
        self._answered = False
        self._death: Death | None = None
        self._started = 0.0
        self._sent: set[int] = set()
        """Signals that we sent when they could reach the leader."""
        self._timed_out = False
        self._look_pause = FIRST_LOOK_S
        self._over = False

    def run(self) -> None:
        """Live until nothing of the command is left."""
        try:
            self._start()
        except spawn.StartFailed as failure:
            self._records.failed(failure)
            self._capture.close()
            self._records.done(None)
            self._hints.give(layout.DONE)
            return
        while not self._over:
            self._turn()

    def _start(self) -> None:
        spawn.enter(self._job.spec["cwd"])
        tty = self._job.spec["tty"]
        started_at = time.time()
        try:
            ends = self._start_on_terminal() if tty else self._start_on_pipes()
        finally:
            os.chdir("/")
        self._started = time.monotonic()
        self._descendants.expect_group(self._leader)
        for fd in ends:
            os.close(fd)
        for fd in (self._wake, self._orders.fd):
            self._poll.register(fd, select.POLLIN)
        self._arrange_input()
        self._records.spawned(self._leader, started_at)
        self._hints.give(layout.PID)
        self._records.reserve()
        if self._job.spec["timeout"] is not None:
            self._alarms.ring_in(self._job.spec["timeout"], "timeout", self._time_is_over)
        self._alarms.ring_in(self._look_pause, "look", self._look)

    def _start_on_pipes(self) -> list[int]:
        takes_input = self._job.spec["input"]
        try:
            out, err = os.pipe(), os.pipe()
            stdin = os.pipe() if takes_input else (os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), -1)
        except OSError as error:
            raise spawn.no_channel("pipes", error) from None
        actions = spawn.three(stdin[0], out[1], err[1])
        self._leader = spawn.spawn(self._job.spec, self._job.environment, actions)
        self._capture.add(out[0], 0)
        self._capture.add(err[0], 1)
        if takes_input:
            os.set_blocking(stdin[1], False)
            self._input = InputPump(self._path(layout.INPUT), stdin[1], None)
        return [stdin[0], out[1], err[1]]

    def _start_on_terminal(self) -> list[int]:
        try:
            self._terminal, inner = os.openpty()
        except OSError as error:
            raise spawn.no_channel("a terminal", error) from None
        self._set_size(ROWS, COLUMNS)
        self._leader = spawn.spawn(self._job.spec, self._job.environment, spawn.terminal(os.ttyname(inner)))
        self._capture.add(self._terminal, 0, is_terminal=True)
        end = termios.tcgetattr(inner)[6][termios.VEOF]
        self._input = InputPump(self._path(layout.INPUT), os.dup(self._terminal), end)
        return [inner]

    def _turn(self) -> None:
        ready: list[tuple[int, int]] = self._poll.poll(0) if self._capture.timeline.dirty else []
        if not ready:
            if self._capture.timeline.dirty:
                self._capture.timeline.flush()
            ready = self._poll.poll(self._alarms.milliseconds_left())
        for fd, _ in ready:
            if self._capture.has(fd):
                self._capture.pump(fd)
            elif fd == self._wake:
                self._hear_signals()
            elif fd == self._orders.fd:
                for order in self._orders.read():
                    self._obey(order)
            elif self._input is not None and fd in {self._input.source, self._input.target}:
                self._input.move()
        self._arrange_input()
        self._alarms.ring()
        if self._capture.paused:
            self._alarms.ring_in_once(TERMINAL_RETRY_S, "terminal", self._capture.resume)
        if self._death is None:
            return
        if not self._answered:
            self._answer(self._death)
        self._finish_if_over()

    def _hear_signals(self) -> None:
        numbers = os.read(self._wake, 4096)
        if signal.SIGTERM in numbers:
            self._ender.end(self._job.spec["grace"])
        if signal.SIGCHLD in numbers:
            self._reap()
            if self._answered:
                self._alarms.ring_in(SOON_S, "look", self._look)

    def _reap(self) -> bool:
        """Bury the dead. Returns whether nobody is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return not self._descendants.can_hide or not self._descendants.now()
            if not pid:
                return False
            if pid == self._leader and self._death is None:
                self._death = Death(status, usage, time.monotonic())

    def _answer(self, death: Death) -> None:
        """The leader ended: that is what is answered, whatever lives on."""
        self._answered = True
        self._alarms.cancel("timeout")
        self._capture.drain(DRAIN_S)
        if self._reap():
            self._background.all_gone()
        elif self._background.look(None):
            self._background.save()
        self._capture.timeline.flush()
        status = death.status
        (out, err), (dropped_out, dropped_err) = self._capture.totals, self._capture.dropped
        facts = {
            "out": out,
            "err": err,
            "dropped_out": dropped_out,
            "dropped_err": dropped_err,
            "timed_out": self._job.spec["timeout"] if self._timed_out else None,
            "by_us": os.WIFSIGNALED(status) and os.WTERMSIG(status) in self._sent,
            "background": self._background.picture(),
        }
        self._records.ended(death, death.at - self._started, facts)
        if not self._finish_if_over():
            self._hints.give(layout.EXIT)
            self._look_pause = FIRST_LOOK_S
            self._alarms.ring_in(self._look_pause, "look", self._look)

    def _finish_if_over(self) -> bool:
        if self._over or not self._reap():
            return self._over
        if self._terminal >= 0 and not self._capture.at_end:
            self._capture.drain(DRAIN_S)
            self._capture.close_sources()
        if not self._capture.at_end:
            if self._ender.asked:
                self._alarms.ring_in_once(FOREIGN_HOLDER_S, "foreign", self._capture.close_sources)
            self._note_all_gone()
            return False
        self._note_all_gone()
        if self._input is not None:
            self._input.close()
        self._capture.close()
        self._records.done(self._capture.totals if self._capture.uncounted else None)
        self._hints.give(layout.DONE)
        self._over = True
        return True

    def _note_all_gone(self) -> None:
        self._alarms.cancel("look")
        if self._background.all_gone():
            self._background.save()
            self._hints.give(layout.BACKGROUND)

    def _look(self) -> None:
        changed = self._background.look(self._leader if self._death is None else None)
        if changed:
            self._background.save()
            self._hints.give(layout.BACKGROUND)
        longest = QUIET_LOOK_S if self._death is None and not self._background.someone_alive else LAST_LOOK_S
        self._look_pause = FIRST_LOOK_S if changed else min(2 * self._look_pause, longest)
        self._capture.retry()
        self._alarms.ring_in(self._look_pause, "look", self._look)

    def _time_is_over(self) -> None:
        if self._death is not None:
            return
        self._timed_out = True
        self._note_sent(signal.SIGTERM, signal.SIGKILL)
        self._ender.end(self._job.spec["grace"])

    def _obey(self, order: dict[str, Any]) -> None:
        match order:
            case {"do": "signal", "number": int(number), "target": str(target)} if number in signal.valid_signals():
                self._signal(number, target)
            case {"do": "end", "grace": int() | float() as grace}:
                self._note_sent(signal.SIGTERM, signal.SIGKILL)
                self._ender.end(grace)
            case {"do": "eof"} if self._input is not None:
                self._input.finish()
            case {"do": "resize", "rows": int(rows), "columns": int(columns)} if self._terminal >= 0:
                self._set_size(rows, columns)

    def _signal(self, number: int, target: str) -> None:
        self._note_sent(number)
        match target:
            case "leader":
                if self._death is None:
                    os.kill(self._leader, number)
            case "group":
                if self._death is None:
                    send_to_group(self._leader, number)
                else:
                    self._signal_orphaned_group(number)
            case _ if number == signal.SIGKILL:
                self._ender.kill()
            case _:
                send_to_all(self._descendants.now(), number)

    def _signal_orphaned_group(self, number: int) -> None:
        """The leader's group has lost its leader: its number is only as good as a member that is seen in it."""
        if any(seen.pgid == self._leader for seen in self._descendants.now()):
            send_to_group(self._leader, number)

    def _note_sent(self, *numbers: int) -> None:
        if self._death is None:
            self._sent.update(numbers)

    def _set_size(self, rows: int, columns: int) -> None:
        try:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        except (OSError, struct.error):
            return

    def _arrange_input(self) -> None:
        """Watch the one end of the input's way that it waits for."""
        pump = self._input
        if pump is None:
            return
        wanted = pump.source if pump.wants_source else pump.target if pump.wants_target else -1
        if wanted == self._input_watched:
            return
        if self._input_watched >= 0:
            self._poll.unregister(self._input_watched)
        if wanted >= 0:
            self._poll.register(wanted, select.POLLIN if wanted == pump.source else select.POLLOUT)
        self._input_watched = wanted

    def _path(self, name: str) -> str:
        return os.path.join(self._job.directory, name)
