"""What the tools promise, as data: each demand has an id, the design that it comes from, and tests that show it."""

from typing import Literal, NamedTuple

Source = Literal["execute_command", "AITool", "ExecCommand", "run_shell_command", "all tools"]


class Requirement(NamedTuple):
    """One demand. `tests` are a file below tests/ and the name of a function in it, with `::` between them."""

    id: str
    source: Source
    demand: str
    tests: tuple[str, ...]


ARGV = "tools/test_execute_command.py::test_"
CHECK = "tools/test_arguments.py::test_"
LINE = "tools/test_execute_command_line.py::test_"
SHELL = "tools/test_run_shell_command.py::test_"
REGISTRY = "tools/test_registry.py::test_"
SETS = "tools/test_tool_sets.py::test_"
ASKED = "tools/test_asked_tool.py::test_"
FILE = "tools/test_read_file.py::test_"
START = "tools/exec_command/test_starting.py::test_"
ANSWER = "tools/exec_command/test_answering.py::test_"
STATES = "tools/exec_command/test_states.py::test_"
ROOM = "tools/test_output_budget.py::test_"
WAITING = "transports/test_mcp_waiting.py::test_"
TASKS = "tools/exec_command/test_tasks.py::test_"
CONTROL = "tools/exec_command/test_control.py::test_"
REAL = "tools/test_real_commands.py::test_"
LISTS = "policy/test_tool_lists.py::test_"
DOOR = "transports/test_mcp_endpoint.py::test_"
SHOWN = "cli/test_tools.py::test_"

# fmt: off
_EXECUTE_COMMAND = (
    ("execute_command.command", "the program alone; never split at spaces; a hint for a missing one that holds some",
     ARGV + "the_call_is_submitted_as_argv_with_the_arguments_as_sent",
     ARGV + "a_missing_program_with_spaces_in_its_name_gets_the_hint_to_use_args"),
    ("execute_command.args", "an array of strings, default [], which no shell reads",
     ARGV + "the_schema_is_the_published_one", CHECK + "a_wrong_part_of_an_array_is_named_by_its_place",
     CHECK + "a_whole_command_line_as_args_is_refused"),
    ("execute_command.cwd", "the workspace by default; absolute allowed; outside it is always asked",
     ARGV + "the_directory_starts_at_the_workspace_and_may_be_absolute",
     "policy/test_risks.py::test_a_directory_outside_the_workspace_is_noticed"),
    ("execute_command.timeout", "whole seconds from 1 to a configurable bound, default 60, from the process's start",
     CHECK + "a_timeout_that_is_not_a_whole_number_of_seconds_in_range_is_refused",
     ARGV + "the_longest_time_is_a_setting", ARGV + "the_default_time_is_sixty_seconds",
     REAL + "time_runs_from_the_start_of_the_process_and_the_output_until_then_is_kept"),
    ("execute_command.identity", "the published name, description, category and tags",
     ARGV + "name_category_and_tags_are_the_published_ones"),
    ("execute_command.result", "always exactly stdout, stderr, return_code and timed_out",
     ARGV + "a_run_is_answered_with_exactly_the_four_keys_in_order",
     DOOR + "a_null_return_code_reaches_the_client_as_a_key_with_null"),
    ("execute_command.timed_out", "null, true, and what was written until then",
     ARGV + "a_timeout_keeps_the_partial_output_and_has_no_return_code"),
    ("execute_command.not_started",
     "null, and a missing program, a missing permission, a missing directory told apart",
     ARGV + "every_reason_for_not_starting_is_distinguishable"),
    ("execute_command.signal", "death by a signal is minus its number", ARGV + "a_signal_is_minus_its_number"),
    ("execute_command.deadlock", "200 kB on stderr while stdout stays open do not deadlock",
     REAL + "a_full_stderr_does_not_hold_up_an_open_stdout",
     REAL + "two_hundred_thousand_bytes_on_both_streams_at_once_are_all_there"),
)

