"""Programs that edit files in place: `sed` with the new content where its script is simple, `perl` and `patch`."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from whisper_tui.effects.changes import Changes
from whisper_tui.effects.file_view import Found
from whisper_tui.effects.operands import ParsedWords, Program, find_targets, input_of
from whisper_tui.effects.text_walk import Step
from whisper_tui.policy.commands import read_only_programs as special_programs
from whisper_tui.system import host_files

NOT_COMPUTED = "not computed"
_SED_FLAGS = frozenset({"e", "expression", "i", "in-place", "E", "r", "regexp-extended", "s", "separate", "u"})
"""Options of sed with which its script means the same as without, but for the syntax of patterns."""


def _in_place(
    step: Step, operands: Iterable[str | None], suffix: str, changes: Changes, why: str, *, follow: bool = False
) -> Iterator[Found]:
    """Record the backups of files that are edited in place, and the files where the new content is not known here.

    Yields the others: sed and perl write a new file, which takes the place of a symbolic link as well, unless sed is
    told to `follow` it.
    """
    for found in find_targets(step, operands, changes, follow=follow):
        if found.kind != "file":
            continue
        is_link = not follow and not found.made and host_files.is_link(found.real)
        behind = changes.view.find(found.path, None) if is_link else None
        if behind is not None and behind.kind in {"absent", "directory"}:
            continue
        if suffix:
            directory, name = os.path.split(found.real if follow else found.path)
            backup = suffix.replace("*", name) if "*" in suffix else name + suffix
            kept = changes.find(step, os.path.join(directory, backup), follow=False)
            if kept is not None:
                content = None if is_link else changes.view.content(found)[0]
                changes.write(step, kept, content, detail=f"a backup of {found.path}")
        if is_link:
            changes.write(step, found, None, why="a file takes the place of the link", action="edits")
        elif why:
            changes.write(step, found, None, why=why, action="edits")
        else:
            yield found


def _sed(step: Step, args: ParsedWords, changes: Changes) -> None:
    operands = list(args.operands)
    scripts = args.all("e", "expression")
    if not args.has("e", "expression", "f", "file"):
        scripts = operands[:1]
        operands = operands[1:]
    known = [script for script in scripts if script is not None]
    if args.has("f", "file") or len(known) < len(scripts) or not all(special_programs.sed([each]) for each in known):
        changes.unknown(step, "files", "its script may write other files, or run commands")
    if not args.has("i", "in-place"):
        return
    simple = None
    if len(known) == len(scripts) and all(given in _SED_FLAGS for given, _ in args.options):
        simple = parse_sed("\n".join(known), extended=args.has("E", "r", "regexp-extended"))
    suffix = args.value("i", "in-place") or ""
    if simple is None:
        follow = args.has("follow-symlinks")
        list(_in_place(step, operands, suffix, changes, NOT_COMPUTED, follow=follow))
        return
    for found in _in_place(step, operands, suffix, changes, ""):
        content, why = changes.view.content(found)
        edited = None if content is None else simple.edited(content)
        changes.write(step, found, edited, why=why or NOT_COMPUTED, action="edits")


@dataclass
class _SedAddress:
    number: int = 0
    """A line. 0: it is not given by its number; -1: the last one."""
    pattern: re.Pattern[str] | None = None

    def matches(self, line: str, number: int, last: bool) -> bool:
        if self.pattern is not None:
            return self.pattern.search(line) is not None
        return last if self.number == -1 else number == self.number


@dataclass
class _SedCommand:
    name: str
    first: _SedAddress | None
    second: _SedAddress | None
    inverted: bool
    pattern: re.Pattern[str] | None = None
    replacement: tuple[str | int, ...] = ()
    """Texts, and numbers of groups."""
    occurrence: int = 1
    """The match that is replaced. 0: every one."""
    text: str = ""
    _inside: bool = False

    def selects(self, line: str, number: int, last: bool) -> bool:
        """True if the command is applied to a line; all lines are asked about in their order."""
        return self._in_range(line, number, last) is not self.inverted

    def _in_range(self, line: str, number: int, last: bool) -> bool:
        if self.first is None:
            return True
        if self.second is None:
            return self.first.matches(line, number, last)
        if not self._inside:
            if not self.first.matches(line, number, last):
                return False
            # A number that is past already ends the range on its first line.
            self._inside = not (self.second.pattern is None and 0 <= self.second.number <= number) and not last
            return True
        ends = self.second.matches(line, number, last) or 0 < self.second.number < number
        self._inside = not ends
        return not 0 < self.second.number < number

    def begin(self) -> None:
        """Forget the file before."""
        self._inside = False


@dataclass
class SedScript:
    """A script of `s`, `d`, `a`, `i` and `c`, each understood to the last character."""

    commands: list[_SedCommand] = field(default_factory=list)
    needs_ascii: bool = False
    """True if a pattern takes any character, of which the locale decides how many bytes it has."""

    def edited(self, content: bytes) -> bytes | None:
        """The content that the script makes of a file. None: it depends on more than the script."""
        if b"\0" in content or (self.needs_ascii and not content.isascii()):
            return None
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return None
        ends = text.endswith("\n")
        if not ends and any(command.name in "aic" for command in self.commands):
            return None
        for command in self.commands:
            command.begin()
        lines = text.split("\n")[: -1 if ends else None] if text else []
        made: list[str] = []
        for number, line in enumerate(lines, start=1):
            made += self._cycle(line, number, number == len(lines))
        result = "".join(line + "\n" for line in made)
        return (result if ends else result.removesuffix("\n")).encode()

    def _cycle(self, line: str, number: int, last: bool) -> list[str]:
        before: list[str] = []
        behind: list[str] = []
        for command in self.commands:
            if not command.selects(line, number, last):
                continue
            if command.name == "s":
                line = _substituted(command, line)
            elif command.name == "i":
                before.append(command.text)
            elif command.name == "a":
                behind.append(command.text)
            else:
                return [*before, *([command.text] if command.name == "c" else []), *behind]
        return [*before, line, *behind]


def _substituted(command: _SedCommand, line: str) -> str:
    pattern = command.pattern
    if pattern is None:
        return line
    parts: list[str] = []
    at = 0
    for count, match in enumerate(pattern.finditer(line), start=1):
        if command.occurrence not in {0, count}:
            continue
        parts.append(line[at : match.start()])
        parts += [each if isinstance(each, str) else match.group(each) or "" for each in command.replacement]
        at = match.end()
    return "".join(parts) + line[at:]


class _NotSimpleError(Exception):
    """The script holds something that is not computed."""


def parse_sed(script: str, *, extended: bool) -> SedScript | None:
    """Parse a script of sed. None: it holds anything but simple substitutions, deletions and texts."""
    try:
        return _SedParser(script, extended=extended).parse()
    except (_NotSimpleError, re.error, IndexError, OverflowError):
        return None


class _SedParser:
    """Reads a script from its first character to its last, and gives up at the first one that it is not sure about."""

    def __init__(self, script: str, *, extended: bool) -> None:
        self._script = script
        self._extended = extended
        self._at = 0
        self._made = SedScript()

    def parse(self) -> SedScript:
        """Return the script. Raises an error where it is not simple."""
        while True:
            self._skip(" \t\n;")
            if self._at >= len(self._script):
                return self._made
            command = self._command()
            # A range of lines may begin on one that an earlier command has deleted.
            if command.second is not None and any(each.name in "dc" for each in self._made.commands):
                raise _NotSimpleError
            self._made.commands.append(command)

    def _skip(self, characters: str) -> None:
        while self._at < len(self._script) and self._script[self._at] in characters:
            self._at += 1

    def _command(self) -> _SedCommand:
        first, second = self._address(), None
        self._skip(" \t")
        if first is not None and self._script[self._at] == ",":
            self._at += 1
            self._skip(" \t")
            second = self._address()
            if second is None:
                raise _NotSimpleError
        self._skip(" \t")
        inverted = self._script[self._at] == "!"
        self._at += inverted
        self._skip(" \t")
        command = _SedCommand(self._script[self._at], first, second, inverted)
        self._at += 1
        if command.name == "s":
            self._substitution(command)
        elif command.name in "aic" and not (command.name == "c" and (second is not None or inverted)):
            self._text(command)
            return command
        elif command.name != "d":
            raise _NotSimpleError
        self._skip(" \t")
        if self._at < len(self._script) and self._script[self._at] not in ";\n":
            raise _NotSimpleError
        return command

    def _address(self) -> _SedAddress | None:
        if match := re.compile(r"[1-9]\d*(?!~)").match(self._script, self._at):
            self._at = match.end()
            return _SedAddress(number=int(match[0]))
        if self._script[self._at] == "$":
            self._at += 1
            return _SedAddress(number=-1)
        if self._script[self._at] != "/":
            return None
        self._at += 1
        return _SedAddress(pattern=re.compile(self._pattern(self._until("/"), "/")))

    def _until(self, delimiter: str) -> str:
        """The text up to a delimiter, which is passed."""
        start = self._at
        while self._script[self._at] != delimiter:
            if self._script[self._at] == "\n":
                raise _NotSimpleError
            self._at += 2 if self._script[self._at] == "\\" else 1
        self._at += 1
        return self._script[start : self._at - 1]

    def _substitution(self, command: _SedCommand) -> None:
        delimiter = self._script[self._at]
        if delimiter not in "/|,#!:@%_;~":
            raise _NotSimpleError
        self._at += 1
        pattern = self._pattern(self._until(delimiter), delimiter)
        replacement = self._until(delimiter)
        flags = re.compile(r"[1-9]\d*|[gI]*").match(self._script, self._at)
        given = flags[0] if flags is not None else ""
        self._at += len(given)
        command.pattern = re.compile(pattern, re.IGNORECASE if "I" in given else 0)
        if "I" in given:
            self._made.needs_ascii = True
        command.occurrence = int(given) if given.isdecimal() else 0 if "g" in given else 1
        # Python and sed count empty matches behind others differently.
        if command.occurrence != 1 and command.pattern.match("") is not None:
            raise _NotSimpleError
        command.replacement = self._replacement(replacement, delimiter, command.pattern.groups)

    @staticmethod
    def _replacement(text: str, delimiter: str, groups: int) -> tuple[str | int, ...]:
        found: list[str | int] = []
        for piece in re.findall(r"\\.|[^\\]", text, re.DOTALL):
            if piece == "&":
                found.append(0)
            elif piece[0] != "\\":
                found.append(piece)
            elif piece[1].isdecimal():
                if int(piece[1]) > groups:
                    raise _NotSimpleError
                found.append(int(piece[1]))
            elif piece[1] in "\\&/.*[]$^" or piece[1] == delimiter:
                found.append(piece[1])
            elif piece[1] == "t":
                found.append("\t")
            else:
                raise _NotSimpleError
        return tuple(found)

    def _text(self, command: _SedCommand) -> None:
        """The text of `a`, `i` and `c`: the rest of the line, or the line behind a backslash."""
        match = re.compile(r"(?:[ \t]*\\\n|[ \t]*)([^\s\\][^\n\\]*)(?:\n|\Z)").match(self._script, self._at)
        if match is None:
            raise _NotSimpleError
        command.text = match[1]
        self._at = match.end()

    def _pattern(self, text: str, delimiter: str) -> str:
        """A basic or extended regular expression of POSIX in the syntax of Python, if both mean the same."""
        if not text:
            raise _NotSimpleError  # the last pattern that was used
        found: list[str] = []
        at, quantifiable, groups = 0, False, 0
        for match in _PIECES.finditer(text):
            piece = match[0]
            if match.start() != at:
                raise _NotSimpleError
            at = match.end()
            kind = self._kind(piece, delimiter)
            if kind == "quantifier":
                # Of a repeated group Python takes the first match, and POSIX the longest.
                if not quantifiable:
                    raise _NotSimpleError
                found.append(piece.replace("\\", ""))
                quantifiable = False
                continue
            quantifiable = kind in {"character", "set"}
            if kind == "group":
                groups += 1 if piece.endswith("(") else -1
                found.append(piece[-1])
            elif kind == "anchor":
                if (piece == "^" and match.start()) or (piece == "$" and at < len(text)):
                    raise _NotSimpleError
                found.append("^" if piece == "^" else r"\Z")
            elif kind == "set":
                self._made.needs_ascii = True
                found.append(_set(piece))
            else:
                found.append(re.escape(piece[-1]))
        if at != len(text) or groups:
            raise _NotSimpleError
        return "".join(found)

    def _kind(self, piece: str, delimiter: str) -> str:
        special = "+?(){}|" if self._extended else ""
        if len(piece) > 2 and "{" in piece[:2] and (piece[0] == "{") is not self._extended:
            raise _NotSimpleError  # braces that are characters in this syntax
        if piece[0] == "[" or piece == ".":
            return "set"
        if piece in {"^", "$"}:
            return "anchor"
        if piece[0] == "\\" and len(piece) > 1:
            letter = piece[1]
            if not self._extended and letter in "(){+?":
                return "group" if letter in "()" else "quantifier"
            if letter in "\\.*[]$^/" + special or (letter == delimiter and letter not in "|"):
                return "character"
            raise _NotSimpleError
        if piece == "*" or (self._extended and piece[0] in "+?{"):
            return "quantifier"
        if piece in {"(", ")"} and self._extended:
            return "group"
        if piece in special or piece == "\n":
            raise _NotSimpleError
        return "character"


_PIECES = re.compile(r"\\\{\d+(?:,\d*)?\\\}|\{\d+(?:,\d*)?\}|\\.|\[\^?[\w ,.:;/@#%&!~<>='\"*+?(){}|$-]+\]|[^\\\[]")


def _set(piece: str) -> str:
    """A set of characters in brackets, or any character."""
    if piece == ".":
        return "[^\\n]"
    inner = piece[2:-1] if piece.startswith("[^") else piece[1:-1]
    plain = re.sub(r"(?:0-9|a-z|A-Z|[a-z]-[a-z]|[0-9]-[0-9])", "", inner)
    # A class like [:alpha:], and a range of other characters, depend on the locale.
    if "-" in plain.strip("-") or ":" in inner or not inner.isascii():
        raise _NotSimpleError
    return "[" + ("^" if piece.startswith("[^") else "") + re.sub(r"([\[\]^&~|])", r"\\\1", inner) + "]"


_SUBSTITUTION = re.compile(
    r"(?:s|tr|y)([/|!,#])(?:(?!\1)[^$@`\\(]|\\[^e])*\1(?:(?!\1)[^@`\\(]|\\.)*\1[gimsx]*;?\Z", re.DOTALL
)
"""Code of perl that only replaces text."""


def _perl(step: Step, args: ParsedWords, changes: Changes) -> None:
    code = args.all("e", "E")
    operands = args.operands if code else args.operands[1:]
    if not code or not all(each is not None and _SUBSTITUTION.match(each) for each in code) or args.has("M", "m", "I"):
        changes.unknown(step, "everything", "code of perl is not analysed")
    if args.has("i"):
        list(_in_place(step, operands, args.value("i") or "", changes, NOT_COMPUTED))


def _patch(step: Step, args: ParsedWords, changes: Changes) -> None:
    if args.has("dry-run"):
        return
    base = args.value("d", "directory") if args.has("d", "directory") else "."
    text = _patch_text(step, args, base, changes)
    names = re.findall(r"^\+\+\+ ([^\t\n]+)", text or "", re.MULTILINE)
    if text is None or re.search(r"^(?:Index:|\*\*\* |diff --git )", text, re.MULTILINE):
        changes.unknown(step, "files", "the files that the patch names are only known when it runs")
    elif _may_choose(text) or "+++ /dev/null" in text or args.has("R", "reverse"):
        changes.unknown(step, "files", "the patch makes or deletes files, or has two names for one")
    strip = int(args.value("p", "strip") or 0) if (args.value("p", "strip") or "0").isdecimal() else 0
    paths: list[str | None] = [
        "/".join(name.split("/")[strip:]) if args.has("p", "strip") else os.path.basename(name) for name in names
    ]
    if args.operands:
        paths = [args.operands[0], *paths[1:]]
    output = args.value("o", "output") if args.has("o", "output") else ""
    for path in paths if output == "" else [output]:
        if path != "-":
            _patch_one(step, args, None if None in {path, base} else os.path.join(base or "", path or ""), changes)
    if args.has("r", "reject-file"):
        rejects = args.value("r", "reject-file")
        for found in find_targets(step, [rejects and os.path.join(base or "", rejects)], changes):
            changes.write(step, found, None, only_if="a part of the patch does not apply")


def _patch_one(step: Step, args: ParsedWords, path: str | None, changes: Changes) -> None:
    """Record the changes of one patched file, and of the files that are made beside it."""
    output = args.has("o", "output")
    why, exact = "the patch is the difference", "the patch does not fit exactly"
    for found in find_targets(step, [path], changes):
        only_if = "" if output else "the patch applies"
        if found.as_directory or not changes.view.is_directory(os.path.dirname(found.real)):
            changes.unknown(step, "files", "missing directories are made")
        changes.write(step, found, None, why=why, action="writes" if output else "edits", only_if=only_if)
        beside = {}
        if args.has("b", "backup", "z", "suffix") or not args.has("no-backup-if-mismatch"):
            suffix = args.value("z", "suffix") or step.environment.get("SIMPLE_BACKUP_SUFFIX") or ".orig"
            beside[suffix] = "the patch applies" if args.has("b", "backup") else exact
        if not args.has("r", "reject-file"):
            beside[".rej"] = "a part of the patch does not apply"
        for ending, condition in beside.items():
            other = changes.find(step, found.path + ending, follow=False)
            if other is not None:
                changes.write(step, other, None, why=why, only_if=condition)


def _may_choose(text: str) -> bool:
    """True if patch has to choose between the names of two files."""
    pairs = re.findall(r"^--- ([^\t\n]+).*\n\+\+\+ ([^\t\n]+)", text, re.MULTILINE)
    return any(old != "/dev/null" and old.split("/")[-1:] != new.split("/")[-1:] for old, new in pairs) or any(
        old.split("/")[1:] != new.split("/")[1:] for old, new in pairs if old != "/dev/null"
    )


def _patch_text(step: Step, args: ParsedWords, base: str | None, changes: Changes) -> str | None:
    named = args.value("i", "input") if args.has("i", "input") else (args.operands[1:2] or [""])[0]
    if named is None or base is None:
        return None
    if named:
        found = changes.find(step, os.path.join(base, named))
        content = changes.view.content(found)[0] if found is not None else None
    else:
        content = input_of(step, changes.view)[0]
    return None if content is None else content.decode("utf-8", "replace")


SED = Program(_sed)
EDITORS: Mapping[str, Program] = {
    "perl": Program(_perl, any_option=True),
    "patch": Program(_patch),
}
