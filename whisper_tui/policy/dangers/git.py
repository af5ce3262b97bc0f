"""Git: what loses work, rewrites what others have, or runs programs that the command does not name."""

from collections.abc import Callable

from whisper_tui.policy.dangers.finding import Danger, Words, before_end_of_options, letters, long_option, operands
from whisper_tui.policy.wrappers.git_aliases import take_apart

_RUNNING_LONG = (
    "upload-pack", "receive-pack", "exec", "ext-diff", "textconv", "open-files-in-pager", "extcmd", "edit-description",
    "template", "config",
)  # fmt: skip
_LOSES = "It throws away work that is not committed"


def git(argv: Words) -> list[Danger]:
    """All dangers of a call of git."""
    apart = take_apart(argv)
    if apart is None:
        return [Danger("runs-other-code", "Git's own options in it are not understood", 1)]
    found = [
        Danger("runs-other-code", f"{name} changes the configuration of git, which can run programs", index)
        for name, value, index in apart.options
        if name in {"-c", "--config-env"} or (name == "--exec-path" and value)
    ]
    if apart.at >= len(argv):
        return found
    subcommand = argv[apart.at]
    if subcommand is None:
        return [*found, Danger("runs-other-code", "What git shall do is only known when it runs", apart.at)]
    found += _general(argv, apart.at)
    check = _SUBCOMMANDS.get(subcommand)
    return found + (check(argv, apart.at) if check else [])


def _general(argv: Words, at: int) -> list[Danger]:
    found = []
    for index, word in before_end_of_options(argv, at + 1):
        if argv[at] == "commit" and argv[index - 1] in {"-m", "--message"}:
            continue
        if long_option(word, *_RUNNING_LONG) and word != "--exec-path" and not _means_harmless(argv[at], word):
            found.append(Danger("runs-other-code", f"{word.partition('=')[0]} makes git run another program", index))
        elif long_option(word, "output") and argv[at] in {
            "diff",
            "log",
            "show",
            "format-patch",
            "archive",
            "whatchanged",
        }:
            found.append(Danger("writes-file", "It writes its result to a file", index))
        elif word.startswith(("ext::", "fd::")):
            found.append(Danger("runs-other-code", "This address of a repository is a command", index))
    return found


def _means_harmless(subcommand: str | None, word: str) -> bool:
    """Options of other meanings that only begin like a dangerous one."""
    name = word[2:].partition("=")[0]
    if name in {"text", "exclude", "exclude-standard", "exact"}:
        return True
    return (
        subcommand not in {"clone", "init", "fetch", "pull", "submodule"}
        and "config".startswith(name)
        and name != "config"
    )


def _flag(argv: Words, at: int, short: str, *long: str, valued: str = "") -> int | None:
    for index, word in before_end_of_options(argv, at + 1):
        if long_option(word, *long) or any(letter in short for letter in letters(word, valued)):
            return index
    return None


def _loss(at: int | None, sentence: str = _LOSES) -> list[Danger]:
    return [] if at is None else [Danger("destructive", sentence, at)]


def _clean(argv: Words, at: int) -> list[Danger]:
    if _flag(argv, at, "n", "dry-run", valued="e") is not None:
        return []
    return _loss(_flag(argv, at, "f", "force", valued="e"), "It deletes every file that git does not know")


def _reset(argv: Words, at: int) -> list[Danger]:
    return _loss(_flag(argv, at, "", "hard", "merge"))


def _checkout(argv: Words, at: int) -> list[Danger]:
    words = list(argv)
    for index, word in enumerate(words):
        if word == "--recurse-submodules" and words[index + 1 : index + 2] in (["checkout"], ["on-demand"]):
            del words[index + 1]
            break
    found = _loss(_flag(words, at, "f", "force", "discard-changes", "pathspec-from-file", valued="bBt"))
    if "--" in words[at:]:
        behind = words.index("--", at)
        return found or (_loss(behind) if len(words) > behind + 1 else [])
    if _flag(words, at, "bB", "orphan", "detach", "track", valued="bB") is not None:
        return found
    named = operands(words, at + 1)
    places = [
        index for index, word in named if word.rstrip("/").rsplit("/", 1)[-1] in {"", ".", ".."} or word.startswith(":")
    ]
    if places:
        return found or _loss(places[0])
    return found or (_loss(named[1][0]) if len(named) > 1 else [])


