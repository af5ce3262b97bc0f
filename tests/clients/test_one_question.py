"""Each real client asks nothing itself about what was approved in whisper_tui, and asks where whisper_tui does not.

The clients run without a terminal, in the mode in which they ask people: whatever they would ask is refused at once. So
a call that was made, and was decided once in whisper_tui, has had one question.
"""

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tests.clients import codex_app, in_terminal, side_server
from tests.clients.conversation import Played, play
from tests.clients.install import directories
from tests.clients.model.script import Call
from tests.clients.programs import PROGRAMS, Program
from tests.clients.programs.codex import CodexInCodeMode
from tests.clients.programs.gemini import Gemini
from tests.clients.scenes import Approved, DeniedFor, NotDecided, Scene
from tests.clients.stage import Stage

SERVER = "notes"
KEPT = Scene("keep this", Approved())
REASON = "not outside"
LAST = "That was all."
"""The last words of the model."""
CLAUDE_AND_OPENCODE = [program for program in PROGRAMS if program.name in {"claude", "opencode"}]
OPENCODE = CLAUDE_AND_OPENCODE[1:]
CODEX = [program for program in PROGRAMS if program.name == "codex"]
COPILOT = [program for program in PROGRAMS if program.name == "copilot"]
GEMINI = [program for program in PROGRAMS if program.name == "gemini"]


class AskingGemini(Gemini):
    """Gemini CLI in the mode in which it asks."""

    def arguments(self, prompt: str) -> list[str]:
        """Without *yolo*."""
        return [word if word != "yolo" else "default" for word in super().arguments(prompt)]


class GeminiInTerminal(Gemini):
    """Gemini CLI in a terminal."""

    def __init__(self, asked: Path) -> None:
        """`asked`: receives a line for each of its own questions."""
        self._asked = asked

    def configure(self, home: Path, url: str) -> None:
        """A hook of the user's own is told about its questions."""
        super().configure(home, url)
        tell = {"type": "command", "command": f"tr -d '\\n' >> {self._asked}; echo >> {self._asked}"}
        change_json(home / ".gemini" / "settings.json", hooks={"Notification": [{"matcher": ".*", "hooks": [tell]}]})

    def arguments(self, prompt: str) -> list[str]:
        """The command line of its interactive form."""
        words = ["gemini", "-m", "gemini-2.5-pro", "-i", prompt]
        return [sys.executable, in_terminal.__file__, str(self._asked), LAST, *words]


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
        case "claude" | "qwen" | "kimi":
            return Call(f"mcp__{SERVER}__keep", given)
        case "codex":
            asked = f"await tools.mcp__{SERVER}__keep({json.dumps(given)})"
            return AskingCodex().script(f"text(JSON.stringify({asked}));")
        case "gemini":
            return Call(f"mcp_{SERVER}_keep", given)
        case "copilot":
            return Call(f"{SERVER}-keep", given)
    return Call(f"{SERVER}_keep", given)


def add_server(stage: Stage) -> Path:
    """The user has another MCP server. Returns the file with what its tool was given."""
    kept = stage.user_home.parent / "kept"
    args = [side_server.__file__, str(kept)]
    if stage.program.name == "codex":
        path = stage.user_home / ".codex" / "config.toml"
        entry = f"[mcp_servers.{SERVER}]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n"
        # It waits ten seconds otherwise, in which a busy machine does not start the gateway before it.
        entry += "startup_timeout_sec = 120\n"
        path.write_text(f"{path.read_text()}\n{entry}")
        return kept
    places = {
        "claude": (".claude.json", "mcpServers"),
        "gemini": (".gemini/settings.json", "mcpServers"),
        "opencode": (".config/opencode/opencode.json", "mcp"),
        "kilo": (".config/kilo/kilo.json", "mcp"),
        "copilot": (".copilot/mcp-config.json", "mcpServers"),
        "qwen": (".qwen/settings.json", "mcpServers"),
        "kimi": (".kimi-code/mcp.json", "mcpServers"),
    }
    name, table = places[stage.program.name]
    local = {"type": "local", "command": [sys.executable, *args]}
    entries = {SERVER: local if table == "mcp" else {"command": sys.executable, "args": args}}
    change_json(stage.user_home / name, **{table: entries})
    return kept


