"""The card of a call: what a decision needs, the rest behind one key, and what became of the last decisions."""

from pathlib import Path

import pytest
from textual.widgets._toast import Toast

from tests.in_memory.world import RecordedStreams
from tests.rows import each_row
from tests.tui.cockpit import Cockpit, open_cockpit
from tests.tui.scenes import ROOT, Scenario, workday
from tests.tui.test_describe import text_of
from whisper_tui.effects import effects_of
from whisper_tui.model.api import Supervision
from whisper_tui.model.call import Argv, CallRequest, CommandSpec, Session, Shell
from whisper_tui.model.decision import Approve, Decider, Deny, RuleScope
from whisper_tui.model.ending import Exited
from whisper_tui.model.event import Decided
from whisper_tui.model.state import CallRecord, Waiting
from whisper_tui.model.verdict import Resolved, Risk, Verdict
from whisper_tui.present.call_text import card
from whisper_tui.present.ending_text import AgentAnswer, AnswerPart
from whisper_tui.tui.cockpit.call_panel import Guidance
from whisper_tui.tui.lines import LineView
from whisper_tui.tui.paragraphs_view import ParagraphsView

USUAL = ("Directory", "Program", "Environment", "Session", "Trust", "Timeout", "Workspace", "Requested", "Why asked")
SCRIPT = "set -e\necho one\nrm -rf /srv/data\n" + "echo done\n" * 80


def asked(
    spec: CommandSpec, resolved: Resolved | None = None, *risks: Risk, reason: str = "no rule matches this command"
) -> tuple[CallRecord, Session]:
    scenario = Scenario.begin()
    request = CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec)
    verdict = Verdict(kind="ask", reason=reason, risks=risks)
    call_id = scenario.supervisor.ask(request, verdict, resolved or Resolved(program="/usr/bin/bash", cwd=spec.cwd))
    return scenario.supervisor.board.calls[call_id], scenario.supervisor.board.sessions["s1"]


def labels(record: CallRecord, session: Session) -> set[str]:
    lines = text_of(card(record, session)).splitlines()
    return {label for label in USUAL if any(line.startswith(f" {label}") for line in lines)}


def test_usual_facts_have_no_row() -> None:
    record, session = asked(CommandSpec(command=Shell(text="make"), cwd=ROOT))
    assert labels(record, session) == set()
    text = text_of(card(record, session))
    assert "make" in text and f"site builder · claude-code 2.1.329  in {ROOT}" in text


@each_row(
    ("spec", "resolved", "label"),
    [
        (
            CommandSpec(command=Shell(text="make"), cwd="/srv"),
            Resolved(program="/usr/bin/bash", cwd="/srv"),
            "Directory",
        ),
        (CommandSpec(command=Shell(text="make"), cwd=ROOT), Resolved(program="/usr/bin/bash", cwd="/x"), "Directory"),
        (CommandSpec(command=Shell(text="make"), cwd=ROOT), Resolved(program="/usr/bin/bash"), "Directory"),
        (CommandSpec(command=Argv(program="git"), cwd=ROOT), Resolved(program=f"{ROOT}/git", cwd=ROOT), "Program"),
        (CommandSpec(command=Argv(program="git"), cwd=ROOT), Resolved(problem="not found", cwd=ROOT), "Program"),
        (CommandSpec(command=Shell(text="make"), cwd=ROOT, environment={"CC": "x"}), None, "Environment"),
    ],
)
def test_unusual_facts_are_on_the_card(spec: CommandSpec, resolved: Resolved | None, label: str) -> None:
    assert labels(*asked(spec, resolved)) == {label}


def test_why_a_call_waits_again_and_an_unusual_program_must_have_been_on_the_screen() -> None:
    spec = CommandSpec(command=Argv(program="git"), cwd=ROOT)
    record, session = asked(spec, Resolved(program=f"{ROOT}/git", cwd=ROOT))
    again = record.model_copy(update={"state": Waiting(since=0, returned_because="old.txt has changed")})
    rows = card(again, session)
    assert {"Asked again", "Program"} <= {
        "".join(span.text for span in row.margin).strip() for row in rows if row.decides
    }


