"""Codex's rules: `prefix_rule(pattern=["git", "status"], decision="allow")`, read without running them."""

import ast
import itertools
from collections.abc import Iterator

from whisper_tui.policy.examples import Effect
from whisper_tui.policy.imports.carried import Carried
from whisper_tui.policy.rules import Rule

_EFFECTS: dict[str, Effect] = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
_MOST = 200
_OTHERS = frozenset({"host_executable", "network_rule"})
"""Statements that deny no command."""


def codex_rules(text: str) -> Carried:
    """The rules of a `.rules` file. Raises `ValueError` if it cannot be read."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} cannot be read") from error
    carried = Carried()
    for statement in tree.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Constant):
            continue
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "prefix_rule":
            carried.left.append(f"line {statement.lineno}: it is not a prefix_rule")
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _OTHERS):
                carried.uncertain.append(f"line {statement.lineno}")
            continue
        _carry(call, carried)
    return carried


def _carry(call: ast.Call, carried: Carried) -> None:
    source = f"line {call.lineno}"
    try:
        said = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    except ValueError:
        carried.left.append(f"{source}: its arguments are not literal")
        carried.uncertain.append(source)
        return
    effect = _EFFECTS.get(said.get("decision", "allow"))
    pattern = said.get("pattern")
    if effect is None or call.args or not isinstance(pattern, list) or not pattern:
        carried.left.append(f"{source}: its pattern or decision is not understood")
        if effect != "allow":
            carried.uncertain.append(source)
        return
    for words in itertools.islice(_alternatives(pattern), _MOST):
        name = " ".join(words)
        justification = str(said.get("justification", ""))
        carried.take(effect, Rule(name=name, prefix=words, justification=justification), f"{source} ({name})")


def _alternatives(pattern: list[object]) -> Iterator[tuple[str, ...]]:
    """Each element is a word or a list of words."""
    choices = [[str(word) for word in element] if isinstance(element, list) else [str(element)] for element in pattern]
    return itertools.product(*choices)