def change_json(path: Path, **members: Any) -> None:
    path.parent.mkdir(exist_ok=True)
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


@pytest.mark.parametrize("program", [*CLAUDE_AND_OPENCODE, *CODEX, *COPILOT], ids=name_of)
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


@pytest.mark.parametrize("program", CLAUDE_AND_OPENCODE[:1], ids=name_of)
@pytest.mark.parametrize("answers", [True, False], ids=["with its question answered", "with its question open"])
def test_a_file_that_decides_what_runs_is_asked_about_once(program: Program, tmp_path: Path, answers: bool) -> None:
    scenes = [Scene(f"{tmp_path}/stage/{name}", Approved()) for name in ("workspace/.mcp.json", "user/.bashrc")]

    def set_up(stage: Stage) -> None:
        installed(stage)
        if not answers:
            path = stage.user_home / ".claude" / "settings.json"
            path.write_text(path.read_text().replace("PermissionRequest", "Stop"))

    played = play(program, scenes, tmp_path / "stage", ask_for=write, set_up=set_up)
    for scene in scenes:
        assert played.record(scene).decided_by is not None
        assert Path(scene.command).exists() is answers, played.answer(scene).everything
        assert answers or "Claude requested permissions" in played.answer(scene).everything


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


@pytest.mark.parametrize(("options", "again"), [((), ["mcp", "edit"]), (("--gateway",), ["edit"])])
@pytest.mark.parametrize("program", GEMINI, ids=name_of)
def test_gemini_cli_asks_again_in_a_terminal_only_about_builds_and_servers_without_the_gateway(
    program: Program, tmp_path: Path, options: tuple[str, ...], again: list[str]
) -> None:
    workspace = tmp_path / "stage" / "workspace"
    key, build = Scene(f"{workspace}/server.pem", Approved()), Scene(f"{workspace}/Makefile", Approved())
    command = Scene("touch ran", Approved())

    def ask_for(_: Program, scene: Scene) -> Call:
        if scene is KEPT:
            return keep(program, scene)
        return program.shell(scene.command) if scene is command else write(program, scene)

    def set_up(stage: Stage) -> None:
        add_server(stage)
        stage.whisper_tui("install", "gemini", "--yes", "--no-mcp", *options)

    asked = tmp_path / "asked"
    scenes = [key, command, KEPT, build]
    played = play(GeminiInTerminal(asked), scenes, tmp_path / "stage", ask_for=ask_for, set_up=set_up)
    assert all(played.record(scene).decided_by for scene in scenes)
    assert (workspace / "ran").exists() and Path(build.command).exists() and Path(key.command).exists()
    assert [json.loads(line)["details"]["type"] for line in asked.read_text().splitlines()] == again


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


PLUGIN = """
const { WhisperTui } = await import(process.argv[1])
const { calls, asked, changed } = JSON.parse(process.argv[2])
const answered = []
const client = { postSessionIdPermissionsPermissionId: async ({ path }) => { answered.push(path.permissionID) } }
const plugin = await WhisperTui({ client, directory: "/garden" })
for (const [callID, tool, args] of calls) {
  const output = { args }
  await plugin["tool.execute.before"]({ tool, sessionID: "s", callID }, output)
  if (changed === "in place") args.content = args.command = "by another plugin"
  if (changed === "anew") output.args = { ...args, content: "by another plugin" }
}
for (const properties of asked) await plugin.event({ event: { type: "permission.asked", properties } })
process.stdout.write(JSON.stringify(answered))
"""
ANSWER = (
    'let text = ""; process.stdin.on("data", (piece) => text += piece).on("end", () => process.stdout.write('
    'JSON.stringify({ decision: "allow", arguments: JSON.parse(text).tool_input, decided: true })))'
)
MOVE = "*** Begin Patch\n*** Update File: ../a\n*** Move to: /other/b\n@@\n-x\n+y\n*** End Patch"
CALLS = [
    ["write", "write", {"filePath": "/out/a", "content": ""}],
    ["patch", "apply_patch", {"patchText": MOVE}],
    ["bash", "bash", {"command": "whisper-tui exec 1-a", "workdir": "/out"}],
    ["fetch", "webfetch", {"url": "http://example.org"}],
    ["again", "write", {"filePath": "/out/a", "content": ""}],
    ["again", "read", {"filePath": "/out/a"}],
]


