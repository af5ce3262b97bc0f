"""An allow rule for a program does not cover the options with which it runs something else or writes a file.

The command lines stand in `data/acting_options.txt`.
"""

from pathlib import Path

from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.corpus import ROOT
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.risks.call_risks import risks_of
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.shell.strict_reader import read_plain
from whisper_tui.policy.view import Question


def listed(kind: str) -> list[str]:
    """The command lines below one heading of the data."""
    found, here = [], ""
    for line in (Path(__file__).parent / "data" / "acting_options.txt").read_text().splitlines():
        if line.startswith("# "):
            here = line[2:].partition(":")[0]
        elif line and here == kind:
            found.append(line)
    return found


TOLD = [*listed("runs"), *listed("writes")]
"""Command lines of which the human is told what they do."""

TRIES = list(dict.fromkeys([*TOLD, *listed("quiet")]))
"""These, and those of every day, which a rule must name all the same."""


def judged(text: str, *rules: Rule) -> str:
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    question = Question("s", ROOT, spec, "", Resolved(program="/bin/bash", cwd=ROOT, shell="bash"))
    return evaluate(question, Rules(allow=rules), ()).kind


def words(text: str) -> tuple[str, ...]:
    return read_plain(text)[0].argv


@each_row("text", TRIES)
def test_neither_a_program_nor_a_prefix_nor_a_pattern_covers_it(text: str) -> None:
    name = words(text)[0]
    rules = [Rule(name="a", program=name), Rule(name="b", prefix=(name,)), Rule(name="c", pattern=name + " *")]
    assert judged(text, *rules) == "ask"


_WHOLE = {"config", "record", "stat", "b"}
"""Second words that name all that the command does: it sets something, or runs what follows."""


@each_row("text", TRIES)
def test_a_prefix_of_the_subcommand_does_not_cover_it(text: str) -> None:
    prefix = words(text)[:2]
    if len(prefix) == 2 and prefix[1].isalpha() and prefix[1] not in {"create", "a", "xIf"} | _WHOLE:
        assert judged(text, Rule(name="r", prefix=prefix)) == "ask"


RUN_THEIR_WORDS = ("fd", "awk", "gdb", "valgrind")


@each_row("text", [each for each in TRIES if not each.startswith(RUN_THEIR_WORDS)])
def test_a_prefix_that_names_everything_covers_it(text: str) -> None:
    if any(word.partition("=")[0].isidentifier() and "=" in word for word in words(text)):
        return  # in a prefix, such a word stands for a variable in front of the command
    assert judged(text, Rule(name="r", prefix=words(text))) == "allow"


@each_row("text", listed("inner"))
def test_a_rule_for_the_program_in_front_does_not_cover_the_command_among_its_words(text: str) -> None:
    name = words(text)[0]
    rules = [Rule(name="a", program=name), Rule(name="b", prefix=(name,)), Rule(name="c", pattern=name + " *")]
    assert judged(text, *rules) == "ask"


@each_row(
    ("text", "options"),
    [
        ("helm template --post-renderer=./x .", ("--post-renderer=",)),
        ("prettier --write src", ("--write",)),
        ("strange --exec=./x", ("--exec=",)),
        ("git format-patch -o out HEAD", ("-o",)),
    ],
)
def test_a_rule_may_name_the_option_in_its_list(text: str, options: tuple[str, ...]) -> None:
    prefix = words(text)[:1]
    assert judged(text, Rule(name="r", prefix=prefix)) == "ask"
    assert judged(text, Rule(name="r", prefix=prefix, options=options)) == "allow"


@each_row(
    ("text", "named"),
    [
        ("rsync -e ssh --rsync-path=./x a h:b", 3),
        ("tar -I zstd --to-command=./x -xf a.tar", 3),
        ("vim -u NONE -c '!./x'", 3),
        ("sort -o out -o .bashrc in", 3),
    ],
)
def test_a_rule_that_names_one_such_option_does_not_cover_the_next(text: str, named: int) -> None:
    assert judged(text, Rule(name="r", prefix=words(text)[:named])) == "ask"


@each_row(
    "text",
    listed("covered"),
)
def test_common_allow_rules_still_match(text: str) -> None:
    assert judged(text, Rule(name="r", prefix=words(text)[:1])) == "allow"


@each_row("text", [each for each in TOLD if not each.startswith("strange")])
def test_the_risk_is_shown_to_the_human(text: str) -> None:
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    question = Question("s", ROOT, spec, "", Resolved(program="/bin/bash", cwd=ROOT, shell="bash"))
    assert {"runs-other-code", "writes-file", "destructive"} & {risk.id for risk in risks_of(question)}
