"""The order to start a call: the command as it was judged, in the environment of its session.

A command that nobody was asked about starts without a shell if it needs none, and in a minimal environment.
"""

import os
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isinf
from pathlib import PurePath

from whisper_tui.changes.pre_images import Keeping, NotKept, Root
from whisper_tui.effects import effects_of
from whisper_tui.effects.git_repository import NEUTRAL, NO_PAGER, pin_repository
from whisper_tui.model.board import Board
from whisper_tui.model.call import Argv, CommandSpec, Shell
from whisper_tui.model.effects import Effects, FileEffect
from whisper_tui.model.preview import EXACT_WAYS, PreviewSupport
from whisper_tui.model.run import Limits
from whisper_tui.model.secrets import is_secret_name, secret_spans
from whisper_tui.model.state import CallRecord, Claim
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.commands.wrappers import BUILTINS, is_withheld
from whisper_tui.policy.rules.matching import READ_ONLY
from whisper_tui.policy.shell.static_expansion import SHOWN
from whisper_tui.policy.view import may_change_directory, view
from whisper_tui.supervisor.keeper.spawn import report_of_zsh
from whisper_tui.supervisor.runs.executor import PreviewOptions, RunKey, StartOrder
from whisper_tui.supervisor.runs.held_back import personal_places, secret_files
from whisper_tui.supervisor.runs.sandbox_profile import (
    minimal_environment,
    readable_paths,
    runs_one_of,
    sandbox_profile_of,
    secret_paths,
)
from whisper_tui.supervisor.runs.sandboxed_docker import docker_in_sandbox
from whisper_tui.supervisor.runs.sandboxed_git import git_in_sandbox
from whisper_tui.supervisor.sessions import Environments
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.system import host_files
from whisper_tui.system.file_owners import others_may_change
from whisper_tui.system.host_files import home_of_user, realpath_here

PREVIEW_TIMEOUT_S = 300.0
"""Seconds after which a preview is ended."""
MOST_PREVIEWED_BYTES = 8 << 30
"""Bytes that the changes of one run in a view of the files may take of the disk."""

_QUIET = {
    # A look at the state of a work tree is no change of it.
    "GIT_OPTIONAL_LOCKS": "0",
    # npm, many of its packages, and others ask now and then for a newer version of themselves.
    "NO_UPDATE_NOTIFIER": "1",
    "npm_config_update_notifier": "false",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "CHECKPOINT_DISABLE": "1",
    "HOMEBREW_NO_AUTO_UPDATE": "1",
    # Build tools report how they are used.
    "DO_NOT_TRACK": "1",
    "NEXT_TELEMETRY_DISABLED": "1",
    "NUXT_TELEMETRY_DISABLED": "1",
    "ASTRO_TELEMETRY_DISABLED": "1",
    "GATSBY_TELEMETRY_DISABLED": "1",
    "STORYBOOK_DISABLE_TELEMETRY": "1",
    "TURBO_TELEMETRY_DISABLED": "1",
    "NG_CLI_ANALYTICS": "false",
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
}
"""Variables that keep programs from what they do beside their work: a human would be asked about it.

A command that is held back gets them, and npm and pip where they only read.
"""
_OFFLINE_NPM = {"npm_config_logs_max": "0", "npm_config_offline": "true", "npm_config_cache": "/dev/null"}
"""Settings that beat those of a project: npm asks no server, and writes no log."""

EFFECTS_BUDGET_S = 1.0
"""Seconds within which the files are found that are kept before a command starts."""


