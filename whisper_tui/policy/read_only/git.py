"""Git subcommands that only look. They are harmless only where the configuration of the repository is."""

import re
from collections.abc import Sequence
from functools import cache

from whisper_tui.policy.read_only.forms import Form, form, take_apart

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

_TABLE: dict[str, Form] = {
    "status": form("sbvz", "short branch porcelain? long verbose untracked-files? ignored? ignore-submodules null column? "
                   "no-column ahead-behind no-ahead-behind renames no-renames find-renames? show-stash -uno -uall -unormal"),
    "log": form("n:pusizgcmwbWS:G:L:O:U:M:C:EFPi", f"{_FORMAT} {_COMMITS}", "numbers"),
    "show": form("szwbWS:G:O:U:M:C:m", f"{_FORMAT} {_COMMITS}"),
    "diff": form("szwbWRaS:G:O:U:M:C:pu", f"{_FORMAT} cached staged merge-base no-index base ours theirs patch diff-merges="),
    "shortlog": form("nsecw", f"numbered summary email group= {_COMMITS}"),
    "rev-list": form("n:", f"{_FORMAT} {_COMMITS} objects no-object-names disk-usage?", "numbers"),
    "rev-parse": form("q", "abbrev-ref? abbrev? short? verify quiet show-toplevel show-prefix show-cdup git-dir git-common-dir "
                      "is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository absolute-git-dir all "
                      "branches? tags? remotes? symbolic symbolic-full-name show-object-format? show-superproject-working-tree"),
    "ls-files": form("cdmosiukvztfx:", "cached deleted modified others stage ignored unmerged killed exclude= "
                     "exclude-standard error-unmatch full-name abbrev? eol deduplicate directory "
                     "no-empty-directory format="),
    "ls-tree": form("drtlz", "long name-only name-status full-name full-tree abbrev? object-only format="),
    "describe": form("", "all tags contains abbrev? candidates= exact-match debug long match= exclude= always first-parent dirty? broken?"),
    "blame": form("bcefglnpstwCML:", "root show-stats porcelain line-porcelain incremental date= score-debug show-name show-number "
                  "show-email abbrev= since= ignore-rev= color-lines color-by-age"),
    "annotate": form("lL:"),
    "grep": form("aiIwvhHEGPFnlLczpqrWoe:m:A:B:C:", "text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp "
                 "perl-regexp fixed-strings line-number column files-with-matches name-only files-without-match count color? "
                 "no-color break heading show-function context= after-context= before-context= function-context and or not "
                 "all-match quiet cached untracked no-index no-exclude-standard exclude-standard max-depth= "
                 "only-matching max-count= threads= null no-recursive recursive", "numbers"),
    "branch": form("alrvqi", "list all remotes verbose show-current contains? no-contains? merged? no-merged? sort= points-at= format= "
                   "column? no-column color? no-color abbrev= no-abbrev ignore-case", "most=0"),
    "tag": form("ln:i", "list contains? no-contains? merged? no-merged? sort= points-at= format= column? color? ignore-case", "most=0"),
    "remote": form("v", "verbose", "most=0"),
    "count-objects": form("vH", "verbose human-readable"),
    "cat-file": form("tpse", "batch-check? follow-symlinks"),
    "merge-base": form("a", "all octopus independent is-ancestor fork-point"),
    "name-rev": form("", "tags refs= exclude= all name-only no-undefined always"),
    "for-each-ref": form("", "count= sort= format= points-at= merged? no-merged? contains? no-contains? ignore-case color? exclude="),
    "show-ref": form("hdqs", "head heads tags branches dereference hash? verify abbrev? quiet exists"),
    "show-branch": form("ar", "all remotes current topo-order date-order list no-name sha1-name color? no-color sparse topics more="),
    "check-ignore": form("qvzn", "quiet verbose stdin non-matching no-index"),
    "check-attr": form("az", "all stdin cached source="),
    "diff-tree": form("rtpsczmu", _FORMAT + " root no-commit-id merge-base stdin pretty?"),
    "diff-index": form("pszmu", _FORMAT + " cached merge-base"),
    "diff-files": form("pszu0123", _FORMAT),
    "whatchanged": form("n:", f"{_FORMAT} {_COMMITS}", "numbers"),
    "cherry": form("v", "abbrev="),
    "version": form("", "build-options"),
    "fsck": form("", "no-dangling connectivity-only no-progress"),
    "range-diff": form("s", "no-color color? creation-factor= no-dual-color"),
}  # fmt: skip


@cache
def _two_words() -> dict[tuple[str, str], Form]:
    return {
        ("stash", "list"): form("p:n:", f"{_COMMITS} stat? name-only oneline"),
        ("stash", "show"): form("up", "stat? name-only name-status include-untracked only-untracked patch"),
        ("worktree", "list"): form("vz", "verbose porcelain"),
        ("remote", "get-url"): form("", "push all"),
        ("remote", "show"): form("n", "", "needs=n"),
        ("reflog", "show"): form("n:", f"{_FORMAT} {_COMMITS}", "numbers"),
        ("notes", "list"): form(),
        ("notes", "show"): form(),
        ("sparse-checkout", "list"): form(),
        ("bundle", "verify"): form("q", "quiet"),
    }


_LOCAL_SETTING = re.compile(r"(?:remote|branch)\.[^\n]+\.[A-Za-z]+|core\.bare|core\.ignorecase|core\.filemode")
"""Settings of a repository, which are the same without the configuration of the user, and usually hold no secret."""

_REFLOG = form("n:", f"{_FORMAT} {_COMMITS}", "numbers")


def looks_into_modules(argv: Sequence[str]) -> bool:
    """Whether a git that shows files of the work tree would start another one in each submodule."""
    into = {"status", "diff", "diff-files", "diff-index", "describe", "stash", "ls-files", "grep"}
    return not into.isdisjoint(argv)


def only_looks(words: Sequence[str]) -> bool:
    """Whether the words behind `git` make it only show something."""
    rest = list(words)
    while rest and rest[0] in {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"}:
        del rest[0]
    if not rest:
        return False
    if rest[0] in {"--version", "--help", "help"}:
        return len(rest) == 1
    subcommand, behind = rest[0], rest[1:]
    if behind and (pair := _two_words().get((subcommand, behind[0]))) is not None:
        return take_apart(behind[1:], pair) is not None
    if subcommand == "config":
        # To git config, options end at the first operand: behind it, `--get` would be a pattern, and the rest is set.
        name = behind[-1] if behind else ""
        return behind[:-1] in (["--get"], ["--local", "--get"]) and _LOCAL_SETTING.fullmatch(name) is not None
    if subcommand == "reflog":
        return (
            not (behind and behind[0] in {"expire", "delete", "exists", "drop", "write"})
            and take_apart(behind, _REFLOG) is not None
        )
    allowed = _TABLE.get(subcommand)
    if allowed is None:
        return False
    if subcommand in {"branch", "tag"}:
        return _lists(behind, allowed)
    if any("%G" in word for word in behind):
        return False  # a format that checks signatures, by running gpg
    return take_apart(behind, allowed) is not None


_LISTING = frozenset("-l --list --contains --no-contains --merged --no-merged --points-at".split())


def _lists(words: Sequence[str], allowed: Form) -> bool:
    """Branches or tags are only shown where an option says so; an operand would make one otherwise.

    Whether a word is an option is known only once the values of the others are taken from it: `--format --list x`
    makes a tag called x.
    """
    given = take_apart(words, allowed._replace(most=None))
    if given is None:
        return False
    return not given.operands or any(name in _LISTING for name, _ in given.options)