def test_a_directory_beside_the_workspace_is_not_inside_it() -> None:
    spec = CommandSpec(command=Shell(text="make"), cwd=f"{ROOT}-old")
    assert labels(*asked(spec, Resolved(program="/usr/bin/bash", cwd=f"{ROOT}-old"))) == {"Directory"}


def test_the_reason_is_on_the_card_once() -> None:
    spec = CommandSpec(command=Shell(text="make"), cwd=ROOT)
    changed = "the script has changed since you approved it"
    record, session = asked(spec, reason=changed)
    assert f"not flagged  {changed}" in text_of(card(record, session)) and labels(record, session) == set()
    risk = Risk(id="destructive", sentence="Deletes files")
    assert labels(*asked(spec, None, risk, reason=changed)) == {"Why asked"}
    assert labels(*asked(spec, None, risk, reason=risk.sentence)) == set()


def test_a_risk_in_a_long_text_shows_its_line() -> None:
    start = SCRIPT.index("rm -rf")
    risk = Risk(id="destructive", sentence="Deletes files", span=(start, start + 6))
    record, session = asked(CommandSpec(command=Shell(text=SCRIPT), cwd=ROOT), None, risk)
    assert "Deletes files.  line 3" in text_of(card(record, session))


async def test_m_shows_the_details_of_every_call_until_it_is_pressed_again() -> None:
    async with open_cockpit(workday(), size=(120, 50)) as cockpit:
        await cockpit.select("8")
        assert "Requested" not in cockpit.text()
        await cockpit.press("m")
        await cockpit.sees("Requested", "Timeout", "Workspace", "Last calls")
        await cockpit.select("7")
        await cockpit.sees("Requested")
        await cockpit.press("m")
        await cockpit.until(lambda: "Requested" not in cockpit.text())


async def test_an_apostrophe_scrolls_to_the_risky_part() -> None:
    scenario = Scenario.begin()
    text = "echo one\n" * 100 + "rm -rf /srv/data\n" + "echo two\n" * 100
    start = text.index("rm -rf")
    risk = Risk(id="destructive", sentence="Deletes files", span=(start, start + 6))
    spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
    request = CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec)
    scenario.supervisor.ask(request, Verdict(kind="ask", reason=risk.sentence, risks=(risk,)))
    async with open_cockpit(scenario, size=(120, 40)) as cockpit:
        await cockpit.select("1")
        assert "rm -rf /srv/data" not in cockpit.text().split("Deletes files")[1]
        await cockpit.press("apostrophe")
        await cockpit.sees("101 │ rm -rf /srv/data")


async def test_digits_go_to_the_next_call_of_a_section() -> None:
    async with open_cockpit(workday()) as cockpit:
        board = cockpit.scenario.supervisor.board
        for key, wanted in (("2", board.running), ("3", board.unsettled)):
            await cockpit.press(key)
            await cockpit.until(lambda wanted=wanted: cockpit.selected in wanted)
        await cockpit.press("4")
        await cockpit.until(lambda: cockpit.selected in board.settled and "✔" not in heading_of(cockpit))
        await cockpit.press("5")
        await cockpit.sees("7")
        await cockpit.until(lambda: cockpit.selected == "7")


def heading_of(cockpit: Cockpit) -> str:
    return "".join(span.text for span in cockpit.screen.query_one("#call-heading", LineView).left)


def decided(scenario: Scenario, call_id: str, by: Decider = Decider(surface="cockpit", who="me")) -> None:  # noqa: B008
    """The user of this cockpit approves the call, or somebody else, and it starts."""
    scenario.clock.advance(1)
    scenario.supervisor.happen(Decided(at=scenario.clock(), call_id=call_id, decision=Approve(), by=by))
    scenario.supervisor.start(call_id)


