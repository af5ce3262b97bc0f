"""What `ExecCommand` may be given: its schema, its defaults, and where the command runs."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Self

from whisper_tui.model.command import digest
from whisper_tui.tools.arguments import ArgumentError
from whisper_tui.tools.exec_command.failure import ExecFailure

DEFAULT_WINDOW_MS = 10_000
DEFAULT_TOKENS = 8_000
MOST_TOKENS = 64_000
MOST_MS = 2**64 - 1

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "cmd": {"type": "string", "description": "The command line, read by a shell."},
        "workdir": {
            "type": ["string", "null"],
            "description": "Where to run it: a path inside the workspace. Defaults to the workspace itself.",
        },
        "shell": {
            "type": ["string", "null"],
            "description": "The shell that reads it. Defaults to the user's own bash, zsh or sh.",
        },
        "login": {
            "type": ["boolean", "null"],
            "description": "Whether the shell reads the user's login files first. Defaults to true.",
        },
        "tty": {
            "type": ["boolean", "null"],
            "description": "Whether the command gets a terminal. Defaults to false.",
        },
        "duplicate_policy": {
            "type": "string",
            "enum": ["reuse_running", "start_new"],
            "description": "What to do when the same command is waiting or running already: be told about that one, "
            "or start another instance.",
            "default": "reuse_running",
        },
        "accepts_input": {
            "type": ["boolean", "null"],
            "description": "Whether standard input stays open for TaskInput. Defaults to the value of `tty`.",
        },
        "yield_time_ms": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "Milliseconds to wait for the end of the command, counted from the start of its process. "
            f"After them it goes on as a background task. Defaults to {DEFAULT_WINDOW_MS}.",
        },
        "max_output_tokens": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MOST_TOKENS,
            "description": "How much output to show, in tokens of four characters. What is longer is cut in the "
            f"middle, and the whole stream is named as a file. Defaults to {DEFAULT_TOKENS}.",
        },
    },
    "required": ["cmd"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class ExecArguments:
    """The arguments with their defaults."""

    cmd: str
    workdir: str | None
    shell: str | None
    login: bool
    tty: bool
    start_new: bool
    accepts_input: bool
    window_s: float
    """Seconds from the start of the process in which its end is waited for."""
    budget: int
    """Characters of output that are shown."""

    @classmethod
    def of(cls, checked: Mapping[str, Any]) -> Self:
        """Read arguments that match the schema. Raises `ArgumentError` for a number that no schema can bound."""
        window, tokens = checked.get("yield_time_ms"), checked.get("max_output_tokens")
        if window is not None and window > MOST_MS:
            raise ArgumentError(f"The argument 'yield_time_ms' must be at most {MOST_MS}; a larger integer was given")
        tty = _or(checked.get("tty"), False)
        return cls(
            cmd=checked["cmd"],
            workdir=checked.get("workdir"),
            shell=checked.get("shell"),
            login=_or(checked.get("login"), True),
            tty=tty,
            start_new=checked.get("duplicate_policy") == "start_new",
            accepts_input=_or(checked.get("accepts_input"), tty),
            window_s=(DEFAULT_WINDOW_MS if window is None else window) / 1000,
            budget=4 * (DEFAULT_TOKENS if tokens is None else tokens),
        )

    def directory(self, root: str) -> str:
        """Where it runs, links resolved. Raises `ExecFailure` for a place outside the workspace or nowhere."""
        path = os.path.realpath(PurePath(root) / (self.workdir or ""))
        workspace = os.path.realpath(root)
        if path != workspace and not path.startswith(workspace.rstrip("/") + "/"):
            raise ExecFailure(
                "execution_root_violation",
                f"the working directory {path} is outside the workspace {workspace}",
                details={"workdir": self.workdir, "execution_root": workspace},
                hint="use a workdir inside the workspace, or leave it out",
            )
        if not os.path.isdir(path):  # noqa: PTH112
            raise ExecFailure(
                "workdir_not_found",
                f"the working directory {path} does not exist",
                details={"workdir": self.workdir},
                hint="create the directory first, or use a workdir that exists",
            )
        return path

    def fingerprint(self, directory: str) -> str:
        """What two calls have in common that are the same: never how long to wait or how much to show."""
        return digest(json.dumps([self.cmd, directory, self.shell, self.login, self.tty]))


def _or(given: bool | None, default: bool) -> bool:
    return default if given is None else given
