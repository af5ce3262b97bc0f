"""Approving more than one call: how far, how often, how long, and what it would have let through."""

import pytest
from textual.widgets import Input, OptionList

from tests.rows import each_row
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import Scenario
from tests.tui.test_deciding import three_waiting
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, FileEdits, Function, WriteFile
from whisper_tui.model.decision import Approve, ExactScope, PrefixScope, RuleScope, ToolScope
from whisper_tui.model.state import Running, Waiting
from whisper_tui.model.verdict import Resolved, Verdict
from whisper_tui.present.scope_words import scope_targets
from whisper_tui.tui.dialogs.drafts import ScopeDraft, scope_of

SPEC = CommandSpec(command=Argv(program="git", args=("push",)), cwd="/srv")


def with_prefixes(*prefixes: tuple[str, ...]) -> Scenario:
    """Call 1 has a verdict that suggests these beginnings."""
    scenario = three_waiting()
    for number, event in enumerate(scenario.supervisor.events):
        if event.kind == "judged" and event.call_id == "1":
            verdict = Verdict(kind="ask", reason=event.verdict.reason, prefixes=prefixes)
            scenario.supervisor.events[number] = event.model_copy(update={"verdict": verdict})
            record = scenario.supervisor.board.calls["1"]
            scenario.supervisor.board.calls["1"] = record.model_copy(update={"verdict": verdict})
    return scenario


FETCH = Function(
    tool="WebFetch", arguments={"url": "https://docs.python.org/3"}, about="web", targets=("docs.python.org",)
)
TOOL = Function(tool="mcp__gh__list", arguments={"page": 1}, about="server", targets=("gh", "list"))
EDIT = FileEdits(tool="Write", changes=(WriteFile(path="/srv/src/app.py", content="x"),))


def spec_of(command: Function | FileEdits) -> CommandSpec:
    return CommandSpec(command=command, cwd="/srv")


def asked_by_agent(command: Function | FileEdits, *targets: str) -> Scenario:
    """Call 1 is carried out by its agent once it is approved, and the policy suggests these targets."""
    scenario = Scenario.begin()
    session = scenario.supervisor.open("garden agent", "/srv", "claude-code", "2.1.329")
    spec, tool = spec_of(command), command.tool
    request = CallRequest(session_id=session.id, tool=tool, arguments={}, spec=spec, ticket="t", by_agent=True)
    scenario.supervisor.ask(
        request, Verdict(kind="ask", reason="no rule allows it", targets=targets), Resolved(cwd="/srv")
    )
    return scenario


async def opened(cockpit: Cockpit, reach: int = 0) -> None:
    await cockpit.select("1")
    await cockpit.press("A")
    await cockpit.sees("Approve call 1, and more")
    await cockpit.press(*["down"] * reach)


@each_row(
    ("draft", "scope"),
    [
        (ScopeDraft("exact"), ExactScope()),
        (ScopeDraft("exact", uses="3"), ExactScope(uses=3)),
        (ScopeDraft("exact", minutes="2.5"), ExactScope(minutes=2.5)),
        (
            ScopeDraft("here", "git 'push'", "1", "9"),
            PrefixScope(words=("git", "push"), directory="/srv", uses=1, minutes=9),
        ),
        (ScopeDraft("session", "git push"), PrefixScope(words=("git", "push"))),
        (ScopeDraft("project", "git push", uses="nonsense"), RuleScope(words=("git", "push"))),
        (ScopeDraft("user", "git push", minutes="60"), RuleScope(words=("git", "push"), where="user", minutes=60)),
    ],
)
def test_a_draft_is_parsed_into_a_scope(draft: ScopeDraft, scope: object) -> None:
    problems: list[str] = []
    assert scope_of(draft, SPEC, problems) == scope
    assert problems == []


@each_row(
    ("draft", "problem"),
    [
        (ScopeDraft("here"), "Type the first words"),
        (ScopeDraft("here", "git 'push"), "The prefix contains an unclosed quote"),
        (ScopeDraft("here", "git\u200b push"), "an invisible character (U+200B)"),
        (ScopeDraft("exact", uses="0"), "whole number above 0"),
        (ScopeDraft("exact", uses="two"), "whole number above 0"),
        (ScopeDraft("exact", minutes="-1"), "Minutes must be a number above 0"),
        (ScopeDraft("exact", minutes="nan"), "Minutes must be a number above 0"),
    ],
)
def test_mistakes_in_a_scope_are_reported(draft: ScopeDraft, problem: str) -> None:
    problems: list[str] = []
    assert scope_of(draft, SPEC, problems) is None
    assert problem in problems[0]


