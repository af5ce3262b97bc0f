"""Secrets on the screen: shown while a call is decided about, hidden from then on, revealed for ten seconds."""

from tests.tui.cockpit import cockpit
from tests.tui.past import ask, history
from tests.tui.past import begin as begin_past
from tests.tui.scenes import ME, Play
from whisper_tui.cli.watch_text import first_words, in_full
from whisper_tui.model.decision import Grant, PrefixScope
from whisper_tui.tui.call import revealed_secrets
from whisper_tui.tui.rules.rule_list import grant_paragraphs

SECRET = "hunter22"
WORDS = ("psql", f"--password={SECRET}", "prod")
MASKED = "--password=⟨secret⟩"


def ended() -> Play:
    """A call with a secret is over, and another waits."""
    play = begin_past()
    call_id = ask(play, *WORDS)
    play.approve(call_id)
    play.print(call_id, "build")
    play.end(call_id)
    ask(play, "ls")
    return play


async def test_a_secret_is_shown_while_the_call_is_decided_about_and_hidden_once_it_runs():
    play = begin_past()
    call_id = ask(play, *WORDS)
    async with cockpit(play) as seat:
        await seat.sees(f"--password={SECRET} prod")
        play.approve(call_id)
        await seat.settled()
        await seat.select(call_id)
        await seat.sees("▶", MASKED)
        assert SECRET not in seat.text()


async def test_the_list_and_the_call_hide_the_secrets_of_what_is_over_and_m_reveals_those_of_one_call(monkeypatch):
    monkeypatch.setattr(revealed_secrets, "REVEALED_S", 0.5)
    async with cockpit(ended()) as seat:
        await seat.select("1")
        await seat.sees(MASKED, "Secrets", "hidden; M shows them")
        assert SECRET not in seat.text()
        await seat.press("M")
        await seat.sees(SECRET, "Secrets     shown")
        await seat.until(lambda: SECRET not in seat.text())


async def test_m_again_hides_them_at_once_and_another_call_has_nothing_to_show():
    async with cockpit(ended()) as seat:
        await seat.select("1")
        await seat.press("M")
        await seat.sees(SECRET)
        await seat.press("M")
        await seat.sees("The secrets of call 1 are hidden.")
        assert SECRET not in seat.text()
        await seat.select("2")
        await seat.press("M")
        await seat.sees("Nothing in call 2 is hidden.")


async def test_the_history_hides_and_reveals_them_as_well():
    async with cockpit(ended()) as seat, history(seat):
        await seat.press("down")
        await seat.sees(MASKED, "hidden; M shows them")
        assert SECRET not in seat.text()
        await seat.press("M")
        await seat.sees(SECRET)


async def test_the_last_calls_of_a_session_hide_them():
    async with cockpit(ended(), size=(120, 60)) as seat:
        await seat.select("2")
        await seat.press("m")
        await seat.sees("Last calls", MASKED)
        assert SECRET not in seat.text()


async def test_watch_and_the_list_of_approvals_hide_them():
    play = ended()
    record = play.stage.board.calls["1"]
    assert SECRET not in first_words(record)
    assert SECRET not in "\n".join(in_full(record, play.stage.board, play.clock()))
    spec, scope = record.spec, PrefixScope(words=WORDS)
    grant = Grant(id="g1", session_id="s1", from_call="1", scope=scope, spec=spec, granted_at=0, by=ME)
    text = "".join(span.text for each in grant_paragraphs(grant, None, 0) for span in each.spans)
    assert MASKED in text and SECRET not in text
