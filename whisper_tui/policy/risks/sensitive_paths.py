"""Sensitive paths: with secrets, and places no reader may show; and the paths that a command reads or writes."""

import posixpath
import re
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from whisper_tui.model.verdict import Place
from whisper_tui.policy.commands.argv import Argv, named_words, program_name
from whisper_tui.policy.commands.read_only_programs import awk
from whisper_tui.policy.commands.unwrap import unwrap
from whisper_tui.policy.commands.words_of_input import looks_into_files
from whisper_tui.policy.commands.wrapper_files import own_files
from whisper_tui.policy.commands.wrappers import StandardInput, shell_text
from whisper_tui.programs.entries import entry_of

_CONFIDENTIAL_FILES = (
    # environments and settings with passwords
    r"\.env(?:\.(?!example|sample|template|dist)[\w.-]+)?|\.envrc|[\w.-]+\.env|\.netrc|_netrc|\.pgpass|pgpass\.conf|"
    r"\.git-credentials|\.npmrc|\.pypirc|\.my\.cnf|\.mylogin\.cnf|\.htpasswd|\.s3cfg|\.boto|\.dockercfg|\.terraformrc|"
    r"\.vault-token|\.vault_pass(?:word)?(?:\.txt)?|\.?vault[_-]password(?:\.txt)?|\.rhosts|\.?rclone\.conf|"
    r"\.Xauthority|\.ICEauthority|http-token|"
    # accounts of the system
    r"shadow-?|gshadow-?|opasswd|sudoers|master\.passwd|krb5cc_\w+|[\w.-]+\.keytab|"
    # keys
    r"id_(?:rsa|dsa|ecdsa|ed25519)(?!\S*\.pub\Z)[\w.-]*|ssh_host_\w+_key|authorized_keys|[\w.-]*priv(?:ate)?[\w.-]*\.(?:pem|json)|"
    r"(?![\w.-]*(?:cert|chain|ca|pub|bundle|root))[\w.-]+\.pem|[\w.-]+\.(?:key|p8|p12|pfx|ppk|kdbx?|jks|keystore)|"
    r"secring\.gpg|master\.key|"
    # secrets of services
    r"\.?credentials(?:\.(?:json|toml|tfrc\.json|yml\.enc|db|xml|ini))?|auth\.json|token\.json|"
    r"[\w.-]*secrets?[\w.-]*\.(?:ya?ml|json|toml|txt|ini|properties|env|pem|key)|service[_-]?account[\w.-]*\.json|"
    r"[\w.-]*\.tfstate(?:\.[\w.-]+)?|[\w.-]+\.tfvars(?:\.json)?|kubeconfig[\w.-]*|[\w.-]+\.kubeconfig|"
    # what people have typed
    r"\.(?:bash|zsh|python|mysql|psql|sqlite|node_repl|irb|rediscli|sh)_?history"
)
_CONFIDENTIAL_DIRECTORIES = (
    r"\.ssh|\.gnupg|\.aws|\.kube|\.docker|\.azure|\.config/gcloud|\.password-store|\.config/gh|\.config/glab-cli|"
    r"etc/ssl/private|etc/wireguard|etc/sudoers\.d|NetworkManager/system-connections|run/secrets|\.mozilla|\.thunderbird"
)
_OWN_CONFIDENTIAL = r"whisper[_-]tui/(?:.*/)?(?:run|state|environments|journal[\w.-]*|[\w.-]*token[\w.-]*)(?:/|\Z)"

