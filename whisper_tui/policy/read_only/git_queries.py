"""Git subcommands that only read. They are harmless only if the configuration of the repository is (decision 8)."""

import re
from collections.abc import Sequence
from functools import cache

from whisper_tui.policy.read_only.allowed_options import AllowedOptions, allowed_options, parse_arguments

_FORMAT = (
    "oneline pretty? format= abbrev-commit no-abbrev-commit abbrev? decorate? no-decorate graph no-color color? date= "
    "relative-date stat? numstat shortstat summary dirstat? name-only name-status compact-summary raw patch-with-stat "
    "unified= minimal patience histogram diff-algorithm= word-diff? word-diff-regex= color-words? no-prefix "
    "ignore-space-change ignore-all-space ignore-blank-lines ignore-space-at-eol ignore-cr-at-eol inter-hunk-context= "
    "function-context exit-code quiet no-ext-diff no-textconv patch no-patch full-index find-renames? find-copies? "
    "diff-filter= pickaxe-all pickaxe-regex relative? no-relative text src-prefix= dst-prefix= "
    "color-moved? no-renames check cc no-notes notes? encoding= line-prefix= ita-invisible-in-index"
)
_COMMITS = (
    "max-count= skip= since= after= until= before= author= committer= grep= all-match invert-grep regexp-ignore-case "
    "extended-regexp fixed-strings perl-regexp merges no-merges first-parent all branches? tags? remotes? glob= "
    "exclude= reflog walk-reflogs cherry cherry-pick cherry-mark left-right left-only right-only ancestry-path? "
    "full-history simplify-merges simplify-by-decoration topo-order date-order author-date-order reverse follow "
    "boundary count children parents source min-parents= max-parents= not stdin no-walk? follow log-size "
    "full-diff remove-empty sparse dense show-pulls"
)

_TABLE: dict[str, AllowedOptions] = {
    "status": allowed_options("sbvz", "short branch porcelain? long verbose untracked-files? ignored? ignore-submodules null column? "
                   "no-column ahead-behind no-ahead-behind renames no-renames find-renames? show-stash -uno -uall -unormal"),
    "log": allowed_options("n:pusizgcmwbWS:G:L:O:U:M:C:EFPi", f"{_FORMAT} {_COMMITS}", "numbers"),
    "show": allowed_options("szwbWS:G:O:U:M:C:m", f"{_FORMAT} {_COMMITS}"),
    "diff": allowed_options("szwbWRaS:G:O:U:M:C:pu", f"{_FORMAT} cached staged merge-base no-index base ours theirs patch diff-merges="),
    "shortlog": allowed_options("nsecw", f"numbered summary email group= {_COMMITS}"),
    "rev-list": allowed_options("n:", f"{_FORMAT} {_COMMITS} objects no-object-names disk-usage?", "numbers"),
    "rev-parse": allowed_options("q", "abbrev-ref? abbrev? short? verify quiet show-toplevel show-prefix show-cdup git-dir git-common-dir "
                      "is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository absolute-git-dir all "
                      "branches? tags? remotes? symbolic symbolic-full-name show-object-format? show-superproject-working-tree"),
    "ls-files": allowed_options("cdmosiukvztfx:", "cached deleted modified others stage ignored unmerged killed exclude= "
                     "exclude-standard error-unmatch full-name abbrev? eol deduplicate directory "
                     "no-empty-directory format="),
    "ls-tree": allowed_options("drtlz", "long name-only name-status full-name full-tree abbrev? object-only format="),
    "describe": allowed_options("", "all tags contains abbrev? candidates= exact-match debug long match= exclude= always first-parent"),
    "blame": allowed_options("bcefglnpstwCML:", "root show-stats porcelain line-porcelain incremental date= score-debug show-name show-number "
                  "show-email abbrev? since= ignore-rev= color-lines color-by-age"),
    "annotate": allowed_options("lL:"),
    "grep": allowed_options("aiIwvhHEGPFnlLczpqrWoe:m:A:B:C:", "text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp "
                 "perl-regexp fixed-strings line-number column files-with-matches name-only files-without-match count color? "
                 "no-color break heading show-function context= after-context= before-context= function-context and or not "
                 "all-match quiet cached untracked no-index no-exclude-standard exclude-standard max-depth= "
                 "only-matching max-count= threads= null no-recursive recursive", "numbers"),
    "branch": allowed_options("alrvqi", "list all remotes verbose show-current contains? no-contains? merged? no-merged? sort= points-at= format= "
                   "column? no-column color? no-color abbrev? no-abbrev ignore-case", "most=0"),
    "tag": allowed_options("ln:i", "list contains? no-contains? merged? no-merged? sort= points-at= format= column? color? ignore-case", "most=0"),
    "remote": allowed_options("v", "verbose", "most=0"),
    "count-objects": allowed_options("vH", "verbose human-readable"),
    "cat-file": allowed_options("tpse", "batch-check? follow-symlinks"),
    "merge-base": allowed_options("a", "all octopus independent is-ancestor fork-point"),
    "name-rev": allowed_options("", "tags refs= exclude= all name-only no-undefined always"),
    "for-each-ref": allowed_options("", "count= sort= format= points-at= merged? no-merged? contains? no-contains? ignore-case color? exclude="),
    "show-ref": allowed_options("hdqs", "head heads tags branches dereference hash? verify abbrev? quiet exists"),
    "show-branch": allowed_options("ar", "all remotes current topo-order date-order list no-name sha1-name color? no-color sparse topics more="),
    "check-ignore": allowed_options("qvzn", "quiet verbose stdin non-matching no-index"),
    "check-attr": allowed_options("az", "all stdin cached source="),
    "diff-tree": allowed_options("rtpsczmu", _FORMAT + " root no-commit-id merge-base stdin pretty?"),
    "diff-index": allowed_options("pszmu", _FORMAT + " cached merge-base"),
    "diff-files": allowed_options("pszu0123", _FORMAT),
    "whatchanged": allowed_options("n:", f"{_FORMAT} {_COMMITS}", "numbers"),
    "cherry": allowed_options("v", "abbrev?"),
    "version": allowed_options("", "build-options"),
    "fsck": allowed_options("", "no-dangling connectivity-only no-progress"),
    "range-diff": allowed_options("s", "no-color color? creation-factor= no-dual-color"),
}  # fmt: skip


