"""`bring` installs the running version on another machine: over real ssh, and over a program in its place."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.cli.terminal import Terminal
from tests.cli.test_other_machines import Desk
from tests.outside import outside_only
from tests.ssh_server import needs_sshd, other_machine
from whisper_tui import __version__
from whisper_tui.cli.bring import running_wheel

pytestmark = [outside_only, pytest.mark.skipif(sys.platform != "linux", reason="network namespaces")]

NAME = f"{__version__}-{hashlib.sha256(running_wheel()[1]).hexdigest()[:8]}"
"""The name of an installation of the running version."""
FAKE_SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
shift 2
export HOME={home}
{before} sh -c "$*"
"""
"""A program in the place of ssh: the other machine is this one, with another home."""


class Near:
    """A machine that is reached without a network."""

    def __init__(self, root: Path) -> None:
        self.home = root / "there"
        self.home.mkdir()
        self.desk = Desk(root / "desk", [])
        self.passes("exec")

    def passes(self, before: str) -> None:
        """Say what stands before the shell there."""
        (self.desk.root / "bin" / "ssh").write_text(FAKE_SSH.format(home=self.home, before=before))

    def holds(self) -> list[str]:
        """What was left there."""
        below = (self.home / ".local").rglob("*")
        names = {str(path.relative_to(self.home)) for path in below if not path.is_dir()}
        return sorted(names - {".local/share/whisper-tui/.lock"})


@pytest.fixture
def near(tmp_path: Path) -> Iterator[Near]:
    found = Near(tmp_path)
    yield found
    found.desk.close()


@pytest.mark.slow
def test_nothing_is_changed_without_a_yes(near):
    program = [sys.executable, "-m", "whisper_tui", "bring", "gpu1", "--home", str(near.desk.root)]
    with Terminal(program, near.desk.environment, near.desk.workspace) as terminal:
        terminal.shows(f".local/share/whisper-tui/{NAME}".encode())
        terminal.shows(b"Do this? [y/N]")
        terminal.types(b"\r")
        terminal.shows(b"Nothing was changed")
        assert terminal.ends() == 0
    unasked = near.desk.run("bring", "gpu1")
    assert (unasked.returncode, "nobody to ask" in unasked.stderr) == (2, True)
    assert near.holds() == []


def test_what_was_installed_in_another_way_is_left_alone(near):
    program = near.home / ".local" / "bin" / "whisper-tui"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    answer = near.desk.run("bring", "gpu1", "--yes")
    assert (answer.returncode, f"installed in another way: {program}" in answer.stderr) == (2, True)
    assert near.holds() == [".local/bin/whisper-tui"]


def test_a_connection_that_is_cut_while_packages_arrive_leaves_nothing(near):
    near.passes("dd bs=4096 count=40 2>/dev/null |")
    answer = near.desk.run("bring", "gpu1", "--yes")
    assert "packages have not arrived whole" in answer.stderr, answer.stderr
    assert (answer.returncode, near.holds()) == (3, [])


def test_a_machine_without_python_and_one_that_is_away_are_named_with_what_to_do(near):
    bin_ = near.home / ".local" / "bin"
    bin_.mkdir(parents=True)
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        (bin_ / name).write_text("#!/bin/sh\nexit 1\n")
        (bin_ / name).chmod(0o755)
    bare = near.desk.run("bring", "gpu1", "--yes")
    assert (bare.returncode, "gpu1 has no Python from 3.11 to 3.13" in bare.stderr) == (3, True)
    near.passes("echo 'ssh: connect to host gpu1 port 22: No route to host' >&2; exit 255\n")
    away = near.desk.run("bring", "gpu1", "--yes")
    assert away.returncode == 3
    assert "gpu1 is not reached, so nothing was installed: ssh: connect" in away.stderr
    assert "Try: ssh gpu1 true" in away.stderr


@pytest.mark.slow
def test_a_machine_that_reaches_no_index_is_left_as_it_was_and_gets_advice(near):
    near.passes("exec env PIP_NO_INDEX=1")
    failed = near.desk.run("bring", "gpu1", "--yes")
    assert "Nothing was installed on gpu1: python failed" in failed.stderr
    assert "send the packages along: --wheels DIR" in failed.stderr
    assert (failed.returncode, near.holds()) == (3, [])


def packed(about: Distribution, folder: Path) -> None:
    """Make a package of an installed one."""
    info = str(about._path.name)  # type: ignore[attr-defined]
    tag = next(line.split(": ")[1] for line in (about.read_text("WHEEL") or "").splitlines() if line.startswith("Tag"))
    files = [each for each in about.files or () if ".." not in each.parts and "__pycache__" not in each.parts]
    with zipfile.ZipFile(folder / f"{info.removesuffix('.dist-info')}-{tag}.whl", "w") as wheel:
        for each in files:
            if each.name not in {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}:
                wheel.write(each.locate(), str(each))
        wheel.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*wheel.namelist(), f"{info}/RECORD"]))


