"""What a human approves runs in the real client's own shell: with its variables, functions and aliases, and in zsh.

Qwen Code and Kimi Code run it themselves.
"""

import shutil
from pathlib import Path

import pytest

from tests.clients.conversation import Played, play
from tests.clients.install import missing
from tests.clients.programs import Program
from tests.clients.programs.claude import Claude
from tests.clients.programs.codex import Codex
from tests.clients.programs.copilot import Copilot
from tests.clients.programs.gemini import Gemini
from tests.clients.programs.opencode import OpenCode
from tests.clients.scenes import Scene
from tests.clients.stage import Stage
from tests.clients.test_through_hook import ask_for, set_up

PROFILE = """greet() { echo "a function greets $1"; }
alias ll='echo an alias lists'
export FROM_PROFILE=exported
export PATH="$HOME/own-bin:$PATH"
"""

FIRST = Scene("touch first-ran")
"""From this command on, the shell is known."""
OF_PROFILE = Scene("greet you | tee of-profile-ran; ll")
"""A function and an alias. What the profile exports is in the shell of Claude Code only if it is so around it."""
EXPORTED = Scene("echo $FROM_PROFILE | tee exported-ran; shown-by-path")
OF_ZSH = Scene("words='a  b'; echo $words | tee of-zsh-ran; greet you; ll")
"""Only zsh keeps both blanks."""


SHOWN = Scene(
    'echo "${ZSH_VERSION:+zsh}${BASH_VERSION:+bash} [$FROM_PROFILE]" > shown-ran; '
    "command -v shown-by-path greet ll >> shown-ran; cat shown-ran"
)
"""Which shell it is, and what of the user's start-up files is there."""


class TrustingCopilot(Copilot):
    """Copilot without whisper_tui, whose user allows everything."""

    def arguments(self, prompt: str) -> list[str]:
        """The same with the option."""
        return [*super().arguments(prompt), "--allow-all-tools"]


def played_by(program: Program, scene: Scene, directory: Path, shell: str, *, supervised: bool = True) -> Played:
    if program.name in missing():
        pytest.fail(f"{program.name} is not installed: python tests/clients/install.py installs it, or says why")

    def prepare(stage: Stage) -> None:
        home = stage.user_home
        for name in (".bashrc", ".bash_profile", ".zshrc"):
            (home / name).write_text(PROFILE)
        (home / "own-bin").mkdir()
        (home / "own-bin" / "shown-by-path").write_text("#!/bin/sh\necho found in PATH\n")
        (home / "own-bin" / "shown-by-path").chmod(0o755)
        # A shell at the top level whose input is a socket reads start-up files, for remote shells.
        stage.variables = {"SHELL": shell, "SHLVL": "1"}
        if supervised:
            set_up(stage)

    return play(program, (FIRST, scene), directory, ask_for=ask_for, set_up=prepare)


@pytest.mark.parametrize("program", [Claude()], ids=["claude"])
def test_claude_code_in_bash_has_its_functions_and_aliases(program, tmp_path):
    played = played_by(program, OF_PROFILE, tmp_path, "/bin/bash")
    assert played.answer(OF_PROFILE).result.startswith("a function greets you\nan alias lists"), played.written
    own = played.record(OF_PROFILE).resolved.own_shell
    assert own.profile.startswith(f"{tmp_path}/user/.claude/shell-snapshots/snapshot-bash-")
    assert list(own.defines) == ["greet", "ll"] and own.only_there == ("greet", "ll")


@pytest.mark.parametrize("program", [Claude()], ids=["claude"])
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_claude_code_in_zsh_has_its_functions_and_aliases(program, tmp_path):
    shell = shutil.which("zsh")
    played = played_by(program, OF_ZSH, tmp_path, shell)
    assert played.answer(OF_ZSH).result.startswith("a  b\na function greets you\nan alias lists"), played.written
    assert played.record(OF_ZSH).resolved.own_shell.program == shell


@pytest.mark.parametrize("program", [Codex()], ids=["codex"])
def test_codex_has_what_its_shell_exports(program, tmp_path):
    played = played_by(program, EXPORTED, tmp_path, "/bin/bash")
    assert "exported\nfound in PATH" in played.answer(EXPORTED).result, played.written


@pytest.mark.parametrize("program", [Gemini(), OpenCode(), TrustingCopilot()], ids=["gemini", "opencode", "copilot"])
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_an_approved_command_has_the_shell_that_it_has_without_whisper_tui(program, tmp_path, shell):
    if (path := shutil.which(shell)) is None:
        pytest.skip(f"{shell} is not installed")
    alone = played_by(program, SHOWN, tmp_path / "alone", path, supervised=False)
    supervised = played_by(program, SHOWN, tmp_path / "supervised", path)
    assert (len(alone.calls), len(supervised.calls)) == (0, 2)
    shown, own = [(each.workspace / "shown-ran").read_text() for each in (supervised, alone)]
    assert shown.replace(str(tmp_path / "supervised"), str(tmp_path / "alone")) == own
    assert own.split()[0] == ("zsh" if shell == "zsh" and program.name == "opencode" else "bash")
    assert ("[exported]" in own) is (program.name == "copilot")
