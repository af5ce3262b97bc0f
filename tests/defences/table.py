"""The defences: where each stands, what is left without it, and the tests that must then fail."""

from typing import NamedTuple


class Defence(NamedTuple):
    """One thing that keeps somebody out. `text` stands exactly once in `file`; `instead` is what removes it."""

    name: str
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]
    """Tests as pytest names them, with or without their parameters; each of them fails once the defence is gone."""


WHO = "tests/defences/test_who_may_decide.py::"
FROM_COMMAND = WHO + "test_no_verb_is_obeyed_from_inside_a_supervised_command[as it is]"
FROM_ITS_ORPHAN = FROM_COMMAND.replace("as it is", "its keeper killed, double forked, with an empty environment")
FROM_AGENT = WHO + "test_no_verb_is_obeyed_from_what_a_connected_agent_has_started[as it is]"
FROM_ITS_DAEMON = FROM_AGENT.replace("as it is", "double forked")
PEERS = "tests/wire/test_peers.py::"
SWAPS = "tests/defences/test_swaps.py::"
SERVER = "tests/wire/test_server.py::"
HTTP = "tests/transports/test_http.py::"
SERVE = "tests/cli/test_serve.py::"
DECIDING = "tests/supervisor/test_deciding.py::"
EVALUATE = "tests/policy/test_evaluate.py::"
GUARD = "tests/tui/test_guard.py::"
PRIVATE = "tests/defences/test_private_files.py::"
REFUSED = "tests/defences/test_refused_attempts.py::"
TICKETS = "tests/port/test_tickets.py::"
READERS = "tests/defences/test_two_readers.py::"

WHO_MAY_DECIDE = (
    Defence(
        "a keeper among the ancestors",
        "whisper_tui/wire/peers.py",
        "if seen.pid in keepers or seen.keeper:",
        "if False:",
        (PEERS + "test_whatever_descends_from_a_keeper_of_a_living_run_may_not",),
    ),
    Defence(
        "the environment of a supervised command",
        "whisper_tui/wire/peers.py",
        "        if seen.marked:\n",
        "        if False:\n",
        (PEERS + "test_whatever_has_the_environment_of_a_supervised_command_may_not",),
    ),
    Defence(
        "the mark of what keepers start",
        "whisper_tui/supervisor/keeper/zygote.py",
        "    mark.put_on()\n",
        "",
        (FROM_ITS_ORPHAN, WHO + "test_what_a_command_starts_bears_a_mark_that_we_do_not"),
    ),
    Defence(
        "an agent among the ancestors",
        "whisper_tui/wire/peers.py",
        "if (agent := agents.get((seen.pid, seen.start))) is not None:",
        "if (agent := agents.get((-1, seen.start))) is not None:",
        (PEERS + "test_what_a_connected_agent_has_started_may_not_and_the_agents_own_process_may",),
    ),
    Defence(
        "the mark of what agents start",
        "whisper_tui/wire/agents.py",
        "        mark.put_on_agent(seen.pid)\n",
        "",
        (FROM_ITS_DAEMON,),
    ),
    Defence(
        "an agent that somebody else names",
        "whisper_tui/wire/origin.py",
        "    elif not await asyncio.to_thread(descends, connection, pid):\n",
        "    elif False:\n",
        (PEERS + "test_whoever_names_an_agent_that_it_does_not_come_from_is_turned_away",),
    ),
    Defence(
        "the supervisor's own ancestors are no agents",
        "whisper_tui/wire/agents.py",
        "None if any(seen.pid == pid for seen in ours) else self._look(pid)",
        "self._look(pid)",
        (PEERS + "test_nothing_that_the_supervisor_descends_from_is_taken_for_an_agent",),
    ),
    Defence(
        "an agent's pid that another process has by now",
        "whisper_tui/wire/peers.py",
        "agents.get((seen.pid, seen.start))",
        "{pid: name for (pid, _), name in agents.items()}.get(seen.pid)",
        (PEERS + "test_a_process_that_has_only_the_pid_of_an_agent_that_ended_is_no_agent",),
    ),
    Defence(
        "who cannot be looked at",
        "whisper_tui/wire/peers.py",
        "    if line is None or line[0].foreign:\n",
        "    if line is None:\n        return None\n    if False:\n",
        (PEERS + "test_whoever_cannot_be_looked_at_may_not",),
    ),
    Defence(
        "a connection whose process has ended",
        "whisper_tui/wire/peers.py",
        "        return bool(ended.poll(0))\n",
        "        return False\n",
        (WHO + "test_a_process_that_has_connected_and_ended_is_told_from_one_that_has_its_pid_later",),
    ),
    Defence(
        "the look at who asks",
        "whisper_tui/wire/visitor.py",
        "        if objection is None:\n            return\n",
        "        if objection is None or True:\n            return\n",
        (FROM_COMMAND, FROM_AGENT, PEERS + "test_a_supervised_command_cannot_approve"),
    ),
    Defence(
        "the guard of a verb",
        "whisper_tui/wire/operations.py",
        '_operation(Supervision.revoke, "decides")',
        "_operation(Supervision.revoke)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Defence(
        "sessions of others",
        "whisper_tui/wire/visitor.py",
        '(request.session_id if request is not None else given["session_id"]) in self._sessions',
        "True",
        (FROM_COMMAND, "tests/wire/test_saying.py::test_a_supervised_command_cannot_tell_an_agent_what_to_do"),
    ),
    Defence(
        "calls of others",
        "whisper_tui/wire/visitor.py",
        'return given["call_id"] in self._calls',
        "return True",
        (FROM_COMMAND,),
    ),
    Defence(
        "the record of refused attempts",
        "whisper_tui/wire/refusals.py",
        "            self._record(attempt)\n",
        "            pass\n",
        (REFUSED + "test_who_tried_what_from_which_call_is_in_the_journal_and_in_the_history",),
    ),
    Defence(
        "the bound of that record",
        "whisper_tui/wire/refusals.py",
        "        if self._room < 1:\n",
        "        if False:\n",
        (REFUSED + "test_a_flood_is_counted_and_not_recorded",),
    ),
    Defence(
        "rules files from inside",
        "whisper_tui/cli/outside.py",
        "    if problem is not None:\n",
        "    if False:\n",
        (WHO + "test_no_verb_that_writes_the_users_rules_is_obeyed_from_inside_a_supervised_command",),
    ),
    Defence(
        "another user at the socket",
        "whisper_tui/wire/server.py",
        "    if uid != os.geteuid():\n",
        "    if False:\n",
        (PRIVATE + "test_another_user_is_turned_away_even_where_the_directory_lets_them_in",),
    ),
)

