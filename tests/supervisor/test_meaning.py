"""What will really run: expanded where that runs nothing, and left open where it would."""

from pathlib import Path

import pytest

from whisper_tui.model.call import Argv, CommandSpec, Shell
from whisper_tui.model.verdict import Meaning, Resolved
from whisper_tui.supervisor.approvals.resolve import resolve

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/home/me", "NAME": "x y", "DIR": "out", "API_TOKEN": "hush"}


@pytest.fixture
def resolved(tmp_path: Path):
    for name in ("b.py", "a.py", ".hidden.py", "c.txt"):
        (tmp_path / name).touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "d.py").touch()

    def look(text: str) -> Resolved:
        return resolve(CommandSpec(command=Shell(text=text), cwd=str(tmp_path)), ENVIRONMENT)

    return look


def words(resolved: Resolved) -> list[tuple[str | None, ...]]:
    return [meaning.words for meaning in resolved.commands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls *.py", ("ls", "a.py", "b.py")),
        ("ls */*.py", ("ls", "sub/d.py")),
        ("ls *.none", ("ls", "*.none")),
        ("ls '*.py' \\*", ("ls", "*.py", "*")),
        ('ls "$DIR"/x $DIR', ("ls", "out/x", "out")),
        ("ls $MISSING end", ("ls", "end")),
        ('ls "$MISSING"', ("ls", "")),
        ("ls $NAME", ("ls", None)),
        ("ls ~/x ~", ("ls", "/home/me/x", "/home/me")),
        ("ls ~root", ("ls", None)),
        ("ls $(id) x", ("ls", None, "x")),
        ("ls {a,b}", ("ls", None)),
        ("ls ${DIR:-x}", ("ls", None)),
    ],
)
def test_words_are_expanded_as_bash_would(resolved, text: str, expected: tuple[str | None, ...]) -> None:
    assert words(resolved(text))[0] == expected


def test_expansions_are_described_with_counts(resolved) -> None:
    assert resolved('rm *.py "$DIR"').commands[0].expanded == ("*.py: 2 files", "$DIR: out")


def test_a_secret_is_neither_shown_nor_expanded(resolved) -> None:
    found = resolved('curl -H "$API_TOKEN"')
    assert "hush" not in found.model_dump_json()
    assert found.commands[0].words[-1] is None


def test_a_variable_that_the_text_sets_is_not_known_before(resolved) -> None:
    assert words(resolved("DIR=a; ls $DIR"))[-1] == ("ls", None)
    assert words(resolved("for DIR in a b; do ls $DIR; done"))[-1] == ("ls", None)


def test_files_are_not_searched_after_a_change_of_directory(resolved) -> None:
    assert words(resolved("cd sub && ls *.py"))[-1] == ("ls", None)


def test_each_command_has_its_program_and_the_wrappers_around_it(resolved) -> None:
    found = resolved("env A=1 ls | cat &")
    assert [(meaning.program is not None, meaning.through) for meaning in found.commands] == [
        (True, ()),
        (True, ("env",)),
        (True, ()),
    ]
    assert all(meaning.background for meaning in found.commands)


def test_a_builtin_and_a_missing_program_have_no_file(resolved) -> None:
    assert [meaning.program for meaning in resolved("cd /; no-such-program").commands] == [None, None]


def test_words_that_no_shell_reads_stay_as_they_are(tmp_path: Path) -> None:
    spec = CommandSpec(command=Argv(program="ls", args=("*", "$HOME")), cwd=str(tmp_path))
    (meaning,) = resolve(spec, ENVIRONMENT).commands
    assert isinstance(meaning, Meaning)
    assert meaning.words == ("ls", "*", "$HOME")


@pytest.mark.parametrize("text", ["$NOT_SET", "$NOT_SET > out", "true; $NOT_SET", "$NOT_SET $NEITHER_SET"])
def test_a_command_of_nothing_but_empty_variables_has_no_words_and_no_program(resolved, text: str) -> None:
    meaning = resolved(text).commands[-1]
    assert (meaning.words, meaning.program) == ((), None)


@pytest.mark.parametrize(
    "text",
    [
        "printf -v c x; $c",
        "mapfile c; $c",
        "getopts a c; $c",
        "let c=1; $c",
        "((c = 1)); $c",
        ": ${c:=ls}; $c",
        "[[ a =~ . ]]; $BASH_REMATCH",
    ],
)
def test_a_variable_that_a_builtin_or_an_expansion_may_set_is_not_known_before(resolved, text: str) -> None:
    assert words(resolved(text))[-1] == (None,)


def redirects(resolved: Resolved) -> list[list[tuple[str, str | None, str]]]:
    return [[(each.operator, each.target, each.access) for each in meaning.redirects] for meaning in resolved.commands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo 'rate = 20' > tax.conf", [[(">", "tax.conf", "write")]]),
        ("cat > app.py <<'END'\nx\nEND", [[(">", "app.py", "write"), ("<<", "END", "none")]]),
        ("make >> ~/log 2>&1", [[(">>", "/home/me/log", "write"), ("2>&", "1", "none")]]),
        ("ls > $(id)", [[(">", None, "write")], []]),
        ("> app.py", [[(">", "app.py", "write")]]),
        ("for i in 1 2; do ls; done > $DIR", [[], [(">", "out", "write")]]),
        ("bash -c 'ls > x'", [[], [(">", "x", "write")]]),
    ],
)
def test_redirections_are_part_of_what_runs(resolved, text: str, expected: list) -> None:
    assert redirects(resolved(text)) == expected


def test_variables_that_are_set_are_part_of_what_runs(resolved) -> None:
    found = resolved("A=1; B=$HOME C=$(id) ls").commands
    assert (found[0].words, found[0].assignments) == ((), {"A": "1"})
    assert found[1].assignments == {"B": "/home/me", "C": None}


def test_every_risky_command_of_a_long_text_is_kept_and_the_harmless_ones_left_out_are_counted(resolved) -> None:
    text = "\n".join([*(f"echo {number}" for number in range(96)), "rm -rf dist", "echo end"])
    found = resolved(text)
    (risky,) = (meaning for meaning in found.commands if meaning.risks)
    assert risky.words == ("rm", "-rf", "dist") and "destructive" in risky.risks
    assert len(found.commands) + found.more == 98 and found.unread is None
    assert "more than 200 commands" in (resolved("\n".join(["ls"] * 300)).unread or "")


def test_a_program_that_is_not_installed_is_missing_and_a_builtin_or_a_function_is_not(resolved) -> None:
    assert [meaning.missing for meaning in resolved("no-such-program; cd /").commands] == [True, False]
    assert not any(meaning.missing for meaning in resolved("greet() { echo; }; greet; cd sub; ./later").commands)
    assert not any(meaning.missing for meaning in resolved("ssh host no-such-program").commands[1:])


def test_a_command_of_which_no_word_is_left_is_shown_as_that(resolved) -> None:
    assert words(resolved("$MISSING")) == [()]


def test_programs_in_containers_or_on_other_machines_are_not_local_files(resolved) -> None:
    inside = [resolved(text).commands[-1] for text in ("docker run alpine ls", "ssh host ls")]
    assert [(meaning.words, meaning.program) for meaning in inside] == [(("ls",), None), (("ls",), None)]
