"""Risks are found and marked at the right place, and not invented elsewhere."""

from tests.model.build import ROOT, a_shell, a_spec
from tests.policy.build import FOUND, a_question
from tests.rows import each_row
from whisper_tui.model.call import Argv, CommandSpec, Shell
from whisper_tui.policy.risks.call_risks import LONGEST_JUDGED, command_text, risks_of


def ids(spec: CommandSpec) -> list[str]:
    """The findings about a command, in their order."""
    return [risk.id for risk in risks_of(a_question(spec))]


def marked(spec: CommandSpec, risk_id: str) -> str:
    """The characters that a finding points at."""
    (risk,) = (risk for risk in risks_of(a_question(spec)) if risk.id == risk_id)
    assert risk.span is not None
    return command_text(spec.command)[slice(*risk.span)]


@each_row(
    "spec",
    [
        a_spec(),
        a_shell("cd src && make -j2 | tee build.log"),
        a_shell('for f in *.py; do\n\twc -l "$f"\ndone'),
        a_shell("echo 'naïve 日本 ⏳'"),
        a_shell("x" * LONGEST_JUDGED),
        a_spec(Argv(program="echo", args=("$(id)", "`id`"))),
    ],
)
def test_an_ordinary_command_has_no_findings(spec: CommandSpec) -> None:
    assert ids(spec) == []


@each_row(
    ("text", "shown"),
    [
        ("echo $(id)", "$("),
        ("echo `id`", "`"),
        ("diff <(ls a) b", "<("),
        ("tee >(wc -l)", ">("),
        ("echo ${ id; }", "${ "),
        ("echo ${| REPLY=x; }", "${|"),
        ('echo "$(id)"', "$("),
        ("cat <<EOF\n$(id)\nEOF", "$("),
    ],
)
def test_a_substitution_is_found_and_marked(text: str, shown: str) -> None:
    assert ids(a_shell(text)) == ["substitution"]
    assert marked(a_shell(text), "substitution") == shown


@each_row("blank", ["\u00a0", "\u3000", "\u2800"])
def test_a_blank_other_than_a_space_is_found_and_marked(blank: str) -> None:
    (risk,) = risks_of(a_question(a_shell(f"ls{blank}x")))
    assert risk.id == "deceptive-characters"
    assert risk.sentence == f"Contains unusual blanks (U+{ord(blank):04X})"
    assert marked(a_shell(f"ls{blank}x"), "deceptive-characters") == blank


def test_more_marks_than_a_letter_carries_are_found() -> None:
    assert ids(a_shell("ls e\u0301")) == []
    assert ids(a_shell("ls e" + "\u0301" * 9)) == ["deceptive-characters"]


@each_row("character", ["\x00", "\x07", "\x1b", "\r", "\x7f", "\x9b"])
def test_a_control_character_is_found_and_marked(character: str) -> None:
    assert ids(a_shell(f"ls {character} x")) == ["control-characters"]
    assert marked(a_shell(f"ls {character} x"), "control-characters") == character


@each_row("character", ["\u202e", "\u2066", "\u200b", "\u00ad", "\ufeff", "\U000e0041", "\u3164"])
def test_a_character_that_hides_or_reorders_is_found_and_marked(character: str) -> None:
    assert ids(a_shell(f"ls {character} x")) == ["deceptive-characters"]
    assert marked(a_shell(f"ls {character} x"), "deceptive-characters") == character


def test_a_deceptive_character_is_named_even_beside_control_characters() -> None:
    (risk,) = risks_of(a_question(a_shell("ls \x1b \u202e")))
    assert risk.id == "deceptive-characters"
    assert "U+202E" in risk.sentence


def test_an_argument_with_a_line_feed_is_noticed_where_a_shell_line_with_one_is_ordinary() -> None:
    assert ids(a_spec(Argv(program="printf", args=("a\nb",)))) == ["several-lines"]
    assert ids(a_shell("printf a\nprintf b")) == []