WHAT_WAS_APPROVED = (
    Defence(
        "the fingerprint of what was seen",
        "whisper_tui/supervisor/desk.py",
        "        if seen != record.seen_digest():\n",
        "        if False:\n",
        (DECIDING + "test_a_decision_about_something_else_than_was_seen_is_refused",),
    ),
    Defence(
        "the first decision wins",
        "whisper_tui/supervisor/desk.py",
        "        if not isinstance(record.state, Waiting):\n",
        "        if False:\n",
        (DECIDING + "test_the_first_decision_wins",),
    ),
    Defence(
        "an edited command is judged",
        "whisper_tui/supervisor/desk.py",
        '            if judged.verdict.kind == "refuse":\n                raise Refused(\n',
        "            if False:\n                raise Refused(\n",
        (DECIDING + "test_an_edit_into_a_denied_command_is_refused_and_the_call_still_waits",),
    ),
    Defence(
        "the second look before the start",
        "whisper_tui/supervisor/pool.py",
        "        again = self._judge.judge_again(record)\n",
        "        again = None\n",
        (
            DECIDING + "test_a_program_swapped_after_the_approval_is_asked_again",
            SWAPS + "test_a_working_directory_that_became_a_link_to_elsewhere_is_noticed",
        ),
    ),
    Defence(
        "files that were approved",
        "whisper_tui/supervisor/judge.py",
        "(by_human and any(changed_files(before, again.resolved)))",
        "False",
        (SWAPS + "test_a_program_that_was_swapped_does_not_run_and_the_human_is_asked_again",),
    ),
    Defence(
        "scripts that were approved",
        "whisper_tui/supervisor/files_behind.py",
        "filter(None, (meaning.program, _script(meaning.words, cwd)))",
        "filter(None, (meaning.program,))",
        (SWAPS + "test_a_script_that_was_changed_is_noticed",),
    ),
    Defence(
        "the change time of a file",
        "whisper_tui/supervisor/keeper/stamp.py",
        ".{found.st_ctime_ns:x}",
        "",
        (SWAPS + "test_a_program_that_was_swapped_does_not_run_and_the_human_is_asked_again",),
    ),
    Defence(
        "the directory at the start itself",
        "whisper_tui/supervisor/keeper/spawn.py",
        "    if expected is not None and (here := _here()) != expected:\n",
        "    if expected is not None and (here := _here()) == 0:\n",
        (SWAPS + "test_a_directory_that_is_swapped_after_the_last_look_starts_nothing",),
    ),
    Defence(
        "the files at the start itself",
        "whisper_tui/supervisor/keeper/spawn.py",
        "        if stamp(path) != known:\n",
        "        if False:\n",
        (SWAPS + "test_a_program_that_is_swapped_after_the_last_look_starts_nothing",),
    ),
    Defence(
        "a start is on the disk before it happens",
        "whisper_tui/supervisor/pool.py",
        "for record in records), durable=True)",
        "for record in records), durable=False)",
        ("tests/defences/test_journal_first.py::test_a_start_is_flushed_to_the_disk_before_the_order_is_given",),
    ),
    Defence(
        "an attempt is claimed once",
        "whisper_tui/supervisor/keeper/job.py",
        "        os.symlink(layout.RUN, os.path.join(directory, layout.CLAIM))\n",
        "        pass\n",
        ("tests/supervisor/engine/test_recovery.py::test_an_attempt_that_nobody_took_up_is_revoked_and_never_runs",),
    ),
    Defence(
        "the secret of a ticket",
        "whisper_tui/supervisor/claims.py",
        "not hmac.compare_digest(record.call.ticket.encode(), ticket.encode())",
        "False",
        (TICKETS + "test_an_approved_call_with_a_ticket_waits_until_it_is_shown",),
    ),
    Defence(
        "a ticket is good once",
        "whisper_tui/supervisor/claims.py",
        'raise Refused(f"the ticket of call {record.id} was used before", hint="Run the command again")',
        "return",
        (TICKETS + "test_a_ticket_starts_one_run_and_its_claimer_may_say_so_again",),
    ),
    Defence(
        "a ticket of another agent",
        "whisper_tui/transports/hooks/run_door.py",
        "            if not await asyncio.to_thread(self._descends, socket, session.pid):\n",
        "            if False:\n",
        ("tests/cli/test_hook.py::test_a_ticket_of_another_session_runs_nothing",),
    ),
    Defence(
        "the directory of a ticket",
        "whisper_tui/transports/hooks/run_door.py",
        "        if approved != here:\n",
        "        if False:\n",
        ("tests/cli/test_hook.py::test_a_command_does_not_run_in_another_directory_than_was_approved",),
    ),
)

