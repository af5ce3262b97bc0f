"""Decisions at the desk, signed by real ssh keys: verified before they count, and again from the file alone."""

import base64
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.evidence.conftest import EvidenceBench, decision_of, with_body
from tests.supervisor.evidence.desk_keys import fido_signature, needs_keygen, new_key
from tests.supervisor.evidence.test_forged_files import chained_anew, is_found, place_of
from whisper_tui.cli import decision_signer
from whisper_tui.cli.decision_signer import DecisionSigner
from whisper_tui.model.decision import Approve, Decider, Decision, Deny, ExactScope
from whisper_tui.model.desk_proof import DeskProof, read_signature
from whisper_tui.model.errors import AlreadyDecided, ChangedSinceSeen, NotAllowed, Refused, Unavailable, WhisperError
from whisper_tui.model.run import Sandbox
from whisper_tui.model.secrets import masked
from whisper_tui.present.evidence_text import evidence_lines, not_proven, proven
from whisper_tui.supervisor.approvals.ssh_signatures import fingerprint_of
from whisper_tui.supervisor.evidence.evidence_check import check_evidence

pytestmark = needs_keygen

ADA = Decider(surface="cockpit", who="ada")
APPROVE, DENY = Approve(), Deny(reason="not now")


class Desk:
    """A desk that signs by a key of its own."""

    def __init__(self, bench: EvidenceBench, directory: Path) -> None:
        self.bench = bench
        self.key = new_key(directory)
        self.signer = DecisionSigner(str(self.key), lambda: bench.now)
        self.told: list[str] = []
        bench.supervisor.desk_key = str(self.key)

    async def sign(self, call_id: str, decision: Decision = APPROVE, by: Decider = ADA) -> DeskProof:
        return await self.signer.sign(await self.bench.record(call_id), decision, by, self.told.append)

    async def send(self, call_id: str, decision: Decision, proof: DeskProof | None, by: Decider = ADA) -> None:
        seen = (await self.bench.record(call_id)).seen_digest()
        await self.bench.supervisor.decide(call_id, decision, by, seen, *(() if proof is None else (proof,)))

    async def decide(self, call_id: str, decision: Decision = APPROVE) -> None:
        await self.send(call_id, decision, await self.sign(call_id, decision))

    async def still_waits(self, call_id: str) -> bool:
        return (await self.bench.record(call_id)).state.kind == "waiting"


@pytest.fixture
def desk(bench: EvidenceBench, tmp_path: Path) -> Desk:
    return Desk(bench, tmp_path)


@pytest.mark.parametrize(
    "decision",
    [
        Approve(),
        Deny(reason="not now"),
        Deny(reason="", stop_session=True),
        Approve(remember=ExactScope(uses=2)),
        Approve(remember="exact_for_session"),
        Approve(undoable=False),
    ],
    ids=lambda each: each.model_dump_json(exclude_defaults=True),
)
async def test_a_signed_decision_is_kept_and_verified_from_the_file_alone(desk: Desk, decision: Decision) -> None:
    call_id = await desk.bench.asked()
    await desk.decide(call_id, decision)
    report = desk.bench.report(call_id)
    found = decision_of(report, call_id).signature
    assert report.problems == () and found.signed == "verified" and not found.touched
    assert found.key == fingerprint_of(str(desk.key))
    assert desk.key.with_suffix(".pub").read_text().startswith(found.public_key)
    assert any(f"Somebody with the ssh key {found.key} has signed 1 decision" in each for each in proven(report))
    said = " ".join(not_proven(report))
    assert "any program that may use that key" in said and "no signature" not in said
    assert found.key in "\n".join(evidence_lines(report))


async def test_an_edit_is_part_of_what_is_signed(desk: Desk) -> None:
    call_id = await desk.bench.asked("make", "test")
    spec = (await desk.bench.record(call_id)).spec
    edited = spec.model_copy(update={"cwd": str(Path(spec.cwd).parent), "place": "here"})
    await desk.decide(call_id, Approve(edited=edited))
    assert decision_of(desk.bench.report(call_id), call_id).signature.signed == "verified"
    other = await desk.bench.asked("make", "more")
    proof = await desk.sign(other)
    with pytest.raises(NotAllowed, match="another decision was signed"):
        await desk.send(other, Approve(edited=edited), proof)


async def test_an_edit_that_changes_nothing_is_kept_as_none(desk: Desk) -> None:
    call_id = await desk.bench.asked()
    await desk.decide(call_id, Approve(edited=(await desk.bench.record(call_id)).spec))
    assert desk.bench.decided(call_id).decision == Approve()
    assert decision_of(desk.bench.report(call_id), call_id).signature.signed == "verified"


