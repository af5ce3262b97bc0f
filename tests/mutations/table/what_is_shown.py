"""What a human is shown, and what is kept of it."""

from tests.mutations.mutation import Mutation

FAR = "tests/cli/test_far_ends.py::"
GUARD = "tests/tui/test_guard.py::"
UNDO = "tests/tui/test_undo.py::"
REFUSED = "tests/mutations/test_refused_attempts.py::"

EACH_CLIENT = "tests/install/test_each_client.py::"
HOOKS = "tests/transports/hooks/test_clients.py::"
UNREAD = "tests/effects/test_code_nobody_read.py::"
LEFT_OUT = "tests/effects/test_random_commands.py::test_no_change_is_left_out_where_effects_claim_to_be_complete"

BACKGROUND = "tests/supervisor/engine/test_keeper_background.py::"

WHAT_IS_SHOWN = (
    Mutation(
        "output that another process passes on",
        "whisper_tui.supervisor.keeper.last_output.deliver_last_output",
        "not writers[inode]",
        "False",
        (BACKGROUND + "test_output_that_goes_through_another_process_is_complete_at_the_end",),
    ),
    Mutation(
        "the answer of a command that leaves a pipeline behind",
        "whisper_tui.supervisor.keeper.last_output.deliver_last_output",
        "not writers[inode]",
        "True",
        (BACKGROUND + "test_a_pipeline_in_the_background_does_not_hold_the_answer_back",),
    ),
    Mutation(
        "code that nobody has read",
        "whisper_tui.present.security_text.risk_line",
        "bool(record.resolved and record.resolved.not_inspected)",
        "False",
        ("tests/tui/test_board.py::test_a_call_that_runs_code_which_nobody_has_read_is_never_said_to_be_unflagged",),
    ),
    Mutation(
        "the level of scripts that is read",
        "whisper_tui.effects.script_code.record_file",
        "changes.script",
        "False",
        (UNREAD + "test_unread_code_is_reported_as_not_inspected",),
    ),
    Mutation(
        "scripts that an earlier command writes",
        "whisper_tui.effects.script_code.record_file",
        "found.made",
        "False",
        (UNREAD + "test_unread_code_is_reported_as_not_inspected",),
    ),
    Mutation(
        "approved scripts as they were judged",
        "whisper_tui.supervisor.approvals.command_files.ApprovedScripts.keep",
        "digest_of(content) == each.digest",
        "True",
        ("tests/api/test_effects.py::test_a_script_that_has_changed_since_it_was_judged_is_not_kept",),
    ),
    Mutation(
        "the guard of a key",
        "whisper_tui.tui.commands.approve_deny.SelectionGuard.holds",
        "self._clock() - self._since < GUARD_S",
        "False",
        (
            GUARD + "test_decision_keys_are_ignored_after_the_selection_moved_by_itself",
            GUARD + "test_decision_keys_are_ignored_for_the_first_call_that_arrives",
        ),
    ),
    Mutation(
        "typed text",
        "whisper_tui.tui.commands.approve_deny.TypingGuard.typed",
        "at - self._last < TYPING_S",
        "False",
        (UNDO + "test_letters_as_fast_as_typed_text_approve_nothing",),
    ),
    Mutation(
        "the undo of standing approvals",
        "whisper_tui.tui.commands.undo_approval.undo_seconds",
        "decision.remember is not None",
        "False",
        (UNDO + "test_a_standing_approval_can_be_undone_longest_and_an_ordinary_one_shortest",),
    ),
    Mutation(
        "secrets in lists",
        "whisper_tui.model.call_rows.mask_unless_undecided",
        "record if isinstance(record.state, Unjudged | Waiting) else masked_record(record)",
        "record",
        ("tests/cli/test_masked.py::test_a_call_is_shown_whole_while_it_waits_and_masked_from_then_on",),
    ),
    Mutation(
        "text in notifications and titles",
        "whisper_tui.notify.delivery.one_safe_line",
        'visible(text).replace(";", ",")',
        "text",
        ("tests/tui/test_calling.py::test_a_notification_contains_no_escape_sequences_of_agents",),
    ),
    Mutation(
        "output on a terminal",
        "whisper_tui.cli.recorded_output.TerminalText.feed",
        "_CONTROLS.sub(_shown, ready)",
        "ready",
        ("tests/cli/test_logs.py::test_a_terminal_gets_colours_and_nothing_else_that_controls_it",),
    ),
    Mutation(
        "tokens that their shape tells",
        "whisper_tui.model.secrets._anywhere",
        "_tokens(text)",
        "()",
        ("tests/model/test_token_shapes.py::test_a_well_known_token_is_masked_wherever_it_stands[Pulumi]",),
    ),
    Mutation(
        "text of other machines",
        "whisper_tui.cli.far_output.FarText._shown",
        "visible(whole, keep_lines=True, printed=True)",
        "whole",
        (FAR + "test_no_escape_of_a_far_machine_reaches_our_streams[show evil:7]",),
    ),
    Mutation(
        "letters of other machines that are cut",
        "whisper_tui.cli.far_output.FarText.feed",
        "self._decoder.decode(data, last)",
        'data.decode(errors="replace")',
        (FAR + "test_text_that_is_cut_anywhere_is_shown_like_the_whole_text[1]",),
    ),
    Mutation(
        "JSON of other machines",
        "whisper_tui.cli.far_output.json_text",
        "json.dumps(text[start:end])[1:-1]",
        "text[start:end]",
        (FAR + "test_hidden_characters_of_json_are_escaped_as_json_does",),
    ),
    Mutation(
        "other text in place of JSON of other machines",
        "whisper_tui.cli.other_machines._json_of",
        "read_json(answer.text)",
        "pass",
        (FAR + "test_an_answer_that_is_no_json_is_named_and_not_handed_on[no json-list --json --host evil]",),
    ),
    Mutation(
        "commands on the command line",
        "whisper_tui.cli.output_format.command_line",
        "visible(shlex.join(command) if isinstance(command, list) else command)",
        "shlex.join(command) if isinstance(command, list) else command",
        ("tests/cli/test_table.py::test_a_command_is_shown_as_one_would_type_it",),
    ),
    Mutation(
        "attempts in the text mode",
        "whisper_tui.present.security_text.refused_sentence",
        "visible(attempt.program)",
        "attempt.program",
        (REFUSED + "test_the_text_mode_says_it_and_shows_what_is_hidden_in_it",),
    ),
    Mutation(
        "the chain of the journal",
        "whisper_tui.supervisor.journal.sqlite_file.check",
        "stored in made",
        "True",
        ("tests/supervisor/test_chain.py::test_a_change_is_found_and_named",),
    ),
    Mutation(
        "the noted end of the journal",
        "whisper_tui.supervisor.journal.sqlite_file.check",
        "noted is not None and (head is None or head.seq < noted.seq)",
        "False",
        ("tests/supervisor/test_chain.py::test_a_noted_end_finds_what_the_chain_alone_cannot",),
    ),
    Mutation(
        "keys: answers of the terminal that come late",
        "whisper_tui.tui.terminal_driver.AnswerFilter.flush",
        "_SURE.match(self._begun)",
        "False",
        ("tests/tui/test_terminal_question.py::test_an_answer_is_never_a_key_wherever_it_is_cut",),
    ),
    Mutation(
        "clients: a time with which Kimi Code ignores all of its hooks",
        "whisper_tui.agents.kimi.find",
        "isinstance(given, int) and given > TIMEOUT_S",
        "False",
        (EACH_CLIENT + "test_kimi_waits_ten_minutes_at_most_and_a_longer_time_anywhere_is_reported",),
    ),
    Mutation(
        "clients: a model that is told of the human at the start of a session",
        "whisper_tui.agents.hook_formats.HookFormat.session_start",
        'self.session_note(f"{CONTEXT} {besides}".rstrip())',
        "NO_DECISION",
        (
            HOOKS + "test_a_model_is_told_at_the_start_of_a_session_and_not_when_it_goes_on",
            HOOKS + "test_kimi_is_told_with_the_first_prompt_of_each_session_alone",
        ),
    ),
    Mutation(
        "clients: a session that goes on and was told before",
        "whisper_tui.agents.hook_formats.HookFormat.session_start",
        'content.get("source") == "resume"',
        "False",
        (HOOKS + "test_a_model_is_told_at_the_start_of_a_session_and_not_when_it_goes_on",),
    ),
    Mutation(
        "clients: an event of each prompt that tells the model once",
        "whisper_tui.transports.hook.hook_endpoint.HookQuestion._was_told",
        "self._decisions.keep(key)",
        "pass",
        (HOOKS + "test_kimi_is_told_with_the_first_prompt_of_each_session_alone",),
    ),
    Mutation(
        "effects: files that a wrapper writes itself",
        "whisper_tui.effects._record_wrapper",
        "own.written",
        "()",
        (LEFT_OUT,),
    ),
    Mutation(
        "effects: variables that change what runs",
        "whisper_tui.effects.builtin_effects.record_variables",
        "changes_what_runs(name)",
        "False",
        (LEFT_OUT,),
    ),
    Mutation(
        "effects: builtins that run code",
        "whisper_tui.effects.builtin_effects.record_builtin",
        "letters & _CODE_OPTIONS.get(name, frozenset())",
        "False",
        (LEFT_OUT,),
    ),
    Mutation(
        "effects: variables that builtins set",
        "whisper_tui.effects.text_walk.TextWalk._script",
        "SETS_INSIDE.search(text) is not None",
        "False",
        (LEFT_OUT,),
    ),
    Mutation(
        "effects: links that an earlier command makes",
        "whisper_tui.effects.file_view.FileView._may_be_other_link",
        "place in self._links",
        "False",
        (LEFT_OUT,),
    ),
    Mutation(
        "effects: variables that a substitution sets",
        "whisper_tui.effects.text_walk._assigned_inside",
        "depth > 0 or event.command.nested",
        "depth > 0",
        (LEFT_OUT,),
    ),
    Mutation(
        "effects: the second round of a loop",
        "whisper_tui.effects._record_again",
        "changes.forget_repeated(before)",
        "changes.forget_repeated(before) and False",
        (LEFT_OUT,),
    ),
    Mutation(
        "effects: a directory that a group behind a pipe changes to",
        "whisper_tui.effects.text_walk.TextWalk._events",
        "piped and not begins_group",
        "piped",
        (LEFT_OUT + "[true | (cd sub; touch new)]", LEFT_OUT + "[true | { cd sub; touch new; }]"),
    ),
    Mutation(
        "effects: a directory behind a part that may fail",
        "whisper_tui.effects.text_walk._Shell.end_chain",
        "any(each != self.directory for each in self.moved_from)",
        "False",
        (LEFT_OUT,),
    ),
    Mutation(
        "effects: beginnings of long options",
        "whisper_tui.effects.operands.is_beginning",
        "len(given) > 1",
        "len(given) > 2",
        (LEFT_OUT + "[rm --re full]", LEFT_OUT + "[mkdir --pa q/w]"),
    ),
    Mutation(
        "effects: options that are not known",
        "whisper_tui.effects.operands.Program.record",
        "self.known.split()",
        "()",
        (LEFT_OUT,),
    ),
    Mutation(
        "names that mean something else for each process",
        "whisper_tui.system.host_files._followed",
        "process_names.is_of_process(at)",
        "False",
        ("tests/supervisor/test_names_of_processes.py::test_no_path_is_resolved_in_the_own_process",),
    ),
    Mutation(
        "start-up files that a wrapper writes itself",
        "whisper_tui.policy.risks.sensitive_paths.written_paths",
        "_of_wrappers(words)",
        "()",
        ("tests/supervisor/test_sensitive_files.py::test_a_file_that_decides_is_found",),
    ),
    Mutation(
        "a rule that does not name the own file of a wrapper",
        "whisper_tui.policy.risks.command_dangers._files_of_wrapper",
        "not written",
        "True",
        ("tests/policy/test_wrapper_files.py::test_a_rule_covers_the_own_file_of_a_wrapper_only_if_it_names_it",),
    ),
)
