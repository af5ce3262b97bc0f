"""A rule that allows a program by its bare name does not allow what GTFOBins does with it.

GTFOBins is under the GPL, so nothing of it is here: `GTFOBINS=DIRECTORY make nightly` reads a checkout of
https://github.com/GTFOBins/GTFOBins.github.io that whoever runs it has made.
"""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model.build import ROOT
from tests.policy.build import a_question
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.grants import is_too_broad
from whisper_tui.policy.rules.rule import Rule, Rules

CHECKOUT = os.environ.get("GTFOBINS", "")
FUNCTIONS = {
    *("shell", "command", "reverse-shell", "bind-shell", "file-write", "upload", "download", "library-load"),
    *("privilege-escalation", "non-interactive-reverse-shell"),
}
"""Those that run, write or send something. What only reads a file is of no concern here."""
MOST_LEFT = 79
"""Programs of which an example is allowed by a rule of the bare name. It may fall, and never rise."""

_CODE = re.compile(r"^  (?:- |  )code: \|-\n((?:      .*\n|\n)+)", re.MULTILINE)
_FUNCTION = re.compile(r"^  ([a-z-]+):\n", re.MULTILINE)


def examples(page: str) -> Iterator[str]:
    """Yield the commands of one line that run, write or send something."""
    parts = _FUNCTION.split(page)
    for function, text in zip(parts[1::2], parts[2::2], strict=True):
        if function in FUNCTIONS:
            lines = (match[1].strip("\n").split("\n") for match in _CODE.finditer(text))
            yield from (line[0].strip() for line in lines if len(line) == 1)


def is_plain(name: str, example: str) -> bool:
    """True if an example is one command, of this program."""
    try:
        words = shlex.split(example)
    except ValueError:
        return False
    return bool(words) and words[0] == name and not {";", "|", "&&", "||", "&", ">", "<"} & set(words)


def is_allowed(name: str, example: str) -> bool:
    """True if a rule of the bare name lets a command run unasked."""
    spec = CommandSpec(command=Shell(text=example), cwd=ROOT)
    question = a_question(spec, resolved=Resolved(program="/usr/bin/bash", shell="bash", cwd=ROOT))
    return evaluate(question, Rules(read_only=False, allow=(Rule(name=name, prefix=(name,)),)), ()).kind == "allow"


def escapes(checkout: Path) -> dict[str, str]:
    """The programs of which a bare rule allows an example, each with it."""
    found = {}
    for page in sorted((checkout / "_gtfobins").iterdir()):
        name = page.name.removesuffix(".md")
        if is_too_broad((name,)):
            continue
        for example in examples(page.read_text(encoding="utf-8")):
            if is_plain(name, example) and is_allowed(name, example):
                found.setdefault(name, example)
    return found


@pytest.mark.skipif(not CHECKOUT, reason="GTFOBINS names no checkout of GTFOBins, which is under the GPL")
def test_few_programs_escape_a_rule_of_their_bare_name():
    left = escapes(Path(CHECKOUT))
    assert len(left) <= MOST_LEFT, "\n".join(f"{name}: {example}" for name, example in left.items())


def test_the_pages_are_read_as_they_are_written(tmp_path):
    page = (
        "---\nfunctions:\n  file-read:\n  - code: |-\n      touch read\n  shell:\n  - binary: false\n    code: |-\n"
        "      touch --run=/bin/sh x\n    comment: |-\n      none\n  - code: |-\n      two\n      lines\n...\n"
    )
    (tmp_path / "_gtfobins").mkdir()
    (tmp_path / "_gtfobins" / "touch").write_text(page)
    (tmp_path / "_gtfobins" / "perl").write_text(page.replace("touch --run=/bin/sh x", "perl -e 'exec \"/bin/sh\"'"))
    assert escapes(tmp_path) == {"touch": "touch --run=/bin/sh x"}
