"""Random scripts of awk, sed, jq and bash: those that count as harmless are run, and must only print."""

from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.fuzz.jail import PROGRAM, Jail, programs
from tests.fuzz.profile import fuzzed
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.policy.commands.awk_sed_jq import awk_has_effects, jq_reaches_further, sed_has_effects
from whisper_tui.policy.commands.read_only_list import helpers_of
from whisper_tui.policy.commands.read_only_programs import check_of
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.programs.entries import entry_of, program_names
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.system import host_files

pytestmark = pytest.mark.slow

AWKS = programs("mawk", "gawk", "original-awk", "busybox")
SEDS = programs("sed")
JQS = programs("jq")

AWK_PIECES = [
    "BEGIN", "END", "{", "}", "(", ")", "[", "]", ";", "\n", " ", ",", "print ", "printf ", "if ", "(1) ", "else ",
    "while (0) ", "for (i=0;i<1;i++) ", "do ", "function f(x) ", "return ", "f(1)", "x", "$1", "$", "NF", "1",
    "2.5", "x++", "++x", "--", "+", "-", "*", "/", "/a/", '/"/', "/[/]/", "/[]/]/", "/[^/]/", "/\\//", "/=/",
    "/[\"]/", "/x", "a/", "%", "=", "==", "<", ">", ">=", ">>", "|", "||", "&&", "!", "~", "!~", "?", ":", " in ",
    '"', '""', '"x"', '"\\""', '"\\\\"', '"#"', "#", "# \"\n", "\\\n", "\\", "'", "@", "length", "length ",
    "substr($0,1)", "getline", "getline x", "system", "system(", f'system("{PROGRAM}")', f'"{PROGRAM}"', '"PWN"',
    '> "PWN"', f'| "{PROGRAM}"', f'"{PROGRAM}" | getline', ">\"PWN\"}", 'print "x" > "PWN"', "{print ",
    'print > "PWN"', '< "../home/secret"', 'getline x < "../home/secret"; print x', "ENVIRON",
    'ENVIRON["SECRET_TOKEN"]', 'ARGV[1]="../home/secret"', "ARGC=2", 'for (k in ENVIRON) print ENVIRON[k]',
    "SYMTAB", "@f()", '@include "x"', "close(", "fflush()", "BEGIN{", "BEGIN {print ", "{ print $1 }", "$1 > 0",
    "NR==1", "if (x) ", "if (x)\n", "x[1]", "x[\"a\"]", "delete x", "next", "exit", "\t", "\r", "\f", "é",
    "switch (x) { case /a/: print }", "printf(\"%s\", x)", "sub(/a/, \"b\")", "split($0, x, /,/)",
]  # fmt: skip

SED_PIECES = [
    "p", "d", "n", "N", "g", "G", "h", "H", "x", "D", "P", "=", "l", "q", "Q 1", "z", "F", "{", "}", ";", "\n", " ",
    "!", ",", "1", "2", "$", "0~2", "+1", "~2", "/a/", "/", "/[/]/", "/[/", "]/", "\\,a,", "\\", "\\\n", "I", "M",
    "s/a/b/", "s/a/b/g", "s/a/b/p", "s,a,b,", "s/a/b/e", "s/a/b/w PWN", "s/", "/b/", "s/a/\\\n", "y/abc/xyz/", "y/",
    "b", "t", "T", ":", ":a", ":a;", ":/a/", "b/a/", ":a/", "ba", "b ", "ta;", ":x}", "a", "i", "c", "a foo", "a\\",
    "a\\\nfoo", "i\\  foo", "c\\\n", "w PWN", "W PWN", "r ../home/secret", "R ../home/secret", "e", f"e {PROGRAM}",
    "s/.*/touch PWN/e", "v", "#", "#n\n", "# w PWN\n", "w", "\t", "\r", "e\n", "1e", "&", "\\n", "M", "};", "*",
    "[", "]", "[^/]", "é", "-", "0", "'", '"',
]  # fmt: skip


AWK_SEEDS = [
    ["BEGIN", "{", "print ", "1", "}"],
    ["{", "print ", "$1", "/", "2", "}"],
    ["/", '"', "/", "{", "print ", '"x"', "}", " ", "/", '"', "/"],
    ["BEGIN", "{", "print ", "(", "1", ")", ">", '"PWN"', "}"],
    ["BEGIN", "{", "print ", "1", ",", "\n", "2", ">", '"PWN"', "}"],
    ["{", "if (", "x", ")", " ", "print ", "/a/", ";", f'system("{PROGRAM}")', "}"],
    ["#", ' "', "\n", "BEGIN", "{", f'system("{PROGRAM}")', "}", "#", '"'],
    ["$1", ">", "2", "{", "x", "=", "$2", "/", "3", ";", "print ", "x", "}"],
    ["BEGIN", "{", "for (i=0;i<1;", "print ", "1", ">", '"PWN"', ")", "i++", "}"],
    ["function f(x) ", "{", "return ", "x", "/", "2", "}", "{", "print ", "f(1)", "}"],
    ["{", "gsub(", "/[^/]/", ",", '"""', ")", ";", "print ", "length", "(", "$0", ")", "}"],
    ["BEGIN", "{", f'"{PROGRAM}"', " | ", "getline", "}"],
]

