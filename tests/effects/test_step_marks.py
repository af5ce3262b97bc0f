"""What each command of a chain does."""

from pathlib import Path

import pytest

from whisper_tui.effects import effects_of
from whisper_tui.model.call import Shell


def marks(text: str, root: Path) -> list[tuple[str, ...]]:
    found = effects_of(Shell(text=text), str(root), (str(root),), {"HOME": "/home/me"}, budget_s=20)
    return [each.marks for each in found.steps]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat a | sort > b", [("reads",), ("writes",)]),
        ("rm -rf a && rm -rf a", [("deletes",), ("deletes",)]),
        ("cd src && echo x", [(), ()]),
        ("curl a.example && curl a.example | grep x", [("network",), ("network",), ("reads",)]),
        ("find . | xargs rm -rf", [("reads",), ("deletes", "writes")]),
        ("bash -c 'rm -rf y; ls' && ls", [("deletes",), ("reads",)]),
        ("echo $(rm -rf x) && ls", [("deletes",), ("reads",)]),
        ("(ls; rm -rf x) && ls", [("deletes",), ("reads",)]),
        ("ssh host rm -rf / && ls", [("deletes", "network"), ("reads",)]),
        ("cat < /dev/tcp/1.2.3.4/80 && ls", [("network",), ("reads",)]),
        ("./mystery && mystery --all", [("runs code",), ("unknown",)]),
        ("for f in a b; do rm $f; done && ls", [("deletes", "writes"), ("reads",)]),
    ],
)
def test_each_command_has_the_marks_of_all_that_it_runs(
    text: str, expected: list[tuple[str, ...]], tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("1\n")
    found = marks(text, tmp_path)
    assert [set(each) for each in found] == [set(each) for each in expected]


@pytest.mark.parametrize(
    "before", ["PATH=/tmp/x:$PATH", "alias ls=rm", "export X=1", "source ./env", "ls() { rm -rf x; }"]
)
def test_nothing_is_said_to_read_behind_what_may_change_the_meaning_of_names(before: str, tmp_path: Path) -> None:
    assert "reads" not in marks(f"{before}; ls", tmp_path)[-1]


def test_a_command_that_the_walk_does_not_come_to_is_unknown(tmp_path: Path) -> None:
    assert marks("exit 0; rm -rf a", tmp_path)[-1] == ("unknown",)


def test_a_text_that_is_not_read_to_its_end_has_no_marks(tmp_path: Path) -> None:
    assert marks("ls && 'a", tmp_path) == []


def test_a_step_is_where_its_words_stand(tmp_path: Path) -> None:
    text = "ls -l && rm -rf 'a b' | cat"
    found = effects_of(Shell(text=text), str(tmp_path), (str(tmp_path),), {}, budget_s=20).steps
    assert [text[each.start : each.end] for each in found] == ["ls -l", "rm -rf 'a b'", "cat"]
