"""Claude Code tells its model that `cd` carries over to the next command: so it does for an approved one."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.agent_shell import Shell, finished, rewritten, shell
from tests.outside import outside_only

__all__ = ["shell"]
pytestmark = outside_only


class Claude:
    """Runs approved commands as Claude Code's Bash does, and knows in which directory its shell is."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.workspace = shell.instance.workspace
        self.cwd = str(self.workspace)

    def bash(self, command: str, **how: str) -> "subprocess.CompletedProcess[bytes]":
        """Ask, have a human agree, and run what the hook made of it."""
        asking = self.shell.ask(command, cwd=self.cwd)
        call_id = self.shell.waiting()
        assert self.shell.row(call_id)["cwd"] == self.cwd
        self.shell.approve(call_id, **how)
        return self.run(rewritten(finished(asking)))

    def run(self, line: str) -> "subprocess.CompletedProcess[bytes]":
        told = self.workspace.parent / "claude-cwd"
        told.unlink(missing_ok=True)
        script = f"eval {shlex.quote(line)} < /dev/null && pwd -P >| {shlex.quote(str(told))}"
        ran = self.shell.run(["bash", "-c", script], cwd=self.cwd, env={**os.environ, **self.shell.environment})
        if told.exists():
            self.cwd = os.fsdecode(told.read_bytes()[:-1])
        return ran


@pytest.fixture
def claude(shell: Shell) -> Claude:
    return Claude(shell)


@pytest.mark.slow
def test_the_next_command_runs_and_is_shown_in_the_directory_to_which_the_last_one_went(claude: Claude) -> None:
    ran = claude.bash("mkdir build && cd build")
    assert (ran.stdout, ran.stderr, ran.returncode) == (b"", b"", 0)
    assert claude.cwd == f"{claude.workspace}/build"
    (claude.workspace / "precious").touch()
    assert claude.bash("touch here; pwd").stdout == f"{claude.workspace}/build\n".encode()
    assert claude.bash("rm -rf ./*").returncode == 0
    assert (claude.workspace / "precious").exists() and not (claude.workspace / "build" / "here").exists()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("two words", marks=pytest.mark.slow),
        "a 'quote' \" $HOME `x`",
        pytest.param("two\nlines\n", marks=pytest.mark.slow),
        "-P",
        pytest.param("\udcff", marks=pytest.mark.slow),
    ],
)
@pytest.mark.few(1)
def test_a_cd_into_a_directory_of_any_name_carries_over(claude: Claude, name: str) -> None:
    (claude.workspace / "in").mkdir()
    (claude.workspace / "in" / name).mkdir()
    assert claude.bash("touch x; cd in && cd -- *").returncode == 0
    assert claude.cwd == f"{claude.workspace}/in/{name}"


@pytest.mark.slow
def test_a_command_that_nobody_is_asked_about_carries_over_too(claude: Claude) -> None:
    (claude.workspace / "build").mkdir()
    rules = claude.shell.instance.root / "config" / "rules.toml"
    rules.write_text("read_only = true\n")
    assert claude.run(rewritten(finished(claude.shell.ask("cd build && ls", cwd=claude.cwd)))).returncode == 0
    assert claude.cwd == f"{claude.workspace}/build"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "out"),
    [
        ("cd build; exit 3", 3, b""),
        ("cd build && false", 1, b""),
        ("set -e; cd build; false; echo no", 1, b""),
        ("cd nowhere 2> err || exit 9", 9, b""),
        ("cd build; kill -TERM $$; sleep 9", -signal.SIGTERM, b""),
    ],
)
@pytest.mark.few(1)
def test_a_failed_command_does_not_change_the_directory(claude: Claude, command: str, code: int, out: bytes) -> None:
    (claude.workspace / "build").mkdir()
    ran = claude.bash(command)
    # Its shell says 143 for the signal, as it does of its own commands.
    assert ran.returncode in {code, 128 - code}
    assert (ran.stdout, claude.cwd) == (out, str(claude.workspace))


