"""Commands in plain words: each program and option by the table, and nothing that the table does not say."""

import re
import shlex
import shutil
import subprocess
import sys

import pytest

from whisper_tui.model.call import Argv, Shell
from whisper_tui.model.verdict import Meaning, Resolved
from whisper_tui.present.explained_words import (
    MOST_EXPLAINED,
    explain_command,
    explain_words,
    explained_paragraphs,
    explained_rows,
)
from whisper_tui.programs.entries import ProgramEntry, entry_of, program_names


def rows(command: str) -> list[tuple[str, str]]:
    return [(words, meaning) for words, meaning, _ in explained_rows(explain_words(tuple(shlex.split(command))))]


def words(command: str) -> list[str]:
    return [shown for shown, _ in rows(command)]


def unknown(command: str) -> list[str]:
    return [shown for shown, meaning in rows(command) if meaning == "not described"]


def test_combined_short_options_are_explained_one_by_one_and_the_last_takes_its_value() -> None:
    assert rows("tar -xzf a.tgz") == [
        ("tar", "create, list or extract archives"),
        ("-x", "extract files"),
        ("-z", "through gzip"),
        ("-f a.tgz", "the archive; - is the standard input or output"),
    ]
    assert words("curl -sSLofile u") == ["curl", "-s", "-S", "-L", "-ofile"]
    assert words("tar xzfC a.tgz /x") == ["tar", "x", "z", "f a.tgz", "C /x"]
    assert words("ps aux") == ["ps", "a", "u", "x"]


def test_an_optional_value_is_taken_only_where_the_program_takes_it() -> None:
    assert words("sed -i.bak -n p f") == ["sed", "-i.bak", "-n"]
    assert words("sed -i p f") == ["sed", "-i"]
    assert words("ls --color=never --color x") == ["ls", "--color=never", "--color"]
    assert words("make -j 8 all") == ["make", "-j 8"]
    assert words("make -j all") == ["make", "-j"]
    assert words("cp -uv a b") == ["cp", "-u", "-v"]
    assert unknown("rm --recursive=yes x") == ["--recursive=yes"]


def test_subcommands_have_options_of_their_own() -> None:
    assert words("git -C /x commit -am done -C HEAD") == ["git", "-C /x", "git commit", "-a", "-m done", "-C HEAD"]
    assert dict(rows("git -C /x commit -C HEAD"))["-C HEAD"] == "with the message of this commit"
    assert unknown("git grep -p x") == ["-p"]
    assert words("kubectl -n a get pods -n b") == ["kubectl", "-n a", "kubectl get", "-n b"]
    assert words("docker compose -f a.yml up -d") == ["docker", "docker compose", "-f a.yml", "docker compose up", "-d"]
    assert words("go test -run=X ./... --race") == ["go", "go test", "-run=X", "-race"]


def test_the_words_of_another_command_are_not_explained_as_options_of_its_wrapper() -> None:
    assert words("sudo -u root rm -i x") == ["sudo", "-u root"]
    assert words("xargs -0 -n1 rm -rf") == ["xargs", "-0", "-n1"]
    assert words("docker run -it alpine ls -a") == ["docker", "docker run", "-i", "-t"]
    assert words("find . -exec rm -name {} ; -print") == ["find", "-exec rm -name {}", "-print"]
    assert words("python3 -m http.server -c x") == ["python3", "-m http.server"]
    assert words("grep -- -v f") == ["grep"]


def test_options_missing_in_the_table_are_not_described() -> None:
    assert unknown("frobnicate -x") == ["frobnicate"]
    assert unknown("tar -xQf a") == ["-Qf"]
    assert unknown("git frobnicate --all") == ["git frobnicate"]
    assert unknown("rm --recurs x") == ["--recurs"]
    assert unknown("chmod +x -t f") == ["-t"]


def test_behind_an_unknown_option_nothing_is_taken_for_a_subcommand() -> None:
    assert unknown("git --frob push commit -a") == ["--frob", "push commit -a"]
    assert unknown("sudo --frob a -u root") == ["--frob", "a -u root"]


def test_a_word_that_is_only_known_when_it_runs_is_not_described() -> None:
    explained = explained_rows(explain_words(("git", None, "push", "-f")))
    assert [meaning for _, meaning, _ in explained] == ["version control", "not described", "not described"]
    shown = [text for text, _, _ in explained_rows(explain_words(("tar", "-f", None, "-x")))]
    assert shown == ["tar", "-f ⟨known only when it runs⟩", "-x"]


