"""Reads source into syntax trees."""

import ast
import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Read = TypeVar("Read")


def without_garbage(read: Callable[Given, Read]) -> Callable[Given, Read]:
    """Have a function that parses source run without the garbage collector.

    CPython 3.11 miscounts the depth of the tree if finalizers run meanwhile (SystemError).
    """

    @wraps(read)
    def parse(*args: Given.args, **named: Given.kwargs) -> Read:
        collects = gc.isenabled()
        gc.disable()
        try:
            return read(*args, **named)
        finally:
            if collects:
                gc.enable()

    return parse


@without_garbage
def syntax_tree(source: str | bytes) -> ast.Module:
    """Return the syntax tree of a module. Raises `SyntaxError`."""
    return ast.parse(source)
