"""The log of the journal goes into its database beside the work, and nothing is lost by it."""

from pathlib import Path

from tests.model.build import a_call
from whisper_tui.model.event import Submitted
from whisper_tui.supervisor.journal.journal import Journal
from whisper_tui.supervisor.journal.sqlite_file import EVERY


def submitted(number: int) -> Submitted:
    return Submitted(at=2.0, call=a_call(str(number)).model_copy(update={"key": None}))


def test_however_much_is_written_the_log_grows_no_longer_than_between_two_checkpoints(tmp_path: Path) -> None:
    journal, log = Journal(tmp_path / "journal.sqlite"), tmp_path / "journal.sqlite-wal"
    sizes = []
    for number in range(1, 5 * EVERY + 1):
        journal.append([submitted(number)])
        journal.checkpoints.close()
        if number % EVERY == 0:
            sizes.append(log.stat().st_size)
    assert sizes[-1] < 2 * sizes[0]
    journal.close()
    again = Journal(tmp_path / "journal.sqlite")
    assert again.last_call == 5 * EVERY
    again.close()


def test_writes_continue_during_a_checkpoint(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    for number in range(1, 3 * EVERY + 1):
        journal.append([submitted(number)], durable=number % 10 == 0)
    journal.close()
    again = Journal(tmp_path / "journal.sqlite")
    assert [int(event.call.id) for event in again.events_after(0, 5 * EVERY)[0]] == list(range(1, 3 * EVERY + 1))
    again.close()
