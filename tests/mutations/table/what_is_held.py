"""A run stays in hand: whatever it starts, and whoever kills its keeper."""

from tests.mutations.mutation import Mutation

GROUPS = "tests/supervisor/engine/test_control_groups.py::"

WHAT_IS_HELD = (
    Mutation(
        "running clients without their hook",
        "whisper_tui.agents.running_clients.unhooked",
        "without_hook(own, theirs)",
        '""',
        ("tests/install/test_running_clients.py::test_a_client_that_runs_without_its_hook_is_named",),
    ),
    Mutation(
        "the shell of a project where the plugin is off",
        "whisper_tui.agents.shell_gate.ShellSetting._another_shell",
        "enforced.left_out()",
        '""',
        ("tests/install/test_shell_gate.py::test_a_shell_of_the_project_is_reported_where_the_plugin_is_off",),
    ),
    Mutation(
        "servers without which Codex would not begin",
        "whisper_tui.agents.codex_programs.check_servers",
        'entry.get("required")',
        "False",
        (
            "tests/install/test_install_environment.py"
            "::test_a_server_that_codex_requires_is_refused_and_the_doctor_finds_one_added_later",
        ),
    ),
    Mutation(
        "no code of a project in place of the hook",
        "whisper_tui.system.own_program.own_program",
        "_WITH_USER_SITE if _is_linked_by_user() else _ISOLATED",
        "()",
        ("tests/structure/test_isolated_python.py::test_each_command_line_is_isolated_and_absolute",),
    ),
    Mutation(
        "input that Codex types without a hook",
        "whisper_tui.transports.hook.exec_endpoint.ExecEndpoint.__call__",
        "profile is not None and profile.asks_no_hook_about_input",
        "False",
        ("tests/cli/test_exec.py::test_what_a_client_types_without_a_hook_waits_for_the_human",),
    ),
    Mutation(
        "no hook whose program vanishes with a cache",
        "whisper_tui.cli.commands.install_client._check_that_the_program_lasts",
        "cache_with_this_program()",
        '""',
        ("tests/test_packaging.py::test_install_writes_no_path_that_is_in_a_cache",),
    ),
    Mutation(
        "hooks of earlier versions, which a project can replace",
        "whisper_tui.agents.findings.not_isolated",
        "is_isolated(words)",
        "True",
        ("tests/install/test_place.py::test_what_an_earlier_version_wrote_is_named_and_replaced",),
    ),
    Mutation(
        "control groups: killing what lost its keeper",
        "whisper_tui.supervisor.keeper.attempt_files.OrphanedRun.execute",
        "self._group.kill()",
        "pass",
        (GROUPS + "test_a_killed_keepers_run_is_lost_and_still_seen_and_killed",),
    ),
    Mutation(
        "control groups: seeing what lost its keeper",
        "whisper_tui.supervisor.keeper.attempt_files.OrphanedRun.alive",
        "self._group.populated()",
        "False",
        (GROUPS + "test_a_killed_keepers_run_is_ended_gently_after_a_restart",),
    ),
    Mutation(
        "control groups: thawing what lost its keeper",
        "whisper_tui.supervisor.keeper.attempt_files.OrphanedRun.execute",
        '"thaw"',
        '"nothing"',
        (GROUPS + "test_a_frozen_run_without_a_keeper_is_continued_after_a_restart",),
    ),
    Mutation(
        "control groups: holding what left its group",
        "whisper_tui.supervisor.keeper.run_control.RunFreezer._check",
        "self._group.members()",
        "self._descendants.now()",
        (GROUPS + "test_processes_that_left_the_group_are_stopped_too",),
    ),
    Mutation(
        "control groups: the processor time of all of a run",
        "whisper_tui.supervisor.keeper.run_control.Quota._check",
        "self._has_used_up()",
        "False",
        (GROUPS + "test_the_processor_time_of_all_processes_together_is_limited",),
    ),
    Mutation(
        "control groups: none stays behind",
        "whisper_tui.supervisor.keeper.keeper.Keeper._finish_group",
        "self._group.is_removed()",
        "True",
        (
            GROUPS + "test_background_processes_keep_the_group_until_they_end",
            GROUPS + "test_groups_that_a_run_has_made_go_with_its_own",
        ),
    ),
)
