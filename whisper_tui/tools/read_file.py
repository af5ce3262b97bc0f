"""`read_file`: the text of a file. A file outside the workspace needs a human's approval."""

import asyncio
import os
import stat
from pathlib import PurePath
from typing import Any

from whisper_tui.tools.ai_tool import AITool, prompt_block
from whisper_tui.tools.supervised_tool import ToolContext

LARGEST = 8 * 1024 * 1024
"""The largest file that is read in bytes."""


class ReadFileTool(AITool):
    """Reads one text file."""

    title = "Read a text file"
    name = "read_file"
    description = "Reads the entire content of a specified text file."
    category = "File System"
    tags: list[str] = ["file", "read", "text"]  # noqa: RUF012
    read_only = True
    parameters_schema: dict[str, Any] = {  # noqa: RUF012
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The relative or absolute path to the file to be read."},
            "encoding": {
                "type": "string",
                "description": "The encoding of the file (e.g., 'utf-8'). Defaults to 'utf-8'.",
                "default": "utf-8",
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }

    def __init__(self, context: ToolContext, *, largest: int = LARGEST) -> None:
        self._root = os.path.realpath(context.session.root)
        self._largest = largest

    def get_ai_prompt_instructions(self) -> str:
        """When and how to use the tool."""
        return prompt_block(
            self,
            purpose="Use this tool when you need the textual content of a file: code, documentation, data. A relative "
            "path starts at the workspace. Outside the workspace a human is asked first.",
            expected_output='The full content of the file as a string; or an object {"error": "…"} that says why the '
            "file cannot be read.",
            examples=(
                ("read the content of 'src/main.py'", '`path="src/main.py"`'),
                ("read 'config.txt' with another encoding", '`path="config.txt"`, `encoding="latin-1"`'),
            ),
        )

    async def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """True if the file, with links resolved, is outside the workspace."""
        path = self._resolved(arguments["path"])
        return path != self._root and not path.startswith(self._root.rstrip("/") + "/")

    def approval_description(self, arguments: dict[str, Any]) -> str:
        """Return the resolved path of the file."""
        return f"Reads {self._resolved(arguments['path'])}, which is outside the workspace."

    async def execute(self, **kwargs: Any) -> str | dict[str, str]:
        """Return the content, or an object with an `error`."""
        return await asyncio.to_thread(self._read, kwargs["path"], kwargs.get("encoding", "utf-8"))

    def is_error(self, result: Any) -> bool:
        """True if there is an `error` instead of content."""
        return isinstance(result, dict)

    def text(self, result: Any) -> str:
        """Return the content or the error."""
        return f"Error: {result['error']}" if isinstance(result, dict) else str(result)

    def _resolved(self, path: str) -> str:
        return os.path.realpath(PurePath(self._root) / path)

    def _read(self, path: str, encoding: str) -> str | dict[str, str]:
        try:
            # The resolved path has no links, and a link that appears later is not followed. O_NONBLOCK,
            # because opening a FIFO waits for its writer.
            fd = os.open(self._resolved(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return {"error": f"File not found: {path}"}
        except PermissionError:
            return {"error": f"Permission denied: {path}"}
        except OSError as error:
            return {"error": f"Cannot be read: {path}: {error.strerror}"}
        try:
            return self._content(fd, path, encoding)
        finally:
            os.close(fd)

    def _content(self, fd: int, path: str, encoding: str) -> str | dict[str, str]:
        about = os.fstat(fd)
        if stat.S_ISDIR(about.st_mode):
            return {"error": f"Is a directory: {path}"}
        if not stat.S_ISREG(about.st_mode):
            return {"error": f"Not a regular file: {path}"}
        with os.fdopen(fd, "rb", closefd=False) as file:
            # Not st_size, because that is 0 in /proc, and a file may grow while it is read.
            data = file.read(self._largest + 1)
        if len(data) > self._largest:
            size = f"{max(about.st_size, len(data)):,} bytes, and at most {self._largest:,} are read"
            return {"error": f"File too large: {path} has {size}; use a command to read a part of it"}
        return _decoded(data, path, encoding)


def _decoded(data: bytes, path: str, encoding: str) -> str | dict[str, str]:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        return {"error": f"Encoding error: Could not decode file {path} with encoding {encoding}: byte {error.start}"}
    except (LookupError, ValueError):
        return {"error": f"Encoding error: {encoding!r} is not the name of a text encoding"}
