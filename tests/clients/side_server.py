"""An MCP server with one tool, in the standard library alone: it appends what it is told to a file."""

import json
import sys
from pathlib import Path
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
ANNOTATIONS = {"readOnlyHint": False, "destructiveHint": True}
TOOL = {"name": "keep", "description": "Keep a text", "inputSchema": SCHEMA, "annotations": ANNOTATIONS}


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of one request."""
    match method:
        case "initialize":
            about = {"name": "notes", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            with Path(sys.argv[1]).open("a") as file:
                file.write(json.dumps(params["arguments"]) + "\n")
            return {"content": [{"type": "text", "text": "kept"}]}
    return {}


def main() -> None:
    """Answer every request."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            said = result(message["method"], message.get("params", {}))
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": said}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
