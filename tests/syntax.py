"""Reads source into syntax trees."""

import ast
import gc


def syntax_tree(source: str | bytes) -> ast.Module:
    """Return the syntax tree of a module. Raises `SyntaxError`."""
    collects = gc.isenabled()
    # CPython 3.11 miscounts the depth of the tree if finalizers run meanwhile (SystemError).
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if collects:
            gc.enable()
