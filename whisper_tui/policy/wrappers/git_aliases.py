"""Git as a wrapper: its own options taken away, aliases that run a shell, commands that run others."""

from collections.abc import Sequence
from typing import NamedTuple

from whisper_tui.policy.wrappers.peeled import Peeled

_VALUED = frozenset(
    "-C -c --exec-path --git-dir --work-tree --namespace --super-prefix --config-env --attr-source".split()
)
_FLAGS = frozenset(
    "-p --paginate -P --no-pager --bare --no-replace-objects --literal-pathspecs --glob-pathspecs --noglob-pathspecs "
    "--icase-pathspecs --no-optional-locks --no-lazy-fetch --no-advice --html-path --man-path --info-path --version "
    "--help -v -h".split()
)


class GitCommand(NamedTuple):
    """A call of git, taken apart."""

    options: tuple[tuple[str, str | None, int], ...]
    """Git's own options, with value and index."""
    at: int
    """Index of the subcommand; the length of the argv where there is none."""


def take_apart(argv: Sequence[str | None]) -> GitCommand | None:
    """Git's own options and where the subcommand stands. None: an option is unknown or not certain."""
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
        elif word in _VALUED - {"--exec-path"}:
            found.append((word, argv[at + 1] if at + 1 < len(argv) else None, at))
            at += 2
        elif word in _FLAGS or word == "--exec-path":
            found.append((word, None, at))
            at += 1
        else:
            return None
    return GitCommand(tuple(found), min(at, len(argv)))


def git_alias(argv: tuple[str | None, ...]) -> Peeled | None:
    """What git runs by an alias given in its options, or through a command made for running others."""
    apart = take_apart(argv)
    if apart is None or apart.at >= len(argv):
        return None
    aliases = {
        value.partition("=")[0].lower(): value.partition("=")[2]
        for name, value, _ in apart.options
        if name == "-c" and value is not None
    }
    subcommand = argv[apart.at] or ""
    alias = aliases.get(f"alias.{subcommand.lower()}")
    if alias is not None:
        if alias.startswith("!"):
            return Peeled(texts=(alias[1:],))
        return Peeled(commands=((argv[0], *alias.split(), *argv[apart.at + 1 :]),))
    rest = argv[apart.at + 1 :]
    if subcommand == "bisect" and rest[:1] == ("run",) and len(rest) > 1:
        return Peeled(commands=(rest[1:],), stays=True)
    if subcommand == "submodule" and "foreach" in rest:
        words = tuple(word for word in rest[rest.index("foreach") + 1 :] if word not in {"--recursive", "--quiet"})
        if words and None not in words:
            return Peeled(texts=(" ".join(word or "" for word in words),), stays=True)
    return None
