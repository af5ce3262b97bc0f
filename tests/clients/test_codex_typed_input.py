"""Codex types into a running command with full access, where neither it nor its hook asks: we do."""

import json

import pytest

from tests.clients.conversation import Played, play
from tests.clients.model.script import Call
from tests.clients.programs.codex import CodexInCodeMode
from tests.clients.scenes import Approved, DeniedFor, Scene
from tests.clients.stage import Stage

pytestmark = pytest.mark.parametrize("program", [CodexInCodeMode()], indirect=True, ids=["codex"])

READS = Scene("read line; echo got $line | tee typed-ran", Approved())
TYPED = Scene("good words", Approved())
READS_TOO = Scene("read other; echo got $other | tee untyped-ran", Approved())
NOT_TYPED = Scene("bad words", DeniedFor("Do not type this."))


def ask_for(program: CodexInCodeMode, scene: Scene) -> Call:
    """A script that starts a command, types into it, and shows what the command and we have said by then."""
    started = json.dumps({"cmd": scene.command, "tty": True, "yield_time_ms": 500})
    words = {READS: TYPED, READS_TOO: NOT_TYPED}[scene].command
    return program.script(
        f"const ran = await tools.exec_command({started});"
        f"const typed = {{session_id: ran.session_id, chars: {json.dumps(words + chr(10))}, yield_time_ms: 30000}};"
        "text((await tools.write_stdin(typed)).output);"
    )


def set_up(stage: Stage) -> None:
    stage.whisper_tui("install", "codex", "--yes", "--no-mcp")
    stage.options = ("--sandbox", "danger-full-access")


@pytest.fixture(scope="session")
def played(program: CodexInCodeMode, tmp_path_factory: pytest.TempPathFactory) -> Played:
    directory = tmp_path_factory.mktemp("codex-typed")
    also = (TYPED, NOT_TYPED)
    return play(program, (READS, READS_TOO), directory, ask_for=ask_for, set_up=set_up, also=also)


def test_what_codex_types_is_typed_once_it_is_approved(played):
    assert played.record(TYPED).call.tool == "write_stdin", played.written
    assert (played.workspace / "typed-ran").read_text() == "got good words\n"


def test_denied_input_is_not_typed_and_the_model_reads_the_reason(played):
    assert NOT_TYPED.human.reason in played.answer(READS_TOO).result, played.written
    assert not (played.workspace / "untyped-ran").exists()
