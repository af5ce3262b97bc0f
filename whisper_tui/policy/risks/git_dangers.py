"""Git commands that lose work, rewrite shared history, or run programs that the command does not name."""

import re
from collections.abc import Callable

from whisper_tui.policy.commands.argv import (
    HARMLESS_SETTING,
    Danger,
    Words,
    before_end_of_options,
    letters,
    long_option,
    operands,
    parse_git,
    short_or_long,
    valued_letters,
)
from whisper_tui.policy.commands.readings import first_words
from whisper_tui.programs.entries import entry_of

_RUNNING_LONG = (
    "upload-pack", "receive-pack", "exec", "ext-diff", "textconv", "open-files-in-pager", "extcmd", "edit-description",
    "template", "config",
)  # fmt: skip
_LOSES = "Discards uncommitted changes"
_HARMLESS_SETTINGS = re.compile(
    r"user\.(?:name|email)|init\.defaultbranch|pull\.(?:rebase|ff)|push\.(?:default|autosetupremote)|fetch\.prune|"
    r"color\.\w+|core\.(?:autocrlf|filemode|ignorecase|quotepath|eol)|advice\.\w+|merge\.conflictstyle",
    re.IGNORECASE,
)
"""Settings that run nothing. A rule must still name them: it would cover any other setting as well."""


def git(argv: Words) -> list[Danger]:
    """Return the dangers of a git command."""
    apart = parse_git(argv)
    if apart is None:
        return [Danger("runs-other-code", "Has unknown options before git's subcommand", 1)]
    found = [
        Danger("runs-other-code", f"Sets an option of git that can run programs (`git {name} {value or ''}`)", index)
        for name, value, index in apart.options
        if name in {"-c", "--config-env"} or (name == "--exec-path" and value)
        if not (name == "-c" and value is not None and HARMLESS_SETTING.fullmatch(value))
    ]
    if apart.at >= len(argv):
        return found
    subcommand = argv[apart.at]
    if subcommand is None:
        return [
            *found,
            Danger("runs-other-code", "Runs a git subcommand that is in a variable, or comes from a command", apart.at),
        ]
    found += _general(argv, apart.at)
    check = _SUBCOMMANDS.get(subcommand)
    return found + [_with_words(danger, argv, subcommand) for danger in (check(argv, apart.at) if check else [])]


def _with_words(danger: Danger, argv: Words, subcommand: str) -> Danger:
    """Return a danger whose sentence ends with the words that make it one."""
    word = argv[danger.word] if danger.word < len(argv) else None
    shown = f"git {subcommand}" if word in {None, subcommand} else f"git {subcommand} {word}"
    return danger._replace(sentence=danger.sentence and f"{danger.sentence} (`{shown}`)")


def _general(argv: Words, at: int) -> list[Danger]:
    found = []
    for index, word in before_end_of_options(argv, at + 1):
        # the message of a commit may begin with dashes
        if argv[at] == "commit" and argv[index - 1] in {"-m", "--message"}:
            continue
        if long_option(word, *_RUNNING_LONG) and word != "--exec-path" and not _means_harmless(argv[at], word):
            found.append(Danger("runs-other-code", f"Runs another program (`git {word.partition('=')[0]}`)", index))
        elif long_option(word, "output") and argv[at] in {
            "diff",
            "log",
            "show",
            "format-patch",
            "archive",
            "whatchanged",
        }:
            found.append(Danger("writes-file", f"Writes its result to a file (`git {argv[at]} --output`)", index))
        # the ext transport runs the rest of the address as a command
        elif word.startswith(("ext::", "fd::")):
            found.append(Danger("runs-other-code", f"Runs a command as the address of a repository (`{word}`)", index))
    return found


def _means_harmless(subcommand: str | None, word: str) -> bool:
    """True for options that only begin like a dangerous one."""
    name = word[2:].partition("=")[0]
    if name in {"text", "exclude", "exclude-standard", "exact"}:
        return True
    return (
        subcommand not in {"clone", "init", "fetch", "pull", "submodule"}
        and "config".startswith(name)
        and name != "config"
    )


