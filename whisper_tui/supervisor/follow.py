"""What the files of a run say, told as reports: each once, in order."""

from typing import Any

from whisper_tui.model.ending import Ending, Exited, FailedToStart, Lost, Signalled, TimedOut
from whisper_tui.model.run import BackgroundProcess, OutputSizes, ProcessIdentity, RunProcess, Usage
from whisper_tui.supervisor.attempt import Attempt
from whisper_tui.supervisor.executor import HasBackground, HasEnded, HasSettled, HasSpawned, NeverRan, Report
from whisper_tui.supervisor.keeper import layout
from whisper_tui.supervisor.keeper.processes import look_at
from whisper_tui.supervisor.output_files import OutputFiles


class Follower:
    """Knows what has been reported about one run."""

    def __init__(self, attempt: Attempt, files: OutputFiles) -> None:
        self.attempt = attempt
        self._files = files
        self.process: RunProcess | None = None
        """The process, once it is reported."""
        self.answered = False
        """Whether the leader's end is reported."""
        self.over = False
        """Whether the last report is out."""
        self._look = 0
        self._background_mark: tuple[int, int, int] | None = None

    def news(self) -> list[Report]:
        """What the files say beyond what is reported."""
        if self.over:
            return []
        done = self.attempt.has(layout.DONE)
        news = self._spawned(self.attempt.read(layout.PID)) if self.process is None else []
        if not self.answered:
            news += self._answer()
        news += self._background_file()
        if done:
            if not self.answered:
                news += self._ended(Lost(why="its keeper could not write down how it ended"), OutputSizes(), None)
            news += self._settled()
        return news

    def never_ran(self) -> list[Report]:
        """It was revoked."""
        self.over = True
        return [NeverRan(self.attempt.key)]

    def keeper_gone(self, boot: str) -> list[Report]:
        """The last news of a run whose keeper is gone; `boot`: the id of this boot of the machine."""
        news = self.news()
        if self.over:
            return news
        why = None if self.answered else self._why_lost(boot)
        self.attempt.close_books(why)
        if why is not None:
            news += self._ended(Lost(why=why), self._files.sizes(self.attempt.key), None)
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
        self.process = RunProcess(leader=leader, pgid=told["pgid"], keeper_pid=told["keeper"], started_at=told["at"])
        return [HasSpawned(self.attempt.key, self.process)]

    def _answer(self) -> list[Report]:
        told = self.attempt.read(layout.EXIT)
        if told is None:
            return []
        news = self._spawned(told.get("process")) if self.process is None else []
        if "lost" in told:
            sizes = self._files.sizes(self.attempt.key)
            return news + self._ended(Lost(why=told["lost"]), sizes, None)
        news += self._background(told.get("background"))
        usage = Usage(**told["usage"]) if "usage" in told else None
        return news + self._ended(_ending(told), OutputSizes(out=told["out"], err=told["err"]), usage)

    def _ended(self, ending: Ending, output: OutputSizes, usage: Usage | None) -> list[Report]:
        self.answered = True
        return [HasEnded(self.attempt.key, ending, output, usage)]

    def _settled(self) -> list[Report]:
        self.over = True
        return [HasSettled(self.attempt.key)]

    def _background_file(self) -> list[Report]:
        mark = layout.version_of(self.attempt.path(layout.BACKGROUND))
        if mark is None or mark == self._background_mark:
            return []
        self._background_mark = mark
        return self._background(self.attempt.read(layout.BACKGROUND))

    def _background(self, told: Any) -> list[Report]:
        if not told or told["look"] <= self._look:
            return []
        self._look = told["look"]
        processes = tuple(_left_behind(row, told["boot"]) for row in told["processes"])
        return [HasBackground(self.attempt.key, processes)]

    def _why_lost(self, boot: str) -> str:
        if self.process is None:
            spec = self.attempt.read(layout.SPEC) or {}
            if spec.get("boot") != boot:
                return "the machine restarted when it was being started; it may have run"
            return "its keeper was gone before it could say whether the command was started; it may have run"
        leader = self.process.leader
        if leader.boot_id != boot:
            return "the machine restarted while it ran"
        seen = look_at(leader.pid)
        why = f"its keeper (pid {self.process.keeper_pid}) was ended from outside while it ran"
        if seen is not None and seen.start == leader.start_time:
            return f"{why}; the command itself is still alive as pid {leader.pid}, unsupervised"
        return why


def _ending(told: dict[str, Any]) -> Ending:
    if failed := told.get("failed"):
        return FailedToStart(problem=failed["problem"], subject=failed["subject"], message=failed["message"])
    if told["timed_out"] is not None:
        return TimedOut(after_s=told["timed_out"])
    if "signal" in told:
        return Signalled(number=told["signal"], by_us=told["by_us"], core_dumped=told["core"], limit=told.get("limit"))
    return Exited(code=told["code"])


def _left_behind(row: dict[str, Any], boot: str) -> BackgroundProcess:
    identity = ProcessIdentity(pid=row["pid"], start_time=row["start"], boot_id=boot)
    return BackgroundProcess(identity=identity, pgid=row["pgid"], command=row["command"], alive=row["alive"])
