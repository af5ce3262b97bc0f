"""What a run has printed has a digest in the journal, which a later change of the files does not fit."""

from pathlib import Path

import pytest

from tests.supervisor.engine.conftest import Engine
from whisper_tui.model.event import EVENT, Settled
from whisper_tui.supervisor.runs import output_files
from whisper_tui.supervisor.runs.executor import HasSettled, RunKey
from whisper_tui.supervisor.runs.output_files import SMALL, RecordedOutput
from whisper_tui.system import run_files


async def told(engine: Engine, key: RunKey) -> str:
    made = (await engine.seen(key, HasSettled)).digest
    assert made is not None and made.attempt == key.attempt
    return made.sha256


def now(engine: Engine, key: RunKey) -> str:
    made = RecordedOutput(str(engine.runs), key).digest()
    assert made is not None
    return made.sha256


@pytest.mark.parametrize("bytes_", [0, 5, SMALL + 1, 3_000_000])
async def test_a_settled_run_tells_the_digest_of_short_and_long_output(engine: Engine, bytes_: int) -> None:
    key = await engine.run(f"head -c {bytes_} /dev/zero; echo problem >&2")
    noted = await told(engine, key)
    assert noted == now(engine, key)
    for stream in (run_files.OUT, run_files.ERR):
        path = engine.runs / f"{key.call_id}.1" / stream
        kept = path.read_bytes() if path.exists() else b""
        path.write_bytes(kept[:-1] + b"x")
        assert now(engine, key) != noted
        path.write_bytes(kept)
        if not kept:
            path.unlink()
    assert now(engine, key) == noted


async def test_head_and_tail_that_are_kept_of_endless_output_are_in_the_digest(engine: Engine) -> None:
    key = await engine.run("head -c 1000000 /dev/zero", max_output_bytes=65_536)
    noted = await told(engine, key)
    tail = engine.runs / f"{key.call_id}.1" / (run_files.OUT + run_files.TAIL_SUFFIX)
    tail.write_bytes(b"x" * tail.stat().st_size)
    assert now(engine, key) != noted


def test_the_digest_of_very_long_output_covers_head_tail_and_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_files, "READ_WHOLE", 100)
    out = tmp_path / "1.1" / run_files.OUT
    out.parent.mkdir()

    def of(data: bytes) -> object:
        out.write_bytes(data)
        return RecordedOutput(str(tmp_path), RunKey("1", 1)).digest()

    noted = of(b"a" * 1000)
    assert of(b"a" * 1001) != noted
    assert of(b"x" + b"a" * 999) != noted
    assert of(b"a" * 999 + b"x") != noted
    assert of(b"a" * 500 + b"x" + b"a" * 499) == noted, "the page about the audit trail says so"


def test_without_files_there_is_no_digest_and_a_journal_without_digests_is_read(tmp_path: Path) -> None:
    assert RecordedOutput(str(tmp_path), RunKey("1", 1)).digest() is None
    old = EVENT.validate_json('{"seq":7,"at":1.0,"kind":"settled","call_id":"3"}')
    assert isinstance(old, Settled) and old.digest is None


async def test_a_command_that_puts_a_pipe_in_the_place_of_its_output_stops_nobody(engine: Engine) -> None:
    key = await engine.run(f"cd {engine.runs}/*.1 && rm -f out err && mkfifo out err")
    noted = await told(engine, key)
    output = RecordedOutput(str(engine.runs), key)
    assert now(engine, key) == noted
    assert [(name, data) for name, data in output.contents(100)] == [("out", b""), ("err", b"")]
