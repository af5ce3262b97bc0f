"""What the files of a run say, told as reports: each once, in order."""

from pathlib import Path
from typing import Any, NamedTuple

from whisper_tui.model.ending import Ending, Exited, FailedToStart, Lost, Signalled, TimedOut
from whisper_tui.model.run import BackgroundProcess, ControlGroup, OutputSizes, ProcessIdentity, RunProcess, Usage
from whisper_tui.model.sandbox import Blocked
from whisper_tui.supervisor.attempt import Attempt
from whisper_tui.supervisor.boot_mark import BootMark
from whisper_tui.supervisor.executor import HasBackground, HasEnded, HasSettled, HasSpawned, NeverRan, Report
from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.processes import look_at
from whisper_tui.supervisor.output_files import OutputFiles
from whisper_tui.supervisor.remains import Remains


class _Told(NamedTuple):
    """What the files say, all of it read before anything is made of it."""

    done: bool
    process: Any
    exit: Any
    mark: tuple[int, int, int] | None
    """The version of the list of what was left behind."""
    background: Any
    sizes: OutputSizes
    """Of the output of a run that was lost."""


class Follower:
    """Knows what has been reported about one run."""

    def __init__(self, attempt: Attempt, files: OutputFiles) -> None:
        self.attempt = attempt
        self._files = files
        self.process: RunProcess | None = None
        """The process, once it is reported."""
        self.answered = False
        """Whether the leader's end is reported."""
        self.remains: Remains | None = None
        """What takes orders once its keeper is gone."""
        self.over = False
        """Whether the last report is out."""
        self._look = 0
        self._background_mark: tuple[int, int, int] | None = None

    def news(self) -> list[Report]:
        """What the files say beyond what is reported. Raises `OSError` if they cannot be read now; then it is none."""
        if self.over:
            return []
        told = self._read()
        news = self._spawned(told.process) if self.process is None else []
        if not self.answered:
            news += self._answer(told.exit, told.sizes)
        self._background_mark = told.mark
        news += self._background(told.background)
        if told.done:
            if not self.answered:
                news += self._ended(Lost(why="its keeper could not write down how it ended"), OutputSizes(), None)
            news += self._settled()
        return news

    def nobody_came(self, boot: BootMark, *, asked: bool) -> list[Report]:
        """Decide that nobody will take it up, unless somebody has; `asked`: this process asked for the start."""
        spec = self.attempt.read(layout.SPEC)
        if (str(spec["boot"]) if spec is not None else boot.before) not in {boot.now, ""}:
            return self.doubtful("the machine restarted when it was being started; it may have run")
        if not Path(self.attempt.directory).is_dir():
            if asked or self.process is not None:
                return self.doubtful("its files were removed while it was starting or running; it may have run")
            return self.never_ran()
        fate = self.attempt.revoke()
        if fate == "revoked":
            return self.never_ran()
        return self.keeper_gone(boot.now) if fate == "gone" else self.news()

    def never_ran(self) -> list[Report]:
        """It was revoked."""
        self.over = True
        return [NeverRan(self.attempt.key)]

    def keeper_gone(self, boot: str) -> list[Report]:
        """News of a run whose keeper is gone, the last unless its control group holds something that lives.

        `boot`: the id of this boot of the machine.
        """
        spec, sizes = self.attempt.read(layout.SPEC) or {}, self._files.sizes(self.attempt.key)
        news = self.news()
        if self.over:
            return news
        self.remains = self.remains or Remains(self.attempt)
        left = self.remains.alive
        why = None if self.answered else self._why_lost(boot, spec.get("boot"), held=left)
        if why is not None:
            news += self._ended(Lost(why=why), sizes, None)
        news += self._background(self.remains.list(boot))
        if left:
            self.attempt.lose(why)
            return news
        self.remains.remove()
        self.attempt.close_books(why)
        return news + self._settled()

    def doubtful(self, why: str) -> list[Report]:
        """It may have run, and no file can tell."""
        if self.answered:
            return self._settled()
        self.attempt.close_books(why)
        return [*self._ended(Lost(why=why), OutputSizes(), None), *self._settled()]

    def _spawned(self, told: Any) -> list[Report]:
        if not told:
            return []
        leader = ProcessIdentity(pid=told["pid"], start_time=told["start"], boot_id=told["boot"])
        self.process = _process(leader, told)
        return [HasSpawned(self.attempt.key, self.process)]

    def _read(self) -> _Told:
        """That it is over is looked at first, and so is what it says then complete."""
        done = self.attempt.has(layout.DONE)
        process = self.attempt.read(layout.PID) if self.process is None else None
        ending = None if self.answered else self.attempt.read(layout.EXIT)
        mark = layout.version_of(self.attempt.path(layout.BACKGROUND))
        is_new = mark is not None and mark != self._background_mark
        background = self.attempt.read(layout.BACKGROUND) if is_new else None
        lost = ending is not None and "lost" in ending
        sizes = self._files.sizes(self.attempt.key) if lost else OutputSizes()
        return _Told(done, process, ending, mark, background, sizes)

    def _answer(self, told: Any, sizes: OutputSizes) -> list[Report]:
        if told is None:
            return []
        news = self._spawned(told.get("process")) if self.process is None else []
        if "lost" in told:
            return news + self._ended(Lost(why=told["lost"]), sizes, None)
        news += self._background(told.get("background"))
        usage = Usage(**told["usage"]) if "usage" in told else None
        blocked = Blocked.model_validate(told["blocked"]) if told.get("blocked") else None
        sizes = OutputSizes(out=told["out"], err=told["err"])
        return news + self._ended(_ending(told), sizes, usage, blocked)

    def _ended(
        self, ending: Ending, output: OutputSizes, usage: Usage | None, blocked: Blocked | None = None
    ) -> list[Report]:
        self.answered = True
        return [HasEnded(self.attempt.key, ending, output, usage, blocked)]

    def _settled(self) -> list[Report]:
        self.over = True
        return [HasSettled(self.attempt.key)]

    def _background(self, told: Any) -> list[Report]:
        if not told or told["look"] <= self._look:
            return []
        self._look = told["look"]
        processes = tuple(_left_behind(row, told["boot"]) for row in told["processes"])
        return [HasBackground(self.attempt.key, processes)]

    def _why_lost(self, boot: str, started_in: str | None, *, held: bool) -> str:
        if self.process is None:
            if started_in != boot:
                return "the machine restarted when it was being started; it may have run"
            return "its keeper was gone before it could say whether the command was started; it may have run"
        leader = self.process.leader
        if leader.boot_id != boot:
            return "the machine restarted while it ran"
        seen = look_at(leader.pid)
        why = f"its keeper (pid {self.process.keeper_pid}) was ended from outside while it ran"
        if seen is not None and seen.start == leader.start_time:
            since = "its output is lost since" if held else "unsupervised"
            return f"{why}; the command itself is still alive as pid {leader.pid}, {since}"
        return why


def _ending(told: dict[str, Any]) -> Ending:
    if failed := told.get("failed"):
        return FailedToStart(problem=failed["problem"], subject=failed["subject"], message=failed["message"])
    if told["timed_out"] is not None:
        return TimedOut(after_s=told["timed_out"])
    if "signal" in told:
        return Signalled(number=told["signal"], by_us=told["by_us"], core_dumped=told["core"], limit=told.get("limit"))
    return Exited(code=told["code"])


def _process(leader: ProcessIdentity, told: dict[str, Any]) -> RunProcess:
    group = told.get("group")
    return RunProcess(
        leader=leader,
        pgid=told["pgid"],
        keeper_pid=told["keeper"],
        started_at=told["at"],
        group=ControlGroup(path=group, sums=tuple(told["sums"])) if group else None,
    )


def _left_behind(row: dict[str, Any], boot: str) -> BackgroundProcess:
    identity = ProcessIdentity(pid=row["pid"], start_time=row["start"], boot_id=boot)
    return BackgroundProcess(identity=identity, pgid=row["pgid"], command=row["command"], alive=row["alive"])
