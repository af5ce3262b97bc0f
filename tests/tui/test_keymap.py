"""The keys in force: what a set and the user change, what cannot be done and is told, and where the keys are shown."""

import re

import pytest

from tests.rows import each_row
from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import Scenario, workday
from whisper_tui.config.configuration import CockpitSettings
from whisper_tui.tui.command_definition import KEY_SETS, RESERVED, RETIRED, SETS, read_key, written
from whisper_tui.tui.commands.all_commands import BY_ID, COMMANDS, OTHER_SCREENS, keymap


@each_row(
    ("text", "key", "shown"),
    [
        ("k", "k", "k"),
        ("K", "K", "K"),
        ("shift+k", "K", "K"),
        ("/", "slash", "/"),
        ("?", "question_mark", "?"),
        ("[", "left_square_bracket", "["),
        (" ", "space", "Space"),
        ("Space", "space", "Space"),
        ("Esc", "escape", "Esc"),
        ("F5", "f5", "F5"),
        ("Ctrl+G", "ctrl+g", "Ctrl+G"),
        ("ctrl+]", "ctrl+right_square_bracket", "Ctrl+]"),
        ("alt+x", "alt+x", "Alt+X"),
        ("Shift+Tab", "shift+tab", "Shift+Tab"),
        ("PgUp", "pageup", "PgUp"),
        ("↑", "up", "↑"),
        ("ctrl++", "ctrl+plus", "Ctrl++"),
    ],
)
def test_keys_are_parsed_and_printed_in_the_usual_notation(text: str, key: str, shown: str) -> None:
    assert read_key(text) == key
    assert written(key) == shown
    assert read_key(shown) == key


@each_row("text", ["", "foo", "ctrl+", "hyper+x", "kk", "\x1b", "ctrl+foo"])
def test_invalid_keys_are_rejected(text: str) -> None:
    assert read_key(text) is None


def test_every_key_of_every_table_survives_printing_and_parsing() -> None:
    for command in (command for table in (COMMANDS, *OTHER_SCREENS) for command in table):
        for key in command.key.split(","):
            assert read_key(written(key)) == key, command.id


@pytest.mark.parametrize("name", KEY_SETS)
def test_a_set_of_keys_is_free_of_conflicts_and_leaves_every_command_a_key(name: str) -> None:
    found = keymap(name)
    assert found.problems == ()
    for table in (COMMANDS, *OTHER_SCREENS):
        keys = [key for command in found.commands(table) for key in command.key.split(",")]
        assert "" not in keys
        assert len(set(keys)) == len(keys)
    assert set(SETS[name]) <= set(BY_ID)


def test_the_configuration_accepts_the_existing_key_sets() -> None:
    for name in KEY_SETS:
        assert CockpitSettings.model_validate({"keymap": name}).keymap == name


def test_a_command_has_the_keys_that_the_user_gives_it() -> None:
    found = keymap("default", {"approve": "F9", "cockpit.follow": ("F5", "Ctrl+L")})
    assert found.problems == ()
    assert found.command(BY_ID["approve"]).key_name == "F9"
    assert found.command(BY_ID["follow"]).key_name == "F5 Ctrl+L"
    assert found.command(BY_ID["deny"]) is BY_ID["deny"]


def problem(remaps: dict[str, str | tuple[str, ...]], name: str = "default") -> str:
    (found,) = keymap(name, remaps).problems
    assert "\n" not in found and found.endswith((".", "?"))
    return found


def test_an_unknown_command_is_reported_with_a_suggestion() -> None:
    assert problem({"aprove": "F9"}) == "There is no command 'aprove' to give a key to; did you mean 'approve'?"
    assert "docs/keys.md" in problem({"\x1bzzzz": "F9"})


def test_an_unknown_key_is_reported_and_the_command_keeps_its_key() -> None:
    assert "no key 'foo'" in problem({"approve": "foo"})
    assert keymap("default", {"approve": "foo"}).command(BY_ID["approve"]).key == "a"


@each_row("key", sorted(RESERVED))
def test_reserved_keys_cannot_be_assigned(key: str) -> None:
    assert "cannot have it" in problem({"approve": key})


def test_a_command_that_loses_its_only_key_is_reported() -> None:
    found = keymap("default", {"approve": "d"})
    assert found.problems == ("'approve' took the key d of 'deny', which has none now.",)
    assert found.command(BY_ID["deny"]).key == ""
    assert keymap("default", {"approve": "d", "deny": "F9"}).problems == ()