class StartOrders:
    """Creates start orders with the settings of one supervisor."""

    def __init__(
        self,
        board: Board,
        environments: Environments,
        settings: SupervisorSettings,
        limits: Limits,
        private: Iterable[str | PurePath],
    ) -> None:
        """`private`: directories that no sandbox opens."""
        self.limits = limits
        self.workers, self.min_memory_bytes = settings.workers, settings.min_memory_bytes
        self._board = board
        self._environments = environments
        self._settings = settings
        self._private = tuple(map(str, private))
        self.draft_of: Callable[[str], str] = lambda session_id: ""
        """Returns the directory of the draft of a session."""

    def of(self, record: CallRecord) -> StartOrder:
        """Return the order to start a call, in the environment and the workspace of its session."""
        # At a place a command gets what a login shell sets there: the agent's variables are about this machine.
        environment = {} if record.spec.place else self._environments.of(record.call.session_id)
        session = self._board.sessions.get(record.call.session_id)
        root = session.root if session is not None else ""
        order = start_order(record, environment, self._settings, self.limits, root=root, private=self._private)
        if record.keeps == "view":
            return replace(order, preview=self._view(record.call.session_id, order.spec, None))
        return order

    def of_draft(self, record: CallRecord) -> StartOrder:
        """Return the order to start a call in the draft of its session that a human lets out. Looks at directories.

        It gets the network. But it may run what the draft has written, which nobody has seen, so that secrets stay
        closed to it (decision 44). Raises `Refused`.
        """
        session_id = record.call.session_id
        session, inherited = self._board.sessions.get(session_id), self._environments.of(session_id)
        root = session.root if session is not None else ""
        known = {name: value for name, value in inherited.items() if not _is_secret(name, value)}
        order = start_order(record, known, self._settings, self.limits, root=root, private=self._private)
        closed = (*self.closed_files(record), *self._personal(record))
        shown = self._view(session_id, order.spec, PreviewSupport(ways=EXACT_WAYS[:1]), closed=closed)
        shown = replace(self._in_draft(session_id, shown), network=True, timeout=None)
        return replace(order, sandbox=None, preview=shown)

    def kept_files(self, record: CallRecord) -> Iterator[Root]:
        """Yield the files of which a call that is about to start leaves pre-images. Raises `NotKept`.

        It looks at the disk, for a bounded time.
        """
        order, session = self.of(record), self._board.sessions.get(record.call.session_id)
        directory = order.real_cwd or order.spec.cwd
        roots = (session.root,) if session is not None and session.root else (directory,)
        environment, budget_s = order.environment, EFFECTS_BUDGET_S
        found = effects_of(order.spec.command, directory, roots, environment, budget_s=budget_s, closed=self._private)
        return roots_of(found)

    def of_preview(
        self,
        record: CallRecord,
        spec: CommandSpec,
        resolved: Resolved | None,
        *,
        attempt: int,
        support: PreviewSupport,
        held_back: bool,
    ) -> StartOrder:
        """Return the order to run the command of a waiting call in a view of the files. Looks at directories.

        `held_back`: nobody has asked for it, and its effects may decide although a human is asked by now.
        """
        closed = (*self.closed_files(record), *self._personal(record)) if held_back else ()
        inherited = self._environments.of(record.call.session_id)
        if held_back:
            # It could write them into a file, for a later command to read.
            inherited = {name: value for name, value in inherited.items() if not _is_secret(name, value)}
        # A preview has nobody who could type into it.
        spec = spec.model_copy(update={"accepts_input": False})
        shown = self._view(record.call.session_id, spec, support, closed=closed)
        return StartOrder(
            key=RunKey(record.id, attempt),
            spec=spec,
            program=resolved.program if resolved else None,
            environment={
                **inherited,
                **spec.environment,
                "WHISPER_TUI": "1",
                "WHISPER_TUI_CALL_ID": record.id,
                **(_QUIET if held_back else {}),
            },
            max_output_bytes=self._settings.max_output_bytes,
            min_free_bytes=self._settings.min_free_bytes,
            limits=self.limits,
            real_cwd=resolved.cwd if resolved else None,
            preview=self._in_draft(record.call.session_id, shown) if record.in_draft else shown,
            # Once it is real, the agent's shell goes on where it has ended.
            reports_directory=record.call.follows and may_change_directory(spec.command),
        )

    def _personal(self, record: CallRecord) -> tuple[str, ...]:
        environment, resolved = self._environments.of(record.call.session_id), record.resolved
        session = self._board.sessions.get(record.call.session_id)
        home = realpath_here(environment.get("HOME") or home_of_user())
        programs = (meaning.program for meaning in resolved.commands) if resolved is not None else ()
        kept = (session.root if session is not None else "", record.spec.cwd, *programs)
        return personal_places(home, (realpath_here(each) for each in kept if each), environment.get("PATH", ""))

    def environment_of(self, record: CallRecord) -> Mapping[str, str]:
        """Return the environment of the session of a call."""
        return self._environments.of(record.call.session_id)

    def closed_files(self, record: CallRecord) -> tuple[str, ...]:
        """Return the files with secrets that a call cannot read while it is held back. Looks at its workspace."""
        session = self._board.sessions.get(record.call.session_id)
        directories = (session.root if session is not None else "", record.call.spec.cwd)
        return secret_files((realpath_here(path) for path in directories if path), self._private)

    def _in_draft(self, session_id: str, shown: PreviewOptions) -> PreviewOptions:
        """Return a view on the overlays of the draft of a session. Nothing else shows its commands one tree."""
        return replace(shown, draft=self.draft_of(session_id), ways=EXACT_WAYS[:1], instead=())

    def _view(
        self, session_id: str, spec: CommandSpec, support: PreviewSupport | None, *, closed: tuple[str, ...] = ()
    ) -> PreviewOptions:
        """Return the view of a command. `support`: of a preview; None: it runs for real, to be undone later."""
        session = self._board.sessions.get(session_id)
        home = self._environments.of(session_id).get("HOME") or home_of_user()
        roots = {
            realpath_here(path) for path in (home, home_of_user(), spec.cwd, session.root if session else "") if path
        }
        options = PreviewOptions(tuple(sorted(roots)), hide=self._private, max_bytes=MOST_PREVIEWED_BYTES)
        if support is None:
            wanted = self._settings.previews
            ways = tuple(way for way in EXACT_WAYS if wanted in ("auto", way))
            return replace(options, network=True, ways=ways)
        # A command that runs for real may use what it needs; in a preview secrets have no purpose.
        hidden = (*self._private, *secret_paths(home, roots), *closed)
        workspace = realpath_here(session.root if session is not None and session.root else spec.cwd)
        return replace(
            options,
            hide=hidden,
            timeout=PREVIEW_TIMEOUT_S,
            ways=support.ways,
            instead=support.refused if support.ways[:1] != ("overlay",) else (),
            workspace=workspace,
            inside=readable_paths(workspace, hidden),
            readable=readable_paths(home, (*hidden, workspace)),
        )


