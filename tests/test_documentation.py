"""The pages keep their word: links lead somewhere, commands exist, programs run, settings and risks are described."""

import argparse
import ast
import os
import re
import shlex
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

from tests.rows import each_row
from whisper_tui.config.configuration import CockpitSettings, Configuration, McpSettings
from whisper_tui.model.call import Session
from whisper_tui.notify.notify_settings import NotifySettings
from whisper_tui.policy.risks.call_risks import ALWAYS_ASKED
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.system import run_files
from whisper_tui.tools import ToolContext, standard_registry

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What a link into a page can name: its headings, as they are linked."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_row("page", PAGES, ids=name_of)
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), f"{name_of(page)} links to {target}"
        assert not anchor or anchor in anchors(aim), f"{name_of(page)} links to {target}"


@each_row("page", PAGES, ids=name_of)
def test_every_make_target_that_a_page_names_is_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"^make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    named |= set(re.findall(r"`make ([a-z]+)`", page.read_text(encoding="utf-8")))
    assert named <= targets


def test_the_first_two_commands_of_the_readme_run_the_demo_and_the_tests() -> None:
    commands = [line.split("#")[0].strip() for line in blocks(README, "sh")[0].splitlines()]
    assert commands == ["make run", "make test"]


@each_row("page", PAGES, ids=name_of)
def test_every_command_line_that_a_page_shows_is_one_that_the_program_takes(page: Path) -> None:
    from whisper_tui.cli.dispatch import parser

    for block in blocks(page, "sh"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["whisper-tui"] and "--help" not in words:
                assert isinstance(parser().parser.parse_args(words[1:]), argparse.Namespace), line


def test_the_readme_installs_into_every_agent_that_has_a_page() -> None:
    (line,) = [line for block in blocks(README, "sh") for line in block.splitlines() if "whisper-tui install" in line]
    for page in (ROOT / "docs" / "agents").glob("*.md"):
        _, _, client, *_ = blocks(page, "sh")[0].split()
        assert client in line
        assert f"](docs/agents/{page.name})" in README.read_text(encoding="utf-8")


@each_row(
    ("table", "names"),
    [
        ("supervisor", tuple(SupervisorSettings.model_fields)),
        ("cockpit", tuple(CockpitSettings.model_fields)),
        ("calling", tuple(NotifySettings.model_fields)),
        ("mcp", tuple(McpSettings.model_fields)),
        ("rules.allow", ("name", "argv", "text", "justification")),
        ("rules.deny", ("name", "argv", "text", "justification")),
    ],
)
def test_every_setting_is_described(table: str, names: tuple[str, ...]) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert f"[{table}]" in page
    assert [name for name in names if not re.search(rf"\b{name}\b", page)] == []


def test_the_page_about_connecting_names_every_tool_that_an_agent_is_offered() -> None:
    session = Session(id="s1", name="an agent", root="/", opened_at=0.0)
    offered = standard_registry(ToolContext(object(), session)).get_all_tools()
    page = (ROOT / "docs" / "connect.md").read_text(encoding="utf-8")
    assert [tool.name for tool in offered if f"`{tool.name}`" not in page] == []


def test_the_keys_in_the_readme_do_what_it_says() -> None:
    from whisper_tui.tui.commands.all_commands import BY_ID

    said = {
        "approve": "a",
        "approval-reach": "F",
        "approval-way": "h",
        "edit": "e",
        "deny": "d",
        "signal": "x",
        "help": "?",
    }
    (sentence,) = re.findall(
        r"^In the cockpit: (.*?)\n\n", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert re.findall(r"`([^`]+)`", sentence) == list(said.values())
    assert {name: BY_ID[name].key_name for name in said} == said


def test_the_example_of_a_configuration_is_a_valid_one() -> None:
    (example,) = blocks(ROOT / "docs" / "configuration.md", "toml")
    configuration = Configuration.model_validate(tomllib.loads(example))
    assert configuration.rules.allow and configuration.rules.deny


def test_every_risk_that_is_always_asked_is_described_and_no_other() -> None:
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    section = page.split("## Risks that always need approval")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)) == ALWAYS_ASKED


def test_every_file_of_a_run_is_described() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = (
        "SPEC",
        "ENVIRONMENT",
        "LOCK",
        "CLAIM",
        "PID",
        "OUT",
        "ERR",
        "INDEX",
        "EXIT",
        "BACKGROUND",
        "DONE",
        "CONTROL",
        "INPUT",
    )
    described = set(re.findall(r"`([a-z]+)`", "".join(re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE))))
    assert {getattr(run_files, name) for name in files} <= described


