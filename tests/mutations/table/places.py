"""Nothing runs at a place twice, or for somebody else, and no byte of its output is wrong."""

from tests.mutations.mutation import Mutation

LOST = "tests/supervisor/places/test_connection_lost.py::"
LONG = "tests/supervisor/places/test_long_output.py::"
STAYS = "tests/supervisor/places/test_what_stays_there.py::"

PLACES = (
    Mutation(
        "a late order for a place finds that it was given up",
        "whisper_tui.supervisor.places.far_runs.FarRuns.attach",
        "attempt.revoke()",
        "pass",
        (LOST + "test_an_order_that_never_left_is_given_up_and_may_be_repeated",),
    ),
    Mutation(
        "an order of before a reboot of a place may have run",
        "whisper_tui.supervisor.places.far_runs.FarRuns.attach",
        'boot in {"", self.boot}',
        "True",
        (LOST + "test_an_attempt_without_any_trace_may_have_run_if_the_machine_there_restarted",),
    ),
    Mutation(
        "an order to a place that was made anew since may have run",
        "whisper_tui.supervisor.places.remote_executor.RemoteExecutor._attach",
        'before.instance not in {"", hello.instance}',
        "False",
        (LOST + "test_a_place_made_anew_has_lost_what_ran_there_and_does_not_run_it_again",),
    ),
    Mutation(
        "a command at a place is no near end",
        "whisper_tui.supervisor.places.far_host.FarHost._on_connection",
        "not is_ours(connection)",
        "False",
        (LOST + "test_a_command_at_a_place_is_no_bridge",),
    ),
    Mutation(
        "a private directory at a place",
        "whisper_tui.supervisor.places.far_bridge.prepared",
        "found.st_uid != os.geteuid() or found.st_mode & 0o077",
        "False",
        (LOST + "test_a_directory_there_that_others_can_read_is_not_used",),
    ),
    Mutation(
        "a frame with output has the bytes that it promised",
        "whisper_tui.supervisor.places.far_news.FilePart.send",
        "not count",
        "False",
        (LONG + "test_a_file_that_was_cut_off_ends_the_connection_and_adds_no_bytes",),
    ),
    Mutation(
        "the output of what runs at a place is not removed",
        "whisper_tui.supervisor.places.far_runs.remove_old",
        "NAME.fullmatch(name) and name not in wanted and done is not None and done.st_mtime < before",
        "True",
        (STAYS + "test_what_still_runs_is_never_old",),
    ),
)
