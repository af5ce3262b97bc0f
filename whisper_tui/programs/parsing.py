"""The words of a command taken apart by the entry of its program: options, their values, operands and subcommands.

Whoever asks decides what is certain enough: what only reads accepts neither the beginning of a name nor a value that
looks like an option, and the effects go on behind an option that the table does not know.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from whisper_tui.programs.entries import UNKNOWN, Option, ProgramEntry

_NUMBER = "-NUMBER"
"""The name of `-20` and its like in the table."""


class ParsedWord(NamedTuple):
    """An option with its value, or a word that is none."""

    kind: Literal["option", "unknown", "operand", "subcommand", "dashes"]
    """`unknown`: it looks like an option that the entry does not have. `dashes`: the `--` that ends the options."""
    at: int
    """The index of its word."""
    end: int
    """The index of the first word behind it and its value."""
    given: str | None
    """The option as it is written, without its value, or the word. None: one that is only known when it runs."""
    name: str = ""
    """The name of the option in the entry. It is another than the given one for a beginning of it."""
    option: Option | None = None
    """The entry's account of the option, or of an operand such as `of=FILE`."""
    values: tuple[str | None, ...] = ()
    """The value of the option; several words are a command."""
    entry: ProgramEntry | None = None
    """The entry of the subcommand."""

    @property
    def value(self) -> str | None:
        """The value of an option. None: it has none, or one that is only known when it runs."""
        return self.values[0] if self.values else None

    @property
    def takes_next(self) -> bool:
        """True if its value stands in the words behind it."""
        return bool(self.values) and self.end > self.at + 1

    @property
    def is_exact(self) -> bool:
        """True if it is a known option, written out, with a value if and only if it takes one."""
        if self.option is None or self.name not in {self.given, _NUMBER}:
            return False
        form = self.option.value
        return not self.values if form == "none" else bool(self.values) or form in {"attached", "number", "last"}


def parse(
    words: Sequence[str | None], entry: ProgramEntry, start: int = 1, *, subcommands: bool = False
) -> Iterator[ParsedWord]:
    """Take words apart, from `start` on. `subcommands`: the first operand is one if the program has any."""
    options, shared, at, ended = entry.options, dict[str, Option](), start, False
    while at < len(words):
        word = words[at]
        if word == "--" and not ended:
            ended = True
            yield ParsedWord("dashes", at, at + 1, word)
            at += 1
        elif ended or word is None or word == "-" or not word.startswith("-"):
            if at == start and word and entry.bundle and not ended:
                found = list(_bundled(words, at, entry))
            else:
                found = [_operand(at, word, entry, options, subcommands=subcommands and not ended)]
            yield from found
            at = found[-1].end
            if (below := found[-1].entry) is not None:
                shared |= entry.options if entry.anywhere else {}
                entry, options = below, {**shared, **below.options}
            else:
                ended = ended or (found[-1].kind == "operand" and found[-1].option is None and entry.options_first)
        else:
            found = _options(words, at, entry, options)
            yield from found
            at = max(each.end for each in found)
            ended = any(each.option is not None and each.option.value == "rest" for each in found)


def _operand(
    at: int, word: str | None, entry: ProgramEntry, options: Mapping[str, Option], *, subcommands: bool
) -> ParsedWord:
    name, equals, value = (word or "").partition("=")
    if equals and (option := options.get(name)) is not None:
        return ParsedWord("operand", at, at + 1, word, name, option, (value,))
    if subcommands and entry.commands and word is not None:
        return ParsedWord("subcommand", at, at + 1, word, entry=entry.commands.get(word, UNKNOWN))
    return ParsedWord("operand", at, at + 1, word)


def _bundled(words: Sequence[str | None], at: int, entry: ProgramEntry) -> Iterator[ParsedWord]:
    """The letters of `tar xzf` and `ps aux`, which have no dash; their values follow in order."""
    end = at + 1
    for letter in words[at] or "":
        name = f"-{letter}" if entry.bundle == "dashed" else letter
        option = entry.options.get(name)
        values, end = _following(words, end, option)
        yield ParsedWord("unknown" if option is None else "option", at, end, letter, name, option, values)


def _options(
    words: Sequence[str | None], at: int, entry: ProgramEntry, options: Mapping[str, Option]
) -> list[ParsedWord]:
    """The options in one word, with the value of the last one."""
    word = words[at] or ""
    given, equals, attached = word.partition("=")
    name = _name_of(given, entry, options)
    # the value of `-n=5` is `=5`
    if name is not None and (not equals or len(name) > 2 or entry.single_dash):
        values, end = ((attached,), at + 1) if equals else _following(words, at + 1, options[name])
        return [ParsedWord("option", at, end, given, name, options[name], values)]
    if word[1:].isdecimal() and _NUMBER in options:
        return [ParsedWord("option", at, at + 1, word, _NUMBER, options[_NUMBER])]
    if word.startswith("--") or entry.single_dash:
        return [ParsedWord("unknown", at, at + 1, given, values=(attached,) if equals else ())]
    found = []
    for position, letter in enumerate(word[1:], start=1):
        name, rest = f"-{letter}", word[position + 1 :]
        option = options.get(name)
        if option is None:
            found.append(ParsedWord("unknown", at, at + 1, f"-{word[position:]}", name))
            continue
        if option.value == "none":
            found.append(ParsedWord("option", at, at + 1, name, name, option))
            continue
        values, end = ((rest,), at + 1) if rest else _following(words, at + 1, option)
        return [*found, ParsedWord("option", at, end, name, name, option, values)]
    return found


def _name_of(given: str, entry: ProgramEntry, options: Mapping[str, Option]) -> str | None:
    """Return the name of the option that a word means: its own, or the only one that begins with it."""
    if given in options and given != _NUMBER:
        return given
    if not given.startswith("--"):
        return None
    if entry.single_dash:
        return given[1:] if given[1:] in options else None
    meant = [name for name in options if name.startswith(given)] if len(given) > 2 else []
    return meant[0] if meant and all(name in options[meant[0]].names for name in meant[1:]) else None


def _following(words: Sequence[str | None], at: int, option: Option | None) -> tuple[tuple[str | None, ...], int]:
    """Return the value of an option that begins at a word, and the index behind it."""
    rest = words[at:]
    match option.value if option else "none":
        case "command":
            taken = tuple(takewhile(lambda word: word not in {";", "+"}, rest))
            return taken, at + min(len(rest), len(taken) + 1)
        case "needed" | "last" | "rest":
            return tuple(rest[:1]), min(at + 1, len(words))
        case "number" if rest and (rest[0] or "").isdecimal():
            return (rest[0],), at + 1
        case _:
            return (), at
