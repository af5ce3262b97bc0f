"""Text of agents neither acts nor hides."""

from tests.defences.defence import Defence

HOSTILE_TEXT = (
    Defence(
        "hostile text: floods of marks",
        "whisper_tui/model/text.py",
        '            elif kind == "mark" and room:\n',
        '            elif kind == "mark":\n',
        ("tests/model/test_text.py::test_marks_stay_on_a_letter_as_long_as_they_are_few",),
    ),
    Defence(
        "hostile text: blanks that are no spaces",
        "whisper_tui/model/text.py",
        'kind == "seen" or (kind == "blank" and printed)',
        'kind in {"seen", "blank"}',
        ("tests/policy/test_risks.py::test_a_blank_that_is_no_space_is_found_and_marked",),
    ),
    Defence(
        "hostile text: fields of a call",
        "whisper_tui/tui/spans.py",
        'Span(piece.text, "hidden" if piece.hidden else role) for piece in pieces(text)',
        "Span(each, role) for each in (text,)",
        ("tests/hostile/test_watch.py::test_every_field_is_read_out_letter_by_letter",),
    ),
    Defence(
        "hostile text: words in passing",
        "whisper_tui/tui/screens/cockpit.py",
        "severity=severity, markup=False, timeout=4",
        "severity=severity, timeout=4",
        ("tests/hostile/test_cockpit.py::test_passing_words_and_lost_connections_show_it_letter_by_letter",),
    ),
    Defence(
        "hostile text: commands without end",
        "whisper_tui/tui/command_text.py",
        "    if is_endless(text):\n",
        "    if not text:\n",
        ("tests/hostile/test_huge.py::test_the_end_of_a_command_is_shown_however_long_it_is",),
    ),
    Defence(
        "hostile text: entries of the log",
        "whisper_tui/cli/log_lines.py",
        "visible(masked(super().format(record)), keep_lines=True)",
        "masked(super().format(record))",
        ("tests/hostile/test_command_line.py::test_nothing_in_an_entry_of_the_log_feigns_another_entry",),
    ),
    Defence(
        "hostile text: JSON on a terminal",
        "whisper_tui/cli/json_text.py",
        '    return replace_hidden(text, _escape, keep=frozenset("\\n"))\n',
        "    return text\n",
        ("tests/hostile/test_command_line.py::test_no_command_writes_anything_that_a_terminal_obeys_or_hides",),
    ),
    Defence(
        "hostile text: signs in an agent's words",
        "whisper_tui/cli/watch_words.py",
        " if role in SIGNED else text for text, role",
        " for text, role",
        ("tests/hostile/test_watch.py::test_signs_are_only_left_out_where_they_are_not_the_agents",),
    ),
)
