"""A real agent behind `whisper-tui acp`: its commands and writes wait for the human, and its model is told."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conversation import PROMPT, while_it_goes_on
from tests.clients.human import Human
from tests.clients.install import missing
from tests.clients.model.script import Answer
from tests.clients.model.server import ScriptedModel
from tests.clients.programs.claude import Claude
from tests.clients.programs.codex import Codex
from tests.clients.programs.copilot import Copilot
from tests.clients.programs.gemini import Gemini
from tests.clients.programs.kimi import Kimi
from tests.clients.programs.opencode import OpenCode
from tests.clients.programs.program import Program
from tests.clients.programs.qwen import Qwen
from tests.clients.scenes import ANOTHER, AS_IT_IS, FAILING, NO, ApprovedTooLate, DeniedFor, Rewritten, Scene
from tests.clients.stage import LAUNCHER, Stage
from tests.transports.acp.test_acp_proxy import Editor
from whisper_tui.model.ending import Denied, Exited, HandedOver
from whisper_tui.model.state import CallRecord, Ended
from whisper_tui.transports.acp.acp_sessions import UNSEEN_OPTION

WRITTEN = Scene("written-outside.txt", Rewritten("by the human\n"))
NOT_WRITTEN = Scene("denied-outside.txt", DeniedFor("not there"))
SLOW = Scene("touch slow-ran; echo after a while", ApprovedTooLate())
SCENES = (AS_IT_IS, ANOTHER, NO, FAILING, SLOW, WRITTEN, NOT_WRITTEN)

COMMAND_S, HUMAN_S = 1, 4.0
"""Seconds that the agent gives each command, and that a slow human takes."""


@dataclass(frozen=True)
class PlayedInEditor:
    """What is left of a conversation."""

    stage: Stage
    calls: dict[Scene, list[CallRecord]]
    all_calls: int
    answers: dict[Scene, Answer | None]
    updates: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    """What the editor was asked by the agent."""

    def said(self, scene: Scene) -> str:
        """What the model was told about a scene."""
        answer = self.answers[scene]
        assert answer is not None
        return Kimi().shell_said(answer.result)

    def ending(self, scene: Scene) -> Any:
        """How the one call of a scene ended."""
        (record,) = self.calls[scene]
        assert isinstance(record.state, Ended)
        return record.state.ending


@pytest.fixture(scope="session", params=(Kimi(),), ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Kimi:
    """The agents that have their editor run commands."""
    check_installed(request.param.name)
    return request.param


def check_installed(part: str) -> None:
    """Fail without a client: the others are tested all the same."""
    if part in missing():
        pytest.fail(f"{part} is not installed: python tests/clients/install.py installs it, or says why")


@pytest.fixture(scope="session")
def played(program: Kimi, tmp_path_factory: pytest.TempPathFactory) -> PlayedInEditor:
    """One conversation of all scenes."""
    return asyncio.run(_play(program, tmp_path_factory.mktemp("kimi-in-editor")))


async def _play(program: Kimi, directory: Path) -> PlayedInEditor:
    commands = [program.shell(scene.command, COMMAND_S) for scene in SCENES[:5]]
    writes = [program.write(directory / scene.command, "by the agent\n") for scene in SCENES[5:]]
    asked_at: dict[Scene, float] = {}

    def late_enough(scene: Scene) -> bool:
        return time.monotonic() - asked_at.setdefault(scene, time.monotonic()) > HUMAN_S

    with ScriptedModel(program.dialect, [*commands, *writes]) as model:
        stage = Stage(directory, program, model.url)
        try:
            async with Human(stage.home, SCENES, late_enough) as human:
                editor = await _edit(stage, *program.arguments(PROMPT))
                found = {scene: human.records(scene) for scene in SCENES}
                answers = {scene: model.answer(index) for index, scene in enumerate(SCENES)}
                return PlayedInEditor(stage, found, len(human.board.calls), answers, editor.updates, editor.requests)
        finally:
            stage.stop()


async def _edit(stage: Stage, *agent: str, option: str = "") -> Editor:
    """Let the agent work on one prompt in an editor that can run and write nothing itself."""
    words = (LAUNCHER, "acp", "--home", stage.home, *filter(None, [option]), "--", *agent)
    process = await asyncio.create_subprocess_exec(
        *map(str, words),
        cwd=stage.workspace,
        env=stage.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=1 << 26,
        start_new_session=True,
    )
    editor = Editor(process)
    try:
        async with while_it_goes_on(lambda: len(editor.updates) + len(editor.requests)):
            opened = await editor.open(stage.workspace)
            if "error" in opened:
                editor.updates.append(opened)
                return editor
            prompt = {"sessionId": opened["result"]["sessionId"], "prompt": [{"type": "text", "text": PROMPT}]}
            said = await editor.ask("session/prompt", prompt)
            assert said["result"]["stopReason"] == "end_turn"
    finally:
        await editor.end()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return editor


def test_each_action_is_asked_about_once_and_never_by_the_editor(played: PlayedInEditor) -> None:
    assert [len(played.calls[scene]) for scene in SCENES] == [1] * len(SCENES) and played.all_calls == len(SCENES)
    assert played.requests == []


def test_an_approved_command_runs_and_its_output_is_the_models(played: PlayedInEditor) -> None:
    assert played.ending(AS_IT_IS) == Exited(code=0)
    assert played.said(AS_IT_IS) == f"approved in {played.stage.workspace}\n"
    assert (played.stage.workspace / "as-it-is-ran").exists()


def test_an_edited_command_runs_and_the_model_is_told_so(played: PlayedInEditor) -> None:
    assert "What ran: echo as edited." in played.said(ANOTHER) and played.said(ANOTHER).endswith("\nas edited\n")
    assert not (played.stage.workspace / "as-asked-ran").exists()


def test_a_denial_reaches_the_model_with_its_reason(played: PlayedInEditor) -> None:
    assert isinstance(played.ending(NO), Denied) and isinstance(NO.human, DeniedFor)
    assert f"Reason: {NO.human.reason}" in played.said(NO)
    assert not (played.stage.workspace / "denied-ran").exists()


def test_a_decision_may_take_longer_than_the_time_limit_of_the_command(played: PlayedInEditor) -> None:
    assert played.said(SLOW) == "after a while\n"


def test_a_failure_is_one_for_the_model(played: PlayedInEditor) -> None:
    assert played.said(FAILING) == Kimi().shell_shows("before\nwrong\n", 7)


def test_a_write_is_made_as_the_human_left_it(played: PlayedInEditor) -> None:
    assert played.ending(WRITTEN) == HandedOver()
    assert (played.stage.home.parent / WRITTEN.command).read_text() == "by the human\n"


def test_a_denied_write_is_not_made_and_the_model_reads_why(played: PlayedInEditor) -> None:
    assert "not there" in played.said(NOT_WRITTEN)
    assert not (played.stage.home.parent / NOT_WRITTEN.command).exists()


def test_the_editor_is_shown_what_really_ran(played: PlayedInEditor) -> None:
    shown = str(played.updates)
    assert "$ echo as edited" in shown and "[exit code 7;" in shown and "by the human" in shown
    assert "'type': 'terminal'" not in shown


ITSELF = {
    "claude": ("claude-agent-acp",),
    "codex": ("codex-acp",),
    "copilot": ("copilot", "--acp", "--stdio"),
    "gemini": ("gemini", "--acp", "-m", "gemini-2.5-pro"),
    "opencode": ("opencode", "acp"),
    "qwen": ("qwen", "--acp", "--approval-mode", "default"),
}
"""Agents that run commands themselves."""
UNSEEN = (Gemini(), Qwen())
"""Those whose hooks do not run in an editor."""
HOOKED = (Claude(), Codex(), Copilot(), OpenCode())


def is_question(message: dict[str, Any]) -> bool:
    """True if the editor has to ask its user."""
    return message["method"] == "session/request_permission"


def name_of(program: Program) -> str:
    return program.name


async def in_editor(
    program: Program, directory: Path, scenes: Sequence[Scene], *, option: str = "", hook: bool = False
) -> tuple[Editor, Human, list[Answer | None], Stage]:
    """Let the agent's model ask for these commands. Returns what the editor, the human and the model were told."""
    for part in (program.name, ITSELF[program.name][0]):
        check_installed(part)
    with ScriptedModel(program.dialect, [program.shell(scene.command) for scene in scenes]) as model:
        stage = Stage(directory, program, model.url)
        if program.name == "opencode":
            stage.change_settings('"share": "disabled"', '"share": "disabled", "model": "scripted/scripted"')
        if hook:
            stage.whisper_tui("install", program.name, "--yes", "--no-mcp")
        try:
            async with Human(stage.home, scenes, lambda _: True) as human:
                editor = await _edit(stage, *ITSELF[program.name], option=option)
                answers = [model.answer(index) for index in range(len(scenes))]
        finally:
            stage.stop()
    return editor, human, answers, stage


