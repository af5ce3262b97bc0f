"""An ACP agent in the standard library alone. A prompt is a list of requests in JSON, which it sends one by one.

    scripted_acp_agent.py NAME LOG

Its name is NAME; LOG receives each line that it was sent. An answer to a prompt holds the answers to its requests. The
text "$terminal" in a request stands for the id of the newest terminal. Requests that begin with "x/" are done here.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

NAME = sys.argv[1]
log = Path(sys.argv[2]).open("ab", buffering=0)  # noqa: SIM115
writing = threading.Lock()
answers: dict[Any, Any] = {}
answered = threading.Condition()
newest: dict[str, Any] = {"terminal": "", "request": 0}


def say(line: str) -> None:
    with writing:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def send(**message: Any) -> None:
    say(json.dumps({"jsonrpc": "2.0", **message}))


def ask(method: str, params: Any) -> Any:
    """Ask the editor, and wait for its answer."""
    newest["request"] += 1
    request_id = f"agent-{newest['request']}"
    send(id=request_id, method=method, params=params)
    with answered:
        assert answered.wait_for(lambda: request_id in answers, 100)
        return answers.pop(request_id)


def act(session_id: str, method: str, params: Any) -> Any:
    params = json.loads(json.dumps(params).replace("$terminal", newest["terminal"]))
    match method:
        case "x/run":
            done = subprocess.run(params, capture_output=True, text=True, check=False)
            return {"code": done.returncode, "err": done.stderr}
        case "x/line":
            return say(params)
        case "x/notify":
            return send(**params)
        case "x/die":
            os._exit(params)
    answer = ask(method, {"sessionId": session_id, **params})
    if method == "terminal/create" and "result" in answer:
        newest["terminal"] = answer["result"]["terminalId"]
    return {key: answer[key] for key in ("result", "error") if key in answer}


def prompt(request_id: Any, params: dict[str, Any]) -> None:
    steps = json.loads(params["prompt"][0]["text"])
    said = [act(params["sessionId"], method, given) for method, given in steps]
    send(id=request_id, result={"stopReason": "end_turn", "_meta": {"answers": said}})


def handle(message: dict[str, Any]) -> None:
    request_id, params = message["id"], message.get("params")
    match message["method"]:
        case "initialize":
            version = 2 if NAME == "late" else params["protocolVersion"]
            info = {"agentInfo": {"name": NAME, "version": "1"}} if NAME else {}
            capabilities = {"loadSession": True, "_meta": {"kept": [1, 2.50]}}
            send(id=request_id, result={"protocolVersion": version, "agentCapabilities": capabilities, **info})
        case "session/new":
            send(id=request_id, result={"sessionId": "s-1"})
        case "session/prompt":
            threading.Thread(target=prompt, args=(request_id, params), daemon=True).start()
        case method:
            send(id=request_id, result={"method": method, "params": params})


for line in sys.stdin.buffer:
    log.write(line)
    message = json.loads(line)
    if "method" not in message:
        with answered:
            answers[message["id"]] = message
            answered.notify_all()
    elif "id" in message:
        handle(message)
