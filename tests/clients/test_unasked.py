"""At `unasked = "workspace"`, what changes only the workspace runs unasked, and the model is told what it wrote."""

import pytest

from tests.clients import test_through_hook, test_through_mcp
from tests.clients.conversation import Played, play
from tests.clients.install import missing
from tests.clients.programs import Program
from tests.clients.programs.claude import Claude
from tests.clients.programs.codex import Codex, CodexInCodeMode
from tests.clients.scenes import GOING, GONE, Approved, DeniedFor, NotDecided, Scene
from tests.clients.stage import Stage
from tests.outside import needs_overlays
from whisper_tui.model.decision import Decider
from whisper_tui.model.ending import Denied, Exited
from whisper_tui.model.state import Ended
from whisper_tui.model.verdict import HELD_BACK_RULE

pytestmark = needs_overlays

WAYS = {"hook": test_through_hook, "mcp": test_through_mcp}
REASON = "Not beside the workspace."

INSIDE = Scene("mkdir a && echo made in $PWD > a/b && cat a/b", NotDecided())
FAILS = Scene("cat a/b > copied; echo before; echo wrong >&2; exit 7", NotDecided())
"""The exit code makes no difference. It also shows that the changes before are real."""
BESIDE = Scene("echo x > ../beside-approved && echo written", Approved())
"""Its words show it."""
HIDDEN = Scene("python3 -c \"open('../' + 'beside-denied', 'w')\"", DeniedFor(REASON))
"""Only its effects show it."""
UNASKED = Decider(surface="rule", who=HELD_BACK_RULE)
ALL = (INSIDE, FAILS, BESIDE, HIDDEN, GOING, GONE)


@pytest.fixture(scope="session", params=[Claude(), Codex()], ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Program:
    """The two clients whose hooks and tools differ most."""
    if request.param.name in missing():
        pytest.fail(f"{request.param.name} is not installed: python tests/clients/install.py installs it, or says why")
    chosen: Program = request.param
    return chosen


@pytest.fixture(scope="session", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """How the client's commands come to whisper_tui."""
    chosen: str = request.param
    return chosen


def at_workspace(stage: Stage) -> None:
    """The user has chosen this level."""
    (stage.home / "config" / "rules.toml").unlink()
    (stage.home / "config" / "config.toml").write_text('[rules]\nunasked = "workspace"\n')


@pytest.fixture(scope="session")
def played(program: Program, way: str, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One conversation."""

    def set_up(stage: Stage) -> None:
        at_workspace(stage)
        WAYS[way].set_up(stage)

    directory = tmp_path_factory.mktemp(f"{program.name}-{way}-unasked")
    return play(program, ALL, directory, ask_for=WAYS[way].ask_for, set_up=set_up)


def assert_output(played: Played, way: str, scene: Scene, out: str, err: str = "", code: int = 0) -> None:
    """The model has been told exactly what the command wrote, its exit code, and that it was a preview if it was."""
    program, result = played.program, played.answer(scene).result
    if way == "hook":
        shown = {program.shell_shows(output, code) for output in (out + err, err + out)}
        assert program.shell_said(result) in shown, played.written
        return
    text = "\n".join([f"Output: {out}", *([f"Error: {err}"] if err else []), *([f"Exit Code: {code}"] if code else [])])
    if played.record(scene).decided_by == UNASKED:
        said = program.mcp_said(result)
        assert "changes in the workspace let this command run in a preview" in said
        assert said.endswith(text)
    else:
        facts = {"stdout": out, "stderr": err, "exitCode": code}
        test_through_mcp.assert_told(program, result, facts, text)


def test_what_changes_only_the_workspace_runs_unasked_and_the_agent_gets_its_output(played, way):
    record = played.record(INSIDE)
    assert record.decided_by == UNASKED, played.written
    assert isinstance(record.state, Ended) and record.state.ending == Exited(code=0)
    output = f"made in {played.workspace}\n"
    assert (played.workspace / "a" / "b").read_text() == output
    assert_output(played, way, INSIDE, output)


def test_a_failure_is_an_answer_like_any_other(played, way):
    record = played.record(FAILS)
    assert record.decided_by == UNASKED, played.written
    assert (played.workspace / "copied").read_text() == f"made in {played.workspace}\n"
    assert_output(played, way, FAILS, "before\n", "wrong\n", 7)


def test_what_its_words_show_to_write_elsewhere_waits_for_a_human(played, way):
    record = played.record(BESIDE)
    assert record.decided_by is not None and record.decided_by.surface == "cockpit", played.written
    assert (played.workspace.parent / "beside-approved").read_text() == "x\n"
    assert_output(played, way, BESIDE, "written\n")


def test_what_turns_out_to_write_elsewhere_waits_for_a_human(played):
    record = played.record(HIDDEN)
    assert isinstance(record.state, Ended) and isinstance(record.state.ending, Denied), played.written
    assert record.decided_by is not None and record.decided_by.surface == "cockpit"
    assert REASON in played.answer(HIDDEN).everything
    assert not (played.workspace.parent / "beside-denied").exists()


def test_the_next_command_runs_where_the_one_before_has_left_the_clients_shell(program, played, way):
    kept = played.workspace / "a build" if (program.name, way) == ("claude", "hook") else played.workspace
    assert [played.record(scene).decided_by for scene in (GOING, GONE)] == [UNASKED] * 2, played.written
    assert_output(played, way, GONE, f"{kept}\n")
    assert (kept / "gone-ran").exists()


@pytest.mark.parametrize("program", [CodexInCodeMode()], ids=["codex"])
def test_it_is_the_same_where_codex_leaves_its_commands_to_our_environment(program, tmp_path):
    def set_up(stage: Stage) -> None:
        at_workspace(stage)
        stage.whisper_tui("install", "codex", "--executor", "--yes")

    scenes = (INSIDE, FAILS, BESIDE, HIDDEN)
    played = play(program, scenes, tmp_path, ask_for=test_through_hook.ask_for, set_up=set_up)
    assert [played.record(scene).decided_by == UNASKED for scene in scenes] == [True, True, False, False]
    assert played.answer(INSIDE).result.endswith(f"the preview.\nmade in {played.workspace}\n"), played.written
    assert played.answer(FAILS).result.endswith(("the preview.\nbefore\nwrong\n", "the preview.\nwrong\nbefore\n"))
    assert (played.workspace / "a" / "b").exists()
    assert played.answer(BESIDE).result.endswith("\nwritten\n")
    assert (played.workspace.parent / "beside-approved").exists()
    assert REASON in played.answer(HIDDEN).result
    assert not (played.workspace.parent / "beside-denied").exists()
