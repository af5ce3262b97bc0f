"""The login shell is asked for its environment through the interpreter of the place, whatever directory that is in."""

import sys
from pathlib import Path

import pytest

from tests.supervisor.engine.conftest import until
from whisper_tui.supervisor.places import far_files


async def test_the_name_of_the_interpreter_is_no_shell_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "my $0 \"tools\" 'and' `more`"
    directory.mkdir()
    (directory / "python").symlink_to(sys.executable)
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\n[ "$1" = -lc ] && SET_BY_THE_LOGIN=yes exec sh -c "$2"\n')
    shell.chmod(0o755)
    monkeypatch.setenv("SHELL", str(shell))
    monkeypatch.setattr(sys, "executable", str(directory / "python"))
    monkeypatch.setattr(far_files, "LOGIN_S", 60)
    login = far_files.LoginEnvironment()
    await until(lambda: login.variables is not None)
    assert login.variables is not None
    assert login.variables["SET_BY_THE_LOGIN"] == "yes"
