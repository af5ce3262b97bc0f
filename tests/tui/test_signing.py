"""Decisions that the cockpit has signed by an ssh key."""

from pathlib import Path

import pytest

from tests.supervisor.evidence.desk_keys import needs_keygen, new_key
from tests.tui.live import Live, live
from whisper_tui.cli.decision_signer import DecisionSigner
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.desk_proof import DeskProof
from whisper_tui.model.event import Decided
from whisper_tui.supervisor.approvals.ssh_signatures import verified

pytestmark = needs_keygen


async def asked(cockpit: Live, key: Path, text: str = "echo hello") -> str:
    """A call that waits in a cockpit that signs by this key."""
    cockpit.supervisor.desk_key = str(key)
    cockpit.screen._signer = DecisionSigner(str(key)).sign
    spec = CommandSpec(command=Shell(text=f"{text} > written"), cwd=str(cockpit.workspace))
    request = CallRequest(session_id=cockpit.session_id, tool="run_shell_command", arguments={}, spec=spec)
    call_id = await cockpit.supervisor.submit(request)
    await cockpit.until(lambda: cockpit.screen.shown is not None and cockpit.screen.shown.id == call_id)
    await cockpit.sees(text)
    return call_id


def proof_of(cockpit: Live, call_id: str) -> object:
    events = cockpit.supervisor._store.journal.events_of_call(call_id)
    return next(event.proof for event in events if isinstance(event, Decided))


async def test_an_approval_and_a_denial_are_signed(tmp_path: Path) -> None:
    key = new_key(tmp_path)
    async with live(tmp_path) as cockpit:
        approved = await asked(cockpit, key)
        await cockpit.press("a")
        await cockpit.until(lambda: cockpit.board(approved).decision is not None)
        denied = await asked(cockpit, key, "echo again")
        await cockpit.press("d")
        await cockpit.sees("What should it do instead?")
        await cockpit.press("n")
        await cockpit.press("o")
        await cockpit.press("enter")
        await cockpit.until(lambda: cockpit.board(denied).decision is not None)
        for call_id in (approved, denied):
            proof = proof_of(cockpit, call_id)
            assert isinstance(proof, DeskProof) and '"surface":"cockpit"' in proof.statement
            assert verified(proof).public_key in key.with_suffix(".pub").read_text()


async def test_nothing_is_decided_while_the_key_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = new_key(tmp_path)
    async with live(tmp_path) as cockpit:
        call_id = await asked(cockpit, key)
        away = key.rename(tmp_path / "away")
        key.with_suffix(".pub").rename(tmp_path / "away.pub")
        await cockpit.press("a")
        await cockpit.sees("Nothing was decided", "ssh-add")
        assert cockpit.board(call_id).state.kind == "waiting"
        away.rename(key)
        (tmp_path / "away.pub").rename(key.with_suffix(".pub"))
        await cockpit.press("a")
        await cockpit.until(lambda: cockpit.board(call_id).decision is not None)
