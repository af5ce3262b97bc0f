"""Edits of files are judged by the files as they are, and an approved name never becomes a pattern."""

from tests.mutations.mutation import Mutation

RESULTS = "tests/effects/test_edit_results.py::"
JUDGED = "tests/policy/test_tool_calls.py::"
ENVIRONMENT = "tests/transports/codex_environment/test_approved_edits.py::"
MADE = "tests/supervisor/test_edits_of_agents.py::"

EDITS_OF_FILES = (
    Mutation(
        "an edit is judged by where its links lead",
        "whisper_tui.effects.edit_results.EditedPaths.look",
        "resolved_path(path)",
        "path",
        (RESULTS + "test_a_link_that_leads_out_is_judged_by_its_target",),
    ),
    Mutation(
        "dots after a link",
        "whisper_tui.effects.edit_results._FileFacts._inside",
        '_has_two_meanings(named) or "\\0" in real',
        "False",
        (RESULTS + "test_dots_that_lead_out_only_where_links_are_not_followed_count_as_outside",),
    ),
    Mutation(
        "files that decide, by every name",
        "whisper_tui.effects.edit_results._FileFacts._kind",
        "sensitive_kind(path, self.home, self.own)",
        "None",
        (RESULTS + "test_files_that_decide_have_a_kind",),
    ),
    Mutation(
        "instructions of agents, by every name",
        "whisper_tui.effects.edit_results._FileFacts.of",
        "(real, named)",
        "(real,)",
        (JUDGED + "test_a_link_named_like_instructions_steers_agents_too",),
    ),
    Mutation(
        "what tools run of a pyproject.toml",
        "whisper_tui.effects.edit_results._FileFacts._runs_later",
        "acting(old.data) != acting(new.data)",
        "False",
        (
            JUDGED + "test_pyproject_is_asked_only_where_what_tools_run_changes",
            JUDGED + "test_package_json_is_asked_only_where_its_scripts_change",
        ),
    ),
    Mutation(
        "files that run later in previews",
        "whisper_tui.policy.risks.later_files.flagged_kind",
        "_later(path)",
        '""',
        ("tests/policy/test_tool_calls.py::test_a_preview_flags_the_same_files",),
    ),
    Mutation(
        "an approval of an edit is of the content",
        "whisper_tui.effects.edit_results._FileFacts.of",
        "_digest(before.content.data)",
        "None",
        (MADE + "test_a_whole_file_that_has_changed_meanwhile_is_not_overwritten",),
    ),
    Mutation(
        "ordinary files only",
        "whisper_tui.policy.tool_calls._without_rule",
        "_edit_doubt(question)",
        '""',
        (JUDGED + "test_edits_outside_the_workspace_are_asked", JUDGED + "test_one_file_of_many_is_enough_to_ask"),
    ),
    Mutation(
        "a repository that edits would plant",
        "whisper_tui.effects.run_by_git.kind_for_git",
        'name == "HEAD" or is_of_it',
        "False",
        (JUDGED + "test_parts_of_a_planted_repository_and_hooks_elsewhere_are_always_asked",),
    ),
    Mutation(
        "a workspace that is a home",
        "whisper_tui.policy.tool_calls._edit_doubt",
        'not root or root == "/" or contains_home(root)',
        "False",
        (JUDGED + "test_a_workspace_that_is_a_home_is_asked",),
    ),
    Mutation(
        "an edit of a file with other names is asked",
        "whisper_tui.policy.tool_calls._has_other_names",
        "file.links > 1",
        "False",
        (JUDGED + "test_a_file_that_has_other_names_is_asked_whatever_allows_its_path",),
    ),
    Mutation(
        "text that deceives is found where the result of an edit is not known",
        "whisper_tui.effects.edit_results._deceptive",
        "new.unknown",
        "False",
        (JUDGED + "test_hiding_text_is_found_even_if_the_result_of_the_edit_is_unknown",),
    ),
    Mutation(
        "a remembered pattern covers no file that runs later",
        "whisper_tui.policy.tool_calls.scope_covers",
        "file.runs_later or file.secret",
        "False",
        (
            JUDGED + "test_a_remembered_pattern_covers_no_file_that_runs_later_or_holds_secrets",
            JUDGED + "test_a_file_that_runs_later_or_holds_secrets_offers_itself_alone",
        ),
    ),
    Mutation(
        "a rule for any command allows no tool",
        "whisper_tui.policy.tool_calls._allowing",
        "rule.tool is not None",
        "True",
        (JUDGED + "test_a_rule_that_allows_any_command_allows_no_tool",),
    ),
    Mutation(
        "a rule of a directory allows no edit outside of it",
        "whisper_tui.policy.tool_calls._leaves",
        "rule.directory is None",
        "True",
        (JUDGED + "test_a_rule_of_a_directory_allows_nothing_outside_of_it",),
    ),
    Mutation(
        "a pattern matches the file behind its links",
        "whisper_tui.policy.rules.rule.file_matches",
        "root and wide",
        "root",
        (JUDGED + "test_an_allowed_link_does_not_allow_where_it_leads",),
    ),
    Mutation(
        "a name that is remembered is no pattern",
        "whisper_tui.policy.rules.grants._tool_scope_problem",
        "has_wildcards(command.tool, *(command.targets if isinstance(command, Function) else ()))",
        "False",
        (JUDGED + "test_a_server_cannot_name_a_tool_so_that_its_approval_covers_others",),
    ),
    Mutation(
        "every tool of a server is remembered by the name of the server alone",
        "whisper_tui.policy.tool_calls.rules_of_scope",
        "scope.tool in names",
        "any(fnmatch.fnmatchcase(name, scope.tool) for name in names)",
        (JUDGED + "test_every_tool_of_a_server_is_remembered_by_the_name_of_the_server_alone",),
    ),
    Mutation(
        "hosts of many people are not remembered together",
        "whisper_tui.policy.rules.grants._hosts_problem",
        'host.startswith("*.") and has_many_owners(host[2:])',
        "False",
        (JUDGED + "test_hosts_of_many_people_are_not_remembered_together",),
    ),
    Mutation(
        "nothing is suggested that would be asked again",
        "whisper_tui.policy.tool_calls._targets",
        "scope_covers(scope_about(command, text), question, command)",
        "True",
        (JUDGED + "test_a_file_outside_is_offered_by_its_full_path_and_never_its_home",),
    ),
    Mutation(
        "a human's result replaces only content that was judged",
        "whisper_tui.supervisor.approvals.admission.check_same_files",
        "before.get(file.real, file.before) != file.before",
        "False",
        (MADE + "test_a_humans_result_is_refused_if_the_file_has_changed_since_it_was_judged",),
    ),
    Mutation(
        "an edit is undone only while the file is as it left it",
        "whisper_tui.supervisor.edit_history.changed_since",
        "now not in step.expected",
        "False",
        (MADE + "test_a_file_that_was_changed_since_is_left_alone",),
    ),
    Mutation(
        "the removal of a stricter setting needs trust",
        "whisper_tui.supervisor.rule_book.as_trusted",
        "EDITS_ASKED in gone",
        "False",
        (
            "tests/policy/test_trusted_edits.py::test_edits_stay_asked_until_a_human_trusts_the_file_without_the_setting",
        ),
    ),
    Mutation(
        "an edit of Codex's environment is compared on the descriptor that is written",
        "whisper_tui.transports.codex_environment.environment_files._compare",
        'hashlib.sha256(_content(descriptor, LARGEST_READ)).hexdigest() != file["before"]',
        "False",
        (ENVIRONMENT + "test_a_file_that_changes_after_its_approval_is_not_written",),
    ),
    Mutation(
        "a new file of Codex's environment replaces no other one",
        "whisper_tui.transports.codex_environment.environment_files._make",
        "os.O_CREAT | os.O_EXCL if new else 0",
        "os.O_CREAT if new else 0",
        (ENVIRONMENT + "test_a_file_that_appears_after_the_approval_of_a_new_one_is_not_written",),
    ),
    Mutation(
        "an edit of Codex's environment is made to the approved file alone",
        "whisper_tui.transports.codex_environment.environment_files.FileService._edit",
        "real not in known",
        "False",
        (ENVIRONMENT + "test_a_directory_that_becomes_a_link_after_the_approval_is_not_followed",),
    ),
)
