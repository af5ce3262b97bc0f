"""Whether a command only looks: the built-in list, asked about one argv."""

import fnmatch
import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from whisper_tui.policy.read_only import git
from whisper_tui.policy.read_only.forms import Form, form, forms, take_apart
from whisper_tui.policy.read_only.machine import MACHINE
from whisper_tui.policy.read_only.secret_names import names_secret
from whisper_tui.policy.read_only.special import SPECIAL, VERSIONS
from whisper_tui.policy.read_only.subcommands import SUBCOMMANDS
from whisper_tui.policy.read_only.text_tools import TEXT_TOOLS

SYSTEM_DIRECTORIES = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/")
"""Where a program that is named by its path may be to count as the program of that name."""

_SECRET_WORD = re.compile(r"(?i)\bsecrets?\b|keyvault|password")


class _Subcommand(NamedTuple):
    words: tuple[str, ...]
    form: Form


@cache
def _forms() -> dict[str, Form]:
    return dict(forms(TEXT_TOOLS)) | dict(forms(MACHINE))


@cache
def _subcommands() -> dict[str, tuple[_Subcommand, ...]]:
    found: dict[str, list[_Subcommand]] = {}
    lines: list[str] = []
    for line in SUBCOMMANDS.strip("\n").splitlines():
        if line.startswith(" "):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
    for line in lines:
        programs, _, rest = line.partition(":")
        patterns, *columns = (column.strip() for column in rest.split("|"))
        made = form(*columns)
        entries = [_Subcommand(tuple(pattern.split()), made) for pattern in patterns.split(",")]
        for program in programs.split():
            found.setdefault(program, []).extend(entries)
    return {program: tuple(entries) for program, entries in found.items()}


def only_looks(argv: Sequence[str], *, git_is_neutral: bool) -> bool:
    """Whether a command with certain words only reads and shows. Not known counts as no."""
    name = _program(argv[0])
    if name is None or any(names_secret(word) for word in argv[1:]):
        return False
    words = argv[1:]
    if name == "lsof" and any("@" in word for word in words):
        return False  # the name of a machine, which another one is asked for
    if name == "git":
        return git_is_neutral and git.only_looks(words)
    if len(words) == 1 and words[0] in {"--version", "--help"} and _tells_about_itself(name):
        return True
    if name in _READS_ARGUMENTS_FROM_FILES and any(word.startswith("@") for word in words):
        return False
    if name in {"java", "javac"} and list(words) == ["-version"]:
        return True
    if (special := SPECIAL.get(name)) is not None:
        return special(list(words))
    allowed = _forms().get(name)
    if allowed is not None and take_apart(words, allowed) is not None:
        return True
    return any(_matches(words, entry) for entry in _subcommands().get(name, ()))


def _program(word: str) -> str | None:
    if "/" not in word:
        return word
    directory, _, name = word.rpartition("/")
    return name if directory + "/" in SYSTEM_DIRECTORIES else None


_READS_ARGUMENTS_FROM_FILES = frozenset({"strings", "nm", "objdump", "readelf", "size"})
"""Programs to which `@file` stands for the words in that file."""


def _tells_about_itself(name: str) -> bool:
    """Whether a program answers `--version` before it reads anything of the project."""
    return name in VERSIONS or name in _forms() or name in SPECIAL


def _matches(words: Sequence[str], entry: _Subcommand) -> bool:
    given = take_apart(words, entry.form)
    if given is None:
        return False
    wanted = entry.words
    more = wanted[-1:] == ("*",)
    if len(given.operands) < len(wanted) or (len(given.operands) > len(wanted) and not more):
        return False
    if any(_SECRET_WORD.search(operand) for operand in given.operands[1:]):
        return False
    return all(fnmatch.fnmatchcase(operand, pattern) for operand, pattern in zip(given.operands, wanted, strict=False))
