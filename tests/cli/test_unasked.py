"""`whisper-tui unasked`: how much runs without anybody being asked, shown and set."""

import json

import pytest

from tests.outside import outside_only

pytestmark = outside_only


def test_it_shows_and_sets_how_much_runs_in_all_sessions_in_one_and_for_a_time(instance):
    (instance.root / "config" / "rules.toml").unlink()
    assert "all sessions: reading: commands that only read run at once" in instance.run("unasked").stdout
    told = instance.run("unasked", "workspace")
    assert told.returncode == 0 and "all sessions: workspace" in told.stdout
    assert (instance.root / "config" / "rules.toml").read_text() == 'unasked = "workspace"\n'
    told = instance.run("unasked", "nothing", "--for", "2h")
    assert "all sessions: nothing for 2 h more" in told.stdout, told.stdout
    call = instance.call("execute_command", command="ls")
    (row,) = instance.rows("list")
    session = row["session_id"]
    told = instance.run("unasked", "reading", "--session", session, "--for", "90m")
    assert f"session {session}: reading for " in told.stdout
    call.kill()
    levels = json.loads(instance.run("unasked", "--json").stdout)
    assert levels[""]["level"] == "nothing" and levels[""]["until"] is not None
    assert "all other sessions: nothing" in instance.run("unasked").stdout or session not in levels
    assert "essions: workspace: " in instance.run("unasked", "rules").stdout


@pytest.mark.slow
def test_what_cannot_be_set_is_refused_with_the_reason(instance):
    for words, told in (
        (("--for", "1h"), "--for needs a level"),
        (("rules", "--for", "1h"), "holds without an end"),
        (("reading", "--for", "0"), "more than 0 minutes"),
        (("reading", "--session", "s99"), "no session s99"),
    ):
        answer = instance.run("unasked", *words)
        assert answer.returncode != 0 and told in answer.stderr, (words, answer.stderr)
    (instance.root / "config" / "config.toml").write_text('[rules]\nunasked = "nothing"\n')
    assert instance.run("restart").returncode == 0
    answer = instance.run("unasked", "workspace")
    assert answer.returncode != 0 and "the stricter of two files counts" in answer.stderr
