"""Measures how the package is cut: how its modules import each other, and what is named in them.

`python -m tests.structure` prints the figures beside their goals.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tests.syntax import syntax_tree

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "whisper_tui"
DECISIONS = ROOT / "docs" / "decisions"
_QUESTION = re.compile(r"(What|Whether|Who|Which)\b")
_CITED = re.compile(r"\bdecisions?[ /]((?:\d+(?:, | and )?)+)")

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Figure(NamedTuple):
    """One row of the table."""

    name: str
    value: float
    goal: float | None = None
    """None: it is only watched."""
    which: Sequence[str] = ()
    """What was counted, the worst first."""

    def is_within(self, bound: float) -> bool:
        """Return whether the value is at least as good as a bound."""
        return self.value <= bound


class Module:
    """One file of the package."""

    def __init__(self, path: Path, inside: Path) -> None:
        self.path = path
        self.file = str(inside)
        self.is_package = path.name == "__init__.py"
        parts = inside.with_suffix("").parts
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.text = path.read_text(encoding="utf-8")
        self.tree = syntax_tree(self.text)

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """All nodes of the syntax tree."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def definitions(self) -> Sequence[Definition]:
        """All classes and functions, nested ones as well."""
        return tuple(node for node in self.nodes if isinstance(node, Definition))

    @property
    def docstrings(self) -> Iterator[tuple[int, str]]:
        """Docstrings by line: of modules, classes, functions, and those below an attribute or a constant."""
        for node in (self.tree, *self.definitions):
            for before, statement in zip((None, *node.body), node.body, strict=False):
                match statement:
                    case ast.Expr(value=ast.Constant(value=str() as text)):
                        if before is None or isinstance(before, ast.Assign | ast.AnnAssign):
                            yield statement.lineno, text

    def imported(self, known: Mapping[str, "Module"]) -> Iterator[str]:
        """Yield the modules of the package that are imported here: at the top, in functions, and for types alone."""
        for node in self.nodes:
            match node:
                case ast.Import():
                    yield from (alias.name for alias in node.names if alias.name in known)
                case ast.ImportFrom(module=str() as base, level=0):
                    for alias in node.names:
                        inner = f"{base}.{alias.name}"
                        if inner in known:
                            yield inner
                        elif base in known:
                            yield base


class Package:
    """All modules below a directory, which is a package."""

    def __init__(self, directory: Path) -> None:
        made = (Module(path, path.relative_to(directory.parent)) for path in sorted(directory.rglob("*.py")))
        self.modules = {module.name: module for module in made}

    @cached_property
    def imports(self) -> Mapping[str, set[str]]:
        """The modules that each module imports."""
        return {name: set(module.imported(self.modules)) - {name} for name, module in self.modules.items()}

    @cached_property
    def cycles(self) -> Sequence[Sequence[str]]:
        """Modules that import each other in a circle, the largest circle first."""
        found = (sorted(circle) for circle in strongly_connected(self.imports) if len(circle) > 1)
        return sorted(found, key=len, reverse=True)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules.values())


def strongly_connected(edges: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Return the strongly connected components of a graph, by the algorithm of Kosaraju, without recursion."""
    back: dict[str, set[str]] = defaultdict(set)
    for start, ends in edges.items():
        for end in ends:
            back[end].add(start)
    finished: list[str] = []
    seen: set[str] = set()
    for root in edges:
        finished += _finished(root, edges, seen)
    seen = set()
    return [component for root in reversed(finished) if (component := set(_finished(root, back, seen)))]


def _finished(root: str, edges: Mapping[str, Iterable[str]], seen: set[str]) -> list[str]:
    """Return what can be reached from a node, in the order in which a search in depth leaves it."""
    if root in seen:
        return []
    seen.add(root)
    left, path = [], [(root, iter(edges.get(root, ())))]
    while path:
        node, ends = path[-1]
        following = next((end for end in ends if end not in seen), None)
        if following is None:
            left.append(node)
            path.pop()
        else:
            seen.add(following)
            path.append((following, iter(edges.get(following, ()))))
    return left


def figures(package: Package, decisions: Path) -> list[Figure]:
    """Return all figures that need no running program."""
    return [*_of_imports(package), *_of_names(package), *_of_words(package, decisions)]


def _of_imports(package: Package) -> Iterator[Figure]:
    which = [", ".join(circle) for circle in package.cycles]
    yield Figure("import cycles, with those for types", len(package.cycles), 0, which=which)
    yield Figure("modules in the largest import cycle", max((len(circle) for circle in package.cycles), default=0), 0)


def _of_names(package: Package) -> Iterator[Figure]:
    named: dict[str, list[str]] = defaultdict(list)
    defined: dict[str, list[str]] = defaultdict(list)
    for module in package:
        if not module.is_package:
            named[module.path.name].append(module.file)
        for node in module.definitions:
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(f"{module.file}:{node.lineno}")
    for what, places in (("file names", named), ("class names", defined)):
        which = [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]
        yield Figure(f"{what} that occur twice", len(which), 0, which=which)


def _of_words(package: Package, decisions: Path) -> Iterator[Figure]:
    docstrings = [(f"{module.file}:{line}", text) for module in package for line, text in module.docstrings]
    asking = [f"{place} {text.splitlines()[0]}" for place, text in docstrings if _QUESTION.match(text)]
    yield Figure("docstrings that begin with What, Whether, Who, Which", len(asking), 0, which=asking)
    records = {int(path.name.partition("-")[0]): path.name for path in decisions.glob("[0-9]*-*.md")}
    numbers = (said for module in package for said in _CITED.findall(module.text))
    cited = {int(number) for said in numbers for number in re.findall(r"\d+", said)}
    uncited = [name for number, name in sorted(records.items()) if number not in cited]
    yield Figure("decision records that no code cites", len(uncited), 0, which=uncited)
