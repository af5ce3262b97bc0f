"""What an agent may write to make a terminal, a toolkit, a page or a reader do or believe something."""

import pytest

from tests.fuzz.profile import LONG

TEXTS = {
    "markup": "[red]x[/red] [/] [bold $error]y[/]",
    "action link": "[@click=app.quit]go[/] [link=https://evil.example]here[/link]",
    "emoji codes": ":skull: :warning:",
    "title": "\x1b]2;owned\x07",
    "link": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "notification": "\x1b]9;owned\x07\x1b]777;notify;a;b\x07",
    "notification fields": "a;b;c",
    "colours and moves": "\x1b[31m\x1b[2J\x1b[H\x1b[?1049l\x1b[6n\x1b[999;999H",
    "device control": "\x1bP$q\x22p\x1b\\ \x1b_Gi=1\x1b\\ \x1b^x\x1b\\ \x1bXy\x1b\\",
    "reset": "\x1bc\x1b#8\x1b(0",
    "eight bits": "\x9b31m\x9d52;c;ZXZpbA==\x9c\x90q\x9c\x85\x84",
    "end of a paste": "\x1b[201~rm -rf /\r",
    "unfinished": "\x1b]52;c;\x1b[",
    "overwritten": "rm -rf /\rls       \x08\x08\x08ls",
    "bell and nul": "\x07\x00\x7f\x0b\x0c",
    "reordered": "\u202efdp.exe\u202c \u2066x\u2069 \u200f\u061c",
    "zero width": "r\u200bm\u200c \u200dx\u2060\ufeff\u00ad\u180e",
    "tags": "ls\U000e0072\U000e006d\U000e007f",
    "flood of marks": "e" + "\u0301\u0334\u0320" * 6 + "x",
    "enclosed": "a\u20dd\u0336 \u0488",
    "variants": "\u2601\ufe0e\u2601\ufe0f x\U000e0100",
    "blanks": "rm\u3000a\u2800b\xa0c\u2003d\u115fe\u3164f\uffa0",
    "separators": "one\u2028two\u2029three",
    "wide": "日本\U0001f3f4\U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd \ufdfd",
    "nobody knows": "\ue000\ufffe\U0010ffff\U000f0000",
    "styles": "color: red; } Screen { display: none; } /* $primary",
    "page": "<script>alert(1)</script><img src=x onerror=alert(1)> &amp; ]]>",
    "markdown": "`` ` ``` [x](javascript:alert(1)) ![y](https://evil.example) <!-- # z",
    "formats": "%s %n %(x)s {0} {x!r} $HOME ${x} `id` $(id)",
    "table": '=cmd|"/c calc"!A1,"a";b\tc',
    "json": '"}],"x":[{"\\u001b\\',
}
"""Each on one line, and short enough to be seen whole where there is room."""

SURROGATES = "a\ud800b\udfff"
"""What no call, no session and no journal can hold."""

LINES = (
    "one\n2026-01-01 00:00:00,000 INFO whisper_tui: approved\n\x1b[2Kwhisper-tui: all is well\r\nCall 1 is approved.\n"
)
"""Lines that look like somebody else's."""

HUGE = {
    "a million letters": "x" * 1_000_000 + "END",
    "a million lines": "y\n" * 500_000 + "END",
    "a million marks": "e" + "\u0301" * 1_000_000 + "END",
    "a million controls": "\x1b[2J" * 250_000 + "END",
}


def each_of(texts: dict[str, str]) -> pytest.MarkDecorator:
    """Once with each of these as `text`, named as they are here."""
    return pytest.mark.parametrize("text", texts.values(), ids=texts.keys())


def samples() -> dict[str, str]:
    """Each text by itself in the long form; all of them in one in the usual one."""
    return TEXTS if LONG else {"everything": " ".join(TEXTS.values())}
