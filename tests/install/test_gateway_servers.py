"""A tool of a server behind our gateway is asked about there, and not by the hook as well."""

import json
from typing import Any

import pytest

from tests.install.conftest import CLIENTS, Machine
from whisper_tui.agents.client_files import Launch
from whisper_tui.agents.doctor import asks_itself, servers_of

GATEWAY = ["mcp", "--home", "/w", "--through", "docs", "--", "npx", "docs-server"]


@pytest.fixture(autouse=True)
def instance_of_the_gateway(machine: Machine) -> None:
    """The instance that the words above name. Nothing is installed for it."""
    machine.launch = machine.launch._replace(home=("--home", "/w"))


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def define(machine: Machine, client: str, words: list[str], *, project: bool = False, **more: Any) -> None:
    """Write the definition of the server `docs` into a file of the client."""
    below = "work/project/" if project else ""
    entry: dict[str, Any] = {"command": words[0], "args": words[1:], **more}
    if client == "codex":
        text = f"[mcp_servers.docs]\ncommand = {json.dumps(words[0])}\nargs = {json.dumps(words[1:])}\n"
        machine.write(f"{below}.codex/config.toml", text)
    elif client in {"opencode", "kilo"}:
        name = f"{below}{client}.json" if project else f".config/{client}/{client}.json"
        machine.write(name, json.dumps({"mcp": {"docs": {"type": "local", "command": words}}}))
    else:
        names = {
            ("claude", False): ".claude.json",
            ("claude", True): f"{below}.mcp.json",
            ("qwen", False): f"{below}.qwen/settings.json",
            ("qwen", True): f"{below}.qwen/settings.json",
            ("kimi", False): ".kimi-code/mcp.json",
            ("kimi", True): f"{below}.kimi-code/mcp.json",
            ("copilot", False): ".copilot/mcp-config.json",
            ("copilot", True): f"{below}.github/mcp.json",
        }
        machine.write(
            names.get((client, project), f"{below}.gemini/settings.json"), json.dumps({"mcpServers": {"docs": entry}})
        )


def behind(machine: Machine, client: str, launch: Launch | None = None) -> bool:
    return asks_itself(client, "docs", machine.project, machine.environ, launch or machine.launch)


def test_a_server_behind_the_gateway_is_found_in_every_file(machine: Machine, client: str) -> None:
    assert not behind(machine, client)
    define(machine, client, ["whisper-tui", *GATEWAY])
    assert behind(machine, client)
    define(machine, client, [*machine.launch.program, *GATEWAY], project=True)
    assert behind(machine, client)


def test_a_second_definition_without_the_gateway_counts(machine: Machine, client: str) -> None:
    define(machine, client, ["whisper-tui", *GATEWAY])
    define(machine, client, ["npx", "docs-server"], project=True)
    assert not behind(machine, client)


@pytest.mark.parametrize(
    "words",
    [
        ["npx", "docs-server", "--", "whisper-tui", "mcp", "--through", "docs"],
        ["evil", "whisper-tui", *GATEWAY],
        ["/home/me/project/whisper-tui", *GATEWAY],
        ["whisper-tui", "mcp", "--home", "/w", "--", "--through", "docs"],
        ["whisper-tui", "mcp", "--home", "/elsewhere", "--through", "docs", "--", "npx"],
        ["whisper-tui", "mcp", "--home", "/w", "--through", "docs", "--home", "/elsewhere", "--", "npx"],
        ["whisper-tui", "mcp", "--through", "docs", "--", "npx"],
    ],
)
def test_the_hook_asks_about_servers_that_only_look_like_this_gateway(
    machine: Machine, client: str, words: list[str]
) -> None:
    define(machine, client, words)
    assert not behind(machine, client)


def test_a_gateway_that_is_given_other_directories_is_asked_by_the_hook(machine: Machine) -> None:
    define(machine, "claude", ["whisper-tui", *GATEWAY], env={"WHISPER_TUI_HOME": "/elsewhere"})
    assert not behind(machine, "claude")


def test_a_file_that_cannot_be_read_is_asked_by_the_hook(machine: Machine) -> None:
    define(machine, "claude", ["whisper-tui", *GATEWAY])
    machine.write("work/project/.mcp.json", "{ broken")
    assert not behind(machine, "claude")


def test_in_the_usual_instance_no_directories_are_named(machine: Machine, client: str) -> None:
    define(machine, client, ["whisper-tui", "mcp", "--through", "docs", "--", "npx"])
    assert behind(machine, client, Launch(machine.launch.program))


class TestCopilot:
    """Its own file says whose tools a name stands for, and which server is ours."""

    def asks(self, machine: Machine, launch: Launch | None = None) -> bool:
        return asks_itself("copilot", "whisper", machine.project, machine.environ, launch or machine.launch)

    def test_only_our_own_server_is_trusted_with_its_name(self, machine: Machine) -> None:
        assert not self.asks(machine)
        machine.install("copilot")
        assert self.asks(machine)
        assert not self.asks(machine, Launch(("/elsewhere/whisper-tui",), ("--home", "/w")))
        assert not self.asks(machine, Launch(machine.launch.program, ("--home", "/other")))
        evil = {"mcpServers": {"whisper": {"command": "evil", "args": ["whisper-tui", "mcp", "--home", "/w"]}}}
        machine.write("work/project/.mcp.json", json.dumps(evil))
        assert not self.asks(machine)

    def test_the_names_of_servers_are_those_of_all_files_that_can_be_read(self, machine: Machine) -> None:
        machine.install("copilot")
        define(machine, "copilot", ["npx"], project=True)
        machine.write("work/project/.mcp.json", "{ broken")
        assert servers_of("copilot", machine.project, machine.environ) == ["whisper", "docs"]
        assert not self.asks(machine), "one definition is not known"