def test_only_an_installed_program_is_taken_for_the_program_of_its_name() -> None:
    assert words("/usr/bin/tar -x") == ["/usr/bin/tar", "-x"]
    assert words(".venv/bin/pytest -x")[0] == ".venv/bin/pytest" and unknown("/x/.venv/bin/pytest -x") == []
    for elsewhere in ("./tar -x", "/tmp/tar -x", "scripts/tar -x", "../bin-x/tar -x"):
        assert unknown(elsewhere) == [elsewhere.split()[0]]


def test_a_function_or_an_alias_is_not_described_as_the_program_of_its_name() -> None:
    resolved = Resolved(commands=(Meaning(words=("ls", "-a")),))
    for text in (
        "ls() { rm -rf x; }; ls -a",
        "function ls { :; }; ls -a",
        "alias ls='rm'; ls -a",
        "ls  ( ) (:) ; ls -a",
    ):
        assert explain_command(Shell(text=text), resolved) == (("ls", None, True),)
    for text in ("ls -a", "lsx() { :; }; ls -a", "echo $(ls -a)"):
        assert [each.words for each in explain_command(Shell(text=text), resolved)] == ["ls", "-a"]


def test_each_command_of_a_pipeline_is_explained_and_text_of_agents_is_harmless() -> None:
    resolved = Resolved(commands=(Meaning(words=("cat", "-n", "f")), Meaning(words=("grep", "-e", "\x1b[2Jx\n"))))
    command = Argv(program="cat")
    shown = explained_rows(explain_command(command, resolved))
    assert [is_program for _, _, is_program in shown] == [True, False, True, False]
    assert not any(ord(character) < 32 for text, _, _ in shown for character in text)
    assert explained_paragraphs(command, None) == () == explained_paragraphs(command, Resolved())


def test_many_words_are_cut_and_counted() -> None:
    explained = explain_words(("rm", *["-f"] * (MOST_EXPLAINED + 4)))
    shown = explained_rows(explained)
    assert len(shown) == MOST_EXPLAINED + 1 and shown[-1][0] == "… 5 more words"
    assert len(explained_rows(explain_words(("grep", "-e", "x" * 500)))[1][0]) == 60


def entries() -> list[tuple[tuple[str, ...], ProgramEntry]]:
    found = []
    ahead = [((name,), entry) for name in program_names() if (entry := entry_of(name)) is not None]
    while ahead:
        path, entry = ahead.pop()
        found.append((path, entry))
        ahead += [((*path, word), command) for word, command in entry.commands.items()]
    return found


def test_every_entry_says_something() -> None:
    assert len(program_names()) >= 400
    for path, entry in entries():
        meanings = (entry.about, *(option.meaning for option in entry.options.values() if option.meaning))
        for meaning in meanings:
            assert meaning == meaning.strip() and meaning and not re.search(r"\w\.$", meaning), path
        assert entry.bundle in {"", "dashed", "bare"}


HELPED = (
    *("ls", "cat", "head", "tail", "cp", "mv", "rm", "rmdir", "mkdir", "touch", "ln", "chmod", "chown", "chgrp"),
    *("stat", "du", "df", "realpath", "readlink", "mktemp", "grep", "sed", "cut", "sort", "uniq", "wc", "tr", "tee"),
    *("diff", "xargs", "base64", "sha256sum", "tar", "gzip", "wget", "rsync", "date", "make", "timeout", "env", "nice"),
    *("pgrep", "rg", "git add", "git branch", "git checkout", "git clean", "git clone", "git commit", "git fetch"),
    *("git merge", "git pull", "git push", "git rebase", "git reset", "git restore", "git rm", "git status", "git tag"),
    *("cargo build", "cargo test", "cargo run", "cargo add", "pip install", "uv run", "kubectl get", "kubectl delete"),
)
ALSO_KNOWN = {"gzip": {"--to-stdout"}}
"""Options that the help of the program leaves out, and its manual has."""


@pytest.mark.slow
@pytest.mark.parametrize("name", HELPED)
def test_the_help_of_an_installed_program_names_each_long_option_that_is_described(name: str) -> None:
    path = tuple(name.split())
    if shutil.which(path[0]) is None:
        pytest.skip(f"{path[0]} is not installed")
    asked = subprocess.run(
        [*path, "-h" if path[0] == "git" else "--help"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    said = (asked.stdout + asked.stderr).replace("[no-]", "")
    if sys.platform != "linux" or "sage" not in said or "busybox" in said.lower():
        pytest.skip(f"{name} has no help of the usual kind here")
    options = dict(entries())[path].options
    described = {name for name, option in options.items() if option.meaning and name.startswith("--")} - ALSO_KNOWN.get(
        name, set()
    )
    missing = {option for option in described if not re.search(rf"{re.escape(option)}(?![\w-])", said)}
    plain = {option.replace("--no-", "--", 1) for option in missing}
    assert {option for option in plain if not re.search(rf"{re.escape(option)}(?![\w-])", said)} == set()
