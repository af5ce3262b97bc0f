"""Effects as marks, names, bars and chips."""

from tests.rows import each_row
from whisper_tui.model.effects import FileEffect, HostEffect, Removal, TextDiff
from whisper_tui.present.effect_marks import bar, file_row, host_chip, removal_row
from whisper_tui.present.spans import Line


def text(line: Line) -> str:
    return "".join(span.text for span in line)


@each_row(
    ("added", "removed", "shown"),
    [
        (0, 0, ""),
        (1, 0, "+1 ■"),
        (0, 2, "−2 ■■"),
        (3, 1, "+3 −1 ■■■■"),
        (1000, 1, "+1,000 −1 ■■■■■■■■■■"),
    ],
)
def test_a_bar_has_squares_in_the_proportion_of_the_lines(added: int, removed: int, shown: str) -> None:
    assert text(bar(added, removed)) == shown


def test_neither_part_of_a_bar_looks_like_nothing() -> None:
    roles = {span.role for span in bar(1000, 1) if "■" in span.text}
    assert roles == {"good", "bad"}


@each_row(
    ("file", "shown"),
    [
        (FileEffect(action="writes", path="/w/a", real="/w/a", before="absent"), "+ a"),
        (FileEffect(action="writes", path="/w/a", real="/w/a", before="file", size=10), "~ a"),
        (FileEffect(action="touches", path="/w/a", real="/w/a", before="file"), "~ a  its time only"),
        (FileEffect(action="moves", path="/w/a", real="/w/a", detail="/w/b"), "→ a → b"),
        (FileEffect(action="makes directory", path="/w/a", real="/w/a"), "+ a/"),
        (FileEffect(action="removes directory", path="/w/a", real="/w/a"), "− a/"),
        (FileEffect(action="changes mode of", path="/w/a", real="/w/a", detail="755"), "~ a  mode 755"),
        (FileEffect(action="writes", path="/e", real="/e", before="file", outside=True), "~ /e  outside"),
        (
            FileEffect(action="writes", path="/w/a", real="/w/b", before="file", through_link=True),
            "~ a  really b",
        ),
        (
            FileEffect(action="links", path="/w/a", real="/w/a", detail="/etc/passwd", before="file"),
            "+ a → /etc/passwd  replaces a file",
        ),
        (FileEffect(action="writes", path="/w/a\x1b", real="/w/a\x1b", before="absent"), "+ a␛"),
        (FileEffect(action="writes", path="/w/a", real="/w/a", before="absent", only_if="b fails"), "+ a  if b fails"),
    ],
)
def test_a_file_has_a_mark_and_what_is_unusual_about_it(file: FileEffect, shown: str) -> None:
    assert text(file_row(file, "/w").line) == shown


def test_a_file_that_runs_later_says_so_under_each_of_its_names() -> None:
    hook = FileEffect(action="writes", path="/w/link", real="/w/.git/hooks/pre-commit", before="absent")
    assert text(file_row(hook, "/w", {"/w/.git/hooks/pre-commit": "hooks"}).line) == "+ link  runs later"
    assert text(file_row(hook, "/w", ["/w/other"]).line) == "+ link"


def test_what_changes_of_a_file_is_its_lines_or_else_its_size() -> None:
    file = FileEffect(action="writes", path="/w/a", real="/w/a", before="file", size=10)
    assert text(file_row(file, "/w").amount).strip() == "10 B"
    known = file.model_copy(update={"diff": TextDiff(text="@@", added=1, removed=2)})
    assert text(file_row(known, "/w").amount).strip() == "+1 −2 ■■■"


def test_a_removal_says_how_much_is_lost_and_what_git_can_restore() -> None:
    removal = Removal(paths=("/w/a", "/w/b"), files=3, bytes=10, restorable=1, untracked=2, missing=("/w/c",))
    row = removal_row(removal, "/w")
    assert text(row.line) == "− a, b  1 restorable from git  2 untracked  not there: c"
    assert text(row.amount).strip() == "3 files, 10 B"
    lost = {span.text.strip() for span in row.line if span.role == "risk"}
    assert lost == {"2 untracked"}


def test_a_removal_of_what_does_not_exist_says_so() -> None:
    row = removal_row(Removal(paths=(), files=0, bytes=0, missing=("/w/a",)), "/w")
    assert (text(row.line), row.amount) == ("· a  not there", ())


def test_a_machine_is_a_chip_that_does_not_break() -> None:
    chip = host_chip(HostEffect(host="shop.example.com", program="curl"))
    assert text(chip) == "\u00a0→\u00a0shop.example.com\u00a0 curl"
    here = host_chip(HostEffect(host="localhost", program="curl", elsewhere=False))
    assert text(here).endswith("curl, this machine")
