"""Whether these tests run where decisions, or sandboxes, are possible at all, and how much they try."""

import os

import pytest

from whisper_tui.supervisor.runs.sandbox_profile import sandbox_problem
from whisper_tui.wire.peers import why_supervised_here

EXHAUSTIVE = bool(os.environ.get("EXHAUSTIVE"))
"""True under `make exhaustive`: tests with many similar cases then try them all, and otherwise a fixed part of them."""
exhaustive_only = pytest.mark.skipif(not EXHAUSTIVE, reason="takes minutes: make exhaustive runs it")
"""For tests that wait for timeouts of the network, or repeat others in another way."""
outside_only = pytest.mark.skipif(why_supervised_here() is not None, reason="inside a supervised command")
"""For tests that decide: a supervised command may not, so they cannot pass in one."""
needs_overlays = pytest.mark.usefixtures("overlays")
"""For tests whose commands run on overlays of the files: a fixture skips them where the system has none."""
needs_sandbox = pytest.mark.skipif(bool(sandbox_problem()), reason=f"no sandbox here: {sandbox_problem()}")
"""For tests whose commands the kernel has to confine."""
