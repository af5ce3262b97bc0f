"""Each real client asks nothing itself about what was approved in whisper_tui, and asks where whisper_tui does not.

The clients run without a terminal, in the mode in which they ask people: whatever they would ask is refused at once. So
a call that was made, and was decided once in whisper_tui, has had one question.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clients import codex_app, side_server
from tests.clients.conversation import Played, play
from tests.clients.model.script import Call
from tests.clients.programs import PROGRAMS, Program
from tests.clients.programs.codex import CodexInCodeMode
from tests.clients.programs.gemini import Gemini
from tests.clients.scenes import Approved, DeniedFor, NotDecided, Scene
from tests.clients.stage import Stage

SERVER = "notes"
KEPT = Scene("keep this", Approved())
REASON = "not outside"
CLAUDE_AND_OPENCODE = [program for program in PROGRAMS if program.name in {"claude", "opencode"}]
OPENCODE = CLAUDE_AND_OPENCODE[1:]
CODEX = [program for program in PROGRAMS if program.name == "codex"]
GEMINI = [program for program in PROGRAMS if program.name == "gemini"]


class AskingGemini(Gemini):
    """Gemini CLI in the mode in which it asks."""

    def arguments(self, prompt: str) -> list[str]:
        """Without *yolo*."""
        return [word if word != "yolo" else "default" for word in super().arguments(prompt)]


class AskingCodex(CodexInCodeMode):
    """Codex in an editor, which asks."""

    def configure(self, home: Path, url: str) -> None:
        """It asks about what lies outside of the workspace, which is below /tmp here."""
        super().configure(home, url)
        path = home / ".codex" / "config.toml"
        limits = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
        path.write_text(path.read_text().replace('"never"', '"on-request"') + f"\n{limits}")

    def environment(self, url: str) -> dict[str, str]:
        """In a home below the directory for temporary files, Codex offers no apply_patch to its shell."""
        return {**super().environment(url), "TMPDIR": "/var/tmp"}

    def arguments(self, prompt: str) -> list[str]:
        """The app server, and a user who declines."""
        return [sys.executable, codex_app.__file__, prompt]


def name_of(program: Program) -> str:
    return program.name


def asking(program: Program) -> Program:
    return {"gemini": AskingGemini(), "codex": AskingCodex()}.get(program.name, program)


def keep(program: Program, scene: Scene) -> Call:
    """The model calls the tool of another MCP server."""
    given = {"text": scene.command}
    match program.name:
        case "claude":
            return Call(f"mcp__{SERVER}__keep", given)
        case "codex":
            asked = f"await tools.mcp__{SERVER}__keep({json.dumps(given)})"
            return AskingCodex().script(f"text(JSON.stringify({asked}));")
        case "gemini":
            return Call(f"mcp_{SERVER}_keep", given)
    return Call(f"{SERVER}_keep", given)


def add_server(stage: Stage) -> Path:
    """The user has another MCP server. Returns the file with what its tool was given."""
    kept = stage.user_home.parent / "kept"
    args = [side_server.__file__, str(kept)]
    if stage.program.name == "codex":
        path = stage.user_home / ".codex" / "config.toml"
        entry = f"[mcp_servers.{SERVER}]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n"
        path.write_text(f"{path.read_text()}\n{entry}")
        return kept
    places = {
        "claude": (".claude.json", "mcpServers"),
        "gemini": (".gemini/settings.json", "mcpServers"),
        "opencode": (".config/opencode/opencode.json", "mcp"),
    }
    name, table = places[stage.program.name]
    local = {"type": "local", "command": [sys.executable, *args]}
    entries = {SERVER: local if table == "mcp" else {"command": sys.executable, "args": args}}
    change_json(stage.user_home / name, **{table: entries})
    return kept


def change_json(path: Path, **members: Any) -> None:
    there = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**there, **members}))


def call_of_server(program: Program, directory: Path, *options: str) -> tuple[Played, list[dict[str, str]]]:
    """One call of the server's tool. Returns what the tool was given as well."""
    files: list[Path] = []

    def set_up(stage: Stage) -> None:
        files.append(add_server(stage))
        stage.whisper_tui("install", program.name, "--yes", "--no-mcp", *options)

    played = play(asking(program), [KEPT], directory, ask_for=keep, set_up=set_up)
    kept = files[0].read_text().splitlines() if files[0].exists() else []
    return played, [json.loads(line) for line in kept]


