"""The interpreter of the tests under a name that a line of shell and `#!` take as it stands.

A checkout may lie below a directory with a space in its name. Where a test writes the interpreter into a line of shell
or behind `#!`, it writes `PYTHON`; whatever starts a program by words of its own takes `sys.executable`, so that
whisper_tui itself runs under the name that its users give it.
"""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

_VARIABLE = "TESTS_PYTHON"
"""Tells the processes of the tests the name that the first of them has found: the same cases must have the same names
in each of them."""


def _plain_name() -> str:
    """Return `sys.executable`, or its name through a link to its environment where that one needs quotes."""
    if shlex.quote(sys.executable) == sys.executable:
        return sys.executable
    if _VARIABLE not in os.environ:
        place = tempfile.mkdtemp(prefix="python-of-tests-")
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        # The whole environment: an interpreter by a name outside of it would not find its packages.
        link = Path(place) / "environment"
        link.symlink_to(sys.prefix)
        os.environ[_VARIABLE] = str(link / Path(sys.executable).relative_to(sys.prefix))
    return os.environ[_VARIABLE]


PYTHON = _plain_name()
