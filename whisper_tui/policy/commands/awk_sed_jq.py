"""Analysis of scripts for awk, sed and jq: do they write, run, or read more than their input?"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

_STATEMENTS = frozenset(
    "BEGIN END if else while for do in print printf next nextfile exit delete break continue return function func "
    "switch case default".split()
)
_AWK_FUNCTIONS = frozenset(
    "length substr index split sub gsub gensub match sprintf sin cos atan2 exp log sqrt int rand srand tolower toupper "
    "strftime systime mktime asort asorti strtonum and or xor lshift rshift compl patsplit typeof isarray".split()
)
_ACTING = frozenset(
    "system close fflush extension stopme adump ENVIRON ARGV ARGC ARGIND PROCINFO SYMTAB FUNCTAB include load "
    "namespace BEGINFILE ENDFILE".split()
)
"""Words that run, write or open something, or access the environment or file names."""

_BEFORE_PARENTHESIS = frozenset({"if", "while", "for", "switch"})

_BRACKET = r"\[\^?(?:[^\]\[/\\\n]|\[:[a-z]+:\]|\\[A-Za-z0-9.*+?$^|(){}-])+\]"
"""A bracket expression without a slash, which every awk ends at the same place."""

_AWK_TOKEN = re.compile(
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
    """Implementations of awk would read a part of the program differently."""


def awk_has_effects(script: str) -> bool:
    """True if an awk program may do anything but print, or is not understood (decision 8)."""
    try:
        tokens = list(_tokens(script))
    except _Unreadable:
        return True
    acts = any(token.text in _ACTING for token in tokens if token.kind == "name")
    return acts or _calls(tokens) or _writes(list(_without_outputs(tokens))) or _opens(tokens)


_OUTPUTS = frozenset({'"/dev/null"', '"/dev/stdout"', '"/dev/stderr"'})


def _without_outputs(tokens: list[_Token]) -> Iterator[_Token]:
    """Yield the tokens without redirections that open no file."""
    ended = [*tokens, _Token("line", "\n"), _Token("line", "\n")]
    skipped = 0
    for at, token in enumerate(tokens):
        ends = ended[at + 2].kind == "line" or ended[at + 2].text in {";", "}"}
        if token == _Token("sign", ">") and ended[at + 1].text in _OUTPUTS and ends:
            skipped = 2
        if skipped:
            skipped -= 1
        else:
            yield token


def _opens(tokens: list[_Token]) -> bool:
    """True if `getline` may read anything but the next line of the input: `getline < "file"`, `"cmd" | getline`."""
    ended = [*tokens, _Token("line", "\n"), _Token("line", "\n")]
    for at, token in enumerate(tokens):
        if token.kind == "name" and token.text == "getline":
            behind = at + 2 if ended[at + 1].kind == "name" and ended[at + 1].text not in _STATEMENTS else at + 1
            if not (ended[behind].kind == "line" or ended[behind].text in {";", "}"}):
                return True
    return False


def _tokens(script: str) -> Iterator[_Token]:
    at, last = 0, _Token("line", "\n")
    opened: list[bool] = []
    """For each open parenthesis, whether it belongs to a statement such as `if`."""
    after_statement = False
    while at < len(script):
        match = _AWK_TOKEN.match(script, at)
        if match is None:
            raise _Unreadable
        token = _Token(match.lastgroup or "", match[0])
        if token.text == "/":
            if last.kind == "regex":
                raise _Unreadable  # some take what follows for another regular expression
            if _ends_operand(last) and not after_statement:
                at, token = match.end(), _Token("sign", "/")
            else:
                # `x++ /y/ z` divides or matches, depending on the awk
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
    """True if a slash after this token is a division."""
    if token.kind == "name":
        if token.text in _AWK_FUNCTIONS:
            raise _Unreadable  # `length / 2` and `length /x/` are told apart by each awk in its own way
        return token.text not in _STATEMENTS
    return token.kind in {"number", "string", "regex"} or token.text in {")", "]"}


def _calls(tokens: list[_Token]) -> bool:
    """True if it calls a function that is neither harmless nor its own."""
    own = {
        after.text
        for before, after in pairwise(tokens)
        if before.text in {"function", "func"} and before.kind == after.kind == "name"
    }
    known = _STATEMENTS | _AWK_FUNCTIONS | own
    return any(
        before.kind == "name" and after.text == "(" and after.kind == "sign" and before.text not in known
        for before, after in pairwise(tokens)
    )


def _writes(tokens: list[_Token]) -> bool:
    """True if it prints into a file or a program."""
    prints, depth = False, 0
    last = _Token("line", "\n")
    for token in tokens:
        # a pipe to or from a command; `&` for the `|&` of gawk
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
            # inside parentheses `>` compares, also behind print
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


_SKIPPED = re.compile(r"[ \t\n;]*")
_ADDRESS = re.compile(
    r"\d+(?:~\d+)?|\$"
    r"|/(?:[^/\\\n]|\\[^\n])*/(?:[ \t]*[IM])*"
    r"|\\([!#%&*+,.:;<=>?@^_|~'\"-])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:[ \t]*[IM])*"
)
_SECOND = re.compile(r"[+~]\d+")
_BANG = re.compile(r"[ \t]*(?:![ \t]*)?")
_END = re.compile(r"[ \t]*(?:[;\n]|\Z|(?=[}#]))")
"""The end of a command. A comment or a closing brace is not consumed."""

_BARE = frozenset("=dDgGhHnNpPxFz")
_NUMBERED = re.compile(r"[lqQ][ \t]*\d*")
_LABEL = re.compile(r"(?::[ \t]*[A-Za-z0-9_]+|[btT][ \t]*[A-Za-z0-9_]*)(?=[ \t;\n}]|\Z)")
"""GNU sed ends a label at a blank or `;`, so a label with any other character could hide a command after it."""

_TEXT = re.compile(r"[aic][ \t]*(?:\\\n?[ \t]*)?[^\\\s][^\\\n]*(?:\n|\Z)")
_COMMENT = re.compile(r"#[^\n]*")
_FLAGS = re.compile(r"[gpiImM0-9]*")
_DELIMITERS = frozenset("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~")
_JUMPS = re.compile(r"[:btT]")


def sed_has_effects(script: str) -> bool:
    """True if a sed script does anything but change the text that it prints, or is not understood."""
    if "\\\n" in script and _JUMPS.search(script):
        return True  # to BSD sed a label is the whole line, so an escaped line end could hide a command from us
    at = 0
    while True:
        at = _end(_SKIPPED, script, at) or at
        if at >= len(script):
            return False
        end = _command(script, _addressed(script, at))
        if end is None:
            return True
        at = end


def _end(pattern: re.Pattern[str], script: str, at: int) -> int | None:
    match = pattern.match(script, at)
    return match.end() if match else None


def _addressed(script: str, at: int) -> int:
    """Return the index of the command after an address."""
    first = _end(_ADDRESS, script, at)
    if first is not None:
        at = first
        comma = re.compile(r"[ \t]*,[ \t]*").match(script, at)
        if comma:
            second = _end(_SECOND, script, comma.end()) or _end(_ADDRESS, script, comma.end())
            at = second if second is not None else comma.start()
    return _end(_BANG, script, at) or at


def _command(script: str, at: int) -> int | None:
    """Return the index after a harmless command, or None if it is not harmless or not understood."""
    command = script[at : at + 1]
    if command == "{":
        return at + 1
    if command in _BARE or command == "}":
        return _end(_END, script, at + 1) if command else None
    # these take an exit status or a line length
    if command in "lqQ":
        return _then_end(script, _end(_NUMBERED, script, at))
    if command in "sy":
        return _then_end(script, _substitution(script, at))
    if command in "aic":
        return _end(_TEXT, script, at)
    if command in ":btT":
        return _end(_LABEL, script, at)
    if command == "#":
        return _end(_COMMENT, script, at)
    return None


def _then_end(script: str, at: int | None) -> int | None:
    return None if at is None else _end(_END, script, at)


def _substitution(script: str, at: int) -> int | None:
    delimiter = script[at + 1 : at + 2]
    if delimiter not in _DELIMITERS:
        return None
    position, parts = at + 2, 0
    while position < len(script) and parts < 2:
        if script[position] == "\\":
            position += 1
        # implementations differ in whether a line end may stand in here
        elif script[position] == "\n":
            return None
        elif script[position] == delimiter:
            parts += 1
        position += 1
    if parts < 2:
        return None
    # the flags of `s` may include e and w, which run and write; `_FLAGS` has neither
    return position if script[at] == "y" else _end(_FLAGS, script, position)


_JQ_FUNCTIONS = frozenset(
    "length utf8bytelength not keys keys_unsorted values nulls booleans numbers strings arrays objects scalars "
    "has in map map_values path del to_entries from_entries with_entries select empty error add any all flatten range "
    "floor ceil round sqrt pow log tostring tonumber tojson fromjson type infinite nan isnan sort sort_by group_by min "
    "max min_by max_by unique unique_by reverse contains inside startswith endswith combinations ltrimstr rtrimstr "
    "trim ltrim rtrim explode implode split join ascii_downcase ascii_upcase recurse transpose first last nth until "
    "limit index rindex indices test match capture scan sub gsub ascii todate fromdate now abs toarray paths "
    "walk if then elif else end and or try catch true false null reduce foreach as".split()
)
_JQ_TOKEN = re.compile(
    r"""[ \t\n]+
    |\.\.|\.[A-Za-z_][A-Za-z0-9_]*|\.
    |"(?:[^"\\]|\\["\\/bfnrt])*"
    |[0-9]+(?:\.[0-9]+)?
    |@(?:csv|tsv|json|text|base64|base64d|html|uri|sh)\b(?![ \t\n]*")
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?![A-Za-z0-9_:]*::)
    |//=?|\?//|[=!<>]=|[|,:;?()\[\]{}<>+*/%=-]""",
    re.VERBOSE,
)
_NEVER = frozenset("env input inputs input_filename import include def modulemeta debug stderr".split())


def jq_reaches_further(script: str) -> bool:
    """True if a filter could show more than its input, or is not understood."""
    at, opened, last = 0, "", ""
    while at < len(script):
        match = _JQ_TOKEN.match(script, at)
        if match is None:
            return True
        at, text, name = match.end(), match[0], match["name"]
        # in `{env: .a}` the name is a key, no function
        is_key = opened.endswith("{") and last in {"{", ","}
        if name is not None and (name in _NEVER or not (is_key or name in _JQ_FUNCTIONS)):
            return True
        if text in {"(", "[", "{"}:
            opened += text
        elif text in {")", "]", "}"}:
            opened = opened[:-1]
        last = last if text.isspace() else text
    return False
