"""What an approved command is given to run is the same when it starts, and while its approval is remembered."""

import mmap
import os

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.model.verdict import Resolved
from whisper_tui.supervisor.approvals.command_files import changed_files
from whisper_tui.supervisor.approvals.resolve import resolve


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("true; " * 40 + "bash s.sh", "s.sh"),
        ("true; " * 40 + "python3 p.py", "p.py"),
        ("node -r ./pre.js a.js", "pre.js"),
        ("node -r./pre.js a.js", "pre.js"),
        ("node --require=./pre.js a.js", "pre.js"),
        ("node -r ./pre.js a.js", "a.js"),
        ("python3 -W ignore p.py", "p.py"),
        ("awk -f s.awk data", "s.awk"),
        ("awk -fs.awk data", "s.awk"),
        ("bash < s.sh", "s.sh"),
        ("cat s.sh | bash", "s.sh"),
        ("cat s.sh | sudo sh -s x", "s.sh"),
        ("sudo bash s.sh", "s.sh"),
        ("timeout 5 ./s.sh", "s.sh"),
        ("source ./s.sh && ls", "s.sh"),
        ("bash -c 'bash s.sh'", "s.sh"),
    ],
)
def test_a_script_that_is_rewritten_is_noticed(tmp_path, text: str, script: str) -> None:
    for name in ("s.sh", "p.py", "pre.js", "a.js", "ignore", "s.awk", "data"):
        (tmp_path / name).write_text("echo a\n")
        (tmp_path / name).chmod(0o755)

    def look() -> Resolved:
        spec = CommandSpec(command=Shell(text=text), cwd=str(tmp_path))
        return resolve(spec, {"PATH": "/usr/bin:/bin", "HOME": "/root"})

    before = look()
    assert list(changed_files(before, look())) == []
    (tmp_path / script).write_text("echo b\n")
    assert str(tmp_path / script) in {os.path.normpath(path) for path in changed_files(before, look())}


def test_a_content_that_changes_without_the_times_is_noticed(tmp_path) -> None:
    script = tmp_path / "mm.sh"
    script.write_text("echo a\n")
    spec = CommandSpec(command=Shell(text="bash mm.sh"), cwd=str(tmp_path))
    environment = {"PATH": "/usr/bin:/bin"}
    with script.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[5:6] = b"b"
        before = resolve(spec, environment)
        mapped[5:6] = b"c"
        after = resolve(spec, environment)
    assert str(script) in set(changed_files(before, after))


def test_text_that_awk_reads_is_not_a_script(tmp_path) -> None:
    (tmp_path / "data").write_text("a")
    spec = CommandSpec(command=Shell(text="awk '{print}' data"), cwd=str(tmp_path))
    assert resolve(spec, {"PATH": "/usr/bin:/bin"}).contents == {}


async def test_an_exact_approval_applies_only_while_the_script_is_unchanged(bench: Bench) -> None:
    script = bench.workspace / "test.sh"
    script.write_text("#!/bin/sh\necho a\n")
    script.chmod(0o755)
    session = await bench.session(environment={"PATH": "/usr/bin:/bin"})
    first = await bench.submit(session, text="./test.sh")
    await bench.approve(first, remember="exact_for_session")
    (grant,) = await bench.supervisor.grants(session)
    assert [os.path.normpath(path) for path in grant.files] == [str(script)]
    again = await bench.record(await bench.submit(session, text="./test.sh"))
    assert again.verdict is not None and again.verdict.kind == "allow"
    script.write_text("#!/bin/sh\necho b\n")
    changed = await bench.record(await bench.submit(session, text="./test.sh"))
    assert changed.verdict is not None and changed.verdict.kind == "ask"
