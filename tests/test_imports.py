"""The layers point one way: as declared, and as a fresh interpreter sees them."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from whisper_tui.supervisor.places.far_package import PARTS

ROOT = Path(__file__).parent.parent
DRAWING = {"textual", "rich"}
PROTOCOLS = {"mcp", "httpx", "starlette", "uvicorn"}

LOADS_ALL = """
import importlib, json, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(getattr(package, "__path__", ()), name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
"""


def loaded_by(*names: str, program: str = LOADS_ALL, options: tuple[str, ...] = ()) -> set[str]:
    """Every module in memory once these packages and all of their modules are imported."""
    answer = subprocess.run(
        [sys.executable, *options, "-c", program, *names],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )
    assert answer.returncode == 0, answer.stderr
    return set(json.loads(answer.stdout))


def layers_of(modules: set[str]) -> set[str]:
    """The layers of whisper_tui among these modules."""
    return {name.split(".")[1] for name in modules if name.startswith("whisper_tui.")}


def test_the_declared_contracts_hold() -> None:
    checked = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as check; check()", "--no-cache"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=ROOT,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "knows", "never"),
    [
        ("model", {"model"}, DRAWING | PROTOCOLS | {"asyncio", "subprocess", "sqlite3"}),
        (
            "policy",
            {"programs", "policy", "system", "model"},
            DRAWING | PROTOCOLS | {"asyncio", "subprocess", "sqlite3"},
        ),
        ("system", {"system", "model"}, DRAWING | PROTOCOLS | {"asyncio", "pydantic", "sqlite3"}),
        ("changes", {"changes", "system"}, DRAWING | PROTOCOLS | {"asyncio", "pydantic", "sqlite3"}),
        ("effects", {"programs", "effects", "policy", "system", "model"}, DRAWING | PROTOCOLS | {"asyncio", "sqlite3"}),
        (
            "supervisor",
            {"programs", "supervisor", "effects", "policy", "changes", "system", "model"},
            DRAWING | PROTOCOLS,
        ),
        (
            "wire",
            {"programs", "wire", "supervisor", "effects", "policy", "changes", "system", "model"},
            DRAWING | PROTOCOLS,
        ),
        ("tools", {"programs", "tools", "present", "model"}, DRAWING | PROTOCOLS),
        ("agents", {"programs", "agents", "policy", "system", "model"}, DRAWING | PROTOCOLS | {"asyncio"}),
        ("demo", {"programs", "demo", "tools", "present", "model"}, DRAWING | PROTOCOLS),
        ("transports", {"programs", "transports", "agents", "policy", "system", "tools", "present", "model"}, DRAWING),
        ("export", {"programs", "export", "present", "model"}, DRAWING | PROTOCOLS),
        ("present", {"programs", "present", "model"}, DRAWING | PROTOCOLS | {"sqlite3"}),
        ("notify", {"programs", "notify", "present", "model"}, DRAWING | PROTOCOLS | {"sqlite3"}),
        ("tui", {"programs", "tui", "notify", "present", "export", "model"}, PROTOCOLS | {"sqlite3"}),
        (
            "config",
            {
                "programs",
                "config",
                "notify",
                "present",
                "supervisor",
                "effects",
                "policy",
                "changes",
                "system",
                "model",
            },
            DRAWING | {"mcp", "jsonschema"},
        ),
    ],
)
def test_a_layer_brings_in_only_what_it_may_know(layer: str, knows: set[str], never: set[str]) -> None:
    loaded = loaded_by(f"whisper_tui.{layer}")
    assert layers_of(loaded) <= knows
    assert loaded & never == set()


@pytest.mark.parametrize("name", ["whisper_tui.supervisor.keeper", "whisper_tui.transports.mcp.relay"])
def test_programs_started_for_each_command_need_no_installed_package(name: str) -> None:
    without_site_packages = loaded_by(name, options=("-S",))
    assert {module.partition(".")[0] for module in without_site_packages} - {"whisper_tui", "__main__"} <= (
        sys.stdlib_module_names
    )
    assert "asyncio" not in without_site_packages


def test_a_preview_that_starts_loads_no_large_module() -> None:
    program = "import json, sys, whisper_tui.supervisor.preview.preview_ways; print(json.dumps(sorted(sys.modules)))"
    loaded = loaded_by(program=program, options=("-S",))
    assert loaded & {"dataclasses", "inspect", "pathlib", "subprocess", "asyncio"} == set()


def test_asking_for_the_version_loads_neither_the_cockpit_nor_the_model() -> None:
    program = """
import contextlib, io, json, sys
from whisper_tui.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    sys.argv = ["whisper-tui", "--version"]
    main()
print(json.dumps(sorted(sys.modules)))
"""
    loaded = {name.partition(".")[0] for name in loaded_by(program=program)}
    assert loaded & (DRAWING | PROTOCOLS | {"pydantic", "asyncio", "sqlite3", "jsonschema"}) == set()


def imported_at_once(file: Path) -> Iterator[Path]:
    """The files of this package that a module imports when it is loaded."""
    for node in ast.parse(file.read_text()).body:
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("whisper_tui"):
            continue
        place = ROOT.joinpath(*str(node.module).split("."))
        for name in node.names:
            found = (place / f"{name.name}.py", place / name.name / "__init__.py", place.with_suffix(".py"))
            yield next((path for path in found if path.exists()), place / "__init__.py")


def test_what_runs_at_a_place_is_sent_there_with_all_that_it_imports() -> None:
    package = ROOT / "whisper_tui"
    sent = {path for pattern in PARTS for path in package.glob(pattern)}
    assert len(sent) > len(PARTS)
    assert {str(needed.relative_to(ROOT)) for file in sent for needed in imported_at_once(file)} <= {
        str(path.relative_to(ROOT)) for path in sent
    }
