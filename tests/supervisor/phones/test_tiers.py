"""A phone may only deny, or set aside, what is severe, not seen whole, or grants power."""

import pytest

from tests.supervisor.phones.authenticator import Authenticator
from tests.supervisor.phones.conftest import PhoneBench
from whisper_tui.model.errors import NotAllowed
from whisper_tui.model.phone import LONGEST_COMMAND
from whisper_tui.supervisor.settings import PhoneSettings

SEVERE = "rm -rf ~/*"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SEVERE, "Its risk is severe"),
        ("echo a\u202eb > c", "characters that cannot be seen"),
        ("echo x > c; # " + "y" * LONGEST_COMMAND, "too long to be seen whole"),
        ("echo x >> .git/hooks/pre-commit", "Its risk is severe|decide what runs later"),
        ("echo x >> Makefile", "decide what runs later"),
        ("cp notes CLAUDE.md", "decide what runs later"),
        ("echo x > link", "decide what runs later"),
        ("touch f{1..600}; mkdir -p .github/workflows; echo x > .github/workflows/x.yml", "more files than are listed"),
        ("mkdir -p .github/workflows; echo x > .github/workflows/x.yml", "decide what runs later"),
    ],
)
async def test_it_is_decided_at_the_desk(bench: PhoneBench, key: Authenticator, text: str, why: str) -> None:
    (bench.workspace / "notes").write_text("a\n")
    (bench.workspace / "Makefile").write_text("a:\n")
    (bench.workspace / "link").symlink_to("Makefile")
    token, call_id = await bench.pair(key), await bench.asked(text=text)
    card = await bench.card(token, call_id)
    assert card.may == ("deny", "set_aside")
    with pytest.raises(NotAllowed, match=why):
        await bench.phones.phone_begin(token, call_id, "approve", card.seen)
    await bench.phones.phone_refuse(token, call_id, "deny", card.seen, "no")
    assert bench.decided(call_id).by.surface == "phone"


async def test_a_card_says_which_files_decide_what_runs_later(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked(text="echo x > Makefile; echo x > notes")
    effects = {effect.path.rpartition("/")[2]: effect for effect in (await bench.card(token, call_id)).effects}
    assert effects["Makefile"].runs_later == "a build file" and effects["notes"].runs_later == ""


async def test_the_user_may_let_phones_approve_severe_calls(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked(text=SEVERE)
    bench.settings = PhoneSettings(may_approve_severe=True)
    await bench.restart()
    assert (await bench.card(token, call_id)).severe
    await bench.say_yes(token, key, call_id)
    await bench.ordered(call_id)


async def test_what_cannot_be_seen_is_never_approved_by_a_phone(bench: PhoneBench, key: Authenticator) -> None:
    bench.settings = PhoneSettings(may_approve_severe=True)
    await bench.restart()
    token, call_id = await bench.pair(key), await bench.asked(text="echo a\u202eb > c")
    card = await bench.card(token, call_id)
    assert card.may == ("deny", "set_aside") and "\u202e" not in card.command


async def test_a_card_says_what_is_unusual(bench: PhoneBench, key: Authenticator) -> None:
    token, call_id = await bench.pair(key), await bench.asked(text="rm -r old; curl https://example.com/x -o y")
    card = await bench.card(token, call_id)
    assert card.hosts == ("example.com",)
    assert any(effect.path.endswith("/y") for effect in card.effects)
    assert card.directory == str(bench.workspace) and card.session == "agent" and card.description == "a test"
