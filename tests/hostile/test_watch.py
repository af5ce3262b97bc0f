"""What is read out in the text mode is what was asked, to its last letter."""

from tests.hostile.evil import Evil
from tests.hostile.texts import TEXTS, each_of
from whisper_tui.cli.watch_words import DRAWN, asks, happened, in_full
from whisper_tui.model.command import Argv, Shell
from whisper_tui.model.text import is_hidden, visible


def told(evil: Evil, call_id: str) -> list[str]:
    """All that is said about a call, from its arrival on."""
    stage = evil.play.stage
    news = [line for event in stage.events if (line := happened(event, stage.board)) is not None]
    record = stage.board.calls[call_id]
    return [*news, *asks(record, stage.board, 1), *in_full(record, stage.board, evil.play.clock())]


@each_of(TEXTS)
def test_every_field_is_read_out_letter_by_letter(text: str, evil: Evil) -> None:
    for command in (Argv(program=f"program {text}", args=(text,)), Shell(text=f"run {text}")):
        lines = told(evil, evil.ask(command))
        said = "\n".join(lines)
        assert not any(is_hidden(character) for line in lines for character in line)
        for word in ("says", "risk", "reason", "name", "/cwd", "tool", "value"):
            assert visible(f"{word} {text}") in said


def test_every_ending_is_read_out_letter_by_letter() -> None:
    evil = Evil(" ".join(TEXTS.values()))
    for call_id, word in zip(evil.endings(), ("failed", "withdrawn", "lost", "denied"), strict=True):
        assert visible(f"{word} {evil.text}") in "\n".join(told(evil, call_id))


def test_signs_are_only_left_out_where_they_are_not_the_agents() -> None:
    evil = Evil("x")
    call_id = evil.ask(Shell(text=f"{DRAWN} rm"), description=f"{DRAWN} ok")
    board = evil.play.stage.board
    said = list(in_full(board.calls[call_id], board, evil.play.clock()))
    assert {f"{DRAWN} rm", f"{DRAWN} ok"} <= set(said)


def test_a_long_argv_is_read_out_whole_before_it_is_approved() -> None:
    evil = Evil("x")
    record = evil.play.stage.board.calls[evil.ask(Argv(program="ls", args=(*("a" * 40 for _ in range(100)), "END")))]
    assert any(line.endswith("END") for line in asks(record, evil.play.stage.board, 1))
