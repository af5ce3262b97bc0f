"""`approve` and `deny` where decisions are signed, and the file that proves it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Instance
from tests.outside import outside_only
from tests.supervisor.evidence.desk_keys import needs_keygen, new_key

pytestmark = [outside_only, needs_keygen, pytest.mark.slow]


def test_decisions_are_signed_and_verified_where_nothing_else_is(instance: Instance, tmp_path: Path) -> None:
    key = new_key(tmp_path)
    instance.run("stop")
    (instance.root / "config").mkdir(mode=0o700, exist_ok=True)
    settings = instance.root / "config" / "config.toml"
    settings.write_text(f'[evidence]\nsign = "{key}"\n')
    settings.chmod(0o600)
    instance.ready()
    call = instance.call("execute_command", command="sh", args=["-c", "echo printed"])
    hidden = key.rename(tmp_path / "away")
    said = instance.run("approve", "1")
    assert said.returncode != 0 and "Nothing was decided" in said.stderr and "ssh-add" in said.stderr
    assert [row["state"] for row in instance.seen("list")] == ["waiting"]
    hidden.rename(key)
    said = instance.run("approve", "1")
    assert said.returncode == 0, said.stderr
    call.communicate(timeout=90)
    call = instance.call("execute_command", command="rm", args=["-rf", "build"])
    assert instance.run("deny", "2", "not the build").returncode == 0
    call.communicate(timeout=90)
    file = instance.workspace / "evidence.json"
    assert instance.run("evidence", "1", "2", "-o", str(file)).returncode == 0
    instance.run("stop")
    shutil.rmtree(instance.root / "state")
    settings.unlink()
    report = json.loads(instance.run("evidence", "verify", str(file), "--json").stdout)
    signatures = [call["decisions"][0]["signature"] for call in report["calls"]]
    assert [each["signed"] for each in signatures] == ["verified", "verified"]
    assert all(each["public_key"] in key.with_suffix(".pub").read_text() for each in signatures)
    data = file.read_bytes()
    file.write_bytes(data.replace(b"not the build", b"now the build"))
    assert instance.run("evidence", "verify", str(file)).returncode == 1
