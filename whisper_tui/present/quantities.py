"""Times, sizes, counts and signals as text. Standard library only, because light subcommands import it."""

import time


def age(seconds: float) -> str:
    """Return a rough time in at most four characters, for columns: 42s, 12m, 3h, 5d."""
    seconds = max(0, int(seconds))
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "m"), (86_400, 3600, "h")):
        if seconds < limit:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86_400}d"


def duration(seconds: float) -> str:
    """Return a measured time: 0.12 s, 4.2 s, 1 min 05 s, 2 h 03 min."""
    if seconds < 1:
        return f"{max(0.0, seconds):.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60:02d} min"


def limit(seconds: float) -> str:
    """Return a configured time without insignificant digits: 30 s, 2 min, 1 h 30 min."""
    if seconds < 60 or seconds % 60:
        return f"{seconds:g} s"
    hours, minutes = divmod(int(seconds) // 60, 60)
    return " ".join(part for part in (f"{hours} h" * bool(hours), f"{minutes} min" * bool(minutes)) if part)


def size(count: int) -> str:
    """Return a number of bytes: 0 B, 812 B, 1.2 kB, 34 MB."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        # 999.6 kB would be rounded to "1000 kB".
        if amount < 999.5:
            return f"{amount:.1f} {unit}" if amount < 99.95 else f"{amount:.0f} {unit}"
    return f"{amount:.0f} PB"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: 1 call, 2 calls."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def clock_time(at: float) -> str:
    """Return the local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def minute_from(at: float) -> str:
    """Return the first full minute, in local time, that is not before a time: something is possible from 14:03 on."""
    return time.strftime("%H:%M", time.localtime(at + 59))


def time_with_milliseconds(at: float) -> str:
    """Return the local time of day with milliseconds, in twelve characters."""
    return f"{clock_time(at)}.{int(at * 1000) % 1000:03d}"


def date_and_time(at: float) -> str:
    """Return a day and a time of day: 2026-03-01 14:02."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


DAY_S = 86_400


def history_column(at: float, now: float) -> str:
    """Return the time of day, the day or the year, depending on the age. It always has six columns."""
    then, today = time.localtime(at), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime(" %H:%M", then)
    # A day without its year is ambiguous if it may be in last year.
    return time.strftime("%d %b" if now - at < 300 * DAY_S else "%Y", then)[:6].rjust(6)
