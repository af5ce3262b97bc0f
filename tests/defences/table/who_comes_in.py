"""Doors, files and bounds."""

from tests.defences.defence import Defence

SERVER = "tests/wire/test_server.py::"
HTTP = "tests/transports/test_http.py::"
ROOM = "tests/defences/test_room_at_the_socket.py::"
SERVE = "tests/cli/test_serve.py::"
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
)