SED_SEEDS = [
    ["/a/", "{", "s/a/b/", ";", "p", "}"],
    [":a", ";", "N", ";", "$", "!", "ba", ";", "s/a/b/g"],
    [":", "/a/", "a ", f"e {PROGRAM}"],
    ["1", ",", "3", "!", "{", "y/abc/xyz/", "\n", "w PWN", "}"],
    ["a", "\\\n", "foo", "\n", "w PWN"],
    ["s", "/", "[", "/", "]", "/", "w PWN", "/"],
    ["\\", ",", "a", "/", ",", " ", "w PWN"],
    ["#", "n", "\n", "p", ";", f"e {PROGRAM}"],
]


JQ_PIECES = [
    ".", "..", ".a", "[", "]", "(", ")", "{", "}", "|", ",", ":", ";", "?", "//", "=", "==", "+", "-", "*", "/",
    '"', '"a"', '"\\', "\\(", '"\\(env)"', '"\\"', "env", "$ENV", "$", "ENV", "{env}", "env:", "{env:1}", "@base64",
    "@text", '@text "', "import", 'import "secret" as $d {search:"../home"};', 'include "../home/secret";',
    "input_filename", "input", "inputs", "def f:", "f", "#", "\n", " ", "1", "null", "keys", "map(", "select(",
    "if . then ", "else ", " end", "reduce ", " as $x", "$__prog_args", "getpath(", "debug", "::", "modulemeta",
    "$d", "tojson", "try ", "catch .", "to_entries", "[.[]]", "[1,2]", "{a:1}", "{a}",
]  # fmt: skip

JQ_SEEDS = [
    [".", "|", "env"],
    ["{", "env", ":", "1", "}"],
    ["{", "a", ":", "(", "env", ")", "}"],
    ['"', "\\(", "env", ")", '"'],
    ["[", ".", ",", "$ENV", "]", "|", "tojson"],
    ['import "secret" as $d {search:"../home"};', "$d"],
    ["if . then ", "env", "else ", ".", " end"],
    ["@text ", '"', "\\(", "env", ")", '"'],
]


def scripts(pieces: list[str], seeds: list[list[str]]) -> st.SearchStrategy[str]:
    """A few pieces in a row, or a script that is well-formed but for a few of its pieces."""
    edits = st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from(("in", "out", "over")), st.sampled_from(pieces)), max_size=3
    )
    random = st.lists(st.sampled_from(pieces), min_size=1, max_size=9).map("".join)
    return st.one_of(random, st.tuples(st.sampled_from(seeds), edits).map(lambda made: _edited(*made)))


def _edited(seed: list[str], edits: list[tuple[int, str, str]]) -> str:
    parts = list(seed)
    for place, how, piece in edits:
        at = place % (len(parts) + 1)
        parts[at : at + (how != "in")] = [] if how == "out" else [piece]
    return "".join(parts)


@pytest.fixture(scope="module")
def jail() -> Iterator[Jail]:
    with Jail.made() as made:
        yield made


@pytest.mark.skipif(not AWKS, reason="no awk is installed")
@pytest.mark.timeout(3600)
@fuzzed(300)
@given(script=scripts(AWK_PIECES, AWK_SEEDS))
def test_an_awk_program_that_is_taken_for_harmless_only_prints(jail: Jail, script: str) -> None:
    if awk_has_effects(script):
        return
    for awk in AWKS:
        words = ["busybox", "awk"] if awk == "busybox" else [awk]
        assert jail.harm([*words, "--", script, "data"]) == ""


@pytest.mark.skipif(not SEDS, reason="sed is not installed")
@pytest.mark.timeout(3600)
@fuzzed(300)
@given(
    script=scripts(SED_PIECES, SED_SEEDS),
    options=st.sampled_from([(), ("-n",), ("-E",), ("-n", "-z"), ("-s",), ("-u",)]),
)
def test_a_sed_script_that_is_taken_for_harmless_only_prints(jail: Jail, script: str, options: tuple[str, ...]) -> None:
    if not sed_has_effects(script):
        assert jail.harm(["sed", *options, "--", script, "data"]) == ""


@pytest.mark.parametrize(
    "words",
    [
        ("sh", "-c", PROGRAM),
        ("sh", "-c", "cat ../home/secret"),
        ("sh", "-c", 'echo "$SECRET_TOKEN"'),
        ("sh", "-c", "echo x >> data"),
    ],
)
def test_the_jail_sees_what_happens_in_it(jail: Jail, words: tuple[str, ...]) -> None:
    assert jail.harm(words) != ""


