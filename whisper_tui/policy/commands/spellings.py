"""Spellings of the same command: other names of programs and subcommands, and options that mean the same.

For rules that deny and ask, which must not be missed. A spelling too many costs a question, one too few a denial.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from whisper_tui.policy.commands.argv import Words, letters, program_name
from whisper_tui.programs.entries import entry_of

_PROGRAMS: dict[str, tuple[str, ...]] = {
    "docker-compose": ("docker", "compose"),
    "podman-compose": ("podman", "compose"),
    "bunx": ("bun", "x"),
    "npx": ("npm", "exec"),
    "uvx": ("uv", "tool", "run"),
    "yarnpkg": ("yarn",),
    "pnpx": ("pnpm", "dlx"),
    "flyctl": ("fly",),
    "sls": ("serverless",),
    "nodejs": ("node",),
    "py.test": ("pytest",),
    "fdfind": ("fd",),
    "batcat": ("bat",),
    "gpg2": ("gpg",),
    **{f"g{name}": (name,) for name in "chmod chown cp find ln make mv rm sed tar".split()},
}
"""Other names of programs, and the words that they stand for."""

_VERSIONED = re.compile(r"(pip|python|pypy|ruby|php|perl|lua|node|gcc|g\+\+|clang|clang\+\+)-?\d[\d.]*")
"""Programs whose names may end in a version: `pip3`, `python3.12`."""

_PLUGGED = re.compile(r"(git|cargo)-([a-z][\w-]*)")
"""Programs that are subcommands of another one: `git-push`."""

_PASS_ON = {
    **dict.fromkeys((("yarn", "workspace"), ("pnpm", "workspace")), 1),
    **dict.fromkeys((("pnpm", "recursive"), ("pnpm", "multi"), ("pnpm", "m")), 0),
}
"""Subcommands behind which another one stands, and how many words of their own stand before it."""

_OLD_OPTIONS = frozenset("tar gtar bsdtar star ar".split())
"""Programs whose first word holds options without a dash: `tar xf`."""


def canonical(argv: Words) -> tuple[str | None, ...]:
    """Return a command with the usual name of its program: `docker compose` for `docker-compose`."""
    return (*usual_name(program_name(argv[0] or "")), *argv[1:])


@lru_cache(maxsize=4096)
def usual_name(name: str) -> tuple[str, ...]:
    """Return the words by which a program is usually called."""
    versioned = _VERSIONED.fullmatch(name)
    return _PROGRAMS.get(name, (versioned[1] if versioned else name,))


def other_forms(argv: Words) -> Iterator[tuple[str | None, ...]]:
    """Yield what else a command with a usual name means to its program."""
    name, *words = argv
    if plugged := _PLUGGED.fullmatch(name or ""):
        yield (*plugged.groups(), *words)
    if name in _OLD_OPTIONS and words and words[0] and not words[0].startswith("-"):
        yield (name, "-" + words[0], *words[1:])
    elif name == "python":
        yield from _module(words)
    elif (default := entry_of(name).by_default) and not any(word and not word.startswith("-") for word in words):
        yield (name, *default, *words)
    for at, word in enumerate(words):
        own = _PASS_ON.get((name or "", word or ""))
        if own is not None and len(words) > at + 1 + own:
            yield (name, *words[:at], *words[at + 1 + own :])
            return


def may_be_another(name: str) -> bool:
    """True if a program with this usual name may run as another one: `python -m pip`."""
    return name == "python" or _PLUGGED.fullmatch(name) is not None


def _module(words: Words) -> Iterator[tuple[str | None, ...]]:
    """`python3 -Im pip install` and `python3 -mpip install` are a `python -m pip install`, and a `pip install`."""
    for at, word in enumerate(words):
        if word is None or not word.startswith("-"):
            return
        bundle = letters(word, valued="mcWX")
        if bundle.endswith("m"):
            attached = word[len(bundle) + 1 :]
            rest = (attached, *words[at + 1 :]) if attached else tuple(words[at + 1 :])
            yield ("python", "-m", *rest)
            if rest and rest[0]:
                yield rest
            return


@lru_cache(maxsize=1024)
def spellings(name: str, words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the words behind a program and the other subcommands that they may be written as."""
    found = dict.fromkeys([words])
    if entry_of(name).runs_scripts and words:
        found |= dict.fromkeys([words[1:] if words[0] == "run" else ("run", *words)])
    for group in entry_of(name).same:
        for spelling in group:
            if words[: len(spelling)] == spelling:
                found |= dict.fromkeys((*other, *words[len(spelling) :]) for other in group)
    return tuple(found)


def takes_any_order(name: str) -> bool:
    """True if a program takes several targets and makes all of them."""
    return entry_of(name).targets


def means(name: str, given: str, wanted: str) -> bool:
    """True if a subcommand as it is given may be the wanted one to this program.

    A rule may name a beginning as well: `ip addr` is meant by `ip address`.
    """
    if given == wanted:
        return True
    shortest = entry_of(name).shortest_command
    if shortest is None:
        return False
    if takes_any_order(name):
        given = given.rpartition(":")[2]  # `:library:publish`
    parts, meant = given.split(":"), wanted.split(":")
    return len(parts) == len(meant) and all(
        _begins_other(part, whole, shortest) for part, whole in zip(parts, meant, strict=True)
    )


def begins_subcommand(name: str, given: str, wanted: str) -> bool:
    """True if a subcommand as it is given is a beginning of the wanted one, which the program accepts."""
    return wanted.startswith(given) and means(name, given, wanted)


def _begins_other(given: str, wanted: str, shortest: int) -> bool:
    return min(len(given), len(wanted)) >= shortest and (wanted.startswith(given) or given.startswith(wanted))


def shortens_options(name: str) -> bool:
    """True unless a program is known to accept no beginnings of long options."""
    return not entry_of(name).whole_options


@lru_cache(maxsize=1024)
def same_options(name: str, subcommand: str, option: str) -> frozenset[str]:
    """Return the options that mean the same to a program, or to its subcommand; the option is one of them."""
    found = {option}
    for entry in (entry_of(name), entry_of(name, subcommand)):
        if option in entry.options:
            found |= set(entry.options[option].names)
        for group in entry.same_options:
            if option in group:
                found |= set(group)
    return frozenset(found)


def option_parts(option: str) -> Iterator[str]:
    """Yield the options in a word of a rule: `-rf` is `-r` and `-f`."""
    if option.startswith("--") or len(option) < 3:
        yield option
    else:
        yield from (f"-{letter}" for letter in option[1:])


def gives_option(argv: Words, option: str, value: str | None) -> bool:
    """True if a command has an option, with this value if there is one."""
    name = argv[0] or ""
    return any(
        _is_option(word, argv[at + 1] if at + 1 < len(argv) else None, option, value, shortens=shortens_options(name))
        for at, word in enumerate(argv)
        if at and word is not None and word.startswith("-") and len(word) > 1
    )


def _is_option(word: str, following: str | None, option: str, value: str | None, *, shortens: bool) -> bool:
    """True if a word of a command is an option of a rule, with this value if there is one."""
    if option.startswith("--") or len(option) > 2:
        given, equals, attached = word.partition("=")
        begins = shortens and given.startswith("--") and len(given) > 2 and option.startswith(given)
        if given != option and not begins:
            return word == option
        return value is None or (attached if equals else following) == value
    bundle = letters(word)
    if option[1] not in bundle:
        return False
    attached = word[bundle.index(option[1]) + 2 :]
    return value is None or value in {attached, attached.removeprefix("=")} or (not attached and following == value)
