"""The outer shape of every answer of `ExecCommand` and its task tools."""

from abc import abstractmethod
from typing import Any

from whisper_tui.model.errors import WhisperError
from whisper_tui.tools.ai_tool import AITool
from whisper_tui.tools.exec_command.failure import ExecFailure, exec_failure

Envelope = dict[str, Any]
"""`tool_name`, `status` (success or error), and `summary_text`, `result` or `error` where there is one."""


def success(tool: str, result: dict[str, Any], summary: str) -> Envelope:
    """What came of a call that could be carried out; a non-zero exit is one of these too."""
    return {"tool_name": tool, "status": "success", "summary_text": summary, "result": result}


def failure(tool: str, error: ExecFailure) -> Envelope:
    """Why a call could not be carried out."""
    return {"tool_name": tool, "status": "error", "error": error.as_json()}


def render_failure(envelope: Envelope) -> str:
    """The lines for a model: that it failed, why, and what to do."""
    error = envelope["error"]
    lines = ["Command failed", f"{error['kind']}: {error['message']}"]
    if "recovery_hint" in error:
        lines.append(f"Recovery hint: {error['recovery_hint']}")
    return "\n".join(lines) + "\n"


class EnvelopedTool(AITool):
    """A tool that answers with an envelope, for failures too."""

    @abstractmethod
    def render_result(self, result: dict[str, Any]) -> str:
        """The lines for a model about a result."""

    def text(self, result: Any) -> str:
        """The envelope for a model that reads text."""
        return render_failure(result) if self.is_error(result) else self.render_result(result["result"])

    def is_error(self, result: Any) -> bool:
        """Whether an envelope carries an error."""
        return bool(result["status"] == "error")

    def error_result(self, error: WhisperError) -> Envelope:
        """A failure as an envelope."""
        return failure(self.name, exec_failure(self.name, error))
