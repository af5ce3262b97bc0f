"""The MCP servers that a client starts are put behind the gateway, found there, and restored to the letter."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.install.conftest import CLIENTS, HERE, Machine
from tests.interpreter import PYTHON
from whisper_tui.agents.client_files import DAY_S, Launch
from whisper_tui.agents.findings import CheckState

FILES = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "copilot": ".copilot/mcp-config.json",
    "qwen": ".qwen/settings.json",
    "kimi": ".kimi-code/mcp.json",
    "kilo": ".config/kilo/kilo.json",
}
TEXTS = {
    "claude": """{
  "numStartups": 3, "mcpServers": {
    "files": {"type":"stdio", "command": "npx", "args": ["-y", "server", "--", "/srv"], "env": {"A": "b"}},
    "bare": { "command": "/opt/bare", "timeout": 9000 },
    "far": {"type": "http", "url": "https://example.org/mcp"}
  }
}
""",
    "codex": """model = "m"  # mine

[mcp_servers.files]
command = 'npx'
args = ["-y",  "server", "--", "/srv"]
env = { A = "b" }

[mcp_servers.bare]
command = "/opt/bare"
tool_timeout_sec = 9

[mcp_servers.far]
url = "https://example.org/mcp"
""",
    "gemini": """{
  // mine
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "server", "--", "/srv"], "env": {"A": "b"}, "trust": false},
    "bare": {"command": "/opt/bare", "timeout": 9000},
    "far": {"httpUrl": "https://example.org/mcp"},
  },
}
""",
    "opencode": """{
  // mine
  "mcp": {
    "files": {"type": "local", "command": ["npx", "-y", "server", "--", "/srv"], "environment": {"A": "b"}},
    "bare": {"type": "local", "command": ["/opt/bare"], "timeout": 9000},
    "far": {"type": "remote", "url": "https://example.org/mcp"},
  },
}
""",
    "copilot": """{
  "mcpServers": {
    "files": {"type": "local", "command": "npx", "args": ["-y", "server", "--", "/srv"], "env": {"A": "b"}},
    "bare": {"type": "local", "command": "/opt/bare", "timeout": 9000, "tools": ["*"]},
    "far": {"type": "http", "url": "https://example.org/mcp", "tools": ["*"]}
  }
}
""",
}
TEXTS["qwen"] = TEXTS["gemini"]
TEXTS["kilo"] = TEXTS["opencode"]
TEXTS["kimi"] = TEXTS["gemini"].replace('"timeout"', '"toolTimeoutMs"')
OWN = {"files": ["npx", "-y", "server", "--", "/srv"], "bare": ["/opt/bare"]}


def written(machine: Machine, client: str) -> Path:
    path = machine.home / FILES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEXTS[client])
    return path


def servers(machine: Machine, client: str) -> dict[str, Any]:
    text = (machine.home / FILES[client]).read_text()
    if client == "codex":
        return dict(tomllib.loads(text)["mcp_servers"])
    from whisper_tui.agents.documents import read_json

    return dict(read_json(text, comments=True).value["mcp" if client in {"opencode", "kilo"} else "mcpServers"])


def words(entry: dict[str, Any]) -> list[str]:
    command = entry["command"]
    return command if isinstance(command, list) else [command, *entry.get("args", [])]


@pytest.mark.parametrize("client", CLIENTS)
def test_servers_that_the_client_starts_go_behind_the_gateway_and_others_are_named(
    machine: Machine, client: str
) -> None:
    written(machine, client)
    plan = machine.plan_install(client, gateway=True)
    assert [note for note in plan.notes if "far" in note and "left as it is" in note]
    machine.install(client, gateway=True)
    found = servers(machine, client)
    for name, own in OWN.items():
        assert words(found[name]) == [
            *machine.launch.program,
            "mcp",
            *machine.launch.home,
            "--through",
            name,
            "--",
            *own,
        ]
        limit = found[name].get("timeout", found[name].get("toolTimeoutMs", 0)) / 1000
        assert DAY_S in (found[name].get("tool_timeout_sec"), limit)
    assert found["files"].get("env", found["files"].get("environment")) == {"A": "b"}
    assert "--through" not in json.dumps([found["far"], found["whisper"]])


@pytest.mark.parametrize(("client", "member"), [("gemini", "trust"), ("codex", "default_tools_approval_mode")])
def test_the_client_leaves_the_question_to_the_gateway_and_asks_again_without_it(
    machine: Machine, client: str, member: str
) -> None:
    path = written(machine, client)
    original = {name: entry.get(member) for name, entry in servers(machine, client).items()}
    machine.install(client, gateway=True)
    found = servers(machine, client)
    assert {name for name in (*OWN, "far") if found[name].get(member) in {True, "approve"}} == set(OWN)
    path.write_text(path.read_text().replace("example.org", "example.com"))
    machine.install(client)
    now = servers(machine, client)
    assert {name: now[name].get(member) for name in original if name != "whisper"} == {
        name: said for name, said in original.items() if name != "whisper"
    }


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("earlier", [False, True], ids=["at once", "after an installation without it"])
@pytest.mark.one_in(2)
def test_uninstalling_restores_the_file_to_the_letter(machine: Machine, client: str, earlier: bool) -> None:
    written(machine, client)
    before = machine.files()
    if earlier:
        machine.install(client)
    machine.install(client, gateway=True)
    after = machine.files()
    assert machine.install(client, gateway=True) == [] and machine.files() == after
    machine.uninstall(client)
    assert machine.files() == before


@pytest.mark.parametrize("client", CLIENTS)
def test_after_an_edit_the_servers_are_restored_and_the_edit_stays(machine: Machine, client: str) -> None:
    path = written(machine, client)
    original = servers(machine, client)
    machine.install(client, gateway=True)
    path.write_text(path.read_text().replace("example.org", "example.com"))
    machine.uninstall(client)
    restored = servers(machine, client)
    assert "example.com" in json.dumps(restored.pop("far")) and original.pop("far")
    assert restored == original


@pytest.mark.parametrize("client", CLIENTS)
def test_an_installation_without_the_gateway_takes_it_away(machine: Machine, client: str) -> None:
    written(machine, client)
    machine.install(client, gateway=True)
    machine.install(client)
    assert words(servers(machine, client)["files"]) == OWN["files"]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_gateway_of_another_installation_is_replaced_and_not_nested(machine: Machine, client: str) -> None:
    written(machine, client)
    ours = machine.launch
    machine.launch = Launch(("/old/bin/whisper-tui",), ("--home", str(machine.home.parent / "old")))
    machine.install(client, gateway=True)
    machine.launch = ours
    machine.install(client, gateway=True)
    assert words(servers(machine, client)["files"]).count("--through") == 1
    assert words(servers(machine, client)["files"])[0] == ours.program[0]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_whose_variables_load_code_is_left(machine: Machine, client: str) -> None:
    path = written(machine, client)
    path.write_text(path.read_text().replace('"A": "b"', '"LD_PRELOAD": "x"').replace('A = "b"', 'LD_PRELOAD = "x"'))
    assert any("files" in note for note in machine.plan_install(client, gateway=True).notes)
    machine.install(client, gateway=True)
    assert words(servers(machine, client)["files"]) == OWN["files"]


def checks_of(machine: Machine, client: str) -> dict[CheckState, str]:
    """What the doctor says about the gateway, by state."""
    said: dict[CheckState, str] = {}
    for check in machine.doctor(client).checks:
        if check.subject == "gateway":
            said[check.state] = f"{said.get(check.state, '')}{check.sentence}. {check.hint}\n"
    return said


@pytest.mark.parametrize("client", CLIENTS)
def test_the_doctor_says_which_servers_are_behind_the_gateway_and_which_are_not(machine: Machine, client: str) -> None:
    path = written(machine, client)
    machine.client("npx", "1")
    path.write_text(path.read_text().replace("/opt/bare", str(machine.bin / "npx")))
    machine.install(client)
    found = checks_of(machine, client)
    assert list(found) == [CheckState.NOTE]
    assert f"{path}: files, bare, far. whisper-tui install {client} --gateway" in found[CheckState.NOTE]
    machine.install(client, gateway=True)
    found = checks_of(machine, client)
    assert set(found) == {CheckState.GOOD, CheckState.NOTE}
    assert f"server files in {path} is behind the gateway and starts npx" in found[CheckState.GOOD]
    assert f"server bare in {path} is behind the gateway and starts {machine.bin}/npx" in found[CheckState.GOOD]
    assert f"{path}: far. " in found[CheckState.NOTE]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_doctor_misses_the_program_of_a_server_behind_the_gateway(machine: Machine, client: str) -> None:
    written(machine, client)
    machine.client("npx", "1")
    machine.install(client, gateway=True)
    found = checks_of(machine, client)
    assert "bare" in found[CheckState.BAD] and "/opt/bare was not found" in found[CheckState.BAD]
    assert "files" not in found[CheckState.BAD] and not machine.doctor(client).proved


@pytest.mark.parametrize("client", CLIENTS)
def test_the_doctor_misses_the_gateway_of_a_removed_installation_and_names_that_of_another(
    machine: Machine, client: str
) -> None:
    written(machine, client)
    machine.client("npx", "1")
    ours, other = machine.launch, machine.program("elsewhere/whisper-tui", HERE / "fake_launcher.py")
    machine.launch = Launch((PYTHON, "-I", str(other)), ("--home", str(machine.home.parent / "old")))
    machine.install(client, gateway=True)
    machine.launch = ours
    assert "server files" in checks_of(machine, client)[CheckState.NOTE].split("another installation")[0]
    other.unlink()
    assert f"cannot start: {other} was not found" in checks_of(machine, client)[CheckState.BAD]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_doctor_passes_over_servers_that_are_switched_off(machine: Machine, client: str) -> None:
    path = written(machine, client)
    machine.install(client)
    off = "enabled = false\nurl = " if client == "codex" else '"enabled": false, "type": '
    path.write_text(path.read_text().replace("url = ", off).replace('"type": "http"', f'{off}"http"'))
    path.write_text(
        path.read_text().replace('"type": "remote"', f'{off}"remote"').replace('"httpUrl"', f'{off}"h", "httpUrl"')
    )
    assert f"{path}: files, bare. " in checks_of(machine, client)[CheckState.NOTE]


def test_a_server_of_the_configuration_file_is_behind_the_gateway(machine: Machine) -> None:
    words = [*machine.launch.server()[1:], "--through", "files"]
    machine.write(
        ".claude.json", json.dumps({"mcpServers": {"f": {"command": machine.launch.program[0], "args": words}}})
    )
    assert "named in the configuration file" in checks_of(machine, "claude")[CheckState.GOOD]
