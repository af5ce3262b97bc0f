"""Codex as editors use it: its app server gets one prompt. Whatever it asks its user is printed, and declined."""

import json
import subprocess
import sys
from typing import Any


def main(prompt: str) -> int:
    """Play one turn. Returns the exit code."""
    server = subprocess.Popen(["codex", "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None and server.stdout is not None
    stdin = server.stdin

    def send(**message: Any) -> None:
        stdin.write(json.dumps(message) + "\n")
        stdin.flush()

    send(id=1, method="initialize", params={"clientInfo": {"name": "tests", "version": "1"}})
    send(method="initialized")
    send(id=2, method="thread/start", params={})
    for line in server.stdout:
        message = json.loads(line)
        if message.get("id") == 2 and "result" in message:
            said = {"threadId": message["result"]["thread"]["id"], "input": [{"type": "text", "text": prompt}]}
            send(id=3, method="turn/start", params=said)
        elif "error" in message and "id" in message:
            sys.stdout.write(f"ERROR {line}")
            break
        elif "method" in message and "id" in message:
            sys.stdout.write(f"QUESTION {message['method']}\n")
            sys.stdout.flush()
            # One of them answers an approval, and the other one an elicitation.
            send(id=message["id"], result={"decision": "decline", "action": "decline", "content": None})
        elif message.get("method") == "turn/completed":
            break
    server.terminate()
    return server.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
