"""Rows of a table that one test walks, where each would be quicker than what pytest does around a test."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def each_row(
    names: str | Sequence[str], rows: Iterable[Any], ids: Callable[[Any], object] | Iterable[object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have a test walk these rows, and report all for which it fails. Takes what `pytest.mark.parametrize` takes.

    The rows share the fixtures of the test, so it may leave nothing behind that another row would find.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_values(row, len(arguments)) for row in rows]
    assert table, f"there is no row of {names}"
    named = None if ids is None or callable(ids) else [str(each) for each in ids]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def walk(**fixtures: Any) -> None:
            failed: list[Exception] = []
            skipped: list[str] = []
            for number, values in enumerate(table):
                row = dict(zip(arguments, values, strict=True))
                try:
                    test(**fixtures, **row)
                except pytest.skip.Exception as reason:
                    skipped.append(str(reason))
                except (Exception, pytest.fail.Exception) as problem:  # noqa: BLE001  # it is raised below
                    found = problem if isinstance(problem, Exception) else AssertionError(str(problem))
                    found.add_note(f"in the row {named[number] if named else row!r}")
                    failed.append(found)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(table)} rows fail", failed)
            if len(skipped) == len(table):
                pytest.skip(skipped[0])

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in arguments]
        walk.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        del walk.__wrapped__  # type: ignore[attr-defined]  # pytest would look at the arguments of what it wraps
        return walk

    return decorate


def _values(row: Any, count: int) -> tuple[Any, ...]:
    if isinstance(row, type(pytest.param())):
        assert not row.marks, "a row has no marks of its own"
        row = row.values if count > 1 else row.values[0]
    return (row,) if count == 1 else tuple(row)
