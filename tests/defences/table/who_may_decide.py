"""Who may decide: nobody that a supervised command or an agent has started."""

from tests.defences.defence import Defence

WHO = "tests/defences/test_who_may_decide.py::"
FROM_COMMAND = WHO + "test_no_verb_is_obeyed_from_inside_a_supervised_command[as it is]"
FROM_ITS_ORPHAN = FROM_COMMAND.replace("as it is", "its keeper killed, double forked, with an empty environment")
FROM_AGENT = WHO + "test_no_verb_is_obeyed_from_what_a_connected_agent_has_started[as it is]"
FROM_ITS_DAEMON = FROM_AGENT.replace("as it is", "double forked")
PEERS = "tests/wire/test_peers.py::"
PRIVATE = "tests/defences/test_private_files.py::"
REFUSED = "tests/defences/test_refused_attempts.py::"

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
