"""`run_in_terminal`: a tool of the demo's own, registered beside the usual ones, for programs that ask questions."""

from collections.abc import Mapping
from typing import Any

from whisper_tui.model.command import CommandSpec
from whisper_tui.tools import ExecuteCommandTool


class TerminalTool(ExecuteCommandTool):
    """Runs one program in a terminal that the human can type into."""

    @property
    def name(self) -> str:
        """The tool's identifier."""
        return "run_in_terminal"

    @property
    def description(self) -> str:
        """What the tool does."""
        return "Runs a program in a terminal of its own. The human can answer its questions."

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        schema = super().parameters_schema
        words = {"type": "string", "description": "What the command is for, for the human who is asked."}
        return {**schema, "properties": {**schema["properties"], "description": words}}

    def spec(self, arguments: Mapping[str, Any]) -> CommandSpec:
        """The program in a terminal; a human may take their time to answer, so nothing limits it."""
        return super().spec(arguments).model_copy(update={"tty": True, "accepts_input": True, "timeout_s": None})
