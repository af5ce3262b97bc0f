"""Answers fit what a client shows its model: the head and the tail stay, and between them is said where the rest is."""

import json
from dataclasses import replace

import pytest

from tests.rows import each_row
from tests.tools.recorded import Recorded
from tests.tools.test_execute_command import tool_over
from whisper_tui.tools import RunShellCommandTool
from whisper_tui.tools.agent_text import OutputBudget, shortened


def in_room(tool, room):
    tool._context = replace(tool._context, output_budget=lambda: room)
    return tool


async def answered(supervision, room, kind=None, root="/"):
    tool = tool_over(supervision)
    if kind is not None:
        context = tool._context
        tool = kind(replace(context, session=context.session.model_copy(update={"root": str(root)})))
    return await in_room(tool, room).call({"command": "x"})


@pytest.mark.parametrize(
    "output",
    [b"line of output\n" * 20_000, b"\x00\x01" * 50_000, "😀\n".encode() * 30_000, b'"' * 100_000],
    ids=["lines", "control characters", "wide characters", "quotes"],
)
@pytest.mark.parametrize(
    "room",
    [OutputBudget(11_000), OutputBudget(48 * 1024, in_bytes=True), OutputBudget(50_000, in_bytes=True, lines=1_900)],
)
@pytest.mark.parametrize("kind", [None, RunShellCommandTool])
async def test_every_answer_fits_the_budget_as_text_and_as_data(output, room, kind, tmp_path):
    answer = await answered(Recorded(out=output, err=output), room, kind, tmp_path)
    filled = room.filled(answer.text, json.dumps(answer.result, ensure_ascii=False))
    assert 0.5 < filled <= 1.0
    for stream in ("stdout", "stderr"):
        assert "bytes are left out here; all of it is in /runs/1/" in answer.result[stream]


async def test_both_ends_stay_with_the_size_of_the_gap():
    output = b"first" + b"." * 99_990 + b"last!"
    text = (await answered(Recorded(out=output), OutputBudget(11_000))).result["stdout"]
    assert text.startswith("first") and text.endswith("last!")
    said = int(text.split("[whisper_tui: ")[1].split(" bytes")[0].replace(",", ""))
    assert said + text.count(".") == 99_990


async def test_without_an_output_budget_an_answer_is_complete():
    answer = await tool_over(Recorded(out=b"x" * 20_000_000)).call({"command": "x"})
    assert len(answer.result["stdout"]) == 20_000_000


async def test_a_short_answer_is_left_alone():
    answer = await answered(Recorded(out=b"hi\n"), OutputBudget(11_000))
    assert answer.result["stdout"] == "hi\n"


@each_row("size", [1, 200, 5_000])
def test_a_text_without_a_shape_is_cut_in_its_middle_and_says_how_much_is_missing(size):
    text = "a" * 10_000 + "z" * 10_000
    short = shortened(text, OutputBudget(5_000), "look elsewhere")
    assert len(short) <= 5_000
    assert short.startswith("a") and short.endswith("z")
    assert "characters are left out here; look elsewhere]" in short
    assert shortened("b" * size, OutputBudget(5_000), "") == "b" * size


def test_a_long_sentence_beside_the_answer_takes_its_part_of_the_room_and_never_more_than_half():
    assert OutputBudget(1_000).less("x" * 100) == OutputBudget(900)
    assert OutputBudget(1_000).less("x" * 900) == OutputBudget(500)
    assert OutputBudget(1_000).less(None) == OutputBudget(1_000)
