"""The rules of agent clients: found in their files and kept up to date, or imported from a file that a user names."""

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from whisper_tui.agents.known_clients import profile_behind, profiles
from whisper_tui.agents.own_rules import ImportedRules, RuleDirectories, RuleSource, literal_words
from whisper_tui.agents.profile import ClientProfile, RuleFormat
from whisper_tui.model.call import Session
from whisper_tui.policy.rules.rule import NO_RULES, Rule, Rules
from whisper_tui.supervisor.approvals.resolve import outside_programs

LONGEST = 1024 * 1024
"""The size in bytes above which a file is not read."""

MOST_REMEMBERED = 64
"""How many combinations of client and workspace keep their rules in memory."""


class ClientRules:
    """The rules of each client in each workspace. They are read again when one of the files changes."""

    def __init__(self, user_directory: Path) -> None:
        self._user_directory = user_directory
        self._known: dict[object, tuple[object, Rules]] = {}

    def of(self, session: Session, environment: Mapping[str, str]) -> Rules:
        """Return the rules of a session's client in the session's workspace."""
        name = session.client.name if session.client is not None else ""
        return self.of_client(name, session.root, environment, session.pid)

    def of_client(self, name: str, root: str, environment: Mapping[str, str], pid: int | None = None) -> Rules:
        """Return the rules of a client in a workspace, by the client's name in sessions. `pid`: its process."""
        profile = profile_behind(name)
        if profile is None or not profile.calls_itself(name) or not root.startswith("/"):
            return NO_RULES
        sources = tuple(dict.fromkeys(sources_of(profile, Path(root), self._user_directory, environment, pid)))
        # Every call comes here, so the files are only checked with `stat`, and read again when that has changed.
        key = (profile.name, *(source.path for source in sources))
        stamp = tuple(_stamp(source.path) for source in sources)
        known = self._known.get(key)
        if known is None or known[0] != stamp:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.pop(next(iter(self._known)))
            known = self._known[key] = (stamp, _rules_in(profile.title, sources))
        return known[1]


def sources_of(
    profile: ClientProfile, root: Path, own_home: Path, environment: Mapping[str, str], pid: int | None = None
) -> Iterable[RuleSource]:
    """Return the files with a client's own rules: managed ones, the user's and the project's, or its command line."""
    if profile.own_rules is None:
        return ()
    variables = ("HOME", *profile.directory_variables)
    moved = {name: Path(value) for name in variables if (value := environment.get(name, "")).startswith("/")}
    homes = tuple(dict.fromkeys((own_home, moved.get("HOME", own_home))))
    process = Path("/proc") / str(pid) if pid else None
    return profile.own_rules(RuleDirectories(root, homes, moved, process))


def _rules_in(title: str, sources: Iterable[RuleSource]) -> Rules:
    """Return the rules of all files together. If one of them cannot be read, every command is asked about."""
    found: list[Rules] = []
    problems = []
    for path, read in sources:
        try:
            text = _text(path)
            if text is not None:
                found.append(read(text.removeprefix("\ufeff")).rules(title, str(path)))
        except (OSError, ValueError, RecursionError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            problems.append(f"{path}, a file with {title}'s own rules, cannot be read: {why}")
    return Rules(
        deny=tuple(rule for rules in found for rule in rules.deny),
        ask=tuple(rule for rules in found for rule in rules.ask),
        read_only=False if any(rules.read_only is False for rules in found) else None,
        broken="; ".join(problems) or None,
    )


def _text(path: Path) -> str | None:
    """The text of a file. None: there is none."""
    try:
        # A project may have replaced its settings by a FIFO, and opening that must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        content = file.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise ValueError(f"it is longer than {LONGEST:,} bytes")
    return content.decode()


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        about = os.stat(path)  # noqa: PTH116  `Path.stat` takes longer, and this runs with every call
    except OSError:
        return None
    return (about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino)


def import_rules(name: str, text: str, kind: str | None = None) -> ImportedRules:
    """Import the rules of a file. Raises `ValueError` if it cannot be read, or has no known format."""
    formats = [one for profile in profiles() for one in profile.rule_formats]
    chosen = next((one for one in formats if one.name == kind), None) if kind else _format_of(name, text, formats)
    if chosen is None:
        endings: dict[str, list[str]] = {}
        for one in formats:
            endings.setdefault(one.ending, []).append(one.title)
        known = [f"{ending} ({', '.join(titles)})" for ending, titles in endings.items()]
        raise ValueError(f"its name does not end in {', '.join(known[:-1])} or {known[-1]}")
    return chosen.read(text)


def outside_of_system(rules: Iterable[Rule]) -> Iterable[str]:
    """Yield a sentence for each rule that allows a program which no sandbox opens: a script outside of the system."""
    for rule in rules:
        words = rule.prefix or literal_words(rule.text or rule.pattern or "") or ()
        program = rule.program or next((word for word in words if "=" not in word), None)
        found = shutil.which(program) if program and "/" not in program else None
        if rule.sandbox and found is not None and any(not each.runs_alone for each in outside_programs((found,), ())):
            yield (
                f"allow {rule.name}: no sandbox opens {found}; "
                "add its directories as execute = […] to the rule, or set sandbox = false"
            )


def _format_of(name: str, text: str, formats: Iterable[RuleFormat]) -> RuleFormat | None:
    """The format of a text by its file's extension. Several formats share `.json`; there the text decides."""
    fitting = [one for one in formats if name.endswith(one.ending)]
    recognized = (one for one in fitting if one.recognizes is not None and one.recognizes(text))
    return next(recognized, next((one for one in fitting if one.recognizes is None), None))
