"""Paths whose content decides what runs later, or who may decide: writing there is more than writing a file."""

import posixpath
import re
from collections.abc import Sequence

from whisper_tui.policy.wrappers.peel import peel
from whisper_tui.policy.wrappers.peeled import Argv, program_name
from whisper_tui.policy.wrappers.shells import Input

_READERS = frozenset(
    "[ basename bat cat cd cksum cmp comm cut date df diff dir dirname du echo egrep eza fgrep file fold grep head "
    "hexdump id jq less ls lsd md5sum more nl od paste printf pushd pwd readlink realpath rg sha1sum sha256sum sort "
    "source ssh ssh-add sshfs stat strings tac tail test tree type uniq vdir wc whereis which xxd yq .".split()
)
"""Programs for which a path is something to read, whatever follows from that."""

_GIT_WRITES = frozenset("checkout restore mv rm apply am clone config init worktree stash switch reset".split())

_HOME = r"(?:/home/[^/]+|/Users/[^/]+|/export/home/[^/]+|/root|/var/root|/etc/skel)"
_STARTUP = re.compile(
    _HOME
    + r"/(?:\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|zlogout|"
    r"kshrc|mkshrc|cshrc|tcshrc|login|xprofile|xinitrc|xsession|xsessionrc|pam_environment|inputrc|vimrc|gitconfig|npmrc|"
    r"tmux\.conf|screenrc|gdbinit|pythonrc(?:\.py)?|Rprofile|irbrc)|\.oh-my-zsh/.*|"
    r"\.config/(?:fish|systemd/user|autostart|environment\.d|git|nvim|tmux)/.*|Library/LaunchAgents/.*)\Z"
    r"|/etc/(?:profile(?:\.d/.*)?|bash\.bashrc|bashrc|zsh/.*|zshrc|zshenv|environment|crontab|cron\.[^/]+/.*|sudoers(?:\.d/.*)?|"
    r"ld\.so\.(?:preload|conf(?:\.d/.*)?)|passwd|shadow|group|rc\.local|init\.d/.*|systemd/.*|pam\.d/.*|ssh/.*|hosts|"
    r"xdg/autostart/.*|gitconfig)\Z|/var/spool/cron/.*\Z|/(?:usr/)?lib/systemd/.*\Z",
    re.DOTALL,
)
_ANYWHERE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/\.ssh/(?:authorized_keys2?|config|rc|environment|id_[^/]*)\Z"), "keys or settings of ssh"),
    (re.compile(r"/(?:\.claude(?:/(?:settings[^/]*\.json|hooks(?:/.*)?))?|\.claude\.json|\.mcp\.json|\.codex(?:/.*)?|"
                r"\.gemini(?:/.*)?|\.qwen(?:/.*)?|opencode\.jsonc?|\.config/opencode(?:/.*)?|\.opencode(?:/.*)?|"
                r"\.cursor/(?:mcp|hooks|cli)[^/]*\.json)\Z", re.DOTALL), "the settings of an agent"),
    (re.compile(r"/(?:\.git/(?:hooks(?:/.*)?|config|info/attributes)|\.husky(?:/.*)?|\.githooks/.*)\Z", re.DOTALL),
     "hooks or settings of git"),
    (re.compile(r"/(?:\.whisper-tui(?:/.*)?|\.config/whisper_tui(?:/.*)?|\.local/(?:state|share)/whisper_tui(?:/.*)?)\Z",
                re.DOTALL), "the configuration or the state of whisper_tui"),
)  # fmt: skip
_OWN = "the configuration or the state of whisper_tui"
_PARTS = re.compile(r"[\s'\"`;|&<>()=,\[\]{}]+")


def kind_of_path(path: str, home: str, own: Sequence[str]) -> str | None:
    """What a path is that decides what runs later, or who may decide. None: it is neither."""
    path = posixpath.normpath(path)
    if any(path == each or path.startswith(each.rstrip("/") + "/") for each in own):
        return _OWN
    as_if = "/root" + path[len(home.rstrip("/")) :] if home and path.startswith(home.rstrip("/") + "/") else path
    if _STARTUP.match(as_if) or _STARTUP.match(path):
        return "a start-up file"
    return next((said for pattern, said in _ANYWHERE if pattern.search(path)), None)


def holds_sensitive(path: str, home: str, own: Sequence[str]) -> bool:
    """Whether a directory lies above such files, so that unpacking or copying a tree there may reach them."""
    path = posixpath.normpath(path)
    return path in {"/", "/home", "/etc", "/root", home.rstrip("/")} or any(
        each.startswith(path.rstrip("/") + "/") for each in own
    )


def innermost(words: Argv) -> Argv:
    """A command without the wrappers that only run it."""
    for _ in range(8):
        peeled = peel(words, Input(comes=True))
        if peeled is None or peeled.stays or len(peeled.commands) != 1:
            return words
        words = peeled.commands[0]
    return words


def written_paths(words: Argv) -> list[tuple[str, bool]]:
    """Words of a command, and parts of them, that may be paths that it writes; and whether it fills directories."""
    words = innermost(words)
    name = program_name(words[0]) if words and words[0] is not None else ""
    rest = [word for word in words[1:] if word is not None]
    writes = name in {"sort", "yq", "xxd", "tree"} and any(
        word.startswith(("-i", "-o", "--output", "-r")) for word in rest
    )
    if name in _READERS and not writes:
        return []
    if name == "git" and not _GIT_WRITES & set(rest):
        return []
    if name in {"sed", "gsed", "perl", "ruby"} and not any(
        word.startswith(("-", "--in-place")) and "i" in word for word in rest
    ):
        rest = [word for word in rest if re.search(r"[;{'\"(]|\bw ", word)]
    if name in {"find", "fd"} and not any(word in {"-delete", "-exec", "-execdir", "-fprint", "-fls"} for word in rest):
        return []
    if name in {"cp", "install", "rsync", "scp"}:
        return _copied(name, rest)
    trees = name in {"tar", "unzip", "bsdtar", "cpio", "7z", "ln", "mv"}
    return [(part, trees) for word in rest for part in (word, *_parts(word))]


def _copied(name: str, rest: list[str]) -> list[tuple[str, bool]]:
    """`cp`: its last operand, or the directory of `-t`, and what the files become there."""
    named = [word for word in rest if not word.startswith("-")]
    into = [word.partition("=")[2] for word in rest if word.startswith("--target-directory=")]
    into += [named.pop(0) for word in rest[:1] if word == "-t" and named]
    target = into[0] if into else named.pop() if len(named) > 1 else None
    if target is None:
        return []
    tree = any(word.startswith("-") and not word.startswith("--") and set("rRa") & set(word) for word in rest)
    inside = [(posixpath.join(target, posixpath.basename(word.rstrip("/"))), False) for word in named]
    return [(target, tree or name == "rsync"), *inside]


def _parts(word: str) -> list[str]:
    return [part for part in _PARTS.split(word) if part and part != word]


def read_paths(words: Argv) -> list[str]:
    """Words of a command that it may read."""
    return [word for word in innermost(words)[1:] if word is not None and not word.startswith("-")]
