"""Who may decide: nobody that a supervised command or an agent has started."""

from tests.mutations.mutation import Mutation

WHO = "tests/mutations/test_who_may_decide.py::"
FROM_COMMAND = WHO + "test_no_verb_is_obeyed_from_inside_a_supervised_command[as it is]"
FROM_ITS_ORPHAN = FROM_COMMAND.replace("as it is", "its keeper killed, double forked, with an empty environment")
FROM_AGENT = WHO + "test_no_verb_is_obeyed_from_what_a_connected_agent_has_started[as it is]"
FROM_ITS_DAEMON = FROM_AGENT.replace("as it is", "double forked")
PEERS = "tests/wire/test_peers.py::"
SSH = "tests/wire/test_ssh_sessions.py::"
PRIVATE = "tests/mutations/test_private_files.py::"
REFUSED = "tests/mutations/test_refused_attempts.py::"

WHO_MAY_DECIDE = (
    Mutation(
        "a keeper among the ancestors",
        "whisper_tui.wire.peers.why_supervised",
        "seen.pid in keepers or seen.keeper",
        "False",
        (PEERS + "test_a_descendant_of_a_keeper_may_not_decide",),
    ),
    Mutation(
        "the environment of a supervised command",
        "whisper_tui.wire.peers.why_supervised",
        "seen.marked",
        "False",
        (PEERS + "test_a_process_with_the_environment_of_a_supervised_command_may_not_decide",),
    ),
    Mutation(
        "the mark of what keepers start",
        "whisper_tui.supervisor.keeper.zygote.main",
        "processes.mark_supervised()",
        "pass",
        (FROM_ITS_ORPHAN, WHO + "test_descendants_of_a_command_have_a_mark_that_we_do_not"),
    ),
    Mutation(
        "an agent among the ancestors",
        "whisper_tui.wire.peers.why_supervised",
        "agents.get((seen.pid, seen.start))",
        "agents.get((-1, seen.start))",
        (PEERS + "test_the_agents_own_process_may_decide_and_its_children_may_not",),
    ),
    Mutation(
        "the mark of what agents start",
        "whisper_tui.wire.server_state.AgentPrograms.note",
        "processes.mark_agent(seen.pid)",
        "pass",
        (FROM_ITS_DAEMON,),
    ),
    Mutation(
        "an agent that somebody else names",
        "whisper_tui.wire.peers.check_origin",
        "not await asyncio.to_thread(descends, connection, pid)",
        "False",
        (PEERS + "test_a_peer_that_names_an_agent_which_is_no_ancestor_is_refused",),
    ),
    Mutation(
        "the supervisor's own ancestors are no agents",
        "whisper_tui.wire.server_state.AgentPrograms._agent",
        "None if any(seen.pid == pid for seen in ours) else self._read(pid)",
        "self._read(pid)",
        (PEERS + "test_nothing_that_the_supervisor_descends_from_is_taken_for_an_agent",),
    ),
    Mutation(
        "an agent's pid that another process has by now",
        "whisper_tui.wire.peers.why_supervised",
        "agents.get((seen.pid, seen.start))",
        "{pid: name for (pid, _), name in agents.items()}.get(seen.pid)",
        (PEERS + "test_a_process_that_has_only_the_pid_of_an_agent_that_ended_is_no_agent",),
    ),
    Mutation(
        "a process that cannot be examined",
        "whisper_tui.wire.peers.why_supervised",
        'return "the requesting process cannot be examined"',
        "return None",
        (PEERS + "test_a_process_that_cannot_be_examined_may_not_decide",),
    ),
    Mutation(
        "a connection whose process has ended",
        "whisper_tui.wire.peers.has_ended",
        "bool(ended.poll(0))",
        "False",
        (WHO + "test_a_process_that_has_connected_and_ended_is_told_from_one_that_has_its_pid_later",),
    ),
    Mutation(
        "the look at who asks",
        "whisper_tui.wire.authorization.PeerAuthorizer.check",
        "objection is None",
        "objection is None or True",
        (FROM_COMMAND, FROM_AGENT, PEERS + "test_a_supervised_command_cannot_approve"),
    ),
    Mutation(
        "a session of the ssh server",
        "whisper_tui.wire.peers.why_supervised",
        "why_refused_over_ssh(line)",
        "None",
        (SSH + "test_nobody_decides_through_ssh_to_the_same_machine",),
    ),
    Mutation(
        "a connection by ssh to the same machine",
        "whisper_tui.wire.peers._why_refused",
        "seen.remote.port == server.port and (seen.remote, seen.local) in ends",
        "False",
        (SSH + "test_a_session_may_not_decide_while_a_connection_of_ours_leads_to_the_same_server",),
    ),
    Mutation(
        "a connection by ssh to where a session comes from",
        "whisper_tui.wire.peers._why_refused",
        "seen.remote.address == client.address",
        "False",
        (SSH + "test_a_session_may_not_decide_while_we_are_connected_by_ssh_to_where_it_comes_from",),
    ),
    Mutation(
        "the kernel's word for the connection of a session",
        "whisper_tui.wire.peers._why_refused",
        "(server, client) not in ends",
        "False",
        (SSH + "test_a_session_that_names_a_connection_which_the_kernel_does_not_know_may_not_decide",),
    ),
    Mutation(
        "a socket that ssh forwards",
        "whisper_tui.wire.peers.why_refused_over_ssh",
        "at == 0",
        "at == -1",
        (SSH + "test_the_ssh_server_itself_may_not_decide_for_a_forwarded_socket",),
    ),
    Mutation(
        "what a session from the same machine has left behind",
        "whisper_tui.wire.peers._is_same_machine",
        "client.address.is_loopback or client.address == server.address",
        "False",
        (SSH + "test_what_outlives_its_session_may_decide_unless_that_came_from_this_machine",),
    ),
    Mutation(
        "the guard of a verb",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.revoke, "decides")',
        "_operation(Supervision.revoke)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "the guard of adding a rule",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.add_rule, "decides")',
        "_operation(Supervision.add_rule)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "the guard of the contents of files",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.file_versions, "decides")',
        "_operation(Supervision.file_versions)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "the guard of taking an edit back",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.revert_edit, "decides")',
        "_operation(Supervision.revert_edit)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "the guard of running a command in a preview",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.preview, "decides")',
        "_operation(Supervision.preview)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "the guard of dropping a preview",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.drop_preview, "decides")',
        "_operation(Supervision.drop_preview)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "the guard of the changes of a preview",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.preview_page, "decides")',
        "_operation(Supervision.preview_page)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "the guard of the files of a preview",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.preview_versions, "decides")',
        "_operation(Supervision.preview_versions)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "the guard of taking changes back",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.undo, "decides")',
        "_operation(Supervision.undo)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "the guard of the way in which edits are judged",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.set_edit_mode, "decides")',
        "_operation(Supervision.set_edit_mode)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "the guard of lifting a denial",
        "whisper_tui.wire.operations.OPERATIONS",
        '_operation(Supervision.lift_denial, "decides")',
        "_operation(Supervision.lift_denial)",
        (WHO + "test_every_operation_is_one_that_decides_or_one_that_only_looks", FROM_COMMAND),
    ),
    Mutation(
        "sessions of others",
        "whisper_tui.wire.authorization.PeerAuthorizer._is_own",
        '(request.session_id if request is not None else given["session_id"]) in self._sessions',
        "True",
        (FROM_COMMAND, "tests/wire/test_conversation.py::test_a_supervised_command_cannot_tell_an_agent_what_to_do"),
    ),
    Mutation(
        "calls of others",
        "whisper_tui.wire.authorization.PeerAuthorizer._is_own",
        'given["call_id"] in self._calls',
        "True",
        (FROM_COMMAND,),
    ),
    Mutation(
        "the record of refused attempts",
        "whisper_tui.wire.authorization.RefusalLog.note",
        "self._record(attempt)",
        "pass",
        (REFUSED + "test_refused_attempts_are_in_the_journal_and_the_history",),
    ),
    Mutation(
        "the bound of that record",
        "whisper_tui.wire.authorization.RefusalLog.note",
        "self._tokens < 1",
        "False",
        (REFUSED + "test_a_flood_is_counted_and_not_recorded",),
    ),
    Mutation(
        "rules files from inside",
        "whisper_tui.cli.commands.manage_rules.check_outside",
        "problem is not None",
        "False",
        (WHO + "test_no_verb_that_writes_the_users_rules_is_obeyed_from_inside_a_supervised_command[fresh]",),
    ),
    Mutation(
        "another user at the socket",
        "whisper_tui.wire.server._own_peer",
        "uid != os.geteuid()",
        "False",
        (PRIVATE + "test_another_user_is_turned_away_even_where_the_directory_lets_them_in",),
    ),
)
