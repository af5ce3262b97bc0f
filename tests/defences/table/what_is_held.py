"""A run stays in hand: whatever it starts, and whoever kills its keeper."""

from tests.defences.defence import Defence

GROUPS = "tests/supervisor/engine/test_control_groups.py::"

WHAT_IS_HELD = (
    Defence(
        "control groups: killing what lost its keeper",
        "whisper_tui/supervisor/remains.py",
        '"target": "tree"}:\n                self._group.kill()\n',
        '"target": "tree"}:\n                pass\n',
        (GROUPS + "test_a_killed_keepers_run_is_lost_and_still_seen_and_killed",),
    ),
    Defence(
        "control groups: seeing what lost its keeper",
        "whisper_tui/supervisor/remains.py",
        "        return self._group.populated()\n",
        "        return False\n",
        (GROUPS + "test_a_killed_keepers_run_is_ended_gently_after_a_restart",),
    ),
    Defence(
        "control groups: thawing what lost its keeper",
        "whisper_tui/supervisor/remains.py",
        '            case {"do": "thaw"}:\n                self._group.thaw()\n',
        '            case {"do": "thaw"}:\n                pass\n',
        (GROUPS + "test_a_run_that_was_held_when_its_keeper_was_killed_is_let_go_on_after_a_restart",),
    ),
    Defence(
        "control groups: holding what left its group",
        "whisper_tui/supervisor/keeper/freezer.py",
        "for seen in self._group.members()}",
        "for seen in self._descendants.now()}",
        (GROUPS + "test_what_left_the_group_of_a_held_run_is_stopped_too",),
    ),
    Defence(
        "control groups: the processor time of all of a run",
        "whisper_tui/supervisor/keeper/quota.py",
        "        elif self._has_used_up():\n",
        "        elif False:\n",
        (GROUPS + "test_the_processor_time_of_all_processes_together_is_limited",),
    ),
    Defence(
        "control groups: none stays behind",
        "whisper_tui/supervisor/keeper/life.py",
        "        self._group.remove()\n",
        "",
        (
            GROUPS + "test_what_a_run_has_left_behind_keeps_the_group_and_its_end_removes_it",
            GROUPS + "test_groups_that_a_run_has_made_go_with_its_own",
        ),
    ),
)
