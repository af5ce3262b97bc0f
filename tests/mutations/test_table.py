"""The table of mutations is about the code as it is."""

from collections import Counter
from pathlib import Path

import pytest

from tests.mutations.mutation import Mutation
from tests.mutations.source import Place
from tests.mutations.table import MUTATIONS
from tests.rows import each_row

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
@each_row("mutation", sorted(MUTATIONS, key=lambda mutation: mutation.place), ids=lambda mutation: mutation.name)
def test_each_defence_is_where_the_table_says_and_its_tests_exist(mutation: Mutation):
    Place(ROOT, mutation.place).replaced(mutation.text, mutation.instead)
    assert mutation.text != mutation.instead and mutation.tests
    for test in mutation.tests:
        file, _, function = test.partition("::")
        assert f"def {function.split('::')[-1].split('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_every_defence_has_a_name_of_its_own():
    assert not [name for name, times in Counter(mutation.name for mutation in MUTATIONS).items() if times > 1]
