"""An MCP server in the standard library alone that uses every feature, and misbehaves where it is told.

The file that is named as its argument receives each line that it was sent, byte for byte.
"""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

log = Path(sys.argv[1]).open("ab", buffering=0)  # noqa: SIM115
writing = threading.Lock()
answers: dict[Any, Any] = {}
answered = threading.Condition()
cancelled: dict[Any, threading.Event] = {}

TOOLS = [
    {
        "name": "echo",
        "title": "Echo",
        "description": "Say the arguments again",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "x-unknown": [1, 2.50]},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "title": "An echo"},
        "_meta": {"example.org/colour": "green"},
    },
    {"name": "count", "description": "Count slowly", "inputSchema": {"type": "object"}},
]
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}


def say(line: str) -> None:
    with writing:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def send(**message: Any) -> None:
    say(json.dumps({"jsonrpc": "2.0", **message}))


def ask(method: str, params: dict[str, Any]) -> Any:
    """Ask the client, and wait for its answer."""
    request_id = f"server-{method}"
    send(id=request_id, method=method, params=params)
    with answered:
        answered.wait_for(lambda: request_id in answers, 60)
        return answers.pop(request_id)


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def call(request_id: Any, params: dict[str, Any]) -> dict[str, Any] | None:
    arguments = params.get("arguments") or {}
    match params["name"]:
        case "echo":
            return text(json.dumps(arguments), structuredContent=arguments, _meta={"kept": 1})
        case "count":
            token = params["_meta"]["progressToken"]
            for number in range(1, 4):
                progress = {"progressToken": token, "progress": number, "total": 3, "message": f"number {number}"}
                send(method="notifications/progress", params=progress)
            return text("counted")
        case "hang":
            send(method="notifications/message", params={"level": "info", "data": "hanging"})
            cancelled[request_id] = threading.Event()
            cancelled[request_id].wait(30)
            return None
        case "sample":
            message = {"role": "user", "content": {"type": "text", "text": "hello"}}
            return text(json.dumps(ask("sampling/createMessage", {"messages": [message], "maxTokens": 5})))
        case "elicit":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            return text(json.dumps(ask("elicitation/create", {"message": "Who?", "requestedSchema": schema})))
        case "roots":
            return text(json.dumps(ask("roots/list", {})))
        case "grow":
            TOOLS.append({"name": "grown", "inputSchema": {"type": "object"}})
            send(method="notifications/tools/list_changed")
            return text("grown")
        case "fail":
            return text("it failed", isError=True)
        case "huge":
            return text("x" * arguments["size"])
        case "garbage":
            say("this is {no JSON")
            return text("after garbage")
        case "stranger":
            send(id="nobody-asked-this", result=text("forged"))
            return text("after a stranger")
        case "escapes":
            return text("\x1b]0;title\x07\x1b[2J\x9b31m red\u202e")
        case "die":
            os._exit(7)
    raise KeyError(params["name"])


def answer(method: str, request_id: Any, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            server = {"name": "scripted", "version": "3"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": CAPABILITIES, "serverInfo": server}
        case "tools/list":
            return {"tools": TOOLS[1:]} if params.get("cursor") else {"tools": TOOLS[:1], "nextCursor": "two"}
        case "tools/call":
            return call(request_id, params)
        case "resources/list":
            return {"resources": [{"uri": "mem://a", "name": "a"}]}
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "text": "content of a"}]}
        case "resources/subscribe":
            send(method="notifications/resources/updated", params={"uri": params["uri"]})
            return {}
        case "prompts/list":
            return {"prompts": [{"name": "p", "arguments": [{"name": "who"}]}]}
        case "prompts/get":
            words = {"type": "text", "text": f"Hello {params['arguments']['who']}"}
            return {"messages": [{"role": "user", "content": words}]}
        case "completion/complete":
            return {"completion": {"values": [params["argument"]["value"] + "!"]}}
        case "logging/setLevel":
            send(method="notifications/message", params={"level": params["level"], "data": "level set"})
            return {}
        case "ping":
            return {}
        case "x/answer":
            send(id=params["id"], result=text("forged before it was asked"))
            return {}
        case "x/say":
            for words in params["messages"]:
                send(**words)
            return {}
        case "x/echo":
            return {"params": params}
    raise KeyError(method)


def handle(message: dict[str, Any]) -> None:
    method, request_id, params = message["method"], message["id"], message.get("params", {})
    try:
        result = answer(method, request_id, params)
    except KeyError as error:
        send(id=request_id, error={"code": -32601, "message": f"unknown: {error}"})
        return
    if result is not None:
        send(id=request_id, result=result)


sys.stderr.write("scripted server: started\n")
sys.stderr.flush()
for line in sys.stdin.buffer:
    log.write(line)
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        if (event := cancelled.get(message["params"]["requestId"])) is not None:
            event.set()
    elif "method" not in message:
        with answered:
            answers[message["id"]] = message.get("result", message.get("error"))
            answered.notify_all()
    elif "id" in message:
        threading.Thread(target=handle, args=(message,), daemon=True).start()
