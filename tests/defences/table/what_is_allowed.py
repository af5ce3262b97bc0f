"""Nothing is allowed by a misreading."""

from tests.defences.defence import Defence

EVALUATE = "tests/policy/test_evaluate.py::"
SANDBOX = "tests/supervisor/engine/test_sandbox.py::"
UNASKED = "tests/supervisor/engine/test_unasked.py::"
READERS = "tests/defences/test_two_readers.py::"

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
    Defence(
        "the sandbox: files",
        "whisper_tui/supervisor/keeper/sandbox.py",
        '    syscalls.call("landlock_restrict_self", rules, 0)\n',
        "",
        (SANDBOX + "test_it_writes_nowhere_but_in_its_own_temporary_directory",),
    ),
    Defence(
        "the sandbox: sockets",
        "whisper_tui/supervisor/keeper/sandbox.py",
        "_CLOSED = syscalls.RET_ERRNO | errno.EACCES\n",
        "_CLOSED = syscalls.RET_ALLOW\n",
        (SANDBOX + "test_it_reaches_no_network_and_no_local_socket",),
    ),
    Defence(
        "the sandbox: attributes",
        "whisper_tui/supervisor/keeper/denials.py",
        '                self._note("change", path)\n                return _EACCES\n',
        "                pass\n",
        (SANDBOX + "test_attributes_of_files_elsewhere_stay_as_they_are",),
    ),
    Defence(
        "the sandbox: rights",
        "whisper_tui/supervisor/keeper/sandbox.py",
        "    syscalls.drop_capabilities()\n",
        "",
        (SANDBOX + "test_it_gains_no_rights_and_no_namespaces",),
    ),
    Defence(
        "the sandbox: none, none unasked",
        "whisper_tui/policy/evaluate.py",
        "    if question.sandbox_problem:\n",
        "    if False:\n",
        (UNASKED + "test_without_landlock_only_what_plainly_looks_runs_unasked",),
    ),
    Defence(
        "the environment of what nobody was asked about",
        "whisper_tui/supervisor/sandboxing.py",
        "if name in PASSED_ON or name.startswith",
        "if True or name.startswith",
        (UNASKED + "test_an_unasked_command_has_an_environment_from_an_allow_list",),
    ),
    Defence(
        "the rules of an agent client",
        "whisper_tui/supervisor/judge.py",
        "            rules = stricter(rules, self._clients_rules(session, self._environments.of(session.id)))\n",
        "            pass\n",
        ("tests/install/test_own_rules_hold.py::test_a_command_that_only_looks_is_refused_where_the_client_denies_it",),
    ),
    Defence(
        "the place of a hook",
        "whisper_tui/cli/reaching.py",
        'return {"HOME": environ["HOME"]} if environ.get("HOME") else {}',
        "return dict(environ)",
        ("tests/install/test_place.py::test_the_variables_of_a_project_do_not_move_the_hook",),
    ),
)
