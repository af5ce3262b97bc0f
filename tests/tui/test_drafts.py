"""Editing a command: text into a specification, with what is wrong in words."""

from tests.rows import each_row
from whisper_tui.model.call import Argv, CommandSpec, Function, Shell
from whisper_tui.tui.dialogs.drafts import Draft, checked, draft_of, hidden_count

ARGV = CommandSpec(command=Argv(program="make", args=("-j", "two words", "", "it's")), cwd="/home/me", timeout_s=60)
SHELL = CommandSpec(command=Shell(text="cd x &&\n\tmake"), cwd="/home/me", tty=True)
FUNCTION = CommandSpec(command=Function(tool="mail", arguments={"to": ["me"], "n": 1}), cwd="/home/me")


@each_row("spec", [ARGV, SHELL, FUNCTION])
def test_an_untouched_draft_is_the_same_specification(spec: CommandSpec) -> None:
    assert checked(draft_of(spec), spec).spec == spec


def test_unedited_fields_stay_unchanged() -> None:
    draft = Draft(program="", text="true", cwd="/srv", timeout="0.5")
    spec = checked(draft, SHELL).spec
    assert spec == CommandSpec(command=Shell(text="true"), cwd="/srv", timeout_s=0.5, tty=True)


@each_row(
    ("change", "problem"),
    [
        ({"program": " "}, "There is no program."),
        ({"text": "'open"}, "The arguments contain an unclosed quote"),
        ({"cwd": "relative"}, "absolute path"),
        ({"timeout": "soon"}, "number of seconds"),
        ({"timeout": "0"}, "number of seconds"),
        ({"timeout": "-1"}, "number of seconds"),
        ({"timeout": "inf"}, "number of seconds"),
        ({"timeout": "nan"}, "number of seconds"),
        ({"text": "a\u202eb"}, "an invisible character (U+202E)"),
        ({"program": "ma\u200bke"}, "The program contains an invisible character (U+200B)"),
        ({"cwd": "/a\x1b"}, "an invisible character (U+001B)"),
    ],
)
def test_mistakes_in_a_draft_are_reported(change: dict[str, str], problem: str) -> None:
    draft = Draft(**{**vars(draft_of(ARGV)), **change})
    result = checked(draft, ARGV)
    assert result.spec is None
    assert any(problem in sentence for sentence in result.problems)


def test_an_empty_shell_text_is_no_command() -> None:
    assert checked(Draft("", " \n", "/", ""), SHELL).problems == ("There is no command.",)


@each_row("text", ["[1]", "{", "3"])
def test_arguments_of_a_tool_are_a_json_object(text: str) -> None:
    assert checked(Draft("", text, "/", ""), FUNCTION).problems == ("The arguments must be a JSON object.",)


def test_invisible_characters_are_removed_from_the_fields_and_counted() -> None:
    spec = CommandSpec(command=Shell(text="rm \u202efdp.x\u2066"), cwd="/")
    assert draft_of(spec).text == "rm fdp.x"
    assert hidden_count(spec) == 2
    edited = checked(draft_of(spec), spec).spec
    assert edited is not None and edited != spec
