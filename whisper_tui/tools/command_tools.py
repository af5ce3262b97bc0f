"""The tools that run a command: a program with its arguments, or a command line for a shell."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from whisper_tui.model.call import HERE, Argv, CommandSpec, Shell
from whisper_tui.model.ending import Exited, FailedToStart, Signalled, TimedOut
from whisper_tui.model.state import CallRecord
from whisper_tui.tools.ai_tool import ArgumentError, prompt_block
from whisper_tui.tools.supervised_tool import CommandTool, Ran, ToolContext

DEFAULT_TIMEOUT_S = 60
LONGEST_TIMEOUT_S = 120


class ExecuteCommandTool(CommandTool):
    """Runs one program in the workspace, or in any other directory that the human approves."""

    title = "Run a program"
    name = "execute_command"
    description = (
        "Executes a system command and returns its standard output, standard error, and return code. "
        "Allows specifying arguments, a working directory, and a timeout."
    )
    category = "System Execution"
    tags: list[str] = ["command", "shell", "execute", "process", "system"]  # noqa: RUF012

    def __init__(self, context: ToolContext, *, longest_timeout_s: int = LONGEST_TIMEOUT_S) -> None:
        super().__init__(context)
        self._longest_timeout_s = longest_timeout_s
        self._default_timeout_s = min(DEFAULT_TIMEOUT_S, longest_timeout_s)

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "The command or program to execute (e.g., 'python', 'ls', 'my_script.sh'). "
                    "This should be the command itself, without arguments.",
                },
                "args": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "A list of arguments to pass to the command. Each argument should be a separate "
                    'string in the list (e.g., ["my_script.py", "--verbose"]).',
                    "default": [],
                },
                "cwd": {
                    "type": "string",
                    "description": "The working directory from which to execute the command. If not specified, "
                    "defaults to the workspace directory; a relative path starts there.",
                },
                "timeout": {
                    "type": "integer",
                    "description": "The maximum time in seconds to allow the command to run, counted from the start of "
                    "the process. If the command exceeds this time, it will be terminated. Defaults to "
                    f"{self._default_timeout_s} seconds. Can be set up to a maximum of {self._longest_timeout_s} "
                    "seconds.",
                    "default": self._default_timeout_s,
                    "minimum": 1,
                    "maximum": self._longest_timeout_s,
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool when you need to run an external program or script on the system: to compile code, "
            "run a script, run tests, or use a utility. No shell reads the command: pipes (`|`), redirections and "
            "variables are not interpreted unless the program is a shell itself (`bash` with `-c`). A human may look "
            "at the command before it runs, which can take minutes, and may change it or deny it with a reason; "
            "the time that this takes does not count towards `timeout`.",
            expected_output='A dictionary with "stdout" (string), "stderr" (string), "return_code" (integer or null: '
            "the exit code, 0 usually means success; minus the signal's number if a signal ended it; null if it could "
            'not be started or its time limit was reached) and "timed_out" (boolean). After a timeout the output holds '
            "what was written until then.",
            examples=(
                ("run a Python script with an argument", '`command="python"`, `args=["my_script.py", "--verbose"]`'),
                ("list a directory", '`command="ls"`, `args=["-l"]`, `cwd="src"`'),
                ("use a pipe", '`command="bash"`, `args=["-c", "ls | grep foo"]`, `timeout=10`'),
            ),
        )

    def spec(self, arguments: Mapping[str, Any]) -> CommandSpec:
        """Return the program with its arguments, in the workspace or in `cwd`."""
        return CommandSpec(
            command=Argv(program=arguments["command"], args=tuple(arguments.get("args", ()))),
            # An absolute `cwd` replaces the root. The human sees the directory and decides.
            cwd=str(PurePath(self._context.session.root) / arguments.get("cwd", "")),
            timeout_s=arguments.get("timeout", self._default_timeout_s),
        )

    def result(self, record: CallRecord, ending: Ran, stdout: str, stderr: str) -> dict[str, Any]:
        """Return exactly `stdout`, `stderr`, `return_code` and `timed_out`."""
        return_code: int | None = None
        match ending:
            case Exited(code=code):
                return_code = code
            # Python's `subprocess` reports signals like this, and models know its results.
            case Signalled(number=number):
                return_code = -number
            case TimedOut():
                pass
            case FailedToStart():
                stderr = _why_not_started(record, ending)
        return {
            "stdout": stdout,
            "stderr": stderr,
            "return_code": return_code,
            "timed_out": isinstance(ending, TimedOut),
        }


def _why_not_started(record: CallRecord, ending: FailedToStart) -> str:
    match ending.problem:
        case "program_not_found":
            return f"Error: Command not found: {ending.subject}{_hint(record.spec)}"
        case "permission_denied":
            return f"Error: Permission denied: {ending.subject}"
        case "cwd_not_found":
            return f"Error: Working directory not found: {ending.subject}"
        case "not_executable" | "other":
            return f"Error: {ending.message}"


_OF_A_SHELL = re.compile(r"""[|&;<>()$`\\"'*?~]""")
"""Words that only a shell understands."""


def _hint(spec: CommandSpec) -> str:
    # Models often put the whole command line into `command`.
    if not isinstance(spec.command, Argv) or " " not in spec.command.program.strip():
        return ""
    text = spec.command.program
    program, *rest = ("bash", "-c", text) if _OF_A_SHELL.search(text) else text.split()
    return f'\nHint: `command` is the program alone. Use command="{program}" and put the rest into `args`: {rest}'


# The exit codes that a shell itself uses for these failures.
NOT_FOUND = 127
NOT_PERMITTED = 126
OTHER = 1


class ExecuteCommandLineTool(CommandTool):
    """Runs a command line with `sh`. With the name `execute_command` it replaces the tool with an argv."""

    title = "Run a line of sh"
    description = (
        "Executes a CLI command line with a shell and returns its standard output, standard error, and return "
        "code. Allows specifying a working directory."
    )
    category = "System Execution"
    tags: list[str] = ["cli", "command", "shell", "execute", "system"]  # noqa: RUF012
    parameters_schema: dict[str, Any] = {  # noqa: RUF012
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

    def __init__(self, context: ToolContext, *, name: str = "execute_command_line") -> None:
        super().__init__(context)
        self._name = name

    @property
    def name(self) -> str:
        """The tool's identifier."""
        return self._name

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool for a complete command line: a shell reads it, so pipes (`|`) and redirections "
            "(`>>`) work. A human may look at it before it runs, which can take minutes.",
            expected_output='A dictionary with "stdout" and "stderr" (strings) and "returncode" (integer: 0 usually '
            "means success, 127 that the command was not found, 126 that it may not be executed, minus the signal's "
            "number if a signal ended it; null if its time limit was reached).",
            examples=(
                ("list the files in 'src'", '`command="ls -l src"`'),
                ("count all Python files", "`command=\"find . -name '*.py' | wc -l\"`"),
                ("run a script elsewhere", '`command="python data.py --input data.csv"`, `cwd="scripts"`'),
            ),
        )

    def spec(self, arguments: Mapping[str, Any]) -> CommandSpec:
        """Return the command line for `sh`, in the workspace or in `cwd`."""
        return CommandSpec(
            command=Shell(text=arguments["command"], shell="sh"),  # noqa: S604  only a value, nothing is started
            cwd=str(PurePath(self._context.session.root) / arguments.get("cwd", ".")),
        )

    def result(self, record: CallRecord, ending: Ran, stdout: str, stderr: str) -> dict[str, Any]:
        """Return exactly `stdout`, `stderr` and `returncode`."""
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


