"""What is exported stays data: in JSON lines, in recordings, in reports, and on the page that shows the cockpit."""

import json
import re

import pytest
from markdown_it import MarkdownIt

from tests.fuzz.profile import LONG
from tests.hostile.adversarial import Adversary
from tests.hostile.texts import HUGE, LINES, TEXTS, each_of
from whisper_tui.cli.web_server import headers, page
from whisper_tui.export.document import ExportFormat, ExportSelection, block, document
from whisper_tui.model.call import Argv, Shell
from whisper_tui.model.text import is_hidden, visible

ALL = {**TEXTS, "lines": LINES}
each_text = each_of(ALL)
BEYOND_THE_SCREEN = re.compile(r"\x1b[\]PX^_Z]|[\x05\x07\x90\x98\x9d-\x9f]|\x1b\[[0-?]*[ -/]*[cntq]")
OURS = {"heading_open", "inline", "heading_close", "bullet_list_open", "bullet_list_close", "list_item_open"}
FENCE = "`" * 20
OURS |= {"list_item_close", "paragraph_open", "paragraph_close", "fence", "text", "code_inline", "softbreak"}


async def exported(adversary: Adversary, wanted: ExportSelection, form: ExportFormat) -> str:
    known = {"s1": adversary.session}
    return "".join([part async for part in document(adversary.scenario.supervisor, wanted, form, known)])


def adversarial_run(text: str) -> tuple[Adversary, str]:
    adversary = Adversary(text)
    call_id = adversary.ask(Shell(text=f"run {text}"))
    adversary.run(call_id, f"printed {text}\n")
    adversary.scenario.supervisor.finish(call_id)
    adversary.endings()
    return adversary, call_id


@each_text
async def test_json_lines_are_one_object_a_line_and_hold_what_was_asked(text: str) -> None:
    adversary, call_id = adversarial_run(text)
    lines = (await exported(adversary, ExportSelection(), "jsonl")).removesuffix("\n").split("\n")
    rows = [json.loads(line) for line in lines]
    assert not any(map(is_hidden, "".join(lines)))
    assert len(rows) == 5
    assert rows[0]["id"] == call_id
    assert rows[0]["session"] == f"name {text}"


@each_text
@pytest.mark.parametrize("form", ["asciicast", "asciicast3"])
async def test_a_recording_draws_and_does_nothing_else(text: str, form: ExportFormat) -> None:
    adversary, call_id = adversarial_run(text)
    head, *events = map(json.loads, (await exported(adversary, ExportSelection(calls=(call_id,)), form)).splitlines())
    assert not any(is_hidden(character) for value in head.values() for character in str(value))
    assert [event for event in events if len(event) != 3 or BEYOND_THE_SCREEN.search(event[2])] == []


@each_text
async def test_a_report_has_no_markup_but_its_own(text: str) -> None:
    adversary, _ = adversarial_run(text)
    adversary.ask(Argv(program=f"program {text}", args=(text,)))
    report = await exported(adversary, ExportSelection(sessions=(adversary.session,)), "markdown")
    tokens = MarkdownIt("commonmark").parse(report)
    kinds = {inner.type for token in tokens for inner in (token, *(token.children or ()))}
    assert kinds <= OURS
    assert not any(is_hidden(character) for character in report.replace("\n", ""))
    code = [inner.content for token in tokens for inner in (token, *(token.children or ())) if "code" in inner.type]
    assert {visible(f"name {text}"), visible(f"says {text}"), visible(f"/cwd {text}")} <= set(code)
    titles = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert len([title for title in titles if not title.startswith("Call ")]) == 2


def test_a_block_of_a_report_is_not_left_by_what_is_in_it() -> None:
    (fence,) = MarkdownIt("commonmark").parse(block(f"one\n```\n# two\n{FENCE}\n<b>"))
    assert fence.type == "fence"
    assert fence.content.endswith("<b>\n")


@pytest.mark.slow
async def test_a_report_about_endless_text_is_written() -> None:
    adversary, _ = adversarial_run(HUGE["a million controls"] if LONG else "\x1b[2J" * 30_000 + "END")
    assert "END" in await exported(adversary, ExportSelection(sessions=(adversary.session,)), "markdown")


def test_the_page_of_the_cockpit_contains_no_agent_text_and_only_its_own_script() -> None:
    assert page("127.0.0.1:1", "token").count("<script") == 1
    assert "script-src 'self';" in headers("127.0.0.1:1")["Content-Security-Policy"]
