"""What was approved is what runs, once."""

from tests.mutations.mutation import Mutation

SWAPS = "tests/mutations/test_swaps.py::"
DECIDING = "tests/supervisor/test_deciding.py::"
TICKETS = "tests/api/test_tickets.py::"
FUNCTIONS = "tests/supervisor/test_functions.py::"
THERE = "tests/supervisor/places/test_judging_there.py::"

EDIT_ANSWERS = "tests/transports/hooks/test_edit_answers.py::"
TOOL_CALLS = "tests/transports/hooks/test_tool_calls.py::"

OWN_SHELL = "tests/cli/test_own_shell.py::"
COMMAND_FILES = "whisper_tui.supervisor.approvals.command_files."

WHAT_RAN = "whisper_tui.transports.hook.what_ran."
RAN = "tests/transports/hooks/test_what_ran.py::"
AFTER = "tests/cli/test_after_hook.py::"

GATE = "whisper_tui.transports.hook.gate_program."
GATE_TESTS = "tests/cli/test_gate.py::"
SHELL_LINES = "tests/transports/hooks/test_shell_lines.py::"

KEPT_WAITING = "tests/supervisor/test_kept_waiting.py::"

WHAT_WAS_APPROVED = (
    Mutation(
        "what ran: another command is an alarm",
        "whisper_tui.agents.done_calls._other_command",
        "said.strip() != made.strip()",
        "False",
        (RAN + "test_another_command_than_the_approved_one_raises_an_alarm_that_names_both[claude]",),
    ),
    Mutation(
        "what ran: another edit is an alarm",
        "whisper_tui.agents.done_calls._is_other",
        "_trimmed(first) != _trimmed(second)",
        "False",
        (RAN + "test_an_edit_of_another_file_or_with_another_content_raises_an_alarm[claude]",),
    ),
    Mutation(
        "what ran: one more argument of a server's tool",
        "whisper_tui.agents.done_calls._different_names",
        "client.tool_of(done.tool) is None",
        "False",
        (RAN + "test_one_more_argument_of_a_servers_tool_is_another_call_and_an_empty_one_is_none",),
    ),
    Mutation(
        "what ran: only events about a call that was allowed",
        WHAT_RAN + "WhatRan._candidates",
        "call.client_id == done.call_id",
        "True",
        (RAN + "test_an_event_about_a_call_that_was_never_allowed_is_no_alarm",),
    ),
    Mutation(
        "what ran: the ticket is left out",
        WHAT_RAN + "WhatRan._replaced",
        'TICKET.sub(r"exec \\g<call>-…", different.made)',
        "different.made",
        (RAN + "test_a_command_around_the_ticket_raises_an_alarm_without_the_ticket[claude]",),
    ),
    Mutation(
        "what ran: only our own program shows a ticket",
        "whisper_tui.transports.hook.hook_endpoint.HookQuestion._only_shows_ticket",
        "words[: len(start)] == start",
        "True",
        (RAN + "test_after_a_restart_the_ticket_of_a_forgotten_call_is_no_alarm_and_another_program_is[gemini]",),
    ),
    Mutation(
        "what ran: few alarms of one call",
        "whisper_tui.supervisor.supervisor.Supervisor.raise_alarm",
        "len(known) < MOST_ALARMS",
        "True",
        (RAN + "test_forged_events_raise_few_alarms_and_change_nothing_else",),
    ),
    Mutation(
        "what ran: a ticket that is not shown is an alarm",
        WHAT_RAN + "WhatRan.allowed",
        "call.has_ticket",
        "False",
        (RAN + "test_an_unasked_command_that_does_not_come_raises_an_alarm_too",),
    ),
    Mutation(
        "what ran: no alarm about an agent that is gone",
        WHAT_RAN + "WhatRan._look_at",
        "not isinstance(record.state, Held)",
        "False",
        (RAN + "test_the_call_of_an_agent_that_is_gone_is_withdrawn_and_no_alarm",),
    ),
    Mutation(
        "what ran: after a tool nothing is held up",
        "whisper_tui.transports.hook.hook_program.run_hook",
        "if after and code != 0:\n    return 0",
        "pass",
        (AFTER + "test_after_a_tool_a_failure_is_silent_and_no_supervisor_is_started",),
    ),
    Mutation(
        "kept records: for lists only",
        "whisper_tui.supervisor.journal.store.KeptWaiting._add",
        "proven=False",
        "proven=True",
        (KEPT_WAITING + "test_a_record_that_was_exchanged_is_never_decided_about",),
    ),
    Mutation(
        "kept records: events are read before others are written",
        "whisper_tui.supervisor.journal.store.Store._written",
        "self._kept.prove_for(events)",
        "pass",
        (KEPT_WAITING + "test_a_decision_about_a_kept_record_is_applied_once_and_forgets_it",),
    ),
    Mutation(
        "no code of a project before an approved command",
        "whisper_tui.supervisor.runs.start_order._inherited",
        "not _runs_unseen(name, value, workspaces)",
        "True",
        ("tests/supervisor/test_remembering.py::test_no_file_of_a_project_runs_before_an_approved_command",),
    ),
    Mutation(
        "own shell: only for what a human approved",
        "whisper_tui.supervisor.runs.start_order._in_own_shell",
        "not record.decided_by_human",
        "False",
        (OWN_SHELL + "test_a_command_that_nobody_is_asked_about_runs_as_it_was_judged",),
    ),
    Mutation(
        "own shell: words that only the profile defines",
        "whisper_tui.policy.evaluate._doubt",
        "own is not None and own.only_there",
        "False",
        (OWN_SHELL + "test_no_rule_allows_a_word_that_only_the_profile_defines",),
    ),
    Mutation(
        "own shell: a profile that nobody has seen",
        COMMAND_FILES + "changes_shell",
        "bool(found.only_there)",
        "False",
        (OWN_SHELL + "test_the_first_command_that_needs_the_profile_is_asked_again_with_it",),
    ),
    Mutation(
        "own shell: the content of the profile",
        "whisper_tui.supervisor.approvals.resolve._with_meaning",
        "filter(None, (profile,))",
        "()",
        (OWN_SHELL + "test_a_profile_that_changes_after_the_approval_is_asked_again",),
    ),
    Mutation(
        "own shell: a profile that others can write",
        COMMAND_FILES + "_profile_text",
        "others_may_change(status, host_files.user_id())",
        "False",
        (OWN_SHELL + "test_a_profile_that_is_not_the_users_alone_is_not_read",),
    ),
    Mutation(
        "own shell: a profile from another directory",
        "whisper_tui.agents.claude._shell_profile",
        """found.startswith(f"{home.rstrip('/')}/shell-snapshots/snapshot-")""",
        "True",
        (OWN_SHELL + "test_a_profile_that_is_not_the_users_alone_is_not_read",),
    ),
    Mutation(
        "own shell: another process in the session",
        "whisper_tui.supervisor.sessions.Sessions._resume",
        "not same",
        "False",
        ("tests/supervisor/test_remembering.py::test_another_process_gets_no_variables_of_the_shell_before_it",),
    ),
    Mutation(
        "the files of an edit just before the answer",
        "whisper_tui.transports.hook.edit_answers.approved_contents",
        "(None if content is None else hashlib.sha256(content).hexdigest()) != file.before",
        "False",
        (EDIT_ANSWERS + "test_a_file_that_appears_makes_the_approval_of_a_new_one_void",),
    ),
    Mutation(
        "a path that programs expand",
        "whisper_tui.agents.agent_tools.absolute_path",
        'given[0] == "~" or given != given.strip()',
        "False",
        (TOOL_CALLS + "test_a_call_of_another_shape_is_refused",),
    ),
    Mutation(
        "a host that programs read differently",
        "whisper_tui.agents.agent_tools._host_of",
        'not url.isascii() or not url.isprintable() or re.search(r"[\\s\\\\]", url)',
        "False",
        (TOOL_CALLS + "test_a_host_is_named_only_where_every_program_reads_the_same_one",),
    ),
    Mutation(
        "a gateway that asks another supervisor",
        "whisper_tui.agents.client_files.is_server",
        "len(chosen) <= 1",
        "True",
        ("tests/install/test_gateway_servers.py::test_the_hook_asks_about_servers_that_only_look_like_this_gateway",),
    ),
    Mutation(
        "a call from a shell that is asked for again",
        "whisper_tui.transports.shell_call.ShellCallEndpoint._answer",
        "tool.request(said.arguments, key=said.nonce)",
        "tool.request(said.arguments)",
        ("tests/transports/test_call_endpoint.py::test_the_same_nonce_is_the_same_call",),
    ),
    Mutation(
        "the fingerprint of what was seen",
        "whisper_tui.supervisor.approvals.approval_queue.ApprovalQueue.decide",
        "seen != record.seen_digest()",
        "False",
        (DECIDING + "test_a_decision_about_something_else_than_was_seen_is_refused",),
    ),
    Mutation(
        "the first decision wins",
        "whisper_tui.supervisor.approvals.approval_queue.ApprovalQueue._waiting",
        "not isinstance(record.state, Waiting)",
        "False",
        (DECIDING + "test_the_first_decision_wins",),
    ),
    Mutation(
        "an edited command is judged",
        "whisper_tui.supervisor.approvals.approval_queue.ApprovalQueue._approve",
        'judged.verdict.kind == "refuse"',
        "False",
        (DECIDING + "test_an_edit_into_a_denied_command_is_refused_and_the_call_still_waits",),
    ),
    Mutation(
        "the second look before the start",
        "whisper_tui.supervisor.runs.pool.Pool._launch",
        "self._judge.judge_again(record, self.placed.examined(record))",
        "None",
        (
            DECIDING + "test_a_program_swapped_after_the_approval_is_asked_again",
            SWAPS + "test_a_working_directory_that_became_a_link_to_elsewhere_is_noticed",
        ),
    ),
    Mutation(
        "the second look at a place",
        "whisper_tui.supervisor.approvals.placed_calls.PlacedCalls.is_ready",
        "not record.spec.place or self._usable(record) is not None",
        "True",
        (THERE + "test_what_was_unknown_when_it_was_approved_is_asked_again_once_it_is_known",),
    ),
    Mutation(
        "no answers of two machines in one examination",
        "whisper_tui.supervisor.places.place_files.examine_at",
        "asked.hello is not user",
        "False",
        (
            "tests/supervisor/places/test_place_files.py::"
            "test_answers_of_a_place_that_was_made_anew_meanwhile_are_not_mixed",
        ),
    ),
    Mutation(
        "files that were approved",
        "whisper_tui.supervisor.approvals.judge.Judge._unlike_before",
        "by_human and any(changed_files(before, again.resolved))",
        "False",
        (SWAPS + "test_a_program_that_was_swapped_does_not_run_and_the_human_is_asked_again",),
    ),
    Mutation(
        "scripts that were approved",
        "whisper_tui.supervisor.approvals.command_files.file_stamps",
        "[program, *scripts]",
        "[program]",
        (SWAPS + "test_a_script_that_was_changed_is_noticed",),
    ),
    Mutation(
        "the change time of a file",
        "whisper_tui.system.run_files.stamp_of",
        "found.st_ctime_ns",
        "0",
        (SWAPS + "test_a_program_that_was_swapped_does_not_run_and_the_human_is_asked_again",),
    ),
    Mutation(
        "the directory at the start itself",
        "whisper_tui.supervisor.keeper.spawn.check_unchanged",
        "(here := _current_directory()) != expected",
        "(here := _current_directory()) == 0",
        (SWAPS + "test_a_directory_that_is_swapped_after_the_last_look_starts_nothing",),
    ),
    Mutation(
        "the files at the start itself",
        "whisper_tui.supervisor.keeper.spawn.check_unchanged",
        "stamp(path) != known",
        "False",
        (SWAPS + "test_a_program_that_is_swapped_after_the_last_look_starts_nothing",),
    ),
    Mutation(
        "a start is on the disk before it happens",
        "whisper_tui.supervisor.runs.pool._JournaledStarts.take",
        "flush is None or flush.is_set()",
        "True",
        ("tests/mutations/test_journal_first.py::test_a_start_is_flushed_to_the_disk_before_the_order_is_given",),
    ),
    Mutation(
        "a call that begins as it is submitted is on the disk before its caller hears of it",
        "whisper_tui.supervisor.approvals.approval_queue._must_last",
        "Granted | GrantRevoked | DenialAdded | DenialLifted | Started",
        "Granted | GrantRevoked | DenialAdded | DenialLifted",
        (FUNCTIONS + "test_a_call_that_a_rule_allows_is_submitted_and_begun_in_one_write",),
    ),
    Mutation(
        "a call that begins as it is submitted begins once",
        "whisper_tui.supervisor.supervisor.Supervisor.submit_and_begin",
        "bool(begun)",
        "True",
        (FUNCTIONS + "test_a_call_that_another_one_joins_is_begun_for_the_first_alone",),
    ),
    Mutation(
        "an attempt is claimed once",
        "whisper_tui.supervisor.keeper.channels.take",
        "os.symlink(run_files.RUN, os.path.join(directory, run_files.CLAIM))",
        "pass",
        ("tests/supervisor/engine/test_recovery.py::test_an_attempt_that_nobody_took_up_is_revoked_and_never_runs",),
    ),
    Mutation(
        "the secret of a ticket",
        "whisper_tui.supervisor.approvals.handover.Tickets._checked",
        "not hmac.compare_digest(record.call.ticket.encode(), ticket.encode())",
        "False",
        (TICKETS + "test_an_approved_call_with_a_ticket_waits_until_it_is_shown",),
    ),
    Mutation(
        "a ticket is good once",
        "whisper_tui.supervisor.approvals.handover.Tickets._check_held",
        'raise Refused(f"the ticket of call {record.id} was used before", hint="Run the command again")',
        "return",
        (TICKETS + "test_a_ticket_starts_one_run_and_its_claimer_may_say_so_again",),
    ),
    Mutation(
        "a ticket of another agent",
        "whisper_tui.transports.hook.exec_endpoint.ExecEndpoint._check",
        "not await asyncio.to_thread(self._descends, socket, session.pid)",
        "False",
        ("tests/cli/test_exec.py::test_a_ticket_of_another_session_runs_nothing",),
    ),
    Mutation(
        "the directory of a ticket",
        "whisper_tui.transports.hook.exec_endpoint.ExecEndpoint._check",
        "asked != here",
        "False",
        ("tests/cli/test_exec.py::test_a_command_does_not_run_in_another_directory_than_was_approved",),
    ),
    Mutation(
        "the end of a run whose agent makes no sense",
        "whisper_tui.transports.hook.exec_endpoint._RunConnection.serve",
        "await self._end_run()\nraise",
        "raise",
        ("tests/fuzz/test_hooks.py::test_pieces_of_any_shape_end_the_run_of_a_ticket_and_nothing_else",),
    ),
    Mutation(
        "gate: only the hook's own line runs unasked",
        GATE + "run_gate",
        "is_own(gate.client, line) or is_approved_line(gate, line.command)",
        "True",
        (GATE_TESTS + "test_a_command_in_the_place_of_the_approved_one_is_held_in_the_same_session",),
    ),
    Mutation(
        "gate: nothing behind the line of a ticket",
        GATE + "is_approved_line",
        "return not rest or rest == f\"&& cd -P {shlex.quote(f'{gate.directories}/{ticket}')}\"",
        "return True",
        (SHELL_LINES + "test_no_other_line_is",),
    ),
    Mutation(
        "gate: the directories of this whisper_tui",
        GATE + "is_approved_line",
        "not gate.usual",
        "False",
        (SHELL_LINES + "test_no_other_line_is",),
    ),
    Mutation(
        "gate: a command inside of quotes is no line of the client",
        "whisper_tui.agents.shell_lines.shell_line",
        "not _is_whole(found.string[: found.start()])",
        "False",
        (SHELL_LINES + "test_an_unknown_form_of_claude_code_is_a_command_as_a_whole",),
    ),
    Mutation(
        "gate: the client's own questions have their own form",
        "whisper_tui.agents.shell_lines.is_own",
        'client != "claude"',
        "False",
        (SHELL_LINES + "test_what_claude_code_itself_asks_of_its_shell_is_its_own",),
    ),
    Mutation(
        "gate: variables with which a shell runs other text",
        GATE + "environment_of",
        "name not in FORBIDDEN and not _shadows(name)",
        "True",
        (SHELL_LINES + "test_nothing_of_a_project_runs_before_the_text",),
    ),
    Mutation(
        "gate: no commands on standard input",
        GATE + "_without_text",
        "options and os.isatty(0) and os.isatty(1)",
        "True",
        (GATE_TESTS + "test_commands_on_standard_input_and_scripts_do_not_run",),
    ),
    Mutation(
        "gate: an approved call is known by its text only before it starts",
        "whisper_tui.supervisor.approvals.admission.Deduplicator._waits",
        "isinstance(self._store.call(call_id).state, Unjudged | Waiting | Held)",
        "False",
        (GATE_TESTS + "test_the_approved_text_itself_needs_no_second_approval",),
    ),
)
