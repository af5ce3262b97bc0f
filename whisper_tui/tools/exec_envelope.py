"""The format of all answers of `ExecCommand` and its task tools: results, failures, and the text for a model."""

from abc import abstractmethod
from typing import Any, Literal

from whisper_tui.model.ending import Denied, FailedToStart, HandedOver, Lost, Withdrawn
from whisper_tui.model.errors import Unavailable, WhisperError
from whisper_tui.tools.agent_text import ToolFailure, UnknownTool, failure_of
from whisper_tui.tools.ai_tool import AITool, ArgumentError

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
    """A failure that an envelope can contain."""

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
        """Return the `error` of an envelope, with `details` only if there are any."""
        error: dict[str, Any] = {"kind": self.error_kind, "message": self.message}
        if self.details is not None:
            error["details"] = self.details
        if self.hint:
            error["recovery_hint"] = self.hint
        return {**error, "retryable": self.retryable}


def exec_failure(tool: str, error: WhisperError) -> ExecFailure:
    """Return any error as one that an envelope can contain."""
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
                # Only an unreachable supervisor may recover by itself.
                retryable=isinstance(error, Unavailable),
            )


def ending_failure(ending: Denied | Withdrawn | HandedOver | Lost | FailedToStart) -> ExecFailure:
    """Return the failure for a call that ended without a process."""
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


Envelope = dict[str, Any]
"""`tool_name`, `status` (success or error), and `summary_text`, `result` or `error` where there is one."""


def success(tool: str, result: dict[str, Any], summary: str) -> Envelope:
    """Return the envelope of a call that ran, even with a non-zero exit code."""
    return {"tool_name": tool, "status": "success", "summary_text": summary, "result": result}


def failure(tool: str, error: ExecFailure) -> Envelope:
    """Return the envelope of a call that could not run."""
    return {"tool_name": tool, "status": "error", "error": error.as_json()}


def render_failure(envelope: Envelope) -> str:
    """Return the text for a model: the failure, its reason, and what to do."""
    error = envelope["error"]
    lines = ["Command failed", f"{error['kind']}: {error['message']}"]
    if "recovery_hint" in error:
        lines.append(f"Recovery hint: {error['recovery_hint']}")
    return "\n".join(lines) + "\n"


class EnvelopedTool(AITool):
    """A tool that answers with an envelope, for failures too."""

    @abstractmethod
    def render_result(self, result: dict[str, Any]) -> str:
        """Return a result as text for a model."""

    def text(self, result: Any) -> str:
        """Return the envelope as text for a model."""
        return render_failure(result) if self.is_error(result) else self.render_result(result["result"])

    def is_error(self, result: Any) -> bool:
        """True if an envelope contains an error."""
        return bool(result["status"] == "error")

    def error_result(self, error: WhisperError) -> Envelope:
        """Return a failure as an envelope."""
        return failure(self.name, exec_failure(self.name, error))
