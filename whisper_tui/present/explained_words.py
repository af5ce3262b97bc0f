"""A command in plain words: its program, its subcommand and each of its options, by the table of programs."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from whisper_tui.model.call import Command, Shell
from whisper_tui.model.text import visible
from whisper_tui.model.verdict import Meaning, Resolved
from whisper_tui.present.quantities import count
from whisper_tui.present.spans import BLANK, Paragraph, Span, said
from whisper_tui.programs.entries import UNKNOWN, ProgramEntry, entry_of
from whisper_tui.programs.parsing import ParsedWord, parse

NOT_DESCRIBED = "not described"
MOST_EXPLAINED = 200
"""The most words of one call that are explained."""
LONGEST_VALUE = 60
"""Characters of an option with its value that are shown."""
_UNKNOWN = "⟨known only when it runs⟩"


class Explanation(NamedTuple):
    """A few words of a command, and their meaning."""

    words: str
    meaning: str | None
    """None: not described."""
    is_program: bool = False
    """True for a program or its subcommand, and False for its options."""


def _explained(name: str, program: ProgramEntry, words: Sequence[str | None]) -> Iterator[Explanation]:
    """Explain the words of one command from left to right."""
    path, skipped = [name], -1
    unsure = False
    """True behind an option that is not described: it may have a value, or not."""
    yield Explanation(name, program.about, is_program=True)
    for each in parse(words, program, subcommands=True):
        if each.kind == "dashes":
            return
        if each.kind not in {"operand", "subcommand"}:
            if each.at != skipped:
                is_known = _is_written_out(each, words)
                unsure = unsure or not (is_known or (each.values and not each.takes_next))
                # what stands in one word behind an unknown letter may be its value
                skipped = each.at if not is_known and (words[each.at] or "").startswith("-") else skipped
                meaning = each.option.meaning if each.option and is_known else ""
                yield Explanation(_as_written(each, words, is_known=is_known), meaning or None)
            elif each.takes_next and (program.options_first or (each.value or "").startswith("-")):
                yield Explanation(_joined(each.values), None)
        elif each.given is None:
            unsure = True
            yield Explanation(_UNKNOWN, None)
        elif each.option is not None:
            yield Explanation(each.given, each.option.meaning or None)
        elif program.commands or program.options_first:
            if unsure:
                yield Explanation(_joined(words[each.at :]), None)
                return
            if each.entry is None:
                return  # behind the first operand of other programs the words belong to something else
            path.append(each.given)
            yield Explanation(" ".join(path), each.entry.about or None, is_program=True)
            if each.entry is UNKNOWN:
                return
            program = each.entry


def _is_written_out(given: ParsedWord, words: Sequence[str | None]) -> bool:
    """True for a known option that is not only begun, with a value only if it takes one."""
    if given.option is None or given.name.lstrip("-") not in {(given.given or "").lstrip("-"), "NUMBER"}:
        return False
    # `-n=5` may mean 5, or `=5`
    odd = len(given.name) == 2 and (words[given.at] or "").startswith(f"{given.name}=")
    return not (odd or (given.values and given.option.value == "none"))


def _as_written(given: ParsedWord, words: Sequence[str | None], *, is_known: bool) -> str:
    if not is_known:
        is_letter = given.kind == "unknown" and given.name
        return given.given or "" if is_letter else _joined(words[given.at : given.end])
    # `--race` is a `-race` to go
    name = given.name if len(given.name) > 2 and given.name != "-NUMBER" else given.given or ""
    if given.takes_next:
        return _joined((name, *given.values))
    return f"{name}{'=' if given.values and len(name) > 2 else ''}{given.value or ''}"


def _joined(words: Sequence[str | None]) -> str:
    return " ".join(_UNKNOWN if word is None else word for word in words)


_INSTALLED = re.compile(r"(?:/.*)?/s?bin/[^/]+")


@lru_cache(maxsize=512)
def explain_words(words: tuple[str | None, ...]) -> tuple[Explanation, ...]:
    """Return the meaning of the program, the subcommand and the options of one command, in their order."""
    first = words[0] if words else None
    if first is None:
        return ()
    # A script beside the project may have any name: only what is named as an installed program is taken for it
    # (decision 30).
    name = first.rsplit("/", 1)[-1] if _INSTALLED.fullmatch(first) else first
    program = entry_of(name)
    if program is UNKNOWN:
        return (Explanation(first, None, is_program=True),)
    return tuple(_explained(first, program, words))


def explain_command(command: Command, resolved: Resolved) -> tuple[Explanation, ...]:
    """Return the meaning of all programs and options of a call, in the order in which they are read."""
    text = command.text if isinstance(command, Shell) else ""
    return tuple(chain.from_iterable(_of_meaning(meaning, text) for meaning in resolved.commands))


def _of_meaning(meaning: Meaning, text: str) -> tuple[Explanation, ...]:
    name = meaning.words[0] if meaning.words else None
    if name is not None and _may_redefine(text, name):
        return (Explanation(name, None, is_program=True),)
    return explain_words(meaning.words)


def _may_redefine(text: str, name: str) -> bool:
    """True if a text seems to define a function or an alias of this name, which then runs in place of the program."""
    word = re.escape(name)
    defines = rf"(?<![\w./-])(?:{word}\s*\(\s*\)|(?:function|alias)\s+(?:-\S+\s+)*{word}(?![\w./-]))"
    return name in text and re.search(defines, text) is not None


def explained_rows(explanations: Sequence[Explanation]) -> list[tuple[str, str, bool]]:
    """Return the words, their meaning and True for a program, a row each, ready for a screen."""
    rows = []
    for words, meaning, is_program in explanations[:MOST_EXPLAINED]:
        shown = visible(words)
        cut = shown if len(shown) <= LONGEST_VALUE else f"{shown[: LONGEST_VALUE - 1]}…"
        rows.append((cut, meaning or NOT_DESCRIBED, is_program))
    if len(explanations) > MOST_EXPLAINED:
        rows.append((f"… {count(len(explanations) - MOST_EXPLAINED, 'more word')}", NOT_DESCRIBED, False))
    return rows


def explained_paragraphs(command: Command, resolved: Resolved | None) -> tuple[Paragraph, ...]:
    """Return a section with a line for each program and option; empty if nothing of the command is known."""
    rows = explained_rows(explain_command(command, resolved)) if resolved is not None else []
    if not rows:
        return ()
    found = [BLANK, Paragraph((Span("In plain words", "label"),), margin=(Span(" "),))]
    for words, meaning, is_program in rows:
        name = said(words, "strong" if is_program else "command")
        text = Span(f"  {meaning}", "muted" if meaning == NOT_DESCRIBED else "text")
        margin: tuple[Span, ...] = (Span(" │ ", "frame"), *(() if is_program else (Span("  "),)))
        found.append(Paragraph((*name, text), margin=margin))
    return tuple(found)