_AI_TOOL = (
    ("aitool.definition", "the definition that chat completion APIs take, which a tool may override",
     REGISTRY + "definitions_follow_the_function_calling_format",
     SHOWN + "the_definitions_have_the_shape_of_function_calling_and_hold_valid_schemas"),
    ("aitool.category_and_tags", "a category and tags", ASKED + "a_wrapped_tool_looks_like_itself"),
    ("aitool.synchronous", "a synchronous execute runs in a thread",
     REGISTRY + "a_synchronous_tool_runs_in_a_thread_of_its_own"),
    ("aitool.prompt", "prompt text with every part of the block",
     REGISTRY + "the_standard_tools_publish_closed_schemas_and_complete_prompt_texts",
     SHOWN + "the_prompt_is_one_block_a_tool"),
    ("registry.register", "register, unregister, look up; a second tool of a name is an error",
     REGISTRY + "a_second_tool_of_the_same_name_is_an_error_and_the_first_stays",
     REGISTRY + "an_unregistered_tool_is_gone_and_its_name_is_free"),
    ("registry.instructions", "all prompt texts, joined by a blank line",
     REGISTRY + "prompt_texts_are_joined_by_a_blank_line"),
    ("registry.filter", "tools by all or any tags, category and name pattern",
     REGISTRY + "tools_are_found_by_tags_category_and_name"),
    ("registry.sets", "tool sets with inheritance",
     SETS + "a_set_holds_what_it_inherits_names_and_tags_without_what_it_leaves_out"),
    ("registry.discovery", "tools of installed packages, by the entry-point group whisper_tui.tools",
     SETS + "installed_packages_are_asked_by_the_entry_point_group",
     SETS + "a_broken_package_takes_nothing_from_the_others"),
    ("registry.call", "arguments are checked before anything else, and errors name the argument",
     REGISTRY + "wrong_arguments_never_reach_the_tool"),
    ("registry.approval", "any registered tool can ask through the same queue",
     ASKED + "the_human_sees_the_tool_its_description_and_the_arguments",
     ASKED + "a_denied_tool_is_not_called_and_the_agent_gets_the_words",
     "library/test_library.py::test_the_users_supervisor_is_started_and_a_tool_of_the_authors_own_goes_through_its_queue"),
    ("read_file.path", "inside the workspace unless asked",
     FILE + "a_file_of_the_workspace_is_read_exactly_and_nobody_is_asked",
     FILE + "a_file_outside_is_read_once_a_human_agrees"),
    ("read_file.encoding", "utf-8 by default", FILE + "the_encoding_is_the_one_asked_for"),
    ("read_file.error", "not found, wrong encoding, directory and too large as an object with an error",
     FILE + "every_failure_is_an_error_of_its_own"),
    ("execute_command_line.command", "a whole line, which the approver sees as a shell line",
     LINE + "the_approver_sees_a_shell_line_and_never_an_argv"),
    ("execute_command_line.cwd", "the workspace by default", LINE + "the_schema_is_the_published_one"),
    ("execute_command_line.result", "stdout, stderr and returncode; 127 not found, 126 no permission",
     LINE + "a_run_is_answered_with_exactly_three_keys", LINE + "every_other_end_has_its_code",
     REAL + "a_line_that_is_not_a_program_has_the_codes_of_the_shell"),
    ("execute_command_line.name", "under its own name, or in the place of execute_command",
     SETS + "the_name_execute_command_can_belong_to_the_whole_line"),
)

_DEFAULTS = START + "a_command_alone_gets_every_default"
_REFUSALS = START + "a_wrong_argument_is_named_and_starts_nothing"

