"""Decisions from phones: whose, about what, how often, and in what time (decision 40)."""

from tests.mutations.mutation import Mutation

YES = "tests/supervisor/phones/test_yes.py::"
PAIRING = "tests/supervisor/phones/test_pairing.py::"
TIERS = "tests/supervisor/phones/test_tiers.py::"
ROLE = "tests/supervisor/phones/test_role.py::"
PUSH = "tests/phone/test_phone_push.py::"
PUSHING = "tests/supervisor/phones/test_pushing.py::"
SIGN_IN = "tests/supervisor/phones/test_sign_in.py::"
APPLYING = "tests/supervisor/phones/test_applying.py::"
WRONG = YES + "test_a_wrong_signature_decides_nothing_and_uses_the_request_up"
TAKE = "whisper_tui.supervisor.phones.phone_yes.PhoneYeses.take"
TIER = "whisper_tui.supervisor.phones.phone_tiers."
KEYS = "whisper_tui.supervisor.phones.passkeys."

PHONES = (
    Mutation(
        "the role of phones is for nobody whom an agent has started",
        "whisper_tui.wire.connection.PhoneEndpoint._admit",
        'await authorizer.check(PHONE_OPERATIONS["phone_calls"], {})',
        "pass",
        (
            ROLE + "test_a_supervised_command_does_not_get_the_role",
            ROLE + "test_what_an_agent_has_started_does_not_get_the_role",
        ),
    ),
    Mutation(
        "a client does not say that a phone has decided",
        "whisper_tui.wire.connection._Connection._answer",
        'by.surface == "phone"',
        "False",
        (ROLE + "test_no_client_says_that_a_phone_has_decided",),
    ),
    Mutation(
        "a request to sign is used once",
        TAKE,
        "self._asked.pop(nonce, None)",
        "self._asked.get(nonce)",
        (WRONG, YES + "test_the_same_answer_counts_once"),
    ),
    Mutation(
        "a request to sign is for one phone",
        TAKE,
        "asked.device_id != phone.id",
        "False",
        (YES + "test_a_request_of_one_phone_is_not_answered_by_another",),
    ),
    Mutation(
        "a request to sign expires",
        TAKE,
        "now >= asked.expires",
        "False",
        (YES + "test_a_request_expires",),
    ),
    Mutation(
        "what was signed is what is there when it is signed",
        TAKE,
        "check_seen(record, asked.seen)",
        "seen_document(record)",
        (YES + "test_what_has_changed_since_it_was_seen_is_not_approved[before the answer]",),
    ),
    Mutation(
        "what was signed is what is there when it counts",
        "whisper_tui.supervisor.phones.phone_yes.PhoneYeses._count",
        "check_seen(record, proof.seen)",
        "pass",
        (YES + "test_what_changes_while_a_yes_waits_is_not_started",),
    ),
    Mutation(
        "a yes that was withdrawn does not count",
        "whisper_tui.supervisor.phones.phone_yes.PhoneYeses._count",
        "record.pending_yes != PendingYes(by=by, until=until)",
        "False",
        (YES + "test_a_yes_that_is_recorded_as_withdrawn_never_counts",),
    ),
    Mutation(
        "the phone has verified its user",
        KEYS + "_expected",
        "True",
        "False",
        (WRONG + "[flags0]",),
    ),
    Mutation(
        "the key is that of the phone",
        KEYS + "used_key",
        "answer.id != key.credential_id",
        "False",
        (WRONG + "[credential_id]",),
    ),
    Mutation(
        "the signature was made on the page itself, in no other page",
        KEYS + "_check_same_site",
        'client_data.get("crossOrigin", False) is not False',
        "False",
        (WRONG + "[cross_origin]",),
    ),
    Mutation(
        "a key of the machine that shows the page is not taken",
        KEYS + "new_key",
        'site.is_loopback and not set(transports) - {"internal"}',
        "False",
        (PAIRING + "test_a_key_of_the_machine_that_shows_the_page_is_refused",),
    ),
    Mutation(
        "wrong codes close a pairing",
        "whisper_tui.supervisor.phones.phone_pairing.PhonePairings._checked",
        "pairing.wrong >= MOST_WRONG",
        "False",
        (PAIRING + "test_five_wrong_codes_close_a_pairing",),
    ),
    Mutation(
        "pushes go to the internet alone",
        "whisper_tui.system.public_address.public_addresses",
        "is_public(address)",
        "True",
        (PUSH + "test_a_name_that_leads_inside_is_not_connected_to",),
    ),
    Mutation(
        "no push goes to this machine",
        "whisper_tui.system.public_address.public_addresses",
        "is_own_address(address)",
        "False",
        (PUSH + "test_a_public_address_of_this_machine_is_not_connected_to",),
    ),
    Mutation(
        "pushes are sent over TLS alone",
        "whisper_tui.model.push_endpoint.push_endpoint",
        'parts.scheme != "https"',
        "False",
        (PUSHING + "test_what_is_no_address_of_a_push_service_is_refused",),
    ),
    Mutation(
        "a push service is who it says to be",
        "whisper_tui.notify.phone_push.PhonePush._status",
        "server_hostname=endpoint.host",
        'server_hostname="push.example"',
        (PUSH + "test_a_certificate_has_to_be_that_of_the_service",),
    ),
    Mutation(
        "a revoked phone is not woken",
        "whisper_tui.supervisor.phones.phone_devices.PhoneDevices.revoke",
        '{"revoked_at": self._clock(), "push_endpoint": ""}',
        '{"revoked_at": self._clock()}',
        (PUSH + "test_a_revoked_phone_is_pushed_to_no_more",),
    ),
    Mutation(
        "the answer to a push is bounded",
        "whisper_tui.notify.phone_push._asked",
        "read > LARGEST_ANSWER",
        "False",
        (PUSH + "test_a_service_that_does_not_take_it_is_a_problem_and_nothing_more",),
    ),
    Mutation(
        "a request to sign in is used once",
        "whisper_tui.supervisor.phones.phone_sign_in.PhoneSignIns.take",
        "self._begun.pop(nonce, None)",
        "self._begun.get(nonce)",
        (SIGN_IN + "test_a_request_is_answered_once_even_if_the_answer_was_wrong",),
    ),
    Mutation(
        "a request to sign in expires",
        "whisper_tui.supervisor.phones.phone_sign_in.PhoneSignIns.take",
        "self._clock() >= begun.expires",
        "False",
        (SIGN_IN + "test_a_request_expires_and_a_restart_forgets_it",),
    ),
    Mutation(
        "who signs in has the key of a phone",
        "whisper_tui.supervisor.phones.phone_sign_in.PhoneSignIns.take",
        "used_key(phone, begun.challenge, assertion)",
        "used_key(phone, b'', assertion)",
        (SIGN_IN + "test_it_is_the_same_phone_with_another_secret",),
    ),
    Mutation(
        "a revoked phone does not sign in",
        "whisper_tui.supervisor.phones.phone_devices.PhoneDevices.with_key",
        "_not_revoked(found)",
        "found",
        (SIGN_IN + "test_a_revoked_phone_stays_out",),
    ),
    Mutation(
        "who signs in is told of, and stands as before",
        "whisper_tui.supervisor.phones.phones.Phones.phone_sign_in",
        "self._store.board.phones[phone.id].change",
        '"confirmed"',
        (SIGN_IN + "test_a_phone_that_has_to_be_confirmed_again_still_has_to",),
    ),
    Mutation(
        "a new phone waits before it may approve",
        TIER + "why_not_this_phone",
        "now < phone.may_approve_from",
        "False",
        (PAIRING + "test_a_new_phone_may_deny_and_not_approve_for_ten_minutes",),
    ),
    Mutation(
        "after a kill a phone has to be confirmed again",
        TIER + "why_not_this_phone",
        "phone.doubted",
        "False",
        (PAIRING + "test_phones_are_known_after_a_restart_and_doubted_after_a_kill",),
    ),
    Mutation(
        "a phone that is in the file and not in the journal is revoked",
        "whisper_tui.supervisor.phones.phone_devices.PhoneDevices.open",
        "not is_recorded(device)",
        "False",
        (PAIRING + "test_a_phone_that_was_written_into_the_file_is_revoked",),
    ),
    Mutation(
        "a phone that the journal has as doubted is doubted whatever the file says",
        "whisper_tui.supervisor.phones.phone_devices.PhoneDevices.open",
        "is_doubted(device)",
        "False",
        (PAIRING + "test_a_phone_is_not_confirmed_by_its_file",),
    ),
    Mutation(
        "a command that changes what runs later is approved at the desk",
        TIER + "_grants_power",
        "facts.later",
        "False",
        (TIERS + "test_it_is_decided_at_the_desk",),
    ),
    Mutation(
        "severe risks are approved at the desk",
        TIER + "_why_not_by_phone",
        "card.severe",
        "False",
        (TIERS + "test_it_is_decided_at_the_desk",),
    ),
    Mutation(
        "what cannot be seen is not signed",
        TIER + "_why_not_by_phone",
        "any(_hides(text) for text in _texts(record))",
        "False",
        (TIERS + "test_what_cannot_be_seen_is_never_approved_by_a_phone",),
    ),
    Mutation(
        "files that grant power are changed at the desk",
        TIER + "_why_not_by_phone",
        "_grants_power(record, facts)",
        "False",
        (APPLYING + "test_a_preview_that_made_a_file_executable_is_left_to_the_desk",),
    ),
    Mutation(
        "only what is shown whole is applied",
        TIER + "_can_be_applied",
        'card.preview.state == "finished" and card.preview.whole',
        "True",
        (APPLYING + "test_what_is_not_all_shown_is_not_applied",),
    ),
    Mutation(
        "the file of the phones is private",
        "whisper_tui.supervisor.phones.phone_devices.PhoneDevices._put",
        "0o600",
        "0o644",
        (PAIRING + "test_the_file_of_the_phones_is_private_and_holds_no_secret",),
    ),
)
