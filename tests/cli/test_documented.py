"""The page about the command line and `--help` say the same as the program."""

import argparse
import re
from pathlib import Path

from tests.model.build import a_board, a_session, submitted
from tests.rows import each_row
from whisper_tui.cli.dispatch import parser
from whisper_tui.cli.subcommand import MEANINGS
from whisper_tui.model.call_rows import call_details

PAGE = (Path(__file__).parent.parent.parent / "docs" / "cli.md").read_text(encoding="utf-8")


def subcommands() -> dict[str, argparse.ArgumentParser]:
    (found,) = [action for action in parser().parser._actions if isinstance(action, argparse._SubParsersAction)]
    return found.choices


def documented() -> dict[str, str]:
    """Each subcommand of the first table with what is said of its use."""
    said: dict[str, str] = {}
    for use in re.findall(r"^\| `([a-z].*?)` \|", PAGE.split("## Rows")[0], re.MULTILINE):
        name = use.split()[0]
        said[name] = f"{said.get(name, '')} {use}".strip()
    return said


def test_every_subcommand_is_documented_and_no_other():
    assert set(documented()) == set(subcommands())


@each_row("name", sorted(subcommands()))
def test_every_option_is_documented(name):
    hidden = {"--help", "-h", "--home", "--directories", "--tell", "--follow"}
    options = {option for action in subcommands()[name]._actions for option in action.option_strings} - hidden
    assert {option for option in options if option not in documented()[name]} == set()


@each_row("name", sorted(subcommands()))
def test_every_help_tells_the_exit_codes_and_takes_a_home(name):
    text = subcommands()[name].format_help()
    assert "exit codes:" in text and "--home DIR" in text


def test_every_exit_code_is_documented():
    table = dict(re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE))
    assert {int(code): meaning for code, meaning in table.items()} == MEANINGS


def test_every_key_of_a_row_is_documented():
    row = call_details(a_board(submitted()).record("1"), a_session())
    assert [key for key in row if f"`{key}`" not in PAGE] == []


@each_row("name", sorted(subcommands()))
def test_a_subcommand_is_found_without_loading_the_others(name):
    (found,) = [
        action
        for action in parser(["--home", "somewhere", name]).parser._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    assert name in found.choices
    assert set(found.choices) < set(subcommands())
    assert found.choices[name].format_help() == subcommands()[name].format_help()
