"""Running code that the command does not show, or that is hidden in its arguments."""

import re

from whisper_tui.policy.dangers.finding import Danger, Words, before_end_of_options, letters, long_option, operands
from whisper_tui.policy.environment import changes_what_runs
from whisper_tui.policy.scripts.awk import awk_acts

CODE_OPTIONS = {
    "python": ("c", ()),
    "perl": ("eE", ()),
    "ruby": ("e", ()),
    "php": ("rBER", ("run",)),
    "lua": ("e", ()),
    "node": ("ep", ("eval", "print")),
    "nodejs": ("ep", ("eval", "print")),
    "bun": ("ep", ("eval", "print")),
    "deno": ("", ()),
    "expect": ("c", ()),
    "osascript": ("e", ()),
    "tclsh": ("c", ()),
    "Rscript": ("e", ()),
    "julia": ("eE", ("eval", "print")),
    "elixir": ("e", ("eval",)),
    "groovy": ("e", ()),
    "pwsh": ("cC", ("command",)),
    "powershell": ("cC", ("command",)),
    "jshell": ("", ()),
    "ghc": ("e", ()),
}
"""Interpreters, and the options that take code: letters and long names."""

_INTERPRETER = re.compile(r"(python|perl|ruby|php|lua|node|pypy|luajit|tclsh)[\d.]*w?\Z")

_RUNNING_OPTIONS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "rg": ("z", ("pre", "hostname-bin", "search-zip"), "efgtTmABCMEjd"),
    "man": ("PHC", ("html", "pager", "config-file", "browser", "preprocessor"), "LMPrSseRETpHC"),
    "tar": ("IF", ("checkpoint-action", "use-compress-program", "to-command", "info-script", "new-volume-script",
                   "rsh-command", "rmt-command"), "fCTXIFbgHKLNV"),
    "rsync": ("e", ("rsh", "rsync-path"), "eBfMT"),
    "scp": ("SoFD", (), "cDFiJloPSX"),
    "sftp": ("SoFDbs", (), "BbcDFiJloPRSsX"),
    "ssh": ("oFDJLRWwEmSQ", (), "BbcDEeFIiJLlmOopQRSWw"),
    "go": ("", ("exec", "toolexec"), ""),
    "gcc": ("", (), ""),
    "make": ("", ("eval",), "CfIjloW"),
    "zip": ("T", ("unzip-command",), "bntTx"),
    "pip": ("", ("global-option", "install-option"), "rcef"),
    "crontab": ("er", (), "u"),
    "vim": ("cSsWw", ("cmd",), "cSsWwTtu"),
    "vi": ("cSsWw", ("cmd",), "cSsWwTtu"),
    "nvim": ("cSlsWw", ("cmd", "headless"), "cSsWwTtul"),
    "emacs": ("fl", ("eval", "execute", "funcall", "load"), "flu"),
    "less": ("", ("lesskey",), ""),
    "file": ("mfCM", ("magic-file", "files-from", "compile"), "mfFePM"),
    "diff": ("", ("to-file", "from-file"), "CUWILFxXDS"),
    "screen": ("X", (), "ceEhpsStT"),
    "gdb": ("ex", ("eval-command", "command", "init-command", "args"), "xdpc"),
    "code": ("", ("install-extension", "uninstall-extension", "extensionDevelopmentPath"), ""),
    "tcpdump": ("zw", (), "BcCDEFGirsTVwWyzZ"),
    "ip": ("b", ("batch",), "bfn"),
    "socat": ("", (), ""),
    "env": ("S", ("split-string",), "uCS"),
}  # fmt: skip
"""Options that run a program, load a configuration or a script: short letters, long names, letters with values."""


def interpreter(argv: Words, name: str) -> list[Danger]:
    """Code among the arguments of an interpreter."""
    match = _INTERPRETER.match(name)
    short, long = CODE_OPTIONS.get(name) or CODE_OPTIONS.get(match[1] if match else "", ("ce", ()))
    for index, word in enumerate(argv[1:], start=1):
        if word is None:
            continue
        if not word.startswith("-") or word == "-":
            code = word in {"eval", "-"}
            return [Danger("runs-other-code", "It runs code that is not in a file", index)] if code else []
        bundle = letters(word)
        if any(letter in short for letter in bundle) or (long and long_option(word, *long)):
            return [Danger("runs-other-code", "It runs the code that stands in its arguments", index)]
    return []


def is_interpreter(name: str) -> bool:
    """Whether a program runs programs."""
    return name in CODE_OPTIONS or _INTERPRETER.match(name) is not None


def running_options(argv: Words, name: str) -> list[Danger]:
    """Options with which a harmless program runs another one."""
    short, long, valued = _RUNNING_OPTIONS[name]
    for index, word in before_end_of_options(argv):
        if word.startswith("--"):
            if long_option(word, *long):
                return [
                    Danger("runs-other-code", f"{word.partition('=')[0]} lets {name} run or load something else", index)
                ]
        elif any(letter in short for letter in letters(word, valued)) or (
            name in {"go"} and word.lstrip("-").split("=")[0] in long
        ):
            return [Danger("runs-other-code", f"{word} lets {name} run or load something else", index)]
    return []


def has_running_options(name: str) -> bool:
    """Whether options of a program are known that run another one."""
    return name in _RUNNING_OPTIONS


def awk(argv: Words) -> list[Danger]:
    """awk: scripts from files, extensions, and scripts that write or run."""
    skip = False
    for index, word in before_end_of_options(argv):
        if skip:
            skip = False
            continue
        bundle = letters(word, "Fvfil")
        if set(bundle) & set("filDEoOdp") or long_option(word, "file", "include", "load", "exec", "source"):
            return [Danger("runs-other-code", f"{word} makes awk read or write other files", index)]
        skip = word in {"-F", "-v"}
    for index, word in _awk_script(argv):
        if awk_acts(word):
            return [Danger("runs-other-code", "Its script may write files or run commands", index)]
    return []


def _awk_script(argv: Words) -> list[tuple[int, str]]:
    skip = False
    for index, word in enumerate(argv[1:], start=1):
        if skip:
            skip = False
        elif word in {"-F", "-v"}:
            skip = True
        elif word is not None and (not word.startswith("-") or word == "-"):
            return [(index, word)]
    return []


def builtin_code(argv: Words, name: str) -> list[Danger]:
    """Builtins of the shell that run text or change what later commands mean."""
    if name in {"source", "."}:
        return [Danger("opaque", "It runs the script of a file", min(1, len(argv) - 1))]
    if name in {"export", "declare", "typeset", "readonly", "local", "set", "shopt", "enable", "alias", "hash", "trap"}:
        for index, word in enumerate(argv[1:], start=1):
            if word is not None and changes_what_runs(word.partition("=")[0]):
                return [Danger("changes-what-runs", f"{word.partition('=')[0]} changes what later commands run", index)]
        if name in {"enable", "alias", "hash"} and len(argv) > 1:
            return [Danger("changes-what-runs", f"{name} changes what a name means", 1)]
    if name in {"complete", "compgen", "bind"}:
        return [Danger("changes-what-runs", f"{name} makes the shell run something later", min(1, len(argv) - 1))]
    if name == "ulimit" and operands(argv):
        return [Danger("changes-what-runs", "It limits what everything after it may use", 1)]
    if name == "command" and len(argv) > 1 and argv[1] == "-p":
        return [Danger("changes-what-runs", "It looks for programs elsewhere", 1)]
    return []
