"""`install codex --executor`: Codex leaves its commands and files to whisper_tui, and is asked about them once."""

import tomllib

import pytest

from tests.clients.install import measured_codex
from tests.install.conftest import Machine
from whisper_tui.agents.findings import CheckState
from whisper_tui.model.errors import InvalidRequest

FILE = ".codex/environments.toml"
OTHERS = """\
# my environments
default = "devbox"  # for work

[[environments]]
id = "devbox"
url = "ws://127.0.0.1:1"
"""


def checks(machine: Machine, subject: str) -> list[tuple[CheckState, str]]:
    return [(check.state, check.sentence) for check in machine.doctor("codex").checks if check.subject == subject]


def test_codex_leaves_everything_to_us_and_its_hook_sees_only_what_is_left(machine: Machine) -> None:
    machine.install("codex", executor=True)
    said = tomllib.loads(machine.text(FILE))
    program, *words = machine.launch.program
    args = [*words, "executor", *machine.launch.home]
    entry = {"id": "whisper", "program": program, "args": args, "initialize_timeout_sec": 30}
    assert said == {"default": "whisper", "include_local": False, "environments": [entry]}
    hooks = machine.said(".codex/hooks.json")["hooks"]
    # The model is told by a hook, because no server tells it.
    assert "SessionStart" in hooks and "mcp_servers" not in machine.text(".codex/config.toml")
    del hooks["SessionStart"]
    assert {group["matcher"] for groups in hooks.values() for group in groups} == {"^(.*spawn_agent|mcp__.*)$"}
    # Nothing of ours runs in the sandbox of Codex, so nothing has to get out of it.
    assert ".codex/rules/whisper_tui.rules" not in machine.files()
    assert machine.install("codex", executor=True) == []


USERS = '[mcp_servers.notes]\ncommand = "notes"\n\n[mcp_servers.far]\nurl = "https://far.example/mcp"\n'


def test_codex_is_offered_no_server_without_which_it_would_not_begin(machine: Machine) -> None:
    machine.install("codex")
    assert "mcp_servers.whisper" in machine.text(".codex/config.toml")
    machine.install("codex", executor=True)
    assert "mcp_servers" not in machine.text(".codex/config.toml")
    report = machine.doctor("codex")
    assert report.proved and not any(check.subject == "tools" for check in report.checks)
    assert [(check.state, check.sentence) for check in report.checks if check.subject == "start"] == [
        (CheckState.GOOD, "Codex began a session in the environment")
    ]


def test_servers_that_codex_no_longer_offers_are_named(machine: Machine) -> None:
    machine.write(".codex/config.toml", USERS)
    (told,) = [said for said in machine.plan_install("codex", executor=True).notes if "gone" in said]
    assert "until you install without it: notes" in told and "far" not in told
    machine.install("codex", executor=True)
    assert [said for _, said in checks(machine, "servers")] == [
        "Codex starts no MCP servers in an environment, so these are not offered: notes"
    ]


def test_a_server_that_codex_requires_is_refused_and_the_doctor_finds_one_added_later(machine: Machine) -> None:
    machine.write(".codex/config.toml", USERS.replace('"notes"\n', '"notes"\nrequired = true\n'))
    with pytest.raises(InvalidRequest, match="requires notes: it would not start"):
        machine.plan_install("codex", executor=True)
    machine.write(".codex/config.toml", USERS)
    machine.install("codex", executor=True)
    machine.write(
        ".codex/config.toml", machine.text(".codex/config.toml").replace('"notes"\n', '"notes"\nrequired = true\n')
    )
    ((state, said),) = checks(machine, "start")
    assert state is CheckState.BAD and "cannot begin a session" in said and "requires a local environment" in said


def test_the_hook_takes_over_again_without_the_option(machine: Machine) -> None:
    machine.install("codex", executor=True)
    machine.install("codex")
    assert FILE not in machine.files()
    assert "Bash" in machine.said(".codex/hooks.json")["hooks"]["PreToolUse"][0]["matcher"]
    assert ".codex/rules/whisper_tui.rules" in machine.files()


