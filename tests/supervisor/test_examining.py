"""Commands are examined beside the event loop: slow and large files delay nobody else and reorder nothing."""

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.conftest import Bench
from whisper_tui.model.ending import Denied
from whisper_tui.model.errors import Refused, Unavailable
from whisper_tui.model.event import Submitted
from whisper_tui.model.state import Ended
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.supervisor.approvals import command_files, expand, judge
from whisper_tui.supervisor.approvals.command_files import contents_of
from whisper_tui.supervisor.approvals.resolve import resolve


class SlowDisk:
    """A disk that answers about commands with a word only once it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
        self.answers = threading.Event()
        self.asked = threading.Event()

        def slowly(spec: Any, *more: Any, **named: Any) -> Resolved:
            if word in spec.command.text:
                self.asked.set()
                assert self.answers.wait(60)
            return resolve(spec, *more, **named)

        monkeypatch.setattr(judge, "resolve", slowly)

    async def is_asked(self) -> None:
        async with asyncio.timeout(60):
            while not self.asked.is_set():
                await asyncio.sleep(0.005)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    made = SlowDisk(monkeypatch, "slow")
    yield made
    made.answers.set()


async def test_a_command_whose_files_are_slow_to_read_delays_no_other_session(bench: Bench, disk: SlowDisk) -> None:
    one, other = await bench.session(), await bench.session("other")
    slow = asyncio.create_task(bench.submit(one, text="./slow.sh"))
    await disk.is_asked()
    answered = await bench.record(await bench.submit(other, text="make"))
    assert answered.verdict is not None and answered.state.kind == "waiting"
    assert not slow.done()
    disk.answers.set()
    assert (await bench.record(await slow)).state.kind == "waiting"


async def test_calls_of_a_session_keep_their_order(bench: Bench, disk: SlowDisk) -> None:
    session = await bench.session()
    heard: list[str] = []
    bench.supervisor.listen(
        lambda event: heard.append(event.call.spec.command.text) if isinstance(event, Submitted) else None
    )
    texts = ["./slow.sh", *(f"make {number}" for number in range(5))]
    made = []
    for text in texts:
        made.append(asyncio.create_task(bench.submit(session, text=text)))
        await asyncio.sleep(0)
    await disk.is_asked()
    assert not any(task.done() for task in made)
    disk.answers.set()
    ids = [int(each) for each in await asyncio.gather(*made)]
    assert ids == sorted(ids)
    assert heard == texts


async def test_a_call_that_is_withdrawn_while_its_files_are_read_leaves_nothing_behind(
    bench: Bench, disk: SlowDisk
) -> None:
    session = await bench.session()
    slow = asyncio.create_task(bench.submit(session, text="./slow.sh"))
    await disk.is_asked()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert await bench.submit(session, text="make") == "1"


async def test_a_session_that_was_closed_meanwhile_submits_nothing(bench: Bench, disk: SlowDisk) -> None:
    session = await bench.session()
    slow = asyncio.create_task(bench.submit(session, text="./slow.sh"))
    await disk.is_asked()
    await bench.supervisor.close_session(session, "gone")
    disk.answers.set()
    with pytest.raises(Refused, match="is closed"):
        await slow
    assert not bench.supervisor.board.calls


async def test_a_request_that_is_repeated_while_its_files_are_read_is_one_call(bench: Bench, disk: SlowDisk) -> None:
    session = await bench.session()
    twice = [asyncio.create_task(bench.submit(session, text="./slow.sh", key="k")) for _ in range(2)]
    await disk.is_asked()
    disk.answers.set()
    assert await asyncio.gather(*twice) == ["1", "1"]


async def test_a_command_whose_turn_comes_while_the_supervisor_stops_is_refused(bench: Bench, disk: SlowDisk) -> None:
    session = await bench.session()
    slow = asyncio.create_task(bench.submit(session, text="./slow.sh"))
    await disk.is_asked()
    late = asyncio.create_task(bench.submit(session, text="make"))
    await asyncio.sleep(0)
    await bench.supervisor.close()
    disk.answers.set()
    await asyncio.wait({slow, late})
    slow.exception()
    with pytest.raises(Unavailable, match="the supervisor is stopping"):
        late.result()


async def test_an_error_while_a_command_is_examined_refuses_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Resolved:
        raise ValueError("a defect")

    monkeypatch.setattr(judge, "resolve", fail)
    record = await bench.record(await bench.submit(await bench.session(), text="make"))
    assert isinstance(record.state, Ended) and isinstance(record.state.ending, Denied)
    assert "failed while it judged" in record.state.ending.reason


async def test_a_fifo_and_a_huge_file_are_judged_without_being_read(bench: Bench) -> None:
    os.mkfifo(bench.workspace / "fifo.sh", 0o755)
    for name in ("huge.sh", "Makefile", "package.json"):
        with open(bench.workspace / name, "wb") as file:
            file.truncate(1 << 30)
    session = await bench.session()
    texts = ["./fifo.sh", "bash fifo.sh", "sh < fifo.sh", "bash huge.sh", "make", "npm run build", "cat fifo.sh"]
    async with asyncio.timeout(60):
        for text in texts:
            assert (await bench.record(await bench.submit(session, text=text))).state.kind == "waiting", text


async def test_file_names_that_are_no_text_do_not_hinder_the_judgement(bench: Bench) -> None:
    await bench.restart(Rules(read_only=True))
    workspace = os.fsencode(bench.workspace)
    for name in (b"a\xff.py", b"b.txt"):
        with open(os.path.join(workspace, name), "wb"):
            pass
    os.symlink(b"a\xff.py", os.path.join(workspace, b"link"))
    session = await bench.session()
    for text in ("ls *.py", 'for f in *.py; do wc -l "$f"; done', "rm *.py"):
        assert (await bench.record(await bench.submit(session, text=text))).state.kind == "waiting", text
    for text in ("ls *.txt", "cat link"):
        record = await bench.record(await bench.submit(session, text=text))
        assert record.verdict is not None and record.verdict.kind == "allow", text


async def test_a_pattern_in_a_directory_of_many_files_is_given_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expand, "MOST_ENTRIES", 50)
    await bench.restart(Rules(read_only=True))
    (bench.workspace / "many").mkdir()
    for number in range(60):
        (bench.workspace / "many" / str(number)).touch()
    record = await bench.record(await bench.submit(await bench.session(), text="ls many/*"))
    assert record.state.kind == "waiting" and record.resolved is not None and record.resolved.literal is None


def test_only_so_many_bytes_of_scripts_are_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(tmp_path / str(number)) for number in range(4)]
    for path in paths:
        Path(path).write_bytes(b"x" * 1000)
    whole = contents_of(paths)
    assert len(set(whole.values())) == 1
    monkeypatch.setattr(command_files, "MOST_DIGESTED", 2500)
    some = contents_of(paths)
    assert [some[path] == whole[path] for path in paths] == [True, True, False, False]
    Path(paths[3]).write_bytes(b"y" * 1000)
    assert contents_of(paths)[paths[3]] != some[paths[3]]
