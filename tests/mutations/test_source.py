"""A row of the table fits its source wherever that is laid out and moved to, and says so where it does not fit."""

from pathlib import Path

import pytest

from tests.mutations.source import CannotLocate, Place

MODULE = '''
"""Ünïcode before everything, since columns are counted in bytes."""
HOST = "127.0.0.1"


class Door:
    def check(self, origin, known):
        """One statement a line."""
        if (
            origin is not None  # "ü"
            and origin not in known
        ):
            raise PermissionError(f"{origin} of {known}")
        log("ü", mode=0o600)
        try:
            self.open()
        except OSError:
            close()
            raise
        close()

    async def other(self, origin, known):
        return origin is not None and origin not in known
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "package" / "doors").mkdir(parents=True)
    (tmp_path / "package" / "doors" / "front.py").write_text(MODULE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("place", "text", "instead", "line"),
    [
        ("Door.check", "origin is not None and origin not in known", "False", "            False\n        ):"),
        ("Door.other", "origin is not None and origin not in known", "False", "        return False\n"),
        ("Door.check", "mode = 384", "mode=0o666", '        log("ü", mode=0o666)\n'),
        ("Door.check", "self.open()", "pass", "            pass\n"),
        ("Door.check", "close()\nraise", "raise", "        except OSError:\n            raise\n        close()\n"),
        ("HOST", '"127.0.0.1"', '"0.0.0.0"', '\nHOST = "0.0.0.0"\n'),
    ],
)
def test_an_expression_an_argument_or_statements_are_replaced_however_they_are_laid_out(
    root, place, text, instead, line
):
    assert line in Place(root, f"package.doors.front.{place}").replaced(text, instead)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("front.Door.check", "close()"),
        ("front.Door.check", "open()"),
        ("front.Door.gone", "close()"),
        ("back.Door.check", "close()"),
    ],
)
def test_an_ambiguous_or_missing_expression_is_reported(root, place, text):
    with pytest.raises(CannotLocate):
        Place(root, f"package.doors.{place}").replaced(text, "pass")
