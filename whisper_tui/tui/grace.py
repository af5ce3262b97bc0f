"""Which approvals are held back before they are sent, and for how long: what the user sets."""

from dataclasses import dataclass
from typing import Literal

WhichCalls = Literal["grave", "every", "none"]
GRACE_S = 3.0


@dataclass(frozen=True)
class Grace:
    """Which approvals are held back, and for how many seconds."""

    which: WhichCalls = "grave"
    """Those of calls with a grave risk, every one, or none."""
    seconds: float = GRACE_S


NO_GRACE = Grace("none")
