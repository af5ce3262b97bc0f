"""The proxy between editors and their agents."""

from tests.mutations.mutation import Mutation

ACP = "whisper_tui.transports.acp."
PROXY = "tests/transports/acp/test_acp_proxy.py::"

AGENTS_OF_EDITORS = (
    Mutation(
        "agents of editors: unseen shells",
        ACP + "acp_sessions.why_refused",
        'agent.shell != "unseen"',
        "True",
        (PROXY + "test_an_agent_whose_commands_are_not_seen_is_refused_at_the_start",),
    ),
    Mutation(
        "agents of editors: agents that nobody has measured",
        ACP + "acp_sessions.UNKNOWN",
        '"unseen"',
        '"terminal"',
        (PROXY + "test_an_agent_whose_commands_are_not_seen_is_refused_at_the_start",),
    ),
    Mutation(
        "agents of editors: later versions of the protocol",
        ACP + "acp_proxy.Proxy._met",
        'result.get("protocolVersion") != VERSION',
        "False",
        (PROXY + "test_an_agent_whose_commands_are_not_seen_is_refused_at_the_start",),
    ),
    Mutation(
        "agents of editors: agents without their hook",
        ACP + "acp_proxy.Proxy._objection",
        "why_unguarded(self._agent, Path(root), os.environ)",
        "None",
        (PROXY + "test_an_agent_with_a_hook_opens_sessions_only_where_the_hook_is_installed",),
    ),
    Mutation(
        "agents of editors: lines with two meanings",
        ACP + "acp_proxy.Proxy.agent_line",
        "read_strictly(line)",
        "json.loads(line)",
        (PROXY + "test_a_line_in_which_the_editor_could_find_a_command_does_not_reach_it",),
    ),
    Mutation(
        "agents of editors: methods that would act",
        ACP + "acp_proxy.Proxy.agent_line",
        'method.startswith(("terminal/", "fs/"))',
        "False",
        (PROXY + "test_a_line_in_which_the_editor_could_find_a_command_does_not_reach_it",),
    ),
    Mutation(
        "agents of editors: the agent's process",
        ACP + "acp_sessions.AgentSessions._hello",
        "pid=self._pid",
        "pid=None",
        (PROXY + "test_what_the_agent_starts_may_not_decide",),
    ),
    Mutation(
        "agents of editors: questions that do not come back",
        ACP + "acp_questions.PermissionQuestions._comes_back",
        'self.agent.shell == "terminal"',
        "True",
        (PROXY + "test_permission_for_a_command_of_the_agents_own_is_answered_by_the_kind_of_option",),
    ),
    Mutation(
        "agents of editors: two ways to allow a command",
        ACP + "acp_questions.picked",
        "_count(options, kind) == 1",
        "True",
        (PROXY + "test_a_question_with_two_ways_to_allow_is_refused",),
    ),
    Mutation(
        "agents of editors: choices that act",
        ACP + "acp_questions.PermissionQuestions.is_choice",
        "not acts",
        "True",
        (PROXY + "test_a_question_with_two_ways_to_allow_is_refused",),
    ),
    Mutation(
        "agents of editors: changes that cannot be passed on",
        ACP + "acp_sessions._handed_over",
        "record.edited and not takes_change",
        "False",
        (PROXY + "test_a_change_of_a_command_that_the_agent_runs_itself_is_a_rejection",),
    ),
    Mutation(
        "agents of editors: the file in the moment of a write",
        ACP + "acp_questions._write",
        "_digest(file.read(LARGEST_EDITED + 1)) != _digest(before)",
        "False",
        (PROXY + "test_a_file_that_differs_in_the_moment_of_the_write_is_left_as_it_is",),
    ),
    Mutation(
        "agents of editors: files that somebody else has created",
        ACP + "acp_questions._write",
        "os.O_EXCL",
        "0",
        (PROXY + "test_a_file_that_differs_in_the_moment_of_the_write_is_left_as_it_is",),
    ),
)