@pytest.mark.slow
async def test_a_call_approved_here_stays_visible_with_its_last_line() -> None:
    scenario = Scenario.begin()
    first, second = scenario.ask("build"), scenario.ask("fix")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select(second)
        decided(scenario, first)
        await cockpit.until(lambda: "▶ running" in cockpit.text().splitlines()[-2])
        scenario.supervisor.written.setdefault(first, RecordedStreams()).out += b"\x1b[32mcompiling\x1b[0m 3 of 9\n"
        await cockpit.until(lambda: "compiling 3 of 9" in cockpit.text().splitlines()[-2])
        scenario.supervisor.written[first].out += b"all 9 compiled\n"
        scenario.supervisor.finish(first, Exited(code=0))
        await cockpit.until(lambda: "all 9 compiled" in cockpit.text().splitlines()[-2])
        await cockpit.until(lambda: "✔ exit 0" in cockpit.text().splitlines()[-2])
        assert cockpit.selected == second


async def test_the_failure_of_an_approved_call_is_shown_once() -> None:
    scenario = Scenario.begin()
    first, second = scenario.ask("build"), scenario.ask("fix")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select(second)
        decided(scenario, first)
        scenario.supervisor.finish(first, Exited(code=2))
        await cockpit.sees(f"Call {first} failed (exit 2): ./build.sh")


async def test_a_notification_stands_above_what_became_of_the_last_decisions() -> None:
    scenario = Scenario.begin()
    first, second = scenario.ask("build"), scenario.ask("fix")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select(second)
        decided(scenario, first)
        scenario.supervisor.finish(first, Exited(code=2))
        strip = cockpit.screen.query_one("#recent")
        await cockpit.until(lambda: strip.region and any(toast.region for toast in cockpit.screen.query(Toast)))
        assert all(toast.region.bottom <= strip.region.y for toast in cockpit.screen.query(Toast))


async def test_the_strip_has_the_last_three_calls_whoever_approved_them() -> None:
    scenario = Scenario.begin()
    ours, theirs, denied = scenario.ask("build"), scenario.ask("fix"), scenario.ask("clean")
    async with open_cockpit(scenario) as cockpit:
        strip = cockpit.screen.query_one("#recent")
        decided(scenario, ours)
        await cockpit.until(lambda: strip.region.height == 1)
        decided(scenario, theirs, Decider(surface="command line", who="somebody"))
        scenario.deny(denied, "no")
        ruled = scenario.ask("build")
        decided(scenario, ruled, Decider(surface="rule", who="builds"))
        await cockpit.until(lambda: strip.region.height == 3)
        rows = cockpit.text().splitlines()[-4:-1]
        assert [call_id in row for call_id, row in zip((ours, theirs, ruled), rows, strict=True)] == [True] * 3


async def test_the_line_of_a_call_that_failed_is_the_one_with_the_error() -> None:
    scenario = Scenario.begin()
    first, second = scenario.ask("build"), scenario.ask("fix")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.select(second)
        decided(scenario, first)
        lines = b"main.c:3: error: expected ;\n1 warning\nmake: *** [all] Error 1\nbye\n"
        scenario.supervisor.written.setdefault(first, RecordedStreams()).err += lines
        await cockpit.until(lambda: "bye" in cockpit.text().splitlines()[-2])
        scenario.supervisor.finish(first, Exited(code=2))
        await cockpit.until(lambda: "main.c:3: error: expected ;" in cockpit.text().splitlines()[-2])


async def test_calls_that_were_approved_before_the_cockpit_opened_are_not_in_the_strip() -> None:
    async with open_cockpit(workday()) as cockpit:
        await cockpit.pilot.pause()
        assert not cockpit.screen.query_one("#recent").display


WAYS = (("whisper-tui install claude", "connect Claude Code"), ("gemini", "start Gemini CLI: its commands come here"))


async def test_an_empty_cockpit_offers_the_agents_of_this_machine_the_demo_and_help() -> None:
    async with open_cockpit(Scenario.begin(), guidance=Guidance(clients=lambda: WAYS)) as cockpit:
        await cockpit.sees(
            "whisper-tui install claude", "connect Claude Code", "gemini", "whisper-tui demo", "what every key does"
        )
        assert "codex" not in cockpit.text()
        cockpit.scenario.ask("build")
        await cockpit.until(lambda: "whisper-tui demo" not in cockpit.text())


