"""A launcher that behaves as whisper-tui does where clients start it, or as the file `mood` beside it says."""

import json
import os
import re
import sys
import time
from pathlib import Path

MOOD = Path(sys.argv[0]).with_name("mood")
mood = MOOD.read_text().strip() if MOOD.exists() else "live"
words = sys.argv[1:]


def denial(client: str, reason: str) -> object:
    if client in {"claude", "codex", "qwen", "kimi"}:
        inner = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
        return {"hookSpecificOutput": inner}
    if client == "copilot":
        return {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"decision": "deny", "reason": reason}


def hook(client: str) -> int:
    said = json.load(sys.stdin)
    if client == "copilot":
        said |= {"tool_name": said["toolName"], "tool_input": said["toolArgs"]}
    (canary,) = set(re.findall(r"whisper-tui-canary-\w+", json.dumps(said["tool_input"])))
    with MOOD.with_name("asked").open("a") as asked:
        asked.write(said["tool_name"] + "\n")
    if mood == "hangs":
        time.sleep(600)
    if mood == "crashes":
        sys.stderr.write("it broke\n")
        return 1
    if mood == "babbles":
        sys.stdout.write("hello\n")
        return 0
    if mood == "allows":
        answer = {"decision": "allow", "arguments": said["tool_input"], "note": "as the human said"}
        sys.stdout.write(json.dumps(answer if client in {"opencode", "kilo"} else {}) + "\n")
        return 0
    if mood == "commands" and said["tool_name"].lower() not in {"bash", "run_shell_command"}:
        return 0
    if mood == "lonely":
        sys.stderr.write("no supervisor can be reached\n")
        return 2
    sys.stdout.write(json.dumps(denial(client, f"whisper_tui: the gate is live (canary {canary})")) + "\n")
    return 0


def mcp() -> int:
    if mood == "crashes":
        sys.stderr.write("it broke\n")
        return 1
    number = json.loads(sys.stdin.readline())["id"]
    result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "whisper_tui"}}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    return 0


def executor() -> int:
    """The environment of Codex, which stops the canary or does as the mood says."""
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "initialize":
            answer: dict[str, object] = {"result": {"sessionId": "s", "environmentInfo": {}}}
        elif message["method"] == "process/start" and mood == "allows":
            answer = {"result": {"processId": message["params"]["processId"], "sandboxType": "none"}}
        else:
            (canary,) = set(re.findall(r"whisper-tui-canary-\w+", line)) or ("",)
            answer = {"error": {"code": -32603, "message": f"whisper_tui: the gate is live (canary {canary})"}}
        if "id" in message:
            sys.stdout.write(json.dumps({"id": message["id"], **answer}) + "\n")
            sys.stdout.flush()
    return 0


def gate() -> int:
    """The shell of a client, which stops the canary or does as the mood says."""
    if mood == "allows":
        os.execv("/bin/sh", ["/bin/sh", *words[words.index("--") + 1 :]])
    (canary,) = set(re.findall(r"whisper-tui-canary-\w+", " ".join(words))) or ("",)
    sys.stderr.write("it broke\n" if mood == "crashes" else f"whisper_tui: the gate is live (canary {canary})\n")
    return 126


if words == ["--version"]:
    sys.stdout.write("whisper-tui 9.9.9\n")
elif words[0] == "hook":
    sys.exit(hook(words[1]))
elif words[0] == "executor":
    sys.exit(executor())
elif words[0] == "gate":
    sys.exit(gate())
elif words[0] == "mcp":
    sys.exit(mcp())
else:
    sys.exit(2)
