"""The agent's own shell: its variables, its profile of functions and aliases, and zsh, for what a human approved."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.agent_shell import Shell, finished, reason, rewritten, shell
from tests.outside import outside_only

__all__ = ["shell"]
pytestmark = outside_only

ZSH = shutil.which("zsh")
needs_zsh = pytest.mark.skipif(ZSH is None, reason="zsh is not installed")

PROFILE = """# Snapshot file
unalias -a 2>/dev/null || true
# Functions
eval $'greet () \\n{ \\n    echo "greetings from a function to $1"\\n}' > /dev/null 2>&1
function touch {
  echo "touch is a function"
}
# Shell Options
set -o monitor
shopt -s expand_aliases
# Aliases
alias -- ll='echo an alias lists'
alias -- ls='echo an alias instead of ls'
"""


class OwnShell:
    """The shell tool of Claude Code, with a snapshot of the user's functions and aliases."""

    def __init__(self, shell: Shell, home: Path, program: str) -> None:
        self.shell = shell
        self.program = program
        self.profile = home / ".claude" / "shell-snapshots" / f"snapshot-{Path(program).name}-1795640982182-oqpx1z.sh"
        self.profile.parent.mkdir(parents=True)
        # Both clients write such settings for bash alone: zsh would stop to read there.
        in_zsh = "\n".join(line for line in PROFILE.splitlines() if not line.startswith(("set ", "shopt ")))
        self.profile.write_text(in_zsh if program == ZSH else PROFILE)
        self.profile.chmod(0o644)
        self.environment = {**os.environ, "HOME": str(home), "SHELL": program}
        shell.environment = {"HOME": str(home), "SHELL": program}

    def _words(self, command: str) -> list[str]:
        text = f"source {self.profile} 2>/dev/null || true && eval {shlex.quote(command)} < /dev/null && pwd -P"
        return [self.program, "-c", text]

    def run(self, command: str) -> Any:
        """Run the command that a hook has answered as Claude Code does; the last line is the directory of the shell."""
        return self.shell.run(self._words(command), env=self.environment)

    def start(self, command: str) -> "subprocess.Popen[bytes]":
        """Begin to run it."""
        return self.shell.start(self._words(command), env=self.environment, stdout=subprocess.PIPE)

    def approved(self, command: str) -> Any:
        """Run a command that a human approves."""
        asking = self.shell.ask(command)
        self.shell.approve(self.shell.waiting())
        return self.run(rewritten(finished(asking)))

    def allow(self, word: str) -> None:
        """Let a rule of the user allow what begins with a word."""
        rules = self.shell.instance.root / "config" / "rules.toml"
        rules.write_text(f'[[allow]]\nname = "any"\nprefix = ["{word}"]\nsandbox = false\n')
        assert self.shell.instance.run("rules", "trust", "--yes").returncode == 0

    def known(self) -> None:
        """Run a first command, from which the shell is known."""
        assert self.approved("true > first").returncode == 0

    def resolved(self, call_id: str) -> Any:
        return self.shell.row(call_id)["resolved"]


@pytest.fixture
def own(shell: Shell, tmp_path: Path) -> OwnShell:
    """An agent whose own shell is bash."""
    return OwnShell(shell, tmp_path / "home", "/bin/bash")


@pytest.fixture
def zsh(shell: Shell, tmp_path: Path) -> OwnShell:
    """An agent whose own shell is zsh."""
    return OwnShell(shell, tmp_path / "home", ZSH or "")


@pytest.mark.slow
def test_an_approved_command_has_the_variables_functions_and_aliases_of_the_agents_shell(own: OwnShell) -> None:
    own.environment["FROM_PROFILE"] = "you"
    own.known()
    ran = own.approved('greet "$FROM_PROFILE"; ll > listed; cat listed; echo $-')
    greeted, listed, options, directory = ran.stdout.decode().splitlines()
    assert (greeted, listed) == ("greetings from a function to you", "an alias lists"), ran
    assert "m" not in options, "with job control, signals to its group would miss its children"
    assert directory == str(own.shell.instance.workspace)
    shown = own.shell.instance.run("show", "2").stdout
    assert f"{own.profile}, if you approve it" in shown
    assert "ll: alias -- ll='echo an alias lists'" in shown


