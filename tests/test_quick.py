"""`make quick` finds the tests of a change, and its table covers the package."""

from tests.quick import ROOT, files_for, table


def test_every_package_has_a_row_whose_tests_exist() -> None:
    rows = table()
    packages = [path for path in (ROOT / "whisper_tui").iterdir() if (path / "__init__.py").exists()]
    assert {f"whisper_tui/{path.name}/" for path in packages} <= rows.keys()
    for path, tests in rows.items():
        assert (ROOT / path).exists(), path
        named = [test for test in tests if not test.startswith("make ")]
        assert named and all((ROOT / test).exists() for test in named), path


def test_tests_that_import_what_changed_come_first() -> None:
    found = files_for(["whisper_tui/tui/stylesheet.py"])
    assert found[0] == "tests/tui/test_stylesheet.py"
    assert "tests/tui/test_card.py" in found
    assert len(found) == len(set(found))


def test_the_longest_path_that_fits_counts() -> None:
    assert "tests/supervisor/places/test_place_files.py" in files_for(["whisper_tui/supervisor/places/__init__.py"])
    assert "tests/supervisor/test_deciding.py" not in files_for(["whisper_tui/supervisor/places/__init__.py"])


def test_changed_tests_run_themselves_and_helpers_those_beside_them() -> None:
    assert files_for(["tests/tui/test_card.py"]) == ["tests/tui/test_card.py"]
    assert "tests/tui/test_deciding.py" in files_for(["tests/tui/cockpit.py"])
    assert files_for(["tests/no_longer_there.py"]) == []