_EXEC_COMMAND = (
    ("ExecCommand.cmd", "required", _REFUSALS, _DEFAULTS),
    ("ExecCommand.workdir", "the workspace by default; outside it is an error",
     START + "a_directory_inside_the_workspace_may_be_relative_or_absolute", _DEFAULTS),
    ("ExecCommand.shell", "the user's bash, zsh or sh, else sh",
     START + "the_default_shell_is_the_users_own_where_it_is_a_known_one"),
    ("ExecCommand.login", "true by default: -lc, else -c",
     START + "a_login_shell_reads_login_files_and_another_does_not"),
    ("ExecCommand.tty", "false by default", _DEFAULTS, REAL + "a_task_with_a_terminal_has_one"),
    ("ExecCommand.duplicate_policy", "reuse_running by default; null is refused",
     START + "start_new_starts_another_instance", _REFUSALS),
    ("ExecCommand.accepts_input", "the value of tty by default",
     START + "input_is_accepted_with_a_terminal_unless_told_otherwise"),
    ("ExecCommand.yield_time_ms", "10 000 by default, from the start of the process, never while a human thinks",
     ANSWER + "the_window_begins_with_the_process_and_not_with_the_human"),
    ("ExecCommand.max_output_tokens", "8 000 by default, at most 64 000", START + "the_schema_is_the_published_one"),
    ("ExecCommand.null", "null is the default where it is allowed", START + "null_is_the_default"),
    ("ExecCommand.refused_keys", "command, status, task_handle, continue_on_result and terminal_reentry", _REFUSALS),
    ("ExecCommand.completed", "exit_status and both previews, always there; a non-zero exit is a success",
     ANSWER + "a_short_command_is_answered_with_its_exit_status_and_both_previews",
     ANSWER + "a_non_zero_exit_is_a_success_of_the_tool"),
    ("ExecCommand.promoted_to_task", "the same process goes on as a task without a time limit",
     ANSWER + "a_promoted_task_is_the_same_process_without_a_time_limit",
     REAL + "a_promoted_task_is_the_same_process_and_answers_what_is_typed"),
    ("ExecCommand.already_running", "the handle, the command, a summary and what to do",
     START + "the_same_command_is_answered_with_the_one_that_waits_before_anybody_is_asked_again"),
    ("ExecCommand.duplicate", "same session, cmd, workdir, shell, login, tty; waiting to cancelling; before a human",
     START + "another_command_is_asked_again",
     START + "the_same_command_is_found_in_its_foreground_window_and_while_it_is_cancelled",
     START + "the_same_command_of_another_session_is_asked_for_itself",
     "supervisor/test_joining.py::test_a_call_with_the_same_key_joins_one_that_waits_is_queued_or_runs"),
    ("ExecCommand.budget", "tokens times four characters over both streams; head, marker, tail",
     ANSWER + "a_stream_beyond_its_budget_is_cut_in_the_middle_and_named_as_a_file",
     ANSWER + "the_budget_is_shared_and_what_one_stream_does_not_need_is_the_others"),
    ("ExecCommand.artifacts", "a cut stream is a whole file; omitted when empty; indices for cut streams",
     ANSWER + "both_streams_can_be_cut_and_each_has_its_file",
     REAL + "exec_command_cuts_both_streams_and_keeps_them_whole_in_files"),
    ("ExecCommand.decoding", "a character on the border of two chunks is never broken",
     ANSWER + "a_cut_never_divides_a_character",
     TASKS + "a_character_that_is_still_arriving_is_read_whole_the_next_time"),
    ("ExecCommand.text", "the exact lines for a model",
     ANSWER + "a_short_command_is_answered_with_its_exit_status_and_both_previews",
     ANSWER + "an_end_without_an_exit_status_has_none", ANSWER + "a_task_without_output_says_so",
     ANSWER + "a_duplicate_is_rendered_to_the_line", ANSWER + "a_denial_carries_the_humans_words"),
    ("ExecCommand.error.invalid_tool_input", "with the hint, and details.parse_error naming the field", _REFUSALS),
    ("ExecCommand.error.unknown_tool", "a tool that does not exist",
     ANSWER + "every_other_error_is_reported_by_its_kind"),
    ("ExecCommand.error.execution_root_violation", "a workdir outside the workspace",
     START + "a_directory_outside_the_workspace_is_a_violation_and_starts_nothing"),
    ("ExecCommand.error.workdir_not_found", "a workdir that does not exist",
     START + "a_directory_that_does_not_exist_is_its_own_error"),
    ("ExecCommand.error.command_spawn_failed", "a shell that cannot be started",
     ANSWER + "calls_without_a_result_are_errors_of_their_kind"),
    ("ExecCommand.error.approval_denied", "the human's words", ANSWER + "a_denial_carries_the_humans_words"),
    ("ExecCommand.error.policy_refused", "a rule of the user",
     ANSWER + "a_rule_of_the_user_is_a_refusal_of_the_policy"),
    ("ExecCommand.error.task_not_found", "a task that is not there or another's",
     TASKS + "tasks_of_other_sessions_and_other_calls_are_not_found"),
    ("ExecCommand.error.tool_execution_failed", "anything else", ANSWER + "every_other_error_is_reported_by_its_kind",
     ANSWER + "a_withdrawn_call_has_failed"),
    *((f"task.{state}", demand, STATES + test) for state, demand, test in (
        ("queued", "waits for a human or for a worker", "a_task_that_waits_or_is_about_to_start_is_queued"),
        ("running", "has a process", "a_task_with_a_process_is_running"),
        ("cancelling", "is being ended, since its agent wanted that",
         "a_task_that_its_agent_ends_is_cancelling_while_its_process_lives"),
        ("completed", "exited with 0", "a_task_that_exited_with_0_is_completed_even_if_it_was_being_ended"),
        ("failed", "any other end of its own", "a_task_that_ended_badly_by_itself_has_failed"),
        ("cancelled", "ended by its agent, or never let run", "a_task_that_was_not_to_run_on_is_cancelled"),
        ("interrupted", "ended by the user", "a_task_that_the_user_ended_is_interrupted"),
        ("lost", "its end cannot be known", "a_task_whose_end_cannot_be_known_is_lost"))),
    ("TaskList.active", "active tasks, newest first", TASKS + "the_list_has_active_tasks_newest_first"),
    ("TaskStatus.task_id", "one task", TASKS + "a_task_goes_from_queued_over_running_and_cancelling_to_its_end"),
    ("TaskOutput.task_id", "one task", TASKS + "tasks_of_other_sessions_and_other_calls_are_not_found"),
    ("TaskOutput.block", "true by default; else not_ready; always the output so far",
     TASKS + "waiting_ends_with_the_task", TASKS + "output_without_waiting_is_not_ready_and_has_the_output_so_far"),
    ("TaskOutput.timeout_ms", "30 000 by default; then timeout, with the output so far",
     TASKS + "waiting_in_vain_is_a_timeout_with_the_output_so_far"),
    ("TaskOutput.offset", "nothing has to be read twice",
     TASKS + "reading_on_from_the_next_offset_reads_nothing_twice"),
    ("TaskInput.task_id", "asked like a command, only where somebody reads it",
     CONTROL + "input_is_asked_with_the_text_shown_and_then_typed_as_it_is",
     CONTROL + "input_that_nobody_reads_needs_no_approval"),
    ("TaskInput.text", "as it is, no line feed added",
     CONTROL + "no_line_feed_is_added_and_the_input_can_be_closed"),
    ("TaskInput.close_stdin", "closes the input", CONTROL + "no_line_feed_is_added_and_the_input_can_be_closed"),
    ("TaskStop.task_id", "asked; TERM, a grace, KILL; a second call forces; the truth about a finished task",
     CONTROL + "a_stop_is_asked_and_ends_the_task_with_a_grace", CONTROL + "a_second_stop_forces",
     CONTROL + "a_stop_tells_the_truth_about_a_finished_task_without_asking",
     REAL + "a_stopped_task_is_gone_with_its_children"),
    ("session.trust", "recorded with each session",
     "supervisor/test_joining.py::test_the_trust_of_a_session_is_recorded"),
)