async def test_an_empty_cockpit_without_a_known_agent_names_those_that_it_can_connect() -> None:
    async with open_cockpit(Scenario.begin()) as cockpit:
        await cockpit.sees("whisper-tui install CLIENT", "claude, codex, gemini, opencode,")


async def test_the_card_shows_the_effects_with_the_diff_of_written_files(tmp_path: Path) -> None:
    (tmp_path / "tax.conf").write_text("rate = 19\n")
    scenario = in_directory(tmp_path, "echo 'rate = 20' > tax.conf")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("Changes     ~ tax.conf", "+1 −1 ■■", "− rate = 19", "+ rate = 20")


async def test_the_effects_follow_the_files_while_the_call_waits(tmp_path: Path) -> None:
    scenario = in_directory(tmp_path, "echo new > note.txt")
    async with open_cockpit(scenario) as cockpit:
        await cockpit.sees("+ note.txt")
        (tmp_path / "note.txt").write_text("old\n")
        scenario.clock.advance(3)
        await cockpit.sees("1 − old", "1 + new")


async def test_a_script_that_would_run_is_shown_with_its_risks(tmp_path: Path) -> None:
    (tmp_path / "deploy.sh").write_text("#!/bin/sh\nrm -rf ~/important\n")
    (tmp_path / "deploy.sh").chmod(0o755)
    async with open_cockpit(in_directory(tmp_path, "./deploy.sh")) as cockpit:
        await cockpit.sees("Runs     ▲  ./deploy.sh", "rm -rf ~/important")


async def test_the_lines_of_a_script_break_between_words(tmp_path: Path) -> None:
    words = [f"word{number:02d}" for number in range(24)]
    (tmp_path / "say.sh").write_text(f"echo {' '.join(words)}\n")
    async with open_cockpit(in_directory(tmp_path, "sh ./say.sh"), size=(80, 24)) as cockpit:
        await cockpit.sees("Runs        sh ./say.sh", words[0])
        cockpit.screen.query_one("#call-detail", ParagraphsView).scroll_end(animate=False)
        await cockpit.sees(words[-1])
        shown = cockpit.text()
        assert [word for word in words if word not in shown] == []
        assert "┆ word" in shown


async def test_a_risk_of_a_script_stands_on_the_card_once(tmp_path: Path) -> None:
    (tmp_path / "deploy.sh").write_text("#!/bin/sh\nrm -rf ~/important\ngit push --force\n")
    (tmp_path / "deploy.sh").chmod(0o755)
    text = "Deletes recursively without confirmation (`rm -rf`)"
    risk = Risk(id="destructive", sentence=f"./deploy.sh line 2: {text}")
    async with open_cockpit(in_directory(tmp_path, "./deploy.sh", risks=(risk,)), size=(170, 48)) as cockpit:
        await cockpit.sees("▲▲ severe  ./deploy.sh line 2: Deletes", "▲  ./deploy.sh", "▲  line 3  ")
        assert cockpit.text().count(text) == 1
    both = effects_of(Shell(text="./deploy.sh"), str(tmp_path), (str(tmp_path),), {}).code[0]
    risks = tuple(Risk(id=each.id, sentence=each.sentence_about("./deploy.sh")) for each in both.risks)
    async with open_cockpit(in_directory(tmp_path, "./deploy.sh", risks=risks), size=(170, 48)) as cockpit:
        await cockpit.sees("▲  ./deploy.sh", "▲▲ 2 │ rm -rf ~/important")
        assert cockpit.text().count(text) == 1


async def test_escape_sequences_in_a_file_are_never_drawn(tmp_path: Path) -> None:
    (tmp_path / "evil.sh").write_text("echo \x1b[31mred\x1b]0;title\x07\n")
    async with open_cockpit(in_directory(tmp_path, "sh evil.sh")) as cockpit:
        await cockpit.sees("Runs     ▲  sh evil.sh")
        assert "\x1b" not in cockpit.text() and "\x07" not in cockpit.text()


