"""Text of agents neither acts nor hides."""

from tests.defences.defence import Defence

COMMANDS = "tests/hostile/test_command_line.py::test_no_command_writes_anything_that_a_terminal_obeys_or_hides"
DESKTOP = "tests/hostile/test_calling.py::test_the_desktops_program_gets_plain_words_that_are_no_options"
REPORT = "tests/hostile/test_exports.py::test_a_report_has_no_markup_but_its_own"

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
    Defence(
        "hostile text: lists on the command line",
        "whisper_tui/cli/listing.py",
        '    return visible(row["session"]), _command(row), visible(row["description"])\n',
        '    return row["session"], _command(row), visible(row["description"])\n',
        (COMMANDS,),
    ),
    Defence(
        "hostile text: sentences about errors",
        "whisper_tui/cli/main.py",
        "visible(sentence[:1].upper() + sentence[1:] if first.isalpha() else sentence, keep_lines=True)",
        "sentence",
        (COMMANDS,),
    ),
    Defence(
        "hostile text: the editor",
        "whisper_tui/tui/drafts.py",
        "    return without_hidden(text, keep=PLAIN_CONTROLS)\n",
        "    return text\n",
        ("tests/hostile/test_cockpit.py::test_the_editor_shows_what_was_asked_and_every_change",),
    ),
    Defence(
        "hostile text: lines of output",
        "whisper_tui/tui/output/sgr.py",
        "runs.append(Run(visible(text[at:], printed=True), pen))",
        "runs.append(Run(text[at:], pen))",
        ("tests/hostile/test_mixtures.py::test_output_is_shown_without_anything_that_is_obeyed",),
    ),
    Defence(
        "hostile text: pictures of terminals",
        "whisper_tui/tui/output/emulator.py",
        "data if data.isascii() else without_hidden(data, printed=True)",
        "data",
        ("tests/hostile/test_mixtures.py::test_the_picture_of_a_terminal_keeps_its_columns",),
    ),
    Defence(
        "hostile text: notifications of the desktop",
        "whisper_tui/tui/calling/programs.py",
        "title, body = visible(title), visible(body)",
        "title, body = title, body",
        (DESKTOP,),
    ),
    Defence(
        "hostile text: markup of the desktop",
        "whisper_tui/tui/calling/programs.py",
        "html.escape(body, quote=False)",
        "body",
        (DESKTOP,),
    ),
    Defence(
        "hostile text: what programs of one's own are told",
        "whisper_tui/tui/calling/news.py",
        'json.dumps(content).encode("ascii")',
        "json.dumps(content, ensure_ascii=False).encode()",
        ("tests/hostile/test_calling.py::test_a_program_of_ones_own_gets_one_line_of_json",),
    ),
    Defence(
        "hostile text: words in reports",
        "whisper_tui/export/markdown_text.py",
        '    shown = visible(text) or " "\n',
        '    shown = text or " "\n',
        (REPORT,),
    ),
    Defence(
        "hostile text: code in reports",
        "whisper_tui/export/markdown_text.py",
        '    mark = "`" * (_longest_run(shown) + 1)\n',
        '    mark = "`"\n',
        (REPORT,),
    ),
    Defence(
        "hostile text: blocks in reports",
        "whisper_tui/export/markdown_text.py",
        '    fence = "`" * max(3, _longest_run(shown) + 1)\n',
        '    fence = "```"\n',
        ("tests/hostile/test_exports.py::test_a_block_of_a_report_is_not_left_by_what_is_in_it",),
    ),
    Defence(
        "hostile text: recordings",
        "whisper_tui/export/playable.py",
        '_LEFT_OUT.sub("", text[: unfinished.start()] if unfinished else text)',
        "(text[: unfinished.start()] if unfinished else text)",
        ("tests/hostile/test_exports.py::test_a_recording_draws_and_does_nothing_else",),
    ),
    Defence(
        "hostile text: JSON lines",
        "whisper_tui/export/json_lines.py",
        "json.dumps(row, ensure_ascii=True)",
        "json.dumps(row, ensure_ascii=False)",
        ("tests/hostile/test_exports.py::test_json_lines_are_one_object_a_line_and_hold_what_was_asked",),
    ),
    Defence(
        "hostile text: scripts in the page of the cockpit",
        "whisper_tui/cli/web_page.py",
        "script-src 'self'; ",
        "",
        (
            "tests/hostile/test_exports.py::"
            "test_the_page_of_the_cockpit_holds_no_text_of_agents_and_runs_no_script_but_its_own",
        ),
    ),
)
