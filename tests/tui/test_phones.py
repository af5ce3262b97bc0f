"""A phone's yes at the desk: announced, withdrawn by the key of undo, and with the words that the phone shows."""

import json

import pytest

from tests.model.build import a_board
from tests.tui.cockpit import open_cockpit
from tests.tui.scenes import workday
from whisper_tui.model.api import Presence
from whisper_tui.model.decision import Decider
from whisper_tui.model.event import PhoneChanged, PhoneYes
from whisper_tui.model.four_words import four_words
from whisper_tui.model.phone_proof import digest_of, seen_document
from whisper_tui.notify.notifier import BackgroundNotifier
from whisper_tui.notify.notify_settings import NotifySettings
from whisper_tui.present.phone_notices import phone_sentence
from whisper_tui.supervisor.sessions import CockpitPresences

FIRST, SECOND = "7", "8"
PHONE = Decider(surface="phone", who="pixel")
DESK = Decider(surface="command line", who="ada")


def paired(at: float, **changes: object) -> PhoneChanged:
    event = PhoneChanged(
        at=at,
        device_id="p1",
        name="pixel",
        change="paired",
        synced=False,
        origin="https://box.example.ts.net",
        public_key="pQECAyYg",
        may_approve_from=at + 600,
        by=DESK,
    )
    return event.model_copy(update=changes)


async def test_a_yes_is_announced_and_the_key_of_undo_withdraws_it() -> None:
    async with open_cockpit(workday()) as cockpit:
        now = cockpit.screen.clock()
        await cockpit.select(SECOND)
        cockpit.scenario.supervisor.happen(PhoneYes(at=now, call_id=FIRST, until=now + 3, by=PHONE))
        await cockpit.sees(f"pixel approves call {FIRST} by phone, in 3 s. u withdraws that.")
        await cockpit.press("u")
        await cockpit.until(lambda: cockpit.record(FIRST).pending_yes is None)
        await cockpit.sees(f"The yes of the phone to call {FIRST} is withdrawn: it still waits for you.")
        await cockpit.until(lambda: cockpit.selected == FIRST)


async def test_the_call_itself_says_that_a_phone_has_said_yes() -> None:
    async with open_cockpit(workday()) as cockpit:
        now = cockpit.screen.clock()
        await cockpit.select(FIRST)
        cockpit.scenario.supervisor.happen(PhoneYes(at=now, call_id=FIRST, until=now + 3, by=PHONE))
        await cockpit.sees("pixel says yes by phone")


async def test_the_words_of_the_phone_are_on_the_card_once_a_phone_is_paired() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.select(FIRST)
        words = " ".join(four_words(digest_of(seen_document(cockpit.record(FIRST)))))
        assert "On a phone" not in cockpit.text()
        cockpit.scenario.supervisor.happen(paired(cockpit.screen.clock()))
        await cockpit.sees("The phone pixel was paired by ada in the command line")
        await cockpit.select(SECOND)
        await cockpit.select(FIRST)
        await cockpit.sees("On a phone", words)
        cockpit.scenario.supervisor.happen(paired(cockpit.screen.clock(), change="revoked"))
        await cockpit.sees("The phone pixel was revoked by ada in the command line.")


async def test_a_phone_that_signs_in_again_is_announced() -> None:
    async with open_cockpit(workday()) as cockpit:
        now = cockpit.screen.clock()
        cockpit.scenario.supervisor.happen(paired(now), paired(now, signed_in=True, by=PHONE))
        await cockpit.sees("The phone pixel signed in again with its passkey.")


def test_a_phone_that_was_doubted_says_what_to_do() -> None:
    assert "whisper-tui phone confirm pixel" in phone_sentence(paired(0.0, change="doubted"))


def test_a_new_phone_is_notified_of_wherever_somebody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, dict[str, object]]] = []
    people = CockpitPresences()
    people.report(Presence(cockpit="c1", present=True))
    notifier = BackgroundNotifier(NotifySettings(when="away", title=False), a_board(), people, lambda _: None)
    monkeypatch.setattr(notifier, "_notify", lambda words, content: told.append((words, json.loads(content))))
    notifier.on_event(paired(0.0))
    notifier.look()
    notifier.look()
    assert [(words.startswith("The phone pixel was paired"), content["event"]) for words, content in told] == [
        (True, "phone")
    ]


def test_a_phone_that_signs_in_all_night_is_one_notification_besides_its_pairing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    people = CockpitPresences()
    people.report(Presence(cockpit="c1", present=True, muted=True))
    notifier = BackgroundNotifier(NotifySettings(when="away", title=False), a_board(), people, lambda _: None)
    monkeypatch.setattr(notifier, "_notify", lambda words, content: told.append(words))
    notifier.on_event(paired(0.0))
    for at in range(1_000):
        notifier.on_event(paired(float(at), signed_in=True))
        notifier.look()
    assert told == []
    people.report(Presence(cockpit="c1", present=True))
    notifier.look()
    notifier.look()
    assert [words.partition(":")[0].partition(".")[0] for words in told] == [
        "The phone pixel was paired by ada in the command line",
        "The phone pixel signed in again with its passkey",
    ]