def in_directory(directory: Path, text: str, *prefixes: tuple[str, ...], risks: tuple[Risk, ...] = ()) -> Scenario:
    """An agent wants to run a shell text in a real directory."""
    scenario = Scenario.begin()
    spec = CommandSpec(command=Shell(text=text), cwd=str(directory))
    request = CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec)
    scenario.supervisor.ask(
        request, Verdict(kind="ask", reason="no rule matches this command", prefixes=prefixes, risks=risks)
    )
    return scenario


async def test_a_deletion_of_what_is_not_there_says_so_beside_its_risk(tmp_path: Path) -> None:
    risk = Risk(id="destructive", sentence="Deletes recursively without confirmation (`rm -rf`)")
    async with open_cockpit(in_directory(tmp_path, "rm -rf build", risks=(risk,)), size=(170, 48)) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("▲ careful  Deletes recursively", "Nothing is there now.", "no known changes")
        assert "not there" not in cockpit.text()
    (tmp_path / "build").mkdir()
    async with open_cockpit(in_directory(tmp_path, "rm -rf build", risks=(risk,))) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("Deletes recursively", "− build")
        assert "Nothing is there" not in cockpit.text()
    async with open_cockpit(in_directory(tmp_path, "rm -rf nothere $(cat list)", risks=(risk,))) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("Deletes recursively", "· nothere  not there")
        assert "Nothing is there" not in cockpit.text()


async def test_always_saves_the_rule_that_the_card_offers_and_no_other(tmp_path: Path) -> None:
    async with open_cockpit(in_directory(tmp_path, "npm run build", ("npm", "run", "build"))) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("F F Always allow npm run build", "would allow 1 of your last", "sandbox")
        await cockpit.press("F", "F")
        await cockpit.sees("a saves the rule for npm")
        await cockpit.press("a")
        await cockpit.until(lambda: not isinstance(cockpit.record("1").state, Waiting))
        decision = cockpit.record("1").decision
        assert isinstance(decision, Approve)
        assert decision.remember == RuleScope(words=("npm", "run", "build"), where="project")


@pytest.mark.slow
async def test_after_two_approvals_the_rule_that_covers_both_comes_right_below_the_verdict() -> None:
    scenario = in_directory(Path(ROOT), "npm test third --ci", ("npm", "test"))
    for text in ("npm test first --silent", "npm test second -w"):
        spec = CommandSpec(command=Shell(text=text), cwd=ROOT)
        request = CallRequest(session_id="s1", tool="run_shell_command", arguments={}, spec=spec)
        call_id = scenario.supervisor.ask(request, Verdict(kind="ask", reason="no rule", prefixes=(("npm", "test"),)))
        async with open_cockpit(scenario) as cockpit:
            await cockpit.select("1")
            await cockpit.sees("Always allow npm test …")
            assert "Approved" not in cockpit.text()
        seen = scenario.supervisor.board.calls[call_id].seen_digest()
        await scenario.supervisor.decide(call_id, Approve(), Decider(surface="cockpit", who="ada"), seen)
    async with open_cockpit(scenario, size=(140, 40)) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("Approved 2 times already. Always allow npm test … with", "-w", "--silent")
        shown = cockpit.text()
        assert shown.index("not flagged  no rule") < shown.index("Approved 2 times") < shown.index("claude-code")
        await cockpit.press("F", "F")
        await cockpit.sees("a saves the rule for npm")
        await cockpit.press("a")
        await cockpit.until(lambda: not isinstance(cockpit.record("1").state, Waiting))
        decision = cockpit.record("1").decision
        assert isinstance(decision, Approve) and isinstance(decision.remember, RuleScope)
        assert set(decision.remember.options) == {"-w", "--silent"}


