"""Programs that run others by words of their own: `find -exec`, containers, terminal multiplexers, `nix`, `ansible`."""

from collections.abc import Callable

from whisper_tui.policy.commands.argv import (
    Argv,
    Unwrapped,
    parse_options,
    program_name,
    unwrap_git,
)
from whisper_tui.policy.commands.readings import find_words, read_words
from whisper_tui.programs.entries import ProgramEntry, entry_of


def unwrap_container(argv: tuple[str | None, ...]) -> Unwrapped | None:
    """Return the command that docker, podman, kubectl and the like run inside, if one is given."""
    at = _container_verb(argv)
    if at is None:
        return None
    verb = argv[at]
    # for these two, `run NAME` takes an image and its command stands behind `--`
    cluster = entry_of(program_name(argv[0] or "")).place == "a pod of the cluster"
    if cluster:
        return _pod(argv, at)
    inner = _inside(argv, at + 1, entry_of("docker", verb or ""))
    return inner if inner is None else Unwrapped(commands=(inner,)) if inner else _unknown()


def _container_verb(argv: Argv) -> int | None:
    """Return the index of `exec` or `run`, in whichever reading of the options before it. None: it is neither."""
    parsed = parse_options(argv, 1, entry_of(program_name(argv[0] or "")))
    read = read_words(argv, 1 if parsed is None else parsed.rest)
    ways = ((*group, verb) for group in ((), ("compose",), ("container",)) for verb in ("exec", "run"))
    return next((found[-1] for way in ways if (found := find_words(read, way)) is not None), None)


def _unknown() -> Unwrapped:
    return Unwrapped(opaque="unknown options come before the container's command")


def _inside(argv: tuple[str | None, ...], start: int, entry: ProgramEntry) -> tuple[str | None, ...] | None:
    """Return the command after options and container. Empty if that is not certain, None if there is none."""
    parsed = parse_options(argv, start, entry)
    if parsed is None:
        return ()
    return argv[parsed.rest + 1 :] or None


def _pod(argv: tuple[str | None, ...], at: int) -> Unwrapped | None:
    if "--" in argv[at:]:
        behind = argv[argv.index("--", at) + 1 :]
        return Unwrapped(commands=(behind,)) if behind else None
    inner = _inside(argv, at + 1, entry_of("kubectl", "exec"))
    return None if inner is None else Unwrapped(commands=(inner,)) if inner else _unknown()


_WINDOWS = ("new-session", "new-window", "split-window", "respawn-window", "respawn-pane", "display-popup")
_TEXTS = {"run-shell": (0,), "if-shell": (0,), "pipe-pane": (0,)}
"""Commands of tmux whose operands at these indices are shell text."""

_ALIASES = {
    "new": "new-session", "neww": "new-window", "splitw": "split-window", "respawnw": "respawn-window",
    "respawnp": "respawn-pane", "popup": "display-popup", "run": "run-shell", "if": "if-shell", "pipep": "pipe-pane",
    "send": "send-keys", "pasteb": "paste-buffer",
}  # fmt: skip
_TYPES = ("send-keys", "paste-buffer")


def tmux_command(word: str) -> str:
    """Return the tmux command that a word means: an alias or the beginning of a name."""
    if word in _ALIASES:
        return _ALIASES[word]
    known_names = (*_WINDOWS, *_TEXTS, *_TYPES)
    # tmux accepts unambiguous beginnings; shorter ones are ambiguous
    return next((name for name in known_names if len(word) > 2 and name.startswith(word)), word)


def tmux_commands(argv: Argv) -> list[tuple[int, Argv]] | None:
    """Return the tmux commands of an argv, separated by `;`, each with its index, or None for unknown options."""
    parsed = parse_options(argv, 1, entry_of("tmux"))
    if parsed is None:
        return None
    found: list[tuple[int, Argv]] = []
    start = at = parsed.rest
    for at, word in enumerate(argv[parsed.rest :], start=parsed.rest):
        # tmux splits its arguments at `;`, also at the end of a word
        if word is not None and word.endswith(";"):
            last = () if word == ";" else (word[:-1],)
            found.append((start, (*argv[start:at], *last)))
            start = at + 1
    found.append((start, argv[start:]))
    return [(index, words) for index, words in found if words]


