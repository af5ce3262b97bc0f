"""Texts with their substitutions taken out: what `$(…)`, backticks and `<(…)` run, and the rest of the text.

Nobody knows what a substitution prints, so a variable that may hold anything stands in its place (decision 29).
"""

import re
from typing import NamedTuple

from whisper_tui.policy.shell.static_expansion import PIPED, SUBSTITUTED
from whisper_tui.policy.shell.syntax import Script
from whisper_tui.policy.shell.tree_sitter_reader import is_available, substitution_spans


class TakenApart(NamedTuple):
    """A text and its substitutions."""

    text: str
    """The text with a variable in the place of each substitution."""
    inside: tuple[str, ...]
    """The texts that the substitutions run."""


MOST_SUBSTITUTIONS = 20

# without characters that could end it elsewhere for one of the readers, or that begin another one
_COMMAND = re.compile(r"\$\(([^()`\\#<$][^()`\\#]*)\)|`([^()`\\#]+)`", re.DOTALL)
_PROCESS = re.compile(r"<\(([^()`\\#]+)\)", re.DOTALL)


def taken_apart(text: str, script: Script) -> TakenApart | None:
    """Take the substitutions out of a text. None: it has none, or the readers do not agree about them."""
    spans = sorted(script.substitutions)
    if not spans or len(spans) > MOST_SUBSTITUTIONS or script.evaluations:
        return None
    if is_available() and substitution_spans(text) != spans:
        return None
    rest, inside, at = "", list[str](), 0
    for number, (start, end) in enumerate(spans):
        source = text[start:end]
        found = _COMMAND.fullmatch(source) or _PROCESS.fullmatch(source)
        if start < at or found is None:
            return None
        place = f'"${PIPED}{number}"' if source.startswith("<") else "${" + f"{SUBSTITUTED}{number}" + "}"
        rest += text[at:start] + place
        inside += filter(None, found.groups())
        at = end
    return TakenApart(rest + text[at:], tuple(inside))
