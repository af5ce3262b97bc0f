"""A preview is applied only over the files that it has seen, whole or not at all, and no link redirects it."""

from tests.mutations.mutation import Mutation

TRANSITION = "tests/supervisor/preview/test_transition.py::"
TREES = "tests/supervisor/preview/test_file_trees.py::"
DIFF = "tests/supervisor/preview/test_overlay_diff.py::"
LADDER = "tests/supervisor/test_preview_ladder.py::"
WAYS = "tests/supervisor/preview/test_preview_ways.py::"
KILLS = "tests/supervisor/preview/test_kills.py::"
EFFECTS = "tests/supervisor/test_effect_rules.py::"
RULES = "tests/policy/test_rules_file.py::"
OVER = TRANSITION + "test_nothing_is_applied_over_changes_of_somebody_else"

PREVIEWS = (
    Mutation(
        "parents of real files are opened without links",
        "whisper_tui.supervisor.preview.file_trees.open_directory",
        'struct.pack("=QQQ", flags, 0, _RESOLVE_NO_SYMLINKS)',
        'struct.pack("=QQQ", flags, 0, 0)',
        (TRANSITION + "test_a_parent_that_becomes_a_symbolic_link_redirects_nothing",),
    ),
    Mutation(
        "a parent is the directory that was checked",
        "whisper_tui.supervisor.preview.change_steps.RealPaths._parent",
        "self._inodes.get(directory) not in (None, os.fstat(fd).st_ino)",
        "False",
        (TRANSITION + "test_another_directory_in_place_of_a_parent_is_a_conflict",),
    ),
    Mutation(
        "content is not written through a link",
        "whisper_tui.supervisor.preview.file_trees.open_file",
        "flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK",
        "flags |= os.O_CLOEXEC",
        (
            TRANSITION + "test_a_file_that_becomes_a_symbolic_link_is_not_written_through",
            TREES + "test_a_symbolic_link_in_place_of_a_file_is_neither_opened_nor_changed",
        ),
    ),
    Mutation(
        "trees are walked without links",
        "whisper_tui.supervisor.preview.file_trees.TreeWalker.down",
        "os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
        "os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC",
        (TREES + "test_a_directory_that_became_a_symbolic_link_is_not_entered",),
    ),
    Mutation(
        "a walk comes back to where it was",
        "whisper_tui.supervisor.preview.file_trees.TreeWalker.up",
        "(found.st_dev, found.st_ino) != expected",
        "False",
        (TREES + "test_a_directory_that_was_moved_away_does_not_lead_out_of_the_tree",),
    ),
    Mutation(
        "changes of others before a preview is applied",
        "whisper_tui.supervisor.preview.transition.conflicts",
        "differs(stamp(change.path), change.before)",
        "False",
        (OVER,),
    ),
    Mutation(
        "changes of others in a directory to remove",
        "whisper_tui.supervisor.preview.transition.conflicts",
        "differences(change.path, change.old_inside)",
        "[]",
        (OVER,),
    ),
    Mutation(
        "changes of others to a file that gets a further name",
        "whisper_tui.supervisor.preview.transition.conflicts",
        "[path for path, old in (change.targets or {}).items() if differs(stamp(path), old)]",
        "[]",
        (OVER,),
    ),
    Mutation(
        "changes of others while the command ran",
        "whisper_tui.supervisor.preview.overlay_diff.ChangeReader.plan",
        "_changed_since(changes, began)",
        "()",
        (DIFF + "test_what_somebody_else_changed_during_the_preview_is_named",),
    ),
    Mutation(
        "later work before an undo",
        "whisper_tui.supervisor.preview.transition._undo_conflicts",
        "differs(stamp(change.path), result.found)",
        "False",
        (TRANSITION + "test_nothing_is_undone_over_later_work",),
    ),
    Mutation(
        "later work in a new directory",
        "whisper_tui.supervisor.preview.transition._undo_conflicts",
        "differences(change.path, result.inside)",
        "[]",
        (TRANSITION + "test_nothing_is_undone_over_later_work",),
    ),
    Mutation(
        "further names are undone together",
        "whisper_tui.supervisor.preview.transition._chosen",
        "number not in found and number not in plan.undone and shared",
        "False",
        (TRANSITION + "test_a_file_is_not_undone_without_its_further_names",),
    ),
    Mutation(
        "steps before one that fails are taken back",
        "whisper_tui.supervisor.preview.transition._roll_back",
        "_undo(store, plan, results)",
        "load_plan(store)",
        (TRANSITION + "test_after_any_step_that_fails_all_or_nothing_is_real",),
    ),
    Mutation(
        "a state is announced before its steps",
        "whisper_tui.supervisor.preview.transition._begin_apply",
        "save_state(store, APPLYING, untimed=_untimed(plan.directories, applied=False))",
        "None",
        (KILLS + "test_killed_before_a_changing_call",),
    ),
    Mutation(
        "old contents are kept whole",
        "whisper_tui.supervisor.preview.undo_records.KeptContents.add_content",
        "len(content) != size",
        "False",
        (TRANSITION + "test_a_file_that_grows_after_the_check_is_not_overwritten",),
    ),
    Mutation(
        "a preview has no sockets that namespaces do not confine",
        "whisper_tui.supervisor.preview.watched_calls.watching_filter",
        "number is not None and closed",
        "False",
        ("tests/supervisor/preview/test_escapes.py::test_no_socket_that_namespaces_do_not_confine_can_be_made",),
    ),
    Mutation(
        "modes that a move needs are restored after a kill",
        "whisper_tui.supervisor.preview.change_steps._restore_mode",
        "found is not None and found.mode != wanted.mode",
        "False",
        (KILLS + "test_killed_as_an_ordinary_user",),
    ),
    Mutation(
        "no more entries than a preview lists",
        "whisper_tui.supervisor.preview.overlay_diff.ChangeReader._count",
        "self._entries > file_trees.MOST_ENTRIES",
        "False",
        (DIFF + "test_more_changes_than_a_preview_lists_are_refused",),
    ),
    Mutation(
        "a rule on effects names every command of a call",
        "whisper_tui.policy.rules.matching.names_whole",
        "all(any(_names(rule, each) for rule in rules) for each in plain or ())",
        "True",
        (RULES + "test_a_rule_on_effects_permits_them_where_it_names_every_command",),
    ),
    Mutation(
        "every rule that asks must permit the effects",
        "whisper_tui.policy.evaluate._conditions",
        "len(conditions) < len(asking)",
        "False",
        (RULES + "test_effects_permit_nothing_where_another_rule_asks_or_the_agent_runs_the_command_itself",),
    ),
    Mutation(
        "rules of clients permit no effects",
        "whisper_tui.policy.rules.rule.stricter",
        '{"allow_if_preview": None}',
        "{}",
        (RULES + "test_rules_of_others_permit_no_effects",),
    ),
    Mutation(
        "rules of projects permit no effects",
        "whisper_tui.config.project_rules._told",
        '{"name": _name(rule), "justification": said, "allow_if_preview": None}',
        '{"name": _name(rule), "justification": said}',
        ("tests/config/test_project_rules.py::test_rules_of_a_project_permit_no_effects_even_if_trusted",),
    ),
    Mutation(
        "changes elsewhere are beyond a rule on effects",
        "whisper_tui.supervisor.runs.preview_changes.PreviewStore.beyond",
        "not self._is_within(row, condition.writes_within, workspace)",
        "False",
        (EFFECTS + "test_changes_beyond_a_rule_wait_for_a_human",),
    ),
    Mutation(
        "changes of a copy are applied only if nothing was refused",
        "whisper_tui.supervisor.runs.preview_changes._problem",
        "access.what in _ONLY_IN_COPIES",
        "False",
        (LADDER + "test_what_a_copy_refused_keeps_its_changes_from_being_applied",),
    ),
    Mutation(
        "no file that names the copy becomes real",
        "whisper_tui.supervisor.runs.preview_changes._problem",
        "(leaks := leaks_of(store.directory))",
        "False",
        (LADDER + "test_a_file_that_names_the_copy_keeps_the_changes_from_being_applied",),
    ),
    Mutation(
        "rules on effects trust exact previews alone",
        "whisper_tui.supervisor.runs.preview_changes.beyond_rule",
        "report.way not in EXACT_WAYS",
        "False",
        (LADDER + "test_a_rule_on_effects_leaves_a_preview_in_a_copy_to_the_human",),
    ),
    Mutation(
        "the workspace is closed to a command in its copy",
        "whisper_tui.supervisor.keeper.seccomp.SeccompNotifications._judge",
        "self._is_apart(call, path)",
        "False",
        (WAYS + "test_paths_into_the_workspace_are_refused_and_named_in_a_copy",),
    ),
    Mutation(
        "nothing runs on after a preview in a copy",
        "whisper_tui.supervisor.preview.confined._ConfinedHost._made",
        "_end_children()",
        "pass",
        (WAYS + "test_nothing_outside_changes_in_a_sandbox",),
    ),
    Mutation(
        "effects beyond a rule are left to a human",
        "whisper_tui.supervisor.runs.previews.Previews._approve_by_effects",
        "report.beyond_rule",
        "False",
        (EFFECTS + "test_changes_beyond_a_rule_wait_for_a_human",),
    ),
)