@lru_cache(maxsize=512)
def _is_secret(name: str, value: str) -> bool:
    """True if a variable has a telling name, or a value in the shape of a key."""
    return is_secret_name(name) or any(True for _ in secret_spans(value))


def start_order(
    record: CallRecord,
    environment: Mapping[str, str],
    settings: SupervisorSettings,
    limits: Limits,
    *,
    root: str = "",
    private: Iterable[str] = (),
) -> StartOrder:
    """Return the executor's order for a call that starts.

    `environment` and `root` belong to its session; `private` are directories that no sandbox opens.
    """
    spec, program = _in_own_shell(record, environment) or _command_and_program(record, environment)
    timeout, most = _timeout_and_output_limit(record, settings)
    if timeout != spec.timeout_s:
        spec = spec.model_copy(update={"timeout_s": timeout})
    resolved = record.resolved
    if record.claim is not None:
        environment = _as_claimed(environment, record.claim)
        if record.claim.stdin:
            spec = spec.model_copy(update={"accepts_input": True})
    sandbox = sandbox_profile_of(record, root, private)
    inherited = _inherited(record, environment, root)
    if sandbox is not None:
        repository = resolved.repository if resolved is not None else None
        git = git_in_sandbox(inherited, sandbox.read, repository, commits=bool(sandbox.write))
        inherited = {**git.variables, **inherited}
        sandbox = replace(sandbox, read=(*sandbox.read, *git.read))
        if runs_one_of(record, ("docker",)):
            docker = docker_in_sandbox(environment)
            inherited |= docker.variables
            sandbox = replace(sandbox, docker=docker.socket)
    return StartOrder(
        key=RunKey(record.id, record.attempt or 1),
        spec=spec,
        program=program,
        environment={
            **inherited,
            **record.spec.environment,
            "WHISPER_TUI": "1",
            "WHISPER_TUI_CALL_ID": record.id,
        },
        max_output_bytes=most,
        min_free_bytes=settings.min_free_bytes,
        limits=limits,
        sandbox=sandbox,
        real_cwd=resolved.cwd if resolved else None,
        files=resolved.files if resolved and not _is_unasked(record) else {},
        reports_directory=_reports_directory(record),
    )


def _reports_directory(record: CallRecord) -> bool:
    """True if the agent's shell goes to the directory in which the command has ended."""
    # The agent's shell is on this machine, and so are the directories that it can go to.
    follows = record.claim is not None and record.claim.follows and not record.spec.place
    return follows and may_change_directory(record.spec.command)


def _as_claimed(session: Mapping[str, str], claim: Claim) -> dict[str, str]:
    """Return the environment of a session as its claimer sees it."""
    # A hook's command must not inherit variables that its agent keeps from its own commands.
    kept = {name: value for name, value in session.items() if name not in claim.without}
    return kept | claim.environment


def _is_unasked(record: CallRecord) -> bool:
    """True if a rule or a standing approval allowed it."""
    return record.decided_by is not None and not record.decided_by_human


def _rules_of(record: CallRecord) -> set[str]:
    """The names of the rules that allowed it."""
    return set((record.verdict.rule or "").split(", ")) if record.verdict is not None else set()


