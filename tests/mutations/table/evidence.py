"""Evidence: what is found in a file that was changed, and what stays out of one (decision 41)."""

from tests.mutations.mutation import Mutation

FORGED = "tests/supervisor/evidence/test_forged_files.py::"
PROVEN = "tests/supervisor/evidence/test_what_is_proven.py::"
READER = "whisper_tui.supervisor.evidence.bundle_reader."
CHECK = "whisper_tui.supervisor.evidence.evidence_check._Check."
SIGNED = "whisper_tui.supervisor.evidence.signed_decisions."
FITS = FORGED + "test_a_signature_fits_nothing_but_what_was_signed_even_if_the_chain_is_made_again"

EVIDENCE = (
    Mutation(
        "each byte of a file is one that this program has written",
        "whisper_tui.supervisor.evidence.bundle_lines.parsed",
        "spelled(line) != data",
        "False",
        (FORGED + "test_a_byte_that_was_added_taken_out_or_exchanged_is_found",),
    ),
    Mutation(
        "the chain in a file ends where its first line says",
        READER + "_Reader._close",
        "opening.first and (self._next != opening.last + 1 or self._link.hex() != opening.end)",
        "False",
        (FORGED + "test_a_denial_that_became_an_approval_breaks_the_chain",),
    ),
    Mutation(
        "the events of a chain follow each other",
        READER + "_Reader._follow",
        "seq != self._next",
        "False",
        (FORGED + "test_a_gap_is_missed_though_the_chain_was_made_again",),
    ),
    Mutation(
        "no event about a call that is shown is left out",
        CHECK + "_check_left_out",
        "first in calls or first in around or second in whole",
        "False",
        (
            FORGED + "test_a_denial_that_was_left_out_is_missed",
            FORGED + "test_a_whole_call_that_was_left_out_of_a_session_is_missed",
        ),
    ),
    Mutation(
        "an end that was kept elsewhere is compared",
        CHECK + "_compared",
        "found != self._noted.link",
        "False",
        (FORGED + "test_who_makes_the_whole_chain_again_is_found_by_an_end_kept_elsewhere_alone",),
    ),
    Mutation(
        "a text has one meaning for every reader",
        "whisper_tui.model.strict_json._unique",
        "len(found) != len(members)",
        "False",
        (FORGED + "test_a_body_that_two_readers_read_differently_is_refused",),
    ),
    Mutation(
        "what a phone has seen is the call of the events",
        SIGNED + "_check_document",
        "seen[name] != told[name]",
        "False",
        (FITS,),
    ),
    Mutation(
        "a signature is for this decision",
        SIGNED + "signature_of",
        "_check_decision(decided, proof, record)",
        "None",
        (FITS,),
    ),
    Mutation(
        "a signature is of the key that was paired",
        SIGNED + "_check_phone",
        "(last.public_key, last.origin, last.name) != (proof.public_key, proof.origin, decided.by.who)",
        "False",
        (FORGED + "test_a_key_of_the_forger_is_another_key_to_whoever_compares_it",),
    ),
    Mutation(
        "a signature is verified",
        SIGNED + "signature_of",
        "_verify(proof, challenge)",
        "None",
        (FORGED + "test_no_part_of_an_assertion_can_be_another_one", FITS),
    ),
    Mutation(
        "no digest in a file lets anybody try a secret",
        "whisper_tui.model.masking.masked_events",
        "found != without",
        "False",
        (PROVEN + "test_a_secret_is_not_in_the_file_and_no_digest_lets_anybody_try_it",),
    ),
    Mutation(
        "no ticket that still starts something is in a file",
        "whisper_tui.model.masking.masked_events",
        "record.is_open",
        "False",
        (PROVEN + "test_the_ticket_of_a_call_that_can_still_start_is_not_in_the_file",),
    ),
)
