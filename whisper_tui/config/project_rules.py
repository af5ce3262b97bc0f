"""The rules that a project brings along: agents can write there, so they only tighten until the user trusts them."""

import os
import stat
import tomllib
from pathlib import Path
from typing import NamedTuple

from whisper_tui.config.trusted_content import TrustedContent
from whisper_tui.model.errors import BadConfiguration
from whisper_tui.model.rule_names import PROJECT
from whisper_tui.policy.rules import Rule, Rules
from whisper_tui.policy.rules_file import read_rules

PLACE = Path(".whisper-tui", "rules.toml")
"""Where the file is in a workspace."""

LONGEST = 256 * 1024
"""Bytes of a file that is read at all."""

MOST_REMEMBERED = 64
"""Workspaces whose rules are kept in memory."""


class _Read(NamedTuple):
    content: bytes | None
    """None: there is no file."""
    problem: str | None
    """Why it cannot be read."""


class ProjectRules:
    """The rules of each workspace that has any, read again when their file or the user's trust changes."""

    def __init__(self, trusted: TrustedContent) -> None:
        self._trusted = trusted
        self._known: dict[str, tuple[object, Rules]] = {}

    def of(self, root: str) -> Rules:
        """The rules of a workspace as far as they hold: what allows only holds where this very content is trusted.

        A file that cannot be read makes everything be asked there.
        """
        if not root.startswith("/"):
            return Rules()
        path = Path(root) / PLACE
        stamp = (_stamp(path), _stamp(self._trusted.path), self._trusted.version)
        known = self._known.get(root)
        if known is None or known[0] != stamp:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.pop(next(iter(self._known)))
            known = self._known[root] = (stamp, self._read(root, path))
        return known[1]

    def unheard(self, root: str) -> int:
        """How many rules that allow do not hold there, because this content is not trusted."""
        read = _read(Path(root) / PLACE)
        if read.content is None or self._trusted.holds(os.path.realpath(root), read.content):
            return 0
        return len(rules_of_content(read.content, str(PLACE)).allow)

    def content(self, root: str) -> bytes:
        """What the file of a workspace holds. Raises `BadConfiguration` if there is none or it cannot be read."""
        path = Path(root) / PLACE
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
        return trusted_here(rules, root) if trusted else tightening(rules)


def rules_of_content(content: bytes, where: str) -> Rules:
    """The rules of a project's file, all of them. What cannot be read is said in `broken`."""
    try:
        return read_rules(tomllib.loads(content.decode()), where, table="")
    except UnicodeDecodeError as error:
        return Rules(broken=f"{where} is not UTF-8 text (byte {error.start})")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return Rules(broken=f"{where} is not valid TOML: {error}")


def tightening(rules: Rules) -> Rules:
    """Those of a project's rules that can only make things stricter; their words are told as the project's."""
    return rules.model_copy(
        update={
            "deny": tuple(map(_told, rules.deny)),
            "ask": tuple(map(_told, rules.ask)),
            "allow": (),
            "read_only": False if rules.read_only is False else None,
        }
    )


def trusted_here(rules: Rules, root: str) -> Rules:
    """All of a project's rules; none of those that allow reaches beyond its workspace."""
    here = root.rstrip("/") + "/"

    def inside(rule: Rule) -> Rule:
        keeps = rule.directory is not None and (os.path.normpath(rule.directory) + "/").startswith(here)
        return rule.model_copy(update={"name": _name(rule), "directory": rule.directory if keeps else root})

    return rules.model_copy(
        update={
            "deny": tuple(map(_told, rules.deny)),
            "ask": tuple(map(_told, rules.ask)),
            "allow": tuple(map(inside, rules.allow)),
        }
    )


def _name(rule: Rule) -> str:
    return PROJECT + rule.name


def _told(rule: Rule) -> Rule:
    """A rule whose reason cannot be taken for one of the user's."""
    said = f"the project's rules say: {rule.justification}" if rule.justification else ""
    return rule.model_copy(update={"name": _name(rule), "justification": said})


def _read(path: Path) -> _Read:
    """Only an ordinary file is read, and never waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return _Read(None, None)
    except OSError as error:
        return _Read(None, f"cannot be read: {error.strerror}")
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _Read(None, "is no ordinary file")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            content = file.read(LONGEST + 1)
    except OSError as error:
        return _Read(None, f"cannot be read: {error.strerror}")
    finally:
        os.close(descriptor)
    return _Read(None, f"is longer than {LONGEST:,} bytes") if len(content) > LONGEST else _Read(content, None)


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        about = path.lstat()
    except OSError:
        return None
    return (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino)
