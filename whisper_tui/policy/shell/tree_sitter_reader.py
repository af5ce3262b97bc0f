"""An independent second reading by tree-sitter's grammar of bash, which must agree with the strict one."""

from collections.abc import Iterable, Iterator
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from whisper_tui.policy.shell.syntax import (
    DECLARING,
    Part,
    ShellStep,
    ShellStepKind,
    ShellWord,
    literal_value,
    shell_word,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_LISTS = frozenset({"program", "list", "pipeline"})
_EXPRESSIONS = frozenset({"unary_expression", "binary_expression"})
_SILENT = frozenset({"comment", "heredoc_body", "\n", ";", "&", "&&", "||", "|", "|&", ";;"})
_COMPOUND = frozenset(
    "if_statement elif_clause else_clause while_statement do_group compound_statement subshell negated_command".split()
)
_GRAMMAR = frozenset("if then elif else fi while until do done { } ( ) !".split())
_DEEPEST = 400
_PARSING = Lock()


class _Disagrees(Exception):
    """The tree contains a node that plain text does not have."""


@cache
def _parser() -> Any | None:
    """Return the parser, or None if it is not installed."""
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError:
        return None
    try:
        return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    # the grammar was built for another ABI of tree-sitter
    except (ValueError, TypeError):
        return None


def is_available() -> bool:
    """True if tree-sitter is installed."""
    return _parser() is not None


def second_reading(text: str) -> tuple[tuple[str, ...], ...] | None:
    """Return the argv of every command of a plain text, or None if the tree contains anything else."""
    steps = second_steps(text, expands=False)
    if steps is None:
        return None
    return tuple(tuple(literal_value(word) or "" for word in step.words) for step in steps)


def second_steps(text: str, *, expands: bool = True) -> tuple[ShellStep, ...] | None:
    """Return the commands, assignments and loops of a text, or None if the tree contains anything else.

    Without `expands`, words are literal, and there are only commands.
    """
    parser = _parser()
    if parser is None:
        return None
    # commands are read in several threads, and a parser keeps its state
    with _PARSING:
        tree = parser.parse(text.encode("utf-8", "surrogatepass"))
    if tree.root_node.has_error:
        return None
    collected = _Collector(expands=expands)
    try:
        collected.children(tree.root_node, 0)
    except _Disagrees:
        return None
    return tuple(ShellStep(kind, tuple(words)) for kind, words in collected.all())


def substitutes_just(text: str, spans: Iterable[tuple[int, int]]) -> bool:
    """True if the tree of a text has a substitution in quotes at each of these spans, and no other."""
    parser = _parser()
    if parser is None:
        return False
    with _PARSING:
        tree = parser.parse(text.encode("utf-8", "surrogatepass"))
    wanted = [tuple(len(text[:at].encode("utf-8", "surrogatepass")) for at in (start, end)) for start, end in spans]
    found, open_nodes = [], [tree.root_node]
    while open_nodes:
        node = open_nodes.pop()
        if node.type in {"command_substitution", "process_substitution"}:
            whole = node.parent is not None and node.parent.type == "string" and node.parent.named_child_count == 1
            found.append((node.parent.start_byte, node.parent.end_byte) if node.parent is not None and whole else None)
        else:
            open_nodes += node.children
    return not tree.root_node.has_error and sorted(map(str, found)) == sorted(map(str, wanted))


def substitution_spans(text: str) -> list[tuple[int, int]] | None:
    """Return where the substitutions of a text stand that are in no other one, or None if it cannot be read."""
    parser = _parser()
    if parser is None:
        return None
    with _PARSING:
        tree = parser.parse(text.encode("utf-8", "surrogatepass"))
    if tree.root_node.has_error or not text.isascii():
        return None
    found, open_nodes = [], [tree.root_node]
    while open_nodes:
        node = open_nodes.pop()
        if node.type in {"command_substitution", "process_substitution"}:
            source = _source(node)
            # the tree takes a blank before a substitution in quotes for a part of it
            found.append((node.end_byte - len(source.lstrip()), node.end_byte))
        else:
            open_nodes += node.children
    return sorted(found)


class _Collector:
    """Collects the commands of a tree."""

    def __init__(self, *, expands: bool) -> None:
        self._expands = expands
        self.found: list[tuple[ShellStepKind, list[ShellWord]]] = []
        self._inputs: list[tuple[int, ShellWord]] = []
        """The files that groups and loops read, each with its place in the text."""

    def all(self) -> list[tuple[ShellStepKind, list[ShellWord]]]:
        """Return what was found, the files of groups and loops behind it."""
        return [*self.found, *(("input", [word]) for _, word in sorted(self._inputs))]

    def children(self, node: "Node", depth: int) -> None:
        """Collect the statements of a list."""
        if depth > _DEEPEST:
            raise _Disagrees
        for child in node.children:
            if child.type not in _SILENT:
                self._statement(child, depth)

    def _statement(self, node: "Node", depth: int) -> None:
        if node.type in _LISTS:
            self.children(node, depth + 1)
        elif self._expands and node.type in _COMPOUND:
            self._compound(node, depth + 1)
        elif node.type == "command":
            self._command(node)
        elif node.type == "redirected_statement":
            self._redirected(node, depth + 1)
        elif node.type == "test_command" and node.children[0].type == "[":
            self.found.append(("run", list(self._leaves(node))))
        elif node.type == "test_command" and node.children[0].type == "[[":
            _check_only_looks(node)
        elif node.type == "declaration_command" and node.children[0].type in DECLARING:
            self.found.append(("run", list(self._declared(node))))
        elif self._expands and node.type == "variable_assignment":
            self.found.append(("set", [self._assignment(node)]))
        elif self._expands and node.type == "variable_assignments":
            self.found.append(("set", [self._assignment(child) for child in node.children]))
        elif self._expands and node.type == "for_statement":
            self._loop(node, depth + 1)
        else:
            raise _Disagrees

    def _compound(self, node: "Node", depth: int) -> None:
        """Collect what a condition, a group or a loop without words consists of."""
        if depth > _DEEPEST:
            raise _Disagrees
        for child in node.children:
            if child.type not in _SILENT | _GRAMMAR:
                self._statement(child, depth)

    def _command(self, node: "Node") -> None:
        assigned = [self._assignment(child) for child in node.children if child.type == "variable_assignment"]
        if assigned and self._expands:
            self.found.append(("with", assigned))
        self.found.append(("run", self._words(node)))
        if self._expands:
            read = [child for child in node.children if child.type == "file_redirect"]
            self.found += [("input", [word]) for child in read for word in self._input(child)]

    def _input(self, node: "Node") -> list[ShellWord]:
        """Return the file of `<` as a list, which is empty for any other redirection."""
        targets = node.children_by_field_name("destination")
        reads = self._expands and any(child.type == "<" for child in node.children) and targets
        return [self._value(targets[0])] if reads else []

    def _leaves(self, node: "Node") -> Iterator[ShellWord]:
        """Yield the words of `[ … ]`, of which the tree makes expressions."""
        for child in node.children:
            if child.type in _EXPRESSIONS:
                yield from self._leaves(child)
            elif child.child_count or child.is_named:
                yield self._value(child)
            else:
                yield shell_word([("bare", _source(child))])

    def _declared(self, node: "Node") -> Iterator[ShellWord]:
        """Yield the words of `export` and its like, which the tree takes for a keyword."""
        for child in node.children:
            if child.type in DECLARING | {"variable_name"}:
                yield shell_word([("bare", _source(child))])
            else:
                yield self._assignment(child) if child.type == "variable_assignment" else self._value(child)

    def _loop(self, node: "Node", depth: int) -> None:
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if node.children[0].type != "for" or name is None or body is None or body.type != "do_group":
            raise _Disagrees
        words = [self._value(value) for value in node.children_by_field_name("value")]
        self.found.append(("loop", [shell_word([("bare", _source(name))]), *words]))
        for child in body.children[1:-1]:
            if child.type not in _SILENT:
                self._statement(child, depth)
        self.found.append(("done", []))

    def _assignment(self, node: "Node") -> ShellWord:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if node.type != "variable_assignment" or name is None or name.type != "variable_name":
            raise _Disagrees
        between = _source(node)[len(_source(name)) :]
        if not between.startswith("=") or (value is not None and between[1:] != _source(value)):
            raise _Disagrees
        return shell_word([("bare", _source(name) + "="), *(() if value is None else self._value(value))])

    def _redirected(self, node: "Node", depth: int) -> None:
        """Collect a statement with redirections."""
        body = node.child_by_field_name("body")
        if body is None or depth > _DEEPEST:
            raise _Disagrees
        before = len(self.found)
        self._statement(body, depth)
        is_command = body.type in {"command", "declaration_command", "test_command"}
        run = next((at for at in range(before, len(self.found)) if self.found[at][0] == "run"), None)
        read: list[ShellWord] = []
        end, later = body.end_byte, list["Node"]()
        for child in node.children:
            if child == body:
                continue
            # the tree has no node for a single dash before `<<`
            skipped = (node.text or b"")[end - node.start_byte : child.start_byte - node.start_byte].strip()
            words = [shell_word([("bare", "-")])] if skipped == b"-" else []
            words += self._behind(child, later)
            end = child.end_byte
            if child.type == "file_redirect":
                read += self._input(child)
            if words:
                if not is_command or run is None:
                    raise _Disagrees
                # in `cmd >f x` the word x belongs to cmd
                self.found[run][1].extend(words)
        if is_command:
            self.found += [("input", [word]) for word in read]
        else:
            self._inputs += [(body.end_byte, word) for word in read]
        for statement in later:
            self._statement(statement, depth)

    def _behind(self, node: "Node", later: "list[Node]") -> list[ShellWord]:
        """Return the words under a redirection that are not its target; `later` gets the statements behind it."""
        if node.type == "herestring_redirect":
            self._check_literal_input(node)
            return []
        if node.type == "heredoc_redirect":
            return self._document(node, later)
        if node.type != "file_redirect":
            raise _Disagrees
        targets = node.children_by_field_name("destination")
        return [self._value(target) for target in targets[1:]]

    def _check_literal_input(self, node: "Node") -> None:
        """Raise `_Disagrees` unless `<<< TEXT` has one literal word."""
        if len(node.named_children) != 1 or literal_value(self._value(node.named_children[0])) is None:
            raise _Disagrees

    def _document(self, node: "Node", later: "list[Node]") -> list[ShellWord]:
        """Return the words of the command that follow `<<END` on its line."""
        words: list[ShellWord] = []
        for child in node.children:
            match child.type:
                # tree-sitter puts everything that follows on the line below the here-document node
                case "<<" | "heredoc_start" | "heredoc_body" | "heredoc_end":
                    pass
                case "file_redirect":
                    words += self._behind(child, later)
                case "&&" | "||":
                    pass
                case "pipeline" | "command" | "list" | "redirected_statement":
                    later.append(child)
                case _:
                    words.append(self._value(child))
        return words

    def _words(self, node: "Node") -> list[ShellWord]:
        words: list[ShellWord] = []
        for child in node.children:
            match child.type:
                case "variable_assignment":
                    pass
                case "herestring_redirect":
                    self._check_literal_input(child)
                case "command_name":
                    words.append(self._value(child.children[0]))
                case "file_redirect":
                    targets = child.children_by_field_name("destination")
                    words += [self._value(target) for target in targets[1:]]
                case _:
                    words.append(self._value(child))
        return words

    def _value(self, node: "Node") -> ShellWord:
        """Return the parts of a word."""
        return shell_word(self._parts(node))

    def _parts(self, node: "Node") -> list[Part]:
        match node.type:
            case "word" | "number" | "test_operator" | "extglob_pattern":
                return _unescaped(_source(node))
            case "raw_string":
                return [("quoted", _source(node)[1:-1])]
            case "string":
                return self._string(node)
            case "concatenation":
                if any(
                    # a gap between two parts is a blank or a joined line, which the tree does not show
                    before.end_byte != after.start_byte
                    for before, after in zip(node.children, node.children[1:], strict=False)
                ):
                    raise _Disagrees
                return [part for child in node.children for part in self._parts(child)]
            case "{" | "}" | "$":
                return [("bare", node.type)]
            case "brace_expression" if self._expands:
                return [("bare", _source(node))]
            case "simple_expansion" | "expansion" if self._expands:
                return [("name", _variable(node))]
            case _:
                raise _Disagrees

    def _string(self, node: "Node") -> list[Part]:
        """Return the parts of a text in double quotes."""
        source, parts = (node.text or b""), list[Part]([("quoted", "")])
        at = 1
        for child in node.children[1:-1]:
            # `$` before a blank is text, and so is one that has no node of an expansion
            if child.type in {"string_content", "$"} or _source(child)[:2] in {"$ ", "$\t", "$\n"}:
                continue
            if not self._expands or child.type not in {"simple_expansion", "expansion"}:
                raise _Disagrees
            name = _variable(child)
            # the node of an expansion also covers blanks before it, which are text
            end = child.end_byte - node.start_byte
            start = end - len(_source(child).lstrip().encode())
            parts += [("quoted", _double_unescaped(_decoded(source[at:start]))), ("quoted name", name)]
            at = end
        parts.append(("quoted", _double_unescaped(_decoded(source[at:-1]))))
        return [part for part in parts if part[1] or part is parts[0]]


def _check_only_looks(node: "Node") -> None:
    """Raise `_Disagrees` unless `[[ … ]]` asks about files with literal names."""
    for child in node.children:
        if child.type in _EXPRESSIONS:
            _check_only_looks(child)
        elif child.type not in {"[[", "]]", "!", "&&", "||", "word", "test_operator"}:
            raise _Disagrees


def _variable(node: "Node") -> str:
    """Return the variable of `$name` or `${name}`."""
    if _source(node).lstrip() == "$?":
        return "?"
    names = [child for child in node.children if child.type == "variable_name"]
    name = _source(names[0]) if len(names) == 1 else ""
    if _source(node).lstrip() not in {f"${name}", f"${{{name}}}"}:
        raise _Disagrees
    return name


def _source(node: "Node") -> str:
    return _decoded(node.text or b"")


def _decoded(source: bytes) -> str:
    return source.decode("utf-8", "surrogatepass")


def _unescaped(text: str) -> list[Part]:
    parts: list[Part] = []
    position = 0
    while position < len(text):
        escaped = text[position] == "\\"
        position += escaped
        parts.append(("quoted" if escaped else "bare", text[position : position + 1]))
        position += 1
    return parts


def _double_unescaped(text: str) -> str:
    value, position = [], 0
    while position < len(text):
        if text[position] == "\\" and text[position + 1 : position + 2] in ('"', "\\", "$", "`"):
            position += 1
        value.append(text[position])
        position += 1
    return "".join(value)
