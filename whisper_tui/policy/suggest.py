"""Prefixes worth remembering: as long as it takes to say what a command does, and never one that says nothing."""

import re

from whisper_tui.model.command import CommandSpec
from whisper_tui.model.decision import PrefixScope
from whisper_tui.policy.memory import scope_problem
from whisper_tui.policy.view import view

_VERB = re.compile(r"[A-Za-z][A-Za-z0-9_:.-]*\Z")
_LONGER: dict[str, tuple[int, frozenset[str]]] = {
    program: (length, frozenset(words.split()))
    for program, length, words in (
        ("npm", 3, "run run-script exec config cache pkg"),
        ("pnpm", 3, "run exec dlx config store"),
        ("yarn", 3, "run exec dlx workspace config"),
        ("bun", 3, "run x pm"),
        ("deno", 3, "task"),
        ("docker", 3, "compose container image volume network system context buildx builder"),
        ("podman", 3, "compose container image volume network system pod"),
        ("git", 3, "stash remote worktree submodule bisect notes lfs flow"),
        ("go", 3, "mod work tool"),
        ("cargo", 3, "run xtask"),
        ("uv", 3, "pip run tool python cache"),
        ("uvx", 2, ""),
        ("poetry", 3, "run env cache config self"),
        ("pipenv", 3, "run"),
        ("hatch", 3, "run env"),
        ("pdm", 3, "run"),
        ("bundle", 3, "exec"),
        ("terraform", 3, "state workspace"),
        ("systemctl", 3, "status start stop restart enable disable"),
        ("kubectl", 3, "get describe logs rollout config top create apply"),
        ("mise", 3, "exec run"),
        ("dotnet", 3, "tool nuget"),
    )
}
"""Programs whose second word is only the name of a group: how many words say what is done, and after which words."""

_GROUPED = frozenset("gh glab aws gcloud az doctl heroku fly flyctl firebase supabase".split())
"""Programs of which every second word is the name of a group."""

MOST = 4
"""Prefixes suggested for one call."""


def suggested_prefixes(spec: CommandSpec) -> tuple[tuple[str, ...], ...]:
    """One prefix for each command of a call, or none at all if one of them has no prefix that is safe to remember."""
    plain = view(spec.command).plain
    if plain is None:
        return ()
    found: list[tuple[str, ...]] = []
    for command in plain:
        prefix = _prefix(command.argv)
        if prefix is None or scope_problem(PrefixScope(words=prefix), spec) is not None:
            return ()
        if prefix not in found:
            found.append(prefix)
    return tuple(found) if len(found) <= MOST else ()


def _prefix(argv: tuple[str, ...]) -> tuple[str, ...] | None:
    """The words that say what a command does. None: no part of it says so."""
    length = 2
    known = _LONGER.get(argv[0])
    if argv[0] in _GROUPED:
        length = 3
    elif known is not None and argv[1:2] and argv[1] in known[1]:
        length = known[0]
    if len(argv) < length or "/" in argv[0]:
        return None
    return argv[:length] if all(_VERB.match(word) for word in argv[1:length]) else None
