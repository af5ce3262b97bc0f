"""What sessions inherit is kept in files, and only what is used in memory."""

from whisper_tui.model.state import ShellReport
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


def test_what_a_shell_makes_of_an_environment_is_kept_beside_it(tmp_path):
    kept = Environments(tmp_path / "environments", {})
    kept.keep("s1", {"GIVEN": "1", "DROPPED": "1", "PWD": "/"})
    own = {"ADDED": "2", "PWD": "/elsewhere", "SHLVL": "3"}
    kept.learn("s1", ShellReport(names=("GIVEN", "ADDED", "PWD"), environment=own, profile="/profile"))
    kept.keep("s1", {"GIVEN": "new", "DROPPED": "1", "PWD": "/"})
    again = Environments(tmp_path / "environments", {})
    for each in (kept, again):
        assert each.of("s1") == {"GIVEN": "new", "ADDED": "2", "PWD": "/"}
        assert each.profile_of("s1") == "/profile"
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "environments").iterdir()} == {0o600}
    kept.unlearn("s1")
    assert kept.of("s1") == {"GIVEN": "new", "DROPPED": "1", "PWD": "/"} and not kept.profile_of("s1")
    kept.forget("s1")
    assert not list((tmp_path / "environments").iterdir())


def test_programs_of_the_agent_are_found_after_those_of_its_shell(tmp_path):
    kept = Environments(tmp_path / "environments", {})
    kept.keep("s1", {"PATH": "/helpers:/usr/bin", "OTHER": "1"})
    for known, path in (("/own:/usr/bin", "/own:/usr/bin:/helpers"), ("/helpers", "/helpers:/usr/bin")):
        kept.learn("s1", ShellReport(names=("PATH",), environment={"PATH": known}))
        assert kept.of("s1") == {"PATH": path}
    kept.learn("s1", ShellReport(names=("OTHER",), environment={"OTHER": "2"}))
    assert kept.of("s1") == {"OTHER": "2"}, "a shell without PATH has none"