def _flag(argv: Words, at: int, short: str, *long: str) -> int | None:
    return short_or_long(argv, short, long, valued_letters(entry_of("git", argv[at] or "")), at + 1)


def _verb(argv: Words, at: int, *verbs: str) -> int | None:
    """Return the index of one of these words if it may be the first behind the subcommand."""
    return next((index for index, word in first_words(argv, at + 1) if word in verbs), None)


def _loss(at: int | None, sentence: str = _LOSES) -> list[Danger]:
    return [] if at is None else [Danger("destructive", sentence, at)]


def _clean(argv: Words, at: int) -> list[Danger]:
    # -e takes a pattern, in which an n would be no option
    if _flag(argv, at, "n", "dry-run") is not None:
        return []
    return _loss(_flag(argv, at, "f", "force"), "Deletes untracked files")


def _reset(argv: Words, at: int) -> list[Danger]:
    return _loss(_flag(argv, at, "", "hard", "merge"))


def _checkout(argv: Words, at: int) -> list[Danger]:
    words = list(argv)
    for index, word in enumerate(words):
        # its optional value looks like an operand
        if word == "--recurse-submodules" and words[index + 1 : index + 2] in (["checkout"], ["on-demand"]):
            del words[index + 1]
            break
    found = _loss(_flag(words, at, "f", "force", "discard-changes", "pathspec-from-file"))
    if "--" in words[at:]:
        behind = words.index("--", at)
        return found or (_loss(behind) if len(words) > behind + 1 else [])
    if _flag(words, at, "bB", "orphan", "detach", "track") is not None:
        return found
    named = operands(words, at + 1)
    places = [
        index for index, word in named if word.rstrip("/").rsplit("/", 1)[-1] in {"", ".", ".."} or word.startswith(":")
    ]
    if places:
        return found or _loss(places[0])
    return found or (_loss(named[1][0]) if len(named) > 1 else [])


def _switch(argv: Words, at: int) -> list[Danger]:
    return _loss(_flag(argv, at, "f", "force", "discard-changes"))


def _restore(argv: Words, at: int) -> list[Danger]:
    staged = _flag(argv, at, "S", "staged") is not None
    worktree = _flag(argv, at, "W", "worktree") is not None
    if staged and not worktree:
        return []
    named = operands(argv, at + 1)
    return _loss(named[0][0]) if named else []


def _push(argv: Words, at: int) -> list[Danger]:
    for index, word in before_end_of_options(argv, at + 1):
        name = word.partition("=")[0]
        # they refuse to overwrite commits that nobody here has seen
        if name in {"--force-with-lease", "--force-if-includes"}:
            continue
        if long_option(word, "force", "delete", "mirror", "prune") or set(letters(word, "o")) & set("fd"):
            deletes = long_option(word, "delete", "prune") or "d" in letters(word, "o")
            return _loss(index, "Deletes remote branches or tags" if deletes else "Rewrites remote branches")
    for index, word in operands(argv, at + 1):
        # `+branch` forces, `:branch` deletes
        if word.startswith(("+", ":")) and len(word) > 1:
            return _loss(index, "Rewrites remote branches" if word[0] == "+" else "Deletes remote branches or tags")
    return []


def _stash(argv: Words, at: int) -> list[Danger]:
    return _loss(_verb(argv, at, "drop", "clear"), "Deletes stashed changes")


def _branch(argv: Words, at: int) -> list[Danger]:
    delete = _flag(argv, at, "d", "delete")
    force = _flag(argv, at, "f", "force")
    forced = _flag(argv, at, "DM")
    if forced is None and delete is not None and force is not None:
        forced = force
    return _loss(forced, "Deletes or overwrites a branch, even an unmerged one")


def _worktree(argv: Words, at: int) -> list[Danger]:
    return [] if _verb(argv, at, "remove") is None else _loss(_flag(argv, at, "f", "force"))


