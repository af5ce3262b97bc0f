"""Advice where an optional part of the package is not installed."""

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit


def how_to_install(extra: str) -> str:
    """Return the command that adds an extra to this installation."""
    # From the directory it was installed from, never by name: anybody could register that name in the index.
    folder, editable = _source()
    option = "-e " if editable else ""
    install = f"{shlex.quote(sys.executable)} -m pip install {option}"
    if folder is None:
        return f"In a checkout of whisper_tui: {install}'.[{extra}]'"
    return f"Run: {install}{shlex.quote(f'{folder}[{extra}]')}"


def _source() -> tuple[Path | None, bool]:
    """Return the directory that was installed, if it still exists, and True if it is an editable installation."""
    try:
        about = json.loads(distribution("whisper-tui").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None, False
    url = urlsplit(str(about.get("url", "")))
    folder = Path(unquote(url.path))
    if url.scheme != "file" or not (folder / "pyproject.toml").is_file():
        return None, False
    return folder, bool(about.get("dir_info", {}).get("editable"))