async def test_an_unsigned_decision_is_refused_where_decisions_are_signed(desk: Desk) -> None:
    call_id = await desk.bench.asked()
    with pytest.raises(NotAllowed, match=r"\[evidence\] sign"):
        await desk.send(call_id, APPROVE, None)
    assert await desk.still_waits(call_id)


async def test_nothing_is_added_where_decisions_are_not_signed(bench: EvidenceBench) -> None:
    call_id = await bench.asked()
    await bench.approve(call_id)
    assert "proof" not in bench.decided(call_id).model_dump_json()
    report = bench.report(call_id)
    assert report.problems == () and decision_of(report, call_id).signature.signed == ""
    assert any("no signature of it is in this file" in each for each in not_proven(report))


async def test_automatic_decisions_are_never_signed_and_it_is_said(desk: Desk) -> None:
    first = await desk.bench.asked("make", "same")
    await desk.decide(first, Approve(remember="exact_for_session"))
    session = (await desk.bench.record(first)).call.session_id
    second = await desk.bench.submit(session, "make", "same")
    assert desk.bench.decided(second).by.surface == "memory" and desk.bench.decided(second).proof is None
    report = desk.bench.report(first, second)
    assert report.problems == () and any("those are never signed" in each for each in not_proven(report))


async def test_a_signature_by_a_foreign_key_is_refused(desk: Desk, tmp_path: Path) -> None:
    call_id = await desk.bench.asked()
    other = DecisionSigner(str(new_key(tmp_path, "other")), lambda: desk.bench.now)
    proof = await other.sign(await desk.bench.record(call_id), APPROVE, ADA, print)
    with pytest.raises(NotAllowed, match="names another one"):
        await desk.send(call_id, APPROVE, proof)
    assert await desk.still_waits(call_id)


async def test_a_signature_for_something_else_is_refused(desk: Desk) -> None:
    call_id, other = await desk.bench.asked("make", "one"), await desk.bench.asked("make", "two")
    proof = await desk.sign(call_id)
    for refused in (
        desk.send(other, APPROVE, proof),
        desk.send(call_id, DENY, proof),
        desk.send(call_id, Approve(sandbox=Sandbox()), proof),
        desk.send(call_id, APPROVE, proof, by=Decider(surface="cockpit", who="eve")),
    ):
        with pytest.raises((NotAllowed, ChangedSinceSeen)):
            await refused
    desk.bench.now += 121
    with pytest.raises(NotAllowed, match="121 seconds before"):
        await desk.send(call_id, APPROVE, proof)
    assert await desk.still_waits(call_id) and await desk.still_waits(other)


async def test_a_signature_is_of_this_wait_and_not_of_one_before(desk: Desk) -> None:
    desk.bench.now += 60
    call_id = await desk.bench.asked()
    desk.bench.now -= 30
    proof = await desk.sign(call_id)
    desk.bench.now += 30
    with pytest.raises(NotAllowed, match="before the call waited"):
        await desk.send(call_id, APPROVE, proof)


async def test_a_decision_is_not_taken_twice(desk: Desk) -> None:
    call_id = await desk.bench.asked()
    proof = await desk.sign(call_id)
    await desk.send(call_id, APPROVE, proof)
    with pytest.raises(AlreadyDecided):
        await desk.send(call_id, APPROVE, proof)


async def test_no_mutation_of_a_proof_is_accepted(desk: Desk) -> None:
    call_id = await desk.bench.asked()
    proof = await desk.sign(call_id)
    chosen = random.Random(49)
    accepted = []
    for _ in range(240):
        name = chosen.choice(("document", "statement", "signature", "bytes"))
        field = "signature" if name == "bytes" else name
        given = getattr(proof, field)
        data = bytearray(base64.b64decode(given) if name == "bytes" else given.encode())
        place = chosen.randrange(len(data))
        match chosen.randrange(3):
            case 0:
                data[place] ^= 1 << chosen.randrange(7)
            case 1:
                del data[place]
            case _:
                data.insert(place, chosen.randrange(32, 127))
        changed = base64.b64encode(data).decode() if name == "bytes" else data.decode("utf-8", "replace")
        if changed == given:
            continue
        try:
            await desk.send(call_id, APPROVE, proof.model_copy(update={field: changed}))
        except WhisperError:
            continue
        accepted.append((name, place))
    assert accepted == [] and await desk.still_waits(call_id)
    await desk.send(call_id, APPROVE, proof)


async def test_a_flipped_bit_in_the_file_is_found(desk: Desk) -> None:
    call_id = await desk.bench.asked()
    await desk.decide(call_id)
    assert desk.bench.report(call_id).problems == ()
    data = desk.bench.file.read_bytes()
    chosen = random.Random(50)
    begin = data.index(b"signature")
    for place in (*chosen.sample(range(len(data)), 120), *range(begin, begin + 60)):
        changed = bytearray(data)
        changed[place] ^= 1 << chosen.randrange(8)
        assert is_found(desk.bench, bytes(changed)), place


