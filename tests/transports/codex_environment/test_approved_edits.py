"""An approved edit is made only to the file that was approved, compared on the descriptor that is written."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.transports.codex_environment.conftest import encoded, uri
from whisper_tui.transports.codex_environment.environment_files import FailedRequest, FileService


def approving(meanwhile: Any) -> Any:
    """A supervisor that approves each edit, after which something happens to the file."""

    def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert method == "whisper/edit"
        path = Path(params["path"])
        before = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
        file = {"real": str(path.resolve()), "before": before, "unread": ""}
        meanwhile()
        change = {"path": params["path"], "content": params["content"]}
        return {"changes": [change], "files": [file]}

    return ask


def write(path: Path, meanwhile: Any) -> None:
    content = {"path": uri(path), "dataBase64": encoded("new"), "sandbox": None}
    FileService(approving(meanwhile)).carry_out("fs/writeFile", content)


def test_a_shorter_content_replaces_all_of_the_file_and_keeps_its_mode(tmp_path):
    path = tmp_path / "a"
    path.write_text("a longer content")
    path.chmod(0o751)
    write(path, lambda: None)
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o751


def test_a_file_that_changes_after_its_approval_is_not_written(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(FailedRequest, match="has changed since the edit was approved"):
        write(path, lambda: path.write_text("meanwhile"))
    assert path.read_text() == "meanwhile"


def test_a_file_that_appears_after_the_approval_of_a_new_one_is_not_written(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(FailedRequest, match="was created since"):
        write(path, lambda: path.write_text("meanwhile"))
    assert path.read_text() == "meanwhile"


def test_a_directory_that_becomes_a_link_after_the_approval_is_not_followed(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "d" / "a"

    def swap() -> None:
        (tmp_path / "d").rmdir()
        (tmp_path / "d").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(FailedRequest, match="another file than the one that was approved"):
        write(path, swap)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_that_changes_after_the_approval_of_its_removal_is_kept(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    service = FileService(approving(lambda: path.write_text("meanwhile")))
    with pytest.raises(FailedRequest, match="has changed since the edit was approved"):
        service.carry_out("fs/remove", {"path": uri(path), "recursive": False, "force": False})
    assert path.read_text() == "meanwhile"
