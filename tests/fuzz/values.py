"""Valid and invalid values for a JSON schema."""

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

HOSTILE = (
    "",
    "\x00",
    "/\x00",
    "\x1b]52;c;aGk=\x07",
    "\u202ecod",
    "..",
    "/",
    "a" * 5000,
    "9" * 30,
    "-1",
    "NaN",
    "\u0661",
    "%s%n",
    "'; --",
    "[red]",
)
NUMBERS = (0, 1, -1, 2**31 - 1, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1, 10**400)

KNOWN: dict[str, st.SearchStrategy[Any]] = {
    # No process of the machine: what an agent's program starts could not decide any more.
    "pid": st.sampled_from([None, 0, 1, -1, 2**31 - 1, 2**31, 2**70]),
    "call_id": st.sampled_from(["1", "2", "3", "4", "0", "-1", "999999", "9" * 40, "x", "\u0661"]),
    "session_id": st.sampled_from(["s1", "s2", "s0", "s-1", "", "x"]),
    "root": st.sampled_from(["/", "/tmp", "/nowhere", "relative", "/\x00", "/" + "x" * 5000]),
    "cwd": st.sampled_from(["/", "/tmp", "/nowhere", "relative", "/\x00", "/" + "x" * 5000]),
}
"""By the name of the key: what is worth trying."""


def texts() -> st.SearchStrategy[str]:
    """Text, mostly harmless."""
    return st.one_of(st.text(max_size=20), st.sampled_from(HOSTILE))


def anything(leaves: int = 8) -> st.SearchStrategy[Any]:
    """Any JSON."""
    scalars = st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.integers() | st.floats() | texts()
    return st.recursive(scalars, lambda part: st.lists(part) | st.dictionaries(texts(), part), max_leaves=leaves)


def of_schema(schema: Schema, definitions: Schema | None = None) -> st.SearchStrategy[Any]:
    """Values that fit a schema, as far as pydantic and the tools use schemas."""
    definitions = definitions if definitions is not None else schema.get("$defs", {})
    if "$ref" in schema:
        return of_schema(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return st.one_of([of_schema(part, definitions) for part in schema[several]])
    return _of_type(schema, definitions)


def _of_type(schema: Schema, definitions: Schema) -> st.SearchStrategy[Any]:
    match schema.get("type"):
        case "object" if "properties" in schema:
            return _object(schema, definitions)
        case "object":
            inner = schema.get("additionalProperties")
            part = of_schema(inner, definitions) if isinstance(inner, dict) else anything(4)
            return st.dictionaries(texts(), part, max_size=3)
        case "array":
            inner = schema.get("items", {})
            return st.lists(of_schema(inner, definitions), min_size=schema.get("minItems", 0), max_size=3)
        case "string" if schema.get("format") in {"base64", "base64url", "binary"}:
            return st.sampled_from(["", "aGk=", "aGk", "!", "a" * 10_000])
        case "string":
            return texts()
        case "integer":
            return st.sampled_from(NUMBERS) | st.integers(-5, 5)
        case "number":
            return st.floats() | st.sampled_from([0.5, 1e300, 1e-320])
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case _:
            return anything(4)


def _object(schema: Schema, definitions: Schema) -> st.SearchStrategy[Any]:
    parts = {
        name: KNOWN[name] if name in KNOWN else of_schema(part, definitions)
        for name, part in schema["properties"].items()
    }
    required = {name: part for name, part in parts.items() if name in schema.get("required", ())}
    optional = {name: part for name, part in parts.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional)


@st.composite
def spoilt(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> Any:
    """A value of which one part was replaced, taken away or added."""
    value = deepcopy(draw(values))
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 0:
        return draw(anything())
    where = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    match draw(st.sampled_from(["replace", "remove", "add", "deeper"])):
        case "replace":
            value[where] = draw(anything())
        case "remove":
            del value[where]
        case "add" if isinstance(value, dict):
            value[draw(texts())] = draw(anything())
        case _:
            value[where] = draw(spoilt(st.just(value[where])))
    return value