@pytest.mark.parametrize("text", [OTHERS, OTHERS.replace("\n", "\r\n"), "include_local = true\n", None])
def test_uninstalling_restores_the_file_byte_for_byte(machine: Machine, text: str | None) -> None:
    if text is not None:
        machine.write(FILE, text)
    before = machine.files()
    machine.install("codex", executor=True)
    assert tomllib.loads(machine.text(FILE))["default"] == "whisper"
    machine.uninstall("codex")
    assert machine.files() == before


def test_a_file_that_was_edited_since_loses_only_our_entries(machine: Machine) -> None:
    machine.write(FILE, OTHERS)
    machine.install("codex", executor=True)
    machine.write(FILE, machine.text(FILE).replace("# my environments", "# our environments"))
    machine.uninstall("codex")
    assert tomllib.loads(machine.text(FILE)) == tomllib.loads(OTHERS)
    assert "# our environments" in machine.text(FILE)


def test_a_codex_without_environments_and_a_project_are_refused(machine: Machine) -> None:
    with pytest.raises(InvalidRequest, match="for all projects alone"):
        machine.install("codex", project=True, executor=True)
    with pytest.raises(InvalidRequest, match="Codex itself runs nothing"):
        machine.install("codex", agent_runs=True, executor=True)
    machine.client("codex", "codex-cli 0.150.2")
    with pytest.raises(InvalidRequest, match=r"Codex 0\.150\.2 has no environments"):
        machine.install("codex", executor=True)
    assert machine.files() == {}


def test_the_environment_is_offered_where_codex_has_it(machine: Machine) -> None:
    assert any("--executor" in sentence for sentence in machine.plan_install("codex").notes)
    assert not any("install codex --executor" in note for note in machine.plan_install("codex", executor=True).notes)
    machine.client("codex", "codex-cli 0.150.2")
    assert not any("--executor" in sentence for sentence in machine.plan_install("codex").notes)


def test_the_doctor_proves_that_the_environment_stops_a_canary(machine: Machine) -> None:
    machine.install("codex", executor=True)
    report = machine.doctor("codex")
    assert report.proved, report.checks
    assert "sandbox" not in {check.subject for check in report.checks}
    assert (CheckState.GOOD, f"The environment in {machine.home}/{FILE} stopped a test command") in checks(
        machine, "gate"
    )
    machine.mood("allows")
    assert any(state is CheckState.BAD and "environment" in said for state, said in checks(machine, "gate"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('default = "whisper"', 'default = "local"', "another environment the default"),
        ("include_local = false", "include_local = true", "lets the model run commands in Codex itself"),
        ("[[environments]]", '[[environments]]\nid = "x"\nprogram = "y"\n\n[[environments]]', "has other environments"),
    ],
)
def test_a_way_around_the_environment_is_reported(machine: Machine, old: str, new: str, said: str) -> None:
    machine.install("codex", executor=True)
    machine.write(FILE, machine.text(FILE).replace(old, new))
    assert any(state is CheckState.BAD and said in sentence for state, sentence in checks(machine, "environment"))


def test_a_newer_codex_is_compared_with_the_measured_one(machine: Machine) -> None:
    machine.install("codex", executor=True)
    machine.client("codex", "codex-cli 0.999.0")
    notes = [said for state, said in checks(machine, "environment") if state is CheckState.NOTE]
    assert any(f"measured with Codex {measured_codex()}, not 0.999.0" in said for said in notes)


def test_a_hook_that_asks_about_the_same_commands_is_reported(machine: Machine) -> None:
    machine.install("codex", executor=True)
    text = machine.text(".codex/hooks.json").replace("^(.*spawn_agent", "^(Bash|.*spawn_agent")
    machine.write(".codex/hooks.json", text)
    assert any("both ask about each command" in said for _, said in checks(machine, "hook"))