def tmux(argv: Argv) -> Unwrapped | None:
    """Return the commands that tmux starts in windows, and the shell texts among them."""
    parsed = parse_options(argv, 1, entry_of("tmux"))
    if parsed is None:
        return Unwrapped(opaque="the options of tmux are not known well enough to say what it runs")
    commands: list[Argv] = []
    texts: list[str | None] = [parsed.value("-c")] if parsed.has("-c") else []
    for _, words in tmux_commands(argv) or ():
        name = tmux_command(words[0] or "")
        if name in _WINDOWS:
            behind = parse_options(words, 1, entry_of("tmux", name))
            if behind is None:
                return Unwrapped(opaque=f"the options of tmux {name} are not known well enough to say what it runs")
            rest = words[behind.rest :]
            if len(rest) == 1:
                # tmux gives a single argument to a shell and executes several as they are
                texts.append(rest[0])
            elif rest:
                commands.append(rest)
        elif name in _TEXTS:
            places = _TEXTS[name]
            behind = parse_options(words, 1, entry_of("tmux", name))
            if behind is None:
                return Unwrapped(opaque=f"the options of tmux {name} are not known well enough to say what it runs")
            texts += [words[behind.rest + place] for place in places if behind.rest + place < len(words)]
    sure = tuple(text for text in texts if text is not None)
    opaque = None if len(sure) == len(texts) else "a text that tmux gives to a shell is not known before it runs"
    return (
        Unwrapped(commands=tuple(commands), texts=sure, opaque=opaque, has_own_effect=True)
        if commands or texts
        else None
    )


def screen(argv: Argv) -> Unwrapped | None:
    """`screen -dmS NAME CMD`; `-X` commands a running screen instead."""
    parsed = parse_options(argv, 1, entry_of("screen"))
    if parsed is None:
        return (
            None
            if "-X" in argv
            else Unwrapped(opaque="the options of screen are not known well enough to say what it runs")
        )
    rest = argv[parsed.rest :]
    return Unwrapped(commands=(rest,), has_own_effect=True) if rest and not parsed.has("-x", "-r") else None


def _eval(argv: Argv) -> Unwrapped | None:
    words = argv[2:] if argv[1:2] == ("--",) else argv[1:]
    if not words:
        return None
    if None in words:
        return Unwrapped(opaque="the text that eval runs is not known before it runs")
    return Unwrapped(texts=(" ".join(word or "" for word in words),))


def _trap(argv: Argv) -> Unwrapped | None:
    words = argv[2:] if argv[1:2] == ("--",) else argv[1:]
    if len(words) < 2 or words[0] in {"", "-", "-l", "-p"}:
        return None
    return Unwrapped(opaque="what trap runs is not known") if words[0] is None else Unwrapped(texts=(words[0],))


def _find(argv: Argv) -> Unwrapped | None:
    commands: list[Argv] = []
    at = 1
    while at < len(argv):
        if argv[at] in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = at + 1
            # `+` ends the command only right behind `{}`; elsewhere it is an argument
            while end < len(argv) and argv[end] != ";" and not (argv[end] == "+" and argv[end - 1] == "{}"):
                end += 1
            if end > at + 1:
                commands.append(argv[at + 1 : end])
            at = end
        at += 1
    return Unwrapped(commands=tuple(commands), has_own_effect=True) if commands else None


def _fd(argv: Argv) -> Unwrapped | None:
    for at, word in enumerate(argv):
        if at == 0 or word is None:
            continue
        if word.startswith(("--exec=", "--exec-batch=")):
            first: Argv = (word.partition("=")[2],)
        elif word in {"--exec", "--exec-batch"}:
            first = ()
        elif word.startswith("-") and not word.startswith("--") and (flag := _fd_flag(word)) is not None:
            first = (word[flag + 1 :].removeprefix("="),) if word[flag + 1 :] else ()
        else:
            continue
        rest = argv[at + 1 :]
        command = (*first, *(rest[: rest.index(";")] if ";" in rest else rest))
        return Unwrapped(commands=(command,), has_own_effect=True) if command else None
    return None


def _fd_flag(word: str) -> int | None:
    """Return the index of `-x` or `-X` among bundled letters, if it is an option there."""
    for index, letter in enumerate(word[1:], start=1):
        if letter in "xX":
            return index
        # the rest of the word is the value of this letter, not further letters
        if letter in "dtecEoSj":
            return None
    return None