def _of_another(decided: dict[str, Any]) -> None:
    decided["decision"]["undoable"] = True


def _by_another(decided: dict[str, Any]) -> None:
    decided["by"]["who"] = "eve"


def _later(decided: dict[str, Any]) -> None:
    decided["at"] += 500.0


def _of_a_phone(decided: dict[str, Any]) -> None:
    decided["by"]["surface"] = "rule"


def _another_statement(decided: dict[str, Any]) -> None:
    statement = json.loads(decided["proof"]["statement"])
    statement["at"] += 1.0
    decided["proof"]["statement"] = json.dumps(statement, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize("change", [_of_another, _by_another, _later, _of_a_phone, _another_statement])
async def test_who_makes_the_whole_chain_again_cannot_make_the_signature(desk: Desk, change: Any) -> None:
    call_id = await desk.bench.asked()
    await desk.decide(call_id)
    desk.bench.write(call_id)
    lines = desk.bench.lines()
    at = place_of(lines, "decided")
    lines[at] = with_body(lines[at], change)
    problems = desk.bench.rewritten(chained_anew(lines)).problems
    assert any("the signature of" in each and "is not valid" in each for each in problems), problems


async def test_a_decision_about_a_secret_is_shown_without_its_signature(desk: Desk) -> None:
    secret = "deploy --password=Xk29dkWq81LmZ0"
    assert masked(secret) != secret
    call_id = await desk.bench.asked(text=secret)
    await desk.decide(call_id)
    report = desk.bench.report(call_id)
    assert report.problems == () and "Xk29dkWq81LmZ0" not in desk.bench.file.read_text()
    assert decision_of(report, call_id).signature.signed == ""


async def test_nothing_is_decided_without_the_key(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    record = await desk.bench.record(await desk.bench.asked())
    locked = new_key(tmp_path, "locked", passphrase="open sesame")
    public_alone = new_key(tmp_path, "alone")
    public_alone.unlink()
    for path in (tmp_path / "none", locked, public_alone.with_suffix(".pub")):
        with pytest.raises(Refused, match="nothing was decided") as refused:
            await DecisionSigner(str(path)).sign(record, APPROVE, ADA, print)
        assert "ssh-add" in refused.value.hint and str(path) in refused.value.hint
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="no program ssh-keygen"):
        await desk.signer.sign(record, APPROVE, ADA, print)


async def test_a_key_in_the_agent_signs_by_its_public_half(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = tmp_path / "agent"
    if len(os.fsencode(socket)) > 100:
        pytest.skip("the temporary directory is too deep for a socket")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        while not socket.exists():
            assert agent.poll() is None
        subprocess.run(["ssh-add", "-q", str(desk.key)], check=True, stderr=subprocess.DEVNULL)
        desk.key.unlink()
        public = desk.key.with_suffix(".pub")
        desk.signer = DecisionSigner(str(public), lambda: desk.bench.now)
        desk.bench.supervisor.desk_key = str(public)
        call_id = await desk.bench.asked()
        await desk.decide(call_id)
        assert decision_of(desk.bench.report(call_id), call_id).signature.signed == "verified"
    finally:
        agent.kill()
        agent.wait()


async def test_a_key_that_waits_for_a_touch_is_told_of_and_ends(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "ssh-keygen"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexec sleep 600\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(decision_signer, "NOTICE_S", 0.0)
    record = await desk.bench.record(await desk.bench.asked())
    with pytest.raises(Refused, match=r"has not signed within 0\.2 seconds"):
        await DecisionSigner(str(desk.key), limit_s=0.2).sign(record, APPROVE, ADA, desk.told.append)
    assert desk.told == [decision_signer.WAITING]


def test_a_fido_key_says_whether_somebody_touched_it() -> None:
    for flags, touched in ((0x01, True), (0x05, True), (0x00, False)):
        read = read_signature(base64.b64encode(fido_signature(flags)).decode())
        assert read.touched is touched and read.public_key.startswith("sk-ssh-ed25519@openssh.com ")


async def test_a_file_is_not_called_verified_where_nothing_can_verify_it(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_id = await desk.bench.asked()
    await desk.decide(call_id)
    desk.bench.write(call_id)
    monkeypatch.setenv("PATH", str(tmp_path))
    report = check_evidence(desk.bench.file)
    assert report.problems == () and decision_of(report, call_id).signature.signed == "unchecked"
    assert any("ssh-keygen" in each for each in not_proven(report))
