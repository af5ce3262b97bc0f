"""From a phone, exactly the changes that a real preview has shown become real, and no others."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.outside import needs_overlays
from tests.supervisor.conftest import HUMAN
from tests.supervisor.phones.authenticator import Authenticator
from tests.supervisor.phones.conftest import PhoneBench
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.errors import ChangedSinceSeen, NotAllowed
from whisper_tui.model.phone import MOST_LINES, PhoneCall
from whisper_tui.model.state import Waiting
from whisper_tui.policy.rules.rule import NO_RULES, Rules
from whisper_tui.present import phone_text
from whisper_tui.supervisor.evidence.bundle_writer import EvidenceWriter, write_file
from whisper_tui.supervisor.evidence.evidence_check import check_evidence
from whisper_tui.supervisor.runs.local_executor import LocalExecutor
from whisper_tui.supervisor.settings import SupervisorSettings
from whisper_tui.supervisor.supervisor import Supervisor

pytestmark = needs_overlays


class LivePhones(PhoneBench):
    """A supervisor with real keepers, and a clock that goes by itself."""

    async def open(self, rules: Rules = NO_RULES, workers: int = 4) -> None:
        executor = LocalExecutor(Path(self.home.state) / "runs")
        self.supervisor = Supervisor(
            self.home, executor, rules=rules, settings=SupervisorSettings(workers=workers), clock=lambda: self.now
        )
        self.supervisor.take_phones(lambda: phone_text, self.settings, self.undo_s)
        await self.supervisor.open()

    async def previewed(self, text: str, edited: CommandSpec | None = None) -> str:
        call_id = await self.asked(text=text)
        await self.preview(call_id, edited)
        return call_id

    async def preview(self, call_id: str, edited: CommandSpec | None = None) -> None:
        attempt = await self.supervisor.preview(call_id, HUMAN, edited)
        await self.eventually(
            call_id,
            lambda record: (
                record.preview is not None and record.preview.attempt == attempt and record.preview.report is not None
            ),
        )


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LivePhones]:
    made = LivePhones(tmp_path)
    (made.workspace / "old.txt").write_text("one\nlast\n")
    (made.workspace / "kept.txt").write_text("kept\n")
    await made.open()
    yield made
    await made.supervisor.close()


def lines(card: PhoneCall, kind: str) -> list[str]:
    return [line.text for line in card.preview.diff if line.kind == kind]


async def test_the_changes_that_are_shown_are_made(live: LivePhones, key: Authenticator) -> None:
    token = await live.pair(key)
    call_id = await live.previewed("cat /proc/sys/kernel/random/uuid > uuid; echo two >> old.txt; rm kept.txt")
    card = await live.card(token, call_id)
    assert card.may == ("deny", "set_aside", "approve", "apply")
    assert {(Path(each.path).name, each.mark) for each in card.effects} == {
        ("uuid", "new"),
        ("old.txt", "changed"),
        ("kept.txt", "deleted"),
    }
    assert "two" in lines(card, "added") and "kept" in lines(card, "removed")
    await live.say_yes(token, key, call_id, "apply")
    await live.eventually(call_id, lambda record: not record.is_open)
    # What a second run would have written is another one.
    assert (live.workspace / "uuid").read_text().strip() in lines(card, "added")
    assert not (live.workspace / "kept.txt").exists()
    proof = live.decided(call_id).proof
    record = await live.record(call_id)
    assert record.preview is not None and record.preview.report is not None and record.applies
    assert proof is not None and record.preview.report.digest in proof.document and proof.decision == "apply"
    file = live.workspace / "evidence.json"
    write_file(EvidenceWriter(Path(live.home.state), lambda: live.now), file, [call_id], None, contents=True)
    report = check_evidence(file)
    (decision,) = report.calls[0].decisions
    assert report.problems == () and decision.applies == record.preview.report.digest
    assert decision.signature.signed == "verified" and decision.signature.same_record


async def test_another_preview_than_the_shown_one_is_not_applied(live: LivePhones, key: Authenticator) -> None:
    token, call_id = await live.pair(key), await live.previewed("date +%N > now")
    seen = (await live.card(token, call_id)).seen
    challenge = await live.phones.phone_begin(token, call_id, "apply", seen)
    await live.supervisor.drop_preview(call_id, HUMAN)
    await live.preview(call_id)
    with pytest.raises(ChangedSinceSeen):
        await live.phones.phone_decide(token, challenge.nonce, key.assertion(challenge.options))
    assert isinstance((await live.record(call_id)).state, Waiting) and not (live.workspace / "now").exists()


async def test_a_file_that_has_changed_since_the_preview_stops_it(live: LivePhones, key: Authenticator) -> None:
    token, call_id = await live.pair(key), await live.previewed("echo two >> old.txt")
    (live.workspace / "old.txt").write_text("somebody else\n")
    await live.say_yes(token, key, call_id, "apply")
    record = await live.eventually(
        call_id, lambda record: isinstance(record.state, Waiting) and bool(record.state.returned_because)
    )
    assert isinstance(record.state, Waiting) and "old.txt" in (record.state.returned_because or "")
    assert (live.workspace / "old.txt").read_text() == "somebody else\n"


@pytest.mark.parametrize(
    "text",
    [
        f"seq {MOST_LINES + 10} > many",
        "ln -s /etc/passwd link",
        "head -c 1000 /dev/urandom > noise",
        r"printf 'a\342\200\256b\n' > hidden",
    ],
    ids=["many lines", "a link", "no text", "hidden characters"],
)
async def test_what_is_not_all_shown_is_not_applied(live: LivePhones, key: Authenticator, text: str) -> None:
    token, call_id = await live.pair(key), await live.previewed(text)
    card = await live.card(token, call_id)
    assert not card.preview.whole and "apply" not in card.may and "applied at the desk" in card.preview.about
    assert len(card.preview.diff) <= MOST_LINES
    with pytest.raises(NotAllowed):
        await live.phones.phone_begin(token, call_id, "apply", card.seen)


async def test_a_command_that_the_desk_has_edited_is_not_applied(live: LivePhones, key: Authenticator) -> None:
    edited = CommandSpec(command=Shell(text="echo other > other"), cwd=str(live.workspace))
    token, call_id = await live.pair(key), await live.previewed("echo x > x", edited)
    card = await live.card(token, call_id)
    assert card.preview.state == "problem" and "apply" not in card.may
    assert "echo other > other" in card.preview.about


async def test_a_preview_that_made_a_file_executable_is_left_to_the_desk(live: LivePhones, key: Authenticator) -> None:
    token, call_id = await live.pair(key), await live.previewed("echo true > run.sh; chmod +x run.sh")
    card = await live.card(token, call_id)
    assert any(each.runs_later for each in card.effects)
    assert card.may == ("deny", "set_aside") and "decide what runs later" in card.why_not
