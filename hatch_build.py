"""The build hook of the wheel: manual pages, made from the same parser as `--help`."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPages(BuildHookInterface[Any]):
    """Adds `share/man/man1`, where `man` finds the pages beside the installed program."""

    _place: Path

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the pages where the builder takes them from."""
        # Declaring the command line needs the standard library alone, and so no dependency in the build environment.
        sys.path.insert(0, self.root)
        try:
            from whisper_tui.cli.commands.shell_completion import manual_pages
        finally:
            sys.path.remove(self.root)
        self._place = Path(tempfile.mkdtemp(prefix="whisper-tui-man-"))
        for name, text in manual_pages().items():
            page = self._place / f"{name}.1"
            page.write_text(text, encoding="utf-8")
            build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the pages, which are in the wheel now."""
        shutil.rmtree(self._place)