def test_a_hidden_character_in_an_argument_is_marked_in_the_joined_words() -> None:
    spec = a_spec(Argv(program="rm", args=("my file", "x\u202ey")))
    assert marked(spec, "deceptive-characters") == "\u202e"


def test_more_than_anybody_reads_is_noticed() -> None:
    assert ids(a_shell("x" * (LONGEST_JUDGED + 1))) == ["too-long"]


@each_row(
    ("cwd", "root", "outside"),
    [
        (ROOT, ROOT, False),
        (ROOT, ROOT + "/", False),
        (ROOT + "/sub", ROOT, False),
        (ROOT + "-old", ROOT, True),
        ("/srv", ROOT, True),
        ("/etc", "/", False),
    ],
)
def test_a_directory_outside_the_workspace_is_noticed(cwd: str, root: str, outside: bool) -> None:
    found = risks_of(a_question(a_spec(cwd=cwd), session_root=root))
    assert [risk.id for risk in found] == (["outside-workspace"] if outside else [])


def test_the_directory_counts_as_it_is_resolved_not_as_it_is_written() -> None:
    resolved = FOUND.model_copy(update={"cwd": "/etc"})
    found = risks_of(a_question(a_spec(cwd=ROOT + "/link"), resolved=resolved))
    assert [risk.id for risk in found] == ["outside-workspace"]


@each_row("shell", ["sh", "bash", "/bin/sh", "/usr/bin/zsh"])
def test_a_known_shell_is_not_worth_a_word(shell: str) -> None:
    assert ids(a_spec(Shell(text="ls", shell=shell))) == []


@each_row("shell", ["/tmp/bash", "./bash", "python3", "", "bash\x1b"])
def test_text_for_anything_but_a_known_shell_is_noticed(shell: str) -> None:
    (risk,) = risks_of(a_question(a_spec(Shell(text="ls", shell=shell))))[-1:]
    assert risk.id == "unknown-shell"
    assert "\x1b" not in risk.sentence


@each_row(
    "text",
    [
        'X=a; rm -rf "$X/"',
        'X=a && rm -rf "$X/"',
        'X=a\nrm -rf "$X/"',
        'set -eu; cd src; X=a; mkdir "$X"; rm -rf "$X/"',
        'for d in build dist; do rm -rf "$d/"; done',
        'rm -rf "${X:?}/"',
        'rm -rf "${X:-build}/"',
    ],
)
def test_a_variable_with_a_certain_value_is_not_called_empty(text: str) -> None:
    assert "empty-variable" not in ids(a_shell(text))


@each_row(
    "text",
    [
        'rm -rf "$X/"',
        'X=; rm -rf "$X/"',
        'false && X=a; rm -rf "$X/"',
        'X=a & rm -rf "$X/"',
        'X=a | true; rm -rf "$X/"',
        '(X=a); rm -rf "$X/"',
        'if true; then X=a; fi; rm -rf "$X/"',
        'X=a; (X=); rm -rf "$X/"',
        'f() { X=; }; X=a; f; rm -rf "$X/"',
        'X=a; X="" rm -rf "$X/"',
        'X=a; unset X; rm -rf "$X/"',
        'X=a; read X; rm -rf "$X/"',
        'X=a; printf -v X %s ""; rm -rf "$X/"',
        "trap 'X=' DEBUG; X=a; rm -rf \"$X/\"",
        'X=a; source s; rm -rf "$X/"',
        'X=a; rm -rf "${X#a}/"',
        'for X in ""; do rm -rf "$X/"; done',
        'for X in "$A"; do rm -rf "$X/"; done',
        'X=a; for X in ""; do rm -rf "$X/"; done',
        'for X in a; do :; done; for X in ""; do rm -rf "$X/"; done',
        'while read X; do rm -rf "$X/"; done < list',
        'rm -rf "${X:-}/"',
    ],
)
def test_a_variable_that_may_be_empty_is_pointed_out(text: str) -> None:
    assert "empty-variable" in ids(a_shell(text))
