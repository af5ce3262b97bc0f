"""Phones and their answers as sentences for the desk: in the cockpit, in notifications and on the command line."""

import math
from collections.abc import Iterable

from whisper_tui.model.event import PhoneChanged
from whisper_tui.model.four_words import four_words
from whisper_tui.model.phone_proof import digest_of, seen_document
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.text import one_line_beginning, visible
from whisper_tui.present.quantities import minute_from
from whisper_tui.present.session_text import LONGEST_NAME
from whisper_tui.present.spans import Paragraph, Span, labelled
from whisper_tui.present.words import decided_by_text


def phone_sentence(changed: PhoneChanged) -> str:
    """Return a sentence about what has happened to a phone."""
    name, by = one_line_beginning(changed.name, LONGEST_NAME), decided_by_text(changed.by)
    stop = f"If that was not you, whisper-tui phone revoke {name} stops it."
    if changed.signed_in:
        return f"The phone {name} signed in again with its passkey. {stop}"
    match changed.change:
        case "paired":
            key = "its key is synced by an account" if changed.synced else "its key stays on it"
            may = f"it may deny now, and approve from {minute_from(changed.may_approve_from)} on"
            return f"The phone {name} was paired {by}: {may}; {key}. {stop}"
        case "doubted":
            return (
                f"The phone {name} only denies until it is confirmed, because the supervisor was killed: whisper-tui "
                f"phone confirm {name}."
            )
        case _:
            return f"The phone {name} was {changed.change} {by}."


def yes_sentence(record: CallRecord, now: float, key: str = "") -> str:
    """Return a sentence about a phone's yes that does not count yet; `key` withdraws it. Empty: there is none."""
    yes = record.pending_yes
    if yes is None:
        return ""
    left = max(0, math.ceil(yes.until - now))
    withdraws = f" {key} withdraws that." if key else ""
    return f"{visible(yes.by.who)} approves call {record.id} by phone, in {left} s.{withdraws}"


def words_paragraphs(record: CallRecord, phones: Iterable[PhoneChanged]) -> tuple[Paragraph, ...]:
    """Return the words that a phone shows for the same call. Empty: it does not wait, or no phone is paired."""
    if not isinstance(record.state, Waiting) or not any(phone.change != "revoked" for phone in phones):
        return ()
    words = " ".join(four_words(digest_of(seen_document(record))))
    return (labelled("On a phone", (Span(words), Span("  the same four words", "muted"))),)