@each_row(
    ("command", "draft", "scope"),
    [
        (FETCH, ScopeDraft("exact", uses="2"), ExactScope(uses=2)),
        (FETCH, ScopeDraft("session", " a.org  b.org ", "3"), ToolScope(hosts=("a.org", "b.org"), uses=3)),
        (TOOL, ScopeDraft("project", "mcp__gh__list", uses="x"), ToolScope(tool="mcp__gh__list", where="project")),
        (TOOL, ScopeDraft("user", "mcp__gh__*", minutes="5"), ToolScope(tool="mcp__gh__*", where="user", minutes=5)),
        (EDIT, ScopeDraft("session", "/a b/*.py"), ToolScope(path="/a b/*.py")),
    ],
)
def test_a_draft_for_a_tool_is_parsed_into_a_scope(
    command: Function | FileEdits, draft: ScopeDraft, scope: object
) -> None:
    problems: list[str] = []
    assert scope_of(draft, spec_of(command), problems) == scope
    assert problems == []


@each_row(
    ("command", "draft", "problem"),
    [
        (FETCH, ScopeDraft("session", " "), "Type a host."),
        (EDIT, ScopeDraft("session", ""), "Type a pattern of files."),
        (TOOL, ScopeDraft("user", ""), "Type the name of the tool."),
        (EDIT, ScopeDraft("session", "/a\u200b.py"), "an invisible character (U+200B)"),
    ],
)
def test_mistakes_in_a_scope_for_a_tool_are_reported(
    command: Function | FileEdits, draft: ScopeDraft, problem: str
) -> None:
    problems: list[str] = []
    assert scope_of(draft, spec_of(command), problems) is None
    assert problem in problems[0]


async def test_a_fetch_is_approved_for_its_host_or_its_whole_domain() -> None:
    async with open_cockpit(asked_by_agent(FETCH, "docs.python.org", "*.python.org"), size=(140, 40)) as cockpit:
        await opened(cockpit, 1)
        await cockpit.sees(
            "Exactly this fetch, in this session", "A saved rule for fetches from these hosts, everywhere"
        )
        await cockpit.sees("Covers fetches from docs.python.org.", "Ctrl+N: fetches from every host below python.org.")
        await cockpit.sees("Of your last 1 call, 1 would have run without approval:")
        assert not cockpit.app.screen.query_one("#choose-sandbox").display
        await cockpit.press("ctrl+n")
        await cockpit.sees("Covers fetches from every host below python.org.")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: cockpit.record("1").decision is not None)
        assert cockpit.record("1").decision == Approve(remember=ToolScope(hosts=("*.python.org",)))
        await cockpit.sees("fetches from every host below python.org are made without approval for the rest of the")


@pytest.mark.slow
async def test_a_tool_is_approved_alone_or_with_all_of_its_server() -> None:
    async with open_cockpit(asked_by_agent(TOOL, "mcp__gh__list", "mcp__gh__*"), size=(140, 40)) as cockpit:
        await opened(cockpit, 2)
        await cockpit.sees("Covers calls of mcp__gh__list.", "Ctrl+N: calls of every tool of gh (mcp__gh__*).")
        await cockpit.press("tab", *["right"] * 20, *["backspace"] * 4, *"show")
        await cockpit.sees("'mcp__gh__show' is not the")
        await cockpit.press("ctrl+s", "ctrl+n", "ctrl+s")
        await cockpit.until(lambda: cockpit.record("1").decision is not None)
        assert cockpit.record("1").decision == Approve(remember=ToolScope(tool="mcp__gh__*", where="project"))
        await cockpit.sees("a rule is saved: calls of every tool of gh")


