"""JSON lines and reports: whole, in order, and with text of agents as data."""

import json
import stat

import pytest

from tests.outside import needs_sandbox, outside_only
from whisper_tui.export import call_pages
from whisper_tui.export.call_pages import oldest_first, sessions_named
from whisper_tui.export.document import ExportSelection, document, save
from whisper_tui.export.markdown import block, in_code, plain_output
from whisper_tui.model.decision import Approve, Deny
from whisper_tui.model.errors import InvalidRequest, Refused
from whisper_tui.model.run import Sandbox

pytestmark = outside_only

ROUGH = "`` <b>x</b> ``` [a](http://b) \x1b[2J\u202e @you\n# heading\n```\n</pre>"


async def text_of(desk, wanted, form):
    known = {desk.session.id: desk.session}
    return "".join([text async for text in document(desk.port, wanted, form, known)])


async def test_json_lines_tell_every_call_in_the_order_in_which_they_came(desk, monkeypatch):
    monkeypatch.setattr(call_pages, "PAGE", 3)
    ids = [await desk.submit("echo", str(number)) for number in range(8)]
    rows = [json.loads(line) for line in (await text_of(desk, ExportSelection(), "jsonl")).splitlines()]
    assert [row["id"] for row in rows] == ids
    assert [row["command"] for row in rows] == [["echo", str(number)] for number in range(8)]
    assert {row["session"] for row in rows} == {"agent"}


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 6, 7])
async def test_pages_are_put_together_without_a_hole_or_a_double(desk, monkeypatch, number):
    monkeypatch.setattr(call_pages, "PAGE", 3)
    ids = [await desk.submit("true") for _ in range(number)]
    assert [record.id async for record in oldest_first(desk.port)] == ids
    assert [record.id async for record in oldest_first(desk.port, desk.session.id)] == ids


async def test_json_lines_hold_nothing_that_a_terminal_obeys(desk):
    await desk.submit(text=ROUGH + "\x7f")
    text = await text_of(desk, ExportSelection(), "jsonl")
    assert text.isascii() and text.removesuffix("\n").isprintable()
    assert json.loads(text)["command"] == ROUGH + "\x7f"


async def test_a_session_is_found_by_its_name_and_by_its_id(desk):
    await desk.submit("true")
    assert await sessions_named(desk.port, "agent") == (desk.session,)
    assert await sessions_named(desk.port, desk.session.id) == (desk.session,)
    with pytest.raises(InvalidRequest, match="no session 'nobody'"):
        await sessions_named(desk.port, "nobody")


async def test_a_report_tells_what_was_decided_what_ran_and_what_came_of_it(desk):
    await desk.run(text="echo all is well; exit 4")
    denied = await desk.submit("rm", "-r", "build")
    await desk.decide(denied, Deny(reason="keep it"))
    edited = await desk.submit("echo", "one")
    spec = (await desk.port.record(edited)).call.spec
    command = spec.command.model_copy(update={"args": ("two",)})
    await desk.decide(edited, Approve(edited=spec.model_copy(update={"command": command})))
    await desk.port.outcome(edited)
    await desk.submit("true")
    text = await text_of(desk, ExportSelection(sessions=(desk.session,)), "markdown")
    assert text.startswith("# Session `agent`\n")
    assert "4 calls; a human was asked about 4: 2 approved (1 of them edited), 1 denied, 1 still waiting" in text
    assert "### Call 1: exit code 4" in text and "```sh\necho all is well; exit 4\n```" in text
    assert "Output:\n\n```text\nall is well\n```" in text
    assert "### Call 2: denied" in text and "Because: `keep it`" in text
    assert "Asked:\n\n```text\necho one\n```" in text
    assert "as a human edited it:\n\n```text\necho two\n```" in text
    assert "### Call 4: waiting" in text
    assert "Median time from a call's arrival" in text


@needs_sandbox
async def test_a_report_and_json_lines_tell_the_sandbox_and_what_it_blocked(desk):
    call_id = await desk.submit(text="touch 'a`b'")
    await desk.decide(call_id, Approve(sandbox=Sandbox()))
    await desk.until(call_id, "ended")
    report = await text_of(desk, ExportSelection(calls=(call_id,)), "markdown")
    path = f"{desk.session.root}/a`b"
    assert "* Sandbox: read-only, no network\n" in report
    assert f"* Blocked by its sandbox: it ``tried to write {path}``\n" in report
    (row,) = [
        json.loads(line) for line in (await text_of(desk, ExportSelection(calls=(call_id,)), "jsonl")).splitlines()
    ]
    assert (row["sandbox"]["kind"], row["blocked"]["words"]) == ("read-only", f"tried to write {path}")


async def test_a_report_holds_text_of_agents_in_code_that_it_cannot_leave(desk):
    await desk.submit(text=ROUGH)
    text = await text_of(desk, ExportSelection(sessions=(desk.session,)), "markdown")
    assert "\x1b" not in text and "\u202e" not in text
    assert block(ROUGH, "sh") in text


def test_a_fence_is_longer_than_any_within():
    assert block("a\n````\nb") == "`````text\na\n````\nb\n`````\n"
    assert in_code("a `` b") == "```a `` b```"
    assert in_code("`a") == "`` `a ``"
    assert in_code("a\nb") == "`a␊b`"
    assert in_code("") == "`   `"


def test_output_is_shown_without_colours_and_as_it_was_left():
    assert plain_output(b"\x1b[31mred\x1b[0m\r\n10%\r50%\r99%\ndone\xff\n") == "red\n99%\ndone\ufffd\n"


async def test_a_recording_is_of_one_call_and_a_report_of_something(desk):
    with pytest.raises(InvalidRequest, match="one call"):
        await text_of(desk, ExportSelection(calls=("1", "2")), "asciicast")
    with pytest.raises(InvalidRequest, match="session or about calls"):
        await text_of(desk, ExportSelection(), "markdown")


async def test_a_file_is_private_and_replaced_only_when_all_is_written(desk, tmp_path):
    await desk.submit("true")
    path = tmp_path / "calls.jsonl"
    path.write_text("before")
    size = await save(document(desk.port, ExportSelection(), "jsonl", {}), path)
    assert path.stat().st_size == size and stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = path.read_text()
    with pytest.raises(InvalidRequest):
        await save(document(desk.port, ExportSelection(), "asciicast", {}), path)
    assert path.read_text() == kept
    assert [file.name for file in tmp_path.glob(".calls*")] == []
    with pytest.raises(Refused, match="cannot be written"):
        await save(document(desk.port, ExportSelection(), "jsonl", {}), tmp_path / "missing" / "file")


async def test_output_that_was_removed_is_told_as_removed_in_every_form(desk, tmp_path):
    record = await desk.run("echo", "hello")
    kept = json.loads(await text_of(desk, ExportSelection(calls=(record.id,)), "jsonl"))
    assert kept["output_removed"] is False
    (attempt,) = (tmp_path / "state" / "runs").glob(f"{record.id}.*")
    for file in attempt.iterdir():
        if file.is_file():
            file.unlink()
    told = json.loads(await text_of(desk, ExportSelection(calls=(record.id,)), "jsonl"))
    assert (told["output_removed"], told["output"]["out"]) == (True, 6)
    report = await text_of(desk, ExportSelection(calls=(record.id,)), "markdown")
    assert "Its output was removed from the disk" in report and "Output:" not in report
    with pytest.raises(Refused, match="was removed from the disk"):
        await text_of(desk, ExportSelection(calls=(record.id,)), "asciicast")
