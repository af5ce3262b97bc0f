"""The table of programs can be read, and says everything once."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.rows import each_row
from whisper_tui.programs import entries
from whisper_tui.programs.entries import entry_of, program_names, read_options, read_programs

TABLE = Path(entries.__file__).with_name("table")


def rows() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(TABLE.glob("*.toml")):
        written = tomllib.loads(file.read_text(encoding="utf-8"))
        assert not found.keys() & written.keys(), file.name
        found |= written
    return found


def test_every_entry_can_be_read_and_is_found_by_each_of_its_names() -> None:
    read = read_programs(rows())
    assert read.keys() == set(program_names())
    assert all(entry_of(name) == entry for name, entry in read.items())
    assert len(read) > 400


def test_a_malformed_table_is_refused() -> None:
    for text in ("-x meaning", "-x, -y", "-x  one\n-x  two", "x y z  meaning"):
        with pytest.raises(ValueError, match=r"malformed|twice"):
            read_options(text)
    for table in (
        {"a": {"about": "a", "option": "-x  y"}},
        {"a b": {"about": "b"}},
        {"a": {"about": "a", "also": ["b"]}, "b": {"about": "b"}},
        {"a": {"about": "a", "commands": "b"}},
    ):
        with pytest.raises(ValueError, match=r"unknown fields|no entry|twice|malformed"):
            read_programs(table)


def test_what_an_option_takes_is_said_once_or_alike() -> None:
    def read(**row: str) -> entries.ProgramEntry:
        return read_programs({"a": {"about": "a", **row}})["a"]

    described = "-n N  so many\n-c[N]  so many"
    assert read(options=described, reads="-n -c -x=").options["-x"].value == "needed"
    assert read(options=described, reads="-n -c").options["-n"].meaning == "so many"
    assert read(options=described, reads="-n= -c?").reads == {"-n", "-c"}
    for row in ({"reads": "-n?"}, {"reads": "-c="}, {"takes": "-n"}, {"reads": "-x", "takes": "-x"}):
        with pytest.raises(ValueError, match=r"takes a value|another list"):
            read(options=described, **row)


def test_an_entry_is_like_another_but_for_what_it_says_itself() -> None:
    read = read_programs(
        {
            "@many": {"options_of_many": "-z"},
            "a": {"about": "first", "reads": "-x @many", "is": "needs_socket"},
            "b": {"about": "second", "like": "a", "is": ""},
        }
    )
    assert read["b"].reads == {"-x", "-z"} and read["b"].about == "second"
    assert read["a"].needs_socket and not read["b"].needs_socket


@each_row("name", [name for name in program_names() if (entry := entry_of(name)) and entry.reads])
def test_no_option_only_reads_and_does_more(name: str) -> None:
    entry = entry_of(name)
    assert entry is not None and entry.reads is not None
    for option in entry.reads:
        acting = (*entry.runs, *entry.writes, *entry.must_name)
        assert option not in acting, option