def _named(sentence: str, *words: str) -> Callable[[Words, int], list[Danger]]:
    def check(argv: Words, at: int) -> list[Danger]:
        return _loss(_verb(argv, at, *words), sentence)

    return check


def _flagged(sentence: str, short: str, *long: str) -> Callable[[Words, int], list[Danger]]:
    def check(argv: Words, at: int) -> list[Danger]:
        return _loss(_flag(argv, at, short, *long), sentence)

    return check


def _whole(sentence: str) -> Callable[[Words, int], list[Danger]]:
    def check(argv: Words, at: int) -> list[Danger]:
        return _loss(at, sentence)

    return check


def _config(argv: Words, at: int) -> list[Danger]:
    if (
        _flag(argv, at, "l", "get", "get-all", "get-regexp", "get-urlmatch", "list", "get-color", "get-colorbool")
        is not None
    ):
        return []
    named = operands(argv, at + 1)
    if named and named[0][1] in {"list", "get"}:
        return []
    if len(named) < 2 and _flag(argv, at, "e", "unset", "unset-all", "edit", "add", "replace-all") is None:
        return []
    harmless = len(named) == 2 and _HARMLESS_SETTINGS.fullmatch(named[0][1]) is not None
    return [Danger("runs-other-code", "" if harmless else "Changes settings of git, which can run programs", at)]


def _grep(argv: Words, at: int) -> list[Danger]:
    index = _flag(argv, at, "O", "open-files-in-pager")
    return [] if index is None else [Danger("runs-other-code", "Opens its matches in another program", index)]


def _runs(short: str) -> Callable[[Words, int], list[Danger]]:
    def check(argv: Words, at: int) -> list[Danger]:
        index = _flag(argv, at, short)
        return [] if index is None else [Danger("runs-other-code", "Runs another program", index)]

    return check


def _runs_behind(*words: str) -> Callable[[Words, int], list[Danger]]:
    def check(argv: Words, at: int) -> list[Danger]:
        verb = _verb(argv, at, *words)
        return [] if verb is None else [Danger("runs-other-code", "Runs the command that follows", verb)]

    return check


def _remote(argv: Words, at: int) -> list[Danger]:
    verb = _verb(argv, at, "remove", "rm")
    # the address can be added again, so this destroys nothing
    return [] if verb is None else [Danger("interrupts", "Removes a remote", verb)]


_REWRITES = "Rewrites the history of the repository"
_FORGETS = "Deletes data from which lost commits could be recovered"

_SUBCOMMANDS: dict[str, Callable[[Words, int], list[Danger]]] = {
    "clean": _clean,
    "reset": _reset,
    "checkout": _checkout,
    "switch": _switch,
    "restore": _restore,
    "push": _push,
    "stash": _stash,
    "branch": _branch,
    "worktree": _worktree,
    "config": _config,
    "grep": _grep,
    "reflog": _named(_FORGETS, "expire", "delete", "drop"),
    "gc": _flagged(_FORGETS, "", "prune"),
    "prune": _whole(_FORGETS),
    "update-ref": _flagged("Deletes a ref", "d", "delete", "stdin"),
    "tag": _flagged("Deletes or moves a tag", "df", "delete", "force"),
    "filter-branch": _whole(_REWRITES),
    "filter-repo": _whole(_REWRITES),
    "replace": _flagged(_REWRITES, "df", "delete", "force"),
    "rebase": _runs("x"),
    "difftool": _runs("xt"),
    "mergetool": _runs("t"),
    "fetch": _flagged("Overwrites local branches", "f", "force"),
    "clone": _runs("cu"),
    "init": _runs(""),
    "bisect": _runs_behind("run", "visualize", "view"),
    "submodule": lambda argv, at: [
        *_runs_behind("foreach")(argv, at),
        *(_flagged(_LOSES, "f", "force")(argv, at) if "deinit" in argv else []),
    ],
    "hook": _runs_behind("run"),
    "rm": _flagged(_LOSES, "rf", "force"),
    "remote": _remote,
    "lfs": _named(_FORGETS, "prune"),
}
