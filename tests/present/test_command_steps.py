"""The steps of a chain as lines."""

import pytest

from tests.rows import each_row
from whisper_tui.present.command_steps import steps_of


def lines(text: str) -> list[str]:
    return [text[start:end] for start, end, _ in steps_of(text)]


@each_row(
    ("text", "shown"),
    [
        ("a && b | c; d & e", ["a ", "&& b ", "| c; ", "d & ", "e"]),
        ("a>b&&c", ["a>b", "&&c"]),
        ("a 2>&1 |& b; ", ["a 2>&1 ", "|& b; "]),
        ("(a; b) && c", ["(a; b) ", "&& c"]),
        ("diff <(a | b) <(c) | d", ["diff <(a | b) <(c) ", "| d"]),
        ("echo $(a && b) && c", ["echo $(a && b) ", "&& c"]),
        ("'a && b' \"c | d\" && e", ["'a && b' \"c | d\" ", "&& e"]),
        ("find . -exec rm {} \\; && ls", ["find . -exec rm {} \\; ", "&& ls"]),
        ("a \\&\\& b && rm -rf 日本", ["a \\&\\& b ", "&& rm -rf 日本"]),
        ("a &", ["a &"]),
    ],
)
def test_a_chain_is_broken_at_its_connectors_alone(text: str, shown: list[str]) -> None:
    assert lines(text) == shown
    assert "".join(lines(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "if a; then b; fi",
        "for f in *; do rm $f; done",
        "{ a; } && b",
        "! a && b",
        "f() { a; }; b",
        "x=(1 2) && b",
        'echo "$(a "b && c")" && d',
        'echo ${x:-"a && b"} && c',
        "echo `a && b` && c",
        "$'a\\'&& b' && c",
        "a <<E && b",
        "a && b # c && d",
        "a &&",
        "&& a",
        "a ;; b",
        "(a && b",
        "a) && b",
        "a && b\nc",
        "a && b\rc",
        "a\t&& b",
        "a\u200b && b",
        "echo \u05d0 && b",
        "'a && b",
        "a && " * 1000 + "a",
    ],
)
def test_what_only_a_shell_can_tell_is_not_broken(text: str) -> None:
    assert lines(text) == []
