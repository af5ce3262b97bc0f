"""Programs that run others by words of their own: `find -exec`, `nix shell -c`, `ansible -a` and the like."""

from collections.abc import Callable

from whisper_tui.policy.wrappers.containers import container_command
from whisper_tui.policy.wrappers.git_aliases import git_alias
from whisper_tui.policy.wrappers.options import known, parse
from whisper_tui.policy.wrappers.peeled import Argv, Peeled
from whisper_tui.policy.wrappers.terminals import screen, tmux


def _eval(argv: Argv) -> Peeled | None:
    words = argv[2:] if argv[1:2] == ("--",) else argv[1:]
    if not words:
        return None
    if None in words:
        return Peeled(opaque="the text that eval runs is only known when it runs")
    return Peeled(texts=(" ".join(word or "" for word in words),))


def _trap(argv: Argv) -> Peeled | None:
    words = argv[2:] if argv[1:2] == ("--",) else argv[1:]
    if len(words) < 2 or words[0] in {"", "-", "-l", "-p"}:
        return None
    return Peeled(opaque="what trap runs is not known") if words[0] is None else Peeled(texts=(words[0],))


def _find(argv: Argv) -> Peeled | None:
    commands: list[Argv] = []
    at = 1
    while at < len(argv):
        if argv[at] in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = at + 1
            while end < len(argv) and argv[end] != ";" and not (argv[end] == "+" and argv[end - 1] == "{}"):
                end += 1
            if end > at + 1:
                commands.append(argv[at + 1 : end])
            at = end
        at += 1
    return Peeled(commands=tuple(commands), stays=True) if commands else None


def _fd(argv: Argv) -> Peeled | None:
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
        return Peeled(commands=(command,), stays=True) if command else None
    return None


def _fd_flag(word: str) -> int | None:
    """Index of `-x` or `-X` among bundled letters; what follows a letter with a value is its value."""
    for index, letter in enumerate(word[1:], start=1):
        if letter in "xX":
            return index
        if letter in "dtecEoSj":
            return None
    return None


def _parallel(argv: Argv) -> Peeled | None:
    at = 1
    while at < len(argv) and (argv[at] or "-").startswith("-"):
        word = argv[at]
        if word is None:
            return Peeled(opaque="what parallel runs is only known when it runs")
        at += 2 if word in {"-j", "--jobs", "-N", "-n", "-a", "-I", "-d", "-S", "--delay", "--timeout"} else 1
    end = next((index for index in range(at, len(argv)) if (argv[index] or "").startswith(":::")), len(argv))
    rest = argv[at:end]
    if not rest:
        return Peeled(opaque="parallel runs the commands of its input")
    if len(rest) == 1 and rest[0] is not None:
        return Peeled(texts=(rest[0],))
    return Peeled(commands=(rest,))


def _command_prompt(argv: Argv) -> Peeled | None:
    for at, word in enumerate(argv[1:], start=1):
        if (word or "").lower() in {"/c", "/k"} and at + 1 < len(argv):
            return Peeled(commands=(argv[at + 1 :],))
    return None


def _behind_option(names: frozenset[str]) -> Callable[[Argv], Peeled | None]:
    """A command that begins right behind an option, whatever stands before it."""

    def peel(argv: Argv) -> Peeled | None:
        at = next((index for index, word in enumerate(argv) if index and word in names), None)
        return None if at is None or at + 1 >= len(argv) else Peeled(commands=(argv[at + 1 :],), stays=True)

    return peel


def _text_behind(*names: str) -> Callable[[Argv], Peeled | None]:
    """Text for a shell, as the value of an option that may stand anywhere."""

    def peel(argv: Argv) -> Peeled | None:
        texts: list[str] = []
        for at, word in enumerate(argv):
            if word in names and at + 1 < len(argv):
                value = argv[at + 1]
            elif word is not None and word.startswith(tuple(name + "=" for name in names)):
                value = word.partition("=")[2]
            else:
                continue
            if value is None:
                return Peeled(opaque="the text that it gives to a shell is only known when it runs", stays=True)
            texts.append(value)
        return Peeled(texts=tuple(texts), stays=True) if texts else None

    return peel


