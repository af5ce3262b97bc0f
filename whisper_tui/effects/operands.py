"""The words of a command taken apart: options and operands, and redirections with the content where it is certain."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from whisper_tui.effects.changes import CONTENT_UNKNOWN, Changes
from whisper_tui.effects.file_view import LARGEST_COMPARED, FileView, Found
from whisper_tui.effects.text_walk import OpenedFile, Step
from whisper_tui.policy.shell.syntax import input_of_command
from whisper_tui.programs.entries import ProgramEntry, entry_of
from whisper_tui.programs.parsing import parse

NOT_KNOWN = "what the command prints is only known when it runs"
_DEEPEST = 20
"""Commands of a pipeline that are followed."""

_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_FORMAT = re.compile(r"%(?:%|s|d)|\\.|[^%\\]+|[%\\]", re.DOTALL)


class ParsedWords:
    """The options and operands of a program, in any order."""

    def __init__(self, words: Sequence[str | None], entry: ProgramEntry) -> None:
        """Take words apart. An option that the entry does not have takes no value."""
        self.options: list[tuple[str, str | None]] = []
        """Names without dashes, with their values; an empty one stands for none."""
        self.operands: list[str | None] = []
        for each in parse(words, entry):
            if each.kind == "operand":
                self.operands.append(each.given)
            elif each.kind != "dashes":
                name = _without_dashes(each.name or each.given or "")
                self.options.append((name, each.value if each.values else ""))

    def has(self, *names: str) -> bool:
        """True if one of these options is given."""
        return any(given in names for given, _ in self.options)

    def value(self, *names: str) -> str | None:
        """The last value of one of these options. None: it is not given, or only known when it runs."""
        return next((value for given, value in reversed(self.options) if given in names), None)

    def all(self, *names: str) -> list[str | None]:
        """All values of these options."""
        return [value for given, value in self.options if given in names]


def _without_dashes(name: str) -> str:
    # `--r` is a beginning, not `-r`
    return name if len(name) == 3 and name.startswith("--") else name.lstrip("-")


def parse_words(words: Sequence[str | None], *names: str) -> ParsedWords:
    """Take the words of a program apart, by what its entry says of the options; `names`: it and its subcommand."""
    return ParsedWords(words, entry_of(*names))


Handler = Callable[[Step, ParsedWords, Changes], None]


class Program(NamedTuple):
    """A program of which the changes can be stated."""

    handler: Handler
    any_option: bool = False
    """True if no option matters to what is stated."""
    modes: str = ""
    """Letters of words that only look like options, as the modes of chmod do."""

    def record(self, step: Step, changes: Changes) -> None:
        """Record what a command changes."""
        entry = entry_of(step.name)
        # `zip -D9`: a number behind a letter
        numbers = "0123456789" if "-NUMBER" in entry.options else ""
        stated = {_without_dashes(name) for name in entry.options.keys() - entry.unstated}.union(self.modes, numbers)
        args = ParsedWords(step.words, entry)
        for given, _ in () if self.any_option else args.options:
            if given not in stated:
                changes.unknown(step, "files", f"what its option {given} changes is not known")
        unknowns = len(changes.unknowns)
        self.handler(step, args, changes)
        # A word that is not known may be an option as well.
        if None in args.operands and len(changes.unknowns) == unknowns:
            changes.unknown(step, "files", "a word is only known when it runs")


def find_targets(
    step: Step, operands: Iterable[str | None], changes: Changes, *, follow: bool = True
) -> Iterator[Found]:
    """Look at each operand; one that is not known is recorded as that."""
    for operand in operands:
        found = changes.find(step, operand, follow=follow)
        if found is not None:
            yield found


def output_of(step: Step, view: FileView, depth: int = 0) -> tuple[bytes | None, str]:
    """The standard output of a command, or None and the reason why it is not known."""
    if not step.words and not step.piped:
        return b"", ""  # `> file` alone
    if step.name in {":", "true", "false"}:
        return b"", ""
    words = [word for word in step.words if word is not None]
    if len(words) < len(step.words) or depth > _DEEPEST or step.through or step.is_function:
        return None, NOT_KNOWN
    text: str | None = None
    match step.name:
        case "echo":
            text = _echo(words[1:], is_bash=step.is_bash)
        case "printf":
            text = _printf(words[1:])
        case "cat":
            return _cat(step, words[1:], view, depth)
        case "tee":
            return input_of(step, view, depth)
    return (None, NOT_KNOWN) if text is None else (_bytes(text), "")


def input_of(step: Step, view: FileView, depth: int = 0) -> tuple[bytes | None, str]:
    """The standard input of a command, or None and the reason why it is not known."""
    read = input_of_command(step.redirections)
    if read is not None:
        if read.operator in {"<<", "<<-", "<<<"}:
            if read.body is None:
                return None, "the here-document holds values that are only known when it runs"
            return _bytes(read.body), ""
        found = None if read.operator != "<" or read.target is None else view.find(read.target, step.directory)
        return (None, NOT_KNOWN) if found is None else view.content(found)
    if step.source is not None:
        if any(each.access == "write" for each in step.source.redirections):
            return None, NOT_KNOWN
        return output_of(step.source, view, depth + 1)
    return None, NOT_KNOWN


def _bytes(text: str) -> bytes:
    """The bytes that a shell would write for a text."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")  # no bytes stand for it, so it cannot reach a shell