async def test_always_cannot_be_chosen_where_no_rule_is_offered(tmp_path: Path) -> None:
    async with open_cockpit(in_directory(tmp_path, "make", ("make",))) as cockpit:
        await cockpit.select("1")
        await cockpit.sees("Runs")
        await cockpit.press("F")
        await cockpit.sees("not asked about again in this session")
        await cockpit.press("F")
        await cockpit.until(lambda: "not asked about again" not in cockpit.text())
        assert isinstance(cockpit.record("1").state, Waiting)


async def test_a_wide_screen_has_the_effects_beside_the_command_and_details_where_there_is_room(tmp_path: Path) -> None:
    scenario = in_directory(tmp_path, "echo new > note.txt")
    async with open_cockpit(scenario, size=(170, 48)) as cockpit:
        await cockpit.sees("Changes", "Timeout")
        detail = cockpit.screen.query_one("#call-detail", ParagraphsView)
        lines = [detail.render_line(y).text for y in range(detail.size.height)]
        (effects,) = (line for line in lines if "+ note.txt" in line)
        assert effects.index("│") < effects.index("+ note.txt")
        assert detail.unseen == 0
        await cockpit.pilot.resize_terminal(120, 40)
        await cockpit.until(lambda: "Timeout" not in cockpit.text() and "+ note.txt" in cockpit.text())


async def test_a_long_sentence_beside_a_script_does_not_break_the_lines_of_the_script(tmp_path: Path) -> None:
    lines = [f"echo a line of some fifty columns, number {number:08d}" for number in range(20)]
    (tmp_path / "build.sh").write_text("\n".join(lines))
    risk = Risk(id="writes", sentence="./build.sh line 8: Writes to a file whose name is in a variable.")
    async with open_cockpit(in_directory(tmp_path, "sh ./build.sh", risks=(risk,)), size=(170, 48)) as cockpit:
        await cockpit.sees("number 00000019")
        assert all(line in cockpit.text() for line in lines)


async def test_details_that_do_not_fit_are_left_out_and_nothing_of_the_command_is(tmp_path: Path) -> None:
    scenario = in_directory(tmp_path, "".join(f"echo {number} >> note.txt\n" for number in range(60)))
    async with open_cockpit(scenario, size=(170, 48)) as cockpit:
        await cockpit.sees("Changes")
        assert "Timeout" not in cockpit.text()
        detail = cockpit.screen.query_one("#call-detail", ParagraphsView)
        before = detail.unseen
        await cockpit.press("ctrl+d", "ctrl+d", "ctrl+d")
        await cockpit.until(lambda: detail.unseen == 0)
        assert before > 0


async def test_three_columns_have_the_details_of_an_ended_call_beside_its_output() -> None:
    async with open_cockpit(workday(), size=(220, 60)) as cockpit:
        await cockpit.select("2")
        await cockpit.sees("Timeout", "stdout")
        area = cockpit.screen.query_one("#output")
        assert area.region.x > cockpit.screen.query_one("#call").region.x and area.region.height > 50


async def test_an_ended_call_shows_what_its_agent_was_told_with_its_details_and_asks_once() -> None:
    asked_about: list[str] = []

    async def answer_of(_supervision: Supervision, record: CallRecord) -> AgentAnswer:
        asked_about.append(record.id)
        return AgentAnswer(
            (AnswerPart("reason of the denial", "Denied by the human"),), ("Something is not recorded.",)
        )

    scenario = Scenario.begin()
    waiting, ended = scenario.ask("build"), scenario.ask("test")
    me, shown = Decider(surface="cockpit", who="me"), scenario.supervisor.board.calls[ended].seen_digest()
    await scenario.supervisor.decide(ended, Deny(reason="no"), me, shown)
    async with open_cockpit(scenario, size=(100, 60)) as cockpit:
        cockpit.app.answer_of = answer_of
        await cockpit.select(waiting)
        await cockpit.press("m")
        await cockpit.select(ended)
        await cockpit.sees("What the agent was told", "Something is not recorded.", "reason of the denial")
        await cockpit.settled()
        assert asked_about == [ended]
        await cockpit.press("m")
        await cockpit.until(lambda: "What the agent was told" not in cockpit.text())
