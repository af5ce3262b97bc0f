"""What sessions inherit is kept in files, and only what is used in memory."""

from whisper_tui.supervisor import sessions as environments
from whisper_tui.supervisor.sessions import Environments


def test_more_environments_than_are_held_in_memory_are_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "KNOWN", 2)
    kept = Environments(tmp_path / "environments", {"OWN": "1"})
    for number in range(5):
        kept.keep(f"s{number}", {"NUMBER": str(number)} if number else {})
    assert len(kept._known) == 2
    assert [kept.of(f"s{number}") for number in range(5)] == [
        {"OWN": "1"},
        *({"NUMBER": str(number)} for number in range(1, 5)),
    ]
    assert len(kept._known) == 2
    kept.forget("s4")
    assert kept.of("s4") == {"OWN": "1"}