def _timeout_and_output_limit(record: CallRecord, settings: SupervisorSettings) -> tuple[float | None, int | None]:
    """Return the timeout of a call, and how many bytes of each of its streams are kept.

    Nobody has agreed that a command of the built-in list runs for ever or fills the disk. If a user's rule allowed it,
    or a part of it, the user has: `npm test | tail` takes as long as the tests.
    """
    timeout, most = record.spec.timeout_s, settings.max_output_bytes
    if not _is_unasked(record) or _rules_of(record) != {READ_ONLY.name}:
        return timeout, most
    seconds, kept = settings.unasked_timeout_s, settings.unasked_output_bytes
    if seconds is not None and not isinf(seconds):
        timeout = seconds if timeout is None else min(timeout, seconds)
    if kept is not None and not isinf(kept):
        most = int(kept) if most is None else min(most, int(kept))
    return timeout, most


def _inherited(record: CallRecord, environment: Mapping[str, str], root: str) -> dict[str, str]:
    """Return the variables that a command inherits from the environment of its session."""
    if record.spec.place:
        # Those of this machine mean nothing there. The place adds what a login shell of the user there sets.
        return {}
    if not _is_unasked(record):
        workspaces = tuple(realpath_here(path) for path in (root, record.spec.cwd) if path)
        return {name: value for name, value in environment.items() if not _runs_unseen(name, value, workspaces)}
    rules = _rules_of(record)
    alone = rules == {READ_ONLY.name}
    if alone or (record.sandbox is not None and record.sandbox.kind == "read-only"):
        added = read_only_environment(record.spec, record.resolved, alone=alone)
        shown = _shown(record, environment) if alone else {}
        return minimal_environment(environment, record.sandbox) | added | shown
    kept = {name: value for name, value in environment.items() if not is_withheld(name)}
    # `pytest | tail` finds its programs as `pytest` does; in another directory, a relative PATH would name others
    return kept | _absolute_path(kept) | NO_PAGER if READ_ONLY.name in rules else kept


