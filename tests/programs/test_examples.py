"""The examples in the entries of programs are judged as the entries say."""

import shlex

from tests.policy.test_read_only import kind
from tests.programs.test_entries import rows
from tests.rows import each_row
from whisper_tui.policy.commands.read_only_list import fails_in_sandbox, only_reads

FIELDS = {"only_reads": True, "asks": False}
EXAMPLES = [(call, reads) for row in rows().values() for field, reads in FIELDS.items() for call in row.get(field, ())]


@each_row(("call", "reads"), EXAMPLES)
def test_an_example_is_judged_as_its_entry_says(call: str, reads: bool) -> None:
    words = shlex.split(call)
    assert only_reads(words, git_is_neutral=True) == reads
    # what needs a socket only reads as well, but would fail unasked
    assert (kind(call) == "allow") == (reads and not fails_in_sandbox(words))


def test_everyday_programs_have_examples() -> None:
    assert len({shlex.split(call)[0] for call, _ in EXAMPLES}) >= 100
