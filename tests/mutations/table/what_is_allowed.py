"""Nothing is allowed by a misreading."""

from tests.mutations.mutation import Mutation

DENIALS = "tests/supervisor/test_session_denials.py::"
CHOOSING = "tests/supervisor/places/test_choosing_places.py::"
ENGINE = "tests/supervisor/engine/test_local_executor.py::"
EVALUATE = "tests/policy/test_evaluate.py::"
PLACES = "tests/policy/test_rules_at_places.py::"
SANDBOX = "tests/supervisor/engine/test_sandbox.py::"
UNASKED = "tests/supervisor/engine/test_unasked.py::"
READERS = "tests/mutations/test_two_readers.py::"

WHAT_IS_ALLOWED = (
    Mutation(
        "another program of the name of bash is not read as bash",
        "whisper_tui.transports.codex_environment.environment_runs.command_of",
        "shell in BASH",
        'shell.endswith("bash")',
        (
            "tests/transports/codex_environment/test_environment_commands.py::"
            "test_the_text_of_bash_is_judged_as_for_the_hook_and_another_program_by_its_words",
        ),
    ),
    Mutation(
        "deny beats allow",
        "whisper_tui.policy.evaluate.evaluate",
        "applies(effect, rule, question) and (reaches(rule, command, seen) or _reaches_literal(rule, literal))",
        "False",
        (EVALUATE + "test_deny_beats_allow_and_memory", "tests/policy/test_disguises.py::test_a_disguise_is_denied"),
    ),
    Mutation(
        "denials for a session",
        "whisper_tui.supervisor.approvals.judge.Judge._unless_denied",
        'verdict.kind == "refuse" or not denials',
        "True",
        (DENIALS + "test_a_denial_overrides_rules_and_approvals",),
    ),
    Mutation(
        "denials of a session that comes back",
        "whisper_tui.supervisor.journal.store.Store.bring_back",
        "self.board.denials.update(past.denials)",
        "pass",
        (DENIALS + "test_a_session_that_the_board_has_forgotten_has_its_denials_again",),
    ),
    Mutation(
        "what is always asked",
        "whisper_tui.policy.evaluate._doubt",
        "risk.id in ALWAYS_ASKED",
        "False",
        (EVALUATE + "test_uncertain_commands_are_asked_despite_rules_and_approvals",),
    ),
    Mutation(
        "broken rules allow nothing",
        "whisper_tui.policy.evaluate.asked_anyway",
        "rules.broken",
        "False",
        (EVALUATE + "test_broken_rules_allow_nothing_and_say_why",),
    ),
    Mutation(
        "two readings must agree",
        "whisper_tui.policy.view.agreed",
        "tuple(command.argv for command in script.commands) != words",
        "False",
        (READERS + "test_text_that_our_two_readings_see_differently_is_not_certain",),
    ),
    Mutation(
        "a third reading must agree",
        "whisper_tui.policy.view.agreed",
        "second_reading(text)",
        "timed",
        (READERS + "test_text_that_an_independent_reader_sees_differently_is_not_certain",),
    ),
    Mutation(
        "an approval is its session's",
        "whisper_tui.policy.rules.grants.grant_holds",
        "grant.session_id != session_id",
        "False",
        (EVALUATE + "TestMemory::test_an_approval_does_not_reach_another_session",),
    ),
    Mutation(
        "the rules of a project",
        "whisper_tui.config.project_rules.ProjectRuleFiles._read",
        "trusted_here(rules, root) if trusted else restrictions_only(rules)",
        "trusted_here(rules, root)",
        (
            "tests/config/test_project_rules.py::test_untrusted_rules_deny_and_ask_in_the_projects_name_and_allow_nothing",
        ),
    ),
    Mutation(
        "trust in a rule that could not be written",
        "whisper_tui.config.rule_files.RuleFiles._save",
        "self._trust.extend(str(self.path), [mark for mark in removed if mark in before], undone, by)",
        "pass",
        ("tests/config/test_rule_listing.py::test_a_rule_that_could_not_be_written_is_not_trusted_later",),
    ),
    Mutation(
        "a disabled rule",
        "whisper_tui.policy.rules.matching.applies",
        "rule.disabled",
        "False",
        ("tests/config/test_rule_listing.py::test_a_changed_rule_holds_at_once_and_the_rest_of_the_file_stays",),
    ),
    Mutation(
        "what is allowed here says nothing about another machine",
        "whisper_tui.policy.rules.rule.Rule.is_about_place",
        'effect != "allow" or not place',
        "True",
        (PLACES + "test_a_rule_allows_at_the_place_that_it_names_and_without_one_on_this_machine",),
    ),
    Mutation(
        "what was approved for a place is not run here",
        "whisper_tui.supervisor.runs.local_executor.LocalExecutor.start",
        "order.spec.place",
        "False",
        (ENGINE + "test_what_was_approved_for_a_place_is_not_run_here",),
    ),
    Mutation(
        "the read-only list is for this machine",
        "whisper_tui.policy.evaluate._allowed",
        "not question.spec.place",
        "True",
        (PLACES + "test_nothing_runs_at_a_place_because_it_only_reads",),
    ),
    Mutation(
        "an approval with a sandbox needs one",
        "whisper_tui.policy.evaluate._unless_sandbox_fails",
        "question.spec.place",
        '""',
        (PLACES + "test_a_permission_that_needs_a_sandbox_asks_at_a_place",),
    ),
    Mutation(
        "what an agent runs itself is at no place",
        "whisper_tui.supervisor.places.place_settings._carried_out_here",
        "request.by_agent",
        "False",
        (CHOOSING + "test_a_call_that_the_agent_carries_out_itself_stays_here",),
    ),
    Mutation(
        "a setting as it was seen",
        "whisper_tui.config.configuration.ConfigurationFile.change",
        "now.value != seen",
        "False",
        ("tests/config/test_settings.py::test_a_file_that_was_changed_meanwhile_or_cannot_be_read_is_not_changed",),
    ),
    Mutation(
        "a configuration that others can change",
        "whisper_tui.config.private_files.read_private",
        "about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)",
        "False",
        ("tests/config/test_file.py::test_a_file_that_others_can_change_is_refused",),
    ),
    Mutation(
        "the sandbox: files",
        "whisper_tui.system.confinement.confine",
        'syscalls.call("landlock_restrict_self", rules, 0)',
        "pass",
        (SANDBOX + "test_a_sandboxed_command_writes_only_to_its_temporary_directory",),
    ),
    Mutation(
        "pairs of local sockets that stay connected",
        "whisper_tui.supervisor.keeper.seccomp.filter_instructions",
        "unless_in(1, _CONNECTED, CLOSED, bits=_SOCKET_TYPE)",
        "()",
        (SANDBOX + "test_a_sandboxed_command_sends_no_datagram_to_a_local_socket",),
    ),
    Mutation(
        "the priority of the process itself",
        "whisper_tui.supervisor.keeper.seccomp.filter_instructions",
        "unless_in(0, kinds, REFUSED) if kinds else ()",
        "()",
        (SANDBOX + "test_a_sandboxed_command_changes_its_own_priority_and_no_other",),
    ),
    Mutation(
        "requests of ioctl that change nothing outside",
        "whisper_tui.supervisor.keeper.seccomp.filter_instructions",
        'found += if_call("ioctl", unless_in(1, _REQUESTS, REFUSED))',
        "pass",
        (SANDBOX + "test_a_sandboxed_command_changes_no_flags_of_files_that_it_can_only_read",),
    ),
    Mutation(
        "system calls that the sandbox knows",
        "whisper_tui.supervisor.keeper.seccomp.filter_instructions",
        "dict.fromkeys(range(_NEWEST + 1), REFUSED)",
        "dict.fromkeys(range(_NEWEST + 1), syscalls.RET_ALLOW)",
        (SANDBOX + "test_calls_that_the_sandbox_does_not_know_are_refused",),
    ),
    Mutation(
        "system calls that are newer than the sandbox",
        "whisper_tui.supervisor.keeper.seccomp.filter_instructions",
        "answers_to(answers, MISSING)",
        "answers_to(answers, syscalls.RET_ALLOW)",
        (SANDBOX + "test_calls_that_the_sandbox_does_not_know_are_refused",),
    ),
    Mutation(
        "the sandbox: sockets",
        "whisper_tui.supervisor.keeper.seccomp._sockets",
        "answered(CLOSED)",
        "answered(syscalls.RET_ALLOW)",
        (SANDBOX + "test_a_sandboxed_command_reaches_no_network_and_no_local_socket",),
    ),
    Mutation(
        "the sandbox: attributes",
        "whisper_tui.supervisor.keeper.seccomp.SeccompNotifications._change",
        "not self._may_write(path)",
        "False",
        (SANDBOX + "test_attributes_of_files_elsewhere_stay_as_they_are",),
    ),
    Mutation(
        "the sandbox: rights",
        "whisper_tui.system.confinement.confine",
        "syscalls.drop_capabilities()",
        "pass",
        (SANDBOX + "test_a_sandboxed_command_gains_no_rights_and_no_namespaces",),
    ),
    Mutation(
        "the sandbox: none, none unasked",
        "whisper_tui.policy.evaluate._unless_sandbox_fails",
        "question.sandbox_problem",
        "False",
        (UNASKED + "test_without_landlock_only_plain_read_only_commands_run_unasked",),
    ),
    Mutation(
        "the environment of what nobody was asked about",
        "whisper_tui.supervisor.runs.sandbox_profile.minimal_environment",
        "name in INHERITED",
        "True",
        (UNASKED + "test_an_unasked_command_has_an_environment_from_an_allow_list",),
    ),
    Mutation(
        "the rules of an agent client",
        "whisper_tui.supervisor.approvals.judge.Judge._verdict",
        "rules = stricter(rules, self._clients_rules(session, self._environments.of(session.id)))",
        "pass",
        ("tests/install/test_own_rules_hold.py::test_a_command_that_only_looks_is_refused_where_the_client_denies_it",),
    ),
    Mutation(
        "the place of a hook",
        "whisper_tui.cli.subcommand.of_agents",
        '{"HOME": environ["HOME"]} if environ.get("HOME") else {}',
        "dict(environ)",
        ("tests/install/test_place.py::test_the_variables_of_a_project_do_not_move_the_hook",),
    ),
)

