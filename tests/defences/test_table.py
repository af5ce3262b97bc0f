"""The table of defences is about the code as it is."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.defences.defence import Defence
from tests.defences.table import DEFENCES

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("defence", DEFENCES, ids=lambda defence: defence.name)
def test_each_defence_stands_where_the_table_says_and_its_tests_are_there(defence: Defence):
    assert (ROOT / defence.file).read_text(encoding="utf-8").count(defence.text) == 1
    assert defence.text != defence.instead and defence.tests
    for test in defence.tests:
        file, _, function = test.partition("::")
        assert f"def {function.split('::')[-1].split('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_every_defence_has_a_name_of_its_own():
    assert not [name for name, times in Counter(defence.name for defence in DEFENCES).items() if times > 1]


def test_security_says_how_many_there_are():
    said = re.findall(r"each of (\d+) defences", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert said == [str(len(DEFENCES))]