_RUN_SHELL_COMMAND = (
    ("run_shell_command.command", "bash -c, and cmd.exe /c on Windows",
     SHELL + "the_command_is_a_line_for_bash_marked_for_scripts",
     SHELL + "on_windows_the_text_follows_the_slash_c_of_its_own_interpreter"),
    ("run_shell_command.description", "shown to the approver",
     SHELL + "the_command_is_a_line_for_bash_marked_for_scripts"),
    ("run_shell_command.directory", "relative, existing, inside the project with links resolved",
     SHELL + "a_directory_that_is_absolute_missing_or_outside_is_refused_and_nothing_is_submitted"),
    ("run_shell_command.result", "always all seven keys", SHELL + "a_run_is_answered_with_exactly_the_seven_keys",
     SHELL + "a_signal_has_its_number_and_no_exit_code",
     SHELL + "a_failed_start_has_a_reason_and_no_pid"),
    ("run_shell_command.background", "background processes are named; none on Windows",
     REAL + "background_processes_of_a_shell_command_are_named",
     SHELL + "on_windows_no_background_processes_are_named"),
    ("run_shell_command.environment", "ASIMI_CLI=1", REAL + "every_command_can_tell_under_whom_it_runs"),
    ("run_shell_command.substitution", "what bash would substitute fails the call, by the real grammar",
     "policy/test_substitution_refused.py::test_substitutions_fail_the_call",
     "policy/test_substitution_refused.py::test_text_without_substitutions_is_accepted"),
    ("run_shell_command.deny_list", "excludeTools fails the call",
     LISTS + "an_excluded_command_fails_however_it_is_wrapped", LISTS + "exclusion_beats_the_core_list"),
    ("run_shell_command.allow_list", "coreTools runs without asking; off the list asked, or refused when strict",
     LISTS + "a_command_on_the_core_list_runs_and_another_is_asked",
     LISTS + "off_the_core_list_a_strict_tool_refuses"),
    ("run_shell_command.denied", "the call fails with the human's words",
     SHELL + "a_denial_fails_the_call_with_the_humans_words"),
    ("run_shell_command.text", "only the parts that exist",
     SHELL + "the_text_for_the_model_has_only_existing_parts"),
)

