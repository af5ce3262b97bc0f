"""A rule of a project allows no command one word of which leads out of the project."""

import shlex

from tests.rows import each_row
from whisper_tui.policy.rules.matching import stays_inside

OUTSIDE = """
make -C /etc
make -C/etc
make --directory=/etc
make --dir=/etc
make --dir sub
cd /etc
cp a ../b
cp a -t/etc
cp a -ft/etc
cp a --target-directory=/etc
cp a --targ=..
sort -o/etc/x a
sort -ro../x a
sort -o../x a
"""


@each_row("line", OUTSIDE.strip().splitlines())
def test_a_word_that_leads_out_is_noticed_however_it_is_written(line: str) -> None:
    assert not stays_inside(shlex.split(line), "/srv/project")


@each_row(
    "line",
    [
        "make -j8 all",
        "cp -r a b",
        "cp a /srv/project/b",
        "gcc -I./include a.c",
        "sort -o/srv/project/x a",
        "ls --color=auto",
    ],
)
def test_words_that_stay_inside_are_allowed(line: str) -> None:
    assert stays_inside(shlex.split(line), "/srv/project")
