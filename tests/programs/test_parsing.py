"""The words of a command are taken apart by the entry of its program, in one way for all who ask."""

from tests.rows import each_row
from whisper_tui.policy.commands.argv import parse_arguments, parse_options, reading_form
from whisper_tui.programs.entries import entry_of, read_programs
from whisper_tui.programs.parsing import ParsedWord, parse


def parsed(text: str, *, subcommands: bool = False) -> list[ParsedWord]:
    words = [None if word == "$X" else word for word in text.split()]
    return list(parse(words, entry_of(words[0]), subcommands=subcommands))


def shown(text: str, *, subcommands: bool = False) -> str:
    """Each word with the first letter of its kind, its name and its values."""
    found = []
    for each in parsed(text, subcommands=subcommands):
        name = each.name if each.kind == "option" else each.given or "$X"
        found.append(":".join((each.kind[0], name, *(value or "$X" for value in each.values))))
    return " ".join(found)


@each_row(
    ("text", "expected"),
    [
        ("rm -rf x", "o:-r o:-f o:x"),
        ("rm -f -- -r", "o:-f d:-- o:-r"),
        ("rm --recurs x", "o:--recursive o:x"),
        ("rm -Zf x", "u:-Zf o:-f o:x"),
        ("rm --no-such=1 x", "u:--no-such:1 o:x"),
        ("rm $X -r", "o:$X o:-r"),
        ("head -20 f", "o:-NUMBER o:f"),
        ("head -n 5 f", "o:-n:5 o:f"),
        ("head -n5 f", "o:-n:5 o:f"),
        ("head -n $X f", "o:-n:$X o:f"),
        ("head --lines=5 f", "o:--lines:5 o:f"),
        ("make -j 4 all", "o:-j:4 o:all"),
        ("make -j all", "o:-j o:all"),
        ("git branch --merged main", "o:branch u:--merged o:main"),
        ("dd if=a of=b", "o:if=a:a o:of=b:b"),
        ("tar xfC a d", "o:-x o:-f:a o:-C:d"),
        ("find . -exec rm {} ; -print", "o:. o:-exec:rm:{} o:-print"),
        ("terraform --chdir=x plan", "o:-chdir:x o:plan"),
        ("sudo -u me ls -l", "o:-u:me o:ls o:-l"),
        ("python3 -m pytest -x", "o:-m:pytest o:-x"),
    ],
)
def test_words_are_taken_apart_by_the_entry(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_behind_a_subcommand_its_options_are_meant_and_those_that_may_stand_anywhere() -> None:
    assert shown("git -C x log -p --stat", subcommands=True) == "o:-C:x s:log o:-p o:--stat"
    assert shown("kubectl get -n prod pods", subcommands=True) == "s:get o:-n:prod o:pods"
    entry = read_programs(
        {
            "a": {"about": "a", "is": "anywhere", "options": "-n N  so many"},
            "a b": {"about": "b"},
            "a b c": {"about": "c"},
        }
    )["a"]
    assert [each.values for each in parse(("a", "b", "c", "-n", "5"), entry, subcommands=True)][-1] == ("5",)


def test_a_value_that_is_only_known_when_it_runs_is_no_missing_one() -> None:
    (missing,), (unknown,) = parsed("head -n"), parsed("head -n $X")
    assert not missing.values and not missing.is_exact
    assert unknown.values == (None,) and unknown.takes_next


def test_each_question_has_its_own_certainty() -> None:
    """Only a wrapper may be asked with a beginning of an option; a value must not look like one where it only reads."""
    form = reading_form("head")
    assert form is not None
    assert parse_arguments(["--lines", "5"], form) is not None
    for refused in (["--line", "5"], ["--lines", "-x"], ["--quiet=1"], ["--lines"], ["-Z"], ["-NUMBER"]):
        assert parse_arguments(refused, form) is None, refused
    timeout = entry_of("timeout")
    assert parse_options(("timeout", "--sig", "9", "5", "ls"), 1, timeout) == ((("--signal", "9"),), 3)
    for refused in (("timeout", "--no-such", "5"), ("timeout", None, "5"), ("timeout", "-s")):
        assert parse_options(refused, 1, timeout) is None, refused


def test_what_need_not_be_a_value_counts_as_an_operand_as_well() -> None:
    form = reading_form("journalctl")
    assert form is not None
    given = parse_arguments(["-n", "20"], form)
    assert given is not None and given.operands == ("20",) and given.options == (("-n", "20"),)


def test_a_module_and_its_arguments_are_left_together() -> None:
    words = ("uv", "run", "-m", "pytest", "-x")
    parsed_options = parse_options(words, 2, entry_of("uv", "run"))
    assert parsed_options is not None and words[parsed_options.rest :] == ("pytest", "-x")
    assert parse_options(("uv", "run", "-mpytest"), 2, entry_of("uv", "run")) is None