@pytest.mark.parametrize("program", OPENCODE, ids=name_of)
@pytest.mark.parametrize(
    ("call", "permission", "metadata", "answered"),
    [
        ("write", "external_directory", {"filepath": "/out/a"}, True),
        ("write", "external_directory", {"filepath": "/out/b"}, False),
        ("write", "edit", {"filepath": "/out/a"}, True),
        ("write", "read", {}, False),
        ("write", "doom_loop", {}, False),
        ("patch", "external_directory", {"filepath": "/a"}, True),
        ("patch", "external_directory", {"filepath": "/other/b"}, True),
        ("patch", "external_directory", {"filepath": "/garden/a"}, False),
        ("bash", "external_directory", {"command": "whisper-tui exec 1-a"}, True),
        ("bash", "external_directory", {"command": "cat /etc/passwd"}, False),
        ("bash", "external_directory", {"filepath": "/out"}, False),
        ("fetch", "webfetch", {}, True),
        ("fetch", "external_directory", {}, False),
        ("again", "external_directory", {"filepath": "/out/a"}, False),
        ("unknown", "edit", {}, False),
    ],
)
def test_the_plugin_answers_only_what_belongs_to_a_decided_call(
    program: Program, tmp_path: Path, call: str, permission: str, metadata: dict[str, str], answered: bool
) -> None:
    assert answered_by_plugin(tmp_path, call, permission, metadata) is answered


@pytest.mark.parametrize("changed", ["in place", "anew"])
@pytest.mark.parametrize(
    ("call", "permission", "metadata"),
    [
        ("write", "edit", {"filepath": "/out/a"}),
        ("bash", "bash", {"command": "whisper-tui exec 1-a"}),
        ("bash", "external_directory", {"command": "whisper-tui exec 1-a"}),
    ],
)
@pytest.mark.parametrize("program", OPENCODE, ids=name_of)
def test_the_plugin_answers_nothing_about_a_call_that_another_plugin_has_changed(
    program: Program, tmp_path: Path, call: str, permission: str, metadata: dict[str, str], changed: str
) -> None:
    assert answered_by_plugin(tmp_path, call, permission, metadata)
    assert not answered_by_plugin(tmp_path, call, permission, metadata, changed)


def answered_by_plugin(tmp_path: Path, call: str, permission: str, metadata: dict[str, str], changed: str = "") -> bool:
    """Load the plugin without OpenCode. Returns whether it answers a question about a call that was decided."""
    node = next(str(place / "node") for place in directories() if (place / "node").exists())
    text = resources.files("whisper_tui.agents").joinpath("opencode_plugin.js").read_text()
    plugin = tmp_path / "plugin.mjs"
    plugin.write_text(text.replace("const HOOK = []", f"const HOOK = {json.dumps([node, '--eval', ANSWER])}"))
    asked = {"id": "p", "sessionID": "s", "permission": permission, "metadata": metadata, "tool": {"callID": call}}
    others = [{**asked, "sessionID": "another"}, {**asked, "tool": None}]
    calls = [one for one in CALLS if one[0] == call]
    given = json.dumps({"calls": calls, "asked": [*others, asked], "changed": changed})
    words = [node, "--input-type=module", "--eval", PLUGIN, plugin.as_uri(), given]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    said = json.loads(done.stdout)
    assert said in ([], ["p"])
    return said == ["p"]