WHAT_IS_ALLOWED = (
    Defence(
        "deny beats allow",
        "whisper_tui/policy/evaluate.py",
        "        if applies(rule, question) and reaches(rule, command, seen):\n",
        "        if False:\n",
        (EVALUATE + "test_deny_beats_allow_and_memory", "tests/policy/test_disguises.py::test_a_disguise_is_denied"),
    ),
    Defence(
        "what is always asked",
        "whisper_tui/policy/evaluate.py",
        "        if risk.id in ALWAYS_ASKED:\n",
        "        if False:\n",
        (EVALUATE + "test_what_cannot_be_read_with_certainty_is_asked_whatever_rules_and_memory_say",),
    ),
    Defence(
        "broken rules allow nothing",
        "whisper_tui/policy/evaluate.py",
        "    if rules.broken:\n",
        "    if False:\n",
        (EVALUATE + "test_broken_rules_allow_nothing_and_say_why",),
    ),
    Defence(
        "two readings must agree",
        "whisper_tui/policy/view.py",
        "    if tuple(command.argv for command in script.commands) != words:\n",
        "    if False:\n",
        (READERS + "test_text_that_our_two_readings_see_differently_is_not_certain",),
    ),
    Defence(
        "a third reading must agree",
        "whisper_tui/policy/view.py",
        "    second = second_reading(text)\n",
        "    second = timed\n",
        (READERS + "test_text_that_an_independent_reader_sees_differently_is_not_certain",),
    ),
    Defence(
        "an approval is its session's",
        "whisper_tui/policy/memory.py",
        "grant.session_id != session_id",
        "False",
        (EVALUATE + "TestMemory::test_it_does_not_reach_another_session",),
    ),
    Defence(
        "the rules of a project",
        "whisper_tui/config/project_rules.py",
        "return trusted_here(rules, root) if trusted else tightening(rules)",
        "return trusted_here(rules, root)",
        (
            "tests/config/test_project_rules.py::test_untrusted_rules_deny_and_ask_in_the_projects_name_and_allow_nothing",
        ),
    ),
    Defence(
        "a configuration that others can change",
        "whisper_tui/config/private_text.py",
        "about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)",
        "False",
        ("tests/config/test_file.py::test_a_file_that_others_can_change_is_refused",),
    ),
)

