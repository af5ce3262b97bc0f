"""Which content of which project's rules the user has read and trusts."""

import hashlib
import json
from pathlib import Path

from whisper_tui.config.private_text import private_text
from whisper_tui.config.private_write import write_private
from whisper_tui.model.errors import BadConfiguration, Refused
from whisper_tui.model.home import Home

FILE_NAME = "trusted-rules.json"
"""Beside the configuration file: an object of workspaces and digests."""


def digest_of(content: bytes) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


class TrustedContent:
    """What was trusted, by workspace. Trust is in a content, so that a changed file is not trusted."""

    def __init__(self, home: Home) -> None:
        self.path = Path(home.config) / FILE_NAME

    def holds(self, root: str, content: bytes) -> bool:
        """Whether this very content was trusted in this workspace. A file that cannot be read trusts nothing."""
        try:
            return self._known().get(root) == digest_of(content)
        except BadConfiguration:
            return False

    def trust(self, root: str, content: bytes) -> None:
        """Trust a content. Raises `Refused` or `BadConfiguration`."""
        self._write({**self._known(), root: digest_of(content)})

    def forget(self, root: str) -> None:
        """Trust nothing there any more. Raises `Refused` if nothing was trusted, or `BadConfiguration`."""
        known = self._known()
        if root not in known:
            raise Refused(f"the rules in {root} are not trusted", hint="There is nothing to take back")
        self._write({other: digest for other, digest in known.items() if other != root})

    def _known(self) -> dict[str, str]:
        text = private_text(self.path)
        if text is None:
            return {}
        try:
            known = json.loads(text)
        except ValueError as error:
            raise BadConfiguration(f"{self.path} is not JSON: {error}", hint="Delete it, then trust again") from error
        if not isinstance(known, dict):
            raise BadConfiguration(f"{self.path} holds no object", hint="Delete it, then trust again")
        return known

    def _write(self, known: dict[str, str]) -> None:
        write_private(self.path, json.dumps(known, indent=2, sort_keys=True) + "\n")