def _nix(argv: Argv) -> Peeled | None:
    """`nix shell|develop … -c CMD` and `nix run FLAKE#NAME -- ARGS`, whose program is called like the package."""
    if "run" in argv[1:] and "-c" not in argv and "--command" not in argv:
        at = argv.index("run", 1)
        operand = next((index for index in range(at + 1, len(argv)) if not (argv[index] or "").startswith("-")), None)
        if operand is None or argv[operand] is None:
            return None
        rest = argv[operand + 1 :]
        name = (argv[operand] or "").rpartition("#")[2].rpartition(".")[2].rpartition(":")[2]
        return Peeled(commands=((name, *(rest[1:] if rest[:1] == ("--",) else rest)),), stays=True)
    return _behind_option(frozenset({"-c", "--command"}))(argv)


def _mise(argv: Argv) -> Peeled | None:
    """`mise exec [TOOL@VERSION]… -- CMD` or `-c TEXT`."""
    verb = next((at for at, word in enumerate(argv[1:], start=1) if word in {"exec", "x"}), None)
    if verb is None:
        return None
    if (text := _text_behind("-c", "--command")(argv[verb:])) is not None and "--" not in argv[verb:]:
        return text
    if "--" not in argv[verb:]:
        return Peeled(opaque="it is not certain which of its words are tools and which are the command", runner=verb)
    behind = argv[argv.index("--", verb) + 1 :]
    return Peeled(commands=(behind,), runner=verb) if behind else None


def _arch(argv: Argv) -> Peeled | None:
    """`arch -arm64 CMD`, as macOS has it."""
    at = 1
    while at < len(argv) and (argv[at] or "").startswith("-"):
        at += 2 if argv[at] in {"-arch", "-e", "-d"} else 1
    return Peeled(commands=(argv[at:],)) if at < len(argv) else None


def _coreutils(argv: Argv) -> Peeled | None:
    """`coreutils --coreutils-prog=NAME ARGS`, and NAME as its first word."""
    for at, word in enumerate(argv[1:], start=1):
        if word is not None and word.startswith(("--coreutils-prog=", "--coreutils-prog-shebang=")):
            return Peeled(commands=((word.partition("=")[2], *argv[at + 1 :]),))
        if word is not None and not word.startswith("-"):
            return Peeled(commands=(argv[at:],))
    return None


def _daemon(argv: Argv) -> Peeled | None:
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
    return None if program is None else Peeled(commands=((program, *argv[end + 1 :]),), stays=True)


def _capsh(argv: Argv) -> Peeled | None:
    """`capsh … -- ARGS` starts bash with them."""
    return Peeled(commands=(("bash", *argv[argv.index("--") + 1 :]),), stays=True) if "--" in argv else None


def _salt(argv: Argv) -> Peeled | None:
    """`salt TARGET cmd.run TEXT`."""
    for at, word in enumerate(argv[1:], start=1):
        if word is not None and word.startswith(("cmd.", "cmdmod.")) and at + 1 < len(argv):
            text = argv[at + 1]
            return (
                Peeled(opaque="what it runs is only known then") if text is None else Peeled(texts=(text,), stays=True)
            )
    return None


def _dotenv(argv: Argv) -> Peeled | None:
    """`dotenv [-f FILE] [run] [--] CMD`: three programs of this name, whose options differ in `-q`."""
    parsed = parse(argv, 1, known("o", "efvcp", "override no-override overload help debug", "file export env"))
    if parsed is None:
        return Peeled(opaque="the options of dotenv are not known well enough to say what it runs")
    at = parsed.rest
    if argv[at : at + 1] == ("run",):
        behind = parse(argv, at + 1, known("", "", "override no-override"))
        if behind is None:
            return Peeled(opaque="the options of dotenv are not known well enough to say what it runs")
        at = behind.rest
    return Peeled(commands=(argv[at:],), runner=at - 1) if at < len(argv) else None


def _flatpak(argv: Argv) -> Peeled | None:
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
            return Peeled(commands=((command, *argv[index + 1 :]),), stays=True) if command else None
    return None


def _windows_of(argv: Argv) -> Peeled | None:
    """Terminals: `xterm -e CMD`, `gnome-terminal -- CMD`."""
    return _behind_option(frozenset({"-e", "-x", "--", "--command", "--execute"}))(argv)


SPECIAL: dict[str, Callable[[Argv], Peeled | None]] = {
    "eval": _eval,
    "trap": _trap,
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "fdfind": _fd,
    "parallel": _parallel,
    "cmd": _command_prompt,
    "git": git_alias,
    "docker": container_command,
    "podman": container_command,
    "nerdctl": container_command,
    "docker-compose": container_command,
    "kubectl": container_command,
    "oc": container_command,
    "lxc": container_command,
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
