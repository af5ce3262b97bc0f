"""What a user may set about being called."""

import re
from typing import Literal

from pydantic import Field, field_validator

from whisper_tui.model.value import Value

_HOURS = re.compile(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d")


class CallingSettings(Value):
    """The `[calling]` table of the configuration file."""

    when: Literal["away", "always", "never"] = "away"
    """Away: only while the terminal has not the focus, or nobody has touched it for a while."""
    away_after_s: float = Field(default=30.0, ge=0)
    """Seconds without a key or a mouse movement until somebody counts as away."""
    at_most_every_s: float = Field(default=10.0, ge=1)
    """Seconds between two calls; what comes in between is called for together."""
    bell: bool = True
    """Whether the terminal's bell is rung."""
    notify: Literal["osc9", "osc777", "off"] = "osc9"
    """Which request for a notification the terminal is sent: the one of iTerm2, WezTerm and others, or that of urxvt,
    foot and others."""
    desktop: bool = False
    """Whether `notify-send` or `osascript` shows a notification."""
    title: bool = True
    """Whether the title of the terminal says how many calls wait."""
    command: tuple[str, ...] = ()
    """A program and its arguments, which gets JSON on its standard input. Empty: none."""
    command_timeout_s: float = Field(default=10.0, gt=0, le=300)
    """Seconds until that program is ended."""
    quiet: str = ""
    """Hours in which nobody is called, like 22:00-07:00, in local time. Empty: none."""

    @field_validator("quiet")
    @classmethod
    def _hours(cls, value: str) -> str:
        if value and not _HOURS.fullmatch(value):
            raise ValueError(f"hours are written like 22:00-07:00, not {value!r}")
        return value

    @field_validator("command")
    @classmethod
    def _program(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value and (not value[0] or any("\0" in word for word in value)):
            raise ValueError("the first word must be a program, and no word may hold a zero byte")
        return value


NEVER = CallingSettings(when="never", title=False)
"""Nobody is called, and the title of the terminal stays as it is."""
