"""The pages about agents: what they tell people to write by hand is what `whisper-tui install` writes."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.rows import each_row
from whisper_tui.agents.client_files import OR_GO_ON, OR_REFUSE, InstallRequest, Launch, changes, split
from whisper_tui.agents.known_clients import INSTALLABLE, profile_of
from whisper_tui.cli.dispatch import parser

PAGES = sorted((Path(__file__).parent.parent / "docs" / "agents").glob("*.md"))
PARSE = {"json": json.loads, "toml": tomllib.loads}
LAUNCHER = ("/path/to/python", "-I", "/path/to/whisper-tui")
"""The launcher that the pages name."""
STATE = "/path/to/state"
DIRECTORIES = ("--directories", "/path/to/config", STATE, f"{STATE}/run")
"""The directories that they name: those of a user who has moved nothing."""


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def client_of(page: Path) -> str:
    """The client that a page is about: the one that its first line installs into."""
    program, verb, client, *_ = blocks(page, "sh")[0].split()
    assert (program, verb) == ("whisper-tui", "install")
    return client


def snippets(page: Path) -> list[Any]:
    return [parse(text) for language, parse in PARSE.items() for text in blocks(page, language)]


def written(client: str, home: Path) -> dict[str, str]:
    """What the installer would write into an empty home, by the name of the file."""
    wish = InstallRequest(Launch(LAUNCHER, DIRECTORIES), {"HOME": str(home), "PATH": "/nowhere"})
    planner = profile_of(client).plan_install
    assert planner is not None
    planned = changes(planner(wish).files)
    return {
        f"~/{change.path.relative_to(home)}" if home in change.path.parents else str(change.path): change.after or ""
        for change in planned
    }


def test_every_client_has_a_page() -> None:
    assert sorted(map(client_of, PAGES)) == sorted(INSTALLABLE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_files_for_manual_setup_are_those_of_the_installer(page: Path, tmp_path: Path) -> None:
    for name, text in written(client_of(page), tmp_path).items():
        language = {".json": "json", ".jsonc": "json", ".toml": "toml"}.get(Path(name).suffix)
        if language is not None:
            assert PARSE[language](text) in snippets(page), name
        elif name.startswith(STATE):
            assert text in blocks(page, "text"), name
        elif name.endswith(".rules"):
            assert text.splitlines(keepends=True)[1:] == blocks(page, "python")[0].splitlines(keepends=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_that_is_written_is_named(page: Path, tmp_path: Path) -> None:
    for name in written(client_of(page), tmp_path):
        assert f"`{name}`" in page.read_text()


def command_lines() -> list[list[str]]:
    """Every command line of ours that a snippet holds, without its launcher."""
    found = []
    for page in PAGES:
        texts = [text for language in PARSE for text in blocks(page, language)]
        for text in texts:
            found += [
                split(line.removesuffix(f" {OR_REFUSE}").removesuffix(f" {OR_GO_ON}"))[len(LAUNCHER) :]
                for line in re.findall(rf'"({" ".join(LAUNCHER)} hook [^"]*)"', text)
            ]
            found += [_ours(json.loads(words)) for words in re.findall(r'"?args"?(?:: | = )(\[.*\])', text)]
    return found


def _ours(words: list[str]) -> list[str]:
    """The words behind the launcher, where another program starts it."""
    return words[words.index(LAUNCHER[-1]) + 1 :] if LAUNCHER[-1] in words else words


@each_row("line", command_lines(), ids=" ".join)
def test_every_command_line_is_one_that_the_program_takes(line: list[str]) -> None:
    assert parser().parser.parse_args(line)


@each_row("page", PAGES, ids=lambda page: page.stem)
def test_every_client_is_given_a_day_to_wait_for_a_human(page: Path) -> None:
    days = {"gemini": "86400000", "opencode": "86400000", "kilo": "86400000", "qwen": "86400000", "kimi": "86400000"}
    assert re.search(rf'"?(?:toolT|t)imeout(?:Sec|Ms)?"?: {days.get(client_of(page), "86400")}\b', page.read_text())


@each_row("page", PAGES, ids=lambda page: page.stem)
def test_every_page_tells_how_to_prove_it_and_how_to_take_it_back(page: Path) -> None:
    client = client_of(page)
    assert f"whisper-tui doctor {client}" in page.read_text()
    assert f"`whisper-tui uninstall {client}`" in page.read_text()
