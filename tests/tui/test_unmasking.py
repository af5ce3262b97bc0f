"""Secrets on the screen: shown while a call is decided about, hidden from then on, revealed for ten seconds."""

import pytest

from tests.tui.cockpit import open_cockpit, toast_text
from tests.tui.past import ask, history
from tests.tui.past import begin as begin_past
from tests.tui.scenes import ME, Scenario
from whisper_tui.cli.commands.approve import meant
from whisper_tui.cli.watch_text import first_words, in_full
from whisper_tui.model.call import CallRequest, CommandSpec, Shell
from whisper_tui.model.decision import Grant, PrefixScope, RuleScope
from whisper_tui.model.verdict import Meaning, Resolved, Risk, Verdict
from whisper_tui.present.scope_words import approved_scope
from whisper_tui.tui.cockpit import call_card
from whisper_tui.tui.cockpit.call_card import REVEALED_S
from whisper_tui.tui.screens.rule_list import grant_paragraphs

SECRET = "hunter22"
WORDS = ("psql", f"--password={SECRET}", "prod")
MASKED = "--password=⟨secret⟩"


def ended() -> Scenario:
    """A call with a secret is over, and another waits."""
    scenario = begin_past()
    call_id = ask(scenario, *WORDS)
    scenario.approve(call_id)
    scenario.print(call_id, "build")
    scenario.end(call_id)
    ask(scenario, "ls")
    return scenario


async def test_a_secret_is_shown_before_the_decision_and_hidden_afterwards():
    scenario = begin_past()
    call_id = ask(scenario, *WORDS)
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees(f"--password={SECRET} prod")
        scenario.approve(call_id)
        await cockpit.settled()
        await cockpit.select(call_id)
        await cockpit.sees("▶", MASKED)
        assert SECRET not in cockpit.text()


async def test_secrets_of_decided_calls_are_hidden_and_m_reveals_those_of_one_call(monkeypatch):
    async with open_cockpit(ended()) as cockpit:
        set_timer, later = cockpit.screen.set_timer, {}

        def noted(delay, callback, **more):
            later[delay] = callback
            return set_timer(delay, callback, **more)

        monkeypatch.setattr(cockpit.screen, "set_timer", noted)
        await cockpit.select("1")
        await cockpit.sees(MASKED, "Secrets", "hidden; M shows them")
        assert SECRET not in cockpit.text()
        await cockpit.press("M")
        await cockpit.sees(SECRET, "Secrets     shown")
        later[call_card.REVEALED_S]()
        await cockpit.until(lambda: SECRET not in cockpit.text())


async def test_m_again_hides_them_at_once_and_another_call_has_nothing_to_show():
    async with open_cockpit(ended()) as cockpit:
        await cockpit.select("1")
        await cockpit.press("M")
        await cockpit.sees(SECRET)
        await cockpit.press("M")
        await cockpit.sees("The secrets of call 1 are hidden.")
        assert SECRET not in cockpit.text()
        await cockpit.select("2")
        await cockpit.press("M")
        await cockpit.sees("Nothing in call 2 is hidden.")


async def test_the_history_hides_and_reveals_them_as_well():
    async with open_cockpit(ended()) as cockpit, history(cockpit):
        await cockpit.press("down")
        await cockpit.sees(MASKED, "hidden; M shows them")
        assert SECRET not in cockpit.text()
        await cockpit.press("M")
        await cockpit.sees(SECRET)


async def test_the_last_calls_of_a_session_hide_them():
    async with open_cockpit(ended(), size=(120, 60)) as cockpit:
        await cockpit.select("2")
        await cockpit.press("m")
        await cockpit.sees("Last calls", MASKED)
        assert SECRET not in cockpit.text()


async def test_watch_and_the_list_of_approvals_hide_them():
    scenario = ended()
    record = scenario.supervisor.board.calls["1"]
    assert SECRET not in first_words(record)
    assert SECRET not in "\n".join(in_full(record, scenario.supervisor.board, scenario.clock()))
    spec, scope = record.spec, PrefixScope(words=WORDS)
    grant = Grant(id="g1", session_id="s1", from_call="1", scope=scope, spec=spec, granted_at=0, by=ME)
    text = "".join(span.text for each in grant_paragraphs(grant, None, 0) for span in each.spans)
    assert MASKED in text and SECRET not in text


