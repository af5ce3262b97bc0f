"""When calls of the past came, in the words and the columns of the history. Times are local."""

import time

DAY_S = 86_400


def column(at: float, now: float) -> str:
    """The time of day of what came today, else the day, else the year; always six columns."""
    then, today = time.localtime(at), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime(" %H:%M", then)
    return time.strftime("%d %b" if now - at < 300 * DAY_S else "%Y", then)[:6].rjust(6)


def day_time(at: float) -> str:
    """A day and a time of day: 2026-03-01 14:02."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
