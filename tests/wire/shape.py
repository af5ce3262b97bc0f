"""The shape of everything that is sent over the socket: `python -m tests.wire.shape > tests/wire/shape.json`."""

import json
import sys
from typing import Any

from whisper_tui.model.protocol_version import VERSION
from whisper_tui.wire.operations import OPERATIONS, PHONE_OPERATIONS


def shape() -> dict[str, Any]:
    """The names of the fields of every value, by the names of the values."""
    values: dict[str, list[str]] = {}
    for operation in (*OPERATIONS.values(), *PHONE_OPERATIONS.values()):
        for model in (operation.request, operation.answer):
            schema = model.model_json_schema()
            for name, value in {model.__name__: schema, **schema.get("$defs", {})}.items():
                if "properties" in value:
                    values[name] = sorted(value["properties"])
    return {"version": VERSION, "values": values}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(shape(), indent=1, sort_keys=True) + "\n")
