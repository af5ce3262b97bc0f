"""The base class of a tool for an AI model: a name, a schema, a description, and an action."""

import asyncio
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from whisper_tui.model.errors import WhisperError


class AITool(ABC):
    """A tool that a model may call by its name with arguments that match a published JSON Schema."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The tool's identifier, unique in a registry."""

    @property
    @abstractmethod
    def description(self) -> str:
        """One or two sentences about what the tool does."""

    @property
    @abstractmethod
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, an object schema; arguments are validated against it."""

    @abstractmethod
    def get_ai_prompt_instructions(self) -> str:
        """Text for a model's prompt: when and how to use the tool, and what it returns."""

    @abstractmethod
    async def execute(self, **kwargs: Any) -> Any:
        """Run the tool and return a value that JSON can represent. A synchronous `execute` runs in a thread."""

    def text(self, result: Any) -> str:
        """Return a result as text for a model: a string unchanged, anything else as JSON."""
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)

    def is_error(self, result: Any) -> bool:
        """True if a result is a failure."""
        return False

    def error_result(self, error: WhisperError) -> Any | None:
        """Return a failure in the tool's own result format. None: it has no such format, and the error is raised."""
        return None

    async def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """True if a call with these checked arguments goes through the approval queue, if there is one."""
        return True

    def approval_description(self, arguments: dict[str, Any]) -> str:
        """The description of a call for the human who approves it, beside the tool's name and the arguments."""
        return self.description

    @property
    def category(self) -> str | None:
        """The kind of tool. None: no particular kind."""
        return None

    @property
    def read_only(self) -> bool:
        """True if no call of it changes anything."""
        return False

    @property
    def tags(self) -> list[str]:
        """Keywords for finding the tool."""
        return []

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        """The tool's declaration for chat completion APIs."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters_schema,
            },
        }


def prompt_block(tool: AITool, *, purpose: str, expected_output: str, examples: Iterable[tuple[str, str]]) -> str:
    """Return the prompt text of a tool. Each example is a pair of a need and the arguments for it."""
    schema = tool.parameters_schema
    required = frozenset(schema.get("required", ()))
    lines = [
        f"**Tool: `{tool.name}`**",
        f"*   **Description:** {tool.description}",
        f"*   **Purpose:** {purpose}",
        "*   **Parameters:**",
        *(_parameter(name, part, name in required) for name, part in schema.get("properties", {}).items()),
        f"*   **Expected Output:** {expected_output}",
        "*   **Example (for AI to understand usage):**",
    ]
    for need, arguments in examples:
        lines += [f"    If you need to {need}:", f"    Call: `{tool.name}` with {arguments}"]
    return "\n".join(lines)


def _parameter(name: str, schema: Mapping[str, Any], required: bool) -> str:
    facts = [_type(schema), "required" if required else "optional"]
    if "default" in schema:
        facts.append(f"default: {json.dumps(schema['default'])}")
    return f"    *   `{name}` ({', '.join(facts)}): {schema.get('description', '')}".rstrip()


def _type(schema: Mapping[str, Any]) -> str:
    if isinstance(schema.get("type"), list):
        return " or ".join(schema["type"])
    if schema.get("type") == "array":
        return f"array of {schema.get('items', {}).get('type', 'anything')}s"
    return str(schema.get("type", "anything"))


async def run_tool(tool: AITool, arguments: dict[str, Any]) -> Any:
    """Execute a tool with checked arguments. A synchronous `execute` runs in its own thread."""
    if inspect.iscoroutinefunction(tool.execute):
        return await tool.execute(**arguments)
    # One event loop serves all calls of a session. A blocking tool must not delay the others.
    result = await asyncio.to_thread(tool.execute, **arguments)
    return await result if inspect.isawaitable(result) else result
