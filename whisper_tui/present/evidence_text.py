"""The check of an evidence file in sentences: its calls, what is proven about them, and what is not."""

from collections.abc import Iterator, Sequence

from whisper_tui.model.evidence import CallFound, DecisionFound, EvidenceReport
from whisper_tui.model.masking import masked_command
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.present.command_text import whole_text
from whisper_tui.present.quantities import count
from whisper_tui.present.words import decided_by_text

LONGEST_COMMAND = 300
"""Characters of a command in one line."""
_DESK = frozenset({"cockpit", "command line", "library", "notification", "demo"})


def evidence_lines(report: EvidenceReport) -> Iterator[str]:
    """Yield the lines about a file in which nothing contradicts itself."""
    for call in report.calls:
        yield from _call_lines(call)
    yield "Proven, by this file and nothing else:"
    yield from (f"* {visible(each)}" for each in proven(report))
    yield "Not proven:"
    yield from (f"* {visible(each)}" for each in not_proven(report))
    if report.end:
        yield f"The chain in this file ends at {report.end}"


def _call_lines(call: CallFound) -> Iterator[str]:
    command = one_line_beginning(whole_text(masked_command(call.command.command)), LONGEST_COMMAND)
    agent = f" ({call.agent})" if call.agent else ""
    place = f" at {call.command.place}" if call.command.place else ""
    doubt = "" if call.backing == "chain" else ", NOT PROVEN"
    yield visible(f"Call {call.id}{doubt}: {command}")
    asked = f"asked {_time(call.at)} in session {call.session or 'unknown'}{agent}, in {call.command.cwd}{place}"
    yield visible(f"  {asked}")
    for risk in call.risks:
        yield visible(f"  risk: {one_line_beginning(risk, LONGEST_COMMAND)}")
    for decision in call.decisions:
        yield visible(f"  {_decision_line(decision)}")
    if not call.decisions:
        yield "  nobody has decided"
    yield visible(f"  it is {call.state.replace('_', ' ')}{_OUTPUT[call.output]}")


_OUTPUT = {
    "": "",
    "same": "; its recorded output is in the file, unchanged",
    "changed": "; its recorded output is in the file, and was changed",
    "unproven": "; output of it is in the file, and nothing proves it",
    "digest only": "; its recorded output is not in the file, and its digest is",
}


def _decision_line(decision: DecisionFound) -> str:
    word = "denied" if decision.kind == "deny" else "changes of its preview applied" if decision.applies else "approved"
    edited = ", edited" if decision.edited is not None else ""
    standing = f" ({decision.standing})" if decision.standing else ""
    reason = f": {one_line_beginning(decision.reason, LONGEST_COMMAND)}" if decision.reason else ""
    by = decided_by_text(decision.by)
    doubt = "" if decision.backing == "chain" else "NOT PROVEN: "
    return (
        f"{doubt}{word}{edited} {by}{standing}, {_time(decision.at)}, event {decision.seq}{_signed(decision)}{reason}"
    )


def _signed(decision: DecisionFound) -> str:
    signature = decision.signature
    match signature.signed:
        case "verified":
            return f", signed by the key {' '.join(signature.words) or signature.key}"
        case "unchecked":
            return ", with a signature that was not checked"
        case "left out":
            return ", with a signature that is not in this file"
        case "wrong":
            return ", with a signature that is NOT VALID"
        case _:
            return ""


def proven(report: EvidenceReport) -> Iterator[str]:
    """Yield what is proven, as sentences."""
    if report.first:
        last = report.end.partition(":")[0]
        events = report.shown + report.masked + report.left_out
        yield (
            f"{count(events, 'event')} of a journal follow each other without a gap, from {report.first} to {last}; "
            f"{report.shown:,} of them are shown as they are"
        )
        if complete := [call.id for call in report.calls if call.is_complete]:
            yield f"No event about {_calls(complete)} is missing, up to event {last}: no denial, and no other decision"
        for session in report.sessions:
            yield f"No call of the session {session} is missing, up to event {last}"
    if report.noted == "same":
        yield (
            f"Up to event {report.noted_at} they are the events of the journal that had the end that you named, and "
            "stood there when it was noted"
        )
    for words, key, origin, number in _keys(report):
        if not words:
            yield from _desk_key(report, key)
            continue
        yield (
            f"Whoever holds the passkey {words} (SHA-256 {key}) has signed {count(number, 'decision')} on the page "
            f"{origin}, each about exactly what the events say, after the phone had verified its user"
        )
    if same := [call.id for call in report.calls if call.output == "same"]:
        yield f"The recorded output of {_calls(same)} in this file is that of which the chain has a digest"


