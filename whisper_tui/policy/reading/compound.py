"""The compound commands of bash: branches, loops, groups, functions, tests and arithmetic."""

from abc import abstractmethod
from typing import Any

from whisper_tui.policy.reading.syntax import Redirection, Script, Unreadable
from whisper_tui.policy.reading.words import WordReader

_CLOSERS = frozenset("then do done elif else fi esac }".split())
_COMPOUND = frozenset("if while until for select case { [[ function coproc".split())


class CompoundReader(WordReader):
    """Reads what is made of other commands."""

    def __init__(self, text: str, found: Script, *, base: int = 0, depth: int = 0) -> None:
        super().__init__(text, found, base=base, depth=depth)
        self.awaited: list[Any] = []
        """Here-documents whose bodies begin at the next line."""
        self.in_substitution = 0

    @abstractmethod
    def read_list(self, closers: frozenset[str]) -> str:
        """Read commands up to a closing word, passed and returned, or a closing operator."""

    @abstractmethod
    def read_simple(self) -> None:
        """Read a simple command."""

    @abstractmethod
    def redirection(self) -> Redirection | None:
        """The next redirection, if one comes next."""

    @abstractmethod
    def skip_lines(self) -> None:
        """Pass blanks, line ends and comments."""

    def closing_word(self, closers: frozenset[str]) -> str | None:
        """Pass and return a closing word, if one comes next. Raises `Unreadable` for one that closes nothing."""
        value = self.keyword()
        if value in closers:
            self.accept(value)
            return value
        if value in _CLOSERS:
            raise Unreadable(f"{value!r} is not expected")
        return None

    def read_command(self) -> None:
        """Read one command of any kind, with the redirections behind it."""
        self.skip_blank()
        if self.peek() == "(":
            self.enter()
            self._parenthesis()
            self.leave()
            self._redirections()
            return
        keyword = self.keyword()
        if keyword not in _COMPOUND:
            self.read_simple()
            return
        self.accept(keyword)
        self.enter()
        self._compound(keyword)
        self.leave()
        if keyword not in {"function", "coproc"}:
            self._redirections()

    def _redirections(self) -> None:
        while True:
            self.skip_blank()
            if self.redirection() is None:
                return

    def _parenthesis(self) -> None:
        """`((…))`, or commands in a subshell."""
        if self.ahead("(("):
            before, start = self.mark(), self.at
            try:
                self.accept("((")
                self.arithmetic(start, ")", False)
                if self.accept(")"):
                    return
            except Unreadable:
                pass
            self.rewind(before)
        self.accept("(")
        self.read_list(frozenset())
        self.skip_lines()
        if not self.accept(")"):
            raise Unreadable("a parenthesis is not closed")

    def _compound(self, keyword: str) -> None:
        match keyword:
            case "if":
                self._branches()
            case "while" | "until":
                self._list_to("do")
                self._list_to("done")
            case "for" | "select":
                self._loop()
            case "case":
                self._case()
            case "{":
                self._list_to("}")
            case "[[":
                self._test()
            case "function":
                self._named_function()
            case _:
                self._coprocess()

    def _list_to(self, *closers: str) -> str:
        closer = self.read_list(frozenset(closers))
        if closer not in closers:
            raise Unreadable(f"{closers[0]!r} is missing")
        return closer

    def _branches(self) -> None:
        closer = "elif"
        while closer == "elif":
            self._list_to("then")
            closer = self._list_to("elif", "else", "fi")
        if closer == "else":
            self._list_to("fi")

    def _loop(self) -> None:
        self.skip_blank()
        if self.ahead("(("):
            start = self.at
            self.accept("((")
            self.arithmetic(start, ")", False)
            if not self.accept(")"):
                raise Unreadable("arithmetic is not closed")
        else:
            self._loop_words()
        self.skip_blank()
        self.accept(";")
        self.skip_lines()
        closer = self.closing_word(frozenset({"do", "{"}))
        if closer is None:
            raise Unreadable("'do' is missing")
        self._list_to("done" if closer == "do" else "}")

    def _loop_words(self) -> None:
        name = self.word()
        if name is None:
            raise Unreadable("the loop has no variable")
        self.found.loop_variables.add(name.value or "")
        self.skip_lines()
        if not self.closing_word(frozenset({"in"})):
            return
        while True:
            self.skip_blank()
            if self.word() is None:
                return

    def _case(self) -> None:
        self.skip_blank()
        if self.word() is None:
            raise Unreadable("'case' has no word")
        self.skip_lines()
        if self.closing_word(frozenset({"in"})) is None:
            raise Unreadable("'in' is missing")
        while True:
            self.skip_lines()
            if self.closing_word(frozenset({"esac"})) is not None:
                return
            self._pattern()
            if self.read_list(frozenset({"esac"})) == "esac":
                return
            if not (self.accept(";;&") or self.accept(";;") or self.accept(";&")):
                raise Unreadable("'esac' is missing")

    def _pattern(self) -> None:
        self.accept("(")
        while True:
            self.skip_blank()
            if self.word() is None:
                raise Unreadable("a pattern is missing")
            self.skip_blank()
            if self.accept(")"):
                return
            if not self.accept("|"):
                raise Unreadable("')' is missing after a pattern")

    def _test(self) -> None:
        """`[[ … ]]`: operators of a test are not those of commands."""
        start, values = self.at, list[str]()
        while True:
            while (character := self.peek()) and character in " \t\n":
                self.take()
            word = self.word()
            if word is not None:
                if word.bare and word.value == "]]":
                    break
                values.append("".join(piece.text for piece in word.pieces))
            elif character and character in "<>()&|!;":
                self.take()
            else:
                raise Unreadable("']]' is missing")
        numeric = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"} & set(values)
        if (numeric or "-v" in values) and any("[" in value for value in values):
            self.found.evaluations.append(self.place(start))

    def _named_function(self) -> None:
        self.skip_blank()
        name = self.word()
        if name is None:
            raise Unreadable("a function has no name")
        self.skip_blank()
        if self.accept("("):
            self.skip_blank()
            if not self.accept(")"):
                raise Unreadable("')' is missing after a function's name")
        self.define_function(name.value)

    def define_function(self, name: str | None) -> None:
        """Read the body of a function whose name has been read."""
        self.found.functions.add(name or "")
        self.skip_lines()
        if self.peek() != "(" and self.keyword() not in _COMPOUND:
            raise Unreadable("a function has no body")
        self.read_command()
        self._redirections()

    def _coprocess(self) -> None:
        """`coproc [NAME] compound`, or `coproc` and a simple command."""
        self.skip_blank()
        if self.peek() != "(" and self.keyword() not in _COMPOUND:
            before = self.mark()
            self.word()
            self.skip_blank()
            if self.peek() != "(" and self.keyword() not in _COMPOUND:
                self.rewind(before)
        self.read_command()
