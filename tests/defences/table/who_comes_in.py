"""Doors, files and bounds."""

from tests.defences.defence import Defence

HTTP = "tests/transports/test_http.py::"
TOKEN = "tests/transports/test_http_token.py::"
SERVE = "tests/cli/test_serve.py::"
APART = "tests/hostile/test_sessions_apart.py::test_no_tool_answers_with_anything_of_another_session"
PRIVATE = "tests/defences/test_private_files.py::"

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
        (TOKEN + "test_a_token_that_others_can_read_is_not_used",),
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
        "the private socket",
        "whisper_tui/wire/server.py",
        "        path.chmod(0o600)\n",
        "        pass\n",
        (PRIVATE + "test_files_and_directories_are_the_users_alone_whatever_the_mask",),
    ),
    Defence(
        "the private token",
        "whisper_tui/transports/http_token.py",
        "os.O_NOFOLLOW, 0o600)",
        "os.O_NOFOLLOW, 0o666)",
        (
            PRIVATE + "test_files_and_directories_are_the_users_alone_whatever_the_mask",
            TOKEN + "test_the_token_is_made_once_and_nobody_else_can_read_it",
        ),
    ),
    Defence(
        "loopback alone for agents",
        "whisper_tui/transports/http_site.py",
        'HOST = "127.0.0.1"',
        'HOST = "0.0.0.0"',
        ("tests/cli/test_mcp_http.py::test_it_listens_on_loopback_alone",),
    ),
    Defence(
        "calls of other agents",
        "whisper_tui/tools/pending.py",
        "    if record.call.session_id != context.session.id:\n",
        "    if False:\n",
        (APART,),
    ),
    Defence(
        "tasks of other agents",
        "whisper_tui/tools/exec_command/task_tools.py",
        "if record.call.session_id != context.session.id or record.call.tool != EXEC_COMMAND:",
        "if record.call.tool != EXEC_COMMAND:",
        (APART,),
    ),
    Defence(
        "lists of other agents' tasks",
        "whisper_tui/tools/exec_command/task_tools.py",
        "before=before, session_id=self._context.session.id,",
        "before=before,",
        (APART,),
    ),
)
