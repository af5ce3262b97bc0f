"""Every command of a reviewed table gets its grade and its exact sentence."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from whisper_tui.model.call import Argv, Command, CommandSpec, Shell
from whisper_tui.model.verdict import is_grave
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.supervisor.approvals.judge import judge_alone

TABLE = Path(__file__).with_name("data") / "graded_commands.txt"
GRADES = ("grave", "minor", "none")


def cases() -> Iterator[tuple[str, str, str]]:
    """Grade, sentence and command of each row."""
    grade = sentence = ""
    for line in TABLE.read_text("utf-8").splitlines():
        if line.startswith("    "):
            yield grade, sentence, line.strip()
        elif line and not line.startswith("#"):
            grade, _, sentence = line.partition(": ")


def command_of(row: str) -> Command:
    """The command of a row."""
    text = row.replace("↵", "\n")
    if not text.startswith("argv: "):
        return Shell(text=text)
    program, *args = shlex.split(text.removeprefix("argv: "))
    return Argv(program=program, args=tuple(args))


@pytest.mark.parametrize(("grade", "sentence", "row"), cases(), ids=lambda part: part if part in GRADES else None)
def test_a_command_has_the_grade_and_the_sentence_of_the_table(
    grade: str, sentence: str, row: str, tmp_path: Path
) -> None:
    workspace = str(tmp_path.resolve())
    environment = {"HOME": "/home/me", "PATH": os.environ["PATH"]}
    spec = CommandSpec(command=command_of(row), cwd=workspace)
    verdict, _ = judge_alone(spec, Rules(), environment, root=workspace, now=0.0)
    assert verdict.kind == "ask"
    first = next((risk for risk in verdict.risks if is_grave(risk)), next(iter(verdict.risks), None))
    found = ("none", "") if first is None else ("grave" if is_grave(first) else "minor", first.sentence)
    assert (found[0], found[1].replace(workspace, "$WORKSPACE")) == (grade, sentence)


def test_the_table_is_balanced_and_names_no_command_twice() -> None:
    rows = list(cases())
    assert len({row for _, _, row in rows}) == len(rows) >= 150
    counted = {grade: sum(1 for found, _, _ in rows if found == grade) for grade in GRADES}
    assert counted["grave"] >= 60
    assert counted["minor"] >= 30
    assert counted["none"] >= 60