def test_two_commands_cannot_have_the_same_key() -> None:
    found = keymap("default", {"approve": "F9", "edit": "F9"})
    assert found.problems == ("The key F9 is given to 'approve' and 'edit'; 'approve' has it.",)
    assert (found.command(BY_ID["approve"]).key, found.command(BY_ID["edit"]).key) == ("f9", "e")


def test_a_key_of_the_set_gives_way_to_the_user() -> None:
    found = keymap("vi", {"follow": "Ctrl+Y"})
    assert found.problems == ()
    assert found.command(BY_ID["scroll-up"]).key == "shift+up"


@pytest.mark.slow
async def test_j_and_k_move_and_end_nothing() -> None:
    async with open_cockpit(workday()) as cockpit:
        assert cockpit.selected == "7"
        await cockpit.press("j", "j")
        assert cockpit.selected == "9"
        await cockpit.press("k")
        assert cockpit.selected == "8"
        await cockpit.press("up")
        assert cockpit.selected == "7"
        await cockpit.select("6")
        await cockpit.press("k")
        assert len(cockpit.app.screen_stack) == 1


async def test_j_and_k_scroll_the_pane_that_has_the_focus() -> None:
    async with open_cockpit(workday(), size=(80, 20)) as cockpit:
        await cockpit.select("3")
        await cockpit.press("tab", "j", "j")
        text = cockpit.screen.query_one("#call-detail")
        await cockpit.until(lambda: text.scroll_offset.y == 2)
        await cockpit.press("k")
        await cockpit.until(lambda: text.scroll_offset.y == 1)
        assert cockpit.selected == "3"


@pytest.mark.slow
async def test_a_key_of_the_users_own_works_and_the_old_one_does_nothing() -> None:
    async with open_cockpit(workday(), keys=keymap("default", {"deny": "F9"})) as cockpit:
        await cockpit.select("8")
        await cockpit.press("d")
        await cockpit.pilot.pause()
        assert len(cockpit.app.screen_stack) == 1
        await cockpit.press("f9")
        await cockpit.sees("Deny call 8")


@pytest.mark.slow
async def test_a_command_without_a_key_is_in_the_palette_and_on_its_button() -> None:
    async with open_cockpit(workday(), keys=keymap("default", {"follow": "e"})) as cockpit:
        await cockpit.select("8")
        await cockpit.press("e")
        assert len(cockpit.app.screen_stack) == 1
        await cockpit.press("ctrl+p", *"edit")
        await cockpit.sees("Change the command, directory")
        await cockpit.press("enter")
        await cockpit.sees("Shell text")


@pytest.mark.slow
async def test_the_footer_the_buttons_the_help_and_the_palette_show_the_keys_in_force() -> None:
    keys = keymap("default", {"approve": "F9", "help": "F1", "next-waiting": "Ctrl+N"})
    async with open_cockpit(workday(), size=(120, 90), keys=keys) as cockpit:
        await cockpit.sees("F9 Approve")
        lines = cockpit.text().splitlines()
        assert not any("a Approve" in line for line in lines)
        assert "Space Mark  Ctrl+N Next waiting  / Filter  H History  F1 Help" in lines[-1]
        await cockpit.press("f1")
        await cockpit.sees("Keys and signs")
        await cockpit.until(lambda: re.search(r" F9 +Approve +Run the command as shown,", cockpit.text()))
        await cockpit.press("escape")
        await cockpit.press("ctrl+p")
        await cockpit.sees("Approve  (F9)")


async def test_problems_with_keys_are_reported_when_the_cockpit_opens() -> None:
    async with open_cockpit(Scenario.begin(), keys=keymap("default", {"aprove": "F9"})) as cockpit:
        await cockpit.sees("There is no command 'aprove'")


def test_a_key_of_a_command_that_is_gone_does_nothing_and_says_what_does_it_now() -> None:
    for retired in RETIRED:
        found = keymap("default", {retired: "F9", "deny": "F8"})
        (problem,) = found.problems
        assert f"{retired!r} is gone, and its key does nothing: '" in problem
        assert "f9" not in {key for command in COMMANDS for key in found.command(command).key.split(",")}
        assert found.command(BY_ID["deny"]).key == "f8"
    assert not RETIRED.keys() & BY_ID.keys()
