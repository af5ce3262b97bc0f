"""Every surface on which a call can be approved names the same findings about it."""

from tests.tui.scenes import Scenario
from whisper_tui.cli.watch_text import asks
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.phone import PhoneCall
from whisper_tui.model.phone_facts import ShownFacts
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.verdict import Risk, Verdict
from whisper_tui.policy.risks.call_risks import PAST_HOOK
from whisper_tui.present import phone_text
from whisper_tui.present.security_text import risk_line
from whisper_tui.tui.dialogs.decision_dialogs import batch_paragraphs

NETWORK = Risk(id="network", sentence="Uses the network (`curl`)")


def past_hook() -> tuple[Scenario, CallRecord]:
    scenario = Scenario.begin()
    spec = CommandSpec(command=Shell(text="curl http://a"), cwd="/")
    request = CallRequest(session_id="s1", tool="Bash", arguments={}, spec=spec)
    scenario.supervisor.ask(
        request, Verdict(kind="ask", reason="no rule matches this command", risks=(PAST_HOOK, NETWORK))
    )
    return scenario, scenario.supervisor.board.calls["1"]


def on_the_phone(record: CallRecord) -> PhoneCall:
    return phone_text.card(record, None, ShownFacts(), seen="0" * 64, revision=1)


def in_the_batch(record: CallRecord) -> str:
    rows = batch_paragraphs((record,), {record.id: "s"})
    return "\n".join("".join(span.text for span in (*row.margin, *row.spans)) for row in rows)


def test_a_command_that_came_without_an_approval_is_severe_everywhere() -> None:
    scenario, record = past_hook()
    assert "".join(span.text for span in risk_line(record)) == "▲▲ past hook +1"
    assert f"Severe risk: {PAST_HOOK.sentence}." in list(asks(record, scenario.supervisor.board, 1))
    phone = on_the_phone(record)
    assert phone.severe and phone.risks[0] == f"Severe: {PAST_HOOK.sentence}"
    assert phone.verdict.startswith(PAST_HOOK.sentence[:20]) and phone.verdict.endswith("(and 1 other risk)")
    assert f"▲▲ {PAST_HOOK.sentence}." in in_the_batch(record)


def test_where_and_why_a_call_waits_again_is_said_before_several_are_approved() -> None:
    _, record = past_hook()
    state = Waiting(since=0, returned_because="a.txt has changed")
    spec = record.spec.model_copy(update={"place": "prod"})
    call = record.call.model_copy(update={"spec": spec})
    text = in_the_batch(record.model_copy(update={"state": state, "call": call, "spec": spec}))
    assert "a.txt has changed" in text and "not on this machine" in text
