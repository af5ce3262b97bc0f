"""The compound commands of bash: branches, loops, groups, functions, tests and arithmetic."""

from typing import Protocol

from whisper_tui.policy.shell.expansions import ExpansionReader, TextCursor
from whisper_tui.policy.shell.syntax import Loop, Redirection, Unreadable, Word
from whisper_tui.policy.shell.word_reader import WordReader

_CLOSERS = frozenset("then do done elif else fi esac }".split())
_COMPOUND = frozenset("if while until for select case { [[ function coproc".split())


class ListedCommands(Protocol):
    """The reader of commands, as far as compound commands need it."""

    def read_list(self, closers: frozenset[str]) -> str:
        """Read commands up to a closing word, passed and returned, or a closing operator."""
        ...

    def read_simple(self) -> None:
        """Read a simple command."""
        ...

    def redirection(self) -> Redirection | None:
        """Return the next redirection, or None if something else comes next."""
        ...

    def skip_lines(self) -> None:
        """Pass blanks, line ends and comments."""
        ...


class CompoundReader:
    """Reads commands that are made of other commands."""

    def __init__(
        self, cursor: TextCursor, words: WordReader, expansions: ExpansionReader, commands: ListedCommands
    ) -> None:
        self._cursor = cursor
        self._words = words
        self._expansions = expansions
        self._commands = commands

    def closing_word(self, closers: frozenset[str]) -> str | None:
        """Pass and return a closing word if one comes next. Raises `Unreadable` for one that closes nothing."""
        value = self._cursor.keyword()
        if value in closers:
            self._cursor.accept(value)
            return value
        if value in _CLOSERS:
            raise Unreadable(f"{value!r} is not expected")
        return None

    def read_command(self) -> None:
        """Read one command of any kind, with its redirections."""
        self._cursor.skip_blank()
        if self._cursor.peek() == "(":
            self._cursor.enter()
            self._parenthesis()
            self._cursor.leave()
            self._redirections()
            return
        keyword = self._cursor.keyword()
        if keyword not in _COMPOUND:
            self._commands.read_simple()
            return
        self._cursor.accept(keyword)
        self._cursor.enter()
        self._compound(keyword)
        self._cursor.leave()
        # the body of these two is a command that has read its redirections itself
        if keyword not in {"function", "coproc"}:
            self._redirections()

    def _redirections(self) -> None:
        while True:
            self._cursor.skip_blank()
            if self._commands.redirection() is None:
                return

    def _parenthesis(self) -> None:
        """`((…))`, or commands in a subshell."""
        if self._cursor.ahead("(("):
            # `((` may also open two subshells: `((cd a; ls) | wc)`
            before, start = self._cursor.mark(), self._cursor.at
            try:
                self._cursor.accept("((")
                self._expansions.arithmetic(start, ")", False)
                if self._cursor.accept(")"):
                    return
            except Unreadable:
                pass
            self._cursor.rewind(before)
        self._cursor.accept("(")
        self._commands.read_list(frozenset())
        self._commands.skip_lines()
        if not self._cursor.accept(")"):
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
        closer = self._commands.read_list(frozenset(closers))
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
        head: tuple[Word, ...] = ()
        self._cursor.skip_blank()
        if self._cursor.ahead("(("):
            start = self._cursor.at
            self._cursor.accept("((")
            self._expansions.arithmetic(start, ")", False)
            if not self._cursor.accept(")"):
                raise Unreadable("arithmetic is not closed")
        else:
            head = self._loop_words()
        self._cursor.skip_blank()
        self._cursor.accept(";")
        self._commands.skip_lines()
        closer = self.closing_word(frozenset({"do", "{"}))
        if closer is None:
            raise Unreadable("'do' is missing")
        first = len(self._cursor.found.commands)
        self._list_to("done" if closer == "do" else "}")
        if head:
            self._cursor.found.loops.append(Loop(head[0], head[1:], first, len(self._cursor.found.commands)))

    def _loop_words(self) -> tuple[Word, ...]:
        """Read `NAME in WORD …`, and return the name and the words. Empty without `in`."""
        name = self._words.word()
        if name is None:
            raise Unreadable("the loop has no variable")
        self._cursor.found.loop_variables.add(name.value or "")
        self._commands.skip_lines()
        if not self.closing_word(frozenset({"in"})):
            return ()
        words = [name]
        while True:
            self._cursor.skip_blank()
            word = self._words.word()
            if word is None:
                return tuple(words)
            words.append(word)

    def _case(self) -> None:
        self._cursor.skip_blank()
        if self._words.word() is None:
            raise Unreadable("'case' has no word")
        self._commands.skip_lines()
        if self.closing_word(frozenset({"in"})) is None:
            raise Unreadable("'in' is missing")
        while True:
            self._commands.skip_lines()
            if self.closing_word(frozenset({"esac"})) is not None:
                return
            self._pattern()
            if self._commands.read_list(frozenset({"esac"})) == "esac":
                return
            if not (self._cursor.accept(";;&") or self._cursor.accept(";;") or self._cursor.accept(";&")):
                raise Unreadable("'esac' is missing")

    def _pattern(self) -> None:
        self._cursor.accept("(")
        while True:
            self._cursor.skip_blank()
            if self._words.word() is None:
                raise Unreadable("a pattern is missing")
            self._cursor.skip_blank()
            if self._cursor.accept(")"):
                return
            if not self._cursor.accept("|"):
                raise Unreadable("')' is missing after a pattern")

    def _test(self) -> None:
        """`[[ … ]]`, with operators of its own."""
        start, values = self._cursor.at, list[str]()
        while True:
            while (character := self._cursor.peek()) and character in " \t\n":
                self._cursor.take()
            word = self._words.word()
            if word is not None:
                if word.bare and word.value == "]]":
                    break
                values.append("".join(piece.text for piece in word.pieces))
            elif character and character in "<>()&|!;":
                self._cursor.take()
            else:
                raise Unreadable("']]' is missing")
        # these operators evaluate their operands as arithmetic, and `-v` evaluates a subscript: both can run code
        numeric = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"} & set(values)
        if (numeric or "-v" in values) and any("[" in value for value in values):
            self._cursor.found.evaluations.append(self._cursor.place(start))

    def _named_function(self) -> None:
        self._cursor.skip_blank()
        name = self._words.word()
        if name is None:
            raise Unreadable("a function has no name")
        self._cursor.skip_blank()
        if self._cursor.accept("("):
            self._cursor.skip_blank()
            if not self._cursor.accept(")"):
                raise Unreadable("')' is missing after a function's name")
        self.define_function(name.value)

    def define_function(self, name: str | None) -> None:
        """Read the body of a function whose name has been read."""
        self._cursor.found.functions.add(name or "")
        self._commands.skip_lines()
        if self._cursor.peek() != "(" and self._cursor.keyword() not in _COMPOUND:
            raise Unreadable("a function has no body")
        self.read_command()
        self._redirections()

    def _coprocess(self) -> None:
        """`coproc [NAME] compound`, or `coproc` and a simple command."""
        self._cursor.skip_blank()
        if self._cursor.peek() != "(" and self._cursor.keyword() not in _COMPOUND:
            before = self._cursor.mark()
            self._words.word()
            self._cursor.skip_blank()
            if self._cursor.peek() != "(" and self._cursor.keyword() not in _COMPOUND:
                self._cursor.rewind(before)
        self.read_command()