def _shown(record: CallRecord, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of its session that a command names, and that may be shown (decision 29)."""
    named = SHOWN.intersection(record.resolved.variables if record.resolved is not None else ())
    given = {name: value for name, value in environment.items() if name in named}
    return given | (_absolute_path(given) if "PATH" in given else {})


def _absolute_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the directories of `PATH` that are the same wherever a program is looked for."""
    path = environment.get("PATH")
    return {} if path is None else {"PATH": ":".join(each for each in path.split(":") if each.startswith("/"))}


_READ_FIRST = frozenset({"BASH_ENV", "ENV"})
"""Variables that name a file which a shell runs before its command."""
_TRACING = frozenset({"SHELLOPTS", "PS4"})
"""Variables with which bash runs code before each of its commands."""


def _runs_unseen(name: str, value: str, workspaces: Sequence[str]) -> bool:
    """True if a variable makes the shell of an approved command run code first that its human has not seen.

    A project's settings can set it (decision 32). A file that only the user can change, and that is no part of a
    workspace, is the user's own set-up, as a profile is.
    """
    if name not in _READ_FIRST:
        return name in _TRACING
    if not value.startswith("/") or any(character in value for character in '$`"\\\0'):
        return True
    real = realpath_here(value)
    if any(real.startswith(workspace.rstrip("/") + "/") for workspace in workspaces):
        return True
    try:
        status = host_files.lstat(real)
    except (OSError, ValueError):
        return True
    return not stat.S_ISREG(status.st_mode) or others_may_change(status, host_files.user_id())


def read_only_environment(spec: CommandSpec, resolved: Resolved | None, *, alone: bool = True) -> dict[str, str]:
    """Return variables for a read-only command that runs without approval. `alone`: no rule allows a part of it."""
    # These variables could break another git command beside it that a rule allows.
    if not alone:
        return NO_PAGER
    names = view(spec.command).names
    if "npm" in names:
        return NEUTRAL | _QUIET | _OFFLINE_NPM
    if names & {"pip", "pip3"}:
        return NEUTRAL | _QUIET
    if "git" not in names:
        return NEUTRAL
    cwd = resolved.cwd if resolved and resolved.cwd else spec.cwd
    return NEUTRAL | pin_repository(resolved.repository if resolved else None, cwd)


BEFORE = {
    # Job control puts each command into a process group of its own, which signals to the run's group do not reach.
    "bash": "builtin set +m; builtin shopt -u extglob; ",
    "zsh": "builtin setopt NO_MONITOR NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL NO_EQUALS NO_MAGIC_EQUAL_SUBST; ",
}
"""Settings that a profile does not change, by the shell; the others are those with which agents are used to run."""


def _in_own_shell(record: CallRecord, environment: Mapping[str, str]) -> tuple[CommandSpec, str] | None:
    """Return the command in the agent's own shell, and the shell. None: it runs as it was read (decision 32)."""
    resolved, command = record.resolved, record.spec.command
    own = resolved.own_shell if resolved is not None else None
    if own is None or resolved is None or not isinstance(command, Shell) or not record.decided_by_human:
        return None
    # No sandbox shows the files of the user's shell.
    if record.sandbox is not None or resolved.program is None:
        return None
    program = own.program or resolved.program
    name = os.path.basename(program)  # noqa: PTH119
    text = f". {shlex.quote(own.profile)} >/dev/null 2>&1 </dev/null; " if own.profile else ""
    text = f"{text}{BEFORE.get(name, '')}eval {shlex.quote(command.text)}"
    if name == "zsh" and _reports_directory(record):
        text = f"{report_of_zsh(environment.get('BASH_ENV'))}; {text}"
    argv = Argv(program=name, args=("-c", "--", text))
    return record.spec.model_copy(update={"command": argv}), program


def _in_login_shell(spec: CommandSpec, environment: Mapping[str, str]) -> CommandSpec:
    """Return a command that finds the programs of its agent although its login shell sets another `PATH`."""
    command, path = spec.command, environment.get("PATH")
    if not isinstance(command, Shell) or not command.login or not path or spec.place:
        return spec
    # Agents bring programs of their own, such as the rg of Codex. They come last, as in decision 32.
    text = f'PATH="${{PATH:+$PATH:}}"{shlex.quote(path)}; eval {shlex.quote(command.text)}'
    return spec.model_copy(update={"command": command.model_copy(update={"text": text})})


def _command_and_program(record: CallRecord, environment: Mapping[str, str]) -> tuple[CommandSpec, str | None]:
    """Return the command to start and its program. A command of literal words is started without a shell."""
    spec, resolved = record.spec, record.resolved
    program = resolved.program if resolved else None
    command = spec.command
    if not isinstance(command, Shell) or not _is_unasked(record) or resolved is None:
        return _in_login_shell(spec, environment), program
    if command.login:
        if record.sandbox is None or record.sandbox.kind != "read-only":
            return spec, program
        # The login files were not judged, and the sandbox does not open them anyway.
        command = command.model_copy(update={"login": False})
        spec = spec.model_copy(update={"command": command})
    plain = view(command).plain
    if plain is None or len(plain) != 1 or not resolved.commands:
        return spec, program
    (only,) = plain
    direct = resolved.commands[0].program
    needs_shell = only.assignments or only.redirections or only.background or only.timed
    if needs_shell or direct is None or only.argv[0] in BUILTINS:
        return spec, program
    argv = Argv(program=only.argv[0], args=only.argv[1:])
    return spec.model_copy(update={"command": argv}), direct


_KEEPING: dict[str, Keeping] = {
    "moves": "links",
    "removes directory": "links",
    "makes directory": "attributes",
    "touches": "attributes",
    "changes mode of": "attributes",
    "changes owner of": "attributes",
}
"""How the file of an effect is kept; of all others the content may change."""
_DEEP = frozenset({"moves", "removes directory", "fills"})


def roots_of(effects: Effects) -> Iterator[Root]:
    """Yield the files and trees of which a command must leave pre-images. Raises `NotKept` if they are not certain."""
    if effects.git:
        raise NotKept("what git changes is only known when it runs")
    if not effects.files_are_certain:
        unsure = (each.reason for each in effects.unknown if each.about in {"files", "everything"})
        code = (f"it runs {each.name}" for each in effects.code)
        raise NotKept(next((*unsure, *code).__iter__(), "not everything that it changes is known before it runs"))
    for file in effects.files:
        yield _root_of(file)
    for removal in effects.removals:
        for path in removal.paths:
            _check_name(path)
            yield Root(path, "links", deep=True)


def _root_of(file: FileEffect) -> Root:
    if file.before in {"special", "unknown"}:
        raise NotKept(f"{file.real} is no regular file")
    _check_name(file.real)
    return Root(file.real, _KEEPING.get(file.action, "copies"), deep=file.below or file.action in _DEEP)


def _check_name(path: str) -> None:
    """Raise `NotKept` for a path that may be a name in escapes."""
    if "\\" in path and not os.path.lexists(path):
        raise NotKept(f"{path} is no name in UTF-8")
