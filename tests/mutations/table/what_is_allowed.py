"""Nothing is allowed by a misreading."""

from tests.mutations.mutation import Mutation

DENIALS = "tests/supervisor/test_session_denials.py::"
CHOOSING = "tests/supervisor/places/test_choosing_places.py::"
ENGINE = "tests/supervisor/engine/test_local_executor.py::"
DAMAGED = "tests/supervisor/test_damaged_journal.py::"
EVALUATE = "tests/policy/test_evaluate.py::"
PLACES = "tests/policy/test_rules_at_places.py::"
SANDBOX = "tests/supervisor/engine/test_sandbox.py::"
UNASKED = "tests/supervisor/engine/test_unasked.py::"
SPELLINGS = "tests/policy/test_spellings.py::"
ONLY_READS = "tests/policy/test_only_reads.py::"
TELLING = "tests/policy/test_telling_commands.py::"
BARE = "tests/policy/test_bare_rules.py::"
LOOKUPS = "tests/supervisor/test_lookup_errors.py::"
READERS = "tests/mutations/test_two_readers.py::"

WHAT_IS_ALLOWED = (
    Mutation(
        "a path behind the letters of an option",
        "whisper_tui.policy.rules.matching.stays_inside",
        '_LETTERS.sub("", word.rpartition("=")[2])',
        'word.rpartition("=")[2]',
        (
            "tests/policy/test_staying_inside.py::"
            "test_a_word_that_leads_out_is_noticed_however_it_is_written[cp a -t/etc]",
        ),
    ),
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
        "whisper_tui.supervisor.approvals.judge.Judge._denial_of",
        "not denials",
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
        "denials that were lost with an event",
        "whisper_tui.supervisor.approvals.judge.Judge._unless_denied",
        "doubt is None",
        "True",
        (DENIALS + "test_a_session_whose_denial_was_lost_is_asked_about_whatever_rules_allow",),
    ),
    Mutation(
        "events that are not as they were written",
        "whisper_tui.supervisor.journal.damage.Damage._is_as_written",
        "is_proven(near, seq)",
        "True",
        (DAMAGED + "test_an_event_that_was_changed_to_another_one_is_not_believed",),
    ),
    Mutation(
        "approvals after a damage of the journal",
        "whisper_tui.supervisor.journal.journal.Journal.ended_cleanly",
        "not self.damage.new",
        "True",
        (DAMAGED + "test_approvals_are_asked_about_once_after_a_damage_and_not_at_every_start",),
    ),
    Mutation(
        "rules without a record in a journal that is not the first",
        "whisper_tui.supervisor.rule_book.RuleTrust.look",
        "self._store.journal.is_first",
        "True",
        (DAMAGED + "test_a_file_without_a_record_is_trusted_in_the_first_journal_only",),
    ),
    Mutation(
        "notes beside the events without their digest",
        "whisper_tui.supervisor.journal.counters.Counters.check",
        "self._proven",
        "True",
        (DAMAGED + "test_damaged_notes_beside_the_events_trust_nothing_and_lift_no_pause",),
    ),
    Mutation(
        "rules whose trust cannot be read",
        "whisper_tui.supervisor.journal.journal.Journal.rules",
        "self.damage.is_readable(seq)",
        "True",
        (DAMAGED + "test_a_file_of_rules_whose_trust_cannot_be_read_is_not_a_new_one",),
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
        "whisper_tui.policy.evaluate._permissions",
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
        "the configuration of git in a home, which a sandbox does not open",
        "whisper_tui.supervisor.runs.git_identity.git_variables",
        "all(lies_below(path, opened) for path in present)",
        "True",
        (
            "tests/supervisor/engine/test_workspace_repository.py"
            "::test_a_commit_names_the_user_though_the_configuration_of_the_home_stays_closed",
        ),
    ),
    Mutation(
        "no access control lists in a sandbox",
        "whisper_tui.supervisor.keeper.seccomp._attribute",
        'name.startswith("system.posix_acl_") and not call.is_previewed',
        "False",
        (SANDBOX + "test_modes_that_programs_copy_as_access_control_lists_are_set",),
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
        "answers_to(answers, REFUSED)",
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

REPORTED = "tests/supervisor/test_reported_lines.py::"
PLANTED = (REPORTED + "test_a_program_of_the_workspace_with_the_name_of_a_reader_does_not_only_read",)
NEIGHBOURS = (REPORTED + "test_lines_that_look_like_harmless_ones_are_asked",)

FORMS_OF_AGENTS = (
    Mutation(
        "programs of the workspace beside a rule",
        "whisper_tui.policy.evaluate._permissions",
        "_from_workspace(question, seen)",
        "frozenset()",
        PLANTED,
    ),
    Mutation(
        "the cat that passes a text",
        "whisper_tui.policy.evaluate._allowed",
        '"cat" in _from_workspace(question, seen) | _not_of_system(question)',
        "False",
        PLANTED,
    ),
    Mutation(
        "git in another repository",
        "whisper_tui.supervisor.approvals.resolve._stays",
        "list(found) != [repository] * len(where)",
        "False",
        NEIGHBOURS,
    ),
    Mutation(
        "options behind operands",
        "whisper_tui.policy.commands.text_tools.named_words",
        "taken == 1 or not operands",
        "True",
        NEIGHBOURS,
    ),
    Mutation(
        "a loop without quotes",
        "whisper_tui.policy.shell.static_expansion._Expansion._word",
        "value.beginning is not None and (not quoted)",
        "False",
        NEIGHBOURS,
    ),
    Mutation(
        "variables before a command of a rule",
        "whisper_tui.policy.rules.matching.Permissions.allows",
        "used.count(_SETS_VARIABLES)",
        "False",
        (REPORTED + "test_a_rule_holds_for_nothing_that_only_looks_like_it",),
    ),
    Mutation(
        "prefixes of interpreters",
        "whisper_tui.policy.rules.grants._prefix",
        "is_interpreter(argv[0]) or argv[0] in SHELLS | BUILTINS",
        "False",
        (REPORTED + "test_a_prefix_is_offered_for_what_is_not_allowed_yet",),
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
        "whisper_tui.supervisor.approvals.judge.Judge._denial_of",
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
        "not quoted and (not _UNSPLIT.fullmatch(value.text))",
        "False",
        ASKED_EXPANSIONS,
    ),
    Mutation(
        "expansions: variables with a meaning",
        "whisper_tui.policy.shell.static_expansion._check_name",
        "not is_only_a_name(name)",
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
    Mutation(
        "a word behind an option may be the subcommand",
        "whisper_tui.policy.commands.readings.find_words",
        "not each.is_certain",
        "False",
        (
            SPELLINGS + "test_options_between_a_program_and_its_subcommand_hide_nothing",
            SPELLINGS + "test_a_danger_is_seen_behind_options",
        ),
    ),
    Mutation(
        "other words for a denied subcommand",
        "whisper_tui.policy.commands.spellings.spellings",
        "words[: len(spelling)] == spelling",
        "False",
        (SPELLINGS + "test_a_denial_holds_for_every_spelling_that_the_program_accepts",),
    ),
    Mutation(
        "beginnings of subcommands in rules and in commands",
        "whisper_tui.policy.commands.spellings._begins_other",
        "given.startswith(wanted)",
        "False",
        (SPELLINGS + "test_a_denial_holds_for_every_spelling_that_the_program_accepts",),
    ),
    Mutation(
        "options that mean the same",
        "whisper_tui.policy.commands.spellings.same_options",
        "option in group",
        "False",
        (SPELLINGS + "test_what_git_itself_takes_for_no_verify_is_denied_as_no_verify",),
    ),
    Mutation(
        "beginnings of a long option",
        "whisper_tui.policy.commands.spellings._is_option",
        'shortens and given.startswith("--") and len(given) > 2 and option.startswith(given)',
        "False",
        (SPELLINGS + "test_what_rm_itself_takes_for_recursive_is_denied_as_recursive",),
    ),
    Mutation(
        "a command in a container behind unknown options",
        "whisper_tui.policy.commands.special_wrappers._container_verb",
        "find_words(read, way)",
        "(None if parsed is None else find_words(read, way))",
        (SPELLINGS + "test_a_command_in_a_container_is_found_behind_options",),
    ),
    Mutation(
        "denials for a session behind options",
        "whisper_tui.supervisor.approvals.judge.Judge._denial_of",
        "each.matches(begins) or _reaches(each, spec, seen)",
        "each.matches(begins)",
        (DENIALS + "test_options_and_other_spellings_do_not_escape_a_denial",),
    ),
    Mutation(
        "what only reads has no danger",
        "whisper_tui.policy.rules.matching.Permissions._one",
        "not dangers",
        "True",
        (ONLY_READS + "test_nothing_with_a_danger_runs_unasked_even_if_the_list_were_wrong",),
    ),
    Mutation(
        "a value that looks like an option",
        "whisper_tui.policy.commands.argv.following_value",
        "_LIKE_OPTION.match(value)",
        "False",
        (ONLY_READS + "test_an_option_is_not_taken_for_the_value_of_another",),
    ),
    Mutation(
        "commands that print secrets",
        "whisper_tui.policy.risks.command_dangers.dangers_of_program",
        "prints_secrets(argv[offset:], program)",
        "()",
        (TELLING + "test_a_command_that_prints_secrets_has_a_risk_and_a_rule_must_name_it",),
    ),
    Mutation(
        "subcommands that say what they do",
        "whisper_tui.policy.risks.telling_verbs.telling_verbs",
        "_VERBS.isdisjoint(telling)",
        "True",
        (TELLING + "test_an_unknown_program_is_judged_by_what_its_subcommand_says",),
    ),
    Mutation(
        "the scripts and modules of interpreters",
        "whisper_tui.policy.risks.code_execution.programs_of",
        "first_words(argv)",
        "()",
        (TELLING + "test_a_reset_of_a_database_is_destructive",),
    ),
    Mutation(
        "a rule for an unknown program alone",
        "whisper_tui.policy.rules.known_programs.says_too_little",
        "not is_known(words[0])",
        "False",
        (BARE + "test_a_rule_for_an_unknown_program_needs_a_further_word",),
    ),
    Mutation(
        "programs whose operand is code",
        "whisper_tui.policy.risks.dangerous_options.options_that_rules_must_name",
        "name in _RUN_OPERANDS",
        "False",
        (BARE + "test_a_program_that_runs_another_by_its_words_is_not_allowed_by_its_name",),
    ),
    Mutation(
        "what may not be looked at is asked",
        "whisper_tui.supervisor.approvals.resolve._kind",
        "error.errno in _NOTHING_THERE",
        "True",
        (LOOKUPS + "test_links_in_a_circle_are_asked_about",),
    ),
)
