"""A position in shell text, and the inside of words: quotes, variables, substitutions and arithmetic."""

import re
from typing import NamedTuple, Protocol

from whisper_tui.policy.shell.syntax import Block, Script, Unreadable, WordPiece

DEEPEST = 40
"""How deep constructs may be nested before the text counts as unreadable."""

MOST_RETRIES = 16
"""Backtracks allowed for one text."""

MOST_WORDS = 1500
"""Words of one text that are read; a human does not read more either."""

MOST_PIECES = 500
"""Quoted parts and expansions of one word that are read."""

# bash splits words at these two alone: a no-break space is a letter of a word
BLANK = " \t"

_KEYWORD = re.compile(r"(?:[a-z]+|[!{}]|\[\[)(?=[ \t\n;&|()<>]|\Z)")
_KEYWORD_WINDOW = 60
"""Characters that are searched for a keyword if joined lines may interrupt it."""


class TextMark(NamedTuple):
    """A position to rewind to, with the number of findings made before it."""

    at: int
    depth: int
    commands: int
    redirections: int
    substitutions: int
    evaluations: int
    block: Block
    nodes: int


class TextCursor:
    """A position in a text. Offsets that it hands out count in the whole text, of which this text may be a part."""

    def __init__(self, text: str, found: Script, *, base: int = 0, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        self.end = len(text)
        self.base = base
        self.depth = depth
        self.found = found
        self.block = found.tree
        """The list in which a command stands that comes next."""
        # most texts join no lines, and then `ahead` and `keyword` need no copies
        self._joins = "\\\n" in text

    def peek(self) -> str:
        """Return the next character, empty at the end."""
        if self._joins:
            # bash removes a backslash before a line end even in the middle of a keyword or an operator
            while self.text.startswith("\\\n", self.at):
                self.at += 2
        return self.text[self.at] if self.at < self.end else ""

    def take(self) -> str:
        """Pass and return the next character."""
        character = self.peek()
        self.at += 1
        return character

    def ahead(self, expected: str) -> bool:
        """True if these characters come next, joined lines included. Does not move."""
        if not self._joins:
            return self.text.startswith(expected, self.at)
        before = self.at
        found = all(self.take() == character for character in expected)
        self.at = before
        return found

    def accept(self, expected: str) -> bool:
        """Pass these characters if they come next."""
        before = self.at
        for character in expected:
            if self.take() != character:
                self.at = before
                return False
        return True

    def keyword(self) -> str:
        """Return the unquoted word of letters, or the brace, that comes next, or an empty text. Does not move."""
        self.peek()
        if not self._joins:
            match = _KEYWORD.match(self.text, self.at)
        else:
            match = _KEYWORD.match(self.text[self.at : self.at + _KEYWORD_WINDOW].replace("\\\n", ""))
        return match[0] if match else ""

    def skip_blank(self) -> None:
        """Pass spaces and tabs."""
        while (character := self.peek()) and character in BLANK:
            self.at += 1

    def mark(self) -> TextMark:
        """Return a mark of this position."""
        found = self.found
        return TextMark(
            self.at,
            self.depth,
            len(found.commands),
            len(found.redirections),
            len(found.substitutions),
            len(found.evaluations),
            self.block,
            len(self.block),
        )

    def rewind(self, mark: TextMark) -> None:
        """Return to a mark, and drop the findings made after it."""
        # every rewind reads a part twice; nested ones multiply, so `((((…` would take exponential time
        self.found.retries += 1
        if self.found.retries > MOST_RETRIES:
            raise Unreadable("it can be read in too many ways")
        self.at, self.depth, self.block = mark.at, mark.depth, mark.block
        del self.block[mark.nodes :]
        del self.found.commands[mark.commands :]
        del self.found.redirections[mark.redirections :]
        del self.found.substitutions[mark.substitutions :]
        del self.found.evaluations[mark.evaluations :]

    def place(self, start: int) -> tuple[int, int]:
        """Return the span from `start` to this position in the whole text."""
        return (self.base + start, self.base + min(self.at, self.end))

    def enter(self) -> None:
        """Enter a nested construct. Raises `Unreadable` beyond the limit."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unreadable(f"it is nested more than {DEEPEST} levels deep")

    def leave(self) -> None:
        """Leave a nested construct."""
        self.depth -= 1


_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip

_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.))",
    re.DOTALL,
)


def decode(source: str) -> str:
    """Return the text between `$'` and `'` with its escapes replaced, up to an escaped NUL, as bash does."""
    bytewise = re.search(r"\\(?:x[0-9a-fA-F]|[0-7])", source) is not None
    text = _ESCAPE.sub(_character, source)
    if bytewise and not text.isascii():
        # `$'\xc3\xa9'` is one character to bash, which works on bytes
        text = _rejoined(text)
    # a C string ends here: bash drops the rest of the quoted text
    return text.split("\0", 1)[0]


def _character(match: re.Match[str]) -> str:
    simple, octal, byte, short, long, control = match.groups()
    if simple:
        return _SIMPLE[simple]
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if byte:
        return chr(int(byte, 16))
    if short or long:
        code = int(short or long, 16)
        return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    return chr(ord(control.upper()) & 0x1F)


def _rejoined(text: str) -> str:
    """Decode bytes that were escaped one by one and are UTF-8 together."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL_PARAMETERS = "*@#?-$!0123456789"
_EVALUATED_NAME = re.compile(r"[A-Za-z_]")
_PATTERN_OPERATOR = re.compile(r"\A!?[A-Za-z_0-9@*#?$!-]+(?:\[[^\]]*\])?(?:#|%|/|\^|,)")
_DOCUMENT_TEXT = re.compile(r"[^\\$`]+")


class SubstitutedCommands(Protocol):
    """The reader of commands, as far as words need it: the lexer of bash calls its parser, too."""

    def read_commands_until_parenthesis(self) -> None:
        """Read commands up to the closing parenthesis, and pass it."""
        ...

    def read_inner(self, text: str, start: int) -> None:
        """Read commands from a text that had to be unquoted first, such as that between backticks."""
        ...


class ExpansionReader:
    """Reads quotes and expansions inside a word, and keeps the commands that they would run."""

    def __init__(self, cursor: TextCursor, commands: SubstitutedCommands) -> None:
        self._cursor = cursor
        self._commands = commands

    def single_quoted(self) -> str:
        """Pass a single-quoted text and return its content."""
        closing = self._cursor.text.find("'", self._cursor.at + 1)
        if closing < 0:
            raise Unreadable("a single quote is not closed")
        content = self._cursor.text[self._cursor.at + 1 : closing]
        self._cursor.at = closing + 1
        return content

    def _ansi_quoted(self) -> str:
        start = self._cursor.at + 1
        position = start
        while position < self._cursor.end and self._cursor.text[position] != "'":
            position += 2 if self._cursor.text[position] == "\\" else 1
        if position >= self._cursor.end:
            raise Unreadable("a single quote is not closed")
        self._cursor.at = position + 1
        return decode(self._cursor.text[start:position])

    def double_quoted(self, pieces: list[WordPiece]) -> None:
        """Read the rest of a double-quoted text, whose opening quote has been passed."""
        self.until('"', pieces, quoted=True)

    def until(self, closer: str, pieces: list[WordPiece], *, quoted: bool, single_quotes: bool | None = None) -> None:
        """Read text with expansions up to the closing character, and pass it."""
        single_quotes = not quoted if single_quotes is None else single_quotes
        special = "\\$`" + closer + ("" if closer == '"' else '"') + ("'" if single_quotes else "")
        ordinary = re.compile(f"[^{re.escape(special)}]+")
        opener = {"]": "[", ")": "(", "}": ""}.get(closer, "")
        nested = 0
        while True:
            character = self._cursor.peek()
            if not character:
                raise Unreadable(f"{closer} is missing")
            if character == closer and not nested:
                self._cursor.at += 1
                return
            if match := ordinary.match(self._cursor.text, self._cursor.at):
                self._cursor.at = match.end()
                nested += match[0].count(opener) if opener else 0
                pieces.append(WordPiece("text", match[0], quoted))
            elif character == closer:
                nested -= 1
                self._cursor.at += 1
                pieces.append(WordPiece("text", character, quoted))
            else:
                self._inside(character, pieces, quoted=quoted)

    def _inside(self, character: str, pieces: list[WordPiece], *, quoted: bool) -> None:
        """Read one special character inside text with expansions."""
        match character:
            case "$":
                self.dollar(pieces, quoted=quoted)
            case "`":
                pieces.append(self.backticks(quoted=quoted))
            case "'":
                pieces.append(WordPiece("text", self.single_quoted(), True))
            case '"':
                self._cursor.at += 1
                self.double_quoted(pieces)
            case _:
                self._cursor.at += 1
                escaped = self._cursor.text[self._cursor.at : self._cursor.at + 1]
                self._cursor.at += 1
                # in double quotes a backslash stays before any other character
                kept = escaped if not quoted or escaped in '$`"\\' else "\\" + escaped
                pieces.append(WordPiece("text", kept, True))

    def expandable(self) -> list[WordPiece]:
        """Read the whole text as the body of a here-document: only `$`, backticks and backslashes are special."""
        pieces: list[WordPiece] = []
        while character := self._cursor.peek():
            if match := _DOCUMENT_TEXT.match(self._cursor.text, self._cursor.at):
                self._cursor.at = match.end()
                pieces.append(WordPiece("text", match[0], True))
            elif character == "\\":
                escaped = self._cursor.text[self._cursor.at + 1 : self._cursor.at + 2]
                self._cursor.at += 2
                pieces.append(WordPiece("text", escaped if escaped and escaped in "$`\\" else "\\" + escaped, True))
            else:
                self._inside(character, pieces, quoted=True)
        return pieces

    def dollar(self, pieces: list[WordPiece], *, quoted: bool) -> None:
        """Read an expansion that begins with a dollar sign; by itself the sign is text."""
        start = self._cursor.at
        self._cursor.at += 1
        following = self._cursor.peek()
        if following == "(":
            pieces.append(self._parenthesised(start, quoted))
        elif following == "{":
            self._cursor.at += 1
            pieces.append(self._braced(start, quoted))
        elif following == "[":
            self._cursor.at += 1
            pieces.append(self.arithmetic(start, "]", quoted))
        elif following == "'" and not quoted:
            pieces.append(WordPiece("text", self._ansi_quoted(), True))
        elif following == '"' and not quoted:
            self._cursor.at += 1
            # an empty piece marks the word as quoted, so that it cannot be a keyword
            pieces.append(WordPiece("text", "", True))
            self.double_quoted(pieces)
        elif following and (following in _SPECIAL_PARAMETERS or _NAME.match(following)):
            name = self._name()
            self._cursor.found.variables.add(name)
            pieces.append(WordPiece("variable", name, quoted))
        else:
            pieces.append(WordPiece("text", "$", quoted))

    def _name(self) -> str:
        first = self._cursor.take()
        if not _NAME.match(first):
            return first
        name = first
        while (following := self._cursor.peek()) and (
            following == "_" or (following.isascii() and following.isalnum())
        ):
            name += following
            self._cursor.at += 1
        return name

    def _parenthesised(self, start: int, quoted: bool) -> WordPiece:
        """`$((…))`, or `$(…)`."""
        if self._cursor.ahead("(("):
            before = self._cursor.mark()
            try:
                self._cursor.accept("((")
                piece = self.arithmetic(start, ")", quoted)
                if self._cursor.accept(")"):
                    return piece
            except Unreadable:
                pass
            self._cursor.rewind(before)
        self._cursor.accept("(")
        return self._substitution(start, quoted)

    def _substitution(self, start: int, quoted: bool) -> WordPiece:
        slot = len(self._cursor.found.substitutions)
        self._cursor.found.substitutions.append((self._cursor.base + start, self._cursor.base + start + 2))
        self._commands.read_commands_until_parenthesis()
        self._cursor.found.substitutions[slot] = self._cursor.place(start)
        return WordPiece("substitution", self._cursor.text[start : self._cursor.at], quoted)

    def process_substitution(self) -> WordPiece:
        """`<(…)` or `>(…)`."""
        start = self._cursor.at
        self._cursor.take()
        self._cursor.accept("(")
        return self._substitution(start, False)

    def arithmetic(self, start: int, closer: str, quoted: bool) -> WordPiece:
        """Read arithmetic and pass its closing character."""
        self._cursor.enter()
        inside: list[WordPiece] = []
        self.until(closer, inside, quoted=True)
        self._cursor.leave()
        # bash evaluates the value of a name in arithmetic recursively: `x='a[$(id)]'; $((x))` runs id
        if any(piece.kind in {"variable", "expansion"} or _EVALUATED_NAME.search(piece.text) for piece in inside):
            self._cursor.found.evaluations.append(self._cursor.place(start))
        return WordPiece("arithmetic", self._cursor.text[start : self._cursor.at], quoted)

    def _braced(self, start: int, quoted: bool) -> WordPiece:
        """`${…}`: a variable, or an expansion whose inner words are read as well."""
        self._cursor.enter()
        # `${ cmd; }` and `${| cmd; }` of bash 5.3 run commands
        if (following := self._cursor.peek()) and following in " \t\n|":
            self._cursor.found.substitutions.append((self._cursor.base + start, self._cursor.base + start + 3))
        inside: list[WordPiece] = []
        head = _PATTERN_OPERATOR.match(self._cursor.text, self._cursor.at)
        self.until("}", inside, quoted=quoted, single_quotes=not quoted or head is not None)
        self._cursor.leave()
        source = self._cursor.text[start : self._cursor.at]
        content = source[2:-1].replace("\\\n", "")
        if _NAME.fullmatch(content) or content in _SPECIAL_PARAMETERS:
            self._cursor.found.variables.add(content)
            return WordPiece("variable", content, quoted)
        if match := _NAME.match(content.lstrip("!#")):
            self._cursor.found.variables.add(match[0])
        if _evaluates(content):
            self._cursor.found.evaluations.append(self._cursor.place(start))
        return WordPiece("expansion", source, quoted)

    def backticks(self, *, quoted: bool) -> WordPiece:
        """Commands between backticks."""
        start = self._cursor.at
        self._cursor.at += 1
        content = []
        while True:
            if self._cursor.at >= self._cursor.end:
                raise Unreadable("a backtick is not closed")
            character = self._cursor.text[self._cursor.at]
            self._cursor.at += 1
            if character == "`":
                break
            if (
                character == "\\"
                and self._cursor.at < self._cursor.end
                and self._cursor.text[self._cursor.at] in ('$`\\"' if quoted else "$`\\")
            ):
                character = self._cursor.text[self._cursor.at]
                self._cursor.at += 1
            content.append(character)
        self._cursor.found.substitutions.append(self._cursor.place(start))
        self._commands.read_inner("".join(content), start)
        return WordPiece("substitution", self._cursor.text[start : self._cursor.at], quoted)


def _evaluates(content: str) -> bool:
    """True if the text between the braces evaluates a value as code: a prompt, a subscript, an offset."""
    # expands the value as a prompt, in which `$(…)` runs
    if content.endswith("@P"):
        return True
    name = _NAME.match(content.lstrip("!#"))
    rest = content.lstrip("!#")[name.end() :] if name else ""
    if rest.startswith("["):
        return _EVALUATED_NAME.search(rest) is not None
    return rest.startswith(":") and rest[1:2] not in {"-", "=", "+", "?"} and _EVALUATED_NAME.search(rest) is not None
