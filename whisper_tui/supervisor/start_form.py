"""How a command starts that nobody was asked about: without a shell where it needs none, in a clean environment."""

from collections.abc import Mapping

from whisper_tui.model.command import Argv, CommandSpec, Shell
from whisper_tui.model.state import CallRecord
from whisper_tui.policy.allowing import LOOKS
from whisper_tui.policy.builtin_names import BUILTINS
from whisper_tui.policy.environment import taken_away
from whisper_tui.policy.view import view
from whisper_tui.supervisor.git_configuration import NEUTRAL


def is_unasked(record: CallRecord) -> bool:
    """Whether a rule or a remembered approval let it through."""
    return record.decided_by is not None and record.decided_by.surface in {"rule", "memory"}


def inherited(record: CallRecord, environment: Mapping[str, str]) -> dict[str, str]:
    """What a command inherits of its session's environment."""
    if not is_unasked(record):
        return dict(environment)
    kept = {name: value for name, value in environment.items() if not taken_away(name)}
    looks = record.verdict is not None and LOOKS.name in (record.verdict.rule or "")
    return kept | NEUTRAL if looks else kept


def what_starts(record: CallRecord) -> tuple[CommandSpec, str | None]:
    """The command to start and its program. What was judged is what runs: certain words need no shell to read them."""
    spec, resolved = record.spec, record.resolved
    program = resolved.program if resolved else None
    if not isinstance(spec.command, Shell) or not is_unasked(record) or spec.command.login or resolved is None:
        return spec, program
    plain = view(spec.command).plain
    if plain is None or len(plain) != 1 or not resolved.commands:
        return spec, program
    (command,) = plain
    direct = resolved.commands[0].program
    needs_shell = command.assignments or command.redirections or command.background or command.timed
    if needs_shell or direct is None or command.argv[0] in BUILTINS:
        return spec, program
    argv = Argv(program=command.argv[0], args=command.argv[1:])
    return spec.model_copy(update={"command": argv}), direct
