"""Doors, files and bounds."""

from tests.mutations.mutation import Mutation

HTTP = "tests/transports/test_http.py::"
TOKEN = "tests/transports/test_http_token.py::"
SERVE = "tests/cli/test_serve.py::"
APART = "tests/hostile/test_sessions_apart.py::test_no_tool_answers_with_data_of_another_session"
PRIVATE = "tests/mutations/test_private_files.py::"

WHO_COMES_IN = (
    Mutation(
        "the token of MCP over HTTP",
        "whisper_tui.transports.mcp.http_site.McpSite._check",
        'kind.lower() != "bearer" or not known',
        "False",
        (HTTP + "test_without_the_token_nothing_is_answered",),
    ),
    Mutation(
        "names that point here",
        "whisper_tui.transports.mcp.http_site.McpSite._check",
        "host not in self._hosts",
        "False",
        (HTTP + "test_other_names_and_other_pages_are_refused_though_they_know_the_token",),
    ),
    Mutation(
        "pages of other places",
        "whisper_tui.transports.mcp.http_site.McpSite._check",
        'origin is not None and origin.removeprefix("http://") not in self._hosts',
        "False",
        (HTTP + "test_other_names_and_other_pages_are_refused_though_they_know_the_token",),
    ),
    Mutation(
        "the token's file",
        "whisper_tui.transports.mcp.http_site._read",
        "about.st_mode & (stat.S_IRWXG | stat.S_IRWXO)",
        "False",
        (TOKEN + "test_a_token_that_others_can_read_is_not_used",),
    ),
    Mutation(
        "the token of the cockpit in a browser",
        "whisper_tui.cli.web_server.CockpitSite._check",
        'not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())',
        "False",
        (
            SERVE + "test_a_supervisor_of_another_user_is_not_used",
            SERVE + "test_the_connection_wants_the_token_and_its_own_page",
        ),
    ),
    Mutation(
        "names that point at the cockpit",
        "whisper_tui.cli.web_server.CockpitSite._check",
        'request.host not in {f"{HOST}:{self.port}", f"localhost:{self.port}"}',
        "False",
        (SERVE + "test_a_supervisor_of_another_user_is_not_used",),
    ),
    Mutation(
        "the cockpit's own page",
        "whisper_tui.cli.web_server.CockpitSite._check",
        '(origin is not None or socket) and origin != f"http://{request.host}"',
        "False",
        (SERVE + "test_the_connection_wants_the_token_and_its_own_page",),
    ),
    Mutation(
        "loopback alone",
        "whisper_tui.cli.web_server.HOST",
        '"127.0.0.1"',
        '"0.0.0.0"',
        (SERVE + "test_it_listens_on_loopback_alone",),
    ),
    Mutation(
        "a directory that is open to others",
        "whisper_tui.system.state_directory._problem",
        "about.st_mode & (stat.S_IRWXG | stat.S_IRWXO)",
        "False",
        (
            "tests/supervisor/test_state_directory.py::test_a_directory_that_is_open_to_others_is_refused_and_left_as_it_is",
        ),
    ),
    Mutation(
        "private files of runs",
        "whisper_tui.system.run_files.write_new",
        "0o600",
        "0o666",
        (PRIVATE + "test_files_and_directories_are_the_users_alone_whatever_the_mask",),
    ),
    Mutation(
        "the private journal",
        "whisper_tui.supervisor.journal.sqlite_file.open_file",
        "mode=0o600",
        "mode=0o666",
        (PRIVATE + "test_files_and_directories_are_the_users_alone_whatever_the_mask",),
    ),
    Mutation(
        "the private socket",
        "whisper_tui.wire.server._bound_socket",
        "path.chmod(0o600)",
        "pass",
        (PRIVATE + "test_files_and_directories_are_the_users_alone_whatever_the_mask",),
    ),
    Mutation(
        "the private token",
        "whisper_tui.transports.mcp.http_site._create",
        "0o600",
        "0o666",
        (
            PRIVATE + "test_files_and_directories_are_the_users_alone_whatever_the_mask",
            TOKEN + "test_the_token_is_made_once_and_nobody_else_can_read_it",
        ),
    ),
    Mutation(
        "loopback alone for agents",
        "whisper_tui.transports.loopback_http.HOST",
        '"127.0.0.1"',
        '"0.0.0.0"',
        ("tests/cli/test_mcp_http.py::test_it_listens_on_loopback_alone",),
    ),
    Mutation(
        "calls of other agents",
        "whisper_tui.tools.wait.own_call",
        "record.call.session_id != context.session.id",
        "False",
        (APART,),
    ),
    Mutation(
        "tasks of other agents",
        "whisper_tui.tools.task_tools.find_task",
        "record.call.session_id != context.session.id or record.call.tool != EXEC_COMMAND",
        "record.call.tool != EXEC_COMMAND",
        (APART,),
    ),
    Mutation(
        "lists of other agents' tasks",
        "whisper_tui.tools.task_tools.TaskListTool.answer",
        "session_id=self._context.session.id",
        "session_id=None",
        (APART,),
    ),
    Mutation(
        "a process of another program that goes on with a new supervisor",
        "whisper_tui.transports.codex_environment.environment_endpoint._CodexConnection._call",
        "record.call.key != process_key(self._said.nonce, asked.processId)",
        "False",
        (
            "tests/transports/codex_environment/test_environment_commands.py::"
            "test_no_program_takes_over_the_process_of_another_one",
        ),
    ),
)
