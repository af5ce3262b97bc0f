"""The rules of a project: agents can write them, so they only restrict until the user trusts them (decision 10)."""

import hashlib
import json
import os
import stat
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from whisper_tui.config.private_files import read_private, write_private
from whisper_tui.model.decision import Decider
from whisper_tui.model.errors import BadConfiguration, Refused
from whisper_tui.model.event import RulesChanged, untrusted_entries
from whisper_tui.model.verdict import PROJECT_PREFIX
from whisper_tui.policy.rules.rule import ONLY_ASKS, Rule, Rules, as_asks
from whisper_tui.policy.rules.rules_toml import read_rules
from whisper_tui.supervisor.rule_book import RuleTrust
from whisper_tui.system.run_files import stamp
from whisper_tui.system.state_directory import Directories

TRUST_FILE = "trusted-rules.json"
"""File beside the configuration file: a JSON object of workspaces and digests."""


def digest_of(content: bytes) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


class TrustedContent:
    """The trusted rule files of workspaces. Trust is in a content: a changed file is not trusted."""

    def __init__(self, home: Directories) -> None:
        self.path = Path(home.config) / TRUST_FILE
        self.trust_of: RuleTrust | None = None
        """The journaled trust in this file. None: there is no supervisor, and all entries of the file count."""

    @property
    def version(self) -> int:
        """A number that changes whenever the journaled trust changes."""
        return self.trust_of.version if self.trust_of is not None else 0

    def holds(self, root: str, content: bytes) -> bool:
        """True if this very content is trusted in this workspace. An unreadable trust file trusts nothing."""
        try:
            known = self._known()
        except BadConfiguration:
            return False
        # A command can write to this file: an entry counts only if its change was journaled.
        changed = self._look(known)
        if changed is not None and root in known and _mark(root, known[root]) in untrusted_entries(changed):
            return False
        return known.get(root) == digest_of(content)

    def look(self) -> None:
        """Have the supervisor note what the file says."""
        with suppress(BadConfiguration):
            self._look(self._known())

    def _look(self, known: dict[str, str]) -> RulesChanged | None:
        if self.trust_of is None:
            return None
        return self.trust_of.look(str(self.path), tuple(_mark(*entry) for entry in sorted(known.items())))

    def trust(self, root: str, content: bytes, by: Decider | None = None) -> None:
        """Trust a content. Raises `Refused` or `BadConfiguration`."""
        known = self._known()
        old = (_mark(root, known[root]),) if root in known else ()
        if self.trust_of is not None:
            self.trust_of.extend(str(self.path), (_mark(root, digest_of(content)),), old, by)
        self._write({**known, root: digest_of(content)})

    def forget(self, root: str, by: Decider | None = None) -> None:
        """Remove the trust in a workspace. Raises `Refused` if it was not trusted, or `BadConfiguration`."""
        known = self._known()
        if root not in known:
            raise Refused(f"the rules in {root} are not trusted", hint="There is no trust to remove")
        if self.trust_of is not None:
            self.trust_of.extend(str(self.path), (), (_mark(root, known[root]),), by)
        self._write({other: digest for other, digest in known.items() if other != root})

    def _known(self) -> dict[str, str]:
        text = read_private(self.path)
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
    """Return the trust in a workspace as an entry that allows."""
    return f"allow what the project {root} allows #{str(digest)[:24]}".encode("utf-8", "replace").decode()


PROJECT_RULES_FILE = Path(".whisper-tui", "rules.toml")
"""Path of the rule file in a workspace."""

LONGEST = 256 * 1024
"""Limit of the size of a rule file in bytes."""

MOST_REMEMBERED = 64
"""Limit of workspaces whose rules are kept in memory."""


class _Read(NamedTuple):
    content: bytes | None
    """The bytes of the file. None: there is no file, or it cannot be read."""
    problem: str | None
    """The reason why it cannot be read, or None."""