@cache
def _two_words() -> dict[tuple[str, str], AllowedOptions]:
    return {
        ("stash", "list"): allowed_options("p:n:", f"{_COMMITS} stat? name-only oneline"),
        ("stash", "show"): allowed_options("up", "stat? name-only name-status include-untracked only-untracked patch"),
        ("worktree", "list"): allowed_options("vz", "verbose porcelain"),
        ("remote", "get-url"): allowed_options("", "push all"),
        ("remote", "show"): allowed_options("n", "", "needs=n"),
        ("reflog", "show"): allowed_options("n:", f"{_FORMAT} {_COMMITS}", "numbers"),
        ("notes", "list"): allowed_options(),
        ("notes", "show"): allowed_options(),
        ("sparse-checkout", "list"): allowed_options(),
        ("bundle", "verify"): allowed_options("q", "quiet"),
    }


_LOCAL_SETTING = re.compile(r"(?:remote|branch)\.[^\n]+\.[A-Za-z]+|core\.bare|core\.ignorecase|core\.filemode")
"""Settings that only a repository has, and that usually hold no secret: unasked git runs without global settings."""

_ASKS_GPG = re.compile(r"%[-+ ]?G")
"""Placeholders of a format that show a signature, its grade or its key."""

_SHOWS_REFS = frozenset({"branch", "tag", "for-each-ref"})
"""Subcommands whose formats and sort keys can name the field signature."""

_REFLOG = allowed_options("n:", f"{_FORMAT} {_COMMITS}", "numbers")


def listed_subcommands() -> tuple[str, ...]:
    """Return the subcommands that only show something."""
    return (*_TABLE, *(" ".join(words) for words in _two_words()))


def reads_submodules(argv: Sequence[str]) -> bool:
    """True if git would start another git in each submodule."""
    # these compare the work trees of submodules, with the configuration that each of them has
    into = {"status", "diff", "diff-files", "diff-index", "describe", "stash", "ls-files", "grep"}
    return not into.isdisjoint(argv)


def git_only_reads(words: Sequence[str]) -> bool:
    """True if the words after `git` only show something."""
    rest = list(words)
    while rest and rest[0] in {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"}:
        del rest[0]
    if not rest:
        return False
    if rest[0] in {"--version", "--help", "help"}:
        return len(rest) == 1
    subcommand, behind = rest[0], rest[1:]
    # `gpg.program` of the repository would run
    if any(_ASKS_GPG.search(word) or (subcommand in _SHOWS_REFS and "signature" in word) for word in behind):
        return False  # it checks signatures, by running gpg
    if behind and (pair := _two_words().get((subcommand, behind[0]))) is not None:
        return parse_arguments(behind[1:], pair) is not None
    if subcommand == "config":
        # To git config, options end at the first operand: behind it, `--get` would be a pattern, and the rest is set.
        name = behind[-1] if behind else ""
        return behind[:-1] in (["--get"], ["--local", "--get"]) and _LOCAL_SETTING.fullmatch(name) is not None
    if subcommand == "reflog":
        return (
            not (behind and behind[0] in {"expire", "delete", "exists", "drop", "write"})
            and parse_arguments(behind, _REFLOG) is not None
        )
    allowed = _TABLE.get(subcommand)
    if allowed is None:
        return False
    if subcommand in {"branch", "tag"}:
        return _lists(behind, allowed)
    return parse_arguments(behind, allowed) is not None


_LISTING = frozenset("-l --list --contains --no-contains --merged --no-merged --points-at".split())


def _lists(words: Sequence[str], allowed: AllowedOptions) -> bool:
    """True if `git branch` or `git tag` lists. Without an option that says so, an operand creates one."""
    # parsed and not searched: `git tag --format --list x` creates a tag x, with --list as the format
    given = parse_arguments(words, allowed._replace(most=None))
    if given is None:
        return False
    return not given.operands or any(name in _LISTING for name, _ in given.options)
