"""Nobody takes memory, files or places without end."""

from tests.defences.defence import Defence

BOUNDS = "tests/wire/test_bounds.py::"
CAPACITY = "tests/supervisor/test_capacity.py::"
MEMORY = CAPACITY + "test_calls_that_wait_take_no_more_memory_than_there_is_for_them"
KEEPABLE = "tests/supervisor/test_keepable.py::"
ROOM = "tests/defences/test_room_at_the_socket.py::"
HTTP = "tests/transports/test_http.py::"
OVER_HTTP = "tests/transports/test_http_protocol.py::"

WHAT_IS_BOUNDED = (
    Defence(
        "the number of connections",
        "whisper_tui/wire/places.py",
        "        if self._taken.total() >= self._most:\n",
        "        if False:\n",
        (BOUNDS + "test_a_process_has_half_of_the_connections_and_all_together_no_more_than_all",),
    ),
    Defence(
        "the connections of one process",
        "whisper_tui/wire/places.py",
        "        if self._taken[pid] >= self._most // 2:\n",
        "        if False:\n",
        (BOUNDS + "test_connections_beyond_those_that_there_may_be_are_told_why_and_closed",),
    ),
    Defence(
        "the share of the connections",
        "whisper_tui/wire/places.py",
        "if origin is not None and self._started[origin] >=",
        "if origin is not None and self._most <",
        (
            ROOM + "test_a_command_that_forks_holds_a_quarter_and_the_human_gets_in",
            ROOM + "test_what_an_agent_starts_holds_half_and_the_human_gets_in",
        ),
    ),
    Defence(
        "connections of those that have ended",
        "whisper_tui/wire/peers.py",
        '    except OSError:\n        return "command"\n',
        "    except OSError:\n        return None\n",
        ("tests/wire/test_peers.py::test_a_process_that_is_gone_counts_as_a_commands",),
    ),
    Defence(
        "seconds until the first line",
        "whisper_tui/wire/server.py",
        "            async with asyncio.timeout(HELLO_S):\n",
        "            async with asyncio.timeout(None):\n",
        (BOUNDS + "test_who_says_nothing_is_told_so_and_let_go",),
    ),
    Defence(
        "the length of a page of history",
        "whisper_tui/model/port.py",
        "Page = Annotated[int, Field(ge=0, le=LARGEST_PAGE)]",
        "Page = Annotated[int, Field(ge=0)]",
        (BOUNDS + "test_a_page_of_history_has_a_length",),
    ),
    Defence(
        "what a session says",
        "whisper_tui/supervisor/sessions.py",
        "        if not 0 < len(text) <= LONGEST_SAID:\n",
        "        if False:\n",
        ("tests/port/test_conversation.py::test_what_is_said_has_bounds",),
    ),
    Defence(
        "served cockpits",
        "whisper_tui/cli/serving.py",
        "        if self._open >= MOST_COCKPITS:\n",
        "        if False:\n",
        ("tests/cli/test_serve.py::test_no_more_cockpits_are_served_than_a_bound",),
    ),
    Defence(
        "events for those who do not read",
        "whisper_tui/wire/port_door.py",
        "            del item\n",
        "",
        ("tests/fuzz/test_floods.py::test_watching_without_reading_holds_lines_and_not_what_they_were_made_of",),
    ),
    Defence(
        "the length of a line at the socket",
        "whisper_tui/wire/server.py",
        "limit=LONGEST_REQUEST",
        "limit=LONGEST_REQUEST * 16",
        ("tests/wire/test_server.py::test_a_line_that_is_too_long_is_said_and_ends_the_connection",),
    ),
    Defence(
        "requests under way",
        "whisper_tui/wire/port_door.py",
        "        if len(self._under_way) >= MOST_IN_FLIGHT:\n",
        "        if False:\n",
        ("tests/wire/test_server.py::test_more_requests_than_anybody_needs_are_refused",),
    ),
    Defence(
        "bytes of requests under way",
        "whisper_tui/wire/port_door.py",
        "        if self._size + size > LARGEST_IN_FLIGHT:\n",
        "        if False:\n",
        (BOUNDS + "test_requests_that_are_too_long_together_are_refused_until_others_are_answered",),
    ),
    Defence(
        "watchers of one connection",
        "whisper_tui/wire/port_door.py",
        "if operation.streams and sum(one.operation.streams for one in self._under_way.values()) >= MOST_WATCHES:",
        "if False:",
        (BOUNDS + "test_one_connection_follows_the_events_only_so_often",),
    ),
    Defence(
        "answers that nobody reads",
        "whisper_tui/wire/port_door.py",
        "        while self._writer.transport.get_write_buffer_size() > UNTAKEN:\n",
        "        while False:\n",
        (BOUNDS + "test_nothing_is_made_for_a_client_that_does_not_read_its_answers",),
    ),
    Defence(
        "the length of an answer",
        "whisper_tui/wire/port_door.py",
        "        if len(body) > LONGEST_ANSWER - UNTAKEN:\n",
        "        if False:\n",
        (BOUNDS + "test_an_answer_that_no_client_would_take_is_refused",),
    ),
    Defence(
        "calls of a session",
        "whisper_tui/supervisor/capacity.py",
        "        if calls >= MOST_OF_A_SESSION:\n",
        "        if False:\n",
        (CAPACITY + "test_a_session_has_so_many_calls_and_the_others_go_on",),
    ),
    Defence(
        "calls of all sessions",
        "whisper_tui/supervisor/capacity.py",
        "        if calls >= MOST_CALLS:\n",
        "        if False:\n",
        (CAPACITY + "test_all_together_have_so_many_calls_also_after_a_restart",),
    ),
    Defence(
        "memory of a session's calls",
        "whisper_tui/supervisor/capacity.py",
        "        if self._of_session[session_id] + size > LARGEST_OF_A_SESSION:\n",
        "        if False:\n",
        (MEMORY + "[LARGEST_OF_A_SESSION-calls of session s1]",),
    ),
    Defence(
        "memory of all calls",
        "whisper_tui/supervisor/capacity.py",
        "        if self.taken + size > LARGEST:\n",
        "        if False:\n",
        (MEMORY + "[LARGEST-the calls that wait or run]",),
    ),
    Defence(
        "sessions that are open",
        "whisper_tui/supervisor/sessions.py",
        "            if opened >= MOST_SESSIONS:\n",
        "            if False:\n",
        (CAPACITY + "test_no_more_sessions_are_opened_than_anybody_has_agents",),
    ),
    Defence(
        "the length of a call",
        "whisper_tui/supervisor/keepable.py",
        "    if len(text) > LARGEST:\n",
        "    if False:\n",
        (
            KEEPABLE + "test_what_the_journal_cannot_keep_as_it_is_is_refused_and_the_next_start_succeeds[large]",
            KEEPABLE + "test_a_reason_that_is_too_large_decides_nothing",
        ),
    ),
    Defence(
        "what the journal could not give back",
        "whisper_tui/supervisor/keepable.py",
        "    if not same:\n",
        "    if False:\n",
        (KEEPABLE + "test_what_the_journal_cannot_keep_as_it_is_is_refused_and_the_next_start_succeeds[deep]",),
    ),
    Defence(
        "the length of an environment",
        "whisper_tui/supervisor/sessions.py",
        "    if size > LARGEST_ENVIRONMENT:\n",
        "    if False:\n",
        (KEEPABLE + "test_an_environment_that_is_too_large_is_refused_and_nothing_is_opened",),
    ),
    Defence(
        "the length of a message of MCP",
        "whisper_tui/transports/mcp_lines.py",
        "        if len(held) > LONGEST_LINE:\n",
        "        if False:\n",
        (
            "tests/transports/test_mcp_refusals.py::"
            "test_a_message_beyond_all_bounds_is_refused_and_the_connection_goes_on",
        ),
    ),
    Defence(
        "the length of a hook's question",
        "whisper_tui/transports/hooks/program.py",
        "        if len(held) > LONGEST_INPUT:\n",
        "        if False:\n",
        ("tests/cli/test_hook.py::test_a_question_without_end_is_refused_before_it_is_read_whole",),
    ),
    Defence(
        "the length of a piece of input",
        "whisper_tui/transports/hooks/frames.py",
        "            if length > LARGEST:\n",
        "            if False:\n",
        ("tests/transports/hooks/test_frames.py::test_a_piece_that_is_too_long_is_refused_before_it_is_held",),
    ),
    Defence(
        "connections over HTTP",
        "whisper_tui/transports/http_protocol.py",
        "        if len(self.connections) > MOST_CONNECTIONS and not self._take_the_place_of_a_silent_one():\n",
        "        if False:\n",
        (OVER_HTTP + "test_connections_beyond_those_that_there_may_be_are_told_so_and_closed",),
    ),
    Defence(
        "silent connections over HTTP",
        "whisper_tui/transports/http_protocol.py",
        "        if self.cycle is None:\n",
        "        if False:\n",
        (OVER_HTTP + "test_a_connection_that_begins_no_request_is_ended_and_one_that_did_is_not",),
    ),
    Defence(
        "the length of a message over HTTP",
        "whisper_tui/transports/http_site.py",
        "        if len(held) > LARGEST:\n",
        "        if False:\n",
        ("tests/fuzz/test_http.py::test_a_body_without_end_is_refused_before_it_is_held_whole",),
    ),
    Defence(
        "sessions over HTTP",
        "whisper_tui/transports/http_site.py",
        "        if len(self._sessions) >= MOST_SESSIONS:\n",
        "        if False:\n",
        (HTTP + "test_there_are_no_more_sessions_than_a_bound",),
    ),
)