@pytest.mark.skipif(not JQS, reason="jq is not installed")
@pytest.mark.timeout(3600)
@fuzzed(300)
@given(script=scripts(JQ_PIECES, JQ_SEEDS))
def test_a_jq_filter_that_is_taken_for_harmless_only_sees_its_input(jail: Jail, script: str) -> None:
    if not jq_reaches_further(script):
        assert jail.harm(["jq", "-n", script]) == ""


LISTED = programs(*(name for name in program_names() if entry_of(name).takes_files or check_of(name)))
"""Programs that may be given file name patterns, and some that may not."""
# it keeps what comes from a pipe in a temporary file
LISTED.remove("tac")

BASH_WORDS = [
    "*", "d*", "s*/*", "sub/*", "s*/m*", "s*/l*", "?ata", "[dl]*", "[a-s]*", "./*", ".*", "../*", "../home/*", "-*",
    "--*", "{data,list}", "sub/{more,link}", "{-o,PWN}",
    "-{o,u}", "--{files0-from,x}=list", "{a..c}", "x{1..3}", "*.{py,w}",
    "~", "~/secret", "~/*", "$HOME/secret", '"$HOME"/*', "$a", '"$a"', '"${a}"/*', "$a/*", "$b", '"$b"', '"$f"', "$f",
    '"$f"/more', "-n", "-l", "-r", "-f", "-e", "-o", "-s", "-c", "-d", "-x", "-k", "-t", "--", "-", "1", "5", "p", ".",
    "data", "sub", "list", "opts", "a", "'{print}'", "'w PWN'", "'1,5p'", "-exec", "-name", "-newer", "-delete",
    "--files0-from=list", "--output", "--pre", "''", "'*'", "'a b'", "/etc/host*", "/dev/nul*", "HEAD", "s/a/b/",
]  # fmt: skip

BASH_SETS = [
    "a=data", "a=sub", "a=.", "a=-o", "a=--output=PWN", "a='../home'", "a=/etc", "b='x y'", "b='-o PWN'", "b='*'",
    "b=w", "f=data", "PATH=.", "HOME=/etc", "IFS=a", "LC_ALL=C",
]  # fmt: skip

APPEARING = (
    "-o", "-oPWN", "--output=PWN", "-delete", "-exec", "-fprint", "-i", "-f", "-fopts", "-r", "-R",
    "--files0-from=list", "--pre=touch", "--compress-program=touch", "--expression=w PWN", "w PWN", "1e touch PWN",
    "-nwPWN", "--random-source=data",
    'BEGIN{system("touch PWN")}', "d=1", "env", "dwPWN", "p;w PWN", "PWN.py", "--plugin=touch", "sub/-o", "sub/w PWN",
    "sub/--output=PWN", "data -o PWN", "sub/x -o PWN", "{print > \"PWN\"}", "$ENV", "x1", "x2", "@opts", "sub/@opts",
    "!",
)  # fmt: skip
"""Names of files that an agent puts there after the judgement."""


@st.composite
def bash_texts(draw: st.DrawFn) -> str:
    """Some variables, and a few commands of the list, perhaps in a loop."""
    words = st.lists(st.sampled_from(BASH_WORDS), max_size=4).map(" ".join)
    program = st.sampled_from(LISTED)
    command = st.one_of(st.tuples(program, words).map(" ".join), st.just('wc -l "$f"'), st.just("grep -n a *"))
    commands = draw(st.lists(command, min_size=1, max_size=2))
    text = draw(st.sampled_from([" | ", "; ", " && ", "\n"])).join(commands)
    if draw(st.booleans()):
        text = f"for f in {draw(words) or '*'}; do {text}; done"
    sets = draw(st.lists(st.sampled_from(BASH_SETS), max_size=2))
    return draw(st.sampled_from(["; ", " && ", "\n"])).join([*sets, text])


def allowed(jail: Jail, text: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """True if nobody would be asked about a text in this jail."""
    monkeypatch.setattr(host_files, "home_of_user", lambda: str(jail.home))
    spec = CommandSpec(command=Shell(text=text), cwd=str(jail.workspace))
    own = (str(jail.home),)
    verdict, resolved = judge_alone(spec, Rules(read_only=True), jail.session, root=str(jail.workspace), own=own, now=0)
    return verdict.kind == "allow" and resolved.literal is not None


@pytest.fixture(scope="module")
def changed_jail() -> Iterator[Jail]:
    with Jail.made() as made:
        for name in APPEARING:
            made.add(name, "data\n")
        yield made


@pytest.mark.skipif(not programs("strace"), reason="strace is not installed, and nothing else sees it all")
@pytest.mark.timeout(3600)
@fuzzed(30)
@given(text=bash_texts())
def test_a_text_with_expansions_that_is_allowed_only_prints_whatever_files_appear(
    jail: Jail, changed_jail: Jail, text: str
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        assume(allowed(jail, text, monkeypatch))
    helpers = {*LISTED, *helpers_of(LISTED)}
    for each in (jail, changed_jail):
        said = each.harm(["bash", "--norc", "--noprofile", "-c", "--", text], traced=True, helpers=helpers)
        assert said == ""
