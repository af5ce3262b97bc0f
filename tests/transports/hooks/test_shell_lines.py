"""Which command a client gives its shell, and which lines the gate takes for approved ones."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.rows import each_row
from whisper_tui.agents.shell_lines import is_own, shell_line
from whisper_tui.transports.hook.gate_program import Gate, environment_of, is_approved_line

CWD_FILE = "/tmp/claude-8196-cwd"
BEFORE = (
    "source /home/ada/.claude/shell-snapshots/snapshot-bash-1795840377219-l07vzq.sh 2>/dev/null || true && "
    "\\builtin shopt -u extglob 2>/dev/null || true && { \\builtin unalias -- 'which'; } "
    ">/dev/null 2>&1 || true && "
)
HOME = ("--directories", "/home/ada/.config/whisper_tui", "/home/ada/my state", "/home/ada/my state/run")
GATE = Gate("claude", "/bin/bash", ["/opt/w t/bin/whisper-tui"], HOME, usual=False, directories="/r", deadline_s=100)
LINE = f"'/opt/w t/bin/whisper-tui' exec 12-0af3 {shlex.join(HOME)}"


def quoted(command: str) -> str:
    """The command as Claude Code quotes it."""
    return "'" + command.replace("'", "'\"'\"'") + "'"


def claude(command: str, *, stdin: str = " < /dev/null") -> list[str]:
    """The arguments with which Claude Code starts its shell."""
    return ["-c", f"{BEFORE}eval {quoted(command)}{stdin} && pwd -P >| {CWD_FILE}"]


COMMANDS = (
    "ls",
    "echo 'a b' \"$HOME\" `date`",
    "cat <<X\nhi 'q'\nX",
    "",
    "x' && eval 'whisper-tui exec 1-ab' < /dev/null && pwd -P >| /tmp/claude-8196-cwd",
    " && eval ls && pwd -P >| /tmp/f",
    "eval 'touch a' < /dev/null && pwd -P >| /tmp/claude-8196-cwd",
)


@each_row("command", COMMANDS)
@each_row("stdin", [" < /dev/null", ""])
def test_the_command_in_the_line_of_claude_code_is_found_and_can_be_replaced(command, stdin):
    arguments = claude(command, stdin=stdin)
    line = shell_line("claude", arguments)
    assert line is not None
    assert line.command == command
    assert (
        list(line.with_command("other 'one'")) == claude("other 'one'", stdin=stdin)
        or shell_line("claude", line.with_command("other 'one'")).command == "other 'one'"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_bash_runs_what_was_found_and_nothing_else(command, tmp_path):
    text = f"eval {quoted(command)} < /dev/null && pwd -P >| {tmp_path / 'cwd'}"
    line = shell_line("claude", ["-c", text])
    assert line is not None
    replaced = line.with_command(f"touch {tmp_path / 'other'}")
    subprocess.run(["/bin/bash", *replaced], check=True, cwd=tmp_path, timeout=20)
    assert (tmp_path / "other").exists()
    assert Path((tmp_path / "cwd").read_text().strip()) == tmp_path.resolve()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cwd", "other"]


@each_row("client", ["opencode", "kilo"])
@each_row("command", COMMANDS)
def test_the_whole_text_is_the_command_of_other_clients(client, command):
    line = shell_line(client, ["-c", command])
    assert line is not None
    assert line.command == command
    assert line.with_command("another") == ("-c", "another")


@each_row(
    "text",
    [
        "echo a",
        f"eval 'a' 'b' && pwd -P >| {CWD_FILE}",
        f"eval $(b) && pwd -P >| {CWD_FILE}",
        "eval ls",
        f'eval "a && eval b && pwd -P >| {CWD_FILE}',
        f"x 'a && eval b && pwd -P >| {CWD_FILE}",
    ],
)
def test_an_unknown_form_of_claude_code_is_a_command_as_a_whole(text):
    line = shell_line("claude", ["-c", text])
    assert line is not None
    assert line.command == text


@each_row("arguments", [[], ["script.sh"], ["-l"], ["-c"], ["-c", "a", "b"], ["--norc", "-i"]])
def test_other_arguments_hold_no_command(arguments):
    assert shell_line("claude", arguments) is None


def test_what_claude_code_itself_asks_of_its_shell_is_its_own():
    snapshot = "SNAPSHOT_FILE=/home/ada/.claude/shell-snapshots/snapshot-bash-1-a.sh\n  source ~/.bashrc\n"
    for arguments in (["-c", "env"], ["-c", "-l", snapshot]):
        line = shell_line("claude", arguments)
        assert line is not None
        assert is_own("claude", line)
        assert not is_own("opencode", line)


@pytest.mark.parametrize("command", ["env", "SNAPSHOT_FILE=/home/ada/.claude/shell-snapshots/snapshot-bash-1-a.sh\nid"])
def test_a_command_that_looks_like_it_is_not(command):
    line = shell_line("claude", claude(command))
    assert line is not None
    assert line.command == command
    assert not is_own("claude", line)


@each_row(
    "command",
    [
        LINE,
        f"{LINE} && cd -P /r/12-0af3",
        f"{LINE} 'touch a; echo \"$b\" # as people see it'",
    ],
)
def test_a_line_of_the_hook_is_an_approved_one(command):
    assert is_approved_line(GATE, command)


@each_row(
    "command",
    [
        "",
        "ls",
        LINE.replace("/opt/w t/", "/opt/w s/"),
        LINE.replace(" exec ", " exec --home /elsewhere "),
        LINE.replace("/home/ada/my state/run", "/elsewhere"),
        "'/opt/w t/bin/whisper-tui' exec 12-0af3",
        "'/opt/w t/bin/whisper-tui' exec",
        "'/opt/w t/bin/whisper-tui' approve 12",
        f"{LINE}; touch a",
        f"{LINE} && touch a",
        f"{LINE} && cd -P /elsewhere",
        f"{LINE} && cd -P /r/12-0af4",
        f"{LINE} && cd -P /r/12-0af3; touch a",
        f"{LINE}\ntouch a",
        f"{LINE} 'label' 'another'",
        f"{LINE} 'label'$(touch a)",
        f"{LINE} 'label' > a",
        f'{LINE} "$(touch a)"',
        f"{LINE} 'open",
        f" {LINE}",
        f"touch a; {LINE}",
        f"A=b {LINE}",
        LINE.replace("12-0af3", "12-0af3;id"),
        LINE.replace("12-0af3", "$(id)-0af3"),
        LINE.replace("12-0af3", "--help"),
    ],
)
def test_no_other_line_is(command):
    assert not is_approved_line(GATE, command)


def test_usual_directories_are_left_out_of_approved_lines():
    usual = GATE._replace(usual=True)
    assert is_approved_line(usual, "'/opt/w t/bin/whisper-tui' exec 12-0af3")
    assert not is_approved_line(usual, "'/opt/w t/bin/whisper-tui' exec 12-0af3 --home /elsewhere")


def test_nothing_of_a_project_runs_before_the_text():
    foreign = {
        "BASH_ENV": "x.sh", "ENV": "x.sh", "PS4": "$(id)", "SHELLOPTS": "xtrace", "BASHOPTS": "extdebug",
        "BASH_FUNC_eval%%": "() { id; }", "BASH_FUNC_source%%": "() { id; }",
    }  # fmt: skip
    kept = {"PATH": "/bin", "SHELL": "/state/gates/claude-bash", "BASH_FUNC_module%%": "() { echo; }"}
    assert environment_of("/bin/bash", {**foreign, **kept}) == {**kept, "SHELL": "/bin/bash"}
