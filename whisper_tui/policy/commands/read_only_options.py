"""The forms of a harmless call: the exact options that a program may be given, and how many operands."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class AllowedOptions(NamedTuple):
    """One harmless way to call a program. Options that are not listed here are not harmless."""

    flags: str = ""
    """Letters of short options without a value."""
    valued: str = ""
    """Letters of short options with a value, attached or in the next word."""
    long: frozenset[str] = frozenset()
    """Long options without a value."""
    attached: frozenset[str] = frozenset()
    """Long options whose value is attached by `=` or missing."""
    long_valued: frozenset[str] = frozenset()
    """Long options with a value, attached by `=` or in the next word."""
    most: int | None = None
    """How many operands it may have. None: any number."""
    numbers: bool = False
    """True if `-20` is a number of lines."""
    needs: str = ""
    """Letters of short options of which one must be given. Empty: none."""
    first: bool = False
    """True if options end at the first operand."""


class GivenArguments(NamedTuple):
    """The parsed arguments of a program."""

    operands: tuple[str, ...]
    options: tuple[tuple[str, str | None], ...]


def allowed_options(short: str = "", long: str = "", notes: str = "") -> AllowedOptions:
    """A form in short: letters, with a colon behind those that take a value; names, with `=` for a value or `?` for an
    optional one.

    A name that begins with a dash is a whole word with one dash.
    """
    following = (short + " ")[1:]
    flags = "".join(letter for letter, after in zip(short, following, strict=True) if ":" not in (letter, after))
    valued = "".join(letter for letter, after in zip(short, following, strict=True) if after == ":")
    names = [name if name.startswith("-") else "--" + name for name in long.split()]
    settings = dict(note.split("=") for note in notes.split() if "=" in note)
    return AllowedOptions(
        flags=flags,
        valued=valued,
        long=frozenset(name for name in names if name[-1] not in "=?"),
        attached=frozenset(name[:-1] for name in names if name.endswith("?")),
        long_valued=frozenset(name[:-1] for name in names if name.endswith("=")),
        most=int(settings["most"]) if "most" in settings else None,
        numbers="numbers" in notes,
        needs=settings.get("needs", ""),
        first="first" in notes.split(),
    )


def read_table(table: str) -> Iterator[tuple[str, AllowedOptions]]:
    """Read a table: `programs | letters | names | notes`, a line each; an indented line continues the one before."""
    lines: list[str] = []
    for line in table.strip("\n").splitlines():
        if line.startswith(" "):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    for line in lines:
        programs, *columns = (column.strip() for column in line.split("|"))
        made = allowed_options(*columns)
        yield from ((program, made) for program in programs.split(" "))


def parse_arguments(words: Sequence[str], allowed: AllowedOptions) -> GivenArguments | None:
    """Parse arguments. Returns None for an option that is not allowed, or for too many operands."""
    operands: list[str] = []
    options: list[tuple[str, str | None]] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            operands += words[at + 1 :]
            break
        if not word.startswith("-") or word == "-":
            if allowed.first:
                operands += words[at:]
                break
            operands.append(word)
            at += 1
            continue
        taken = _option(words, at, allowed, options)
        if taken == 0:
            return None
        at += taken
    if allowed.most is not None and len(operands) > allowed.most:
        return None
    if allowed.needs and not any(name[1:] in allowed.needs for name, _ in options if not name.startswith("--")):
        return None
    return GivenArguments(tuple(operands), tuple(options))


def _option(words: Sequence[str], at: int, allowed: AllowedOptions, options: list[tuple[str, str | None]]) -> int:
    word = words[at]
    following = words[at + 1] if at + 1 < len(words) else None
    name, equals, value = word.partition("=")
    if equals and (name in allowed.attached or name in allowed.long_valued):
        options.append((name, value))
        return 1
    if word in allowed.long or word in allowed.attached:
        options.append((word, None))
        return 1
    if word in allowed.long_valued:
        options.append((word, following))
        return 2 if following is not None else 0
    if word.startswith("--"):
        return 0
    # `head -20`, `git log -5`
    if allowed.numbers and word[1:].isdecimal():
        return 1
    return _letters(word, following, allowed, options)


def _letters(word: str, following: str | None, allowed: AllowedOptions, options: list[tuple[str, str | None]]) -> int:
    for position, letter in enumerate(word[1:], start=1):
        if letter in allowed.valued:
            attached = word[position + 1 :]
            options.append(("-" + letter, attached or following))
            return 1 if attached else 2 if following is not None else 0
        # an option that is not listed, or a bundle with one: asked
        if letter not in allowed.flags:
            return 0
        options.append(("-" + letter, None))
    return 1
