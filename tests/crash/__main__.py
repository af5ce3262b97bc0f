"""Runs the crash test from the command line."""

import sys

from tests.crash.run import main

sys.exit(main())
