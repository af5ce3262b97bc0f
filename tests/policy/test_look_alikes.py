"""Letters that imitate ASCII are found inside of Latin words; ordinary words and emoji are no deception."""

from tests.model.build import a_spec
from tests.policy.build import a_question
from tests.rows import each_row
from whisper_tui.model.call import Shell
from whisper_tui.policy.risks.call_risks import _characters, risks_of
from whisper_tui.policy.risks.look_alikes import FLAGS, JOINED, LETTERS, STYLED


def found(text: str) -> set[str]:
    """The ids of the risks that are about the characters of a text."""
    ids = {risk.id for risk in risks_of(a_question(a_spec(Shell(text=text))))}
    return ids & {"look-alikes", "deceptive-characters", "control-characters"}


@each_row(
    "text",
    [
        "g\u0456t status",
        "cat \u1d20ar",
        "ls \u15b4ile",
        "rm \ua4d6o",
        "cd \U00010315mp",
        "echo \u2139nfo",
        "cat \U0001fbf1x",
        "tar x\u2215y",
    ],
)
def test_a_letter_that_looks_like_another_one_is_named(text):
    assert found(text) == {"look-alikes"}


def test_every_letter_of_the_data_is_found_inside_of_a_latin_word():
    letters = _characters(LETTERS)
    assert len(letters) > 1200
    # Those that no terminal draws, or whose width is unknown to this Python, are named for that.
    assert {letter for letter in letters if not found(f"ls a{letter}b")} == set()


@each_row(
    "text",
    [
        "echo yap\u0131ld\u0131 stra\u00dfe \u00f8l na\u00efve \u0141\u00f3d\u017a",
        "echo \u043f\u0440\u0438\u0432\u0435\u0442",
        "echo API\u30ce\u30fc\u30c8 \u6d4b\u8bd5test",
        "echo \u05d5-API \u0627\u0644API",
        "echo 16\u00d7GPU don\u2019t a\u2013b \u2026",
    ],
)
def test_words_of_living_languages_are_no_imitation(text):
    assert found(text) == set()


@each_row(
    "emoji",
    [
        "\u26a0\ufe0f",
        "\u2728 \u26a0\ufe0f",
        "\u2139\ufe0fInfo",
        "\U0001f468\u200d\U0001f4bb",
        "\U0001f468\U0001f3fd\u200d\U0001f4bb",
        "\u2764\ufe0f\u200d\U0001f525",
        "\U0001f44d\U0001f3fd",
        "\U0001f1e9\U0001f1ea\u26a0\ufe0f",
        "\U0001f3f4\u200d\u2620\ufe0f",
    ],
)
def test_emoji_are_no_deception(emoji):
    assert found(f'git commit -m "{emoji} done"') == set()


@each_row(
    "text",
    [
        "rm a\ufe0f",
        "rm 1\ufe0f",
        "echo \u26a0\ufe0f\ufe0f",
        "echo \u26a0\ufe0f\u200b",
        "echo a\u200db",
        "echo \U0001f468\u200dx",
        "echo \U0001f680\u200d\U0001f389",
        "echo \u26a0\ufe0f; rm \u202ex",
        "echo \U0001f1e9",
        "echo x\U0001f3fd",
    ],
)
def test_the_same_characters_elsewhere_are_deceptive(text):
    assert "deceptive-characters" in found(text)


def test_every_joined_emoji_and_flag_is_one():
    for each in JOINED.split():
        assert (
            found("echo " + "\u200d".join("".join(chr(int(p, 16)) for p in each.split("+")).split("\u200d"))) == set()
        )
    for flag in FLAGS.split():
        assert found("echo " + "".join(chr(0x1F1E6 + ord(letter) - 65) for letter in flag)) == set()
    for each in sorted(_characters(STYLED))[::10]:
        assert found(f"echo {each}\ufe0f") == set()
