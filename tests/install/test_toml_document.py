"""TOML files are changed at their end, and what was put in can be taken out."""

import tomllib

import pytest

from tests.rows import each_row
from whisper_tui.agents.documents import TomlDocument
from whisper_tui.agents.file_entries import WrongShape

GROUP = {"matcher": "^Bash$", "hooks": [{"type": "command", "command": "x y", "timeout": 86400}]}
SERVER = {"command": "/a b/whisper-tui", "args": ["mcp"], "required": True}
KEY = "/home/a b/.codex/hooks.json:pre_tool_use:0:0"

TEXTS = {
    "nothing": "",
    "a word without an end of line": 'model = "x"',
    "tables and comments": '# mine\nmodel = "x"  # why\n\n[mcp_servers.other] # another\ncommand = "c"\n\n[tui]\n',
    "hooks of the user": '[[hooks.PreToolUse]]\nmatcher = "x"\n[[hooks.PreToolUse.hooks]]\ntype = "command"\n',
    "tables inside of others": '# c\nmcp_servers = { a = { command = "x" } } # d\n',
    "carriage returns": 'model = "x"\r\n\r\n[tui]\r\ntheme = "y"\r\n',
    "trust of the user": '[hooks.state]\n[hooks.state."/x:pre_tool_use:0:0"]\ntrusted_hash = "sha256:0"\n',
    "looks like a table": 'text = """\n[mcp_servers.whisper]\ncommand = "no"\n"""\n',
}


@each_row("text", TEXTS.values(), ids=TEXTS)
def test_an_added_value_can_be_removed_to_the_byte(text: str) -> None:
    document = TomlDocument(text)
    document.append(("hooks", "PreToolUse"), GROUP)
    document.put(("mcp_servers", "whisper"), SERVER)
    document.put(("hooks", "state", KEY), {"trusted_hash": "sha256:1"})
    said = tomllib.loads(document.text)
    assert said["hooks"]["PreToolUse"][-1] == GROUP
    assert said["mcp_servers"]["whisper"] == SERVER
    assert said["hooks"]["state"][KEY] == {"trusted_hash": "sha256:1"}
    if "inside" not in text and "mcp_servers = {" not in text:
        assert document.text.startswith(text)
    document.delete(("hooks", "state", KEY))
    document.delete(("mcp_servers", "whisper"))
    document.delete(("hooks", "PreToolUse", len(said["hooks"]["PreToolUse"]) - 1))
    assert document.text.rstrip() == text.rstrip()


def test_a_table_that_was_edited_goes_whole_and_its_neighbours_stay() -> None:
    document = TomlDocument(
        '[mcp_servers.a]\ncommand = "a" # first\n\n[mcp_servers.whisper]\ncommand = "w" # mine\n\n'
        '[mcp_servers.whisper.env]\nLANG = "C"\n\n[mcp_servers.b]\ncommand = "b" # last\n'
    )
    document.delete(("mcp_servers", "whisper"))
    assert document.text == '[mcp_servers.a]\ncommand = "a" # first\n\n[mcp_servers.b]\ncommand = "b" # last\n'


def test_an_existing_value_is_changed_in_place() -> None:
    document = TomlDocument('[hooks.state."k"]\ntrusted_hash = "old"\n\n[tui]\n# the end\n')
    document.put(("hooks", "state", "k"), {"trusted_hash": "new"})
    assert tomllib.loads(document.text)["hooks"]["state"]["k"]["trusted_hash"] == "new"
    assert document.text.endswith("[tui]\n# the end\n")


@each_row("text", ["mcp_servers = 1\n", "mcp_servers = [1]\n", "[[mcp_servers]]\na = 1\n"])
def test_a_place_of_another_shape_is_left_alone(text: str) -> None:
    document = TomlDocument(text)
    with pytest.raises(WrongShape):
        document.put(("mcp_servers", "whisper"), SERVER)
    assert document.text == text
