"""What was approved is what runs, once."""

from tests.defences.defence import Defence

SWAPS = "tests/defences/test_swaps.py::"
DECIDING = "tests/supervisor/test_deciding.py::"
TICKETS = "tests/port/test_tickets.py::"

WHAT_WAS_APPROVED = (
    Defence(
        "a call from a shell that is asked for again",
        "whisper_tui/transports/call_door.py",
        "tool.request(said.arguments, key=said.nonce)",
        "tool.request(said.arguments)",
        ("tests/transports/test_call_door.py::test_whoever_asks_again_with_its_nonce_has_the_same_call",),
    ),
    Defence(
        "the fingerprint of what was seen",
        "whisper_tui/supervisor/desk.py",
        "        if seen != record.seen_digest():\n",
        "        if False:\n",
        (DECIDING + "test_a_decision_about_something_else_than_was_seen_is_refused",),
    ),
    Defence(
        "the first decision wins",
        "whisper_tui/supervisor/desk.py",
        "        if not isinstance(record.state, Waiting):\n",
        "        if False:\n",
        (DECIDING + "test_the_first_decision_wins",),
    ),
    Defence(
        "an edited command is judged",
        "whisper_tui/supervisor/desk.py",
        '            if judged.verdict.kind == "refuse":\n                raise Refused(\n',
        "            if False:\n                raise Refused(\n",
        (DECIDING + "test_an_edit_into_a_denied_command_is_refused_and_the_call_still_waits",),
    ),
    Defence(
        "the second look before the start",
        "whisper_tui/supervisor/pool.py",
        "        again = self._judge.judge_again(record)\n",
        "        again = None\n",
        (
            DECIDING + "test_a_program_swapped_after_the_approval_is_asked_again",
            SWAPS + "test_a_working_directory_that_became_a_link_to_elsewhere_is_noticed",
        ),
    ),
    Defence(
        "files that were approved",
        "whisper_tui/supervisor/judge.py",
        "by_human and any(changed_files(before, again.resolved))",
        "False",
        (SWAPS + "test_a_program_that_was_swapped_does_not_run_and_the_human_is_asked_again",),
    ),
    Defence(
        "scripts that were approved",
        "whisper_tui/supervisor/files_behind.py",
        "dict.fromkeys([program, *scripts])",
        "dict.fromkeys([program])",
        (SWAPS + "test_a_script_that_was_changed_is_noticed",),
    ),
    Defence(
        "the change time of a file",
        "whisper_tui/supervisor/keeper/stamp.py",
        ".{found.st_ctime_ns:x}",
        "",
        (SWAPS + "test_a_program_that_was_swapped_does_not_run_and_the_human_is_asked_again",),
    ),
    Defence(
        "the directory at the start itself",
        "whisper_tui/supervisor/keeper/spawn.py",
        "    if expected is not None and (here := _here()) != expected:\n",
        "    if expected is not None and (here := _here()) == 0:\n",
        (SWAPS + "test_a_directory_that_is_swapped_after_the_last_look_starts_nothing",),
    ),
    Defence(
        "the files at the start itself",
        "whisper_tui/supervisor/keeper/spawn.py",
        "        if stamp(path) != known:\n",
        "        if False:\n",
        (SWAPS + "test_a_program_that_is_swapped_after_the_last_look_starts_nothing",),
    ),
    Defence(
        "a start is on the disk before it happens",
        "whisper_tui/supervisor/pool.py",
        "self._ledger.record(*started, durable=True)",
        "self._ledger.record(*started, durable=False)",
        ("tests/defences/test_journal_first.py::test_a_start_is_flushed_to_the_disk_before_the_order_is_given",),
    ),
    Defence(
        "an attempt is claimed once",
        "whisper_tui/supervisor/keeper/job.py",
        "        os.symlink(layout.RUN, os.path.join(directory, layout.CLAIM))\n",
        "        pass\n",
        ("tests/supervisor/engine/test_recovery.py::test_an_attempt_that_nobody_took_up_is_revoked_and_never_runs",),
    ),
    Defence(
        "the secret of a ticket",
        "whisper_tui/supervisor/claims.py",
        "not hmac.compare_digest(record.call.ticket.encode(), ticket.encode())",
        "False",
        (TICKETS + "test_an_approved_call_with_a_ticket_waits_until_it_is_shown",),
    ),
    Defence(
        "a ticket is good once",
        "whisper_tui/supervisor/claims.py",
        'raise Refused(f"the ticket of call {record.id} was used before", hint="Run the command again")',
        "return",
        (TICKETS + "test_a_ticket_starts_one_run_and_its_claimer_may_say_so_again",),
    ),
    Defence(
        "a ticket of another agent",
        "whisper_tui/transports/hooks/run_door.py",
        "            if not await asyncio.to_thread(self._descends, socket, session.pid):\n",
        "            if False:\n",
        ("tests/cli/test_exec.py::test_a_ticket_of_another_session_runs_nothing",),
    ),
    Defence(
        "the directory of a ticket",
        "whisper_tui/transports/hooks/run_door.py",
        "        if asked != here:\n",
        "        if False:\n",
        ("tests/cli/test_exec.py::test_a_command_does_not_run_in_another_directory_than_was_approved",),
    ),
    Defence(
        "the end of a run whose agent makes no sense",
        "whisper_tui/transports/hooks/run_door.py",
        "        except InvalidRequest:\n            await self._end_run()\n            raise\n",
        "        except InvalidRequest:\n            raise\n",
        ("tests/fuzz/test_hooks.py::test_pieces_of_any_shape_end_the_run_of_a_ticket_and_nothing_else",),
    ),
)
