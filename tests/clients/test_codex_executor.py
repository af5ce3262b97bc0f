"""Codex leaves everything to whisper_tui as its environment: commands, terminals, typed input and patches."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.clients.conversation import LONGEST_S, PROMPT, Played, play
from tests.clients.human import Human
from tests.clients.install import PLACE, measured_codex, missing
from tests.clients.model.script import Call, Say, Turn, call_id, turn_due
from tests.clients.model.server import SUB_AGENT, ScriptedModel
from tests.clients.programs.codex import Codex, CodexInCodeMode
from tests.clients.scenes import Approved, DeniedFor, Edited, NotDecided, Rewritten, Scene
from tests.clients.stage import Stage
from whisper_tui.model.ending import Denied, Exited, HandedOver
from whisper_tui.model.state import CallRecord, Ended

PROGRAM = CodexInCodeMode()
pytestmark = pytest.mark.parametrize("program", [PROGRAM], indirect=True, ids=["codex"])

ASK_ABOUT_EDITS = 'read_only = false\n[[ask]]\nname = "every edit"\npath = ["**"]\n'
OLD, NEW = "all:\n\techo hello\n", "all:\n\techo goodbye\n"

AS_IT_IS = Scene("echo approved; echo wrong >&2; touch approved-ran; exit 7", Approved())
ANOTHER = Scene("touch as-asked-ran", Edited("echo as edited"))
NO = Scene("touch denied-ran", DeniedFor("Use `make test`, not this."))
TERMINAL = Scene("test -t 0 && read line; echo got $line | tee terminal-ran", Approved())
TYPED = Scene("good words", Approved())
UNTYPED = Scene("test -t 0 && read other; echo got $other | tee untyped-ran", Approved())
NOT_TYPED = Scene("bad words", DeniedFor("Do not type this."))
PATCHED = Scene("patched/asked.txt", Approved())
NEW_FILE = Scene("new/deep/asked.txt", Approved())
REWRITTEN = Scene("rewritten/asked.txt", Rewritten("# by the human\n"))
UNPATCHED = Scene("kept/asked.txt", DeniedFor("Leave this file."))
SEARCHED = Scene("rg --version > searched-ran", Approved())
"""Codex brings its own rg, in a directory of its PATH that a login shell drops."""
SCENES = (SEARCHED, AS_IT_IS, ANOTHER, NO, TERMINAL, UNTYPED, PATCHED, NEW_FILE, REWRITTEN, UNPATCHED)


def in_terminal(program: CodexInCodeMode, command: str, typed: str) -> Call:
    """A script that starts a command in a terminal, and types into it."""
    started = json.dumps({"cmd": command, "tty": True, "yield_time_ms": 500})
    return program.script(
        f"const ran = await tools.exec_command({started});"
        f"const typed = {{session_id: ran.session_id, chars: {json.dumps(typed)}, yield_time_ms: 5000}};"
        "try { text((await tools.write_stdin(typed)).output); } catch (error) { text('refused: ' + error); }"
    )


def patch(program: CodexInCodeMode, scene: Scene) -> Call:
    change = ("*** Add File: new/deep/asked.txt", "+all:") if scene is NEW_FILE else ()
    lines = change or (f"*** Update File: {scene.command}", "@@", "-\techo hello", "+\techo goodbye")
    whole = json.dumps("\n".join(("*** Begin Patch", *lines, "*** End Patch")))
    return program.script(
        f"try {{ text(JSON.stringify(await tools.apply_patch({whole}))); }}"
        "catch (error) { text('refused: ' + error); }"
    )


def ask_for(program: CodexInCodeMode, scene: Scene) -> Call:
    if scene is TERMINAL:
        return in_terminal(program, scene.command, "good words\n")
    if scene is UNTYPED:
        return in_terminal(program, scene.command, "bad words\n")
    return patch(program, scene) if scene.command.endswith(".txt") else program.shell(scene.command)


def set_up(stage: Stage) -> None:
    for scene in (PATCHED, REWRITTEN, UNPATCHED):
        path = stage.workspace / scene.command
        path.parent.mkdir()
        path.write_text(OLD)
    (stage.home / "config" / "rules.toml").write_text(ASK_ABOUT_EDITS)
    stage.whisper_tui("install", "codex", "--executor", "--yes")


@pytest.fixture(scope="session")
def played(program: CodexInCodeMode, tmp_path_factory: pytest.TempPathFactory) -> Played:
    directory = tmp_path_factory.mktemp("codex-executor")
    return play(program, SCENES, directory, ask_for=ask_for, set_up=set_up, also=(TYPED, NOT_TYPED))


def ending(played: Played, scene: Scene) -> object:
    state = played.record(scene).state
    assert isinstance(state, Ended), played.written
    return state.ending


def test_an_approved_command_runs_once_and_the_model_has_its_output(played):
    assert "approved" in played.answer(AS_IT_IS).result, played.written
    assert "wrong" in played.answer(AS_IT_IS).result
    assert ending(played, AS_IT_IS) == Exited(code=7)
    assert (played.workspace / "approved-ran").exists()


def test_a_program_that_codex_brings_is_found(played):
    assert ending(played, SEARCHED) == Exited(code=0), played.written
    assert "ripgrep" in (played.workspace / "searched-ran").read_text()


def test_an_edited_command_runs_in_its_place_and_the_model_is_told(played):
    assert "as edited" in played.answer(ANOTHER).result
    assert "The human changed the command before it ran" in played.answer(ANOTHER).result
    assert not (played.workspace / "as-asked-ran").exists()


def test_the_model_reads_the_reason_of_a_denial_and_nothing_ran(played):
    assert NO.human.reason in played.answer(NO).result
    assert isinstance(ending(played, NO), Denied)
    assert not (played.workspace / "denied-ran").exists()


def test_what_is_typed_into_a_terminal_is_asked_about(played):
    assert "got good words" in played.answer(TERMINAL).result, played.written
    assert played.record(TYPED).call.tool == "write_stdin"
    assert played.record(TERMINAL).call.spec.tty
    assert (played.workspace / "terminal-ran").read_text() == "got good words\n"


def test_denied_input_is_not_typed(played):
    assert "refused: " in played.answer(UNTYPED).result
    assert isinstance(ending(played, NOT_TYPED), Denied)
    assert not (played.workspace / "untyped-ran").exists()


def test_a_patch_is_an_edit_that_is_made_once_it_is_approved(played):
    assert "refused" not in played.answer(PATCHED).result, played.written
    assert isinstance(ending(played, PATCHED), HandedOver)
    assert (played.workspace / PATCHED.command).read_text() == NEW


def test_a_new_file_with_its_directories_is_one_question(played):
    assert "refused" not in played.answer(NEW_FILE).result, played.written
    assert (played.workspace / NEW_FILE.command).read_text() == "all:\n"
    assert len([call for call in played.calls if "new/deep" in " ".join(call.spec.command.words())]) == 1


def test_a_patch_that_the_human_has_changed_is_made_as_changed(played):
    assert (played.workspace / REWRITTEN.command).read_text() == "# by the human\n"


def test_a_denied_patch_changes_nothing_and_the_model_learns_that_it_failed(played):
    assert "refused: " in played.answer(UNPATCHED).result
    assert isinstance(ending(played, UNPATCHED), Denied)
    assert (played.workspace / UNPATCHED.command).read_text() == OLD


def test_nothing_is_asked_twice(played):
    assert len(played.calls) == len(SCENES) + len((TYPED, NOT_TYPED)), [call.spec.command for call in played.calls]
    assert {session.client.name for session in played.sessions if session.client} == {"codex"}


def test_files_are_read_without_a_record(played):
    assert {call.call.tool for call in played.calls} == {"exec_command", "write_stdin", "apply_patch"}


INTERRUPTED = Scene("touch interrupted-ran", NotDecided())
LATER = Scene("touch later-ran", Approved())
AFTER_ALL = Scene("echo again | tee after-all-ran", Approved())


class ResumedCodex(CodexInCodeMode):
    """The same, when its user has it go on with the last conversation."""

    def arguments(self, prompt: str) -> list[str]:
        """One more turn."""
        return ["codex", "exec", "resume", "--last", "--json", "--skip-git-repo-check", prompt]


async def run_client(stage: Stage, *, meanwhile: Callable[[int], Awaitable[None]] | None = None) -> None:
    """Start Codex, do something with its process id, and wait for its end."""
    async with asyncio.timeout(LONGEST_S):
        client = stage.start_client(PROMPT)
        try:
            if meanwhile is not None:
                await meanwhile(client.pid)
            while client.poll() is None:
                await asyncio.sleep(0.05)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(client.pid, signal.SIGKILL)
            client.wait()


async def _killed(program: CodexInCodeMode, directory: Path) -> tuple[ScriptedModel, Path, list[int]]:
    """Kill the environment while a command waits, and go on with Codex. Returns how often the later two were asked."""
    begun = [program.shell(INTERRUPTED.command), program.shell(LATER.command)]
    with ScriptedModel(program.dialect, [*begun, Say("That was all.")]) as model:
        stage = Stage(directory, program, model.url)
        set_up(stage)
        try:
            async with Human(stage.home, (INTERRUPTED, LATER, AFTER_ALL), lambda _: False) as human:

                async def kill(pid: int) -> None:
                    await human.waits_for(INTERRUPTED)
                    below = psutil.Process(pid).children(recursive=True)
                    environments = [each for each in below if "executor" in each.cmdline()]
                    assert environments, stage.written()
                    for each in environments:
                        each.kill()

                await run_client(stage, meanwhile=kill)
                model.turns = (*begun, program.shell(AFTER_ALL.command), Say("That was all."))
                stage.program = ResumedCodex()
                await run_client(stage)
                return model, stage.workspace, [len(human.records(scene)) for scene in (LATER, AFTER_ALL)]
        finally:
            stage.stop()


def test_without_its_environment_codex_runs_nothing_until_it_is_resumed_with_another_one(program, tmp_path):
    model, workspace, asked = asyncio.run(_killed(program, tmp_path / "stage"))
    for turn in (0, 1):
        answer = model.answer(turn)
        assert answer is not None and "disconnected" in answer.everything
    assert not (workspace / "interrupted-ran").exists() and not (workspace / "later-ran").exists()
    answer = model.answer(2)
    assert answer is not None and "again" in answer.result
    assert asked == [0, 1] and (workspace / "after-all-ran").read_text() == "again\n"


GOING_ON = Scene("echo on | tee going-on-ran", NotDecided())


async def _restarted(program: CodexInCodeMode, directory: Path) -> tuple[ScriptedModel, Path, list[CallRecord]]:
    """Restart the supervisor while a command of Codex waits, and approve it then."""
    with ScriptedModel(program.dialect, [program.shell(GOING_ON.command), Say("That was all.")]) as model:
        stage = Stage(directory, program, model.url)
        set_up(stage)
        calls: list[CallRecord] = []

        async def restart(_: int) -> None:
            async with Human(stage.home, (GOING_ON,), lambda _: False) as human:
                await human.waits_for(GOING_ON)
            await asyncio.to_thread(stage.whisper_tui, "restart")
            async with Human(stage.home, (replace(GOING_ON, human=Approved()),), lambda _: False) as human:
                while model.answer(0) is None:
                    await asyncio.sleep(0.05)
                calls.extend(human.board.calls.values())

        try:
            await run_client(stage, meanwhile=restart)
        finally:
            stage.stop()
        return model, stage.workspace, calls


def test_a_waiting_command_keeps_waiting_under_the_next_supervisor(program, tmp_path):
    model, workspace, calls = asyncio.run(_restarted(program, tmp_path / "stage"))
    answer = model.answer(0)
    assert answer is not None and "on" in answer.result and "error" not in answer.result
    assert len(calls) == 1 and (workspace / "going-on-ran").read_text() == "on\n"


class OlderCodex(Codex):
    """Codex 0.166, which `codex-acp` brings: the version before the one with which the environment was measured."""

    def environment(self, url: str) -> dict[str, str]:
        """It is the first one on PATH."""
        path = os.pathsep.join((str(PLACE / "codex-acp" / "node_modules" / ".bin"), os.environ["PATH"]))
        return {**super().environment(url), "PATH": path}


def test_a_codex_of_another_version_is_refused_and_the_doctor_compares_both(program, tmp_path):
    if "codex-acp" in missing():
        pytest.fail("codex-acp is not installed: python tests/clients/install.py installs it, or says why")
    with ScriptedModel(Codex.dialect, []) as model:
        stage = Stage(tmp_path / "stage", Codex(), model.url)
        stage.whisper_tui("install", "codex", "--executor", "--yes")
        assert "The environment in" in (same := stage.whisper_tui("doctor", "codex")) and "measured with" not in same
        stage.variables = OlderCodex().environment(model.url)
        assert f"measured with Codex {measured_codex()}, not 0.166.0" in stage.whisper_tui("doctor", "codex")
        stage.whisper_tui("uninstall", "codex", "--yes")
        with pytest.raises(AssertionError, match=r"Codex 0\.166\.0 has no environments that whisper_tui knows"):
            stage.whisper_tui("install", "codex", "--executor", "--yes")
        assert not (stage.user_home / ".codex" / "environments.toml").exists()
        stage.stop()


def test_codex_begins_with_servers_of_its_user_and_the_doctor_proves_it(program, tmp_path):
    with ScriptedModel(Codex.dialect, []) as model:
        stage = Stage(tmp_path / "stage", Codex(), model.url)
        configuration = stage.user_home / ".codex" / "config.toml"
        given = configuration.read_text()
        configuration.write_text(f'{given}\n[mcp_servers.notes]\ncommand = "cat"\n')
        assert "are gone until you install without it: notes" in stage.whisper_tui(
            "install", "codex", "--executor", "--yes"
        )
        told = stage.whisper_tui("doctor", "codex")
        assert "Codex began a session in the environment" in told and "these are not offered: notes" in told
        configuration.write_text(configuration.read_text().replace('"cat"\n', '"cat"\nrequired = true\n'))
        with pytest.raises(AssertionError, match="Codex cannot begin a session in the environment"):
            stage.whisper_tui("doctor", "codex")
        stage.stop()


OF_SUB_AGENT = Scene("echo by the sub-agent | tee sub-agent-ran", Approved())
OF_AGENT = Scene("touch agent-ran; until test -e sub-agent-ran; do sleep 0.1; done; echo agent", Approved())


class ModelWithSubAgent(ScriptedModel):
    """Its sub-agent asks for one command."""

    def take_turn(self, body: dict[str, Any]) -> tuple[Turn, str]:
        parts = self.dialect.conversation(body)
        is_sub_agent = any(part.kind == "text" and SUB_AGENT in part.text for part in parts)
        if is_sub_agent and self.dialect.offers_tools(body) and turn_due(parts) == 0:
            return Codex().shell(OF_SUB_AGENT.command), call_id(100)
        return super().take_turn(body)


async def with_sub_agent(directory: Path, option: str) -> tuple[list[CallRecord], Path, str]:
    """Install with the option, and let an agent start a sub-agent, and both of them ask for a command.

    Returns the calls (the sub-agent's, the agent's, and the start of the sub-agent), the workspace, and the report of
    the doctor.
    """
    plain = Codex()
    spawn = Call("spawn_agent", {"message": SUB_AGENT}, namespace="multi_agent_v1")
    turns = [spawn, plain.shell(OF_AGENT.command), Say("That was all.")]
    with ModelWithSubAgent(plain.dialect, turns) as model:
        stage = Stage(directory, plain, model.url)
        stage.whisper_tui("install", "codex", option, "--yes")
        try:
            scenes = (OF_SUB_AGENT, OF_AGENT)
            async with Human(stage.home, scenes, lambda _: False) as human:
                await run_client(stage)
                calls = [record for scene in scenes for record in human.records(scene)]
                calls += (each for each in human.board.calls.values() if each not in calls)
            return calls, stage.workspace, await asyncio.to_thread(stage.whisper_tui, "doctor", "codex")
        finally:
            stage.stop()


def test_a_command_of_a_sub_agent_is_asked_about_under_its_name_and_the_doctor_proves_the_gate(program, tmp_path):
    (of_sub_agent, of_agent, _), workspace, report = asyncio.run(with_sub_agent(tmp_path / "stage", "--executor"))
    assert of_sub_agent.call.asker.startswith("sub-agent ") and of_agent.call.asker == ""
    assert of_sub_agent.call.session_id == of_agent.call.session_id
    assert (workspace / "sub-agent-ran").read_text() == "by the sub-agent\n"
    assert "environments.toml stopped a test command" in report
