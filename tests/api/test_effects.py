"""Effects of a call through the API: in process, over the socket and in memory."""

import asyncio
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Event

import pytest

from tests.api.conftest import Harness
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.effects import CodeEffect
from whisper_tui.model.errors import Refused, UnknownCall
from whisper_tui.model.verdict import RunCode
from whisper_tui.supervisor.approvals.command_files import ApprovedScripts
from whisper_tui.supervisor.queries import DiskThread


async def test_the_effects_of_a_waiting_call_are_stated_and_nothing_of_it_runs(harness: Harness) -> None:
    root = Path(harness.session.root)
    (root / "app.conf").write_text("rate = 10\n")
    call_id = await harness.submit(text="echo 'rate = 20' > app.conf; touch ran; ssh prod.example true")
    effects = await harness.api.effects(call_id)
    written, touched = effects.files
    assert (written.action, written.path, written.before, written.size) == (
        "writes",
        str(root / "app.conf"),
        "file",
        10,
    )
    assert written.diff is not None and written.diff.text == "@@ -1 +1 @@\n-rate = 10\n+rate = 20\n"
    assert (touched.path, touched.before) == (str(root / "ran"), "absent")
    assert [host.host for host in effects.hosts] == ["prod.example"]
    assert (root / "app.conf").read_text() == "rate = 10\n" and not (root / "ran").exists()


async def test_a_call_that_has_started_has_no_effects_ahead(harness: Harness) -> None:
    call_id = await harness.submit(text="true")
    await harness.decide(call_id, Approve())
    await harness.api.outcome(call_id)
    with pytest.raises(Refused, match="has started"):
        await harness.api.effects(call_id)
    with pytest.raises(UnknownCall):
        await harness.api.effects("999")


async def approved(harness: Harness, text: str) -> str:
    call_id = await harness.submit(text=text)
    await harness.decide(call_id, Approve())
    await harness.api.outcome(call_id)
    return call_id


async def code_of_next(harness: Harness, text: str) -> CodeEffect:
    """The first piece of code of another call, once the supervisor has kept what was approved."""
    call_id = await harness.submit(text=text)
    async with asyncio.timeout(60):
        while True:
            code = (await harness.api.effects(call_id)).code[0]
            if code.approved_in is not None:
                return code
            await asyncio.sleep(0.1)


async def test_the_next_call_shows_what_has_changed_in_a_script_since_it_was_approved(harness: Harness) -> None:
    script = Path(harness.session.root) / "deploy.sh"
    script.write_text("echo one\necho two\n")
    first = await approved(harness, "sh deploy.sh")
    code = await code_of_next(harness, "sh ./deploy.sh")
    assert (code.approved_in, code.changed, code.since) == (first, False, None)
    script.write_text("echo one\nrm -rf two\n")
    code = await code_of_next(harness, "sh deploy.sh; true")
    assert (code.approved_in, code.changed) == (first, True)
    assert code.since is not None
    assert code.since.text == "@@ -1,2 +1,2 @@\n echo one\n-echo two\n+rm -rf two\n"


async def test_scripts_of_other_languages_and_files_of_tasks_are_compared_as_well(harness: Harness) -> None:
    root = Path(harness.session.root)
    (root / "tool.py").write_text("print(1)\n")
    (root / "Makefile").write_text("x:\n\t@true\n")
    for text, path in (("python3 tool.py", root / "tool.py"), ("make x || true", root / "Makefile")):
        await approved(harness, text)
        path.write_text(path.read_text() + "# more\n")
        code = await code_of_next(harness, f"{text}; true")
        assert code.changed and code.since is not None and code.since.added == 1


async def test_a_script_that_was_denied_is_not_taken_for_an_approved_one(harness: Harness) -> None:
    (Path(harness.session.root) / "deploy.sh").write_text("echo one\n")
    call_id = await harness.submit(text="sh deploy.sh")
    await harness.decide(call_id, Deny())
    again = await harness.submit(text="sh deploy.sh; true")
    (code,) = (await harness.api.effects(again)).code
    assert code.approved_in is None


@pytest.mark.slow
def test_the_store_of_approved_scripts_is_private_and_bounded(tmp_path: Path) -> None:
    store = ApprovedScripts(str(tmp_path / "store"))
    for number in range(600):
        script = tmp_path / f"{number}.sh"
        script.write_text(f"echo {number}\n" + "#" * 20_000)
        digest = sha256(script.read_bytes()).hexdigest()[:16]
        store.keep(str(number), [RunCode(name="x", path=str(script), digest=digest)])
    kept = list((tmp_path / "store").iterdir())
    assert sum(path.stat().st_size for path in kept) <= 4 << 20
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o700
    newest = store.find(str(tmp_path / "599.sh"))
    assert newest is not None and newest.call_id == "599"
    assert store.find(str(tmp_path / "0.sh")) is None


def test_a_script_that_has_changed_since_it_was_judged_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("rm -rf /\n")
    store = ApprovedScripts(str(tmp_path / "store"))
    store.keep("1", [RunCode(name="x", path=str(tmp_path / "x.sh"), digest="0" * 16)])
    assert store.find(str(tmp_path / "x.sh")) is None


async def test_a_hanging_disk_blocks_one_thread_and_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whisper_tui.supervisor.queries.DISK_PATIENCE_S", 0.1)
    disk, hung = DiskThread(), Event()
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await disk.run(hung.wait)
    assert threading.active_count() == before + 1
    hung.set()
    async with asyncio.timeout(60):
        while True:
            with suppress(TimeoutError):
                assert await disk.run(lambda: "answer") == "answer"
                return
