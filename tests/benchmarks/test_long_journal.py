"""The long journal of the benchmarks is one that the supervisor itself might have written."""

from benchmarks.peers.long_journal import COMMON, write
from whisper_tui.model.api import HistoryQuery
from whisper_tui.model.state import Ended
from whisper_tui.supervisor.journal.journal import Journal
from whisper_tui.supervisor.journal.sqlite_file import check_file
from whisper_tui.supervisor.journal.store import Store


def test_a_long_journal_is_read_searched_and_found_unchanged(tmp_path):
    path = tmp_path / "journal.sqlite"
    write(path, 30)
    store = Store(Journal(path))
    found = store.journal.find(HistoryQuery(text=f"{COMMON}-3"))
    assert found == ["30", "3"]
    assert all(isinstance(store.call(call_id).state, Ended) for call_id in found)
    assert store.call("30").call.arguments["args"] == ["-j4", f"{COMMON}-30"]
    store.close()
    checked = check_file(path)
    assert (checked.problem, checked.events) == (None, 1 + 30 * 6)
