"""Git as a wrapper: its own options, aliases that run a shell, and subcommands that run other commands."""

from collections.abc import Sequence
from typing import NamedTuple

from whisper_tui.policy.commands.argv import Unwrapped

_VALUED = frozenset(
    "-C -c --exec-path --git-dir --work-tree --namespace --super-prefix --config-env --attr-source".split()
)
_FLAGS = frozenset(
    "-p --paginate -P --no-pager --bare --no-replace-objects --literal-pathspecs --glob-pathspecs --noglob-pathspecs "
    "--icase-pathspecs --no-optional-locks --no-lazy-fetch --no-advice --html-path --man-path --info-path --version "
    "--help -v -h".split()
)


class GitCommand(NamedTuple):
    """The parts of a git command line."""

    options: tuple[tuple[str, str | None, int], ...]
    """Options before the subcommand, with value and index."""
    at: int
    """Index of the subcommand, or the length of the argv without one."""


def parse_git(argv: Sequence[str | None]) -> GitCommand | None:
    """Parse the options before the subcommand. Returns None if one is unknown or not literal."""
    found: list[tuple[str, str | None, int]] = []
    at = 1
    while at < len(argv):
        word = argv[at]
        if word is None:
            return None
        if word == "--":
            return GitCommand(tuple(found), len(argv))
        if not word.startswith("-"):
            break
        name, equals, value = word.partition("=")
        if equals and name in _VALUED:
            found.append((name, value, at))
            at += 1
        # `--exec-path` without a value only prints the path
        elif word in _VALUED - {"--exec-path"}:
            found.append((word, argv[at + 1] if at + 1 < len(argv) else None, at))
            at += 2
        elif word in _FLAGS or word == "--exec-path":
            found.append((word, None, at))
            at += 1
        else:
            return None
    return GitCommand(tuple(found), min(at, len(argv)))


def unwrap_git(argv: tuple[str | None, ...]) -> Unwrapped | None:
    """Return the commands that git runs through an alias in its options, `bisect run` or `submodule foreach`."""
    apart = parse_git(argv)
    if apart is None or apart.at >= len(argv):
        return None
    aliases = {
        value.partition("=")[0].lower(): value.partition("=")[2]
        for name, value, _ in apart.options
        if name == "-c" and value is not None
    }
    subcommand = argv[apart.at] or ""
    # names of settings, and so of aliases, ignore case
    alias = aliases.get(f"alias.{subcommand.lower()}")
    if alias is not None:
        # git gives an alias that begins with `!` to sh
        if alias.startswith("!"):
            return Unwrapped(texts=(alias[1:],))
        return Unwrapped(commands=((argv[0], *alias.split(), *argv[apart.at + 1 :]),))
    rest = argv[apart.at + 1 :]
    if subcommand == "bisect" and rest[:1] == ("run",) and len(rest) > 1:
        return Unwrapped(commands=(rest[1:],), has_own_effect=True)
    if subcommand == "submodule" and "foreach" in rest:
        words = tuple(word for word in rest[rest.index("foreach") + 1 :] if word not in {"--recursive", "--quiet"})
        if words and None not in words:
            return Unwrapped(texts=(" ".join(word or "" for word in words),), has_own_effect=True)
    return None
