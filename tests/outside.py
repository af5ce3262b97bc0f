"""Whether these tests run where decisions are possible at all."""

import pytest

from whisper_tui.wire.peers import why_supervised_here

outside_only = pytest.mark.skipif(why_supervised_here() is not None, reason="inside a supervised command")
"""For tests that decide: a supervised command may not, so they cannot pass in one."""
