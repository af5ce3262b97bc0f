"""Whether these tests run where decisions are possible at all."""

import pytest

from whisper_tui.wire.peers import ancestry, look, why_supervised
from whisper_tui.wire.rendezvous import INSIDE


def supervised() -> str | None:
    """Why nothing can be decided from here. None: it can."""
    import os

    return why_supervised(ancestry(os.getpid(), look), ())


outside_only = pytest.mark.skipif(supervised() is not None, reason=f"inside a supervised command ({INSIDE})")
"""For tests that decide: a supervised command may not, so they cannot pass in one."""
