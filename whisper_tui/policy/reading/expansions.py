"""What stands inside words: quotes, variables, substitutions and arithmetic."""

import re
from abc import abstractmethod

from whisper_tui.policy.reading.ansi_c import decode
from whisper_tui.policy.reading.cursor import Cursor
from whisper_tui.policy.reading.syntax import Piece, Unreadable

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL_PARAMETERS = "*@#?-$!0123456789"
_EVALUATED_NAME = re.compile(r"[A-Za-z_]")
_PATTERN_OPERATOR = re.compile(r"\A!?[A-Za-z_0-9@*#?$!-]+(?:\[[^\]]*\])?(?:#|%|/|\^|,)")
_DOCUMENT_TEXT = re.compile(r"[^\\$`]+")


class ExpansionReader(Cursor):
    """Reads what is special inside a word, and keeps the commands that it would run."""

    @abstractmethod
    def read_commands_until_parenthesis(self) -> None:
        """Read commands up to the closing parenthesis, and pass it."""

    @abstractmethod
    def read_inner(self, text: str, start: int) -> None:
        """Read a text that is unquoted first, such as that between backticks."""

    def single_quoted(self) -> str:
        """What stands in single quotes, passed with them."""
        closing = self.text.find("'", self.at + 1)
        if closing < 0:
            raise Unreadable("a single quote is not closed")
        content = self.text[self.at + 1 : closing]
        self.at = closing + 1
        return content

    def _ansi_quoted(self) -> str:
        start = self.at + 1
        position = start
        while position < self.end and self.text[position] != "'":
            position += 2 if self.text[position] == "\\" else 1
        if position >= self.end:
            raise Unreadable("a single quote is not closed")
        self.at = position + 1
        return decode(self.text[start:position])

    def double_quoted(self, pieces: list[Piece]) -> None:
        """What stands in double quotes, after the first."""
        self.until('"', pieces, quoted=True)

    def until(self, closer: str, pieces: list[Piece], *, quoted: bool, single_quotes: bool | None = None) -> None:
        """Read text with expansions up to the closing character, and pass it."""
        single_quotes = not quoted if single_quotes is None else single_quotes
        special = "\\$`" + closer + ("" if closer == '"' else '"') + ("'" if single_quotes else "")
        ordinary = re.compile(f"[^{re.escape(special)}]+")
        opener = {"]": "[", ")": "(", "}": ""}.get(closer, "")
        nested = 0
        while True:
            character = self.peek()
            if not character:
                raise Unreadable(f"{closer} is missing")
            if character == closer and not nested:
                self.at += 1
                return
            if match := ordinary.match(self.text, self.at):
                self.at = match.end()
                nested += match[0].count(opener) if opener else 0
                pieces.append(Piece("text", match[0], quoted))
            elif character == closer:
                nested -= 1
                self.at += 1
                pieces.append(Piece("text", character, quoted))
            else:
                self._inside(character, pieces, quoted=quoted)

    def _inside(self, character: str, pieces: list[Piece], *, quoted: bool) -> None:
        """One special character inside text with expansions."""
        match character:
            case "$":
                self.dollar(pieces, quoted=quoted)
            case "`":
                pieces.append(self.backticks(quoted=quoted))
            case "'":
                pieces.append(Piece("text", self.single_quoted(), True))
            case '"':
                self.at += 1
                self.double_quoted(pieces)
            case _:
                self.at += 1
                escaped = self.text[self.at : self.at + 1]
                self.at += 1
                kept = escaped if not quoted or escaped in '$`"\\' else "\\" + escaped
                pieces.append(Piece("text", kept, True))

    def expandable(self) -> list[Piece]:
        """The whole text as a here-document's body: only `$`, backticks and backslashes are special."""
        pieces: list[Piece] = []
        while character := self.peek():
            if match := _DOCUMENT_TEXT.match(self.text, self.at):
                self.at = match.end()
                pieces.append(Piece("text", match[0], True))
            elif character == "\\":
                escaped = self.text[self.at + 1 : self.at + 2]
                self.at += 2
                pieces.append(Piece("text", escaped if escaped and escaped in "$`\\" else "\\" + escaped, True))
            else:
                self._inside(character, pieces, quoted=True)
        return pieces

    def dollar(self, pieces: list[Piece], *, quoted: bool) -> None:
        """What a dollar sign begins; by itself it is text."""
        start = self.at
        self.at += 1
        following = self.peek()
        if following == "(":
            pieces.append(self._parenthesised(start, quoted))
        elif following == "{":
            self.at += 1
            pieces.append(self._braced(start, quoted))
        elif following == "[":
            self.at += 1
            pieces.append(self.arithmetic(start, "]", quoted))
        elif following == "'" and not quoted:
            pieces.append(Piece("text", self._ansi_quoted(), True))
        elif following == '"' and not quoted:
            self.at += 1
            pieces.append(Piece("text", "", True))
            self.double_quoted(pieces)
        elif following and (following in _SPECIAL_PARAMETERS or _NAME.match(following)):
            name = self._name()
            self.found.variables.add(name)
            pieces.append(Piece("variable", name, quoted))
        else:
            pieces.append(Piece("text", "$", quoted))

    def _name(self) -> str:
        first = self.take()
        if not _NAME.match(first):
            return first
        name = first
        while (following := self.peek()) and (following == "_" or (following.isascii() and following.isalnum())):
            name += following
            self.at += 1
        return name

    def _parenthesised(self, start: int, quoted: bool) -> Piece:
        """`$(…)` or `$((…))`; what only looks like arithmetic is a substitution that starts with a subshell."""
        if self.ahead("(("):
            before = self.mark()
            try:
                self.accept("((")
                piece = self.arithmetic(start, ")", quoted)
                if self.accept(")"):
                    return piece
            except Unreadable:
                pass
            self.rewind(before)
        self.accept("(")
        return self._substitution(start, quoted)

    def _substitution(self, start: int, quoted: bool) -> Piece:
        slot = len(self.found.substitutions)
        self.found.substitutions.append((self.base + start, self.base + start + 2))
        self.read_commands_until_parenthesis()
        self.found.substitutions[slot] = self.place(start)
        return Piece("substitution", self.text[start : self.at], quoted)

    def process_substitution(self) -> Piece:
        """`<(…)` or `>(…)`."""
        start = self.at
        self.take()
        self.accept("(")
        return self._substitution(start, False)

    def arithmetic(self, start: int, closer: str, quoted: bool) -> Piece:
        """Arithmetic up to its first closing character, which is passed. Names in it may be evaluated as code."""
        self.enter()
        inside: list[Piece] = []
        self.until(closer, inside, quoted=True)
        self.leave()
        if any(piece.kind in {"variable", "expansion"} or _EVALUATED_NAME.search(piece.text) for piece in inside):
            self.found.evaluations.append(self.place(start))
        return Piece("arithmetic", self.text[start : self.at], quoted)

    def _braced(self, start: int, quoted: bool) -> Piece:
        """`${…}`: a plain name is a variable; anything more is an expansion whose words count as well."""
        self.enter()
        if (following := self.peek()) and following in " \t\n|":
            self.found.substitutions.append((self.base + start, self.base + start + 3))
        inside: list[Piece] = []
        head = _PATTERN_OPERATOR.match(self.text, self.at)
        self.until("}", inside, quoted=quoted, single_quotes=not quoted or head is not None)
        self.leave()
        source = self.text[start : self.at]
        content = source[2:-1].replace("\\\n", "")
        if _NAME.fullmatch(content) or content in _SPECIAL_PARAMETERS:
            self.found.variables.add(content)
            return Piece("variable", content, quoted)
        if match := _NAME.match(content.lstrip("!#")):
            self.found.variables.add(match[0])
        if _evaluates(content):
            self.found.evaluations.append(self.place(start))
        return Piece("expansion", source, quoted)

    def backticks(self, *, quoted: bool) -> Piece:
        """Commands between backticks: backslashes are taken away before they are read."""
        start = self.at
        self.at += 1
        content = []
        while True:
            if self.at >= self.end:
                raise Unreadable("a backtick is not closed")
            character = self.text[self.at]
            self.at += 1
            if character == "`":
                break
            if character == "\\" and self.at < self.end and self.text[self.at] in ('$`\\"' if quoted else "$`\\"):
                character = self.text[self.at]
                self.at += 1
            content.append(character)
        self.found.substitutions.append(self.place(start))
        self.read_inner("".join(content), start)
        return Piece("substitution", self.text[start : self.at], quoted)


def _evaluates(content: str) -> bool:
    """Whether what stands between the braces reads a value as code: a prompt, a subscript, an offset."""
    if content.endswith("@P"):
        return True
    name = _NAME.match(content.lstrip("!#"))
    rest = content.lstrip("!#")[name.end() :] if name else ""
    if rest.startswith("["):
        return _EVALUATED_NAME.search(rest) is not None
    return rest.startswith(":") and rest[1:2] not in {"-", "=", "+", "?"} and _EVALUATED_NAME.search(rest) is not None