EXPANSIONS = "tests/policy/test_expansions.py::"
ASKED_EXPANSIONS = (EXPANSIONS + "test_expansions_that_could_do_more_are_asked",)

EXPANDED = (
    Mutation(
        "expansions: two readings must agree",
        "whisper_tui.policy.view.agreed_steps",
        "steps_of(script) != steps",
        "False",
        (EXPANSIONS + "test_readers_that_differ_expand_nothing",),
    ),
    Mutation(
        "expansions: a third reading must agree",
        "whisper_tui.policy.view.agreed_steps",
        "second_steps(text) != steps",
        "False",
        (EXPANSIONS + "test_readers_that_differ_expand_nothing",),
    ),
    Mutation(
        "expansions: names that may appear",
        "whisper_tui.policy.evaluate._read_only_with_expansions",
        "_harmless_whatever_matches(steps)",
        "True",
        ASKED_EXPANSIONS,
    ),
    Mutation(
        "expansions: code before names",
        "whisper_tui.policy.commands.read_only_list.harmless_with_any",
        "name in _CODE_FIRST and not only_reads(argv[:first], git_is_neutral=False)",
        "False",
        ASKED_EXPANSIONS,
    ),
    Mutation(
        "expansions: more than one name",
        "whisper_tui.policy.commands.read_only_list.harmless_with_any",
        "(1, 2, 5)",
        "(1,)",
        ASKED_EXPANSIONS,
    ),
    Mutation(
        "expansions: only in the sandbox",
        "whisper_tui.policy.evaluate._read_only_with_expansions",
        'found and found.model_copy(update={"sandbox": Sandbox()})',
        "found",
        (EXPANSIONS + "test_without_a_sandbox_expansions_are_asked",),
    ),
    Mutation(
        "expansions: not in an agent's own shell",
        "whisper_tui.policy.evaluate._read_only_with_expansions",
        "literal.by_agent",
        "False",
        (EXPANSIONS + "test_an_agent_that_runs_its_commands_itself_is_asked_about_expansions",),
    ),
    Mutation(
        "expansions: rules that deny",
        "whisper_tui.policy.evaluate.evaluate",
        "_reaches_literal(rule, literal)",
        "False",
        (EXPANSIONS + "test_a_rule_that_denies_or_asks_sees_the_words_that_expansions_lead_to",),
    ),
    Mutation(
        "expansions: denials for a session",
        "whisper_tui.supervisor.approvals.judge.Judge._unless_denied",
        'tuple(each.argv for each in view(Shell(text=resolved.literal or "")).plain or ())',
        "()",
        (DENIALS + "test_words_that_expansions_lead_to_are_denied",),
    ),
    Mutation(
        "expansions: no rule allows them",
        "whisper_tui.policy.evaluate._read_only_with_expansions",
        'rules.model_copy(update={"allow": (), "otherwise": "ask"})',
        "rules",
        (EXPANSIONS + "test_rules_that_allow_are_about_words_that_are_written_out",),
    ),
    Mutation(
        "expansions: links",
        "whisper_tui.policy.evaluate._in_literal_words",
        '{"places": question.resolved.literal_places}',
        "{}",
        (EXPANSIONS + "test_file_names_that_are_there_are_judged_like_words",),
    ),
    Mutation(
        "expansions: a value that bash may split",
        "whisper_tui.policy.shell.static_expansion._Expansion._value",
        "not quoted and (value.beginning is not None or not _UNSPLIT.fullmatch(value.text))",
        "False",
        ASKED_EXPANSIONS,
    ),
    Mutation(
        "expansions: variables with a meaning",
        "whisper_tui.policy.shell.static_expansion._check_name",
        "_OF_BASH.fullmatch(name) or is_withheld(name)",
        "False",
        ASKED_EXPANSIONS,
    ),
    Mutation(
        "expansions: a variable that is set twice",
        "whisper_tui.policy.shell.static_expansion._check_name",
        '"set" in kinds and (loop or len(kinds) > 1)',
        "False",
        ASKED_EXPANSIONS,
    ),
    Mutation(
        "expansions: a variable that may not be set",
        "whisper_tui.policy.shell.strict_reader._PlainReader.steps",
        'found[-1].kind == "set" and not (before in _SURELY_AFTER and operator in _SURELY_BEFORE)',
        "False",
        ASKED_EXPANSIONS,
    ),
    Mutation(
        "expansions: a pattern in another directory",
        "whisper_tui.policy.shell.static_expansion._Expansion._word",
        "self._moves",
        "False",
        ASKED_EXPANSIONS,
    ),
    Mutation(
        "expansions: variables beside braces",
        "whisper_tui.policy.shell.static_expansion._without_braces",
        'any(kind in {"name", "quoted name"} for kind, _ in word)',
        "False",
        ASKED_EXPANSIONS,
    ),
)
