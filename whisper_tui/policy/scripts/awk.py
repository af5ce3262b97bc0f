"""awk programs, read token by token as gawk, mawk and the original awk all read them.

What they read differently is not accepted. Where a slash begins a regular expression is decided by what stands before
it. Everything that could write, run or open something needs one of a few words or signs, and those are looked for among
tokens, never in the text.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

_STATEMENTS = frozenset(
    "BEGIN END if else while for do in print printf next nextfile exit delete break continue return function func "
    "switch case default".split()
)
_FUNCTIONS = frozenset(
    "length substr index split sub gsub gensub match sprintf sin cos atan2 exp log sqrt int rand srand tolower toupper "
    "strftime systime mktime asort asorti strtonum and or xor lshift rshift compl patsplit typeof isarray".split()
)
_ACTING = frozenset(
    "system getline close fflush extension stopme adump ENVIRON ARGV ARGC ARGIND PROCINFO SYMTAB FUNCTAB include load "
    "namespace BEGINFILE ENDFILE".split()
)
"""Words that run, write or open something, or reach the environment and the names of files."""

_BEFORE_PARENTHESIS = frozenset({"if", "while", "for", "switch"})

_BRACKET = r"\[\^?(?:[^\]\[/\\\n]|\[:[a-z]+:\]|\\[A-Za-z0-9.*+?$^|(){}-])+\]"
"""Brackets in a regular expression that end where every awk says so, and hold no slash."""

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+)
    |(?P<line>\n)
    |(?P<comment>\#[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\[^\n])*")
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||\+\+|--|[-+*%^!<>=]=|!~|\*\*=?|[-+*%^!<>?:~$=,;()\[\]{}|/&])""",
    re.VERBOSE,
)
_REGEX = re.compile(rf"/(?:[^/\\\n\[]|\\[^\n]|{_BRACKET})*/")


class _Token(NamedTuple):
    kind: str
    text: str


class _Unreadable(Exception):
    """Something in the program is not read alike by every awk."""


def awk_acts(script: str) -> bool:
    """Whether an awk program may do anything but print. Not understood counts as yes."""
    try:
        tokens = list(_tokens(script))
    except _Unreadable:
        return True
    return any(token.text in _ACTING for token in tokens if token.kind == "name") or _calls(tokens) or _writes(tokens)


def _tokens(script: str) -> Iterator[_Token]:
    at, last = 0, _Token("line", "\n")
    opened: list[bool] = []
    """For each open parenthesis, whether it belongs to a statement: what follows it is a new beginning."""
    after_statement = False
    while at < len(script):
        match = _TOKEN.match(script, at)
        if match is None:
            raise _Unreadable
        token = _Token(match.lastgroup or "", match[0])
        if token.text == "/":
            if last.kind == "regex":
                raise _Unreadable  # some take what follows for another regular expression
            if _ends_operand(last) and not after_statement:
                at, token = match.end(), _Token("sign", "/")
            else:
                if last.text in {"++", "--"} or after_statement:
                    raise _Unreadable
                regex = _REGEX.match(script, at)
                if regex is None:
                    raise _Unreadable
                at, token = regex.end(), _Token("regex", regex[0])
        else:
            at = match.end()
        if token.kind in {"blank", "comment"}:
            continue
        after_statement = after_statement and token.kind == "line"
        if token.text == "(" and token.kind == "sign":
            opened.append(last.text in _BEFORE_PARENTHESIS)
        elif token.text == ")" and token.kind == "sign":
            after_statement = opened.pop() if opened else False
        yield token
        last = token


def _ends_operand(token: _Token) -> bool:
    """Whether a slash behind it divides."""
    if token.kind == "name":
        if token.text in _FUNCTIONS:
            raise _Unreadable  # `length / 2` and `length /x/` are told apart by each awk in its own way
        return token.text not in _STATEMENTS
    return token.kind in {"number", "string", "regex"} or token.text in {")", "]"}


def _calls(tokens: list[_Token]) -> bool:
    """Whether a function is called that is neither harmless nor the program's own."""
    own = {
        after.text
        for before, after in pairwise(tokens)
        if before.text in {"function", "func"} and before.kind == after.kind == "name"
    }
    known = _STATEMENTS | _FUNCTIONS | own
    return any(
        before.kind == "name" and after.text == "(" and after.kind == "sign" and before.text not in known
        for before, after in pairwise(tokens)
    )


def _writes(tokens: list[_Token]) -> bool:
    """Whether a sign that prints into a file or a program stands where it would."""
    prints, depth = False, 0
    last = _Token("line", "\n")
    for token in tokens:
        if token.kind == "sign" and token.text in {"|", "&"}:
            return True
        if token.kind == "sign":
            if token.text == "(":
                depth += 1
            elif token.text == ")":
                depth -= 1
            elif token.text in {"{", "}"}:
                prints, depth = False, 0
            elif token.text == ";":
                prints = False
            elif token.text == ">" and (last.text == ">" or (prints and depth <= 0)):
                return True
        elif token.kind == "line":
            if depth > 0 or not _is_complete(last):
                continue  # behind a comma or an operator the statement goes on, over any number of lines
            prints, depth = False, 0
        elif token.kind == "name" and token.text in {"print", "printf"}:
            prints, depth = True, 0
        last = token
    return False


def _is_complete(token: _Token) -> bool:
    if token.kind == "name":
        return token.text not in _STATEMENTS
    return token.kind in {"number", "string", "regex", "line"} or token.text in {")", "]", ";", "{", "}"}
