"""The process that serves the page of phones, and that the supervisor does not trust with a yes."""

from tests.mutations.mutation import Mutation

SITE = "tests/phone/test_phone_site.py::"
PLACE = "whisper_tui.transports.phone.phone_site.PhoneSite."

THE_PHONES_PAGE = (
    Mutation(
        "names that point at the phone's page",
        PLACE + "_answer",
        'request.headers.get("host", "").lower() not in self._address.hosts',
        "False",
        (SITE + "test_another_name_is_refused_with_the_right_one",),
    ),
    Mutation(
        "the phone's own page",
        PLACE + "_check_page",
        'request.headers.get("origin") != self._address.origin',
        "False",
        (SITE + "test_only_the_own_page_may_ask",),
    ),
    Mutation(
        "requests that another page has made the browser send",
        PLACE + "_check_page",
        'request.headers.get("sec-fetch-site", "same-origin") != "same-origin"',
        "False",
        (SITE + "test_only_the_own_page_may_ask",),
    ),
    Mutation(
        "forms of other pages",
        PLACE + "_check_page",
        'request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json"',
        "False",
        (SITE + "test_only_the_own_page_may_ask",),
    ),
    Mutation(
        "the operations of a phone",
        "whisper_tui.transports.phone.phone_site._needs_device",
        '"device" in inspect.signature(getattr(PhoneRole, name)).parameters',
        "False",
        (SITE + "test_without_the_secret_of_a_phone_nothing_is_shown",),
    ),
    Mutation(
        "the secret of a phone that is revoked",
        PLACE + "_refusal",
        "isinstance(error, NotAllowed) and token is not None",
        "False",
        (SITE + "test_without_the_secret_of_a_phone_nothing_is_shown",),
    ),
    Mutation(
        "the cookie for https alone",
        PLACE + "_set_cookie",
        '"; Secure" if self._address.is_https else ""',
        '""',
        (SITE + "test_the_secret_is_in_a_cookie_that_no_script_and_no_other_site_gets",),
    ),
    Mutation(
        "the length of a phone's request",
        "whisper_tui.transports.phone.phone_site._body",
        "len(held) > LARGEST",
        "False",
        (SITE + "test_a_request_is_bounded_and_has_to_be_what_the_operation_takes",),
    ),
    Mutation(
        "codes that are tried",
        PLACE + "_take_attempt",
        "self._attempts < 1",
        "False",
        (
            SITE + "test_codes_cannot_be_tried_without_end",
            SITE + "test_attempts_to_pair_are_allowed_again_after_a_while",
        ),
    ),
    Mutation(
        "a browser of the machine that shows the page",
        "whisper_tui.transports.phone.phone_site._check_elsewhere",
        "is_own_address(str((outside or addresses)[-1]))",
        "False",
        (SITE + "test_a_browser_of_the_machine_itself_neither_pairs_nor_signs_in",),
    ),
    Mutation(
        "pages that wait",
        PLACE + "_asked",
        "len(self._waits) >= MOST_WAITS",
        "False",
        (SITE + "test_a_wait_is_answered_by_what_happens_and_their_number_is_bounded",),
    ),
)
