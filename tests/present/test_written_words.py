"""An expansion is left out only where the same words stand as a command in the text of the call."""

import pytest

from tests.rows import each_row
from whisper_tui.model.call import Shell
from whisper_tui.model.verdict import Meaning, Redirect
from whisper_tui.present.written_words import as_written

DELETES = Meaning(words=("rm", "-rf", "src"))
SPELT = r"$'\162m' -rf src"


def stands(text: str, *meanings: Meaning) -> list[bool]:
    return as_written(Shell(text=text), meanings)


@pytest.mark.parametrize(
    "decoy",
    [
        "# rm -rf src\n{}",
        "{} # rm -rf src",
        "cat <<EOF\nrm -rf src\nEOF\n{}",
        "cat <<-'A B' <<C\n\trm\n\tA B\nrm -rf src\nC\n{}",
        "echo '' rm -rf src; {}",
        "echo ';' rm -rf src; {}",
        r"echo \; rm -rf src; {}",
        "echo '\n' rm -rf src; {}",
        "words=(rm -rf src); {}",
        "echo $(date) rm -rf src; {}",
        "diff <(a) rm -rf src; {}",
        "case x in rm -rf src) ls;; esac; {}",
        "(( rm -rf src )); {}",
        "[[ a && rm -rf src ]]; {}",
        'echo "; rm -rf src; "; {}',
    ],
)
def test_words_that_are_no_command_hide_none(decoy: str) -> None:
    assert stands(decoy.format(SPELT), DELETES) == [False]


def test_a_text_that_runs_in_a_shell_of_its_own_is_not_hidden_by_words_behind_it() -> None:
    inner = DELETES.model_copy(update={"through": ("bash",)})
    wrapper = Meaning(words=("bash", "-c", "rm -rf src"), wraps=True)
    for text in ("bash -c 'rm -rf src' # rm -rf src", "bash -c 'rm -rf src'; echo rm -rf src"):
        assert stands(text, wrapper, inner)[:2] == [True, False]
    assert stands(f"bash -c {SPELT}; echo rm -rf src", wrapper, inner) == [False, False]


@each_row(
    ("text", "meanings"),
    [
        ("rm -rf src; ls", (DELETES, Meaning(words=("ls",)))),
        ("r\\m -r'f' \"src\"", (DELETES,)),
        ("rm \\\n  -rf src", (DELETES,)),
        ("if ! rm -rf src; then (ls); fi", (DELETES, Meaning(words=("ls",)))),
        ("f() { rm -rf src; }", (DELETES,)),
        ("ls $(rm -rf src)", (Meaning(words=("ls", None)), DELETES)),
        (
            "sudo env rm -rf src",
            (
                Meaning(words=("sudo", "env", "rm", "-rf", "src"), wraps=True),
                Meaning(words=("env", "rm", "-rf", "src"), wraps=True, through=("sudo",)),
                DELETES.model_copy(update={"through": ("sudo", "env")}),
            ),
        ),
        (
            "cat > f <<EOF\nrm\nEOF\nrm -rf src",
            (
                Meaning(
                    words=("cat",),
                    redirects=(
                        Redirect(operator=">", target="f", access="write"),
                        Redirect(operator="<<", target="EOF", access="none"),
                    ),
                ),
                DELETES,
            ),
        ),
        ("ls 2>&1", (Meaning(words=("ls",), redirects=(Redirect(operator="2>&", target="1", access="none"),)),)),
    ],
)
def test_a_command_whose_words_stand_in_the_text_is_not_said_again(text: str, meanings: tuple[Meaning, ...]) -> None:
    assert stands(text, *meanings) == [True] * len(meanings)


def test_a_quoted_sign_is_no_redirection() -> None:
    writes = Meaning(words=("echo", "2"), redirects=(Redirect(operator=">", target="f", access="write"),))
    assert stands("echo 2 > f", writes) == [True]
    assert stands("echo 2 '>' f", writes) == [False]
    assert stands("echo 2> f", writes) == [False]


def test_a_command_that_stands_once_hides_one_of_two() -> None:
    assert stands(f"rm -rf src; {SPELT}", DELETES, DELETES) == [True, False]


def test_a_value_that_looks_like_the_note_of_a_pattern_is_an_expansion() -> None:
    found = Meaning(words=("rm", "a:", "0", "files"), expanded=("$X: a: 0 files",))
    assert stands("rm a: 0 files", found) == [False]
    unmatched = Meaning(words=("rm", "*.o"), expanded=("*.o: 0 files",))
    assert stands("rm *.o", unmatched) == [True]