@pytest.mark.slow
async def test_edits_are_approved_by_file_directory_or_kind() -> None:
    async with open_cockpit(asked_by_agent(EDIT, "/src/app.py", "/src/", "*.py"), size=(140, 40)) as cockpit:
        await opened(cockpit, 1)
        await cockpit.sees(
            "Files, as in .gitignore", "Covers edits of src/app.py.", "Ctrl+N: edits of every file below src/."
        )
        await cockpit.press("ctrl+n")
        await cockpit.sees(
            "Covers edits of every file below src/.", "Ctrl+N: edits of every *.py file in the workspace."
        )
        await cockpit.press("tab", "tab", "2", "ctrl+s")
        await cockpit.until(lambda: cockpit.record("1").decision is not None)
        assert cockpit.record("1").decision == Approve(remember=ToolScope(path="/src/", uses=2))


async def test_on_a_small_screen_the_past_calls_of_a_tool_are_in_view() -> None:
    async with open_cockpit(asked_by_agent(EDIT, "/src/app.py"), size=(80, 24)) as cockpit:
        await opened(cockpit, 1)
        await cockpit.sees("edit src/app.py", "Covers edits of src/app.py.", "Of your last 1 call, ")


async def test_an_edit_without_a_suggestion_says_that_it_would_be_asked_again() -> None:
    async with open_cockpit(asked_by_agent(EDIT), size=(140, 40)) as cockpit:
        await opened(cockpit, 1)
        cockpit.app.screen.query_one("#words", Input).value = "*.py"
        await cockpit.sees("No suggestion: the same call would still need approval.", "Not this one")


@pytest.mark.parametrize(
    ("command", "target", "words", "scope"),
    [
        (
            FETCH,
            "docs.python.org",
            "fetches from docs.python.org",
            ToolScope(hosts=("docs.python.org",), where="project"),
        ),
        pytest.param(
            TOOL,
            "mcp__gh__list",
            "calls of mcp__gh__list",
            ToolScope(tool="mcp__gh__list", where="project"),
            marks=pytest.mark.slow,
        ),
    ],
)
async def test_the_card_of_a_tool_offers_the_rule_for_its_narrowest_target(
    command: Function, target: str, words: str, scope: ToolScope
) -> None:
    async with open_cockpit(asked_by_agent(command, target, "wider"), size=(140, 40)) as cockpit:
        await cockpit.select("1")
        await cockpit.sees(f"Always allow {words} in this workspace: would allow 1 of your last 1 call")
        await cockpit.press("F", "F", "a")
        await cockpit.until(lambda: cockpit.record("1").decision is not None)
        assert cockpit.record("1").decision == Approve(remember=scope)


async def test_the_card_offers_no_rule_for_the_workspace_for_a_file_outside_of_it() -> None:
    async with open_cockpit(asked_by_agent(EDIT, "//etc/motd"), size=(140, 40)) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("app.py")
        await cockpit.press("F", "F", "a")
        await cockpit.until(lambda: cockpit.record("1").decision is not None)
        assert cockpit.record("1").decision == Approve()


@each_row(
    ("path", "words"),
    [
        ("/src/a.py", "src/a.py"),
        ("//etc/motd", "/etc/motd"),
        ("~/notes/", "every file below ~/notes/"),
        ("/a\\[1\\]/b\\*c", "a[1]/b*c"),
        ("Makefile", "every file named Makefile in the workspace"),
        ("build/", "every file below a directory named build/ in the workspace"),
        ("/src/", "every file below src/"),
        ("*.py", "every *.py file in the workspace"),
        ("//srv/**/x", "files that match //srv/**/x"),
        ("/a?b", "files that match /a?b in the workspace"),
    ],
)
def test_a_pattern_of_files_is_said_in_words(path: str, words: str) -> None:
    assert scope_targets(ToolScope(path=path).model_dump()) == f"edits of {words}"