MARK = {"ASIMI_CLI": "1"}
"""Added to the environment of every command, so that scripts can detect that an agent runs them."""


def _is_inside(path: str, directory: str) -> bool:
    """True if a path is a directory or below it, as far as their texts say."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


class RunShellCommandTool(CommandTool):
    """Runs a command line with bash inside the project. The result lists background processes."""

    title = "Run a line of bash in the project"
    name = "run_shell_command"
    category = "System Execution"
    tags: list[str] = ["command", "shell", "bash", "execute", "background", "system"]  # noqa: RUF012

    def __init__(self, context: ToolContext, *, places: Sequence[str] = (), platform: str = sys.platform) -> None:
        """`places`: the names of the places where commands can run besides this machine."""
        super().__init__(context)
        self._places = tuple(places)
        self._on_windows = platform == "win32"

    @property
    def description(self) -> str:
        """The description for the model."""
        shell = "`cmd.exe /c`" if self._on_windows else "`bash -c`"
        return f"This tool executes a given shell command with {shell}. It can start background processes."

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
                **self._place_schema(),
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def _place_schema(self) -> dict[str, Any]:
        """Return the argument that chooses a place, if there is one to choose."""
        if not self._places:
            return {}
        return {
            "place": {
                "type": "string",
                "enum": [HERE, *self._places],
                "description": f"Where the command runs: `{HERE}` is the machine of the project, any other name is "
                "another machine, a container or a job of a cluster, with files and programs of its own. If omitted, "
                "the human's settings decide.",
            }
        }

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool for a command line that needs a shell: pipes, redirections, several commands, or a "
            "process that continues in the background. Each call is independent: `cd` and variables do not last. A "
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
            cwd=self._directory(arguments.get("directory", ""), arguments.get("place", "")),
            place=arguments.get("place", ""),
            environment=MARK,
        )

    def _directory(self, directory: str, place: str) -> str:
        root = self._context.session.root
        if PurePath(directory).is_absolute():
            raise ArgumentError(
                f"The argument 'directory' must be relative to the project's root; {directory!r} is absolute",
                hint=f"The project's root is {root}",
            )
        path = Path(root) / directory
        if (place or self._context.place() or self._context.session.place) not in {"", HERE}:
            return self._directory_elsewhere(root, directory)
        # `Path.is_dir` raises an error for a name that is too long. This returns False.
        if not os.path.isdir(path):  # noqa: PTH112
            raise ArgumentError(f"The argument 'directory' must be a directory that exists; {directory!r} does not")
        # A link inside the project may lead outside.
        real = os.path.realpath(path)
        if not _is_inside(real, os.path.realpath(root)):
            raise ArgumentError(
                f"The argument 'directory' must stay inside the project; {directory!r} leads to {real}",
                hint=f"The project's root is {root}",
            )
        return str(path)

    def _directory_elsewhere(self, root: str, directory: str) -> str:
        # Only the place knows its directories: the start fails there if this one does not exist.
        path = os.path.normpath(f"{root}/{directory}")
        if not _is_inside(path, root):
            raise ArgumentError(
                f"The argument 'directory' must stay inside the project; {directory!r} leads to {path}",
                hint=f"The project's root is {root}",
            )
        return path

    def result(self, record: CallRecord, ending: Ran, stdout: str, stderr: str) -> dict[str, Any]:
        """Return exactly `stdout`, `stderr`, `exitCode`, `signal`, `error`, `pid` and `backgroundPids`.

        The exit code is the shell's, also of a pipeline (decision 37).
        """
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
