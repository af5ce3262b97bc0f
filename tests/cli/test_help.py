"""The help lists what people use, by groups, and a mistyped word is answered with the one that was meant."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_documented import subcommands
from tests.rows import each_row
from whisper_tui.cli.dispatch import FAMILIES, parser
from whisper_tui.cli.subcommand import GROUPS

PROGRAM = [sys.executable, "-m", "whisper_tui"]
INTERNAL = {"hook", "exec", "gate", "supervise", "check", "complete", "dial-stdio"}


def whisper(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*PROGRAM, *words], capture_output=True, check=False, text=True, timeout=90)


def test_the_help_lists_every_subcommand_in_its_group_and_no_internal_one() -> None:
    lines = whisper("--help").stdout.splitlines()
    for title, names in GROUPS.items():
        section = lines[lines.index(f"{title}:") + 1 :]
        section = section[: section.index("")]
        assert [line.split()[0] for line in section if line.startswith("  ") and line[2] != " "] == list(names)
    listed = {name for names in GROUPS.values() for name in names}
    assert {verb for verbs in FAMILIES.values() for verb in verbs} - listed <= INTERNAL


@each_row("name", ["call", "watch", "tools", "serve"])
def test_the_description_of_a_subcommand_wraps_at_the_width_of_the_terminal(name: str) -> None:
    lines = whisper(name, "--help").stdout.splitlines()
    assert max(len(line) for line in lines) <= 80


def test_the_examples_of_a_help_are_command_lines_that_the_program_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = {name: getattr(one, "examples", ()) for name, one in subcommands().items()}
    assert {"approve", "call", "explain", "install", "review", "undo"} <= {name for name in shown if shown[name]}
    for name, examples in shown.items():
        for example in examples:
            program, *words = shlex.split(example)
            assert (program, words[0]) == ("whisper-tui", name)
            assert parser().parse(words).verb == name
            assert f"  {example}\n" in subcommands()[name].format_help()


def test_the_exit_codes_of_a_help_go_on_below_their_meanings() -> None:
    lines = whisper("list", "--help").stdout.splitlines()
    (at,) = [at for at, line in enumerate(lines) if line.startswith("  74   ")]
    assert lines[at + 1].startswith(" " * 7) and lines[at + 2].startswith("  130  ")


@each_row("name", ["hook", "exec", "gate", "supervise", "check"])
def test_an_internal_subcommand_still_has_its_help(name: str) -> None:
    assert f"usage: whisper-tui {name}" in whisper(name, "--help").stdout


@each_row(
    ("words", "meant"),
    [
        (("aprove", "1"), "there is no subcommand 'aprove'; did you mean 'approve'?"),
        (("--verison",), "did you mean '--version'?"),
        (("list", "--jsn"), "did you mean '--json'?"),
        (("install", "claud"), "did you mean 'claude'?"),
        (("rules", "ad"), "did you mean 'add'?"),
        (("logs", "1", "--stream", "bth"), "did you mean 'both'?"),
        (("xyzzy",), "there is no subcommand 'xyzzy'; whisper-tui --help lists them"),
        (("logs", "1", "--stream", "q"), "choose from out, err, both"),
    ],
    ids=" ".join,
)
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(words: tuple[str, ...], meant: str) -> None:
    answer = whisper(*words)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert meant in answer.stderr


def test_the_usage_of_a_wrong_option_is_that_of_its_subcommand() -> None:
    assert "usage: whisper-tui approve" in whisper("approve", "1", "--jsno").stderr


def test_explain_and_check_are_one_subcommand(tmp_path: Path) -> None:
    place = ("--home", str(tmp_path))
    explained, checked = (whisper(name, *place, "--", "rm -rf /") for name in ("explain", "check"))
    assert explained.stdout == checked.stdout and "destructive" in explained.stdout