def _parallel(argv: Argv) -> Unwrapped | None:
    at = 1
    while at < len(argv) and (argv[at] or "-").startswith("-"):
        word = argv[at]
        if word is None:
            return Unwrapped(opaque="what parallel runs is not known before it runs")
        at += 2 if word in {"-j", "--jobs", "-N", "-n", "-a", "-I", "-d", "-S", "--delay", "--timeout"} else 1
    end = next((index for index in range(at, len(argv)) if (argv[index] or "").startswith(":::")), len(argv))
    rest = argv[at:end]
    if not rest:
        return Unwrapped(opaque="parallel runs the commands of its input")
    # GNU parallel always runs a shell, and a single word may hold a whole pipeline
    if len(rest) == 1 and rest[0] is not None:
        return Unwrapped(texts=(rest[0],))
    return Unwrapped(commands=(rest,))


def _command_prompt(argv: Argv) -> Unwrapped | None:
    for at, word in enumerate(argv[1:], start=1):
        if (word or "").lower() in {"/c", "/k"} and at + 1 < len(argv):
            return Unwrapped(commands=(argv[at + 1 :],))
    return None


def _behind_option(names: frozenset[str]) -> Callable[[Argv], Unwrapped | None]:
    """Unwrap a command that begins right after an option."""

    def peel(argv: Argv) -> Unwrapped | None:
        at = next((index for index, word in enumerate(argv) if index and word in names), None)
        return None if at is None or at + 1 >= len(argv) else Unwrapped(commands=(argv[at + 1 :],), has_own_effect=True)

    return peel


def _text_behind(*names: str) -> Callable[[Argv], Unwrapped | None]:
    """Unwrap shell text that is the value of an option anywhere."""

    def peel(argv: Argv) -> Unwrapped | None:
        texts: list[str] = []
        for at, word in enumerate(argv):
            if word in names and at + 1 < len(argv):
                value = argv[at + 1]
            elif word is not None and word.startswith(tuple(name + "=" for name in names)):
                value = word.partition("=")[2]
            else:
                continue
            if value is None:
                return Unwrapped(
                    opaque="the text that it gives to a shell is not known before it runs", has_own_effect=True
                )
            texts.append(value)
        return Unwrapped(texts=tuple(texts), has_own_effect=True) if texts else None

    return peel


def _nix(argv: Argv) -> Unwrapped | None:
    """`nix shell|develop … -c CMD` and `nix run FLAKE#NAME -- ARGS`."""
    if "run" in argv[1:] and "-c" not in argv and "--command" not in argv:
        at = argv.index("run", 1)
        operand = next((index for index in range(at + 1, len(argv)) if not (argv[index] or "").startswith("-")), None)
        if operand is None or argv[operand] is None:
            return None
        rest = argv[operand + 1 :]
        # the program of a package usually has its name
        name = (argv[operand] or "").rpartition("#")[2].rpartition(".")[2].rpartition(":")[2]
        return Unwrapped(commands=((name, *(rest[1:] if rest[:1] == ("--",) else rest)),), has_own_effect=True)
    return _behind_option(frozenset({"-c", "--command"}))(argv)


def _mise(argv: Argv) -> Unwrapped | None:
    """`mise exec [TOOL@VERSION]… -- CMD` or `-c TEXT`."""
    verb = next((at for at, word in enumerate(argv[1:], start=1) if word in {"exec", "x"}), None)
    if verb is None:
        return None
    if (text := _text_behind("-c", "--command")(argv[verb:])) is not None and "--" not in argv[verb:]:
        return text
    if "--" not in argv[verb:]:
        return Unwrapped(opaque="mise may read its arguments as tools or as a command", runner=verb)
    behind = argv[argv.index("--", verb) + 1 :]
    return Unwrapped(commands=(behind,), runner=verb) if behind else None


def _arch(argv: Argv) -> Unwrapped | None:
    """`arch -arm64 CMD` of macOS."""
    at = 1
    while at < len(argv) and (argv[at] or "").startswith("-"):
        at += 2 if argv[at] in {"-arch", "-e", "-d"} else 1
    return Unwrapped(commands=(argv[at:],)) if at < len(argv) else None


def _coreutils(argv: Argv) -> Unwrapped | None:
    """`coreutils --coreutils-prog=NAME ARGS`, and NAME as its first word."""
    for at, word in enumerate(argv[1:], start=1):
        if word is not None and word.startswith(("--coreutils-prog=", "--coreutils-prog-shebang=")):
            return Unwrapped(commands=((word.partition("=")[2], *argv[at + 1 :]),))
        if word is not None and not word.startswith("-"):
            return Unwrapped(commands=(argv[at:],))
    return None


