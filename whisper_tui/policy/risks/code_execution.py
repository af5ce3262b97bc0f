"""Commands that run code from their arguments, from scripts, from other commands, or later in the shell."""

import itertools
import posixpath
import re
from collections.abc import Sequence

from whisper_tui.policy.commands.argv import (
    Danger,
    Words,
    before_end_of_options,
    letters,
    long_option,
    operands,
    program_name,
)
from whisper_tui.policy.commands.awk_sed_jq import awk_has_effects, sed_has_effects
from whisper_tui.policy.commands.readings import first_words
from whisper_tui.policy.commands.unwrap import InnerCommand
from whisper_tui.policy.commands.wrappers import RUNS_INPUT, changes_what_runs
from whisper_tui.policy.shell.syntax import Script, Word
from whisper_tui.programs.entries import entry_of

_VERSIONED = re.compile(r"(python|perl|ruby|php|lua|node|pypy|luajit|tclsh)[\d.]*w?\Z")


def _code_options(name: str) -> tuple[str, ...] | None:
    """The options of an interpreter that take code. None: it is no interpreter."""
    known = entry_of(name).code_options
    if known is not None or (match := _VERSIONED.match(name)) is None:
        return known
    return entry_of(match[1]).code_options or ("-c", "-e")


def interpreter(argv: Words, name: str) -> list[Danger]:
    """Code among the arguments of an interpreter."""
    known = _code_options(name) or ()
    short = {option[1] for option in known if not option.startswith("--")}
    long = [option[2:] for option in known if option.startswith("--")]
    for index, word in enumerate(argv[1:], start=1):
        if word is None:
            continue
        # the first operand is a script file: from here on, options are those of the script
        if not word.startswith("-") or word == "-":
            code = word in {"eval", "-"}
            return [Danger("runs-other-code", f"Runs code from its input (`{name} {word}`)", index)] if code else []
        bundle = letters(word)
        if any(letter in short for letter in bundle) or (long and long_option(word, *long)):
            return [Danger("runs-other-code", f"Runs inline code (`{name} {word.partition('=')[0][:16]}`)", index)]
    return []


def is_interpreter(name: str) -> bool:
    """True if a program is an interpreter."""
    return _code_options(name) is not None


def programs_of(argv: Words, name: str) -> list[tuple[int, str]]:
    """Return the program of a command, and the script or module that an interpreter runs, each with its index."""
    if not is_interpreter(name):
        return [(0, name)]
    # `python3 -m alembic downgrade`, `php artisan migrate:fresh`
    return [(0, name), *((at, program_name(word)) for at, word in first_words(argv))]


def awk(argv: Words) -> list[Danger]:
    """awk: scripts from files, extensions, and scripts that write or run commands."""
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
        if awk_has_effects(word):
            return [Danger("runs-other-code", "The awk script may write files or run commands", index)]
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


def sed(argv: Words) -> list[Danger]:
    """`sed`: in-place changes, and scripts that write or run commands."""
    found = []
    scripts: list[tuple[int, str]] = []
    at = 1
    while at < len(argv):
        word = argv[at]
        if word is None:
            at += 1
            continue
        bundle = letters(word, "efliI")
        # BSD sed also knows -I; both take an optional suffix, so the rest of the word is no option
        if "i" in bundle or "I" in bundle or long_option(word, "in-place"):
            found.append(Danger("writes-file", f"Changes files in place (`sed {word}`)", at))
        if "f" in bundle or long_option(word, "file"):
            found.append(Danger("runs-other-code", f"Runs a sed script from a file (`sed {word}`)", at))
        if "e" in bundle or long_option(word, "expression"):
            attached = word[len(bundle) + 1 :] if "e" in bundle else word.partition("=")[2]
            scripts.append((at, attached or (argv[at + 1] or "" if at + 1 < len(argv) else "")))
            # a script in the next word is no operand
            at += 0 if attached else 1
        at += 1
    if not scripts:
        scripts = operands(argv)[:1]
    found += [
        Danger("runs-other-code", "The sed script may write files or run commands", index)
        for index, script in scripts
        if sed_has_effects(script)
    ]
    return found


