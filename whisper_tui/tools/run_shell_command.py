"""`run_shell_command`: a command line for bash, in the project."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.ending import Exited, FailedToStart, Signalled
from whisper_tui.model.state import CallRecord
from whisper_tui.tools.ai_tool import ArgumentError, prompt_block
from whisper_tui.tools.supervised_tool import CommandTool, Ran, ToolContext

MARK = {"ASIMI_CLI": "1"}
"""Added to the environment of every command, so that scripts can detect that an agent runs them."""


class RunShellCommandTool(CommandTool):
    """Runs a command line with bash inside the project. The result lists background processes."""

    def __init__(self, context: ToolContext, *, platform: str = sys.platform) -> None:
        super().__init__(context)
        self._on_windows = platform == "win32"

    @property
    def name(self) -> str:
        """The tool's identifier."""
        return "run_shell_command"

    @property
    def description(self) -> str:
        """The description for the model."""
        shell = "`cmd.exe /c`" if self._on_windows else "`bash -c`"
        return f"This tool executes a given shell command with {shell}. It can start background processes."

    @property
    def category(self) -> str:
        """The kind of tool."""
        return "System Execution"

    @property
    def tags(self) -> list[str]:
        """Keywords for finding the tool."""
        return ["command", "shell", "bash", "execute", "background", "system"]

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "The exact command line for bash. It can use pipes, redirections and command "
                    "chaining, and can leave a process in the background with `&`.",
                },
                "description": {
                    "type": "string",
                    "description": "A short explanation, for the human who is asked, of what the command is for.",
                },
                "directory": {
                    "type": "string",
                    "description": "The directory to run the command in, relative to the project's root. If omitted, "
                    "the command runs in the project's root. Absolute paths are not permitted.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool for a command line that needs a shell: pipes, redirections, several commands, or a "
            "process that goes on in the background. Each call is independent: `cd` and variables do not last. A "
            "human may look at the command before it runs, which can take minutes, and may change it or deny it with "
            "a reason; a good `description` helps. Command substitution (`$(...)`, backticks, `<(...)`, `>(...)`) "
            "is refused.",
            expected_output='An object with "stdout" and "stderr" (strings), "exitCode" (integer; null if a signal '
            'ended it or it was not started), "signal" (the number of the signal, or null), "error" (why it could not '
            'be started, or null), "pid" (integer or null) and "backgroundPids" (the processes that it left behind). '
            "The answer comes when the command itself ends; what it left in the background goes on.",
            examples=(
                ("count the Python files", "`command=\"find . -name '*.py' | wc -l\"`"),
                (
                    "start a server and go on",
                    '`command="npm run dev > server.log 2>&1 &"`, `description="Start the development server"`, '
                    '`directory="web"`',
                ),
            ),
        )

    def spec(self, arguments: Mapping[str, Any]) -> CommandSpec:
        """Return the command line for bash, in the project's root or a directory below it."""
        return CommandSpec(
            command=Shell(text=arguments["command"], shell="cmd.exe" if self._on_windows else "bash"),
            cwd=self._directory(arguments.get("directory", "")),
            environment=MARK,
        )

    def _directory(self, directory: str) -> str:
        root = self._context.session.root
        if PurePath(directory).is_absolute():
            raise ArgumentError(
                f"The argument 'directory' must be relative to the project's root; {directory!r} is absolute",
                hint=f"The project's root is {root}",
            )
        path = Path(root) / directory
        # `Path.is_dir` raises an error for a name that is too long. This returns False.
        if not os.path.isdir(path):  # noqa: PTH112
            raise ArgumentError(f"The argument 'directory' must be a directory that exists; {directory!r} does not")
        # A link inside the project may lead outside.
        real_root, real = os.path.realpath(root), os.path.realpath(path)
        if real != real_root and not real.startswith(real_root.rstrip("/") + "/"):
            raise ArgumentError(
                f"The argument 'directory' must stay inside the project; {directory!r} leads to {real}",
                hint=f"The project's root is {root}",
            )
        return str(path)

    def result(self, record: CallRecord, ending: Ran, stdout: str, stderr: str) -> dict[str, Any]:
        """Return exactly `stdout`, `stderr`, `exitCode`, `signal`, `error`, `pid` and `backgroundPids`."""
        return {
            "stdout": stdout,
            "stderr": stderr,
            "exitCode": ending.code if isinstance(ending, Exited) else None,
            "signal": ending.number if isinstance(ending, Signalled) else None,
            "error": ending.message if isinstance(ending, FailedToStart) else None,
            "pid": record.process.leader.pid if record.process else None,
            "backgroundPids": []
            if self._on_windows
            else [process.identity.pid for process in record.living_background],
        }

    def text(self, result: Any) -> str:
        """Return the non-empty parts of the result, one per line."""
        error = result["error"] or result["stderr"]
        parts = [f"Output: {result['stdout']}"] if result["stdout"] else []
        if error:
            parts.append(f"Error: {error}")
        if result["exitCode"]:
            parts.append(f"Exit Code: {result['exitCode']}")
        if result["signal"] is not None:
            parts.append(f"Signal: {result['signal']}")
        if result["backgroundPids"]:
            parts.append(f"Background PIDs: {', '.join(map(str, result['backgroundPids']))}")
        return "\n".join(parts) or "Output: (empty)"