def _daemon(argv: Argv) -> Unwrapped | None:
    """`start-stop-daemon --start --exec PROGRAM -- ARGS`."""
    program: str | None = None
    end = argv.index("--") if "--" in argv else len(argv)
    for at, word in enumerate(argv[:end]):
        if word is None or not at:
            continue
        if word in {"-x", "--exec", "-a", "--startas"} and at + 1 < end:
            program = argv[at + 1] if program is None or word in {"-a", "--startas"} else program
        elif word.startswith(("--exec=", "--startas=")):
            program = word.partition("=")[2]
    return None if program is None else Unwrapped(commands=((program, *argv[end + 1 :]),), has_own_effect=True)


def _capsh(argv: Argv) -> Unwrapped | None:
    """`capsh … -- ARGS` starts bash with them."""
    return Unwrapped(commands=(("bash", *argv[argv.index("--") + 1 :]),), has_own_effect=True) if "--" in argv else None


def _salt(argv: Argv) -> Unwrapped | None:
    """`salt TARGET cmd.run TEXT`."""
    for at, word in enumerate(argv[1:], start=1):
        if word is not None and word.startswith(("cmd.", "cmdmod.")) and at + 1 < len(argv):
            text = argv[at + 1]
            return (
                Unwrapped(opaque="what it runs is not known before it runs")
                if text is None
                else Unwrapped(texts=(text,), has_own_effect=True)
            )
    return None


def _dotenv(argv: Argv) -> Unwrapped | None:
    """`dotenv [-f FILE] [run] [--] CMD`."""
    parsed = parse_options(
        # three programs of this name differ in `-q`, so a `-q` makes the rest unknown
        argv,
        1,
        entry_of("dotenv"),
    )
    if parsed is None:
        return Unwrapped(opaque="the options of dotenv are not known well enough to say what it runs")
    at = parsed.rest
    if argv[at : at + 1] == ("run",):
        behind = parse_options(argv, at + 1, entry_of("dotenv", "run"))
        if behind is None:
            return Unwrapped(opaque="the options of dotenv are not known well enough to say what it runs")
        at = behind.rest
    return Unwrapped(commands=(argv[at:],), runner=at - 1) if at < len(argv) else None


def _flatpak(argv: Argv) -> Unwrapped | None:
    """`flatpak run --command=CMD APP ARGS`."""
    if "run" not in argv[1:]:
        return None
    at = argv.index("run", 1)
    command: str | None = None
    for index in range(at + 1, len(argv)):
        word = argv[index]
        if word is not None and word.startswith("--command="):
            command = word.partition("=")[2]
        elif word is not None and not word.startswith("-"):
            return Unwrapped(commands=((command, *argv[index + 1 :]),), has_own_effect=True) if command else None
    return None


def _windows_of(argv: Argv) -> Unwrapped | None:
    """Terminals: `xterm -e CMD`, `gnome-terminal -- CMD`."""
    return _behind_option(frozenset({"-e", "-x", "--", "--command", "--execute"}))(argv)


SPECIAL: dict[str, Callable[[Argv], Unwrapped | None]] = {
    "eval": _eval,
    "trap": _trap,
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "fdfind": _fd,
    "parallel": _parallel,
    "cmd": _command_prompt,
    "git": unwrap_git,
    "docker": unwrap_container,
    "podman": unwrap_container,
    "nerdctl": unwrap_container,
    "docker-compose": unwrap_container,
    "kubectl": unwrap_container,
    "oc": unwrap_container,
    "lxc": unwrap_container,
    "nix": _nix,
    "nix-shell": _text_behind("--run", "--command"),
    "mise": _mise,
    "rtx": _mise,
    "arch": _arch,
    "coreutils": _coreutils,
    "start-stop-daemon": _daemon,
    "capsh": _capsh,
    "salt": _salt,
    "salt-call": _salt,
    "salt-ssh": _salt,
    "ansible": _text_behind("-a", "--args"),
    "dotenv": _dotenv,
    "flatpak": _flatpak,
    "tmux": tmux,
    "screen": screen,
    "gcloud": _text_behind("--command"),
    "fly": _text_behind("-C", "--command"),
    "flyctl": _text_behind("-C", "--command"),
    "nodemon": _text_behind("-x", "--exec"),
    "just": _behind_option(frozenset({"-c", "--command"})),
    "gdb": _behind_option(frozenset({"--args", "-args"})),
    "lldb": _behind_option(frozenset({"--"})),
    **dict.fromkeys("xterm uxterm urxvt rxvt st kitty alacritty foot konsole xfce4-terminal gnome-terminal "
                    "x-terminal-emulator terminator tilix mate-terminal lxterminal".split(), _windows_of),
}  # fmt: skip
"""By program name."""
