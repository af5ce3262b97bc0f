"""Finds a place in the source by its dotted name, and an expression or statements in it by their syntax tree."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tests.syntax import syntax_tree


class CannotLocate(Exception):
    """A row of the table does not fit the source."""


class Span(NamedTuple):
    """A stretch of a file, in bytes of UTF-8, which is how `ast` counts columns."""

    start: int
    end: int


class Place:
    """A module, or a class, function or assignment in it, that a dotted name such as `whisper_tui.model.text` names."""

    def __init__(self, root: Path, dotted: str) -> None:
        self.dotted = dotted
        self.path, inside = _module_of(root, dotted)
        self._source = self.path.read_bytes()
        self._line_starts = [0]
        for line in self._source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._scopes: list[ast.AST] = [_tree_of(self._source)]
        for name in inside:
            self._scopes = [found for scope in self._scopes for found in _named(scope, name)]
        if not self._scopes:
            raise CannotLocate(f"{self.path} defines no {'.'.join(inside)}")

    def find(self, text: str) -> Span:
        """Return where the only expression, keyword argument or run of statements stands that has this syntax tree.

        Inside f-strings, which are mostly messages, it is looked for only where it occurs nowhere else.
        """
        wanted = syntax_tree(text).body
        found = self._found(wanted, in_messages=False) or self._found(wanted, in_messages=True)
        if len(found) != 1:
            raise CannotLocate(f"{self.dotted} holds this {len(found)} times instead of once: {text}")
        first, last = found[0]
        span = self._span(first, last)
        # Python 3.11 does not always know where an expression inside an f-string stands.
        if isinstance(first, ast.expr) and _dumped(self._source[span.start : span.end].decode()) != ast.dump(first):
            raise CannotLocate(f"{self.dotted} holds this in an f-string, where it cannot be replaced: {text}")
        return span

    def replaced(self, text: str, instead: str) -> str:
        """Return the module with something else in place of this text. Raises `CannotLocate` and `SyntaxError`."""
        start, end = self.find(text)
        whole = (self._source[:start] + instead.encode() + self._source[end:]).decode()
        syntax_tree(whole)
        return whole

    def _found(self, wanted: list[ast.stmt], *, in_messages: bool) -> list[tuple[ast.AST, ast.AST]]:
        nodes = (node for scope in self._scopes for node in _walk(scope, in_messages=in_messages))
        return [found for node in nodes for found in _matches(node, wanted)]

    def _span(self, first: ast.AST, last: ast.AST) -> Span:
        assert isinstance(first, ast.expr | ast.stmt | ast.keyword)
        assert isinstance(last, ast.expr | ast.stmt | ast.keyword)
        assert last.end_lineno is not None and last.end_col_offset is not None
        return Span(
            self._line_starts[first.lineno - 1] + first.col_offset,
            self._line_starts[last.end_lineno - 1] + last.end_col_offset,
        )


@lru_cache(maxsize=1)
def _tree_of(source: bytes) -> ast.Module:
    """Return the syntax tree of a module. The one before is kept: rows about one module follow each other."""
    return syntax_tree(source)


def _module_of(root: Path, dotted: str) -> tuple[Path, list[str]]:
    """Return the file of the longest prefix that is a module, and the names that are left."""
    names = dotted.split(".")
    for length in range(len(names), 0, -1):
        base = root.joinpath(*names[:length])
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path, names[length:]
    raise CannotLocate(f"no module has a name that {dotted} begins with")


def _named(scope: ast.AST, name: str) -> Iterator[ast.AST]:
    """Yield what is defined under a name directly in a scope, also below an `if` or a `try` of it."""
    for node in ast.iter_child_nodes(scope):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name == name:
                    yield node
            case ast.Assign(targets=[ast.Name(id=target)]) | ast.AnnAssign(target=ast.Name(id=target)):
                if target == name:
                    yield node
            case ast.stmt() | ast.ExceptHandler() | ast.match_case():
                yield from _named(node, name)


def _walk(node: ast.AST, *, in_messages: bool) -> Iterator[ast.AST]:
    yield node
    if in_messages or not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child, in_messages=in_messages)


def _matches(node: ast.AST, wanted: list[ast.stmt]) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield this node, or the first and the last of statements directly below it, where they are the wanted ones."""
    if len(wanted) == 1 and isinstance(wanted[0], ast.Expr):
        if isinstance(node, ast.expr) and ast.dump(node) == ast.dump(wanted[0].value):
            yield node, node
        return
    if isinstance(node, ast.keyword) and ast.dump(node) == _as_argument(wanted):
        yield node, node
    for block in _blocks(node):
        for at in range(len(block) - len(wanted) + 1):
            run = block[at : at + len(wanted)]
            if [ast.dump(one) for one in run] == [ast.dump(one) for one in wanted]:
                yield run[0], run[-1]


def _as_argument(wanted: list[ast.stmt]) -> str | None:
    """Return `name=value` as a keyword argument, which as a statement of its own is an assignment."""
    match wanted:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
            return ast.dump(ast.keyword(arg=name, value=value))
    return None


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements directly below a node."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value


def _dumped(expression: str) -> str:
    try:
        (only,) = syntax_tree(f"({expression}\n)").body
    except SyntaxError:
        return ""
    return ast.dump(only.value) if isinstance(only, ast.Expr) else ""
