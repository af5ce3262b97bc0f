"""Rules and memory: what decides without a human is listed, counted, tried, revoked and edited."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from tests.tui.cockpit import Cockpit, cockpit
from tests.tui.past import ROOT, a_month, begin, ran
from tests.tui.scenes import ME, Play
from whisper_tui.model.call import Argv, CommandSpec
from whisper_tui.model.decision import Decider, ExactScope, Grant, PrefixScope, SessionDenial
from whisper_tui.model.errors import Refused
from whisper_tui.model.event import Granted, GrantUsed, Judged
from whisper_tui.model.shown_rules import Judgement, ProjectRules, RuleList, ShownRule
from whisper_tui.model.verdict import Meaning, Resolved, Risk, Verdict
from whisper_tui.tui.cockpit.cockpit_screen import CockpitScreen
from whisper_tui.tui.rules.rule_list import why_paragraphs
from whisper_tui.tui.rules.rules_screen import RULES, RulesScreen

STATUS = ShownRule(
    effect="allow",
    name="status",
    subject="git status …",
    where="/home/me/garden",
    because="it only reads",
    removable=True,
)
FORCE = ShownRule(
    effect="deny",
    name="no force push",
    subject="= git push --force",
    where="everywhere",
    because="ask for a review instead",
)


TESTS = ShownRule(effect="allow", name="project: tests", subject="= make test", where=ROOT, holds=False)
GARDEN = ProjectRules(
    root=ROOT,
    path=f"{ROOT}/.whisper-tui/rules.toml",
    text='[[allow]]\nname = "tests"',
    trusted=False,
    rules=(TESTS,),
)


class Book:
    """Rules in memory."""

    def __init__(self, path: Path = Path("rules.toml")) -> None:
        self.path = path
        self.now = RuleList(rules=(FORCE, STATUS))
        self.asked: list[tuple[str, str]] = []

    def rules(self, roots: Sequence[str] = ()) -> RuleList:
        projects = tuple(project for project in self.now.projects if project.root in roots)
        return self.now.model_copy(update={"projects": projects, "path": str(self.path)})

    def trust(self, project: ProjectRules, *, trusted: bool) -> None:
        rules = tuple(rule.model_copy(update={"holds": trusted}) for rule in project.rules)
        changed = project.model_copy(update={"trusted": trusted, "rules": rules})
        self.now = self.now.model_copy(update={"projects": (changed,)})

    def judge(self, text: str, directory: str) -> Judgement:
        self.asked.append((text, directory))
        risk = Risk(id="destructive", sentence="It deletes files for good", span=(0, 2))
        verdict = Verdict(kind="ask", reason="no rule is about this", risks=(risk,))
        return Judgement(verdict=verdict, resolved=Resolved(program="/usr/bin/rm", cwd=directory))

    def remove(self, name: str) -> None:
        if name not in {rule.name for rule in self.now.rules}:
            raise Refused(f"there is no rule {name!r}")
        rules = tuple(rule for rule in self.now.rules if rule.name != name)
        self.now = self.now.model_copy(update={"rules": rules})


def with_a_project() -> Book:
    """Rules of the user's own, and those of a project that is not trusted."""
    book = Book()
    book.now = RuleList(rules=(FORCE, STATUS), projects=(GARDEN,))
    return book


def remembered(play: Play) -> None:
    """Two approvals that hold."""
    spec = CommandSpec(command=Argv(program="make", args=("test",)), cwd=ROOT)
    at = play.clock()
    exact = Grant(id="g1", session_id="s1", spec=spec, from_call="3", granted_at=at, by=ME, scope=ExactScope(uses=5))
    words = Grant(
        id="g2",
        session_id="s2",
        spec=spec,
        from_call="4",
        granted_at=at,
        by=ME,
        scope=PrefixScope(words=("make",), directory=ROOT, minutes=30),
        until=at + 1800,
    )
    play.stage.happen(
        Granted(at=at, grant=exact),
        Granted(at=at, grant=words),
        GrantUsed(at=at, session_id="s1", grant_id="g1", call_id="4"),
    )


@asynccontextmanager
async def rules(play: Play, book: Book | None, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Cockpit]:
    async with cockpit(play, size=size, rule_book=book) as seat:
        await seat.press("L")
        await seat.until(lambda: isinstance(seat.app.screen, RulesScreen))
        await seat.sees("Standing approvals")
        await seat.pilot.pause()
        yield seat


def a_day() -> Play:
    play = a_month()
    remembered(play)
    return play


async def test_every_command_of_the_table_is_done_and_no_other():
    async with rules(begin(), Book()) as seat:
        assert set(seat.app.screen.does) == {command.id for command in RULES}