_SECRETS = re.compile(
    rf"(?:^|/)(?:{_CONFIDENTIAL_FILES})\Z|(?:^|/)(?:{_CONFIDENTIAL_DIRECTORIES})(?:/|\Z)|(?:^|/){_OWN_CONFIDENTIAL}|/environ\Z",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def names_secret(word: str) -> bool:
    """True if a word, or the value of an option or a path in a commit in it, names a file with secrets."""
    attached = word[2:] if word.startswith("-") and not word.startswith("--") else ""
    parts = (word, word.rpartition("=")[2], word.rpartition(":")[2], attached)
    # `cat .env*` reads .env as well
    return any(part and _SECRETS.search(part.rstrip("*")) for part in parts)


# `ps auxe` and `ps -eE`: an e without a dash, or beside x, u or E, adds the environment
_SHOWS_ENVIRONMENT = re.compile(
    r"[A-Za-z]*e[A-Za-z]*|-[A-Za-z]*e[A-Za-z]*[xuE][A-Za-z]*|-[A-Za-z]*[xuE][A-Za-z]*e[A-Za-z]*"
)
"""Arguments with which ps shows the environment of processes."""


def shows_environment(argv: Sequence[str | None]) -> bool:
    """True if a command prints environment variables, its own or those of other processes."""
    name = (argv[0] or "").rsplit("/", 1)[-1] if argv else ""
    words = [word or "" for word in argv[1:]]
    if name == "printenv":
        return True
    if name == "env":  # with a command behind it, it only sets them
        return all(word.startswith("-") and not word.startswith(("-S", "--split")) for word in words)
    if name in {"export", "declare", "typeset", "readonly"}:
        return words in ([], ["-p"], ["-x"], ["-px"], ["-xp"])
    if name == "set":
        return not words
    return name == "ps" and any(_SHOWS_ENVIRONMENT.fullmatch(word) for word in words)


_GIT_WRITES = frozenset("checkout restore mv rm apply am clone config init worktree stash switch reset".split())

_PARTS = re.compile(r"[\s'\"`;|&<>()=,\[\]{}]+")


def innermost(words: Argv) -> Argv:
    """Return a command without its wrappers."""
    return _layers(words)[-1]


def _layers(words: Argv) -> list[Argv]:
    """Return a command, and what each of its wrappers leaves, outermost first."""
    found = [words]
    for _ in range(8):
        unwrapped = unwrap(words, StandardInput(has_input=True))
        if unwrapped is None or unwrapped.has_own_effect or len(unwrapped.commands) != 1:
            break
        words = unwrapped.commands[0]
        found.append(words)
    return found


def _of_wrappers(words: Argv) -> list[str]:
    """Return the files that the wrappers of a command write themselves."""
    wrappers = _layers(words)
    # with a text for a shell, the wrapper itself is the last layer
    if len(wrappers) > 1 or unwrap(words, StandardInput(has_input=True)) is not None:
        return [path for layer in wrappers for path in own_files(layer).written if path is not None]
    return []


def written_paths(words: Argv) -> list[tuple[str, bool]]:
    """Return the words, and parts of words, that may be paths it writes, each with whether it may be a tree."""
    return [*((path, False) for path in _of_wrappers(words)), *_written_by(innermost(words))]


def _written_by(words: Argv) -> list[tuple[str, bool]]:
    name = program_name(words[0]) if words and words[0] is not None else ""
    rest = [word for word in words[1:] if word is not None]
    writes = name in {"sort", "yq", "xxd", "tree"} and any(
        word.startswith(("-i", "-o", "--output", "-r")) for word in rest
    )
    if entry_of(name).reads_paths and not writes:
        return []
    # the text of `sh -c` is judged by the commands in it
    if entry_of(name).shell == "posix" and shell_text(words, StandardInput())[0] is not None:
        return []
    if entry_of(name).name == "awk" and len(rest) == len(words) - 1 and awk(rest):
        return []
    # git writes files of the work tree in these subcommands only
    if name == "git" and not _GIT_WRITES & set(rest):
        return []
    if name in {"sed", "gsed", "perl", "ruby"} and not any(
        word.startswith(("-", "--in-place")) and "i" in word for word in rest
    ):
        # without -i, only a script can write: with a w command, or in perl and ruby with any code
        rest = [word for word in rest if re.search(r"[;{'\"(]|\bw ", word)]
    if name in {"find", "fd"} and not any(word in {"-delete", "-exec", "-execdir", "-fprint", "-fls"} for word in rest):
        return []
    if entry_of(name).copies:
        return _copied(name, rest)
    trees = entry_of(name).writes_trees or (name == "git" and "clone" in rest)
    if name in {"tar", "bsdtar"} and ("--create" in rest or re.match(r"-?[A-Za-z]*c", next(iter(rest), ""))):
        trees = False  # it only reads the trees that it packs
    found = [(part, trees) for word in rest for part in (word, *_parts(word))]
    # the directory and the name of a download stand in two words
    inside = _into(rest) if name in {"curl", "wget"} else []
    return found + [(posixpath.join(into, word), False) for into in inside for word in rest if not word.startswith("-")]


def _into(words: Sequence[str]) -> list[str]:
    """Return the directories into which curl and wget are told to put what they download."""
    found = [word.partition("=")[2] for word in words if word.startswith(("--output-dir=", "--directory-prefix="))]
    found += [word[2:] for word in words if word.startswith("-P")]
    found += [
        after for word, after in pairwise(words) if word in {"--output-dir", "--directory-prefix"} or word.endswith("P")
    ]
    return [each for each in found if each]


def _copied(name: str, rest: list[str]) -> list[tuple[str, bool]]:
    """Return the targets of `cp`: its last operand or the directory of `-t`, and the files in it."""
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
    """Return the words of a command that may be paths it reads."""
    return [word for word in innermost(words)[1:] if word is not None and not word.startswith("-")]


_SHOWS_NAMES_ALONE = frozenset(
    "[ basename cd command dirname echo false ls printf pwd readlink realpath stat test true".split()
)
"""Programs of these that need no sandbox, because no option of theirs does anything else."""

_HOME_DIRECTORY = re.compile(r"/(?:home|Users|export/home)/[^/]+|/root|/var/root")
_PRIVATE = re.compile(
    r"/(?:(?:home|Users|export/home|root|var/root|run/user|var/run/user)(?:/.*)?|proc(?:/(?:\d+|self|thread-self)(?:/.*)?)?)",
    re.DOTALL,
)
"""Homes, and files about other processes."""

# these hold no data of anybody
_DEVICES_OF_ALL = re.compile(r"/dev/(?:null|zero|full|random|urandom|stdin|fd/0)")
_DEVICES = re.compile(rf"(?!{_DEVICES_OF_ALL.pattern}\Z)/dev/.*", re.DOTALL)
"""Terminals, disks, memory: data there belongs to somebody else."""

_KERNEL = re.compile(
    r"/proc/(?:kcore|kmsg|keys|key-users|sched_debug|timer_list|kallsyms|vmallocinfo|pagetypeinfo|slabinfo|kpage\w*)"
)

_ABOVE = frozenset({"/", "//", "/var", "/var/run", "/run", "/export", "/dev"})
"""Directories above private ones."""

_PUBLIC_TREES = re.compile(r"/(?:usr|opt|lib\w*|bin|sbin|nix|Library|System|Applications)(?:/.*)?", re.DOTALL)
"""Trees of installed packages, which may be searched as a whole."""


_OF_SYSTEM = re.compile(r"/(?:etc|proc|sys|dev|run|var/run)(?:/.*)?", re.DOTALL)
"""Places of the system of which the sandbox shows what is for everybody."""


def shows_private(
    commands: Sequence[Argv],
    cwd: str,
    root: str,
    places: Sequence[Place] = (),
    returns: Container[int] = (),
) -> bool:
    """True if a command that shows the content of files may reach private places outside the workspace.

    `places` are the resolved paths of words that are links, if the file system has been examined (decision 8);
    `returns` are the numbers of the commands that go back to a directory in which the text has been.
    """
    # a workspace that is a home, or above one, contains the private places itself
    if any(_reads(argv) for argv in commands) and (contains_home(root) or _is_private(cwd, root)):
        return True
    # a cd may fail, so every directory in which the text has been stays possible
    directories = [cwd]
    for at, argv in enumerate(commands):
        here = [place for place in places if place.command == at]
        if argv[:1] and program_name(argv[0] or "") in {"cd", "pushd", "popd"}:
            if at in returns:
                continue
            moved = _moved(argv, directories, here, root, only_names=shows_names(commands))
            if moved is None and at + 1 < len(commands):
                return True
            directories += moved or []
        elif _leads_away(argv, directories, here, root):
            return True
    return False


def names_closed_place(commands: Sequence[Argv], cwd: str, root: str) -> bool:
    """True if a program would look into a private place, even if only at names: the sandbox closes all of them."""
    return any(
        path is None or _is_private(path, root)
        for argv in commands
        if argv and not entry_of(program_name(argv[0] or "")).opens_nothing
        for path in _named(named_words(argv), [cwd])
    )


def shows_names(commands: Sequence[Argv]) -> bool:
    """True if commands show names, sizes and times of files, and whatever options they have, nothing else."""
    return bool(commands) and all(argv and argv[0] in _SHOWS_NAMES_ALONE for argv in commands)


def lies_outside(commands: Sequence[Argv], cwd: str, root: str) -> bool:
    """True if commands name a file or a directory at which the sandbox of a command that reads may not look."""
    paths = [
        path
        for argv in commands
        if argv and not entry_of(argv[0]).opens_nothing
        for path in _named(named_words(argv), [cwd])
    ]
    return any(path is not None and not (_is_searchable(path, root) or _OF_SYSTEM.fullmatch(path)) for path in paths)


def possible_paths(word: str) -> tuple[str, ...]:
    """Return the parts of a word that may be file names: the word, the value of an option, a path in a commit."""
    attached = word[2:] if word.startswith("-") and not word.startswith("--") else ""
    return tuple(dict.fromkeys((word, word.rpartition("=")[2], word.rpartition(":")[2], attached)))


def searches_trees(argv: Argv) -> bool:
    """True if a program searches everything below its directories."""
    name = program_name(argv[0]) if argv and argv[0] else ""
    if entry_of(name).searches_trees or looks_into_files(argv):
        return True
    words = [word for word in argv[1:] if word is not None]
    if name in {"grep", "egrep", "fgrep", "diff"}:
        return any(re.match(r"-[A-Za-z]*[rR]|-[A-Za-z]*d|--(?:dereference-)?rec|--dir", word) for word in words)
    return name == "git" and "--no-index" in words


def contains_home(root: str) -> bool:
    """True if a directory is a home or lies above one."""
    return root in _ABOVE or root in {"/home", "/Users", "/export/home"} or _HOME_DIRECTORY.fullmatch(root) is not None


def _reads(argv: Argv) -> bool:
    return bool(argv) and (argv[0] is None or not entry_of(program_name(argv[0])).shows_names or looks_into_files(argv))


def _moved(
    argv: Argv, directories: Sequence[str], places: Sequence[Place], root: str, *, only_names: bool
) -> list[str] | None:
    """Return the new directories in which later commands may be after a `cd`, or None if not certain or outside."""
    target = argv[1] if len(argv) == 2 and argv[0] == "cd" else None
    # behind a link, the shell resolves `..` by the path that it remembers, other programs by the real one
    if not target or target.startswith(("-", "~")) or (places and ".." in target.split("/")):
        return None
    # above its start, the shell may remember another path than the real one
    if posixpath.normpath(target).startswith("..") or len(directories) > 7:
        return None
    real = [place.path for place in places]
    real += [
        posixpath.normpath(posixpath.join(directory, target))
        for directory in directories
        if not places or len(directories) > 1
    ]
    # the sandbox shows packages, and for names alone, none is needed: `cd /tmp && ls`
    is_public = only_names or all(_PUBLIC_TREES.fullmatch(path) for path in real)
    open_to_all = target.startswith("/") and is_public and not any(_is_private(path, root) for path in real)
    if not open_to_all and not all(_is_inside(path, root) for path in real):
        return None
    if any(place.kind != "directory" for place in places):
        return None
    return [path for path in real if path not in directories]


def _leads_away(argv: Argv, directories: Sequence[str], places: Sequence[Place], root: str) -> bool:
    if any(place.kind == "own" or names_secret(place.path) for place in places):
        return True
    if not _reads(argv):
        return False
    through_trees = searches_trees(argv)
    if through_trees and not all(_is_searchable(path, root) for path in directories[1:]):
        return True
    if any(
        place.kind in {"other", "process", "above-own"}
        or _is_private(place.path, root)
        or (through_trees and not _is_searchable(place.path, root))
        for place in places
        if not _DEVICES_OF_ALL.fullmatch(place.path)
    ):
        return True
    if through_trees and any(not _is_searchable(path, root) for path in _named(named_words(argv), directories) if path):
        return True
    return any(path is None or _is_private(path, root) for path in _named(named_words(argv), directories))


def _named(words: Argv, directories: Sequence[str]) -> Iterator[str | None]:
    """Yield the paths that words name by their text; None for an unknown word."""
    for word in words:
        if word is None:
            yield None
            continue
        for part in possible_paths(word):
            if part.startswith("/"):
                yield posixpath.normpath(part)
            elif ".." in part.split("/"):
                yield from (posixpath.normpath(posixpath.join(directory, part)) for directory in directories)


def _is_searchable(path: str, root: str) -> bool:
    return _is_inside(path, root) or _PUBLIC_TREES.fullmatch(path) is not None


def _is_inside(path: str, root: str) -> bool:
    return bool(root) and (path == root or path.startswith(root.rstrip("/") + "/"))


def _is_private(path: str, root: str) -> bool:
    path = posixpath.normpath(path)
    if _is_inside(path, root):
        return False
    return path in _ABOVE or any(each.fullmatch(path) for each in (_PRIVATE, _DEVICES, _KERNEL))
