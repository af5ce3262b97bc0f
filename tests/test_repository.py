"""The commands of the checkout: what `make` offers, what is checked, and how figures get into their page."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"


def make(*words: str) -> str:
    """What make prints."""
    return subprocess.run(
        ["make", "--no-print-directory", *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    ).stdout


def collected(*arguments: str) -> str:
    """The names of the tests that pytest finds, one on a line."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False).stdout


@pytest.fixture(scope="module")
def run_all() -> ModuleType:
    """The program behind `make bench`."""
    spec = importlib.util.spec_from_file_location("run_all", BENCHMARKS / "run_all.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_make_alone_lists_every_target_with_a_word_about_it() -> None:
    listed = dict(re.findall(r"^make ([\w-]+)\t(.+)$", make(), re.MULTILINE))
    tests = "test quick test-clients test-engines test-installs exhaustive nightly fuzz mutations bench bench-peers"
    assert set(listed) == set(f"run {tests} crashtest check screenshots docs clean help".split())
    assert make("help") == make()


def test_a_check_is_format_lint_types_layers_and_the_tests_and_needs_no_agent_client() -> None:
    steps = make("--dry-run", "check")
    for step in ("ruff format --check", "ruff check", "mypy", "lint-imports", "pytest"):
        assert step in steps
    assert "clients" not in steps


def test_the_real_clients_are_tested_as_far_as_they_could_be_installed() -> None:
    first, second = (line for line in make("--dry-run", "test-clients").splitlines() if "tests/clients" in line)
    assert "tests/clients/install.py || true" in first
    assert "pytest" in second


@pytest.mark.slow
def test_the_tests_need_no_agent_client_unless_they_are_told() -> None:
    assert "clients" not in make("--dry-run", "test")
    others = [f"--ignore={path}" for path in (ROOT / "tests").iterdir() if path.name != "clients"]
    assert "tests/clients/" not in collected("tests", *others)
    assert "tests/clients/" in collected("tests/clients")


def test_figures_replace_the_earlier_ones_and_leave_the_rest_alone(run_all: ModuleType) -> None:
    page = "# Title\n\n<!-- speed -->\nold\n<!-- end of speed -->\n\nLast words.\n"
    fresh = run_all.written(page, "speed", "| a \\1 |\n")
    assert fresh == "# Title\n\n<!-- speed -->\n| a \\1 |\n<!-- end of speed -->\n\nLast words.\n"
    assert run_all.written(fresh, "speed", "| a \\1 |") == fresh


def test_figures_of_a_new_benchmark_are_added_at_the_end(run_all: ModuleType) -> None:
    assert run_all.written("# Title\n", "speed", "1") == "# Title\n\n<!-- speed -->\n1\n<!-- end of speed -->\n"


def test_a_table_of_several_runs_has_the_median_of_each_figure(run_all: ModuleType) -> None:
    pages = ["| 100 calls | 9.5 | 2,100 |\n", "| 100 calls | 10.25 | 1,900 |\n", "| 100 calls | 8.0 | 12,000 |\n"]
    assert run_all.medians(pages) == "| 100 calls | 9.5 | 2,100 |\n\nMedians of 3 runs."
    assert run_all.medians(pages[:1]) == pages[0]


def test_runs_that_say_different_things_have_no_median(run_all: ModuleType) -> None:
    with pytest.raises(ValueError, match="different things"):
        run_all.medians(["| saved | 1 |", "| refused | 1 |"])


def test_every_benchmark_is_described(run_all: ModuleType) -> None:
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    assert [script.name for script in run_all.scripts() if f"`{script.name}`" not in page] == []
