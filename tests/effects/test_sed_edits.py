"""The content that `sed -i` makes of a file is computed as sed does, or not at all."""

import random
import shutil
import subprocess

import pytest

from tests.rows import each_row
from whisper_tui.effects.text_edits import parse_sed

pytestmark = pytest.mark.skipif(
    shutil.which("sed") is None
    or b"GNU" not in subprocess.run(["sed", "--version"], capture_output=True, check=False).stdout,
    reason="the scripts are those of GNU sed",
)

CONTENT = "one\ntwo\nthree four one\n\n  indented = 10\nport=8080\npath=/usr/local/bin\nlast.one [x] $5\n"

COMPUTED = (
    "s/one/ONE/",
    "s/one/ONE/g",
    "s/o/0/2",
    "s/ONE/x/I",
    "s|/usr/local|/opt|",
    "s,port=.*,port=9090,",
    "s/^/# /",
    "s/$/;/",
    "s/[0-9][0-9]*/N/g",
    r"s/\(t[a-z]*\) \(f[a-z]*\)/\2 \1/",
    r"s/o\+/0/g",
    r"s/e\{2\}/EE/",
    "s/one/[&]/g",
    r"s/\./-/",
    r"s/\[x\]/\&/",
    r"s/\$5/\/five/",
    "2d",
    "$d",
    "2,4d",
    "2,$d",
    "/two/d",
    "/two/,/port/d",
    "/three/,2d",
    "/^$/d",
    "/one/!d",
    "2!s/o/0/",
    "1i first",
    "$a last",
    "/two/a after two",
    "/two/c\\\nchanged",
    "2i\\\nbefore",
    "s/one/1/; s/two/2/",
    "s/one/1/\n2d",
    "1,3s/o/0/g;/port/s/8080/1/",
)

EXTENDED = (r"s/(t[a-z]+) (f[a-z]+)/\2 \1/", "s/o+/0/g", "s/e{2}/EE/", r"s/\(x\)/y/", "/^.?wo$/d")

NOT_COMPUTED = (
    "s/one/ONE/w out", "s/one/date/e", "s/one/ONE/p", "y/abc/xyz/", "1~2d", "2,+1d", "/two/{d}", "N;s/\\n/ /", "s//x/",
    r"s/\(one\|two\)/x/", r"s/\(ab\)*/x/", r"s/one/\U&/", "s/[[:alpha:]]/x/", "s/x*/-/g", r"s/\w/x/", "p", "q", "s/one",
    "2c changed\\", "/a/,/b/c text", r"s/\(a\)\1/x/", "s/*a/b/", "a\\", "=", "s/a/b/gI;r file", r"s/a/\n/",
)  # fmt: skip


def real(script: str, content: str, *options: str) -> bytes:
    words = ["sed", *options, "--", script]
    return subprocess.run(words, input=content.encode(), capture_output=True, check=True).stdout


@each_row("script", COMPUTED)
def test_a_simple_script_is_computed_as_sed_does(script: str) -> None:
    parsed = parse_sed(script, extended=False)
    assert parsed is not None
    assert parsed.edited(CONTENT.encode()) == real(script, CONTENT)


@each_row("script", EXTENDED)
def test_extended_patterns_are_computed_as_sed_does(script: str) -> None:
    parsed = parse_sed(script, extended=True)
    assert parsed is not None
    assert parsed.edited(CONTENT.encode()) == real(script, CONTENT, "-E")


@each_row("script", NOT_COMPUTED)
def test_only_simple_scripts_are_computed(script: str) -> None:
    assert parse_sed(script, extended=False) is None


@each_row("content", ["a\nb", "caf\u00e9\n", "", "\n", "a\r\nb\r\n"])
def test_the_end_and_the_letters_of_a_file_are_kept_or_nothing_is_computed(content: str) -> None:
    for script in ("s/b/c/", "s/a.*/c/", "1d", "$a end"):
        parsed = parse_sed(script, extended=False)
        assert parsed is not None
        assert parsed.edited(content.encode()) in {None, real(script, content)}


def random_script(draw: random.Random) -> str:
    atoms = [
        "a",
        "b",
        ".",
        "[ab]",
        "[^b]",
        "\\.",
        "c*",
        "a*",
        "b\\+",
        "a\\?",
        "b\\{1,2\\}",
        "\\(a\\)",
        "\\(b*c\\)",
        "^",
        "$",
    ]
    address = ["", "", "1", "2", "$", "/a/", "/b$/", "1,2", "2,/b/", "/a/,/c/", "/b/,2", "2,1", "1,$"]
    pattern = "".join(draw.choices(atoms, k=draw.randint(1, 5)))
    replacement = "".join(draw.choices(["x", "&", "\\1", "-", "\\&", ""], k=draw.randint(0, 3)))
    command = draw.choice(
        [f"s/{pattern}/{replacement}/{draw.choice(['', 'g', '2', '1'])}", "d", "a new", "i new", "c new"]
    )
    return draw.choice(address) + draw.choice(["", "", "!"]) + command


def test_random_scripts_are_computed_as_sed_does() -> None:
    draw = random.Random(7)
    computed = 0
    for _ in range(400):
        script = "\n".join(random_script(draw) for _ in range(draw.randint(1, 2)))
        parsed = parse_sed(script, extended=False)
        if parsed is None:
            continue
        content = "".join("".join(draw.choices("abc. ", k=draw.randint(0, 7))) + "\n" for _ in range(4))
        computed += 1
        assert parsed.edited(content.encode()) == real(script, content), (script, content)
    assert computed > 100