def _switch(argv: Words, at: int) -> list[Danger]:
    return _loss(_flag(argv, at, "f", "force", "discard-changes", valued="cC"))


def _restore(argv: Words, at: int) -> list[Danger]:
    staged = _flag(argv, at, "S", "staged", valued="s") is not None
    worktree = _flag(argv, at, "W", "worktree", valued="s") is not None
    if staged and not worktree:
        return []
    named = operands(argv, at + 1)
    return _loss(named[0][0]) if named else []


def _push(argv: Words, at: int) -> list[Danger]:
    for index, word in before_end_of_options(argv, at + 1):
        name = word.partition("=")[0]
        if name in {"--force-with-lease", "--force-if-includes"}:
            continue
        if long_option(word, "force", "delete", "mirror", "prune") or set(letters(word, "o")) & set("fd"):
            return _loss(index, "It changes or deletes what others have in the remote repository")
    for index, word in operands(argv, at + 1):
        if word.startswith(("+", ":")) and len(word) > 1:
            return _loss(index, "It changes or deletes what others have in the remote repository")
    return []


def _stash(argv: Words, at: int) -> list[Danger]:
    named = operands(argv, at + 1)
    if named and named[0][1] in {"drop", "clear"}:
        return _loss(named[0][0], "It deletes work that was put aside")
    return []


def _branch(argv: Words, at: int) -> list[Danger]:
    delete = _flag(argv, at, "d", "delete", valued="u")
    force = _flag(argv, at, "f", "force", valued="u")
    forced = _flag(argv, at, "DM", valued="u")
    if forced is None and delete is not None and force is not None:
        forced = force
    return _loss(forced, "It deletes or overwrites a branch, merged or not")


def _worktree(argv: Words, at: int) -> list[Danger]:
    named = operands(argv, at + 1)
    if named and named[0][1] == "remove":
        return _loss(_flag(argv, at, "f", "force"))
    return []


def _named(sentence: str, *words: str) -> Callable[[Words, int], list[Danger]]:
    def check(argv: Words, at: int) -> list[Danger]:
        named = operands(argv, at + 1)
        return _loss(named[0][0], sentence) if named and named[0][1] in words else []

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
    return [Danger("runs-other-code", "It changes the configuration of git, which can run programs", at)]


def _grep(argv: Words, at: int) -> list[Danger]:
    index = _flag(argv, at, "O", "open-files-in-pager", valued="ABCefmO")
    return [] if index is None else [Danger("runs-other-code", "It opens what it finds in another program", index)]


def _runs(short: str) -> Callable[[Words, int], list[Danger]]:
    def check(argv: Words, at: int) -> list[Danger]:
        index = _flag(argv, at, short)
        return [] if index is None else [Danger("runs-other-code", "It runs another program", index)]

    return check


def _runs_behind(*words: str) -> Callable[[Words, int], list[Danger]]:
    def check(argv: Words, at: int) -> list[Danger]:
        named = operands(argv, at + 1)
        if named and named[0][1] in words:
            return [Danger("runs-other-code", "It runs the command that follows", named[0][0])]
        return []

    return check


_REWRITES = "It rewrites the history of the repository"
_FORGETS = "It deletes what could have brought lost work back"

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
    "update-ref": _flagged("It deletes a name of a commit", "d", "delete", "stdin"),
    "tag": _flagged("It deletes or moves a tag", "df", "delete", "force"),
    "filter-branch": _whole(_REWRITES),
    "filter-repo": _whole(_REWRITES),
    "replace": _flagged(_REWRITES, "df", "delete", "force"),
    "rebase": _runs("x"),
    "difftool": _runs("xt"),
    "mergetool": _runs("t"),
    "fetch": _flagged("It overwrites local branches", "f", "force"),
    "clone": _runs("cu"),
    "init": _runs(""),
    "bisect": _runs_behind("run", "visualize", "view"),
    "submodule": lambda argv, at: [
        *_runs_behind("foreach")(argv, at),
        *(_flagged(_LOSES, "f", "force")(argv, at) if "deinit" in argv else []),
    ],
    "hook": _runs_behind("run"),
    "rm": _flagged(_LOSES, "rf", "force"),
    "remote": _named("It forgets a remote repository", "remove", "rm"),
    "lfs": _named(_FORGETS, "prune"),
}
