"""Rules and memory: what decides without a human is listed, counted, tried, revoked and edited."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, OptionList

from tests.rows import each_row
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.past import ROOT, a_month, begin, ran
from tests.tui.scenes import ME, Scenario
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, FileEdits, ReplaceText
from whisper_tui.model.decision import Coverage, Decider, ExactScope, Grant, PrefixScope, SessionDenial
from whisper_tui.model.errors import ChangedSinceSeen, Refused, WhisperError
from whisper_tui.model.event import Granted, GrantUsed, Judged
from whisper_tui.model.shown_rules import (
    Judgement,
    ProjectRules,
    RuleDraft,
    RuleList,
    RuleProblem,
    RuleTrial,
    ShownRule,
    StarterSet,
)
from whisper_tui.model.state import PlaceState
from whisper_tui.model.verdict import Meaning, Resolved, Risk, Verdict
from whisper_tui.policy.commands.read_only_list import listed_commands
from whisper_tui.policy.rules.rule import Rule, Rules
from whisper_tui.policy.rules.rules_toml import is_about
from whisper_tui.system.state_directory import Directories
from whisper_tui.tui.cockpit.call_list import places_of
from whisper_tui.tui.cockpit.call_panel import Guidance
from whisper_tui.tui.cockpit.notices import FirstHints
from whisper_tui.tui.cockpit_screen import CockpitScreen
from whisper_tui.tui.dialogs.dialog import ChoiceField
from whisper_tui.tui.dialogs.drafts import RuleFields, fields_of, kept_of
from whisper_tui.tui.dialogs.starter_dialog import StarterScreen
from whisper_tui.tui.screens.rule_dialogs import RuleForm, WhyScreen
from whisper_tui.tui.screens.rule_list import ASKING, asking_about, asking_rule, why_paragraphs
from whisper_tui.tui.screens.rules_screen import RULES, RulesScreen

STATUS = ShownRule(
    effect="allow",
    name="status",
    subject="git status …",
    where="/home/me/garden",
    because="it only reads",
    removable=True,
    definition={"name": "status", "prefix": ["git", "status"], "directory": "/home/me/garden", "until": 5.5},
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
        self.tried: list[tuple[RuleDraft, str]] = []
        self.error: WhisperError | None = None
        """The error of every change. None: they succeed."""

    def rules(self, roots: Sequence[str] = ()) -> RuleList:
        projects = tuple(project for project in self.now.projects if project.root in roots)
        return self.now.model_copy(update={"projects": projects, "path": str(self.path)})

    def trust(self, project: ProjectRules, *, trusted: bool) -> None:
        rules = tuple(rule.model_copy(update={"holds": trusted}) for rule in project.rules)
        changed = project.model_copy(update={"trusted": trusted, "rules": rules})
        self.now = self.now.model_copy(update={"projects": (changed,)})

    def judge(self, text: str, directory: str) -> Judgement:
        self.asked.append((text, directory))
        risk = Risk(id="destructive", sentence="Deletes files recursively", span=(0, 2))
        verdict = Verdict(kind="ask", reason="no rule matches this command", risks=(risk,))
        return Judgement(verdict=verdict, resolved=Resolved(program="/usr/bin/rm", cwd=directory))

    def try_draft(self, draft: RuleDraft, text: str) -> RuleTrial:
        self.tried.append((draft, text))
        if "wrong" in draft.definition.values():
            return RuleTrial(problems=(RuleProblem(field="directory", clause="needs an absolute directory"),))
        judgement = self.judge(text, "") if text else None
        return RuleTrial(coverage=Coverage(looked_at=7, calls=("1", "2")), judgement=judgement)

    def replace(self, old: RuleDraft | None, new: RuleDraft | None) -> None:
        if self.error is not None:
            raise self.error
        rules = list(self.now.rules)
        if old is not None:
            rules.remove(next(rule for rule in rules if rule.definition == old.definition))
        if new is not None:
            said = new.definition
            subject = " ".join(said.get("prefix") or [said.get("text", "")])
            rules.append(
                ShownRule(
                    effect=new.effect, name=said["name"], subject=subject, where=said.get("directory", "everywhere"),
                    removable=True, disabled=said.get("disabled", False), definition=said,
                )
            )  # fmt: skip
        self.now = self.now.model_copy(update={"rules": tuple(rules)})

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


def remembered(scenario: Scenario) -> None:
    """Two approvals that hold."""
    spec = CommandSpec(command=Argv(program="make", args=("test",)), cwd=ROOT)
    at = scenario.clock()
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
    scenario.supervisor.happen(
        Granted(at=at, grant=exact),
        Granted(at=at, grant=words),
        GrantUsed(at=at, session_id="s1", grant_id="g1", call_id="4"),
    )


@asynccontextmanager
async def rules(scenario: Scenario, book: Book | None, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Cockpit]:
    async with open_cockpit(scenario, size=size, rule_book=book) as cockpit:
        await cockpit.press("L")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, RulesScreen))
        await cockpit.sees("Standing approvals")
        await cockpit.pilot.pause()
        yield cockpit


def a_day() -> Scenario:
    scenario = a_month()
    remembered(scenario)
    return scenario


async def test_every_command_of_the_table_is_done_and_no_other():
    async with rules(begin(), Book()) as cockpit:
        assert set(cockpit.app.screen.does) == {command.id for command in RULES}


async def test_capital_l_lists_approvals_and_rules_with_how_often_they_decided():
    async with rules(a_day(), Book()) as cockpit:
        await cockpit.sees("2 approvals, 2 rules", "make test  once", "make …  never", "git status …  once")
        await cockpit.sees("exactly this command in this directory", "1 time of 5", "site builder", "with call 3")
        await cockpit.press("down")
        await cockpit.sees("in /home/me/garden and below", "for 30 min more")
        await cockpit.press("down")
        await cockpit.sees(
            "This rule denies", "= git push --force", "ask for a review instead", "0 of the last 7 calls"
        )
        await cockpit.press("down")
        await cockpit.sees("This rule allows", "1 of the last 7 calls", "Defined in rules.toml.")


def proposing() -> Book:
    book = Book()
    fields: dict[str, Any] = {"effect": "allow", "where": ROOT, "sandbox": "no network", "because": "named by Makefile"}
    proposed = tuple(
        ShownRule(name=name, subject=f"{name} …", definition={"name": name, "prefix": name.split()}, **fields)
        for name in ("make test", "make [b]lint\x1b")
    )
    book.now = RuleList(rules=(FORCE,), starters=(StarterSet(root=ROOT, rules=proposed),))
    return book


async def test_s_offers_the_starter_set_of_the_project_as_a_list_to_tick():
    book = proposing()
    async with rules(a_day(), book) as cockpit:
        await cockpit.press("s")
        await cockpit.sees(
            "Rules for this project's own commands", "[ ] make test …", "named by Makefile", "no network"
        )
        # the words are the project's, and no markup
        await cockpit.sees("[ ] make [b]lint")
        await cockpit.press("space")
        await cockpit.sees("[x] make test …")
        await cockpit.press("a")
        await cockpit.sees("[x] make [b]lint")
        await cockpit.press("a", "down", "space", "enter")
        await cockpit.sees("1 rule saved for")
        assert [rule.name for rule in book.now.rules] == [FORCE.name, "make [b]lint\x1b"]
        book.now = RuleList()
        await cockpit.press("n", "s")
        await cockpit.sees("name no tests, builds or checks that have no rule yet")


@pytest.mark.slow
async def test_the_starter_set_is_offered_once_by_itself():
    kept: list[str] = []
    known: tuple[str, ...] = ()
    for offered in (True, False):
        hints = FirstHints(known, kept.append)
        async with open_cockpit(a_day(), rule_book=proposing(), guidance=Guidance(hints=hints)) as cockpit:
            await cockpit.press("L")
            await cockpit.until(lambda: not isinstance(cockpit.app.screen, CockpitScreen))
            await cockpit.sees("Rules for this project's own commands" if offered else "Standing approvals")
            assert isinstance(cockpit.app.screen, StarterScreen) is offered
        known = tuple(kept)
    assert known == (f"starter:{ROOT}",)


@pytest.mark.slow
async def test_x_revokes_an_approval():
    async with rules(a_day(), Book()) as cockpit:
        await cockpit.press("x")
        await cockpit.sees("Standing approval g1 revoked", "1 approval, 2 rules")
        assert cockpit.scenario.supervisor.board.grants["g1"].revoked_at is not None
        assert cockpit.scenario.supervisor.board.grants["g2"].revoked_at is None


@pytest.mark.slow
async def test_x_removes_a_rule_after_asking():
    book = Book()
    async with rules(begin(), book) as cockpit:
        await cockpit.press("down", "x")
        await cockpit.sees("Remove a rule", "git status", "'status'")
        await cockpit.press("escape")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, RulesScreen))
        assert len(book.now.rules) == 2
        await cockpit.press("x", "enter")
        await cockpit.sees("Rule status removed.", "0 approvals, 1 rule")
        assert book.now.rules == (FORCE,)


async def test_a_rule_of_the_configuration_file_is_not_removed_from_here():
    book = Book()
    async with rules(begin(), book) as cockpit:
        await cockpit.press("x")
        await cockpit.sees("defined in the configuration file")
        assert len(book.now.rules) == 2


async def test_slash_tests_a_command_without_running_it():
    book = Book()
    async with rules(a_day(), book) as cockpit:
        await cockpit.press("slash", *"rm -r x", "enter")
        await cockpit.sees("Asked: you would decide.", "no rule matches this command", "Deletes files recursively.")
        assert book.asked == [("rm -r x", ROOT)]
        await cockpit.press("escape")
        assert isinstance(cockpit.app.focused, OptionList)
        assert cockpit.app.screen.query_one(Input).value == "rm -r x"


async def test_broken_rules_are_reported():
    book = Book()
    book.now = RuleList(broken="rules.toml: line 3")
    async with rules(begin(), book) as cockpit:
        await cockpit.sees("every command needs approval: rules.toml: line 3")


async def test_n_reloads_everything():
    book = Book()
    async with rules(begin(), book) as cockpit:
        book.now = RuleList(rules=(STATUS,))
        remembered(cockpit.scenario)
        await cockpit.press("n")
        await cockpit.sees("2 approvals, 1 rule")


async def test_e_shows_the_path_of_the_rules_without_a_terminal(tmp_path):
    book = Book(tmp_path / "config" / "rules.toml")
    async with rules(begin(), book) as cockpit:
        await cockpit.press("E")
        await cockpit.sees("There is no terminal for an editor here", "by hand")
        assert os.stat(book.path).st_mode & 0o777 == 0o600


async def test_without_rules_the_approvals_are_there():
    async with rules(a_day(), None) as cockpit:
        await cockpit.sees("rules cannot be read here", "2 approvals, 0 rules", "make test")


async def test_escape_and_l_go_back_and_the_help_is_that_of_the_screen():
    async with rules(begin(), Book(), size=(120, 50)) as cockpit:
        await cockpit.press("question_mark")
        await cockpit.sees("Revoke an approval, or remove a rule.")
        await cockpit.press("escape")
        await cockpit.press("L")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, CockpitScreen))
        await cockpit.press("L")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, RulesScreen))
        await cockpit.press("escape")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, CockpitScreen))


async def test_text_of_agents_is_shown_as_text():
    scenario = begin()
    spec = CommandSpec(command=Argv(program="[red]\x1b[2J", args=("[/]",)), cwd=ROOT)
    grant = Grant(id="g1", session_id="s1", spec=spec, from_call="1", granted_at=scenario.clock(), by=ME)
    scenario.supervisor.happen(Granted(at=scenario.clock(), grant=grant))
    async with rules(scenario, Book()) as cockpit:
        await cockpit.sees("[red]␛[2J")


async def test_a_rule_shows_the_sandbox_of_its_commands() -> None:
    book = Book()
    book.now = RuleList(
        rules=(STATUS.model_copy(update={"sandbox": "writes only in the workspace, no network"}), FORCE)
    )
    async with rules(begin(), book) as cockpit:
        await cockpit.press("end")
        await cockpit.sees("Sandbox", "writes only in the workspace, no network")
        await cockpit.press("home")
        await cockpit.until(lambda: "writes only in the workspace" not in cockpit.text())


@pytest.mark.slow
async def test_rules_of_a_project_are_listed_read_trusted_and_trusted_no_more() -> None:
    book = Book()
    book.now = RuleList(rules=(FORCE,), projects=(GARDEN,))
    async with rules(begin(), book) as cockpit:
        await cockpit.sees("Rules of the project garden  1  not trusted", "= make test  inactive")
        await cockpit.press("end")
        await cockpit.sees("its project is not trusted", "garden/.whisper-tui/rules.toml")
        await cockpit.press("t")
        await cockpit.sees("Trust the rules of a project", 'name = "tests"')
        await cockpit.press("escape")
        await cockpit.until(lambda: isinstance(cockpit.app.screen, RulesScreen))
        assert not book.now.projects[0].trusted
        await cockpit.choose("Trust  (t)")
        await cockpit.sees("Trust the rules of a project")
        await cockpit.click("#choose-trust")
        await cockpit.sees("Rules of the project garden  1  trusted", "This rule allows")
        await cockpit.press("x")
        await cockpit.sees("change it there")
        await cockpit.press("t")
        await cockpit.sees("Rules of the project garden  1  not trusted")


async def test_t_says_that_all_other_rules_are_the_users_own() -> None:
    async with rules(begin(), Book()) as cockpit:
        await cockpit.press("end", "t")
        await cockpit.sees("your own rules need no trust")


@pytest.mark.slow
async def test_the_built_in_list_of_read_only_commands_is_shown_completely() -> None:
    book = Book()
    book.now = RuleList(rules=(FORCE,), read_only=("ls", "git log"), read_only_runs=True)
    async with rules(begin(), book) as cockpit:
        await cockpit.sees("Built in  4", "commands that only read: 2")
        await cockpit.press("end", "up", "up", "up")
        await cockpit.sees("This list allows", "Programs    ls", "Subcommands git log", "0 of the last")
        book.now = RuleList(read_only=("ls",), read_only_runs=False)
        await cockpit.press("n", "home")
        await cockpit.sees("commands that only read: 1  inactive", "your rules switch it off")


def with_readers() -> Book:
    book = Book()
    book.now = RuleList(rules=(FORCE,), read_only=("ls", "git log", "kubectl get *"), read_only_runs=True)
    return book


async def test_enter_lists_what_only_reads_with_a_switch_for_each_command() -> None:
    book = with_readers()
    async with rules(begin(), book) as cockpit:
        await cockpit.sees("commands that only read: 3")
        await cockpit.press("end", "up", "up", "up", "enter")
        await cockpit.sees("Type to search", "✔ ls", "✔ git log", "✔ kubectl get", "3 commands, 0 off")
        await cockpit.press(*"log")
        await cockpit.until(lambda: "✔ ls" not in cockpit.text())
        await cockpit.press("enter")
        await cockpit.sees("○ git log  off", "3 commands, 1 off")
        (asking,) = (rule for rule in book.now.rules if rule.effect == "ask")
        assert asking.definition == {"name": "ask: git log", "prefix": ["git", "log"]}
        await cockpit.press("enter")
        await cockpit.sees("✔ git log", "3 commands, 0 off")
        assert [rule.name for rule in book.now.rules] == [FORCE.name]
        await cockpit.press("escape")
        await cockpit.sees("commands that only read: 3")


async def test_b_lists_what_only_reads_where_the_list_is_switched_off() -> None:
    book = Book()
    book.now = RuleList(read_only=("ls",), read_only_runs=False)
    async with rules(begin(), book) as cockpit:
        await cockpit.press("b")
        await cockpit.sees("None of them runs unasked now", "✔ ls")


async def test_without_a_list_b_says_so() -> None:
    async with rules(begin(), Book()) as cockpit:
        await cockpit.press("b")
        await cockpit.sees("The read-only list cannot be read here.")


def test_a_command_that_is_switched_off_is_asked_about() -> None:
    for command in listed_commands():
        rule = Rule.model_validate(asking_about(command))
        text = command.removesuffix(" *")
        assert rule.name == f"ask: {text}"
        assert is_about("ask", rule, text) and is_about("ask", rule, f"cd x && {text} y"), command


@pytest.mark.slow
async def test_w_shows_the_rule_behind_the_selected_call_with_its_file_and_the_words_that_it_matched() -> None:
    scenario = begin()
    rule = Decider(surface="rule", who="status")
    meaning = Meaning(words=("git", "status", "-s"), program="/usr/bin/git")
    call_id = ran(scenario, "git", "status", "-s", by=rule, verdict="allow", rule="status", wait_s=0)
    record = scenario.supervisor.board.calls[call_id]
    resolved = Resolved(cwd=ROOT, commands=(Meaning(words=("cd", "x")), meaning))
    judged = Judged(at=scenario.clock(), call_id=call_id, verdict=record.verdict, resolved=resolved)
    scenario.supervisor.happen(judged)
    book = Book()
    status = STATUS.model_copy(update={"file": "/home/me/rules.toml", "definition": {"prefix": ["git", "status"]}})
    book.now = RuleList(rules=(FORCE, status))
    async with rules(scenario, book) as cockpit:
        await cockpit.press("w")
        await cockpit.sees(
            f"Allowed: call {call_id}", "by the user's rule status", "/home/me/rules.toml", "git status -s"
        )
        assert "cd x" not in cockpit.text()
        book.now = RuleList(rules=(FORCE,))
        await cockpit.press("n", "w")
        await cockpit.sees("no file now: the user's rule status was removed")


@pytest.mark.slow
async def test_capital_y_answers_why_from_the_card_and_from_the_history() -> None:
    scenario, book = begin(), Book()
    by = Decider(surface="rule", who="status")
    call_id = ran(scenario, "git", "status", by=by, verdict="allow", rule="status", wait_s=0)
    async with open_cockpit(scenario, rule_book=book) as cockpit:
        for screen in ("", "H"):
            if screen:
                await cockpit.press(screen)
                await cockpit.sees("call")
            await cockpit.press("Y")
            await cockpit.until(lambda: isinstance(cockpit.app.screen, WhyScreen))
            await cockpit.sees(
                f"Why was call {call_id} decided like this?", "by the user's rule status", "git status …"
            )
            await cockpit.press("escape")
            await cockpit.until(lambda: not isinstance(cockpit.app.screen, WhyScreen))


@each_row(
    ("verdict", "shown"),
    [
        ({"kind": "allow", "rule": "built-in: only looks"}, "the built-in read-only list"),
        ({"kind": "allow", "rule": "built-in: edits in the workspace"}, "whisper_tui itself"),
        ({"kind": "allow", "grant_id": "g1"}, "with call 3"),
        ({"kind": "refuse", "denial_id": "d1"}, "npm publish"),
        ({"kind": "ask"}, "no rule is about it"),
    ],
)
def test_the_explanation_names_the_built_in_list_approvals_and_denials(verdict: dict[str, str], shown: str) -> None:
    scenario = a_day()
    denial = SessionDenial(id="d1", session_id="s1", words=("npm", "publish"), denied_at=scenario.clock(), by=ME)
    record = scenario.supervisor.board.calls["1"].model_copy(
        update={"verdict": Verdict(reason="no rule is about it", **verdict)}
    )
    paragraphs = why_paragraphs(record, RuleList(), tuple(scenario.supervisor.board.grants.values()), (denial,))
    assert shown in "\n".join("".join(span.text for span in each.spans) for each in paragraphs)


def test_the_explanation_of_an_edit_names_its_file_and_no_json() -> None:
    scenario = begin()
    edit = FileEdits(tool="Edit", changes=(ReplaceText(path=f"{ROOT}/a.py", old="one", new="two"),))
    spec = CommandSpec(command=edit, cwd=ROOT)
    call_id = scenario.supervisor.ask(CallRequest(session_id="s1", tool="Edit", arguments={}, spec=spec))
    paragraphs = why_paragraphs(scenario.supervisor.board.calls[call_id], RuleList(), (), ())
    text = "\n".join("".join(span.text for span in each.spans) for each in paragraphs)
    assert "create a.py" in text and "{" not in text


@pytest.mark.slow
async def test_denials_for_a_session_are_listed_and_lifted() -> None:
    scenario = begin()
    await scenario.supervisor.deny_for_session("s1", ("npm", "publish"), "not today", ME)
    async with rules(scenario, Book()) as cockpit:
        await cockpit.sees("Denials for a session  1", "npm publish …", "Session denial d1", "not today")
        await cockpit.press("x")
        await cockpit.sees("Session denial d1 lifted", "Rules that deny")
        assert not scenario.supervisor.board.denials


@each_row(
    ("fields", "definition"),
    [
        (RuleFields(words="npm 'run it'"), {"name": "npm 'run it'", "prefix": ["npm", "run it"]}),
        (RuleFields(words="make", options="-"), {"name": "make", "prefix": ["make"], "options": []}),
        (RuleFields(words="make", options="-j -k"), {"name": "make", "prefix": ["make"], "options": ["-j", "-k"]}),
        (RuleFields("deny", "text", " a  b ", sandbox="none", name="x"), {"name": "x", "text": " a  b "}),
        (RuleFields("ask", "program", "git", tool="t"), {"name": "git", "program": "git", "tool": "t"}),
        (RuleFields("deny", "anything"), {"name": "anything", "anything": True}),
        (RuleFields(kind="path", words="/src/", directory="/x"), {"name": "/src/", "path": "/src/", "directory": "/x"}),
        (RuleFields("ask", "host", "*.a.org", name="a"), {"name": "a", "host": "*.a.org"}),
        (
            RuleFields(kind="pattern", words="git log *", sandbox="workspace network", redirections="yes"),
            {
                "name": "git log *", "pattern": "git log *", "sandbox": "workspace", "network": True,
                "redirections": True,
            },
        ),
        (
            RuleFields(kind="argv", words="make x", sandbox="none", directory="/x", because="so", disabled="yes"),
            {
                "name": "make x", "argv": ["make", "x"], "sandbox": False, "directory": "/x", "justification": "so",
                "disabled": True,
            },
        ),
        (
            RuleFields(words="pytest", place="run_at gpu1", sandbox="none"),
            {"name": "pytest", "prefix": ["pytest"], "run_at": "gpu1", "sandbox": False},
        ),
        (RuleFields(effect="deny", words="rm", place="*"), {"name": "rm", "prefix": ["rm"], "place": "*"}),
    ],
)  # fmt: skip
def test_the_fields_of_the_form_mean_a_rule_and_come_back_from_it(
    fields: RuleFields, definition: dict[str, object]
) -> None:
    problems: dict[str, str] = {}
    assert (fields.definition(problems), problems) == (definition, {})
    again = fields_of(RuleDraft(effect=fields.effect, definition=definition))
    assert again.definition({}) == definition


def test_the_form_keeps_the_fields_that_it_does_not_show() -> None:
    draft = RuleDraft(effect="allow", definition={**STATUS.definition, "match": ["git status -s"], "trust": []})
    assert kept_of(draft) == {"until": 5.5, "match": ["git status -s"]}


@each_row(
    ("fields", "field", "problem"),
    [
        (RuleFields(), "words", "Type the commands"),
        (RuleFields(kind="path"), "words", "Type a pattern of the files"),
        (RuleFields(kind="host"), "words", "Type the host"),
        (RuleFields(words="a 'b"), "words", "unclosed quote"),
        (RuleFields(words="cd x && make"), "words", "never matches"),
        (RuleFields(words="a", options="'"), "options", "unclosed quote"),
        (RuleFields(words="a\u200bb"), "words", "invisible character (U+200B)"),
        (RuleFields(words="a", directory="/a\u200b"), "directory", "invisible character"),
    ],
)
def test_an_invalid_field_is_explained(fields: RuleFields, field: str, problem: str) -> None:
    problems: dict[str, str] = {}
    fields.definition(problems)
    assert list(problems) == [field]
    assert problem in problems[field]


async def form(cockpit: Cockpit, key: str) -> RuleForm:
    await cockpit.press(key)
    await cockpit.until(lambda: isinstance(cockpit.app.screen, RuleForm))
    found = cockpit.app.screen
    assert isinstance(found, RuleForm)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_rule_is_added_in_a_form_that_shows_what_it_would_decide(size: tuple[int, int]) -> None:
    book = Book()
    async with rules(a_day(), book, size=size) as cockpit:
        await form(cockpit, "a")
        await cockpit.press(*"npm run build")
        await cockpit.sees("Of the last 7 calls, 2 would have run")
        cockpit.app.screen.query_one("#rule-test", Input).focus()
        await cockpit.press(*"npm run x")
        await cockpit.sees(
            "With this rule, the tested command is", "Asked: you would decide.", "no rule matches this command"
        )
        await cockpit.until(lambda: book.tried[-1][1] == "npm run x")
        await cockpit.press("ctrl+s")
        await cockpit.sees("Rule npm run build saved; it applies at once.")
        assert book.now.rules[-1].definition == {"name": "npm run build", "prefix": ["npm", "run", "build"]}
        await cockpit.sees("This rule allows", "npm run build")


@pytest.mark.slow
async def test_a_rule_that_denies_is_told_with_the_calls_that_were_approved() -> None:
    async with rules(a_day(), Book()) as cockpit:
        await form(cockpit, "a")
        await cockpit.press("up", "up", "left", *["down"] * 2, *"git")
        await cockpit.sees("deny: never runs", "2 it would have denied.")
        assert "Sandbox" not in cockpit.text() and "Options" not in cockpit.text()


@pytest.mark.slow
async def test_the_form_says_beside_the_field_what_is_wrong_and_loses_nothing() -> None:
    book = Book()
    async with rules(begin(), book) as cockpit:
        dialog = await form(cockpit, "a")
        await cockpit.press("ctrl+s")
        await cockpit.sees("Type the commands that the rule is about.")
        await cockpit.press(*"npm 'x")
        await cockpit.sees("There is an unclosed quote")
        await cockpit.press("apostrophe")
        dialog.query_one("#rule-directory", Input).value = "wrong"
        await cockpit.press("ctrl+s")
        await cockpit.sees("It needs an absolute directory.")
        dialog.query_one("#rule-directory", Input).value = "/right"
        book.error = Refused("rules.toml cannot be written: No space left on device")
        await cockpit.press("ctrl+s")
        await cockpit.sees("Not saved. Rules.toml cannot be written: No space left on device.")
        # A frame of its own: what is below moves up when it goes.
        await cockpit.until(lambda: "needs an absolute" not in cockpit.text())
        await cockpit.press("escape")
        await cockpit.sees("This is not saved. Esc again discards it")
        book.error = None
        await cockpit.press("ctrl+s")
        await cockpit.sees("Rule npm 'x' saved")
        assert book.now.rules[-1].where == "/right"


@pytest.mark.slow
async def test_e_changes_a_rule_and_keeps_what_the_form_does_not_show() -> None:
    book = Book()
    async with rules(begin(), book) as cockpit:
        await cockpit.press("down")
        await form(cockpit, "e")
        await cockpit.sees("Edit a rule", "git status", "/home/me/garden", "until = 5.5")
        await cockpit.press("end", *" -s")
        book.error = ChangedSinceSeen("rules.toml was changed meanwhile")
        await cockpit.press("ctrl+s")
        await cockpit.sees("changed meanwhile", "Ctrl+N saves yours as a new rule.")
        book.error = None
        await cockpit.press("ctrl+s")
        await cockpit.sees("Rule status saved")
        assert book.now.rules == (FORCE, book.now.rules[-1])
        assert book.now.rules[-1].definition == {**STATUS.definition, "prefix": ["git", "status", "-s"]}
        await form(cockpit, "e")
        await cockpit.press("ctrl+n")
        await cockpit.until(lambda: len(book.now.rules) == 3)


@pytest.mark.slow
async def test_the_form_asks_for_the_place_only_where_there_are_places() -> None:
    book, here = Book(), begin()
    async with rules(here, book) as cockpit:
        await form(cockpit, "a")
        await cockpit.sees("Sandbox")
        assert "Place" not in cockpit.text()
    there = begin()
    there.supervisor.places = (PlaceState(name="gpu1", way="ssh gpu1", reached=True, since=0.0, running=0),)
    async with rules(there, book) as cockpit:
        await cockpit.until(lambda: any(map(places_of, cockpit.app.screen_stack)))
        dialog = await form(cockpit, "a")
        await cockpit.press(*"make")
        dialog.query_one("#rule-place", ChoiceField).focus()
        await cockpit.press("left")
        await cockpit.sees("run them at gpu1")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: book.now.rules[-1].definition.get("run_at") == "gpu1")


async def test_space_disables_a_rule_and_enables_it_again() -> None:
    book = Book()
    async with rules(begin(), book) as cockpit:
        await cockpit.press("down", "space")
        await cockpit.sees("Rule status disabled.", "○ git status  disabled", "This rule is disabled")
        await cockpit.press("space")
        await cockpit.sees("Rule status enabled.")
        assert not book.now.rules[-1].disabled


async def test_space_switches_what_is_built_in_off_and_on() -> None:
    book = Book()
    book.now = RuleList(rules=(FORCE,), read_only=("ls",), read_only_runs=True, edits_run=True, held_back_run=True)

    def level(cockpit: Cockpit) -> str | None:
        said = cockpit.scenario.supervisor.board.unasked
        return said.level if said is not None else None

    async with rules(a_day(), book) as cockpit:
        await cockpit.press("end", "space")
        await cockpit.sees("A rule of yours asks about sub-agents", "○ sub-agents  inactive")
        added = book.now.rules[-1]
        assert (added.effect, added.definition) == ("ask", {"name": "sub-agents", "anything": True, "tool": "subagent"})
        await cockpit.press("end", "space")
        await cockpit.sees("No rule of yours asks about sub-agents any more.")
        assert book.now.rules == (FORCE,)
        await cockpit.press("end", "up", "up", "space")
        await cockpit.sees("A rule of yours asks about edits", "○ edits of ordinary files  inactive")
        await cockpit.press("end", "up", "space")
        await cockpit.sees("'reading' holds in all sessions: commands that only read run at once.")
        assert level(cockpit) == "reading"
        await cockpit.press("end", "up", "up", "up", "space")
        await cockpit.sees("'nothing' holds in all sessions")
        assert level(cockpit) == "nothing"


def test_the_rules_that_switch_off_what_is_built_in_are_found_again(tmp_path: Path, home: Directories) -> None:
    files = RuleFiles(home, Rules(unasked="workspace"))
    for kind, asking in ASKING.items():
        assert asking_rule(kind, files.listed()) is None
        files.add("ask", Rule.model_validate(asking))
        assert asking_rule(kind, files.listed()) is not None
    listed = files.listed()
    assert listed.edits_run and listed.held_back_run and listed.read_only_runs


@pytest.mark.slow
async def test_rules_of_the_built_in_list_and_of_other_files_say_that_they_are_not_edited_here() -> None:
    book = Book()
    book.now = RuleList(rules=(FORCE,), read_only=("ls",), read_only_runs=True)
    async with rules(a_day(), book) as cockpit:
        for keys, said in (
            ("home", "This is no rule; x revokes it."),
            ("end", "What is built in cannot be edited."),
            ("up up up up", "no force push is defined in the configuration file: change it there."),
        ):
            for key in ("e",) if keys == "end" else ("e", "space"):
                await cockpit.press(*(keys.split() if key == "e" else ("shift",)), key)
                await cockpit.sees(said)
                cockpit.app.clear_notifications()
        assert isinstance(cockpit.app.screen, RulesScreen)
