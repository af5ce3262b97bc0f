"""A project that switches each real client's hooks off: the tools that the client still starts there tell of it."""

import json

import pytest

from tests.clients.conversation import Played, play
from tests.clients.model.script import Call
from tests.clients.programs import Program
from tests.clients.programs.claude import Claude
from tests.clients.programs.kilo import Kilo
from tests.clients.programs.opencode import OpenCode
from tests.clients.scenes import Approved, DeniedFor, Scene
from tests.clients.stage import Stage
from tests.clients.test_one_question import change_json

THROUGH = Scene("echo held | tee held-ran", Approved())

OFF = {
    "claude": (".claude/settings.local.json", '{"disableAllHooks": true}', "disables all hooks"),
    "codex": (".codex/config.toml", "[features]\nhooks = false\n", "switches all hooks off"),
    "gemini": (".gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "switches all hooks off"),
    "opencode": ("opencode.json", "{}", "switches all plugins off"),
    "copilot": (".github/copilot/settings.json", '{"disableAllHooks": true}', "switches hooks off"),
}


def ask_for(program: Program, scene: Scene) -> Call:
    arguments = {"command": scene.command, "description": "Do as the script says"}
    return program.mcp("run_shell_command", arguments)


def set_up(stage: Stage) -> None:
    name, text, _ = OFF[stage.program.name]
    path = stage.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    stage.whisper_tui("install", stage.program.name, "--yes")
    # The model of the test runs its command with a tool of ours.
    stage.change_settings(r',\s*"--own-shell"', "")
    stage.options = ("--pure",) if stage.program.name == "opencode" else ()


@pytest.fixture(scope="session")
def played(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One call of the tools, in a project without hooks."""
    directory = tmp_path_factory.mktemp(f"{program.name}-hooks-off")
    return play(program, (THROUGH,), directory, ask_for=ask_for, set_up=set_up)


def test_the_supervisor_says_whose_hooks_are_off_where(program, played):
    assert (played.workspace / "held-ran").exists(), played.written
    log = (played.workspace.parent / "whisper" / "state" / "supervisor.log").read_text()
    assert f"in {played.workspace} bypass the hook: " in log
    assert OFF[program.name][2] in log


HELD = Scene("touch held-ran", DeniedFor("Not this."))
RAN = Scene("echo approved | tee approved-ran", Approved())
WITHOUT_HOOKS = [
    pytest.param(Claude(), ("--bare", "--allowedTools", "Bash"), id="claude --bare"),
    pytest.param(Claude(), ("--safe-mode", "--allowedTools", "Bash"), id="claude --safe-mode"),
    pytest.param(OpenCode(), ("--pure",), id="opencode --pure"),
    pytest.param(Kilo(), ("--pure",), id="kilo --pure"),
]


@pytest.mark.parametrize(("program", "options"), WITHOUT_HOOKS)
def test_commands_of_a_client_that_was_started_without_hooks_wait_at_the_gate(program, options, tmp_path):
    def without_hooks(stage: Stage) -> None:
        if program.name == "kilo":
            # By default it asks its own user about commands.
            change_json(stage.user_home / ".config" / "kilo" / "kilo.json", permission={"bash": "allow"})
        stage.whisper_tui("install", program.name, "--yes", "--no-mcp")
        stage.options = options

    played = play(
        program,
        (HELD, RAN),
        tmp_path,
        ask_for=lambda program, scene: program.shell(scene.command),
        set_up=without_hooks,
    )
    assert [record.call.past_hook for record in played.calls] == [True, True], played.written
    assert not (played.workspace / "held-ran").exists()
    assert (played.workspace / "approved-ran").read_text() == "approved\n"
    assert "Not this." in played.answer(HELD).everything


@pytest.mark.parametrize(
    ("program", "place", "managed"),
    [
        pytest.param(program, place, managed, id=f"{program.name} {place}{' managed' if managed else ''}")
        for program in (OpenCode(), Kilo())
        for place, managed in (("", False), (f".{program.name}/", False), ("", True))
    ],
)
def test_where_the_plugin_is_off_a_project_can_name_another_shell_and_the_machine_has_the_last_word(
    program, place, managed, tmp_path
):
    doctor: list[str] = []

    def without_plugin(stage: Stage) -> None:
        settings = stage.user_home / ".config" / program.name / f"{program.name}.json"
        change_json(settings, permission={"bash": "allow"})
        stage.whisper_tui("install", program.name, "--yes", "--no-mcp")
        rival = stage.workspace / place / f"{program.name}.json"
        rival.parent.mkdir(exist_ok=True)
        rival.write_text('{"shell": "/bin/bash"}')
        stage.options = ("--pure",)
        if managed:
            # Instead of /etc/opencode, or /etc/kilo.
            directory = tmp_path / "managed"
            change_json(directory / f"{program.name}.json", shell=json.loads(settings.read_text())["shell"])
            stage.variables = {f"{program.name.upper()}_TEST_MANAGED_CONFIG_DIR": str(directory)}
        doctor.append(stage.whisper_tui("doctor", program.name))

    played = play(
        program,
        (HELD,),
        tmp_path,
        ask_for=lambda program, scene: program.shell(scene.command),
        set_up=without_plugin,
    )
    assert [record.call.past_hook for record in played.calls] == [True] * managed, played.written
    assert (played.workspace / "held-ran").exists() is not managed
    assert "names another shell. The gate wins, except over" in doctor[0]


@pytest.mark.parametrize(
    ("program", "options"), [each for each in WITHOUT_HOOKS if each.id and each.id.startswith("claude")]
)
def test_a_project_can_name_another_shell_to_a_claude_code_without_hooks(program, options, tmp_path):
    def without_hooks(stage: Stage) -> None:
        stage.whisper_tui("install", program.name, "--yes", "--no-mcp")
        change_json(stage.workspace / ".claude" / "settings.json", env={"CLAUDE_CODE_SHELL": "/bin/bash"})
        stage.options = options

    played = play(
        program,
        (HELD,),
        tmp_path,
        ask_for=lambda program, scene: program.shell(scene.command),
        set_up=without_hooks,
    )
    assert played.calls == [] and (played.workspace / "held-ran").exists(), played.written
