"""What is shipped: the same files from the checkout, from the source package and from the wheel."""

import json
import os
import shlex
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packages import ROOT, build, installed_into, installed_with_what_it_needs, python, wheel_of
from whisper_tui.cli.commands.shell_completion import manual_pages

ASKS_WHERE = "import pathlib, whisper_tui; print(pathlib.Path(whisper_tui.__file__).parent)"


def in_the_checkout() -> set[str]:
    """Every file that a user's installation needs, named as it is named once installed."""
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "whisper_tui").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    return package | {f"whisper_tui/themes/{path.name}" for path in (ROOT / "themes").glob("*.toml")}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source package of the checkout."""
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    return wheel_of(sdist, tmp_path_factory.mktemp("wheel"))


def test_the_source_package_holds_what_the_wheel_is_made_of(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    themes = {f"themes/{path.name}" for path in (ROOT / "themes").glob("*.toml")}
    sources = {name for name in in_the_checkout() if not name.startswith("whisper_tui/themes/")}
    assert (
        sources | themes | {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "hatch_build.py"}
    ) - names == set()


def test_the_wheel_holds_exactly_what_the_checkout_holds(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name and ".data/" not in name}
    assert names == in_the_checkout()


@pytest.mark.slow
def test_the_manual_pages_are_installed_and_those_that_the_program_prints(wheel: Path, tmp_path: Path) -> None:
    interpreter = installed_into(tmp_path / "plain", wheel)
    pages = {page.stem: page.read_text() for page in (tmp_path / "plain" / "share" / "man" / "man1").iterdir()}
    assert pages == manual_pages()
    assert {"whisper-tui", "whisper-tui-approve", "whisper-tui-kill"} <= set(pages)
    assert "whisper-tui-hook" not in pages  # internal
    if shutil.which("man") is None:
        return
    environment = {**os.environ, "PATH": f"{interpreter.parent}:{os.environ['PATH']}", "MANPAGER": "cat"}
    shown = subprocess.run(["man", "-w", "whisper-tui"], env=environment, capture_output=True, text=True, check=False)
    assert Path(shown.stdout.strip()) == tmp_path / "plain" / "share" / "man" / "man1" / "whisper-tui.1"


def test_the_themes_and_the_mark_of_types_are_shipped() -> None:
    files = in_the_checkout()
    assert "whisper_tui/py.typed" in files
    assert [name for name in files if name.startswith("whisper_tui/themes/") and name.endswith(".toml")]


def test_the_wheel_names_its_licence_and_its_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        told = {name.partition(".dist-info/")[2]: name for name in archive.namelist() if ".dist-info/" in name}
        assert "licenses/LICENSE" in told
        assert "whisper-tui = whisper_tui.cli:main" in archive.read(told["entry_points.txt"]).decode()


@pytest.mark.slow
def test_a_plain_install_answers_with_its_version(wheel: Path, tmp_path: Path) -> None:
    interpreter = installed_into(tmp_path / "plain", wheel)
    place = Path(python("-c", ASKS_WHERE, executable=interpreter, cwd=tmp_path))
    assert place.is_relative_to(tmp_path / "plain")
    assert list((place / "themes").glob("*.toml"))
    told = python(interpreter.parent / "whisper-tui", "--version", executable=interpreter, cwd=tmp_path)
    assert told.split()[-1] == wheel.name.split("-")[1]


def install_claude(whisper_tui: Path, home: Path) -> "subprocess.CompletedProcess[str]":
    """Connect Claude Code as a user does whose home this is."""
    home.mkdir(exist_ok=True)
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    words = [str(whisper_tui), "install", "claude", "--yes"]
    return subprocess.run(words, env=environment, cwd=home, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.slow
def test_install_writes_the_path_of_this_installation(wheel: Path, tmp_path: Path) -> None:
    interpreter = installed_with_what_it_needs(tmp_path / "plain", wheel)
    done = install_claude(interpreter.parent / "whisper-tui", tmp_path / "home")
    assert done.returncode == 0, done.stderr
    settings = json.loads((tmp_path / "home" / ".claude" / "settings.json").read_text())
    program = shlex.split(settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"])[:3]
    assert program == [str(interpreter), "-I", str(interpreter.parent / "whisper-tui")]
    assert python(*program[1:], "--version", executable=program[0], cwd=tmp_path).startswith("whisper-tui ")


@pytest.mark.slow
def test_install_writes_no_path_that_is_in_a_cache(wheel: Path, tmp_path: Path) -> None:
    interpreter = installed_with_what_it_needs(tmp_path / "cache" / "environments" / "one", wheel)
    (tmp_path / "cache" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# of a test\n")
    refused = install_claude(interpreter.parent / "whisper-tui", tmp_path / "home")
    assert refused.returncode == 2
    assert f"runs from a cache, {tmp_path / 'cache'}." in refused.stderr
    assert f"uv tool install {wheel}   or: pipx install {wheel}" in refused.stderr
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.slow
def test_an_editable_install_uses_the_checkout(tmp_path: Path) -> None:
    editable = build("editable", ROOT, tmp_path / "built")
    interpreter = installed_into(tmp_path / "editable", editable)
    assert Path(python("-c", ASKS_WHERE, executable=interpreter, cwd=tmp_path)) == ROOT / "whisper_tui"


def test_the_version_is_said_in_one_place() -> None:
    holders = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "whisper_tui").rglob("*.py")
        if "__version__ =" in path.read_text(encoding="utf-8")
    ]
    assert holders == ["whisper_tui/__init__.py"]
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_continuous_integration_runs_the_same_check_as_a_person() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make check" in script.read_text(encoding="utf-8")
