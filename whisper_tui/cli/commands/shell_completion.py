"""`completions` and `man`: the command line for shells and for `man`, generated from the parser."""

import argparse
import sys
from collections.abc import Iterator, Sequence

from whisper_tui import __version__
from whisper_tui.cli.subcommand import DONE, GROUPS, MEANINGS, Options, Subcommands, home_of, supervisor_of
from whisper_tui.model.errors import InvalidRequest, WhisperError

SHELLS = {
    "bash": r"""_whisper_tui() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${line%%$'\t'*}")
    done < <(printf '%s\0' "${COMP_WORDS[@]:1:COMP_CWORD}" | "$1" complete 2>/dev/null)
}
complete -o bashdefault -o default -F _whisper_tui whisper-tui
""",
    "zsh": r"""#compdef whisper-tui
_whisper_tui() {
    local line
    local -a found
    while IFS= read -r line; do
        found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done < <(printf '%s\0' "${(@)words[2,CURRENT]}" | "$words[1]" complete 2>/dev/null)
    if (( $#found )); then _describe -V 'whisper-tui' found; else _files; fi
}
if [[ $funcstack[1] == _whisper-tui ]]; then _whisper_tui "$@"; else compdef _whisper_tui whisper-tui; fi
""",
    "fish": r"""function __whisper_tui
    set -l words (commandline -opc) (commandline -ct)
    set -l found (string join0 -- $words[2..-1] | $words[1] complete 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path $words[-1]
    end
end
complete -c whisper-tui -f -a '(__whisper_tui)'
""",
}
"""The scripts ask `whisper-tui complete`, so that they always fit the version that is installed."""

INSTALL = {
    "bash": 'eval "$(whisper-tui completions bash)" in ~/.bashrc',
    "zsh": 'eval "$(whisper-tui completions zsh)" in ~/.zshrc, after compinit, or a file _whisper-tui in the fpath',
    "fish": "whisper-tui completions fish > ~/.config/fish/completions/whisper-tui.fish",
}

MOST_CALLS = 50
"""Calls of the history that are offered."""

_CALLS = {"id", "ids", "calls"}
"""Arguments that are the number of a call."""

_WAITING = {"approve", "deny", "aside"}
_RUNNING = {"signal", "kill"}

Candidate = tuple[str, str]
"""A word, and a description of it."""


def add_completions(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    parser = verbs.add(
        "completions",
        "print a script that completes the command line in a shell",
        _completions,
        details="To enable it: " + "; ".join(f"{shell}: {how}" for shell, how in INSTALL.items()) + ".",
    )
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell")
    verbs.add("complete", "complete words from standard input (internal: shells ask this)", _complete)


def _completions(options: Options) -> int:
    sys.stdout.write(SHELLS[options.shell])
    return DONE


def _complete(options: Options) -> int:
    from whisper_tui.cli.dispatch import parser

    # From standard input: among its arguments, argparse would take the words for options of `complete` itself.
    words = sys.stdin.read().split("\0")[:-1] or [""]
    for word, description in candidates(parser().parser, words, options):
        if word.startswith(words[-1]):
            sys.stdout.write(f"{word}\t{description}\n")
    return DONE


def candidates(parser: argparse.ArgumentParser, words: Sequence[str], options: Options) -> Iterator[Candidate]:
    """Yield the words that may stand at the end of a command line; none where a file name is expected."""
    verb, given = "", 0
    wanted: argparse.Action | None = None
    for word in words[:-1]:
        nested = _subparsers(parser)
        if wanted is not None:
            wanted = None
        elif word == "--":
            return
        elif word.startswith("-"):
            wanted = _option_with_value(parser, word)
        elif nested is not None and word in nested.choices:
            parser, verb, given = nested.choices[word], verb or word, 0
        else:
            given += 1
    if wanted is not None:
        yield from _servers(options) if wanted.dest == "through" else ((str(word), "") for word in wanted.choices or ())
    elif words[-1].startswith("-"):
        yield from _options(parser)
    elif (nested := _subparsers(parser)) is not None:
        yield from _subcommands(nested)
    elif (expected := _positional(parser, given)) is not None:
        if expected.dest in _CALLS:
            yield from _calls(verb, options)
        yield from ((str(choice), "") for choice in expected.choices or ())


def _subparsers(parser: argparse.ArgumentParser) -> "argparse._SubParsersAction[argparse.ArgumentParser] | None":
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)


def _subcommands(nested: "argparse._SubParsersAction[argparse.ArgumentParser]") -> Iterator[Candidate]:
    listed = {name for names in GROUPS.values() for name in names}
    for action in nested._choices_actions:
        # Actions of a subcommand have no groups; internal subcommands are left out as in the help.
        if action.dest in listed or nested.dest != "verb":
            yield action.dest, action.help or ""


