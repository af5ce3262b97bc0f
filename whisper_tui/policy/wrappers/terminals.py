"""Terminal multiplexers: what tmux and screen run in their windows, and what they type into them."""

from whisper_tui.policy.wrappers.options import Options, known, parse
from whisper_tui.policy.wrappers.peeled import Argv, Peeled

_TMUX = known("2CDlNuvV", "cfLST")
_SCREEN = known("aADdilmnOqRrUvxwL", "cefhpsStT")

_WINDOWS: dict[str, Options] = {
    "new-session": known("AdDEPX", "cefFnstxy"),
    "new-window": known("abdkPS", "ceFnt"),
    "split-window": known("bdefhIvPZ", "celptF"),
    "respawn-window": known("k", "cet"),
    "respawn-pane": known("k", "cet"),
    "display-popup": known("BCEkN", "bcdehsStTwxy"),
}
_TEXTS: dict[str, tuple[Options, tuple[int, ...]]] = {
    "run-shell": (known("bCE", "cdt"), (0,)),
    "if-shell": (known("bF", "t"), (0,)),
    "pipe-pane": (known("IOo", "t"), (0,)),
}
"""Commands of tmux whose words at these places are text for a shell."""

_ALIASES = {
    "new": "new-session", "neww": "new-window", "splitw": "split-window", "respawnw": "respawn-window",
    "respawnp": "respawn-pane", "popup": "display-popup", "run": "run-shell", "if": "if-shell", "pipep": "pipe-pane",
    "send": "send-keys", "pasteb": "paste-buffer",
}  # fmt: skip
_TYPES = ("send-keys", "paste-buffer")


def tmux_command(word: str) -> str:
    """The command of tmux that a word means: an alias, or the beginning of a name."""
    if word in _ALIASES:
        return _ALIASES[word]
    known_names = (*_WINDOWS, *_TEXTS, *_TYPES)
    return next((name for name in known_names if len(word) > 2 and name.startswith(word)), word)


def tmux_commands(argv: Argv) -> list[tuple[int, Argv]] | None:
    """The commands of one call, which `;` separates, each with its index. None: its options are not known."""
    parsed = parse(argv, 1, _TMUX)
    if parsed is None:
        return None
    found: list[tuple[int, Argv]] = []
    start = at = parsed.rest
    for at, word in enumerate(argv[parsed.rest :], start=parsed.rest):
        if word is not None and word.endswith(";"):
            last = () if word == ";" else (word[:-1],)
            found.append((start, (*argv[start:at], *last)))
            start = at + 1
    found.append((start, argv[start:]))
    return [(index, words) for index, words in found if words]


def tmux(argv: Argv) -> Peeled | None:
    """What tmux runs: a single word is text for a shell, several are a command."""
    parsed = parse(argv, 1, _TMUX)
    if parsed is None:
        return Peeled(opaque="the options of tmux are not known well enough to say what it runs")
    commands: list[Argv] = []
    texts: list[str | None] = [parsed.value("-c")] if parsed.has("-c") else []
    for _, words in tmux_commands(argv) or ():
        name = tmux_command(words[0] or "")
        if name in _WINDOWS:
            behind = parse(words, 1, _WINDOWS[name])
            if behind is None:
                return Peeled(opaque=f"the options of tmux {name} are not known well enough to say what it runs")
            rest = words[behind.rest :]
            if len(rest) == 1:
                texts.append(rest[0])
            elif rest:
                commands.append(rest)
        elif name in _TEXTS:
            options, places = _TEXTS[name]
            behind = parse(words, 1, options)
            if behind is None:
                return Peeled(opaque=f"the options of tmux {name} are not known well enough to say what it runs")
            texts += [words[behind.rest + place] for place in places if behind.rest + place < len(words)]
    sure = tuple(text for text in texts if text is not None)
    opaque = None if len(sure) == len(texts) else "a text that tmux gives to a shell is only known when it runs"
    return Peeled(commands=tuple(commands), texts=sure, opaque=opaque, stays=True) if commands or texts else None


def screen(argv: Argv) -> Peeled | None:
    """`screen -dmS NAME CMD`; with -X it gives orders to a screen that runs already."""
    parsed = parse(argv, 1, _SCREEN)
    if parsed is None:
        return (
            None
            if "-X" in argv
            else Peeled(opaque="the options of screen are not known well enough to say what it runs")
        )
    rest = argv[parsed.rest :]
    return Peeled(commands=(rest,), stays=True) if rest and not parsed.has("-x", "-r") else None