def builtin_code(argv: Words, name: str) -> list[Danger]:
    """Shell builtins that run text or change the meaning of later commands."""
    if name in {"source", "."}:
        return [Danger("opaque", "Runs a script from a file", min(1, len(argv) - 1))]
    if name in {"export", "declare", "typeset", "readonly", "local", "set", "shopt", "enable", "alias", "hash", "trap"}:
        for index, word in enumerate(argv[1:], start=1):
            if word is not None and changes_what_runs(word.partition("=")[0]):
                return [Danger("changes-what-runs", f"{word.partition('=')[0]} changes what later commands run", index)]
        if name in {"enable", "alias", "hash"} and len(argv) > 1:
            return [Danger("changes-what-runs", f"{name} changes the meaning of a command name", 1)]
    if name in {"complete", "compgen", "bind"}:
        return [Danger("changes-what-runs", f"{name} makes the shell run code later", min(1, len(argv) - 1))]
    if name == "ulimit" and operands(argv):
        return [Danger("changes-what-runs", "Changes resource limits of later commands (`ulimit`)", 1)]
    # -p searches the default PATH of the system, not that of the session
    if name == "command" and len(argv) > 1 and argv[1] == "-p":
        return [Danger("changes-what-runs", "Looks up programs in the default PATH (`command -p`)", 1)]
    return []


def unseen_code(commands: Sequence[InnerCommand], scripts: Sequence[Script]) -> tuple[InnerCommand, str] | None:
    """Find a command whose code does not exist yet when a human decides: `curl … | sh`, `eval "$X"`."""
    downloads = set[str]()
    for command in commands:
        name = command.name or "a shell"
        if entry_of(command.name).downloads:
            downloads |= _saved_as(command)
            continue
        run = next((word for word in _scripts_of(command) if posixpath.normpath(word) in downloads), None)
        if run is not None:
            sentence = f"Downloads {posixpath.normpath(run)} and runs it: remote code"
        elif command.name == "eval" and command.opaque is not None:
            sentence = "Runs text through `eval` that only exists once it runs"
        elif not runs_unseen_code(command, scripts):
            continue
        elif any(entry_of(other.name).downloads for other in commands):
            how = "Runs a download with" if None in command.argv else "Pipes a download into"
            sentence = f"{how} `{name}`: runs remote code"
        elif any(entry_of(other.name).decodes for other in commands):
            sentence = f"Runs decoded text with `{name}`, which nobody can read beforehand"
        elif source := _piped_from(command, scripts):
            sentence = f"Runs the output of `{source}` with `{name}`"
        else:
            sentence = f"Runs text with `{name}` that nobody can read beforehand"
        return command, sentence
    return None


def _piped_from(command: InnerCommand, scripts: Sequence[Script]) -> str | None:
    """Return the program whose output a command reads through a pipe, if it is known."""
    for script in scripts:
        for before, after in itertools.pairwise(script.commands):
            if after.piped and after.span == command.span and before.words:
                return before.words[0].value
    return None


def _saved_as(command: InnerCommand) -> set[str]:
    """Return the names of the files that a download is saved as."""
    written = [each.target.value for each in command.redirections if each.access == "write"]
    named = [word for before, word in itertools.pairwise(command.argv) if before in {"-o", "-O", "--output", "-qO"}]
    remote = [word.rsplit("/", 1)[-1] for word in command.argv if word and "://" in word]
    return {posixpath.normpath(word) for word in (*written, *named, *remote) if word}


def _scripts_of(command: InnerCommand) -> tuple[str, ...]:
    """Return the words of a command that may be a script which it runs."""
    if entry_of(command.name).shell == "posix" or command.name in {"source", "."} or is_interpreter(command.name or ""):
        return tuple(word for word in command.argv[1:] if word is not None)
    return tuple(word for word in command.argv[:1] if word is not None and "/" in word)


def runs_unseen_code(command: InnerCommand, scripts: Sequence[Script]) -> bool:
    """True if a shell or an interpreter runs the output of another command."""
    if command.opaque == RUNS_INPUT:
        # `bash < file` names its script; only a pipe brings text that nobody has seen
        return not any(each.operator == "<" and each.target.value is not None for each in command.redirections)
    substituted = any(piece.kind == "substitution" for word in _words_of(command, scripts) for piece in word.pieces)
    if entry_of(command.name).shell == "posix" or command.name in {"source", "."}:
        return substituted and None in command.argv[1:3]
    if command.name is None or not is_interpreter(command.name):
        return False
    if substituted and None in command.argv[1:3]:
        return True
    simple = next((each for script in scripts for each in script.commands if each.span == command.span), None)
    piped = simple is not None and simple.piped and not command.redirections
    return piped and all(word in {"-", "-u", "-s"} for word in command.argv[1:])


def _words_of(command: InnerCommand, scripts: Sequence[Script]) -> tuple[Word, ...]:
    return next((each.words for script in scripts for each in script.commands if each.argv == command.argv), ())