@pytest.mark.parametrize("program", [*HOOKED, *UNSEEN], ids=name_of)
async def test_an_agent_that_runs_its_commands_itself_is_refused_without_a_hook(
    program: Program, tmp_path: Path
) -> None:
    editor, human, _, stage = await in_editor(program, tmp_path, [AS_IT_IS])
    (refusal,) = editor.updates
    said = refusal["error"]["message"]
    assert ("runs its commands itself" if program in UNSEEN else f"whisper-tui install {program.name}") in said
    assert human.board.calls == {} and not (stage.workspace / "as-it-is-ran").exists()


@pytest.mark.parametrize("program", HOOKED, ids=name_of)
async def test_an_agent_with_a_hook_works_through_its_hook(program: Program, tmp_path: Path) -> None:
    scenes = (AS_IT_IS, ANOTHER, NO)
    editor, human, answers, stage = await in_editor(program, tmp_path, scenes, hook=True)
    assert [len(human.records(scene)) for scene in scenes] == [1, 1, 1]
    assert not list(filter(is_question, editor.requests))
    said = [answer.everything if answer is not None else "" for answer in answers]
    assert f"approved in {stage.workspace}" in said[0]
    assert "as edited" in said[1] and not (stage.workspace / "as-asked-ran").exists()
    assert NO.human.reason in said[2] and not (stage.workspace / "denied-ran").exists()


class AskingClaude(Claude):
    """Claude Code in the mode in which it asks about each command; in an editor, it may decide itself otherwise."""

    def configure(self, home: Path, url: str) -> None:
        """The user has chosen the mode."""
        (home / ".claude").mkdir(mode=0o700)
        (home / ".claude" / "settings.json").write_text('{"permissions": {"defaultMode": "default"}}\n')


@pytest.mark.parametrize("program", [AskingClaude(), *UNSEEN], ids=name_of)
async def test_with_allow_unseen_shell_an_agent_starts_and_its_questions_are_in_the_queue(
    program: Program, tmp_path: Path
) -> None:
    scenes = (Scene("echo approved > approved-ran"), NO)
    editor, human, _, stage = await in_editor(program, tmp_path, scenes, option=UNSEEN_OPTION)
    asked = [record for scene in scenes for record in human.records(scene)]
    assert [type(record.state.ending) for record in asked] == [HandedOver, Denied]
    assert not list(filter(is_question, editor.requests))
    assert (stage.workspace / "approved-ran").read_text() == "approved\n"
    assert not (stage.workspace / "denied-ran").exists()
