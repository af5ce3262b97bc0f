"""Exports of calls through the API: JSON lines, terminal recordings and reports (decision 3).

The command line imports this file alone, and the rest only to write an export.
"""

from typing import Literal

ExportFormat = Literal["jsonl", "asciicast", "asciicast3", "markdown"]
ENDINGS: dict[ExportFormat, str] = {"jsonl": ".jsonl", "asciicast": ".cast", "asciicast3": ".cast", "markdown": ".md"}
"""The usual file extension of each format."""
