"""Sessions that are open at the same time have different names, on every surface and for as long as they last."""

from tests.supervisor.conftest import Bench
from whisper_tui.model.call import LONGEST_NAME, ClientInfo
from whisper_tui.present.call_text import session_paragraphs
from whisper_tui.present.session_text import session_label


async def names(bench: Bench, *sessions: str) -> list[str]:
    return [bench.supervisor.board.sessions[session].name for session in sessions]


async def test_a_number_stands_before_the_client_where_narrow_lists_keep_it(bench: Bench) -> None:
    sessions = [await bench.session("shop (claude-code)", key=f"claude-code {each}") for each in "abc"]
    assert await names(bench, *sessions) == ["shop (claude-code)", "shop 2 (claude-code)", "shop 3 (claude-code)"]
    assert await names(bench, await bench.session("shop (codex)"), await bench.session("tidy")) == [
        "shop (codex)",
        "tidy",
    ]
    assert await names(bench, await bench.session("tidy")) == ["tidy 2"]
    again = await bench.session("shop (claude-code)", key="claude-code b")
    assert (again, *await names(bench, again)) == (sessions[1], "shop 2 (claude-code)")


async def test_a_name_is_free_again_when_its_session_is_over(bench: Bench) -> None:
    first, second = await bench.session("shop (codex)"), await bench.session("shop (codex)")
    await bench.supervisor.close_session(first, "it ended")
    third = await bench.session("shop (codex)")
    await bench.restart()
    fourth = await bench.session("shop (codex)")
    assert await names(bench, second, third, fourth) == ["shop 2 (codex)", "shop (codex)", "shop 3 (codex)"]


async def test_a_long_name_stays_within_its_bound(bench: Bench) -> None:
    long = "x" * LONGEST_NAME
    found = await names(bench, await bench.session(long), await bench.session(long))
    assert found[0] == long and found[1].endswith("x 2") and len(found[1]) <= LONGEST_NAME


async def test_the_card_says_the_client_once(bench: Bench) -> None:
    session = await bench.session("shop (codex)", client=ClientInfo(name="codex", version="1.2"))
    found = bench.supervisor.board.sessions[session]
    first = session_paragraphs(found)[0]
    assert "".join(span.text for span in first.spans).startswith("s1 shop (codex) · 1.2")
    assert session_label(found, session) == "shop (codex)"
