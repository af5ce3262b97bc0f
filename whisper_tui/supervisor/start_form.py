"""How a command starts: as it was judged, in its session's environment.

One that nobody was asked about starts without a shell where it needs none, in a clean environment.
"""

from collections.abc import Iterable, Mapping
from math import isinf

from whisper_tui.model.command import Argv, CommandSpec, Shell
from whisper_tui.model.run import Limits
from whisper_tui.model.state import CallRecord, Claim
from whisper_tui.policy.allowing import LOOKS
from whisper_tui.policy.builtin_names import BUILTINS
from whisper_tui.policy.environment import taken_away
from whisper_tui.policy.view import may_leave, view
from whisper_tui.supervisor.executor import RunKey, StartOrder
from whisper_tui.supervisor.git_repository import looking_environment
from whisper_tui.supervisor.sandboxing import profile, shown_only
from whisper_tui.supervisor.settings import SupervisorSettings


def start_order(
    record: CallRecord,
    environment: Mapping[str, str],
    settings: SupervisorSettings,
    limits: Limits,
    *,
    root: str = "",
    private: Iterable[str] = (),
) -> StartOrder:
    """What the executor is told about a call that starts.

    `environment` and `root` are its session's; `private` are directories that no sandbox opens.
    """
    spec, program = _what_starts(record)
    timeout, most = _bounds(record, settings)
    if timeout != spec.timeout_s:
        spec = spec.model_copy(update={"timeout_s": timeout})
    resolved = record.resolved
    if record.claim is not None:
        environment = _as_claimed(environment, record.claim)
        if record.claim.stdin:
            spec = spec.model_copy(update={"accepts_input": True})
    return StartOrder(
        key=RunKey(record.id, record.attempt or 1),
        spec=spec,
        program=program,
        environment={
            **_inherited(record, environment),
            **record.spec.environment,
            "WHISPER_TUI": "1",
            "WHISPER_TUI_CALL_ID": record.id,
        },
        max_output_bytes=most,
        min_free_bytes=settings.min_free_bytes,
        limits=limits,
        sandbox=profile(record, root, private),
        real_cwd=resolved.cwd if resolved else None,
        files=resolved.files if resolved and not _is_unasked(record) else {},
        tells_directory=record.claim is not None and record.claim.follows and may_leave(spec.command),
    )


def _as_claimed(session: Mapping[str, str], claim: Claim) -> dict[str, str]:
    """Never more of a session's environment than its agent gives to its own commands."""
    kept = {name: value for name, value in session.items() if name not in claim.without}
    return kept | claim.environment


def _is_unasked(record: CallRecord) -> bool:
    """Whether a rule or a remembered approval let it through."""
    return record.decided_by is not None and record.decided_by.surface in {"rule", "memory"}


def _rules_of(record: CallRecord) -> set[str]:
    """The names of the rules that allowed it."""
    return set((record.verdict.rule or "").split(", ")) if record.verdict is not None else set()


def _bounds(record: CallRecord, settings: SupervisorSettings) -> tuple[float | None, int | None]:
    """How long it may run, and how many bytes are kept of each of its streams.

    Nobody has agreed that a command of the built-in list goes on for ever or fills the disk. Where a rule of the
    user's allowed it, or a part of it, somebody has: `npm test | tail` takes as long as the tests.
    """
    timeout, most = record.spec.timeout_s, settings.max_output_bytes
    if not _is_unasked(record) or _rules_of(record) != {LOOKS.name}:
        return timeout, most
    seconds, kept = settings.unasked_timeout_s, settings.unasked_output_bytes
    if seconds is not None and not isinf(seconds):
        timeout = seconds if timeout is None else min(timeout, seconds)
    if kept is not None and not isinf(kept):
        most = int(kept) if most is None else min(most, int(kept))
    return timeout, most


def _inherited(record: CallRecord, environment: Mapping[str, str]) -> dict[str, str]:
    """What a command inherits of its session's environment."""
    if not _is_unasked(record):
        return dict(environment)
    rules = _rules_of(record)
    if LOOKS.name in rules or (record.sandbox is not None and record.sandbox.kind == "read-only"):
        added = looking_environment(record.spec, record.resolved, alone=rules == {LOOKS.name})
        return shown_only(environment, record.sandbox) | added
    return {name: value for name, value in environment.items() if not taken_away(name)}


def _what_starts(record: CallRecord) -> tuple[CommandSpec, str | None]:
    """The command to start and its program. What was judged is what runs: certain words need no shell to read them."""
    spec, resolved = record.spec, record.resolved
    program = resolved.program if resolved else None
    command = spec.command
    if not isinstance(command, Shell) or not _is_unasked(record) or resolved is None:
        return spec, program
    if command.login:
        if record.sandbox is None or record.sandbox.kind != "read-only":
            return spec, program
        # What the login files of a home say is none of what was judged, and the sandbox keeps them closed anyway.
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
