"""What was reached is kept: no figure of the package becomes worse than its bound."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.outside import outside_only
from tests.structure.bounds import BOUNDS
from tests.structure.measure import DECISIONS, PACKAGE, Figure, Package, figures
from tests.structure.passed import figures_of_call, figures_of_key


def beyond(found: Iterable[Figure]) -> list[str]:
    """Figures that are worse than their bound; which those are is shown by `python -m tests.structure --which`."""
    return [
        f"{figure.name}: {figure.value}, and the bound is {BOUNDS[figure.name]}"
        for figure in found
        if figure.name in BOUNDS and not figure.is_within(BOUNDS[figure.name])
    ]


@pytest.mark.slow
def test_no_figure_of_the_package_is_beyond_its_bound():
    found = figures(Package(PACKAGE), DECISIONS)
    assert beyond(found) == []
    assert {figure.name for figure in found if figure.goal is not None} <= set(BOUNDS)


@pytest.mark.slow
@outside_only
def test_a_call_passes_no_more_files_than_its_bound():
    assert beyond(figures_of_call()) == []


@pytest.mark.slow
def test_a_key_passes_no_more_files_than_its_bound():
    assert beyond(figures_of_key()) == []


FIRST = '''
"""Which is a question."""
from typing import TYPE_CHECKING
from package import second

if TYPE_CHECKING:
    from package.rooms.third import Twice


class Twice:
    """One name."""  # This says why.

    size = 3
    """What it is."""


_hidden = 1  # noqa: X
# decision 2 and decisions 3, 4
'''
SECOND = """
def one():
    def inner(): ...
    from package.rooms.third import Twice
"""
THIRD = '''
"""Fine. What else."""
import package.first


class Twice: ...


class Other: ...
'''


@pytest.fixture
def measured(tmp_path: Path) -> dict[str, Figure]:
    decisions = tmp_path / "decisions"
    rooms = tmp_path / "package" / "rooms"
    rooms.mkdir(parents=True)
    decisions.mkdir()
    for number in range(1, 5):
        (decisions / f"{number:02}-x.md").touch()
    for path in (tmp_path / "package", rooms):
        (path / "__init__.py").touch()
    (tmp_path / "package" / "first.py").write_text(FIRST)
    (tmp_path / "package" / "second.py").write_text(SECOND)
    (rooms / "third.py").write_text(THIRD)
    (rooms / "second.py").write_text("import package.rooms\n")
    return {figure.name: figure for figure in figures(Package(tmp_path / "package"), decisions)}


def test_figures_are_what_they_are_called(measured):
    values = {name: figure.value for name, figure in measured.items()}
    assert values["file names that occur twice"] == values["class names that occur twice"] == 1
    assert values["docstrings that begin with What, Whether, Who, Which"] == 2
    assert measured["decision records that no code cites"].which == ["01-x.md"]


def test_a_cycle_is_seen_through_imports_for_types_and_inside_functions(measured):
    assert measured["import cycles, with those for types"].which == [
        "package.first, package.rooms.third, package.second"
    ]
    assert measured["modules in the largest import cycle"].value == 3
