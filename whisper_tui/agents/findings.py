"""The doctor's findings in a client's files, in one format for all clients, and its checks."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Self

from whisper_tui.agents.client_files import InstallRequest, Launch, Opener, is_isolated, launcher_of, plain_of, split
from whisper_tui.agents.file_entries import handlers, value_at
from whisper_tui.agents.hook_formats import SESSION_EVENT, HookFormat
from whisper_tui.agents.other_hooks import OtherHook, named_hooks
from whisper_tui.agents.probe import Seen, canaries_of, prove_hook
from whisper_tui.model.errors import BadConfiguration


class CheckState(StrEnum):
    """The result of a check."""

    GOOD = "good"
    NOTE = "note"
    """Worth knowing, but the hook works."""
    BAD = "bad"
    """The hook failed its test, or something that is installed does not work."""


@dataclass(frozen=True)
class Check:
    """One check: its subject in a word, a sentence about the result, and a hint about what to do."""

    subject: str
    state: CheckState
    sentence: str
    hint: str = ""


def good(subject: str, sentence: str) -> Check:
    """Return a check without a problem."""
    return Check(subject, CheckState.GOOD, sentence)


def note(subject: str, sentence: str, hint: str = "") -> Check:
    """Return a check whose result is worth knowing."""
    return Check(subject, CheckState.NOTE, sentence, hint)


def bad(subject: str, sentence: str, hint: str = "") -> Check:
    """Return a check that failed."""
    return Check(subject, CheckState.BAD, sentence, hint)


@dataclass(frozen=True)
class Report:
    """All checks of one client."""

    client: str
    title: str
    version: str | None
    checks: list[Check] = field(default_factory=list)

    @property
    def proved(self) -> bool:
        """True if everything that is installed was proved."""
        return all(check.state is not CheckState.BAD for check in self.checks)

    @property
    def is_absent(self) -> bool:
        """True if neither the client nor anything for it is installed: there is nothing to tell about it."""
        return self.version is None and all(check.state is CheckState.NOTE for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """Return the report as an object for JSON."""
        checks = [
            {"check": one.subject, "state": str(one.state), "sentence": one.sentence, "hint": one.hint or None}
            for one in self.checks
        ]
        return {
            "client": self.client,
            "title": self.title,
            "version": self.version,
            "proved": self.proved,
            "checks": checks,
        }


@dataclass(frozen=True)
class DoctorContext:
    """The doctor's inputs: the environment, the project's directory, and this installation."""

    launch: Launch
    environ: Mapping[str, str]
    project: Path
    canary_s: float = 10.0
    """Seconds that a hook has to stop the canary."""

    def requests(self) -> tuple[InstallRequest, InstallRequest]:
        """Return the requests for the files of the user and of the project."""
        return (
            InstallRequest(self.launch, self.environ),
            InstallRequest(self.launch, self.environ, project=self.project),
        )


@dataclass(frozen=True)
class FoundHook:
    """A hook of ours in a client's file."""

    path: Path
    words: list[str]
    """Its command line."""
    timeout_s: float | None
    """Seconds that the client waits for it. None: there is no limit."""
    problems: list[Check] = field(default_factory=list)
    """Settings that weaken it."""
    proves: str = "a test command"
    """The calls that its test sends."""
    prove: Callable[[], str | None] = lambda: None
    """Send the canary. Return None if the hook stopped it, otherwise a description of the problem."""

    @classmethod
    def of(
        cls,
        form: HookFormat,
        path: Path,
        command: str,
        context: DoctorContext,
        seen: Seen,
        *,
        timeout_s: float | None,
        problems: list[Check],
    ) -> Self:
        """Return the hook of a command line in a file, with its test. `seen`: the tools that it is called for."""
        return cls(
            path=path,
            words=split(command),
            timeout_s=timeout_s,
            problems=problems,
            proves=canaries_of(form, seen),
            prove=partial(prove_hook, form, command, context.environ, context.canary_s, seen),
        )


@dataclass(frozen=True)
class FoundServer:
    """Our MCP server in a client's file."""

    path: Path
    words: list[str]
    timeout_s: float | None
    """Seconds that a call may take. None: the client's own default."""
    asks_again: str | None
    """How to keep the client from asking a second time about each call. None: it does not ask."""

    @classmethod
    def of(cls, path: Path, entry: Mapping[str, Any], timeout_s: float | None, asks_again: str | None) -> Self:
        """Return the server of an entry with a command and its arguments."""
        return cls(path, command_line(entry.get("command"), entry.get("args", [])), timeout_s, asks_again)


