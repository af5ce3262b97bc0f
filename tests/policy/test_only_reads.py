"""What the read-only list allows has no danger, whichever row of its tables allows it."""

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.policy.test_read_only import kind
from tests.rows import each_row
from whisper_tui.policy.commands.read_only_list import fails_in_sandbox, listed_forms, only_reads
from whisper_tui.policy.commands.read_only_programs import check_of, git_forms
from whisper_tui.policy.risks.command_dangers import dangers_of_argv
from whisper_tui.policy.rules import matching
from whisper_tui.programs.entries import ProgramEntry, entry_of, program_names

_NASTY = """
--output=F --output -oF -o --output-file=F --vacuum-size=1M --vacuum-time=1s --rotate --flush --sync -Db/x -D -Dr
--ext-diff --textconv --exec=x --exec -x -X --pre=x -K --kill --compress-program=x -f -e -w -i -I -F -c -C -d -m
-n -s -u -b -E -O -O./x --write --in-place --set=1 --plugin=x --config=x --pager=x --upload-pack=x --clear
--open-files-in-pager --log-file=F --root=x --image=x --cursor-file=F --delete --batch --web -vlist -r
"""
NASTY = _NASTY.split()
"""Options that make some listed program write, run or delete something, each tried with all of them."""

FORMS = sorted(((tuple(words), form) for words, form in listed_forms()), key=lambda each: each[0])
# Programs that need a socket or a device are on the list, but never run unasked.
UNASKED = [(words, form) for words, form in FORMS if not fails_in_sandbox(words)]


def options_of(form: ProgramEntry) -> Iterator[str]:
    """Every option of a form, those with a value first."""
    yield ""
    yield from sorted(form.options, key=lambda name: form.options[name].value == "none")


@pytest.mark.one_in(20)
@pytest.mark.parametrize(("words", "form"), UNASKED, ids=[" ".join(words) for words, _ in UNASKED])
def test_no_option_of_a_listed_program_hides_a_dangerous_word(words: tuple[str, ...], form: ProgramEntry) -> None:
    named = tuple("x" if word == "*" else word for word in words)
    commands = (
        (*named, *filter(None, (option,)), nasty, *behind)
        for option in options_of(form)
        for nasty in NASTY
        for behind in ((), ("x",))
    )
    listed = [argv for argv in commands if only_reads(argv, git_is_neutral=True)]
    assert not [argv for argv in listed if dangers_of_argv(argv, has_input=False)]


@each_row(
    "text",
    [
        "git diff -M --output=F",
        "git diff -U --output=F",
        "git log -p -C --output=F",
        "git show --format --output=F",
        "git log --min-parents --output=F",
        "git shortlog --committer --output=F",
        "journalctl -n --vacuum-size=1M",
        "journalctl --lines --vacuum-time=1s",
        "lsof -a -Db/x",
        "lsof -i -Db/x",
        "xxd data -vlist",
        "gh project list --closed --web",
        "aws ec2 describe-instances --filters --cli-pager=x",
        "grep -e --exec=x f",
    ],
)
def test_an_option_is_not_taken_for_the_value_of_another(text: str) -> None:
    assert not only_reads(text.split(), git_is_neutral=True)
    assert kind(text) == "ask"


def test_nothing_with_a_danger_runs_unasked_even_if_the_list_were_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "only_reads", lambda *_, **__: True)
    assert kind("rev notes") == "allow"
    assert kind("rev --output=F notes") == "allow"
    assert kind("git diff --output=F") == "ask"
    assert kind("sort -o F notes") == "ask"


@each_row(
    "text",
    [
        "git diff -M",
        "git diff -M50% --stat",
        "git log -p -C",
        "git diff -U5 -- src",
        "git log --format=%H",
        "journalctl -n 20 -u cron",
        "lsof -a -p 1",
        "head -n -5 f",
        "grep -e '->' f",
        "lsblk -x NAME",
        "xxd -l 16 data",
        "ls --dereference-command-line",
        "bash --version",
    ],
)
def test_what_only_reads_needs_no_question(text: str) -> None:
    assert kind(text) == "allow"


@each_row("text", ["psql -to F", "psql -tAf x.sql", "psql -tAo F db", "mysql -re 'system id'"])
def test_flags_before_an_option_do_not_hide_it(text: str) -> None:
    assert dangers_of_argv(tuple(shlex.split(text)), has_input=False)


VALUED = [
    (words, option)
    for words, form in git_forms().items()
    for option, each in form.options.items()
    if each.value == "needed"
]


@pytest.mark.one_in(8)
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize(("words", "option"), VALUED, ids=[" ".join((*words, option)) for words, option in VALUED])
def test_git_itself_takes_a_word_behind_these_options_as_their_value(
    words: tuple[str, ...], option: str, tmp_path: Path
) -> None:
    def git(*given: str) -> None:
        subprocess.run(["git", *given], cwd=tmp_path, check=False, capture_output=True, stdin=subprocess.DEVNULL)

    git("init", "-q")
    (tmp_path / "a").write_text("x\n")
    git("add", "a")
    git("-c", "user.name=me", "-c", "user.email=me@example.org", "commit", "-qm", "x")
    (tmp_path / "a").write_text("y\n")
    for behind in ((), ("HEAD",), ("HEAD", "HEAD")):
        git(*words, option, "--output=written", *behind)
        assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("name", [name for name in program_names() if check_of(name) and name != "["])
def test_every_name_of_a_program_with_a_check_is_checked(name: str) -> None:
    entry = entry_of(name)
    assert entry is not None and check_of(name) is check_of(entry.name)
    for words in ("x a", "xf a.tar", "-i s/a/b/ f", ". -delete", "BEGIN{system(1)}", "-s 1", "a b c", "-o F f"):
        same = only_reads([entry.name, *words.split()], git_is_neutral=True)
        assert only_reads([name, *words.split()], git_is_neutral=True) == same, words
