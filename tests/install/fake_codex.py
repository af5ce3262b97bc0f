"""A codex that tells its version and, as app-server, the hooks of its configuration and whether it trusts them."""

import hashlib
import json
import os
import sys
import time
import tomllib
from pathlib import Path

NAMES = {
    "preToolUse": "pre_tool_use",
    "permissionRequest": "permission_request",
    "sessionStart": "session_start",
    "postToolUse": "post_tool_use",
}
MOOD = Path(sys.argv[0]).with_name("codex-mood")
mood = MOOD.read_text().strip() if MOOD.exists() else "well"
home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")


def configuration(layer: Path) -> dict:
    path = layer / "config.toml"
    return tomllib.loads(path.read_text()) if path.exists() else {}


def listed(path: Path, event: str, number: int, group: dict, state: dict) -> list[dict]:
    found = []
    for place, handler in enumerate(group["hooks"]):
        key = f"{os.path.realpath(path)}:{NAMES[event]}:{number}:{place}"
        told = json.dumps([event, group.get("matcher"), handler], sort_keys=True)
        digest = "sha256:" + hashlib.sha256(told.encode()).hexdigest()
        trusted = state.get(key, {}).get("trusted_hash") == digest
        found.append(
            {
                "key": key,
                "eventName": event,
                "command": handler["command"],
                "currentHash": digest,
                "enabled": True,
                "isManaged": False,
                "trustStatus": "trusted" if trusted else "untrusted",
            }
        )
    return found


def hooks(cwd: Path) -> list[dict]:
    state = configuration(home).get("hooks", {}).get("state", {})
    trusted_project = configuration(home).get("projects", {}).get(str(cwd), {}).get("trust_level") == "trusted"
    layers = [home, cwd / ".codex"] if trusted_project else [home]
    found = []
    for layer in layers:
        sources = [(layer / "config.toml", configuration(layer))]
        if (layer / "hooks.json").exists():
            sources.append((layer / "hooks.json", json.loads((layer / "hooks.json").read_text())))
        for path, said in sources:
            for name in NAMES:
                event = name[0].upper() + name[1:]
                for number, group in enumerate(said.get("hooks", {}).get(event, [])):
                    found += listed(path, name, number, group, state)
    return found


if sys.argv[1:] == ["--version"]:
    sys.stdout.write("codex-cli 0.171.0\n")
elif mood == "broken":
    sys.exit(1)
else:
    sys.stdout.write('{"method": "configWarning", "params": {}}\n')
    for line in sys.stdin:
        request = json.loads(line)
        if mood == "silent":
            time.sleep(600)
        if request.get("method") == "initialize":
            answer = {"id": request["id"], "result": {}}
        elif request.get("method") == "hooks/list":
            data = [{"cwd": cwd, "hooks": hooks(Path(cwd))} for cwd in request["params"]["cwds"]]
            answer = {"id": request["id"], "result": {"data": data}}
            if mood == "old":
                answer = {"id": request["id"], "error": {"message": "unknown method"}}
        elif request.get("method") == "thread/start":
            servers = configuration(home).get("mcp_servers", {})
            required = [name for name, each in servers.items() if "command" in each and each.get("required")]
            answer = {"id": request["id"], "result": {"thread": {"id": "1"}}}
            if (home / "environments.toml").exists() and required:
                said = f"required MCP servers failed to initialize: {required[0]} requires a local environment"
                answer = {"id": request["id"], "error": {"message": said}}
        else:
            continue
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
