"""Shells complete the command line, and `man` shows it: both are made from the parser."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, Instance
from tests.cli.terminal import Terminal
from tests.outside import outside_only
from tests.rows import each_row
from whisper_tui.cli.commands.shell_completion import SHELLS
from whisper_tui.cli.subcommand import GROUPS

BIN = Path(sys.executable).parent


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PS1": "$ ", "LC_ALL": "C.UTF-8"}


def completed(*words: str, home: Path | None = None) -> dict[str, str]:
    """The words that are offered at the end of a command line, with their descriptions."""
    place = ["--home", str(home)] if home is not None else []
    asked = "".join(f"{word}\0" for word in words)
    answer = subprocess.run(
        [*PROGRAM, "complete", *place], input=asked, capture_output=True, check=True, text=True, timeout=90
    )
    assert answer.stderr == ""
    return dict(line.split("\t") for line in answer.stdout.splitlines())


@each_row(
    ("words", "offered"),
    [
        (("",), {name for names in GROUPS.values() for name in names}),
        (("appr",), {"approve", "approvals"}),
        (("install", ""), {"claude", "codex", "gemini", "opencode", "copilot", "qwen", "kimi", "kilo"}),
        (("logs", "1", "--stream", ""), {"out", "err", "both"}),
        (("logs", "1", "--st"), {"--stream"}),
        (("mcp", "--thr"), {"--through"}),
        (("install", "claude", "--ga"), {"--gateway"}),
        (("--home", "/tmp", "rules", "un"), {"untrust"}),
        (("rules", "add", ""), {"allow", "ask", "deny"}),
        (("export", "--output", ""), set()),
        (("explain", "--", ""), set()),
        (("nonsense", ""), {name for names in GROUPS.values() for name in names}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_subcommands_options_and_choices_are_offered(words: tuple[str, ...], offered: set[str]) -> None:
    assert set(completed(*words)) == offered


@pytest.mark.slow
def test_the_servers_of_the_configuration_file_are_offered(tmp_path: Path) -> None:
    assert completed("mcp", "--through", "", home=tmp_path) == {}
    (tmp_path / "config").mkdir(mode=0o700)
    path = tmp_path / "config" / "config.toml"
    path.write_text('[mcp.servers.files]\ncommand = ["npx", "server-files"]\n[mcp.servers.web]\ncommand = ["fetch"]\n')
    path.chmod(0o600)
    assert completed("mcp", "--through", "f", home=tmp_path) == {"files": "npx server-files"}


@pytest.mark.slow
@outside_only
def test_calls_are_offered_where_they_can_be_decided_and_none_starts_a_supervisor(instance: Instance) -> None:
    assert completed("show", "", home=instance.root) == {}
    assert instance.run("status").returncode == 3
    instance.call("run_shell_command", command="echo 1")
    instance.call("run_shell_command", command="echo 2")
    assert instance.run("deny", "1").returncode == 0
    assert set(completed("approve", "", home=instance.root)) == {"2"}
    assert set(completed("approve", "2", "", home=instance.root)) == {"2"}
    assert completed("show", "", home=instance.root) == {"1": "denied: echo 1", "2": "waiting: echo 2"}


INTERACTIVE = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(whisper-tui completions bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit; compinit -D -u; eval "$(whisper-tui completions zsh)"'),
    "zsh fpath": (
        ["zsh", "-f", "-i"],
        "whisper-tui completions zsh > _whisper-tui; fpath+=$PWD; autoload -U compinit; compinit -D -u",
    ),
    "fish": (["fish", "--no-config", "--private", "-i"], "whisper-tui completions fish | source"),
}
"""How a shell is started without anybody's configuration, and how it loads the script."""


@pytest.mark.parametrize("shell", sorted(INTERACTIVE))
def test_a_word_is_completed_on_tab(shell: str, tmp_path: Path) -> None:
    words, loads = INTERACTIVE[shell]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    # Fish draws its prompt by a function, and its suggestions beside what is typed.
    before = 'function fish_prompt; printf "\\$ "; end; set fish_autosuggestion_enabled 0; ' if shell == "fish" else ""
    with Terminal(words, environment() | {"HOME": str(tmp_path)}, tmp_path) as terminal:
        terminal.types(f'{before}{loads}; echo rea"dy"\n'.encode())
        terminal.shows(b"ready")
        # Only a completed line prints this: the shells draw what they complete with colours in between.
        terminal.types(b"whisper-tui comple\tfi\t| head -1\n")
        terminal.shows(b"function __whisper_tui")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed here")
def test_fish_offers_files_only_where_a_file_may_stand(tmp_path: Path) -> None:
    (tmp_path / "both.txt").touch()

    def offered(line: str) -> list[str]:
        program = f"whisper-tui completions fish | source; complete -C '{line}'"
        words = ["fish", "--no-config", "-c", program]
        made = environment() | {"HOME": str(tmp_path)}
        done = subprocess.run(words, cwd=tmp_path, env=made, capture_output=True, check=True, text=True, timeout=90)
        return [one.split("\t")[0] for one in done.stdout.splitlines()]

    assert offered("whisper-tui logs 1 --stream b") == ["both"]
    assert offered("whisper-tui export --output b") == ["both.txt"]


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
def test_the_script_is_one_that_the_shell_reads(shell: str, tmp_path: Path) -> None:
    script = subprocess.run([*PROGRAM, "completions", shell], capture_output=True, check=True, text=True).stdout
    (tmp_path / "script").write_text(script)
    read = subprocess.run([shell, "-n", str(tmp_path / "script")], capture_output=True, check=False, text=True)
    assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("groff") is None, reason="nothing can show a manual page here")
@each_row("name", ["", "approve", "rules", "mcp"])
def test_a_manual_page_is_shown_without_a_warning(name: str) -> None:
    words = [*PROGRAM, "man", *([name] if name else [])]
    page = subprocess.run(words, capture_output=True, check=True, timeout=90).stdout
    shown = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww", "-P-c"], input=page, capture_output=True, check=True, timeout=90
    )
    assert shown.stderr == b""
    text = " ".join(re.sub(".\b", "", shown.stdout.decode()).split())  # bold is overstruck
    assert f"whisper-tui{'-' if name else ''}{name} - " in text
    assert "EXIT STATUS" in text and "--home" in text
    if not name:
        assert all(verb in text for names in GROUPS.values() for verb in names)


def test_a_page_that_there_is_not_is_refused() -> None:
    answer = subprocess.run([*PROGRAM, "man", "nothing"], capture_output=True, check=False, text=True, timeout=90)
    assert answer.returncode == 2 and "no subcommand 'nothing'" in answer.stderr
