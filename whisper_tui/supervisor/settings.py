"""Settings of the supervisor in the configuration file."""

import os
from typing import Literal, Protocol

from pydantic import Field

from whisper_tui.model.api import SettingList
from whisper_tui.model.errors import Refused
from whisper_tui.model.preview import PreviewSetting
from whisper_tui.model.value import Value
from whisper_tui.policy.rules.rule import UndoneBy


def default_workers() -> int:
    """Twice the processors that this process may use."""
    return 2 * (os.cpu_count() or 1)


class SupervisorSettings(Value):
    """The `[supervisor]` table of the configuration file."""

    workers: int = Field(default_factory=default_workers, ge=1, le=1000)
    """Number of commands that run at the same time without anybody having been asked."""
    min_memory_bytes: int = Field(default=256 * 1024 * 1024, ge=0)
    """Below this much available memory no command starts, approved or not. 0: whatever is available."""
    max_output_bytes: int | None = Field(default=None, ge=65_536)
    """Bytes kept of each stream of one run, half from its head and half from its tail. None: all."""
    unasked_timeout_s: float | None = Field(default=600.0, gt=0, allow_inf_nan=True)
    """Time limit in seconds of a read-only command that runs without approval. None, or `inf`: only the agent's own
    time limit counts."""
    unasked_output_bytes: float | None = Field(default=268_435_456, ge=65_536, allow_inf_nan=True)
    """Bytes kept of each stream of such a command. None, or `inf`: as many as of any other command."""
    held_back_s: float = Field(default=10.0, gt=0, le=3600)
    """Seconds after which a human is asked about a command that is held back and has not ended: see `unasked`."""
    min_free_bytes: int = Field(default=256 * 1024 * 1024, ge=0)
    """Below this much free disk, only the tail of further output is kept."""
    when_agent_cancels: Literal["keep", "stop"] = "keep"
    """Treatment of a running command whose agent no longer waits for it."""
    previews: PreviewSetting = "auto"
    """How commands are previewed. `auto`: in the most exact way that works on this machine."""


class RetentionSettings(Value):
    """The `[retention]` table of the configuration file: how much recorded output is kept. None, or `inf`: all."""

    days: float | None = Field(default=30.0, gt=0, allow_inf_nan=True)
    """Since a run was over."""
    gigabytes: float | None = Field(default=5.0, ge=0, allow_inf_nan=True)
    """10^9 bytes that the output of all runs may take of the disk."""
    files: float | None = Field(default=500_000, ge=0, allow_inf_nan=True)
    """Files of all runs together: a short command has few bytes and eight files, and disks bound their number."""


class TakeBackSettings(Value):
    """The `[undo]` table of the configuration file: what is kept so that it can be undone (decision 16)."""

    keep: UndoneBy = "severe"
    """The approved commands whose changes are kept: those with a severe risk, every one, or none."""
    days: float | None = Field(default=7.0, gt=0, allow_inf_nan=True)
    """Days for which they are kept. None, or `inf`: as long as the output."""
    gigabytes: float | None = Field(default=5.0, ge=0, allow_inf_nan=True)
    """10^9 bytes that they may take of the disk together. None, or `inf`: as much as the output."""


class PhoneSettings(Value):
    """The `[phone]` table of the configuration file (decision 40)."""

    origin: str = ""
    """The address by which phones reach the page, like `https://box.example.ts.net`. Empty: it is given each time."""
    may_approve_severe: bool = False
    """True if a phone may also approve calls with a severe risk, and those that change files which grant power."""


class EvidenceSettings(Value):
    """The `[evidence]` table of the configuration file (decision 41)."""

    sign: str = ""
    """The file of the ssh key by which decisions at the desk are signed. Empty: they are not."""


class SettingsFile(Protocol):
    """The configuration file of an instance. Raises `WhisperError`."""

    def listed(self) -> SettingList:
        """Return the settings that a person changes."""
        ...

    def change(self, name: str, value: str | None, seen: str) -> None:
        """Write a setting, or remove it; `seen`: the value that it must have now."""
        ...


class NoSettingsFile:
    """Stands for the configuration file of a supervisor that has none, and refuses everything."""

    def listed(self) -> SettingList:
        """Raise `Refused`."""
        raise Refused("this supervisor has no configuration file", hint="Use the supervisor of an instance")

    def change(self, name: str, value: str | None, seen: str) -> None:
        """Raise `Refused`."""
        self.listed()
