"""The pages about the tools are what the tools are and answer now."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PAGES = Path(__file__).parent.parent / "docs" / "tools"


def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tool_pages", PAGES / "draw.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DRAW = drawing()


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAW.names())
def test_a_page_shows_what_its_example_prints_now(name: str) -> None:
    assert (PAGES / f"{name}.md").read_text(encoding="utf-8") == DRAW.page(name), "run docs/tools/draw.py"


def test_there_is_a_page_and_an_example_for_every_tool_and_no_other() -> None:
    expected = set(DRAW.names())
    assert {page.stem for page in PAGES.glob("*.md")} == expected
    assert {example.stem for example in (PAGES / "examples").glob("*.py")} == expected


def test_the_values_that_change_from_run_to_run_are_the_same_on_every_page() -> None:
    text = '"pid": 17, "It runs as process 18." "backgroundPids": [\n    19\n  ] /x/shop/a'
    assert DRAW.steady(text, "/x/shop") == (
        '"pid": 4242, "It runs as process 4242." "backgroundPids": [\n    4243\n  ] /projects/shop/a'
    )
