"""The settings of notifications, as the table `[calling]` of the configuration has them."""

import re
from typing import Literal

from pydantic import Field, field_validator

from whisper_tui.model.value import Value

_HOURS = re.compile(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d")


class NotifySettings(Value):
    """The `[calling]` table of the configuration file. The table keeps its old name, so that old files load."""

    when: Literal["away", "always", "never"] = "away"
    """`away` notifies only while the terminal is unfocused or idle."""
    away_after_s: float = Field(default=30.0, ge=0)
    """Seconds without a key or mouse movement until the person counts as away."""
    at_most_every_s: float = Field(default=10.0, ge=1)
    """Rate limit: seconds between two notifications. Calls in between share the next one."""
    bell: bool = True
    """Ring the terminal's bell."""
    notify: Literal["osc9", "osc777", "off"] = "osc9"
    """The escape sequence of notifications: OSC 9 of iTerm2, WezTerm and others, or OSC 777 of urxvt,
    foot and others."""
    desktop: bool = False
    """Show notifications with `notify-send` or `osascript`."""
    desktop_buttons: bool = False
    """Show a desktop notification for each waiting call, with its command and buttons. It needs the extra `desktop`."""
    desktop_open: tuple[str, ...] = ()
    """The program of the button Open, such as a terminal with the cockpit. Empty: no such button."""
    title: bool = True
    """Show the number of waiting calls in the terminal's title."""
    command: tuple[str, ...] = ()
    """A program and its arguments. It gets each notification as JSON on standard input. Empty: none."""
    command_timeout_s: float = Field(default=10.0, gt=0, le=300)
    """Seconds until that program is killed."""
    quiet: str = ""
    """Quiet hours in local time, like 22:00-07:00. Empty: none."""

    @field_validator("quiet")
    @classmethod
    def _hours(cls, value: str) -> str:
        if value and not _HOURS.fullmatch(value):
            raise ValueError(f"hours are written like 22:00-07:00, not {value!r}")
        return value

    @field_validator("command", "desktop_open")
    @classmethod
    def _program(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value and (not value[0] or any("\0" in word for word in value)):
            raise ValueError("the first word must be a program, and no word may contain a null byte")
        return value


NO_NOTIFICATIONS = NotifySettings(when="never", title=False)
"""No notifications, and no change of the terminal's title."""
