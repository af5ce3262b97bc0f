"""The block of text that tells a model when and how to use a tool."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from whisper_tui.tools.ai_tool import AITool


def prompt_block(tool: AITool, *, purpose: str, expected_output: str, examples: Iterable[tuple[str, str]]) -> str:
    """The block of a tool; each example is what one needs and the arguments that get it."""
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
