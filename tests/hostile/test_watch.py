"""What is read out in the text mode is what was asked, to its last letter."""

from tests.hostile.adversarial import Adversary
from tests.hostile.texts import TEXTS, each_of
from whisper_tui.cli.watch_text import DRAWN, asks, happened, in_full
from whisper_tui.model.call import Argv, Shell
from whisper_tui.model.text import is_hidden, visible


def told(adversary: Adversary, call_id: str) -> list[str]:
    """All that is said about a call, from its arrival on."""
    supervisor = adversary.scenario.supervisor
    news = [line for event in supervisor.events if (line := happened(event, supervisor.board)) is not None]
    record = supervisor.board.calls[call_id]
    return [*news, *asks(record, supervisor.board, 1), *in_full(record, supervisor.board, adversary.scenario.clock())]


@each_of(TEXTS)
def test_every_field_is_read_out_letter_by_letter(text: str, adversary: Adversary) -> None:
    for command in (Argv(program=f"program {text}", args=(text,)), Shell(text=f"run {text}")):
        lines = told(adversary, adversary.ask(command))
        said = "\n".join(lines)
        assert not any(is_hidden(character) for line in lines for character in line)
        for word in ("says", "risk", "reason", "name", "/cwd", "tool", "value"):
            assert visible(f"{word} {text}") in said


def test_every_ending_is_read_out_letter_by_letter() -> None:
    adversary = Adversary(" ".join(TEXTS.values()))
    for call_id, word in zip(adversary.endings(), ("failed", "withdrawn", "lost", "denied"), strict=True):
        assert visible(f"{word} {adversary.text}") in "\n".join(told(adversary, call_id))


def test_signs_are_only_left_out_where_they_are_not_the_agents() -> None:
    adversary = Adversary("x")
    call_id = adversary.ask(Shell(text=f"{DRAWN} rm"), description=f"{DRAWN} ok")
    board = adversary.scenario.supervisor.board
    said = list(in_full(board.calls[call_id], board, adversary.scenario.clock()))
    assert {f"{DRAWN} rm", f"{DRAWN} ok"} <= set(said)


def test_a_long_argv_is_read_out_whole_before_it_is_approved() -> None:
    adversary = Adversary("x")
    argv = Argv(program="ls", args=(*("a" * 40 for _ in range(100)), "END"))
    record = adversary.scenario.supervisor.board.calls[adversary.ask(argv)]
    assert any(line.endswith("END") for line in asks(record, adversary.scenario.supervisor.board, 1))
