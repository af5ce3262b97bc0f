"""`execute_command_line`: the older `execute_command` whose `command` is a whole line for a shell."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from whisper_tui.model.command import CommandSpec, Shell
from whisper_tui.model.ending import Exited, FailedToStart, Signalled, TimedOut
from whisper_tui.model.state import CallRecord
from whisper_tui.tools.command_tool import CommandTool, Ran
from whisper_tui.tools.context import ToolContext
from whisper_tui.tools.prompt_text import prompt_block

NOT_FOUND = 127
NOT_PERMITTED = 126
OTHER = 1


class ExecuteCommandLineTool(CommandTool):
    """Runs a line of `sh`; under the name `execute_command` it takes the place of the tool that takes an argv."""

    def __init__(self, context: ToolContext, *, name: str = "execute_command_line") -> None:
        super().__init__(context)
        self._name = name

    @property
    def name(self) -> str:
        """The tool's identifier."""
        return self._name

    @property
    def description(self) -> str:
        """What the tool does."""
        return (
            "Executes a CLI command line with a shell and returns its standard output, standard error, and return "
            "code. Allows specifying a working directory."
        )

    @property
    def category(self) -> str:
        """The kind of tool."""
        return "System Execution"

    @property
    def tags(self) -> list[str]:
        """Words to find the tool by."""
        return ["cli", "command", "shell", "execute", "system"]

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": 'The CLI command to execute (e.g., "python script.py --arg", "ls -l").',
                },
                "cwd": {
                    "type": "string",
                    "description": "The working directory to execute the command in. Defaults to the workspace "
                    "directory; a relative path starts there.",
                    "default": ".",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool for a complete command line: a shell reads it, so pipes (`|`) and redirections "
            "(`>>`) work. A human may look at it before it runs, which can take minutes.",
            expected_output='A dictionary with "stdout" and "stderr" (strings) and "returncode" (integer: 0 usually '
            "means success, 127 that the command was not found, 126 that it may not be executed, minus the signal's "
            "number if a signal ended it; null if its time was over).",
            examples=(
                ("list the files in 'src'", '`command="ls -l src"`'),
                ("count all Python files", "`command=\"find . -name '*.py' | wc -l\"`"),
                ("run a script elsewhere", '`command="python data.py --input data.csv"`, `cwd="scripts"`'),
            ),
        )

    def spec(self, arguments: Mapping[str, Any]) -> CommandSpec:
        """The line for `sh`, in the workspace or where the arguments say."""
        return CommandSpec(
            command=Shell(text=arguments["command"], shell="sh"),  # noqa: S604  a value: nothing is called
            cwd=str(PurePath(self._context.session.root) / arguments.get("cwd", ".")),
        )

    def result(self, record: CallRecord, ending: Ran, stdout: str, stderr: str) -> dict[str, Any]:
        """Exactly `stdout`, `stderr` and `returncode`."""
        match ending:
            case Exited(code=code):
                returncode: int | None = code
            case Signalled(number=number):
                returncode = -number
            case TimedOut():
                returncode = None
            case FailedToStart():
                returncode, stderr = _not_started(ending)
        return {"stdout": stdout, "stderr": stderr, "returncode": returncode}


def _not_started(ending: FailedToStart) -> tuple[int, str]:
    match ending.problem:
        case "program_not_found":
            return NOT_FOUND, f"Error: Command not found: {ending.subject}"
        case "permission_denied" | "not_executable":
            return NOT_PERMITTED, f"Error: Permission denied: {ending.subject}"
        case "cwd_not_found":
            return OTHER, f"Error: Working directory not found: {ending.subject}"
        case "other":
            return OTHER, f"Error executing command: {ending.message}"
