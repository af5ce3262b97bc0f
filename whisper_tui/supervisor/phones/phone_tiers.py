"""Reasons for which a phone may only deny a call or set it aside, although it is paired (decision 40)."""

import time
from collections.abc import Iterator
from typing import Any, get_args

from whisper_tui.model.effects import MOST_ENTRIES
from whisper_tui.model.phone import PhoneCall, PhoneDecision, SignedDecision
from whisper_tui.model.phone_facts import ShownFacts
from whisper_tui.model.phone_proof import LONGEST_DOCUMENT, seen_document
from whisper_tui.model.state import CallRecord
from whisper_tui.model.text import PLAIN_CONTROLS, hidden_parts
from whisper_tui.supervisor.phones.phone_devices import PairedKey

SIGNED: tuple[SignedDecision, ...] = get_args(SignedDecision)
AT_THE_DESK = "Decide at the desk"


def permitted(
    record: CallRecord, facts: ShownFacts, card: PhoneCall, phone: PairedKey, now: float, *, severe: bool
) -> tuple[tuple[PhoneDecision, ...], str]:
    """Return what a phone may decide about a call, and why it may not approve it. `severe`: the user lets it do that.

    `facts`: those found about it; `card`: the call as it is shown.
    """
    refusals: tuple[PhoneDecision, ...] = ("deny",) if record.aside is not None else ("deny", "set_aside")
    if why := why_not_this_phone(phone, now) or _why_not_by_phone(record, facts, card, severe=severe):
        return refusals, why
    if _can_be_applied(record, card):
        return (*refusals, "approve", "apply"), ""
    return (*refusals, "approve"), ""


def why_not_this_phone(phone: PairedKey, now: float) -> str:
    """Return why a phone may approve nothing now, as a sentence. Empty: it may."""
    if phone.doubted:
        return (
            f"The supervisor was killed since: confirm this phone at the desk, whisper-tui phone confirm {phone.name}"
        )
    if now < phone.may_approve_from:
        at = time.strftime("%H:%M", time.localtime(phone.may_approve_from + 59))
        return f"This phone is new: it may approve from {at} on"
    return ""


def _why_not_by_phone(record: CallRecord, facts: ShownFacts, card: PhoneCall, *, severe: bool) -> str:
    """Return why no phone may approve a call, as a sentence. Empty: it may."""
    verdict, yes = record.verdict, record.pending_yes
    if yes is not None:
        return f"{yes.by.who} has said yes already: it counts in a moment"
    if verdict is None or record.resolved is None:
        return "It is not judged yet"
    # Nobody can sign what is not seen, whatever the user lets phones do.
    if any(_hides(text) for text in _texts(record)):
        return f"It has characters that cannot be seen. {AT_THE_DESK}"
    if not card.whole or len(seen_document(record)) > LONGEST_DOCUMENT:
        return f"It is too long to be seen whole here. {AT_THE_DESK}"
    if severe:
        return ""
    if card.severe:
        return f"Its risk is severe. {AT_THE_DESK}"
    if facts.effects is not None and len(facts.effects.files) >= MOST_ENTRIES:
        return f"It changes more files than are listed. {AT_THE_DESK}"
    if _grants_power(record, facts):
        return f"It changes files that decide what runs later, or who may approve. {AT_THE_DESK}"
    return ""


def _grants_power(record: CallRecord, facts: ShownFacts) -> bool:
    """True if a call changes files that decide what runs later or who may approve, as far as that can be stated."""
    resolved, preview = record.resolved, record.preview
    if resolved is not None and (
        resolved.sensitive or any(each.sensitive or each.runs_later for each in resolved.edits)
    ):
        return True
    if facts.later:
        return True
    report = preview.report if preview is not None and not preview.dropped else None
    return report is not None and report.counts.flagged > 0


def _can_be_applied(record: CallRecord, card: PhoneCall) -> bool:
    """True if the changes of the preview are all on the card, and those of the very command that is asked about."""
    preview = record.preview
    if preview is None or not preview.can_be_applied or preview.edited is not None:
        return False
    return card.preview.state == "finished" and card.preview.whole


def _texts(record: CallRecord) -> Iterator[str]:
    yield record.call.description
    yield from _strings(record.call.spec.model_dump())


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield str(name)
            yield from _strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)


def _hides(text: str) -> bool:
    return next(hidden_parts(text, keep=PLAIN_CONTROLS), None) is not None
