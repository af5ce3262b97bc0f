"""Hours of the day in which nobody is to be called."""

import time


def quiet_until(hours: str, at: float) -> str | None:
    """The end of the quiet hours that hold at a time, like 07:00. None: none do.

    `hours` is like 22:00-07:00, local time, or empty; from the first minute on, up to the second. `at` is in seconds
    since the epoch.
    """
    start, _, end = hours.partition("-")
    if not end or start == end:
        return None
    now = time.strftime("%H:%M", time.localtime(at))
    within = start <= now < end if start < end else now >= start or now < end
    return end if within else None