def _option_with_value(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return next(
        (action for action in parser._actions if word in action.option_strings and action.nargs != 0),
        None,
    )


def _options(parser: argparse.ArgumentParser) -> Iterator[Candidate]:
    for action in parser._actions:
        if action.help is not argparse.SUPPRESS:
            yield from ((option, action.help or "") for option in action.option_strings)


def _positional(parser: argparse.ArgumentParser, given: int) -> argparse.Action | None:
    """Return the argument at a position; the last one stands for all that follow if it takes several."""
    expected = [action for action in parser._actions if not action.option_strings]
    if given < len(expected):
        return expected[given]
    return expected[-1] if expected and expected[-1].nargs in {"+", "*"} else None


def _calls(verb: str, options: Options) -> Iterator[Candidate]:
    """Yield the numbers of calls that a subcommand can be about. No supervisor is started for that."""
    from whisper_tui.cli.output_format import cut, masked_line, outcome

    try:
        with supervisor_of(options, start=False) as supervisor:
            rows = supervisor.ask("rows", kind="list")
            if verb not in _WAITING | _RUNNING:
                known = {row["id"] for row in rows}
                rows += [
                    row for row in supervisor.ask("rows", kind="history", limit=MOST_CALLS) if row["id"] not in known
                ]
    except WhisperError:
        return
    states = {"waiting", "set aside"} if verb in _WAITING else {"running"} if verb in _RUNNING else None
    for row in rows:
        if states is None or row["state"] in states:
            yield row["id"], f"{outcome(row)}: {cut(masked_line(row['command']), 60)}"


def _servers(options: Options) -> Iterator[Candidate]:
    """Yield the names of the MCP servers in the configuration file."""
    from whisper_tui.config import load

    try:
        known = load(home_of(options)).mcp.servers
    except WhisperError:
        return
    yield from ((name, " ".join(server.command)) for name, server in known.items())


def add_man(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "man",
        "print a manual page; whisper-tui man | man -l - shows it",
        _man,
        details="Without a name it is the page of the whole program. An installed whisper_tui has them for man, too: "
        "man whisper-tui, man whisper-tui-approve.",
    )
    parser.add_argument("name", nargs="?", metavar="SUBCOMMAND", help="the page of this subcommand")


def _man(options: Options) -> int:
    page = f"whisper-tui-{options.name}" if options.name else "whisper-tui"
    pages = manual_pages(internal=True)
    if page not in pages:
        raise InvalidRequest(f"there is no subcommand {options.name!r}", hint="whisper-tui --help lists them")
    sys.stdout.write(pages[page])
    return DONE


def manual_pages(*, internal: bool = False) -> dict[str, str]:
    """Return the manual pages by their names; those of internal subcommands are not installed."""
    from whisper_tui.cli.dispatch import parser

    whole = parser().parser
    pages = {"whisper-tui": manual(whole, "whisper-tui")}
    listed = {name for names in GROUPS.values() for name in names}
    nested = _subparsers(whole)
    for name, one in nested.choices.items() if nested is not None else ():
        if internal or name in listed:
            pages[f"whisper-tui-{name}"] = manual(one, f"whisper-tui-{name}")
    return pages


def manual(parser: argparse.ArgumentParser, title: str) -> str:
    """Return the manual page of a parser, in the man macros of roff."""
    first, _, rest = (parser.description or "").partition(". ")
    lines = [
        # Without a date, so that the same source builds the same page.
        f'.TH "{title.upper()}" 1 "" "whisper_tui {__version__}" "User Commands"',
        ".SH NAME",
        f"{_roff(title)} \\- {_roff(first[:1].lower() + first[1:].rstrip('.'))}",
        ".SH SYNOPSIS",
        _roff(" ".join(parser.format_usage().removeprefix("usage: ").split())),
        *((".SH DESCRIPTION", _roff(rest)) if rest else ()),
    ]
    nested = _subparsers(parser)
    if nested is not None:
        described = {action.dest: action.help or "" for action in nested._choices_actions}
        groups = GROUPS if nested.dest == "verb" else {"Actions": tuple(described)}
        for group, names in groups.items():
            lines += [f".SH {group.upper()}"]
            for name in names:
                lines += [".TP", f".B {_roff(name)}", _roff(described[name])]
    lines += _arguments(parser)
    if examples := getattr(parser, "examples", ()):
        lines += [".SH EXAMPLES", *(line for example in examples for line in (_roff(example), ".br"))]
    lines += [".SH EXIT STATUS"]
    for code, meaning in MEANINGS.items():
        lines += [".TP", f".B {code}", _roff(meaning)]
    return "\n".join(lines) + "\n"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield ".SH OPTIONS"
    for action in parser._actions:
        if action.help is argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        value = "" if action.nargs == 0 else action.metavar or "|".join(map(str, action.choices or ())) or action.dest
        names = ", ".join(action.option_strings)
        yield from (".TP", f".B {_roff(f'{names} {value}'.strip())}", _roff((action.help or "") % vars(action)))


def _roff(text: str) -> str:
    """Return the text without characters that roff would interpret."""
    # A hyphen would become a typographic one, and an option copied from the page would not work.
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