@dataclass(frozen=True)
class Findings:
    """Our hooks and servers in the files of one client, and the checks of those files."""

    hooks: list[FoundHook] = field(default_factory=list)
    servers: list[FoundServer] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    """Checks of the client as a whole."""
    trials: list[Callable[[], Check]] = field(default_factory=list)
    """Checks that start programs."""
    environments: list[Path] = field(default_factory=list)
    """Files that make the client leave all commands to our environment, so that they need no hook."""
    shell_disabled_in: list[Path] = field(default_factory=list)
    """Files that disable the client's own shell tool, so that it needs no hook."""
    others: list[OtherHook] = field(default_factory=list)
    """Hooks and plugins of somebody else that may replace a call after its approval."""

    def read(self, path: Path, opener: Opener) -> Any:
        """Return the content of a file; `{}` if it is missing or cannot be read, with a check for the latter."""
        try:
            return plain_of(path, opener)
        except BadConfiguration as error:
            if all(check.sentence != error.message for check in self.checks):
                self.checks.append(bad("file", error.message, "The client cannot read it either. Correct it first"))
            return {}


def among(plain: Any, path: tuple[str, ...], word: str) -> bool:
    """True if a list in a file contains a word."""
    found = value_at(plain, path)
    return isinstance(found, list) and word in found


def command_line(command: Any, args: Any) -> list[str]:
    """Return a program and its arguments as one list; empty if they are not text."""
    listed = [command, *args] if isinstance(args, list) else [command]
    return listed if all(isinstance(word, str) for word in listed) else []


def seconds(value: Any, per_second: float = 1.0) -> float | None:
    """Return a duration in seconds. None: the value is not a number."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value / per_second if number else None


def is_found_by(matcher: Any, tool: str) -> bool:
    """True if a client that searches for the pattern in tool names would call the hook for this tool."""
    if matcher in (None, "", "*"):
        return True
    try:
        return isinstance(matcher, str) and re.search(matcher, tool) is not None
    except re.error:
        return False


def unseen_tools(
    path: Path, seen: Callable[[str], bool], shells: Iterable[str], tools: Iterable[str], again: str
) -> list[Check]:
    """Check that a hook is called for the tools of a client. A hook for commands alone is worth a note."""
    missed = [tool for tool in shells if not seen(tool)]
    others = [tool for tool in tools if not seen(tool)]
    checks = []
    if others == list(tools) and others:
        sentence = (
            f"{path} lets the hook see only commands: edits, web requests and tools of other servers are not supervised"
        )
        checks.append(note("hook", sentence, f"{again} without --commands-only"))
    else:
        missed += others
    if missed:
        checks.append(bad("hook", f"{path} does not let the hook see the tools {', '.join(missed)}", again))
    return checks


RELOCATING = frozenset({"WHISPER_TUI_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME"})
"""Variables that change the directories of whisper_tui for programs whose command line does not name them."""

_LOADER = re.compile(r"LD_\w+|DYLD_\w+")
"""Variables that make every program load foreign code. A program cannot defend itself against that."""
_STARTERS = frozenset({"CLAUDE_CODE_SHELL_PREFIX"})
"""Variables that name a program with which a client starts its hooks, servers and commands."""
_OF_SHELLS = re.compile(r"BASH_ENV|ENV|ZDOTDIR|SHELLOPTS|PS4|BASH_FUNC_.*")
"""Variables with which a shell runs foreign code before the command that it is given."""
_OF_PYTHON = re.compile(r"PYTHON(?:PATH|HOME|STARTUP|USERBASE|PLATLIBDIR|PYCACHEPREFIX|WARNINGS|BREAKPOINT|INSPECT)")
_OF_LANGUAGES = re.compile(r"NODE_OPTIONS|NODE_PATH|PERL5OPT|PERL5LIB|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS")
"""Variables with which programs of a language load foreign code. No program of ours reads them."""


def replaces(name: str, words: Sequence[str]) -> bool:
    """True if a variable makes what a command line of ours starts load foreign code."""
    if _LOADER.fullmatch(name) or name in _STARTERS:
        return True
    if not _OF_PYTHON.fullmatch(name) or "-I" in launcher_of(words):
        return False
    # The directory of the user's own packages is looked up in spite of -E.
    return name == "PYTHONUSERBASE" or not is_isolated(words)


def not_isolated(subject: str, what: str, words: Sequence[str], again: str) -> list[Check]:
    """Check that a command line of ours starts an isolated Python. Empty: it does."""
    if is_isolated(words):
        return []
    sentence = f"{what} starts Python in the old way: a PYTHONPATH that a project sets, or a queue.py, can replace it"
    return [bad(subject, sentence, again)]


def variables_set_in(settings: Any) -> list[str]:
    """Return the names of the variables in the object `env` of settings."""
    given = settings.get("env") if isinstance(settings, dict) else None
    return [name for name in given if isinstance(name, str)] if isinstance(given, dict) else []


def variable_checks(path: Path, names: Iterable[str], title: str, hooks: Iterable[FoundHook]) -> list[Check]:
    """Check the variables that a file sets for programs that the client starts."""
    found, hooks = [], list(hooks)
    for name in dict.fromkeys(names):
        if any(replaces(name, hook.words) for hook in hooks) or _LOADER.fullmatch(name) or name in _STARTERS:
            sentence = f"{path} sets {name}, with which {title} starts the hook: other code may then answer for it"
            found.append(bad("variables", sentence, "Remove it"))
        elif _OF_SHELLS.fullmatch(name):
            sentence = f"{path} sets {name}: each shell of {title} then runs other code first, which is not supervised"
            found.append(bad("variables", sentence, "Remove it"))
        elif name in RELOCATING:
            sentence = f"{path} sets {name}, so programs may use other directories of whisper_tui"
            found.append(note("variables", sentence, "Remove it, unless you set it yourself"))
        elif _OF_PYTHON.fullmatch(name) or _OF_LANGUAGES.fullmatch(name):
            sentence = f"{path} sets {name}, so what you approve may load code that its command does not name"
            found.append(note("variables", sentence, "Remove it, unless the project needs it"))
    return found


_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*[=:]", re.MULTILINE)
_LONGEST_DOTENV = 1 << 20
"""Bytes of a `.env` file that are read."""


def dotenv_files(project: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the `.env` files that Gemini CLI reads for a project, with the names of their variables."""
    for directory in (project, *project.parents):
        for path in (directory / ".gemini" / ".env", directory / ".env"):
            try:
                with path.open("rb") as file:
                    text = file.read(_LONGEST_DOTENV).decode(errors="replace")
            except OSError:
                continue
            yield path, _ASSIGNED.findall(text)