def test_a_tool_behind_the_gateway_is_asked_about_once(program: Program, tmp_path: Path) -> None:
    played, kept = call_of_server(program, tmp_path, "--gateway")
    assert played.record(KEPT).decided_by is not None
    assert kept == [{"text": KEPT.command}], played.answer(KEPT).everything
    assert "QUESTION" not in played.written


@pytest.mark.parametrize("program", [*CLAUDE_AND_OPENCODE, *CODEX], ids=name_of)
def test_a_tool_of_another_server_is_asked_about_once(program: Program, tmp_path: Path) -> None:
    played, kept = call_of_server(program, tmp_path)
    assert played.record(KEPT).decided_by is not None
    assert kept == [{"text": KEPT.command}], played.answer(KEPT).everything
    assert "QUESTION" not in played.written


def installed(stage: Stage) -> None:
    stage.whisper_tui("install", stage.program.name, "--yes", "--no-mcp")


def write(program: Program, scene: Scene) -> Call:
    """The model writes a file, or reads it."""
    path = {"claude": "file_path", "gemini": "file_path", "opencode": "filePath"}[program.name]
    tool = {"claude": "Write", "gemini": "write_file", "opencode": "write"}[program.name]
    if scene.command.startswith("read "):
        return Call("read", {path: scene.command.removeprefix("read ")})
    return Call(tool, {path: scene.command, "content": "new\n"})


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "there.txt").write_text("there\n")
    return directory


@pytest.mark.parametrize("program", CLAUDE_AND_OPENCODE, ids=name_of)
def test_an_edit_outside_of_the_workspace_is_asked_about_once(program: Program, tmp_path: Path, outside: Path) -> None:
    made, denied = Scene(f"{outside}/made.txt", Approved()), Scene(f"{outside}/denied.txt", DeniedFor(REASON))
    played = play(program, [made, denied], tmp_path / "stage", ask_for=write, set_up=installed)
    assert played.record(made).decided_by is not None
    assert Path(made.command).read_text() == "new\n", played.answer(made).everything
    assert REASON in played.answer(denied).everything
    assert not Path(denied.command).exists()


@pytest.mark.parametrize("program", OPENCODE, ids=name_of)
def test_an_edit_that_the_client_should_ask_about_is_asked_about_in_whisper_tui_alone(
    program: Program, tmp_path: Path
) -> None:
    workspace = tmp_path / "stage" / "workspace"
    inside = Scene(f"{workspace}/asked.txt", Approved())

    def set_up(stage: Stage) -> None:
        change_json(stage.user_home / ".config" / "opencode" / "opencode.json", permission={"edit": "ask"})
        installed(stage)

    played = play(program, [inside], tmp_path / "stage", ask_for=write, set_up=set_up)
    by = played.record(inside).decided_by
    assert by is not None and by.surface == "cockpit"
    assert Path(inside.command).read_text() == "new\n", played.answer(inside).everything


@pytest.mark.parametrize("program", OPENCODE, ids=name_of)
def test_the_client_asks_itself_about_what_nobody_has_decided(program: Program, tmp_path: Path, outside: Path) -> None:
    approved, read = Scene(f"{outside}/made.txt", Approved()), Scene(f"read {outside}/there.txt", NotDecided())
    played = play(program, [approved, read], tmp_path / "stage", ask_for=write, set_up=installed)
    assert Path(approved.command).exists()
    assert played.records[read] == []
    assert "there\n" not in (played.answers[1].everything if played.answers[1] is not None else "")
    assert "permission requested: external_directory" in played.written


