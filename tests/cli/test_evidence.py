"""`evidence`: what it writes and what it says about a file, each in a process of its own."""

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, Instance
from tests.outside import outside_only

pytestmark = outside_only


@pytest.fixture
def decided(instance: Instance) -> Instance:
    """Call 1 has printed a line, and call 2 was denied."""
    call = instance.call("execute_command", command="sh", args=["-c", "echo printed"])
    assert instance.run("approve", "1").returncode == 0
    call.communicate(timeout=90)
    call = instance.call("execute_command", command="rm", args=["-rf", "build"])
    assert instance.run("deny", "2", "not the build").returncode == 0
    call.communicate(timeout=90)
    instance.until(lambda: all(row["state"] == "ended" for row in instance.seen("history")))
    return instance


@pytest.mark.slow
def test_evidence_is_written_and_verified_where_nothing_else_is(decided: Instance, tmp_path: Path) -> None:
    file = decided.workspace / "evidence.json"
    said = decided.run("evidence", "1", "2", "--contents", "-o", "evidence.json")
    assert said.returncode == 0 and "2 calls in" in said.stderr and "the chain in it ends at" in said.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    end = said.stderr.rpartition(" ")[2].strip()
    decided.run("stop")
    shutil.rmtree(decided.root / "state")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    said = decided.run("evidence", "verify", str(file), "--head", end)
    assert said.returncode == 0 and said.stderr == ""
    assert "Call 2: rm -rf build" in said.stdout and "denied by" in said.stdout and ": not the build" in said.stdout
    assert "its recorded output is in the file, unchanged" in said.stdout
    assert (
        "the journal that had the end that you named" in said.stdout
        and "no signature of it is in this file" in said.stdout
    )
    assert not (decided.root / "state").exists()
    report = json.loads(decided.run("evidence", "verify", str(file), "--json").stdout)
    assert [call["id"] for call in report["calls"]] == ["1", "2"] and report["problems"] == []
    assert report["calls"][0]["output"] == "same" and report["proven"] and report["not_proven"]


@pytest.mark.slow
def test_a_session_is_named_and_a_changed_file_proves_nothing(decided: Instance) -> None:
    file = decided.workspace / "evidence.json"
    assert decided.run("evidence", "command line", "-o", str(file)).returncode == 0
    data = file.read_bytes()
    file.write_bytes(data.replace(b"not the build", b"yes the build"))
    said = decided.run("evidence", "verify", str(file))
    assert said.returncode == 1 and said.stdout == ""
    assert said.stderr.startswith(f"whisper-tui: {file} proves nothing: it was changed")
    file.write_bytes(data[:-200])
    said = decided.run("evidence", "verify", str(file), "--json")
    assert said.returncode == 1 and json.loads(said.stdout)["problems"]


def test_what_is_wrong_is_one_sentence(instance: Instance) -> None:
    for words, code, sentence in (
        (("evidence", "1"), 2, "Evidence needs a file to write"),
        (("evidence", "1", "--json", "-o", "x"), 2, "--json belongs to evidence verify"),
        (("evidence", "verify"), 2, "Evidence verify takes one file"),
        (("evidence", "verify", "a", "b"), 2, "Evidence verify takes one file"),
        (("evidence", "verify", "missing.json"), 3, "Missing.json cannot be read: No such file"),
        (("evidence", "1", "-o", "x"), 3, "There is no journal"),
        (("evidence", "verify", "x", "--head", "7"), 2, "'7' is not the end of a journal"),
    ):
        answer = instance.run(*words)
        assert (answer.returncode, answer.stderr.count("\n")) == (code, 1)
        assert answer.stderr.startswith(f"whisper-tui: {sentence}") or sentence.lower() in answer.stderr.lower()


def test_verifying_opens_neither_a_journal_nor_a_socket(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}\n")
    code = (
        "import sys, whisper_tui.cli as cli\n"
        "sys.addaudithook(lambda name, held: name in ('socket.connect', 'sqlite3.connect') and sys.exit(77))\n"
        f"sys.exit(cli.main(['evidence', 'verify', {str(tmp_path / 'x')!r}]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=False)
    assert PROGRAM and said.returncode == 2 and "is no evidence file" in said.stderr