PASSWORD = "hunter2"


def dumped() -> Scenario:
    """A database dump whose text names its password is over and has left a process behind; another one runs."""
    scenario = begin_past()
    for _ in range(2):
        text = f"PGPASSWORD={PASSWORD} pg_dump -h db prod > dump.sql"
        spec = CommandSpec(command=Shell(text=text), cwd="/home/me/garden")
        request = CallRequest(
            session_id="s1", tool="run_shell_command", arguments={"command": text}, spec=spec, description=f"Use {text}"
        )
        words = ("pg_dump", "-h", "db", "prod")
        meaning = Meaning(words=words, assignments={"PGPASSWORD": PASSWORD}, expanded=(f"PGPASSWORD={PASSWORD}",))
        risk = Risk(id="secret-in-arguments", sentence=f"Contains the password {PASSWORD}", span=(11, 18))
        verdict = Verdict(
            kind="ask", reason=f"asks with {PASSWORD}", risks=(risk,), prefixes=((text.split(maxsplit=1)[0],),)
        )
        scenario.approve(
            scenario.supervisor.ask(request, verdict, Resolved(program="/usr/bin/bash", commands=(meaning,)))
        )
    scenario.supervisor.leave_behind("1", f"PGPASSWORD={PASSWORD} sleep 60")
    scenario.end("1", 1)
    ask(scenario, "ls")
    return scenario


@pytest.mark.slow
async def test_a_password_in_a_shell_text_is_on_no_screen_of_the_cockpit_once_the_call_is_decided():
    async with open_cockpit(dumped(), size=(170, 48)) as cockpit:
        for keys in (
            (),  # the list, and the strip of what was decided
            ("up",),
            ("m",),
            ("end",),
            ("y",),
            ("b",),
            ("escape", "E"),
            ("escape", "ctrl+p"),
            ("escape", "L"),
            ("w",),
            ("escape", "H"),
            ("down",),
            ("space",),
            ("i",),
            ("escape", "r"),
        ):
            await cockpit.press(*keys)
            await cockpit.pilot.pause()
            shown = f"{cockpit.text()}\n{toast_text(cockpit.app)}"
            assert PASSWORD not in shown, (keys, shown)
        await cockpit.press("escape", "escape")
        await cockpit.select("1")
        await cockpit.sees("PGPASSWORD=⟨secret⟩", "✘ exit 1")
        assert REVEALED_S == 10
        await cockpit.press("M")
        await cockpit.sees(f"PGPASSWORD={PASSWORD}", "The secrets of call 1 are shown for 10 seconds.")


@pytest.mark.slow
async def test_toasts_and_dialogs_about_what_is_remembered_hide_secrets():
    scenario = begin_past()
    ask(scenario, *WORDS)
    async with open_cockpit(scenario, size=(170, 48)) as cockpit:
        for scope in (PrefixScope(words=WORDS), RuleScope(words=WORDS)):
            assert SECRET not in approved_scope(scope.model_dump())
        await scenario.supervisor.deny_for_session("s1", WORDS, "no", ME)
        await cockpit.sees("you denied 'psql --password=⟨secret⟩ prod' for this session")
        assert SECRET not in toast_text(cockpit.app)
        ask(scenario, "ls")
        await cockpit.select("2")
        await cockpit.can_be_seen()
        scenario.clock.advance(30)
        await cockpit.press("N")
        await cockpit.sees("Denied already: 'psql --password=⟨secret⟩ prod'")
        assert SECRET not in cockpit.text()


def test_the_command_line_hides_the_secrets_of_what_it_says_is_allowed_from_now_on():
    scope = {"kind": "prefix", "words": list(WORDS), "directory": None, "minutes": None}
    assert SECRET not in meant(scope) and "⟨secret⟩" in meant(scope)
