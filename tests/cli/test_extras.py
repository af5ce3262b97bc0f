"""An extra that is missing is installed from where whisper_tui came from, never by a name that anybody may take."""

import importlib.util
import json
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from whisper_tui.cli.subcommand import how_to_install


class _Installed:
    def __init__(self, direct_url: str | None) -> None:
        self._direct_url = direct_url

    def read_text(self, _: str) -> str | None:
        return self._direct_url


@pytest.mark.parametrize("editable", [False, True])
def test_the_checkout_that_was_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, editable: bool
) -> None:
    folder = tmp_path / "a check out"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    about: dict[str, Any] = {"url": folder.as_uri(), "dir_info": {"editable": editable}}
    monkeypatch.setattr(metadata, "distribution", lambda _: _Installed(json.dumps(about)))
    said = how_to_install("web")
    words = shlex.split(said.removeprefix("Run: "))
    assert words == [sys.executable, "-m", "pip", "install", *(["-e"] if editable else []), f"{folder}[web]"]


@pytest.mark.parametrize("about", [None, "{}", '{"url": "file:///is/gone"}', '{"url": "https://example.org/x.whl"}'])
def test_without_a_known_source_the_advice_names_any_checkout(
    monkeypatch: pytest.MonkeyPatch, about: str | None
) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda _: _Installed(about))
    command = shlex.join([sys.executable, "-m", "pip", "install"])
    assert how_to_install("web") == f"In a checkout of whisper_tui: {command} '.[web]'"


def test_an_environment_without_pip_is_installed_into_by_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(metadata, "distribution", lambda _: _Installed(None))
    command = shlex.join(["uv", "pip", "install", "--python", sys.executable])
    assert how_to_install("phone") == f"In a checkout of whisper_tui: {command} '.[phone]'"


def test_a_program_that_is_not_installed_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert how_to_install("agent").endswith("-m pip install '.[agent]'")


def test_serve_without_its_extra_says_how_to_install_it(tmp_path: Path) -> None:
    program = "import sys; sys.modules['textual_serve'] = None; from whisper_tui.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "serve", "--home", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "[web]" in done.stderr and "whisper-tui[web]" not in done.stderr


def test_no_text_of_ours_installs_the_package_by_its_name() -> None:
    root = Path(__file__).parents[2]
    texts = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "whisper_tui").rglob("*.py")]
    for path in texts:
        if path.name != "CHANGELOG.md":
            assert "install 'whisper-tui[" not in path.read_text(), path
