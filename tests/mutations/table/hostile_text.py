"""Text of agents neither acts nor hides."""

from tests.mutations.mutation import Mutation

COMMANDS = "tests/hostile/test_command_line.py::test_no_command_writes_anything_that_a_terminal_obeys_or_hides"
DESKTOP = "tests/hostile/test_calling.py::test_the_desktops_program_gets_plain_words_that_are_no_options"
REPORT = "tests/hostile/test_exports.py::test_a_report_has_no_markup_but_its_own"

LETTERS = "tests/policy/test_look_alikes.py::"

HOSTILE_TEXT = (
    Mutation(
        "hostile text: letters that imitate others",
        "whisper_tui.policy.risks.call_risks._imitates",
        "character in _letters()",
        "False",
        (LETTERS + "test_every_letter_of_the_data_is_found_inside_of_a_latin_word",),
    ),
    Mutation(
        "hostile text: joiners beside emoji",
        "whisper_tui.policy.risks.call_risks._covered",
        "at >= part[1]",
        "bool(spans)",
        (LETTERS + "test_the_same_characters_elsewhere_are_deceptive[echo \\u26a0\\ufe0f; rm \\u202ex]",),
    ),
    Mutation(
        "hostile text: floods of marks",
        "whisper_tui.model.text.hidden_parts",
        'kind == "mark" and room',
        'kind == "mark"',
        ("tests/model/test_text.py::test_marks_stay_on_a_letter_as_long_as_they_are_few",),
    ),
    Mutation(
        "hostile text: blanks that are no spaces",
        "whisper_tui.model.text.hidden_parts",
        'kind == "seen" or (kind == "blank" and printed)',
        'kind in {"seen", "blank"}',
        ("tests/policy/test_risks.py::test_a_blank_other_than_a_space_is_found_and_marked",),
    ),
    Mutation(
        "hostile text: fields of a call",
        "whisper_tui.present.spans.said",
        'tuple(Span(piece.text, "hidden" if piece.hidden else role) for piece in pieces(text))',
        "(Span(text, role),)",
        ("tests/hostile/test_watch.py::test_every_field_is_read_out_letter_by_letter",),
    ),
    Mutation(
        "hostile text: toasts",
        "whisper_tui.tui.cockpit_screen.CockpitScreen.tell",
        "markup=False",
        "markup=True",
        ("tests/hostile/test_cockpit.py::test_passing_words_and_lost_connections_show_it_letter_by_letter",),
    ),
    Mutation(
        "hostile text: commands without end",
        "whisper_tui.present.command_text.command_paragraphs",
        "shows_only_ends(text)",
        "not text",
        ("tests/hostile/test_huge.py::test_the_end_of_a_command_is_shown_however_long_it_is",),
    ),
    Mutation(
        "hostile text: entries of the log",
        "whisper_tui.cli.compose.MaskedLines.format",
        "visible(masked(super().format(record)), keep_lines=True)",
        "masked(super().format(record))",
        ("tests/hostile/test_command_line.py::test_a_log_entry_cannot_fake_another_entry",),
    ),
    Mutation(
        "hostile text: JSON on a terminal",
        "whisper_tui.cli.output_format.escaped",
        'replace_hidden(text, _escape, keep=frozenset("\\n"))',
        "text",
        ("tests/hostile/test_command_line.py::test_no_command_writes_anything_that_a_terminal_obeys_or_hides",),
    ),
    Mutation(
        "hostile text: signs in an agent's words",
        "whisper_tui.cli.watch_text.lines",
        'SIGN.sub(r"\\1", text) if role in SIGNED else text',
        'SIGN.sub(r"\\1", text)',
        ("tests/hostile/test_watch.py::test_signs_are_only_left_out_where_they_are_not_the_agents",),
    ),
    Mutation(
        "hostile text: lists on the command line",
        "whisper_tui.cli.commands.list_calls._words",
        'visible(row["session"])',
        'row["session"]',
        (COMMANDS,),
    ),
    Mutation(
        "hostile text: sentences about errors",
        "whisper_tui.cli.subcommand.complain",
        "visible(sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence, keep_lines=True)",
        "sentence",
        (COMMANDS,),
    ),
    Mutation(
        "hostile text: the editor",
        "whisper_tui.tui.dialogs.drafts.seen",
        "without_hidden(text, keep=PLAIN_CONTROLS)",
        "text",
        ("tests/hostile/test_cockpit.py::test_the_editor_shows_what_was_asked_and_every_change",),
    ),
    Mutation(
        "hostile text: lines of output",
        "whisper_tui.tui.output.ansi._in_sequence",
        "visible(text[at:], printed=True)",
        "text[at:]",
        ("tests/hostile/test_mixtures.py::test_output_is_shown_without_anything_that_is_obeyed",),
    ),
    Mutation(
        "hostile text: pictures of terminals",
        "whisper_tui.export.terminal_screen.Screen.draw",
        "data if data.isascii() else without_hidden(data, printed=True)",
        "data",
        ("tests/hostile/test_mixtures.py::test_the_picture_of_a_terminal_keeps_its_columns",),
    ),
    Mutation(
        "hostile text: notifications of the desktop",
        "whisper_tui.notify.delivery.desktop_program",
        "title, body = visible(title), visible(body)",
        "pass",
        (DESKTOP,),
    ),
    Mutation(
        "hostile text: markup of the desktop",
        "whisper_tui.notify.delivery.desktop_program",
        "html.escape(body, quote=False)",
        "body",
        (DESKTOP,),
    ),
    Mutation(
        "hostile text: what programs of one's own are told",
        "whisper_tui.notify.notification_text.notification_json",
        'json.dumps(content).encode("ascii")',
        "json.dumps(content, ensure_ascii=False).encode()",
        ("tests/hostile/test_calling.py::test_a_program_of_ones_own_gets_one_line_of_json",),
    ),
    Mutation(
        "hostile text: words in reports",
        "whisper_tui.export.document.in_code",
        "visible(text)",
        "text",
        (REPORT,),
    ),
    Mutation(
        "hostile text: code in reports",
        "whisper_tui.export.document.in_code",
        '"`" * (_longest_run(shown) + 1)',
        '"`"',
        (REPORT,),
    ),
    Mutation(
        "hostile text: blocks in reports",
        "whisper_tui.export.document.block",
        '"`" * max(3, _longest_run(shown) + 1)',
        '"```"',
        ("tests/hostile/test_exports.py::test_a_block_of_a_report_is_not_left_by_what_is_in_it",),
    ),
    Mutation(
        "hostile text: recordings",
        "whisper_tui.export.asciicast.PlayableFilter.feed",
        '_LEFT_OUT.sub("", text[: unfinished.start()] if unfinished else text)',
        "text[: unfinished.start()] if unfinished else text",
        ("tests/hostile/test_exports.py::test_a_recording_draws_and_does_nothing_else",),
    ),
    Mutation(
        "hostile text: JSON lines",
        "whisper_tui.export.document.json_line",
        "ensure_ascii=True",
        "ensure_ascii=False",
        ("tests/hostile/test_exports.py::test_json_lines_are_one_object_a_line_and_hold_what_was_asked",),
    ),
    Mutation(
        "hostile text: scripts in the page of the cockpit",
        "whisper_tui.cli.web_server.HEADERS",
        '"Content-Security-Policy"',
        '"X-No-Policy"',
        ("tests/hostile/test_exports.py::test_the_page_of_the_cockpit_contains_no_agent_text_and_only_its_own_script",),
    ),
)
