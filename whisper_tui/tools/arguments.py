"""Checking a call's arguments against the schema that its tool publishes."""

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.text import is_sendable
from whisper_tui.tools.agent_notes import ToolFailure

SHOWN = 60
"""How many characters of a wrong value an error quotes."""


class ArgumentError(ToolFailure, InvalidRequest):
    """An argument is missing, unknown or does not match the schema. The message names it for the model."""

    kind = "invalid_arguments"


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    # For JSON Schema 1.0 is an integer, but not for a program that receives it.
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)

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
        _Validator(schema).iter_errors(dict(arguments)), key=lambda error: [str(part) for part in error.path]
    )
    if errors:
        raise ArgumentError(_explained(errors[0]))
    for name, value in arguments.items():
        _check_text(str(name), value)
    return dict(arguments)


def _explained(error: ValidationError) -> str:
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