@pytest.mark.slow
def test_the_output_of_subcommands_is_unchanged(claude: Claude) -> None:
    (claude.workspace / "build").mkdir()
    ran = claude.bash("set -x; cd build; echo ${BASH_ENV-none} | tee f; (cd /; exit 1) || echo $?; trap")
    assert ran.stdout.startswith(b"none\n1\n")
    assert b"pwd -P" not in ran.stderr and b"+ cd build\n" in ran.stderr
    wrong = claude.bash("cd /; if ; fi")
    assert wrong.returncode == 2 and wrong.stderr.startswith(b"bash: -c: line 1: syntax error")


@pytest.mark.slow
def test_background_processes_do_not_delay_the_next_command(claude: Claude) -> None:
    (claude.workspace / "build").mkdir()
    assert claude.bash("sleep 1000 & cd build; echo $!").returncode == 0
    assert claude.cwd == f"{claude.workspace}/build"
    claude.shell.instance.run("signal", "1", "KILL", "--tree")


@pytest.mark.slow
def test_the_model_is_told_its_directory_if_the_last_one_is_unknown(claude: Claude) -> None:
    (claude.workspace / "build").mkdir()
    ran = claude.bash("trap 'echo bye' EXIT; cd build")
    assert (ran.stdout, ran.returncode, claude.cwd) == (b"bye\n", 0, str(claude.workspace))
    assert f"the next command starts in {claude.workspace}".encode() in ran.stderr
    gone = claude.bash("cd build; rmdir ../build; cd ../build 2> /dev/null; true")
    assert (gone.returncode, claude.cwd) == (0, str(claude.workspace))
    assert b"the next command starts in" in gone.stderr


def test_a_file_of_the_user_that_bash_reads_first_still_counts(claude: Claude, tmp_path: Path) -> None:
    (claude.workspace / "build").mkdir()
    mine = tmp_path / "set-up" / "mine.sh"
    mine.parent.mkdir()
    mine.write_text("mine() { echo mine; }\n")
    mine.chmod(0o600)
    claude.shell.environment["BASH_ENV"] = str(mine)
    ran = claude.bash("mine; cd build; bash -c mine")
    assert (ran.stdout, claude.cwd) == (b"mine\nmine\n", f"{claude.workspace}/build")


def test_the_agent_does_not_follow_a_directory_that_a_human_chose(claude: Claude, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "below").mkdir(parents=True)
    assert claude.bash("cd .; pwd", cwd=str(elsewhere)).stdout == f"{elsewhere}\n".encode()
    assert claude.cwd == str(claude.workspace)
    claude.bash("touch x; cd below", cwd=str(elsewhere))
    assert claude.cwd == f"{elsewhere}/below"


@pytest.mark.slow
def test_a_cd_carries_over_the_death_of_the_supervisor(claude: Claude) -> None:
    (claude.workspace / "build").mkdir()
    asking = claude.shell.ask("touch begun; until test -e go; do sleep 0.1; done; cd build", cwd=claude.cwd)
    claude.shell.approve(claude.shell.waiting())
    line = rewritten(finished(asking))
    process = claude.shell.start(["bash", "-c", f"eval {shlex.quote(line)} && pwd -P"], cwd=claude.cwd, stdout=-1)
    claude.shell.instance.until((claude.workspace / "begun").exists)
    claude.shell.instance.kill_supervisor(signal.SIGKILL)
    (claude.workspace / "go").touch()
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == (f"{claude.workspace}/build\n".encode(), 0)


def test_a_command_that_cannot_change_the_directory_is_replaced_by_plain_words_alone(claude: Claude) -> None:
    asking = claude.shell.ask("touch x && make", cwd=claude.cwd)
    claude.shell.approve(claude.shell.waiting())
    assert "&&" not in rewritten(finished(asking))


def test_the_shells_of_other_clients_stay_where_they_are(claude: Claude) -> None:
    asking = claude.shell.ask("touch x && cd /", client="codex")
    claude.shell.approve(claude.shell.waiting())
    assert "cd -P" not in rewritten(finished(asking))
