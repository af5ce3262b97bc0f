"""Draws every picture of this folder again: `make screenshots`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.pictures import main

main()