WHO_COMES_IN = (
    Defence(
        "the token of MCP over HTTP",
        "whisper_tui/transports/http_site.py",
        '        if kind.lower() != "bearer" or not known:\n',
        "        if False:\n",
        (HTTP + "test_without_the_token_nothing_is_answered",),
    ),
    Defence(
        "names that point here",
        "whisper_tui/transports/http_site.py",
        "        if host not in self._hosts:\n",
        "        if False:\n",
        (HTTP + "test_other_names_and_other_pages_are_refused_though_they_know_the_token",),
    ),
    Defence(
        "pages of other places",
        "whisper_tui/transports/http_site.py",
        '        if origin is not None and origin.removeprefix("http://") not in self._hosts:\n',
        "        if False:\n",
        (HTTP + "test_other_names_and_other_pages_are_refused_though_they_know_the_token",),
    ),
    Defence(
        "the token's file",
        "whisper_tui/transports/http_token.py",
        "about.st_mode & (stat.S_IRWXG | stat.S_IRWXO)",
        "False",
        (HTTP + "test_a_token_that_others_can_read_is_not_used",),
    ),
    Defence(
        "the token of the cockpit in a browser",
        "whisper_tui/cli/serving.py",
        'if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):',
        "if False:",
        (SERVE + "test_nobody_else_is_answered", SERVE + "test_the_connection_wants_the_token_and_its_own_page"),
    ),
    Defence(
        "names that point at the cockpit",
        "whisper_tui/cli/serving.py",
        'if request.host not in {f"{HOST}:{self.port}", f"localhost:{self.port}"}:',
        "if False:",
        (SERVE + "test_nobody_else_is_answered",),
    ),
    Defence(
        "the cockpit's own page",
        "whisper_tui/cli/serving.py",
        'if (origin is not None or socket) and origin != f"http://{request.host}":',
        "if False:",
        (SERVE + "test_the_connection_wants_the_token_and_its_own_page",),
    ),
    Defence(
        "loopback alone",
        "whisper_tui/cli/serving.py",
        'HOST = "127.0.0.1"',
        'HOST = "0.0.0.0"',
        (SERVE + "test_it_listens_on_loopback_alone",),
    ),
    Defence(
        "a directory that is open to others",
        "whisper_tui/supervisor/state_directory.py",
        "    if about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):\n",
        "    if False:\n",
        (
            "tests/supervisor/test_state_directory.py::test_a_directory_that_is_open_to_others_is_refused_and_left_as_it_is",
        ),
    ),
    Defence(
        "private files of runs",
        "whisper_tui/supervisor/keeper/layout.py",
        "os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)",
        "os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)",
        (PRIVATE + "test_files_and_directories_are_the_users_alone_whatever_the_mask",),
    ),
    Defence(
        "the private journal",
        "whisper_tui/supervisor/journal_file.py",
        "mode=0o600",
        "mode=0o666",
        (PRIVATE + "test_files_and_directories_are_the_users_alone_whatever_the_mask",),
    ),
    Defence(
        "the length of a line at the socket",
        "whisper_tui/wire/server.py",
        "limit=LONGEST_REQUEST",
        "limit=LONGEST_REQUEST * 16",
        (SERVER + "test_a_line_that_is_too_long_is_said_and_ends_the_connection",),
    ),
)

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
        '_CONTROLS.sub(lambda found: found.group("colour") or "", ready)',
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

DEFENCES = (*WHO_MAY_DECIDE, *WHAT_WAS_APPROVED, *WHAT_IS_ALLOWED, *WHO_COMES_IN, *HOSTILE_TEXT, *WHAT_IS_SHOWN)
