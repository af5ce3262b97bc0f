"""Nobody takes memory, files or places without end."""

from tests.mutations.mutation import Mutation

BOUNDS = "tests/wire/test_bounds.py::"
CAPACITY = "tests/supervisor/test_capacity.py::"
MEMORY = CAPACITY + "test_calls_that_wait_take_no_more_memory_than_there_is_for_them"
KEEPABLE = "tests/supervisor/test_keepable.py::"
ROOM = "tests/mutations/test_connection_limits.py::"
HTTP = "tests/transports/test_http.py::"
OVER_HTTP = "tests/transports/test_http_protocol.py::"

STARTING = "tests/supervisor/test_starting.py::"

FAR = "tests/cli/test_far_ends.py::"
FEDERATION = "tests/wire/test_federation.py::"

WHAT_IS_BOUNDED = (
    Mutation(
        "the answer of another machine",
        "whisper_tui.cli.far_output.answer_of",
        "len(out) > LARGEST_ANSWER",
        "False",
        (FAR + "test_an_endless_answer_is_ended_and_its_machine_named[1-list --json --host evil]",),
    ),
    Mutation(
        "the answers of all machines",
        "whisper_tui.cli.far_output.Allowance.take",
        "self._left < 0",
        "False",
        (FAR + "test_the_answers_of_all_machines_are_bounded_together",),
    ),
    Mutation(
        "questions of ssh to scripts",
        "whisper_tui.system.ssh_command.ssh_command",
        "() if may_ask else BATCH",
        "()",
        (FAR + "test_ssh_neither_asks_a_script_nor_waits_for_a_silent_machine",),
    ),
    Mutation(
        "what ssh says without end",
        "whisper_tui.cli.far_output.LastWords._read",
        "(self._kept + data)[-LAST_WORDS:]",
        "self._kept + data",
        (FAR + "test_a_far_machine_that_talks_without_end_fills_neither_disk_nor_memory",),
    ),
    Mutation(
        "events of another machine that make up no board",
        "whisper_tui.wire.federation.FederatedHost._receive",
        "self._first_unsound(news)",
        "None",
        (FEDERATION + "test_a_machine_whose_events_make_up_no_board_breaks_no_other_one",),
    ),
    Mutation(
        "a board of another machine that is never whole",
        "whisper_tui.wire.client.follow",
        "left < 0",
        "False",
        (FEDERATION + "test_a_first_board_that_never_becomes_whole_is_given_up",),
    ),
    Mutation(
        "the memory that starts leave available",
        "whisper_tui.supervisor.runs.scheduling.Workers.obstacle",
        "self._memory.problem()",
        '""',
        (STARTING + "TestMemory::test_no_command_starts_while_too_little_memory_is_available",),
    ),
    Mutation(
        "the reserve for commands that have just started",
        "whisper_tui.supervisor.runs.scheduling.MemoryGauge.problem",
        "self._found - RESERVE * len(self._starts)",
        "self._found",
        (STARTING + "TestMemory::test_calls_that_are_approved_at_once_do_not_all_count_on_the_same_memory",),
    ),
    Mutation(
        "the number of unasked commands that run",
        "whisper_tui.supervisor.runs.scheduling.Workers.obstacle",
        "count < most",
        "True",
        (STARTING + "TestWorkers::test_long_unasked_commands_of_all_sessions_have_a_limit",),
    ),
    Mutation(
        "the half of them that one agent gets",
        "whisper_tui.supervisor.runs.scheduling.StartQueue._may_start",
        "self._workers.obstacle_of(owner) is None",
        "True",
        (STARTING + "TestWorkers::test_a_long_run_frees_its_worker",),
    ),
    Mutation(
        "turns by agent",
        "whisper_tui.supervisor.sessions.SessionOwners.note",
        'opener or f"session {session.id}"',
        'f"session {session.id}"',
        ("tests/cli/test_turns.py::test_an_agent_that_opens_many_sessions_has_no_more_turns_than_another_one",),
    ),
    Mutation(
        "orphans are no agents of their own",
        "whisper_tui.system.session_opener._is_left_behind",
        "bool(above) and above[0].adopts and not oldest.foreign",
        "False",
        (
            "tests/system/test_session_opener.py::"
            "test_processes_that_left_their_terminal_or_opened_one_are_no_agents_of_their_own[orphan]",
        ),
    ),
    Mutation(
        "terminals that agents open are no agents of their own",
        "whisper_tui.system.session_opener._is_left_behind",
        'any(seen.descends_from == "agent" for seen in above)',
        "False",
        (
            "tests/system/test_session_opener.py::"
            "test_processes_that_left_their_terminal_or_opened_one_are_no_agents_of_their_own[terminal of an agent]",
        ),
    ),
    Mutation(
        "the second judgement of a call that is started anyway",
        "whisper_tui.supervisor.runs.pool.Pool.start_anyway",
        "await self._launch((record,))",
        "await self._start((record,))",
        (STARTING + "TestMemory::test_a_queued_call_that_has_changed_is_asked_about_again_instead_of_started",),
    ),
    Mutation(
        "the wake-ups of calls that are queued behind recovered runs",
        "whisper_tui.supervisor.runs.pool.Pool._work",
        "asyncio.timeout(RECHECK_S if len(self._queue) else None)",
        "asyncio.timeout(None)",
        (STARTING + "TestWorkers::test_after_a_restart_ages_are_right_and_queued_calls_start",),
    ),
    Mutation(
        "the number of connections",
        "whisper_tui.wire.server.ConnectionLimits.taken",
        "self._taken.total() >= self._most",
        "False",
        (BOUNDS + "test_a_process_has_half_of_the_connections_and_all_together_no_more_than_all",),
    ),
    Mutation(
        "the connections of one process",
        "whisper_tui.wire.server.ConnectionLimits.taken",
        "self._taken[pid] >= self._most // 2",
        "False",
        (BOUNDS + "test_connections_beyond_those_that_there_may_be_are_told_why_and_closed",),
    ),
    Mutation(
        "the share of the connections",
        "whisper_tui.wire.server.ConnectionLimits.taken",
        "self._started[origin] >= max(1, self._most // SHARES[origin])",
        "False",
        (
            ROOM + "test_a_forking_command_gets_a_quarter_and_the_human_gets_in",
            ROOM + "test_processes_of_an_agent_get_half_and_the_human_gets_in",
        ),
    ),
    Mutation(
        "connections of those that have ended",
        "whisper_tui.system.ancestry.origin_by_mark",
        'return "command"',
        "return None",
        ("tests/wire/test_peers.py::test_a_process_that_has_ended_counts_as_a_supervised_command",),
    ),
    Mutation(
        "seconds until the first line",
        "whisper_tui.wire.server.Server._receive",
        "asyncio.timeout(HELLO_S)",
        "asyncio.timeout(None)",
        (BOUNDS + "test_a_silent_client_is_told_so_and_disconnected",),
    ),
    Mutation(
        "the length of a page of history",
        "whisper_tui.model.api.Page",
        "Field(ge=0, le=LARGEST_PAGE)",
        "Field(ge=0)",
        (BOUNDS + "test_a_page_of_history_has_a_length",),
    ),
    Mutation(
        "what a session says",
        "whisper_tui.supervisor.sessions.Sessions.say",
        "not 0 < len(text) <= LONGEST_SAID",
        "False",
        ("tests/api/test_conversation.py::test_messages_have_bounds",),
    ),
    Mutation(
        "served cockpits",
        "whisper_tui.cli.web_server.CockpitSite._cockpit",
        "self._open >= MOST_COCKPITS",
        "False",
        ("tests/cli/test_serve.py::test_no_more_cockpits_are_served_than_a_bound",),
    ),
    Mutation(
        "events for those who do not read",
        "whisper_tui.wire.connection._Connection._stream",
        "del item",
        "pass",
        ("tests/fuzz/test_floods.py::test_encoded_lines_and_not_events_are_queued_for_slow_watchers",),
    ),
    Mutation(
        "the length of a line at the socket",
        "whisper_tui.wire.server.Server.listen",
        "limit=LONGEST_REQUEST",
        "limit=LONGEST_REQUEST * 16",
        ("tests/wire/test_server.py::test_a_line_that_is_too_long_is_reported_and_ends_the_connection",),
    ),
    Mutation(
        "requests under way",
        "whisper_tui.wire.connection._Connection._check_room",
        "len(self._under_way) >= MOST_IN_FLIGHT",
        "False",
        ("tests/wire/test_server.py::test_more_requests_than_anybody_needs_are_refused",),
    ),
    Mutation(
        "bytes of requests under way",
        "whisper_tui.wire.connection._Connection._check_room",
        "self._size + size > LARGEST_IN_FLIGHT",
        "False",
        (BOUNDS + "test_requests_that_are_too_long_together_are_refused_until_others_are_answered",),
    ),
    Mutation(
        "watchers of one connection",
        "whisper_tui.wire.connection._Connection._check_room",
        "operation.streams and sum(one.operation.streams for one in self._under_way.values()) >= MOST_WATCHES",
        "False",
        (BOUNDS + "test_one_connection_follows_the_events_only_so_often",),
    ),
    Mutation(
        "answers that nobody reads",
        "whisper_tui.wire.connection._Connection._wait_until_read",
        "self._writer.transport.get_write_buffer_size() > MOST_UNREAD",
        "False",
        (BOUNDS + "test_no_answer_is_produced_for_a_client_that_does_not_read",),
    ),
    Mutation(
        "the length of an answer",
        "whisper_tui.wire.connection._Connection._answer",
        "len(body) > LONGEST_ANSWER - MOST_UNREAD",
        "False",
        (BOUNDS + "test_an_answer_that_no_client_would_take_is_refused",),
    ),
    Mutation(
        "calls of a session",
        "whisper_tui.supervisor.approvals.admission.Capacity.check",
        "calls >= MOST_OF_A_SESSION",
        "False",
        (CAPACITY + "test_a_session_has_a_limit_of_calls_and_the_others_continue",),
    ),
    Mutation(
        "calls of all sessions",
        "whisper_tui.supervisor.approvals.admission.Capacity.check",
        "calls >= MOST_CALLS",
        "False",
        (CAPACITY + "test_all_together_have_so_many_calls_also_after_a_restart",),
    ),
    Mutation(
        "memory of a session's calls",
        "whisper_tui.supervisor.approvals.admission.Capacity.check",
        "self._of_session[session_id] + size > LARGEST_OF_A_SESSION",
        "False",
        (MEMORY + "[LARGEST_OF_A_SESSION-calls of session s1]",),
    ),
    Mutation(
        "memory of all calls",
        "whisper_tui.supervisor.approvals.admission.Capacity.check",
        "self.taken + size > LARGEST",
        "False",
        (MEMORY + "[LARGEST-the calls that wait or run]",),
    ),
    Mutation(
        "sessions that are open",
        "whisper_tui.supervisor.sessions.Sessions._check_room",
        "opened >= MOST_SESSIONS",
        "False",
        (CAPACITY + "test_no_more_sessions_are_opened_than_anybody_has_agents",),
    ),
    Mutation(
        "the length of a call",
        "whisper_tui.supervisor.journal.journal.check_storable",
        "len(text) > largest",
        "False",
        (
            KEEPABLE + "test_calls_that_the_journal_cannot_store_are_refused[large]",
            KEEPABLE + "test_a_reason_that_is_too_large_decides_nothing",
        ),
    ),
    Mutation(
        "what the journal could not give back",
        "whisper_tui.supervisor.journal.journal.check_storable",
        "not same",
        "False",
        (KEEPABLE + "test_calls_that_the_journal_cannot_store_are_refused[deep]",),
    ),
    Mutation(
        "the length of an environment",
        "whisper_tui.supervisor.sessions._check_environment",
        "size > LARGEST_ENVIRONMENT",
        "False",
        (KEEPABLE + "test_an_environment_that_is_too_large_is_refused_and_nothing_is_opened",),
    ),
    Mutation(
        "the length of a message of MCP",
        "whisper_tui.transports.json_lines.LineCutter.cut",
        "len(self._held) > self._longest",
        "False",
        (
            "tests/transports/test_mcp_refusals.py::"
            "test_a_message_beyond_all_bounds_is_refused_and_the_connection_goes_on",
        ),
    ),
    Mutation(
        "the length of a hook's question",
        "whisper_tui.transports.hook.hook_program._stdin",
        "len(held) > LONGEST_INPUT",
        "False",
        ("tests/cli/test_hook.py::test_a_question_without_end_is_refused_before_it_is_read_whole",),
    ),
    Mutation(
        "the length of a piece of input",
        "whisper_tui.transports.hook.exec_program.Frames.feed",
        "length > LARGEST",
        "False",
        ("tests/transports/hooks/test_frames.py::test_a_piece_that_is_too_long_is_refused_before_it_is_held",),
    ),
    Mutation(
        "connections over HTTP",
        "whisper_tui.transports.loopback_http.BoundedProtocol.connection_made",
        "len(self.connections) > MOST_CONNECTIONS and not self._evict_a_silent_connection()",
        "False",
        (OVER_HTTP + "test_connections_beyond_those_that_there_may_be_are_told_so_and_closed",),
    ),
    Mutation(
        "silent connections over HTTP",
        "whisper_tui.transports.loopback_http.BoundedProtocol._end_if_silent",
        "self.cycle is None",
        "False",
        (OVER_HTTP + "test_a_connection_that_begins_no_request_is_ended_and_one_that_did_is_not",),
    ),
    Mutation(
        "the length of a message over HTTP",
        "whisper_tui.transports.mcp.http_site._body",
        "len(held) > LARGEST",
        "False",
        ("tests/fuzz/test_http.py::test_a_body_without_end_is_refused_before_it_is_held_whole",),
    ),
    Mutation(
        "sessions over HTTP",
        "whisper_tui.transports.mcp.http_site.McpSite._evict_an_idle_session",
        "len(self._sessions) >= MOST_SESSIONS",
        "False",
        (HTTP + "test_there_are_no_more_sessions_than_a_bound",),
    ),
)