class ProjectRuleFiles:
    """The rules of each workspace that has any, read again when their file or the user's trust changes."""

    def __init__(self, trusted: TrustedContent) -> None:
        self._trusted = trusted
        self._known: dict[str, tuple[object, Rules]] = {}

    def of(self, root: str) -> Rules:
        """Return the valid rules of a workspace: those that allow are valid only if this very content is trusted.

        An unreadable file makes every call in the workspace be asked.
        """
        # A session of the library may name no workspace, and a relative path would mean the supervisor's directory.
        if not root.startswith("/"):
            return Rules()
        path = Path(root) / PROJECT_RULES_FILE
        stamps = (*(stamp(str(file), follow_links=False) for file in (path, self._trusted.path)), self._trusted.version)
        known = self._known.get(root)
        if known is None or known[0] != stamps:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.pop(next(iter(self._known)))
            known = self._known[root] = (stamps, self._read(root, path))
        return known[1]

    def content(self, root: str) -> bytes:
        """Return the content of a workspace's file. Raises `BadConfiguration` if it is missing or unreadable."""
        path = Path(root) / PROJECT_RULES_FILE
        read = _read(path)
        if read.problem is not None:
            raise BadConfiguration(f"{path} {read.problem}", hint="Put an ordinary file there")
        if read.content is None:
            raise BadConfiguration(f"there is no file {path}", hint="Name a directory whose project has rules")
        return read.content

    def _read(self, root: str, path: Path) -> Rules:
        read = _read(path)
        if read.problem is not None:
            return Rules(broken=f"{path} {read.problem}")
        if read.content is None:
            return Rules()
        rules = rules_of_content(read.content, str(path))
        trusted = self._trusted.holds(os.path.realpath(root), read.content)
        return trusted_here(rules, root) if trusted else restrictions_only(rules)


def rules_of_content(content: bytes, where: str) -> Rules:
    """Return all rules of a project's file. Problems are in `broken`."""
    try:
        return read_rules(tomllib.loads(content.decode()), where, table="")
    except UnicodeDecodeError as error:
        return Rules(broken=f"{where} is not UTF-8 text (byte {error.start})")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return Rules(broken=f"{where} is not valid TOML: {error}")


def restrictions_only(rules: Rules) -> Rules:
    """Return the rules of a project that only restrict; their reasons are attributed to the project."""
    return as_asks(rules).model_copy(
        update={
            "deny": tuple(map(_told, rules.deny)),
            "ask": tuple(map(_told, rules.ask)),
            "allow": (),
            "deletes": None,
        }
    )


def trusted_here(rules: Rules, root: str) -> Rules:
    """Return all rules of a project; those that allow are limited to its workspace."""
    # With a slash at the end, so that /srv/app does not include /srv/application.
    here = root.rstrip("/") + "/"

    def inside(rule: Rule) -> Rule:
        keeps = rule.directory is not None and (os.path.normpath(rule.directory) + "/").startswith(here)
        return rule.model_copy(update={"name": _name(rule), "directory": rule.directory if keeps else root})

    # Trusted or not, a project can only lower what runs unasked.
    return as_asks(rules).model_copy(
        update={
            "deny": tuple(map(_told, rules.deny)),
            "ask": tuple(map(_told, rules.ask)),
            "allow": tuple(map(inside, rules.allow)),
            "deletes": None,
        }
    )


def _name(rule: Rule) -> str:
    return PROJECT_PREFIX + rule.name


def _told(rule: Rule) -> Rule:
    """Return a rule whose reason cannot be mistaken for one of the user's, and which allows and moves nothing."""
    said = f"the project's rules say: {rule.justification}" if rule.justification else ""
    return rule.model_copy(update={"name": _name(rule), "justification": said, **ONLY_ASKS})


def _read(path: Path) -> _Read:
    """Read a file of a project, without following a link."""
    # An agent may put a FIFO or a device there, on which a blocking open or read would wait for ever.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return _Read(None, None)
    except OSError as error:
        return _Read(None, f"cannot be read: {error.strerror}")
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _Read(None, "is not an ordinary file")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            content = file.read(LONGEST + 1)
    except OSError as error:
        return _Read(None, f"cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)
    return _Read(None, f"is longer than {LONGEST:,} bytes") if len(content) > LONGEST else _Read(content, None)