def needed(about: Distribution, extras: set[str]) -> list[Requirement]:
    """What a package needs, with these extras of it."""
    wanted = [Requirement(text) for text in about.requires or ()]
    return [
        each for each in wanted if not each.marker or any(each.marker.evaluate({"extra": e}) for e in {"", *extras})
    ]


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """The packages that whisper_tui needs, as they are installed here."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    todo, done = [Requirement("whisper-tui")], set()
    while todo:
        wanted = todo.pop()
        if str(wanted) not in done:
            done.add(str(wanted))
            about = distribution(wanted.name)
            packed(about, folder)
            todo += needed(about, wanted.extras)
    return folder


def without_ensurepip(home: Path) -> None:
    """Let the machine have one Python, without the part of its library that Debian leaves out."""
    name = f"python3.{sys.version_info.minor}"
    place = home / "python"
    library = place / "lib" / name
    library.mkdir(parents=True)
    for entry in Path(os.__file__).parent.iterdir():
        if entry.name not in {"ensurepip", "site-packages", "__pycache__"}:
            (library / entry.name).symlink_to(entry)
    program = place / "bin" / name
    program.parent.mkdir()
    shutil.copy2(Path(sys.base_prefix) / "bin" / name, program)
    links = home / ".local" / "bin"
    links.mkdir(parents=True)
    for each in ("python3.13", "python3.12", "python3.11", "python3"):
        (links / each).write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        (links / each).chmod(0o755)
    found = subprocess.run([links / "python3", "-c", "import venv, ensurepip"], capture_output=True, check=False)
    assert b"No module named 'ensurepip'" in found.stderr, found


@pytest.mark.slow
def test_it_installs_by_uv_where_python_cannot_make_environments(near, wheels):
    uv = shutil.which("uv", path=f"{sys.prefix}/bin:{os.environ['PATH']}")
    if uv is None:
        pytest.skip("there is no uv here")
    without_ensurepip(near.home)
    before = near.holds()
    near.passes("exec env PATH=/usr/bin:/bin")
    without = near.desk.run("bring", "gpu1", "--yes", "--wheels", str(wheels))
    assert (without.returncode, "Install uv there, or Python's venv" in without.stderr) == (3, True), without.stderr
    assert near.holds() == before

    (near.home / ".local" / "bin" / "uv").symlink_to(uv)
    near.passes("exec env PATH=/usr/bin:/bin UV_OFFLINE=1 UV_PYTHON_DOWNLOADS=never")
    answer = near.desk.run("bring", "gpu1", "--yes", "--wheels", str(wheels))
    assert answer.returncode == 0, answer.stderr
    assert f"Installed ~/.local/share/whisper-tui/{NAME} on gpu1" in answer.stdout
    place = near.home / ".local" / "share" / "whisper-tui" / NAME
    assert not (place / "bin" / "pip").exists()
    program = near.home / ".local" / "bin" / "whisper-tui"
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, env={})
    assert told.stdout == f"whisper-tui {__version__}\n"


@pytest.mark.slow
@needs_sshd
def test_it_installs_upgrades_and_restarts_over_real_ssh_without_an_index(tmp_path, wheels):
    home = tmp_path / "there"
    home.mkdir()
    base = home / ".local" / "share" / "whisper-tui"
    variables = f"HOME={home} PATH={sys.base_prefix}/bin:/usr/bin:/bin"
    with other_machine(tmp_path / "sshd", "bare", variables) as (ssh, _):
        desk = Desk(tmp_path / "desk", [])
        (desk.root / "ssh_config").write_text(ssh.config.read_text())
        brought = desk.run("bring", "bare", "--yes", "--wheels", str(wheels))
        assert brought.returncode == 0, brought.stderr
        assert f"Installed ~/.local/share/whisper-tui/{NAME} on bare" in brought.stdout
        assert (
            "Undo it there: whisper-tui stop; rm -r ~/.local/share/whisper-tui ~/.local/bin/whisper-tui"
            in brought.stdout
        )
        assert "Connect its agent: ssh -t bare '~/.local/bin/whisper-tui' install CLIENT\n" in brought.stdout
        told = subprocess.run(
            ssh.command("sh", "-c", "~/.local/bin/whisper-tui --version"), capture_output=True, text=True, check=True
        )
        assert __version__ in told.stdout
        assert desk.run("resume", "--host", "bare").returncode == 0
        first = desk.rows("status", "--host", "bare")["pid"]
        assert "nothing to do" in desk.run("bring", "bare").stdout

        # Another one is in use now: it stays, the link leads to the new one, and the supervisor is replaced.
        old = base / "0.1.0-00000000" / "bin" / "whisper-tui"
        old.parent.mkdir(parents=True)
        old.symlink_to(base / NAME / "bin" / "whisper-tui")
        link = home / ".local" / "bin" / "whisper-tui"
        link.unlink()
        link.symlink_to(old)
        upgraded = desk.run("bring", "bare", "--yes")
        assert upgraded.returncode == 0, upgraded.stderr
        assert "Connect" not in upgraded.stdout
        undo = f"ln -sfn {old} {link}; whisper-tui restart".replace(str(home), "~")
        assert undo in upgraded.stdout
        assert "supervises" in upgraded.stdout
        assert os.readlink(link) == str(base / NAME / "bin" / "whisper-tui")
        assert desk.rows("status", "--host", "bare")["pid"] != first
        subprocess.run(ssh.command(str(link), "stop"), check=True, stdout=subprocess.DEVNULL)
        desk.close()
