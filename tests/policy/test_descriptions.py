"""The description that an agent gives of its command: a remark if it has no word about what is dangerous."""

from dataclasses import replace

from tests.model.build import ROOT
from tests.policy.build import a_question
from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Risk, is_grave
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.present.column_words import REMARKS


def remarks(text: str, description: str) -> list[Risk]:
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    asked = replace(a_question(spec), description=description)
    return [risk for risk in evaluate(asked, Rules(), ()).risks if risk.id == "silent-description"]


@each_row(
    ("text", "description"),
    [
        ("chmod -R 777 .", "Fix permissions"),
        ("terraform apply -auto-approve", "Apply infra"),
        ("sudo apt-get install -y nginx", "Install nginx"),
        ("rm -rf src", "Tidy and deploy"),
        ("rm -rf build && npm run build", "Build from scratch"),
        ("git reset --hard", "Go back to the last commit and reset"),
        ("kill -9 42", "Stop the server"),
        ("rm -rf build", "Vide le répertoire"),
        ("rm -rf build", ""),
        ("ls", "again"),
    ],
)
def test_a_description_with_a_word_about_the_command_is_not_remarked_on(text: str, description: str) -> None:
    assert remarks(text, description) == []


@each_row(
    ("text", "description"),
    [("git reset --hard", "again"), ("rm -rf src", "Show the status"), ("sudo rm -rf src; ls", "Count the lines")],
)
def test_a_description_without_any_is_remarked_on_and_no_severe_risk(text: str, description: str) -> None:
    (risk,) = remarks(text, description)
    assert risk.id in REMARKS
    assert not is_grave(risk)