async def test_capital_l_lists_approvals_and_rules_with_how_often_they_decided():
    async with rules(a_day(), Book()) as seat:
        await seat.sees("2 approvals, 2 rules", "make test  once", "make …  never", "git status …  once")
        await seat.sees("exactly this command in this directory", "1 time of 5", "site builder", "with call 3")
        await seat.press("down")
        await seat.sees("in /home/me/garden and below", "for 30 min more")
        await seat.press("down")
        await seat.sees("This rule denies", "= git push --force", "ask for a review instead", "0 of the last 7 calls")
        await seat.press("down")
        await seat.sees("This rule allows", "1 of the last 7 calls", "Defined in rules.toml.")


async def test_x_revokes_an_approval():
    async with rules(a_day(), Book()) as seat:
        await seat.press("x")
        await seat.sees("Standing approval g1 revoked", "1 approval, 2 rules")
        assert seat.play.stage.board.grants["g1"].revoked_at is not None
        assert seat.play.stage.board.grants["g2"].revoked_at is None


async def test_x_removes_a_rule_after_asking():
    book = Book()
    async with rules(begin(), book) as seat:
        await seat.press("down", "x")
        await seat.sees("Remove a rule", "git status", "'status'")
        await seat.press("escape")
        await seat.until(lambda: isinstance(seat.app.screen, RulesScreen))
        assert len(book.now.rules) == 2
        await seat.press("x", "enter")
        await seat.sees("Rule status removed.", "0 approvals, 1 rule")
        assert book.now.rules == (FORCE,)


async def test_a_rule_of_the_configuration_file_is_not_removed_from_here():
    book = Book()
    async with rules(begin(), book) as seat:
        await seat.press("x")
        await seat.sees("defined in the configuration file")
        assert len(book.now.rules) == 2


async def test_slash_tests_a_command_without_running_it():
    book = Book()
    async with rules(a_day(), book) as seat:
        await seat.press("slash", *"rm -r x", "enter")
        await seat.sees("Asked: you would decide.", "no rule is about this", "It deletes files for good.")
        assert book.asked == [("rm -r x", ROOT)]
        await seat.press("escape")
        assert isinstance(seat.app.focused, OptionList)
        assert seat.app.screen.query_one(Input).value == "rm -r x"


async def test_broken_rules_are_said():
    book = Book()
    book.now = RuleList(broken="rules.toml: line 3")
    async with rules(begin(), book) as seat:
        await seat.sees("every command is asked: rules.toml: line 3")


async def test_n_reads_everything_again():
    book = Book()
    async with rules(begin(), book) as seat:
        book.now = RuleList(rules=(STATUS,))
        remembered(seat.play)
        await seat.press("n")
        await seat.sees("2 approvals, 1 rule")


async def test_e_says_where_the_rules_are_when_there_is_no_terminal_to_edit_in(tmp_path):
    book = Book(tmp_path / "config" / "rules.toml")
    async with rules(begin(), book) as seat:
        await seat.press("e")
        await seat.sees("There is no terminal for an editor here", "by hand")
        assert os.stat(book.path).st_mode & 0o777 == 0o600


async def test_without_rules_the_approvals_are_there():
    async with rules(a_day(), None) as seat:
        await seat.sees("rules cannot be read here", "2 approvals, 0 rules", "make test")


async def test_escape_and_l_go_back_and_the_help_is_that_of_the_screen():
    async with rules(begin(), Book(), size=(120, 50)) as seat:
        await seat.press("question_mark")
        await seat.sees("Revoke an approval, or remove a rule.")
        await seat.press("escape")
        await seat.press("L")
        await seat.until(lambda: isinstance(seat.app.screen, CockpitScreen))
        await seat.press("L")
        await seat.until(lambda: isinstance(seat.app.screen, RulesScreen))
        await seat.press("escape")
        await seat.until(lambda: isinstance(seat.app.screen, CockpitScreen))


async def test_text_of_agents_is_shown_as_text():
    play = begin()
    spec = CommandSpec(command=Argv(program="[red]\x1b[2J", args=("[/]",)), cwd=ROOT)
    grant = Grant(id="g1", session_id="s1", spec=spec, from_call="1", granted_at=play.clock(), by=ME)
    play.stage.happen(Granted(at=play.clock(), grant=grant))
    async with rules(play, Book()) as seat:
        await seat.sees("[red]␛[2J")


async def test_a_rule_says_how_what_it_allows_is_confined() -> None:
    book = Book()
    book.now = RuleList(
        rules=(STATUS.model_copy(update={"sandbox": "writes only in the workspace, no network"}), FORCE)
    )
    async with rules(begin(), book) as seat:
        await seat.press("end")
        await seat.sees("Sandbox", "writes only in the workspace, no network")
        await seat.press("home")
        await seat.until(lambda: "writes only in the workspace" not in seat.text())