_ALL = (
    ("all.unknown_keys", "an unknown key is refused by its name",
     CHECK + "an_unknown_key_is_refused_by_its_name_and_the_known_ones_are_listed"),
    ("all.closed_schemas", "every published schema takes no other keys",
     REGISTRY + "the_standard_tools_publish_closed_schemas_and_complete_prompt_texts"),
    ("all.out_of_range", "what is out of range is refused, not clamped",
     CHECK + "a_timeout_that_is_not_a_whole_number_of_seconds_in_range_is_refused", _REFUSALS,
     CONTROL + "a_wrong_argument_is_named_and_asks_nobody", TASKS + "a_wrong_argument_is_named",
     FILE + "a_wrong_argument_reads_nothing", LINE + "wrong_arguments_start_nothing"),
    ("all.added_keys", "a key that a known client adds by itself is dropped at the door",
     DOOR + "the_key_that_gemini_adds_is_dropped_for_gemini"),
    ("all.environment", "WHISPER_TUI and WHISPER_TUI_CALL_ID", REAL + "every_command_can_tell_under_whom_it_runs"),
    ("all.told", "an edit or a standing approval is told in the answer",
     ARGV + "an_edited_command_is_reported_beside_the_exact_result", ARGV + "a_remembered_approval_is_reported",
     ANSWER + "an_edit_is_reported_beside_the_envelope",
     DOOR + "an_edited_run_is_told_in_text_that_every_client_shows"),
    ("all.streams", "split characters, NUL, invalid UTF-8 and a line of 10 MB come back right",
     REAL + "a_character_that_comes_in_pieces_is_whole",
     REAL + "a_nul_byte_stays_and_what_is_no_utf_8_is_shown_as_such", REAL + "a_line_of_ten_megabytes_is_one_line"),
    ("all.shell", "every tool can be called from a shell",
     SHOWN + "any_tool_can_be_called_from_a_shell_and_waits_for_a_human"),
    ("all.whole", "the library and the shell are given all output; over MCP what the client shows",
     ROOM + "without_an_output_budget_an_answer_is_complete",
     ROOM + "every_answer_fits_the_budget_as_text_and_as_data"),
    ("all.exit_code", "from a shell a call that failed does not end with 0",
     "cli/test_commands.py::test_a_call_that_failed_does_not_end_with_0_whatever_shape_its_answer_has"),
    ("wait.ticket", "the result of a call that took long, in the shape of its own tool",
     WAITING + "a_call_that_nobody_decides_about_is_answered_with_a_ticket_and_its_result_fetched_with_it",
     WAITING + "the_ticket_of_another_session_is_unknown_here"),
    ("wait.wait_s", "no longer than this",
     WAITING + "waiting_for_a_ticket_is_answered_as_soon_as_the_result_is_there"),
    ("all.mcp", "every tool is offered over MCP", DOOR + "the_tools_are_listed_truthfully_and_at_once",
     "transports/test_mcp_tools.py::test_a_task_can_be_led_over_mcp"),
)
# fmt: on

_BY_SOURCE: tuple[tuple[Source, tuple[tuple[str, ...], ...]], ...] = (
    ("execute_command", _EXECUTE_COMMAND),
    ("AITool", _AI_TOOL),
    ("ExecCommand", _EXEC_COMMAND),
    ("run_shell_command", _RUN_SHELL_COMMAND),
    ("all tools", _ALL),
)

REQUIREMENTS = tuple(Requirement(row[0], source, row[1], row[2:]) for source, rows in _BY_SOURCE for row in rows)