@pytest.mark.slow
def test_a_command_that_nobody_is_asked_about_runs_as_it_was_judged(own: OwnShell) -> None:
    own.allow("ls")
    own.known()
    ran = own.run(rewritten(finished(own.shell.ask("ls"))))
    assert ran.stdout.decode().splitlines()[0] == "first"
    assert own.resolved("2")["own_shell"]["defines"] == {"ls": "alias -- ls='echo an alias instead of ls'"}
    assert own.shell.row("2")["decided_by"]["surface"] == "rule"


@pytest.mark.slow
def test_no_rule_allows_a_word_that_only_the_profile_defines(own: OwnShell) -> None:
    own.allow("ll")
    own.known()
    asking, call_id = own.shell.ask("ll"), own.shell.waiting()
    assert (
        own.shell.row(call_id)["verdict"]["reason"]
        == "ll is defined in your shell's profile, which only commands get that you have approved"
    )
    # A hook that still waits when the test ends would start another supervisor.
    own.shell.deny(call_id, "not now")
    assert "not now" in reason(finished(asking))


@pytest.mark.slow
def test_the_first_command_that_needs_the_profile_is_asked_again_with_it(own: OwnShell) -> None:
    asking = own.shell.ask("greet me")
    own.shell.approve(own.shell.waiting())
    words = rewritten(finished(asking))
    running = own.start(words)
    row = own.shell.instance.until(lambda: (row := own.shell.row("1"))["returned_because"] and row)
    assert "greet is defined in your shell's profile" in row["returned_because"]
    own.shell.approve("1")
    assert running.communicate()[0].decode().splitlines()[0] == "greetings from a function to me"


@pytest.mark.slow
def test_a_profile_that_changes_after_the_approval_is_asked_again(own: OwnShell) -> None:
    own.known()
    asking = own.shell.ask("greet me")
    own.shell.approve(own.shell.waiting())
    words = rewritten(finished(asking))
    own.profile.write_text(PROFILE.replace("greetings", "curses"))
    running = own.start(words)
    row = own.shell.instance.until(lambda: (row := own.shell.row("2"))["returned_because"] and row)
    assert f"{own.profile} was replaced or changed" in row["returned_because"]
    own.shell.deny("2", "no")
    assert b"curses" not in running.communicate()[0]


@pytest.mark.slow
@pytest.mark.parametrize("spoil", ["others may write it", "a link", "another directory"])
@pytest.mark.few(1)
def test_a_profile_that_is_not_the_users_alone_is_not_read(own: OwnShell, tmp_path: Path, spoil: str) -> None:
    if spoil == "others may write it":
        own.profile.chmod(0o666)
    elif spoil == "a link":
        (tmp_path / "elsewhere").write_text(PROFILE)
        own.profile.unlink()
        own.profile.symlink_to(tmp_path / "elsewhere")
    else:
        own.profile = own.shell.instance.workspace / own.profile.name
        own.profile.write_text(PROFILE)
    own.known()
    assert b"a function" not in own.approved("touch second").stdout
    assert (own.shell.instance.workspace / "second").exists()
    assert own.resolved("2")["own_shell"] is None


@pytest.mark.slow
@needs_zsh
def test_what_a_zsh_user_approves_runs_in_zsh_and_the_rest_in_bash(zsh: OwnShell) -> None:
    zsh.allow("echo")
    zsh.known()
    ran = zsh.approved("words='a b'; printf '%s,' $words $ZSH_VERSION; ll > listed; cat listed; mkdir d; cd d")
    said, directory = ran.stdout.decode().splitlines()
    assert said.startswith("a b,5.") and said.endswith("an alias lists"), ran
    assert directory == str(zsh.shell.instance.workspace / "d")
    assert zsh.resolved("2")["own_shell"]["program"] == ZSH
    assert f"{ZSH}, if you approve it" in zsh.shell.instance.run("show", "2").stdout
    unasked = zsh.run(rewritten(finished(zsh.shell.ask("echo in bash"))))
    assert unasked.stdout.startswith(b"in bash\n"), unasked
    assert zsh.shell.row("3")["decided_by"]["surface"] == "rule"
    assert "own_shell" not in zsh.shell.instance.run("show", "3").stdout