@pytest.mark.slow
async def test_capital_a_approves_with_a_limit_of_uses_and_time() -> None:
    async with open_cockpit(three_waiting(), size=(200, 60)) as cockpit:
        await opened(cockpit)
        await cockpit.sees("Of your last 3 calls, 1 would have run without approval", "./build.sh")
        await cockpit.press("tab", "3", "tab", *"10", "ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        assert cockpit.record("1").decision == Approve(remember=ExactScope(uses=3, minutes=10))
        await cockpit.sees("3 more times")


@pytest.mark.slow
async def test_a_suggested_prefix_can_be_edited_with_a_live_preview() -> None:
    async with open_cockpit(with_prefixes(("./build.sh", "--all"), ("make", "clean")), size=(200, 60)) as cockpit:
        await opened(cockpit, 1)
        words = cockpit.app.screen.query_one("#words", Input)
        assert words.value == "./build.sh --all"
        await cockpit.sees(
            "0 would have run without approval", "Not this one: the same call would still need approval."
        )
        await cockpit.sees("Contains 2 commands")
        await cockpit.press("ctrl+n")
        assert words.value == "make clean"
        words.value = "echo 'rate"
        await cockpit.sees("The prefix contains an unclosed quote")
        await cockpit.press("ctrl+s")
        assert isinstance(cockpit.record("1").state, Waiting)
        words.value = 'echo "\'rate"'
        await cockpit.sees("1 would have run without approval", "echo 'rate = 20' > tax.conf")
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        remembered = PrefixScope(words=("echo", "'rate"), directory="/home/me/garden")
        assert cockpit.record("1").decision == Approve(remember=remembered)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suggested", "reach", "words"),
    [
        ((), 1, "No suggestion: no rule can be made of this command."),
        pytest.param((("make", "clean"),), 1, "There is no other suggestion.", marks=pytest.mark.slow),
        pytest.param(
            (("make", "clean"),), 0, "A suggestion is for commands that start with some words", marks=pytest.mark.slow
        ),
    ],
)
async def test_where_there_is_no_next_suggestion_the_key_says_why(
    suggested: tuple[tuple[str, ...], ...], reach: int, words: str
) -> None:
    async with open_cockpit(with_prefixes(*suggested), size=(200, 60)) as cockpit:
        await opened(cockpit, reach)
        await cockpit.press("ctrl+n")
        await cockpit.sees(words)


@pytest.mark.slow
async def test_a_refused_scope_shows_the_reason_of_the_api() -> None:
    async with open_cockpit(three_waiting(), size=(200, 60)) as cockpit:
        await opened(cockpit, 2)
        cockpit.app.screen.query_one("#words", Input).value = "rm"
        await cockpit.sees("This cannot be remembered like that: 'rm' is too short")
        await cockpit.press("ctrl+s")
        assert len(cockpit.app.screen_stack) == 2
        assert isinstance(cockpit.record("1").state, Waiting)


@pytest.mark.parametrize(("reach", "where"), [(3, "project"), pytest.param(4, "user", marks=pytest.mark.slow)])
async def test_a_rule_is_saved_for_the_project_or_the_user(reach: int, where: str) -> None:
    async with open_cockpit(with_prefixes(("./build.sh", "--all"))) as cockpit:
        await opened(cockpit, reach)
        await cockpit.press("ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        assert cockpit.record("1").decision == Approve(remember=RuleScope(words=("./build.sh", "--all"), where=where))
        await cockpit.sees("a rule is saved")


@pytest.mark.slow
async def test_escape_approves_nothing() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await opened(cockpit)
        await cockpit.press("escape")
        await cockpit.until(lambda: len(cockpit.app.screen_stack) == 1)
        assert isinstance(cockpit.record("1").state, Waiting)


@pytest.mark.slow
async def test_a_click_and_the_palette_open_it_too() -> None:
    async with open_cockpit(three_waiting(), size=(200, 60)) as cockpit:
        await cockpit.select("1")
        await cockpit.click("#do-approve-scope")
        await cockpit.sees("Approve call 1, and more")
        await cockpit.click("#choose-approve")
        await cockpit.until(lambda: isinstance(cockpit.record("1").state, Running))
        await cockpit.until(lambda: cockpit.selected == "2")
        await cockpit.can_be_seen()
        cockpit.scenario.clock.advance(30)
        await cockpit.choose("Approve more…  (A)")
        await cockpit.sees("Approve call 2, and more")
        assert cockpit.app.screen.query_one(OptionList).highlighted == 0


@pytest.mark.slow
async def test_an_edited_command_can_be_approved_with_a_scope() -> None:
    async with open_cockpit(three_waiting()) as cockpit:
        await cockpit.select("3")
        await cockpit.press("e", "end", *"x", "ctrl+o")
        await cockpit.sees("Approve call 3, and more", "tax.confx")
        await cockpit.press("tab", "2", "ctrl+s")
        await cockpit.until(lambda: isinstance(cockpit.record("3").state, Running))
        decision = cockpit.record("3").decision
        assert isinstance(decision, Approve) and decision.remember == ExactScope(uses=2)
        assert decision.edited is not None