def opened_before_missing(step: Step, view: FileView) -> tuple[OpenedFile, ...] | None:
    """Return what the shell opens before it fails at an input that does not exist. None: all inputs exist."""
    for at, each in enumerate(step.redirections):
        if each.operator != "<" or each.target is None:
            continue
        found = view.find(each.target, step.directory)
        # A command before it that should delete the file may fail.
        if found is not None and found.kind == "absent" and not found.made:
            return step.redirections[:at]
    return None


def _cat(step: Step, operands: list[str], view: FileView, depth: int) -> tuple[bytes | None, str]:
    if any(word.startswith("-") and word != "-" for word in operands):
        return None, NOT_KNOWN
    content = b""
    for operand in operands or ["-"]:
        if operand == "-":
            part, why = input_of(step, view, depth)
        else:
            found = view.find(operand, step.directory)
            if found is None or found.kind == "absent":
                return None, NOT_KNOWN
            part, why = view.content(found)
        if part is None:
            return None, why
        content += part
        if len(content) > LARGEST_COMPARED:
            return None, "the content is larger than 1 MiB"
    return content, ""


def _echo(words: list[str], *, is_bash: bool) -> str | None:
    end, escapes = "\n", not is_bash
    while words and re.fullmatch(r"-[neE]+", words[0]):
        if not is_bash and words[0] != "-n":
            return None  # shells differ in the options of echo
        end = "" if "n" in words[0] else end
        escapes = "e" in words[0] or (escapes and "E" not in words[0])
        words = words[1:]
    text = " ".join(words)
    if escapes and "\\" in text:
        expanded = _unescaped(text)
        return None if expanded is None else expanded + end
    return text + end


def _unescaped(text: str) -> str | None:
    """A text with its escapes expanded. None: it holds one with digits or with an end."""
    parts = re.split(r"\\(.)", text, flags=re.DOTALL)
    if any(letter not in _ESCAPES for letter in parts[1::2]) or text.endswith("\\"):
        return None
    return "".join(_ESCAPES[part] if at % 2 else part for at, part in enumerate(parts))


def _printf(words: list[str]) -> str | None:
    if not words or words[0].startswith("-"):
        return None
    form, values = words[0], words[1:]
    pieces = _FORMAT.findall(form)
    wanted = sum(1 for piece in pieces if piece in {"%s", "%d"})
    text = ""
    # The format is used again until all values are printed.
    for _ in range(1000):
        for piece in pieces:
            if piece in {"%s", "%d"}:
                value = values.pop(0) if values else ("0" if piece == "%d" else "")
                if piece == "%d" and not re.fullmatch(r"-?(?:0|[1-9]\d*)", value):
                    return None
                text += value
            elif piece == "%%":
                text += "%"
            elif piece.startswith("\\"):
                if piece[1:] not in _ESCAPES:
                    return None
                text += _ESCAPES[piece[1:]]
            elif piece == "%":
                return None
            else:
                text += piece
        if not values or not wanted:
            return text
    return None


def record_redirections(step: Step, changes: Changes) -> None:
    """Record the files that the redirections of a command write."""
    if any(_turns_output(each) for each in step.redirections):
        changes.unknown(step, "files", "a redirection leads its output to what is its input")
    if not step.is_bash and any(each.descriptor.startswith("{") for each in step.redirections):
        changes.unknown(step, "files", "some shells take {NAME} before a redirection for a word")
    opened = [each for each in step.redirections if each.access == "write"]
    output = [each for each in opened if each.operator == "&>" or each.descriptor in {"", "1"}]
    for each in opened:
        found = changes.find(step, each.target)
        if found is None:
            continue
        content, why = None, CONTENT_UNKNOWN
        if output and each is output[-1] and each.operator != "<>" and not _is_shared(step, each.descriptor):
            content, why = output_of(step, changes.view)
        elif each in output:
            content = b""
        if each.operator == "<>":
            if found.kind == "absent":
                changes.write(step, found, b"")
            else:
                changes.change(step, found, "edits", only_if="the command writes to that descriptor")
        elif each.operator in {">>", "&>>"}:
            changes.append(step, found, content, why=why)
        else:
            changes.write(step, found, content, why=why)


def _turns_output(opened: OpenedFile) -> bool:
    """True if a name such as `/dev/stdout` may mean a file that the command opens only for reading."""
    if opened.operator == "<":
        return opened.descriptor not in {"", "0"}
    return opened.operator in {">&", "<&"} and opened.target == "0" and opened.descriptor != "0"


def _is_shared(step: Step, descriptor: str) -> bool:
    """True if the standard output goes elsewhere than a redirection of it says, as in `> f 1>&2`."""
    return any(each.operator in {">&"} and each.descriptor == "1" for each in step.redirections) or descriptor not in {
        "", "1"
    }  # fmt: skip