REPLACES = "Another hook may replace what you have approved"


def other_hook_checks(found: Findings, title: str) -> list[Check]:
    """Name the other hooks and plugins that may replace a call, if there is a hook of ours to be overruled."""
    if not found.hooks:
        return []
    hint = f"{title} takes the answer of one hook alone. Remove it, if you do not know that it changes no call"
    return [note("other hook", f"{REPLACES}: {sentence}", hint) for sentence in named_hooks(found.others)]


def after_checks(
    found: Findings, files: Sequence[Any], events: Iterable[str], is_ours: Callable[[Any], bool], reinstall: str
) -> list[Check]:
    """Check that what ran is compared with what was approved, after each call."""
    missing = [
        event
        for event in sorted(events)
        if not any(is_ours(handler) for plain in files for _, _, handler in handlers(plain, ("hooks", event)))
    ]
    return [not_compared(reinstall)] if found.hooks and missing else []


def not_compared(reinstall: str) -> Check:
    """Return the check of a client whose calls nobody looks at when they are over."""
    return note("comparison", "Nobody notices if something else runs than what you have approved", reinstall)


def context_checks(
    found: Findings,
    files: Sequence[Any],
    is_ours: Callable[[Any], bool],
    title: str,
    reinstall: str,
    *,
    by_server: bool = True,
) -> list[Check]:
    """Check that the model is told once, by a hook or by the MCP server, that a human decides about its commands.

    `by_server`: the instructions of the MCP server reach the model.
    """
    told = any(is_ours(handler) for plain in files for _, _, handler in handlers(plain, ("hooks", SESSION_EVENT)))
    repair = f"{reinstall} --no-mcp" if by_server else reinstall
    return human_note_checks(found, title, repair, reinstall, told=told, by_server=by_server and bool(found.servers))


def human_note_checks(
    found: Findings, title: str, repair: str, reinstall: str, *, told: bool, by_server: bool
) -> list[Check]:
    """Check the same for any client. `by_server`: the instructions of the MCP server reach the model."""
    if told and by_server:
        return [note("context", f"{title} tells its model twice that a human decides about its commands", reinstall)]
    if found.hooks and not told and not by_server:
        return [note("context", f"{title} does not tell its model that a human decides about its commands", repair)]
    return []
