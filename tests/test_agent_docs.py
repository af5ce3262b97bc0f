"""What the pages about agents tell people to paste is well-formed, and its command line exists."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from whisper_tui.cli.main import parser

PAGES = sorted((Path(__file__).parent.parent / "docs" / "agents").glob("*.md"))
PARSE = {"json": json.loads, "toml": tomllib.loads}


def snippets(page: Path) -> list[Any]:
    found = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [PARSE[language](text) for language, text in found]


def servers(page: Path) -> list[dict[str, Any]]:
    return [
        server
        for snippet in snippets(page)
        for table in ("mcpServers", "mcp_servers")
        for server in snippet.get(table, {}).values()
        if "command" in server
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_snippet_can_be_read_and_one_names_the_server(page):
    assert len(servers(page)) == 1


def command_lines() -> list[list[str]]:
    lines = [[server["command"], *server["args"]] for page in PAGES for server in servers(page)]
    for page in PAGES:
        lines += [
            ["whisper-tui", *json.loads(args)] for args in re.findall(r'"args": (\["mcp", [^\]]+\])', page.read_text())
        ]
    return lines


@pytest.mark.parametrize("line", command_lines(), ids=" ".join)
def test_every_command_line_is_one_that_the_program_takes(line):
    assert line[0] == "whisper-tui"
    assert parser().parser.parse_args(line[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_client_is_given_a_day_to_wait_for_a_human(page):
    (server,) = servers(page)
    assert server.get("timeout", 0) == 86_400_000 or server.get("tool_timeout_sec", 0) == 86_400
