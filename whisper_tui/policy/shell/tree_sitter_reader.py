"""An independent second reading by tree-sitter's grammar of bash, which must agree with the strict one."""

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node

_LISTS = frozenset({"program", "list", "pipeline"})
_SILENT = frozenset({"comment", "heredoc_body", "\n", ";", "&", "&&", "||", "|", "|&", ";;"})
_DEEPEST = 400


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
    parser = _parser()
    if parser is None:
        return None
    tree = parser.parse(text.encode("utf-8", "surrogatepass"))
    if tree.root_node.has_error:
        return None
    found: list[tuple[str, ...]] = []
    try:
        _collect(tree.root_node, found, 0)
    except _Disagrees:
        return None
    return tuple(found)


def _collect(node: "Node", found: list[tuple[str, ...]], depth: int) -> None:
    if depth > _DEEPEST:
        raise _Disagrees
    for child in node.children:
        if child.type in _LISTS:
            _collect(child, found, depth + 1)
        elif child.type == "command":
            found.append(tuple(_words(child)))
        elif child.type == "redirected_statement":
            _redirected(child, found, depth + 1)
        elif child.type not in _SILENT:
            raise _Disagrees


def _redirected(node: "Node", found: list[tuple[str, ...]], depth: int) -> None:
    """Collect a statement with redirections."""
    body = node.child_by_field_name("body")
    if body is None:
        raise _Disagrees
    before = len(found)
    if body.type == "command":
        found.append(tuple(_words(body)))
    elif body.type in _LISTS or body.type == "redirected_statement":
        holder = _redirected if body.type == "redirected_statement" else _collect
        holder(body, found, depth + 1)
    else:
        raise _Disagrees
    for child in node.children:
        if child == body:
            continue
        words = _behind(child, found, depth)
        if words:
            if len(found) == before:
                raise _Disagrees
            # in `cmd >f x` the word x belongs to cmd
            found[-1] = (*found[-1], *words)


def _behind(node: "Node", found: list[tuple[str, ...]], depth: int) -> list[str]:
    """Return the words under a redirection that are not its target."""
    if node.type == "herestring_redirect":
        raise _Disagrees
    if node.type == "heredoc_redirect":
        return _document(node, found, depth)
    if node.type != "file_redirect":
        raise _Disagrees
    targets = node.children_by_field_name("destination")
    return [_value(target) for target in targets[1:]]


def _document(node: "Node", found: list[tuple[str, ...]], depth: int) -> list[str]:
    """Return the words of the command that follow `<<END` on its line."""
    words: list[str] = []
    for child in node.children:
        match child.type:
            # tree-sitter puts everything that follows on the line below the here-document node
            case "<<" | "heredoc_start" | "heredoc_body" | "heredoc_end":
                pass
            case "file_redirect":
                words += _behind(child, found, depth)
            case "&&" | "||":
                pass
            case "pipeline" | "command" | "list" | "redirected_statement":
                raise _Disagrees
            case _:
                words.append(_value(child))
    return words


def _words(node: "Node") -> list[str]:
    words: list[str] = []
    for child in node.children:
        match child.type:
            case "variable_assignment":
                pass
            case "command_name":
                words.append(_value(child.children[0]))
            case "file_redirect":
                targets = child.children_by_field_name("destination")
                words += [_value(target) for target in targets[1:]]
            case _:
                words.append(_value(child))
    return words


def _value(node: "Node") -> str:
    """Return the literal value of a word."""
    text = (node.text or b"").decode("utf-8", "surrogatepass")
    match node.type:
        case "word" | "number" | "test_operator" | "extglob_pattern":
            return _unescaped(text)
        case "raw_string":
            return text[1:-1]
        case "string":
            if any(child.type not in {'"', "string_content"} for child in node.children):
                raise _Disagrees
            return _double_unescaped(text[1:-1])
        case "concatenation":
            if any(
                # a gap between two parts is a blank or a joined line, which the tree does not show
                before.end_byte != after.start_byte
                for before, after in zip(node.children, node.children[1:], strict=False)
            ):
                raise _Disagrees
            return "".join(_value(child) for child in node.children)
        case "{" | "}":
            return text
        case _:
            raise _Disagrees


def _unescaped(text: str) -> str:
    value, position = [], 0
    while position < len(text):
        if text[position] == "\\":
            position += 1
        value.append(text[position : position + 1])
        position += 1
    return "".join(value)


def _double_unescaped(text: str) -> str:
    value, position = [], 0
    while position < len(text):
        if text[position] == "\\" and text[position + 1 : position + 2] in ('"', "\\", "$", "`"):
            position += 1
        value.append(text[position])
        position += 1
    return "".join(value)
