"""What a human is shown, and what is kept of it."""

from tests.defences.defence import Defence

GUARD = "tests/tui/test_guard.py::"
REFUSED = "tests/defences/test_refused_attempts.py::"

WHAT_IS_SHOWN = (
    Defence(
        "the guard of a key",
        "whisper_tui/tui/guard.py",
        "        return self._clock() - self._since < GUARD_S\n",
        "        return False\n",
        (
            GUARD + "test_no_deciding_key_is_about_a_call_that_the_selection_went_to_by_itself",
            GUARD + "test_no_deciding_key_is_about_the_first_call_that_arrives",
        ),
    ),
    Defence(
        "secrets in lists",
        "whisper_tui/model/masked.py",
        "return record if isinstance(record.state, Unjudged | Waiting) else masked_record(record)",
        "return record",
        ("tests/cli/test_masked.py::test_a_call_is_shown_whole_while_it_waits_and_masked_from_then_on",),
    ),
    Defence(
        "text in notifications and titles",
        "whisper_tui/tui/calling/signs.py",
        '    shown = visible(text).replace(";", ",")\n',
        "    shown = text\n",
        ("tests/tui/test_calling.py::test_a_notification_holds_nothing_of_others_that_a_terminal_obeys",),
    ),
    Defence(
        "output on a terminal",
        "whisper_tui/cli/terminal_text.py",
        "_CONTROLS.sub(_shown, ready)",
        "ready",
        ("tests/cli/test_logs.py::test_a_terminal_gets_colours_and_nothing_else_that_controls_it",),
    ),
    Defence(
        "commands on the command line",
        "whisper_tui/cli/words.py",
        "visible(shlex.join(command) if isinstance(command, list) else command)",
        "(shlex.join(command) if isinstance(command, list) else command)",
        ("tests/cli/test_table.py::test_a_command_is_shown_as_one_would_type_it",),
    ),
    Defence(
        "attempts in the text mode",
        "whisper_tui/tui/refused_words.py",
        "({visible(attempt.program)})",
        "({attempt.program})",
        (REFUSED + "test_the_text_mode_says_it_and_shows_what_is_hidden_in_it",),
    ),
    Defence(
        "the chain of the journal",
        "whisper_tui/supervisor/chain.py",
        "        if stored != previous:\n",
        "        if False:\n",
        ("tests/supervisor/test_chain.py::test_a_change_is_found_and_named",),
    ),
    Defence(
        "the noted end of the journal",
        "whisper_tui/supervisor/chain.py",
        "    if noted is not None and (head is None or head.seq < noted.seq):\n",
        "    if False:\n",
        ("tests/supervisor/test_chain.py::test_a_noted_end_finds_what_the_chain_alone_cannot",),
    ),
)