@pytest.mark.parametrize("program", OPENCODE, ids=name_of)
def test_the_client_asks_itself_without_the_hook(program: Program, tmp_path: Path, outside: Path) -> None:
    written = Scene(f"{outside}/made.txt", Approved())

    def set_up(stage: Stage) -> None:
        installed(stage)
        (stage.user_home / ".config" / "opencode" / "plugin" / "whisper_tui.js").unlink()

    played = play(program, [written], tmp_path / "stage", ask_for=write, set_up=set_up)
    assert played.records[written] == []
    assert not Path(written.command).exists()
    assert "permission requested: external_directory" in played.written


@pytest.mark.parametrize("program", GEMINI, ids=name_of)
def test_an_edit_is_asked_about_once_and_one_of_a_build_is_left_to_the_client_as_well(
    program: Program, tmp_path: Path
) -> None:
    workspace = tmp_path / "stage" / "workspace"
    asked, build = Scene(f"{workspace}/server.pem", Approved()), Scene(f"{workspace}/Makefile", Approved())
    played = play(AskingGemini(), [asked, build], tmp_path / "stage", ask_for=write, set_up=installed)
    assert played.record(asked).decided_by is not None
    assert Path(asked.command).read_text() == "new\n", played.answer(asked).everything
    assert played.record(build).decided_by is not None
    assert "requires explicit user confirmation" in played.answer(build).everything
    assert not Path(build.command).exists()


@pytest.mark.parametrize("program", GEMINI, ids=name_of)
def test_the_policy_allows_nothing_without_the_hook(program: Program, tmp_path: Path) -> None:
    asked = Scene(f"{tmp_path}/stage/workspace/server.pem", Approved())

    def set_up(stage: Stage) -> None:
        installed(stage)
        change_json(stage.user_home / ".gemini" / "settings.json", hooks={})

    played = play(AskingGemini(), [asked], tmp_path / "stage", ask_for=write, set_up=set_up)
    assert played.records[asked] == []
    assert "denied by policy" in played.answer(asked).everything
    assert not Path(asked.command).exists()


def patch(program: Program, scene: Scene) -> Call:
    """The model of Codex edits a file with its tool, or with the command of that name."""
    path = scene.command.removeprefix("shell ")
    lines = ("*** Begin Patch", f"*** Update File: {path}", "@@", "-there", "+new", "*** End Patch")
    text = "\n".join(lines)
    if path == scene.command:
        return AskingCodex().script(f"text(JSON.stringify(await tools.apply_patch({json.dumps(text)})));")
    return AskingCodex().shell(f"apply_patch <<'EOF'\n{text}\nEOF\n")


@pytest.mark.parametrize("how", ["tool", "shell"])
@pytest.mark.parametrize("program", CODEX, ids=name_of)
def test_a_patch_outside_of_the_workspace_is_asked_about_once(
    program: Program, tmp_path: Path, outside: Path, how: str
) -> None:
    path = outside / "there.txt"
    scene = Scene(f"{'shell ' if how == 'shell' else ''}{path}", Approved())
    known = Scene(str(path), Approved())
    played = play(AskingCodex(), [scene], tmp_path / "stage", ask_for=patch, set_up=installed, also=[known])
    assert played.record(known).decided_by is not None
    assert path.read_text() == "new\n", played.answers
    assert "QUESTION" not in played.written


@pytest.mark.parametrize("program", CODEX, ids=name_of)
def test_codex_asks_itself_without_the_hook(program: Program, tmp_path: Path, outside: Path) -> None:
    scene = Scene(f"{outside}/there.txt", Approved())

    def set_up(stage: Stage) -> None:
        installed(stage)
        (stage.user_home / ".codex" / "hooks.json").unlink()

    played = play(AskingCodex(), [scene], tmp_path / "stage", ask_for=patch, set_up=set_up)
    assert played.records[scene] == []
    assert (outside / "there.txt").read_text() == "there\n"
    assert "QUESTION item/fileChange/requestApproval" in played.written
