"""What looks at a workspace: in a cage, and at the repository that is the workspace's own."""

from tests.mutations.mutation import Mutation

CAGE = "tests/system/test_caged_program.py::"
GIT = "tests/effects/test_caged_git.py::"
RACE = "tests/mutations/test_looking_decides_nothing.py::"
OWN = "tests/supervisor/engine/test_workspace_repository.py::"

WHAT_LOOKS = (
    Mutation(
        "a judged directory that has become a link",
        "whisper_tui.system.landlock_rules.SystemRules.permit",
        "syscalls.open_unlinked(path)",
        "os.open(path, os.O_PATH | os.O_CLOEXEC)",
        ("tests/supervisor/engine/test_sandbox.py::test_a_directory_that_has_become_a_link_is_not_opened",),
    ),
    Mutation(
        "the cage: other processes",
        "whisper_tui.system.caged_program._instructions",
        "unless_bits(0, _CLONE_THREAD, syscalls.RET_USER_NOTIF)",
        "unless_bits(0, 0, syscalls.RET_ALLOW)",
        (
            CAGE + "test_it_starts_nothing[fork]",
            GIT + "test_a_repository_whose_settings_run_programs_is_asked_and_runs_none",
        ),
    ),
    Mutation(
        "the cage: one start",
        "whisper_tui.system.caged_program._instructions",
        "unless_bits(0, _CLONE_THREAD, syscalls.RET_USER_NOTIF)",
        "unless_bits(0, 0x4000, syscalls.RET_USER_NOTIF)",
        (CAGE + "test_it_starts_nothing[clone as posix_spawn does it]",),
    ),
    Mutation(
        "the cage: calls that do harm",
        "whisper_tui.system.caged_program._instructions",
        "answers_to(answers, MISSING)",
        "answers_to({0: syscalls.RET_ALLOW}, syscalls.RET_ALLOW)",
        (
            CAGE + "test_it_opens_no_socket[AF_UNIX, SOCK_DGRAM]",
            CAGE + "test_it_changes_nothing",
            CAGE + "test_it_starts_nothing[clone3]",
        ),
    ),
    Mutation(
        "the cage: the mark",
        "whisper_tui.system.caged_program._Cage._start",
        "processes.mark_supervised(pid)",
        "pass",
        (CAGE + "test_what_hangs_is_ended_in_time_and_has_the_mark_and_no_rights",),
    ),
    Mutation(
        "the cage: what is read",
        "whisper_tui.system.confinement.confine",
        "restrict(rules)",
        "pass",
        (CAGE + "test_it_reads_nothing_else[../other]", GIT + "test_git_reads_nothing_outside_of_the_repository"),
    ),
    Mutation(
        "the cage: its time",
        "whisper_tui.system.caged_program.look",
        "_kill(pid)",
        "False",
        (CAGE + "test_what_hangs_is_ended_in_time_and_has_the_mark_and_no_rights",),
    ),
    Mutation(
        "git looks from the cage",
        "whisper_tui.effects.git_reader.GitReader._asked",
        "cage_problem()",
        "True",
        (
            GIT + "test_settings_that_are_written_after_the_look_at_them_run_nothing[filter.evil.clean]",
            RACE + "test_settings_that_change_while_effects_are_stated_run_nothing_and_approve_nothing[a rule]",
            RACE + "test_settings_that_change_while_effects_are_stated_run_nothing_and_approve_nothing[approved once]",
        ),
    ),
    Mutation(
        "paths that stay closed to git",
        "whisper_tui.effects.git_reader.GitReader._asked",
        "opened_paths(tops, self._closed)",
        "tops",
        (GIT + "test_git_reads_no_closed_path_of_a_work_tree",),
    ),
    Mutation(
        "a repository that names its work tree in turn",
        "whisper_tui.effects.git_repository._linked_work_tree",
        "_line(os.path.join(git_dir, name)) != value",
        "False",
        (OWN + "test_the_repository_of_another_work_tree_is_not_opened[a file of a work tree]",),
    ),
    Mutation(
        "a repository around the home",
        "whisper_tui.supervisor.runs.sandbox_profile._opened_of",
        "contains_a_home(tree)",
        "False",
        (OWN + "test_a_repository_that_contains_the_home_is_not_opened",),
    ),
    Mutation(
        "private paths of a home that is the workspace",
        "whisper_tui.supervisor.runs.sandbox_profile.sandbox_profile_of",
        "opened_paths((top,), closed)",
        "(top,)",
        (OWN + "test_a_workspace_that_is_the_home_keeps_its_private_paths_closed",),
    ),
)
