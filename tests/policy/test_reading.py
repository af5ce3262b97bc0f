"""Reading shell text: strictly for allow rules, widely for deny rules."""

import time

import pytest

from tests.rows import each_row
from whisper_tui.model.call import Shell
from whisper_tui.policy.shell import tree_sitter_reader
from whisper_tui.policy.shell.bash_reader import read_script
from whisper_tui.policy.shell.strict_reader import NotPlain, read_plain
from whisper_tui.policy.view import agreed, view


def argvs(text: str) -> list[tuple[str, ...]]:
    return [command.argv for command in read_plain(text)]


@each_row(
    ("text", "expected"),
    [
        ("git  commit\t-m 'a b'", [("git", "commit", "-m", "a b")]),
        ("a;b&&c||d|e&\nf", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",)]),
        ('echo "a\\"b\\\\c\\d" e\\ f', [("echo", 'a"b\\c\\d', "e f")]),
        ("npm test 2>&1 >/dev/null x", [("npm", "test", "x")]),
        ("cat <<E\nbody\nE\nls # a comment\n# another\npwd", [("cat",), ("ls",), ("pwd",)]),
        ("A=1 B='x y' make all", [("make", "all")]),
        ("time -p ls -l", [("ls", "-l")]),
        ("ls \\\n a | \\\n\twc", [("ls", "a"), ("wc",)]),
        ("cat <<E | wc\nbody\nE\nls", [("cat",), ("wc",), ("ls",)]),
        ("[[ -f a/b.c && ! -d x ]] && ls", [("ls",)]),
        ("git stash show stash@{0} {}", [("git", "stash", "show", "stash@{0}", "{}")]),
    ],
)
def test_plain_text_has_certain_words(text: str, expected: list[tuple[str, ...]]) -> None:
    assert argvs(text) == expected


@each_row(
    "text",
    [
        "", " \n", "ls $x", 'ls "$x"', "ls `x`", "ls *", "ls [a]", "ls {a,b}", "ls ~", "ls a=~/x", "(ls)", "{ ls; }",
        "if a; then b; fi", "! ls", "[[ a ]]", "f() { ls; }", "ls &&", "| ls", "ls ;; ls", "x=1 > f", "> f", "ls <(a)",
        "ls 'a", 'ls "a', "ls \\", "ls\r", "ls\x0c", "ls \u00a0", "ls\x00", "cat <<E\n$x\nE", "cat <<E\nx",
        "ls <<-E\n\tx\n\tE", "ls <&-x", "ls $'a'", "cat <<< $x", "ls 'a\rb'",
        "ls\\\n-l", "[[ -f $x ]] && ls", "[[ -f x ]]",
    ],
)  # fmt: skip
def test_anything_else_is_not_plain(text: str) -> None:
    with pytest.raises(NotPlain):
        read_plain(text)


@each_row(
    ("text", "names"),
    [
        ("find . 2>/dev/null -delete", [("find", ".", "-delete")]),
        ("r\\\nm x", [("rm", "x")]),
        ("cat <<E\n`rm x`\nE", [("cat",), ("rm", "x")]),
        ('echo "$\\\n(touch x)"', [("echo", None), ("touch", "x")]),
        ("echo SAFE \\\r\nrm x", [("echo", "SAFE", "\r"), ("rm", "x")]),
        ("coproc rm x", [("rm", "x")]),
        ("time -- rm x", [("rm", "x")]),
        ("\"${x:-'`rm y`'}\"", [("rm", "y"), (None,)]),
        ("git 2>&1 push", [("git", "push")]),
        ("a <&-b", [("a", "b")]),
    ],
)
def test_the_wide_reading_sees_what_other_readers_miss(text: str, names: list[tuple[str | None, ...]]) -> None:
    found = read_script(text)
    assert found.problem is None
    assert sorted(map(repr, (command.argv for command in found.commands))) == sorted(map(repr, names))


def test_text_before_a_syntax_error_is_kept() -> None:
    found = read_script("rm x\nif")
    assert found.problem
    assert [command.argv for command in found.commands] == [("rm", "x")]


@each_row("text", ["ls -l", "a && b 'c d' | e >/dev/null", "cat <<E\nx\nE", "time ls"])
def test_the_readings_agree_about_plain_text(text: str) -> None:
    assert agreed(text, read_script(text))[0] is not None


def test_without_the_second_reader_plain_text_is_still_certain_and_nothing_else_is(monkeypatch) -> None:
    monkeypatch.setattr(tree_sitter_reader, "_parser", lambda: None)
    assert agreed("ls -l", read_script("ls -l"))[0] is not None
    assert agreed("ls $x", read_script("ls $x"))[0] is None


WORST = {
    "words": "echo " + "a b " * 2490,
    "commands": "a;" * 4990,
    "pipes": "a|" * 4900 + "b",
    "substitutions": "$(" * 1000 + "ls" + ")" * 1000,
    "parentheses": "(" * 9000,
    "braces": "{ " * 4000,
    "arithmetic": "$((" * 3000,
    "quotes": '"' * 9999,
    "backticks": "`" * 9999,
    "dollars": "$" * 9999,
    "documents": "cat <<A\n" * 1200,
    "arrays": "a=(" * 3000,
    "cases": "case x in " * 900,
    "wrappers": "sudo " * 1900 + "ls",
    "shells": "bash -c " * 1200 + "ls",
    "joined lines": "a\\\n" * 3000,
    "nothing": "\x00" * 9000,
}


@each_row("name", WORST)
def test_the_worst_text_is_read_in_a_bounded_time(name: str) -> None:
    view.__globals__["_view_of_text"].cache_clear()
    before = time.process_time()
    seen = view(Shell(text=WORST[name][:10_000]))
    assert seen.plain is None or name == "words"
    assert time.process_time() - before < 2, "the benchmark says what it should be; this is a bound for any machine"
