"""What can go wrong with `ExecCommand` and its tasks: a kind, a message, and how to recover."""

from typing import Any, Literal

from whisper_tui.model.ending import Denied, FailedToStart, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.tools.arguments import ArgumentError
from whisper_tui.tools.failure import ToolFailure, UnknownTool, failure_of

Kind = Literal[
    "invalid_tool_input",
    "unknown_tool",
    "execution_root_violation",
    "workdir_not_found",
    "command_spawn_failed",
    "approval_denied",
    "policy_refused",
    "task_not_found",
    "tool_execution_failed",
]


class ExecFailure(WhisperError):
    """A failure that an envelope can carry."""

    kind = "exec_failure"

    def __init__(
        self,
        error_kind: Kind,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        hint: str,
        retryable: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.error_kind: Kind = error_kind
        self.details = details
        self.retryable = retryable

    def as_json(self) -> dict[str, Any]:
        """The `error` of an envelope: `details` only where there are some."""
        error: dict[str, Any] = {"kind": self.error_kind, "message": self.message}
        if self.details is not None:
            error["details"] = self.details
        if self.hint:
            error["recovery_hint"] = self.hint
        return {**error, "retryable": self.retryable}


def exec_failure(tool: str, error: WhisperError) -> ExecFailure:
    """Any error, as an envelope can carry it."""
    match error:
        case ExecFailure():
            return error
        case ArgumentError():
            return ExecFailure(
                "invalid_tool_input",
                f"invalid input for {tool}: {error.sentence()}",
                details={"parse_error": error.sentence()},
                hint=f"provide input for {tool} that matches the published tool schema",
            )
        case UnknownTool():
            return ExecFailure("unknown_tool", error.message, hint=error.hint)
        case ToolFailure():
            return _not_run(error)
        case _:
            hint = error.hint or "read the message; the command may not have been started"
            return ExecFailure(
                "tool_execution_failed",
                error.message,
                details={"cause": error.kind},
                hint=hint,
                retryable=isinstance(error, Unavailable),
            )


def ending_failure(ending: Denied | Withdrawn | HandedOver | Lost | FailedToStart) -> ExecFailure:
    """The failure that tells of an ending without a process."""
    if not isinstance(ending, FailedToStart):
        return _not_run(failure_of(ending))
    if ending.problem == "cwd_not_found":
        hint = "create the directory first, or use a workdir that exists"
        return ExecFailure("workdir_not_found", ending.message, details={"workdir": ending.subject}, hint=hint)
    return ExecFailure(
        "command_spawn_failed",
        ending.message,
        details={"problem": ending.problem, "program": ending.subject},
        hint="choose a shell that is installed, or leave `shell` out",
    )


def _not_run(failure: ToolFailure) -> ExecFailure:
    match failure.cause:
        case "denied":
            hint = "follow the human's words; do not try another way to do what was denied"
            return ExecFailure("approval_denied", failure.message, hint=hint)
        case "refused":
            hint = "do without this command; the rules do not allow it"
            return ExecFailure("policy_refused", failure.message, hint=hint)
        case "withdrawn":
            hint = "send the call again if it is still wanted"
            return ExecFailure("tool_execution_failed", failure.message, details={"cause": "withdrawn"}, hint=hint)
        case "lost":
            hint = "look at the effects of the command before you repeat it"
            return ExecFailure("tool_execution_failed", failure.message, details={"cause": "lost"}, hint=hint)
