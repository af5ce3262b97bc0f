"""Commands: the argv that they mean, and when two of them are the same."""

import pytest
from pydantic import ValidationError

from tests.model.build import a_shell, a_spec
from tests.rows import each_row
from whisper_tui.model.call import Argv, CommandSpec, Shell


def test_an_argv_is_executed_as_it_is() -> None:
    assert Argv(program="printf", args=("%s", "a b; c")).words() == ("printf", "%s", "a b; c")


def test_a_shell_gets_its_text_as_one_word_that_is_never_an_option() -> None:
    assert Shell(text="-x; ls").words() == ("bash", "-c", "--", "-x; ls")
    assert Shell(text="ls", shell="/bin/sh", login=True).words() == ("/bin/sh", "-lc", "--", "ls")


def test_limits_of_time_do_not_make_another_command() -> None:
    assert a_spec().identity() == a_spec(timeout_s=9.0, grace_s=1.0).identity()


@each_row(
    "other",
    [
        a_spec(Argv(program="git", args=("status", ""))),
        a_spec(Argv(program="git status")),
        a_shell("git status"),
        a_spec(cwd="/srv/project/sub"),
        a_spec(environment={"A": "1"}),
        a_spec(tty=True),
        a_spec(accepts_input=True),
        a_spec(place="gpu1"),
    ],
)
def test_everything_else_makes_another_command(other: CommandSpec) -> None:
    assert other.identity() != a_spec().identity()


def test_the_order_of_added_variables_does_not_matter() -> None:
    one, two = a_spec(environment={"A": "1", "B": "2"}), a_spec(environment={"B": "2", "A": "1"})
    assert (one.canonical(), one.identity()) == (two.canonical(), two.identity())


def test_a_command_of_this_machine_is_written_as_before_there_were_places() -> None:
    assert "place" not in a_spec().canonical()
    assert a_spec(Argv(program="ls"), cwd="/").identity() == "03365c6b0a8c0724f8daac8ba98f9050"
    assert CommandSpec.model_validate_json(a_spec(place="gpu1").canonical()) == a_spec(place="gpu1")


@each_row("name", ["*", "..", "-oProxyCommand=x", "a b", "a/b", "gpu1\n", "x" * 101])
def test_a_place_has_a_plain_name(name: str) -> None:
    with pytest.raises(ValidationError):
        CommandSpec.model_validate({**a_spec().model_dump(), "place": name})


@each_row("wrong", [{"timeout_s": 0}, {"timeout_s": -1}, {"grace_s": -0.1}, {"colour": "red"}])
def test_senseless_limits_and_unknown_parts_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CommandSpec.model_validate({**a_spec().model_dump(), **wrong})