def test_every_file_in_which_a_change_begins_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:whisper_tui|tests)/[^`]+)`", page.split("## Where a change begins")[1]))
    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_every_way_in_for_agents_names_programs_that_are_there() -> None:
    section = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("## Ways in for agents")[1]
    named = {path.split("/")[-1] for path in re.findall(r"`([\w/]+\.py)`", section.split("\n## ")[0])}
    assert named <= {path.name for path in (ROOT / "whisper_tui").rglob("*.py")}


@each_row("page", PAGES, ids=name_of)
def test_every_python_program_of_a_page_compiles(page: Path) -> None:
    for program in blocks(page, "python"):
        compile(program, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def run(program: str, home: Path, cwd: Path) -> str:
    """Run a program of a page in a directory of its own, and return what it prints."""
    environment = {**os.environ, "WHISPER_TUI_HOME": str(home), "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def whisper(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one subcommand on an instance of its own."""
    command = [sys.executable, "-m", "whisper_tui", *words, "--home", str(home)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def approve_first_call(home: Path) -> None:
    """What a human does about the program of the readme, as soon as there is something to approve."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if '"waiting"' in whisper(home, "list", "--json").stdout:
            whisper(home, "approve", "1")
            return
        time.sleep(0.1)


@pytest.mark.slow
def test_the_first_program_of_the_library_page_waits_for_a_human_and_prints_the_result(tmp_path: Path) -> None:
    program = blocks(ROOT / "docs" / "library.md", "python")[0]
    human = threading.Thread(target=approve_first_call, args=(tmp_path / "home",))
    human.start()
    try:
        printed = run(program, tmp_path / "home", tmp_path)
    finally:
        human.join()
        whisper(tmp_path / "home", "stop", "--end-runs")
    assert "'stdout': 'hello\\n'" in printed
    assert "'name': 'execute_command'" in printed


@pytest.mark.slow
def test_the_programs_about_the_library_do_what_they_are_shown_for(tmp_path: Path) -> None:
    *_, supervised, own_tool = blocks(ROOT / "docs" / "library.md", "python")
    printed = run(supervised, tmp_path / "home", tmp_path)
    assert "'stdout': 'hello\\n'" in printed
    assert "Reason: nothing is removed here" in printed
    assert run(own_tool, tmp_path / "home", tmp_path) == "{'lines': 2}\n"


@each_row("page", PAGES, ids=name_of)
def test_a_page_says_nothing_about_the_place_where_it_was_written(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"/home/|/root/|/tmp/|C:\\\\", text)


WIDE = ("|", "#", "!", "<", "    ")
"""Lines that nothing can wrap: tables, headings, pictures, and what is indented as code."""


GENERATED = {name_of(page) for page in ROOT.glob("docs/tools/*.md")}
"""Pages that a program writes, as their sources word them."""


@each_row("page", [page for page in PAGES if name_of(page) not in GENERATED], ids=name_of)
def test_prose_wraps_at_120_columns(page: Path) -> None:
    text = re.sub(r"^\s*```.*?^\s*```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    wide = [line for line in text.splitlines() if len(line) > 120 and not line.startswith(WIDE) and " " in line.strip()]
    assert wide == []


def test_each_decision_has_its_own_number_and_is_listed_in_one_index() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = sorted(page.name for page in folder.glob("[0-9]*.md"))
    assert len({page[:2] for page in pages}) == len(pages)
    listed = re.findall(
        r"^\| \[(\d+)\]\(([^)]+)\) \| (.+?) \| \d{4}-\d\d-\d\d \|$", (folder / "README.md").read_text(), re.MULTILINE
    )
    assert [name for _, name, _ in listed] == pages
    for number, name, title in listed:
        assert (folder / name).read_text(encoding="utf-8").startswith(f"# {number}. {title}\n")


def test_every_decision_that_is_cited_has_a_record() -> None:
    folder = ROOT / "docs" / "decisions"
    records = {int(page.name[:2]) for page in folder.glob("[0-9]*.md")}
    pages = [*(ROOT / "whisper_tui").rglob("*.py"), *folder.glob("*.md")]
    cited = {page.name: set(map(int, re.findall(r"\bdecision (\d+)", page.read_text()))) for page in pages}
    assert {name: numbers - records for name, numbers in cited.items() if numbers - records} == {}


def test_every_test_that_security_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w/.]+?)(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    for path, function in named:
        assert (ROOT / path).exists(), path
        assert not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), function