async def test_rules_of_a_project_are_listed_read_trusted_and_trusted_no_more() -> None:
    book = Book()
    book.now = RuleList(rules=(FORCE,), projects=(GARDEN,))
    async with rules(begin(), book) as seat:
        await seat.sees("Rules of the project garden  1  not trusted", "= make test  inactive")
        await seat.press("end")
        await seat.sees("its project is not trusted", "garden/.whisper-tui/rules.toml")
        await seat.press("t")
        await seat.sees("Trust the rules of a project", 'name = "tests"')
        await seat.press("escape")
        await seat.until(lambda: isinstance(seat.app.screen, RulesScreen))
        assert not book.now.projects[0].trusted
        await seat.choose("Trust  (t)")
        await seat.sees("Trust the rules of a project")
        await seat.click("#choose-trust")
        await seat.sees("Rules of the project garden  1  trusted", "This rule allows")
        await seat.press("x")
        await seat.sees("change it there")
        await seat.press("t")
        await seat.sees("Rules of the project garden  1  not trusted")


async def test_t_says_that_all_other_rules_are_ones_own() -> None:
    async with rules(begin(), Book()) as seat:
        await seat.press("end", "t")
        await seat.sees("your own rules need no trust")


async def test_the_built_in_list_of_commands_that_only_read_is_shown_whole() -> None:
    book = Book()
    book.now = RuleList(rules=(FORCE,), read_only=("ls", "git log"), read_only_runs=True)
    async with rules(begin(), book) as seat:
        await seat.sees("Built in  1", "commands that only read: 2")
        await seat.press("end")
        await seat.sees("This list allows", "Programs    ls", "Subcommands git log", "0 of the last")
        book.now = RuleList(read_only=("ls",), read_only_runs=False)
        await seat.press("n")
        await seat.sees("commands that only read: 1  inactive", "your rules switch it off")


async def test_w_shows_the_rule_behind_the_selected_call_with_its_file_and_the_words_that_it_matched() -> None:
    play = begin()
    rule = Decider(surface="rule", who="status")
    meaning = Meaning(words=("git", "status", "-s"), program="/usr/bin/git")
    call_id = ran(play, "git", "status", "-s", by=rule, verdict="allow", rule="status", wait_s=0)
    record = play.stage.board.calls[call_id]
    resolved = Resolved(cwd=ROOT, commands=(Meaning(words=("cd", "x")), meaning))
    judged = Judged(at=play.clock(), call_id=call_id, verdict=record.verdict, resolved=resolved)
    play.stage.happen(judged)
    book = Book()
    status = STATUS.model_copy(update={"file": "/home/me/rules.toml", "definition": {"prefix": ["git", "status"]}})
    book.now = RuleList(rules=(FORCE, status))
    async with rules(play, book) as seat:
        await seat.press("w")
        await seat.sees(f"Allowed: call {call_id}", "by the user's rule status", "/home/me/rules.toml", "git status -s")
        assert "cd x" not in seat.text()
        book.now = RuleList(rules=(FORCE,))
        await seat.press("n", "w")
        await seat.sees("no file now: the user's rule status was removed")


@pytest.mark.parametrize(
    ("verdict", "shown"),
    [
        ({"kind": "allow", "rule": "built-in: only looks"}, "the built-in list of commands that only read"),
        ({"kind": "allow", "grant_id": "g1"}, "with call 3"),
        ({"kind": "refuse", "denial_id": "d1"}, "npm publish"),
        ({"kind": "ask"}, "no rule is about it"),
    ],
)
def test_why_tells_the_built_in_list_approvals_and_denials(verdict: dict[str, str], shown: str) -> None:
    play = a_day()
    denial = SessionDenial(id="d1", session_id="s1", words=("npm", "publish"), denied_at=play.clock(), by=ME)
    record = play.stage.board.calls["1"].model_copy(
        update={"verdict": Verdict(reason="no rule is about it", **verdict)}
    )
    paragraphs = why_paragraphs(record, RuleList(), tuple(play.stage.board.grants.values()), (denial,))
    assert shown in "\n".join("".join(span.text for span in each.spans) for each in paragraphs)


async def test_denials_for_a_session_are_listed_and_lifted() -> None:
    play = begin()
    await play.stage.deny_for_session("s1", ("npm", "publish"), "not today", ME)
    async with rules(play, Book()) as seat:
        await seat.sees("Denials for a session  1", "npm publish …", "Session denial d1", "not today")
        await seat.press("x")
        await seat.sees("Session denial d1 lifted", "Rules that deny")
        assert not play.stage.board.denials