def not_proven(report: EvidenceReport) -> Iterator[str]:
    """Yield what is not proven, as sentences."""
    decisions = [decision for call in report.calls for decision in call.decisions]
    if report.noted == "outside":
        yield (
            "The end that you named is not in the part of the chain in this file: write it again with --head, or look "
            "for an end between its first and its last event"
        )
    if report.first and str(report.noted_at) != report.end.partition(":")[0]:
        these = f"the events after {report.noted_at}" if report.noted_at else "these"
        late = [each.seq for each in decisions if each.seq > report.noted_at > 0]
        which = f" (among them {count(len(late), 'decision')})" if late else ""
        yield (
            f"That {these}{which} are events of the machine's journal: whoever holds the machine can write another "
            "one, and this file with it. An end of the journal that was kept elsewhere later tells: evidence verify "
            "--head END"
        )
    if report.unlinked:
        events = count(report.unlinked, "event")
        yield f"{events} of an earlier format: nothing shows that they were not changed, or that none is missing"
    if report.masked:
        yield (
            f"The text of {count(report.masked, 'event')} with secrets in them: the chain proves their places, not "
            "what is shown of them, which can be anything"
        )
    if desk := [each for each in decisions if each.by.surface in _DESK and not each.signature.signed]:
        yield (
            f"That the people named have made {count(len(desk), 'decision')} at the desk: no signature of it is in "
            "this file, and the journal has it from the programs of that user"
        )
    if automatic := [each for each in decisions if each.by.surface in {"rule", "memory"}]:
        yield (
            f"Who is behind {count(len(automatic), 'decision')} by rules and standing approvals: those are never signed"
        )
    if denials := [each for each in decisions if each.signature.signed == "denial"]:
        yield f"That the owners of the phones have made {count(len(denials), 'denial')}: those need no signature"
    yield from _about_signatures(decisions)
    if digests := [call.id for call in report.calls if call.output == "digest only"]:
        yield f"What {_calls(digests)} printed: the output is not in this file (--contents), and its digest is"
    yield "That anybody has read what was shown, that times are right, and anything about events after the last one"


def _about_signatures(decisions: Sequence[DecisionFound]) -> Iterator[str]:
    signed = [each.signature.signed for each in decisions]
    if number := len([each for each in decisions if each.signature.signed == "unchecked" and each.signature.phone]):
        yield (
            f"{count(number, 'signature')} by phones: the extra `phone` of whisper_tui, which checks them, is not "
            "installed here"
        )
    if number := signed.count("unchecked") - number:
        yield f"{count(number, 'signature')} at the desk: OpenSSH's ssh-keygen, which checks them, gave no answer here"
    if number := signed.count("left out"):
        yield f"{count(number, 'decision')} by phones: their signatures cover a secret, and are not in this file"
    verified = [each.signature for each in decisions if each.signature.signed == "verified"]
    if any(not each.phone and not each.touched for each in verified):
        yield (
            "That a person has signed at the desk: any program that may use that key can sign by it, also one of the "
            "same user"
        )
    if any(not each.phone for each in verified):
        yield "Whose ssh keys these are: ask the owner to compare the fingerprint (ssh-keygen -l)"
    if phone_names := sorted({repr(each.phone) for each in verified if each.phone}):
        phones = ", ".join(phone_names)
        yield f"Whose passkeys these are: ask the owner of {phones} to compare the four words and the digest"
    if not all(each.same_record for each in verified):
        yield "That the programs and scripts were those that were signed: their digest is of another version"


def _desk_key(report: EvidenceReport, key: str) -> Iterator[str]:
    found = [each.signature for call in report.calls for each in call.decisions if each.signature.signed == "verified"]
    for touched in (True, False):
        if number := len([each for each in found if each.key == key and each.touched == touched]):
            yield (
                f"Somebody with the ssh key {key} has signed {count(number, 'decision')} at the desk, each as the "
                "events say" + (", and a person touched the key each time" if touched else "")
            )


def _keys(report: EvidenceReport) -> Iterator[tuple[str, str, str, int]]:
    found: dict[tuple[str, str, str], int] = {}
    for call in report.calls:
        for decision in call.decisions:
            signature = decision.signature
            if signature.signed == "verified":
                key = " ".join(signature.words), signature.key, signature.origin
                found[key] = found.get(key, 0) + 1
    for (words, digest, origin), number in found.items():
        yield words, digest, origin, number


def _calls(ids: Sequence[str]) -> str:
    named = ", ".join(ids[:10]) + (f" and {len(ids) - 10:,} more" if len(ids) > 10 else "")
    return f"call {named}" if len(ids) == 1 else f"the calls {named}"


def _time(at: float) -> str:
    import time

    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
    except (ValueError, OverflowError, OSError):
        return "at an impossible time"
