"""A tool for an AI model: a name, a schema, a description, an action, and the check of arguments by the schema."""

import asyncio
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from whisper_tui.model.errors import InvalidRequest, WhisperError
from whisper_tui.model.text import is_sendable
from whisper_tui.tools.agent_text import ToolFailure

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


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
    def title(self) -> str | None:
        """The tool's name for people. None: it has no other than its identifier."""
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


SHOWN = 60
"""How many characters of a wrong value an error quotes."""


class ArgumentError(ToolFailure, InvalidRequest):
    """An argument is missing, unknown or does not match the schema. The message names it for the model."""

    kind = "invalid_arguments"


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@cache
def _validator() -> Any:
    """Return the class that checks. It takes a tenth of the start of a supervisor, most of which see no such call."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    # For JSON Schema 1.0 is an integer, but not for a program that receives it.
    integers = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    return extend(Draft202012Validator, type_checker=integers)  # type: ignore[no-untyped-call]


_TYPE_WORDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def check_arguments(tool: str, schema: Mapping[str, Any], arguments: object) -> dict[str, Any]:
    """Return the arguments if they match the schema. Raises `ArgumentError` for the first one that does not."""
    if not isinstance(arguments, Mapping):
        raise ArgumentError(f"The arguments of {tool} must be an object; {_given(arguments)} was given")
    known = schema.get("properties", {})
    unknown = [str(name) for name in arguments if name not in known]
    if unknown and schema.get("additionalProperties") is False:
        raise ArgumentError(f"{tool} has no argument {unknown[0]!r}", hint=f"It takes {_listed(list(known))}")
    for name in schema.get("required", ()):
        if name not in arguments:
            raise ArgumentError(f"The argument {name!r} is missing; it must be {_expected(known.get(name, {}))}")
    # The validator's order is undefined, but the same mistake must always get the same message.
    errors = sorted(
        _validator()(schema).iter_errors(dict(arguments)), key=lambda error: [str(part) for part in error.path]
    )
    if errors:
        raise ArgumentError(_explained(errors[0]))
    for name, value in arguments.items():
        _check_text(str(name), value)
    return dict(arguments)


def _explained(error: "ValidationError") -> str:
    where = _path(list(error.absolute_path))
    if error.validator in {"type", "minimum", "maximum", "enum", "const"}:
        return f"The argument {where!r} must be {_expected(error.schema)}; {_given(error.instance)} was given"
    return f"The argument {where!r} is not valid: {error.message}"


def _path(parts: list[str | int]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _expected(schema: object) -> str:
    if not isinstance(schema, Mapping):
        return "something else"
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(choice) for choice in schema["enum"])
    types = schema.get("type", [])
    words = " or ".join(_TYPE_WORDS.get(name, name) for name in ([types] if isinstance(types, str) else types))
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{words} from {low} to {high}"
    if low is not None:
        return f"{words} of at least {low}"
    return f"{words} of at most {high}" if high is not None else words or "something else"


def _given(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {json.dumps(value)}"
        case int():
            return f"the integer {_short(str(value))}"
        case float():
            return f"the number {value}"
        case str():
            return f"the string {_short(json.dumps(value))}"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "an array"
        case _:
            return f"a {type(value).__name__}"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _listed(names: list[str]) -> str:
    if not names:
        return "no arguments"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _check_text(where: str, value: object) -> None:
    """Raise `ArgumentError` for a text that cannot be passed to programs or files."""
    if isinstance(value, str):
        # Strings for execve end with NUL.
        if "\0" in value:
            raise ArgumentError(f"The argument {where!r} contains a NUL character, which no program accepts")
        # JSON can contain half a surrogate pair, but UTF-8 and the journal cannot.
        if not is_sendable(value):
            raise ArgumentError(f"The argument {where!r} is not valid Unicode: it contains a lone surrogate")
    elif isinstance(value, Mapping):
        for name, part in value.items():
            _check_text(f"{where}.{name}", part)
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            _check_text(f"{where}[{number}]", part)
