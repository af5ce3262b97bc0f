"""Which content of which project's rules the user has read and trusts."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from whisper_tui.config.private_text import private_text
from whisper_tui.config.private_write import write_private
from whisper_tui.model.errors import BadConfiguration, Refused
from whisper_tui.model.home import Home
from whisper_tui.model.rule_entries import untrusted
from whisper_tui.supervisor.rule_trust import RuleTrust

FILE_NAME = "trusted-rules.json"
"""Beside the configuration file: an object of workspaces and digests."""


Announce = Callable[[str, tuple[str, ...], tuple[str, ...]], None]
"""Told a path, and which entries are about to be written there and to go, because a human wants it."""


def silent(path: str, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
    """Nobody has to be told."""


def digest_of(content: bytes) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


class TrustedContent:
    """What was trusted, by workspace. Trust is in a content, so that a changed file is not trusted."""

    def __init__(self, home: Home, announce: Announce = silent) -> None:
        self.path = Path(home.config) / FILE_NAME
        self.announce = announce
        self.trust_of: RuleTrust | None = None
        """What is journaled about this file. None: what it says holds."""

    @property
    def version(self) -> int:
        """Another number whenever something else may be trusted by what is journaled."""
        return self.trust_of.version if self.trust_of is not None else 0

    def holds(self, root: str, content: bytes) -> bool:
        """Whether this very content was trusted in this workspace. A file that cannot be read trusts nothing."""
        try:
            known = self._known()
        except BadConfiguration:
            return False
        if self.trust_of is not None:
            changed = self.trust_of.look(str(self.path), tuple(_mark(*entry) for entry in sorted(known.items())))
            if root in known and _mark(root, known[root]) in untrusted(changed):
                return False
        return known.get(root) == digest_of(content)

    def trust(self, root: str, content: bytes) -> None:
        """Trust a content. Raises `Refused` or `BadConfiguration`."""
        known = self._known()
        old = (_mark(root, known[root]),) if root in known else ()
        self.announce(str(self.path), (_mark(root, digest_of(content)),), old)
        self._write({**known, root: digest_of(content)})

    def forget(self, root: str) -> None:
        """Trust nothing there any more. Raises `Refused` if nothing was trusted, or `BadConfiguration`."""
        known = self._known()
        if root not in known:
            raise Refused(f"the rules in {root} are not trusted", hint="There is nothing to take back")
        self.announce(str(self.path), (), (_mark(root, known[root]),))
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


def _mark(root: str, digest: object) -> str:
    """A workspace whose rules are trusted, as an entry that allows."""
    return f"allow what the project {root} allows #{str(digest)[:24]}".encode("utf-8", "replace").decode()
