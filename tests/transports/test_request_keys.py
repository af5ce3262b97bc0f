"""Names of requests: one for each, the same after a crash, and no more of them kept than needed."""

import pytest

from whisper_tui.transports.mcp import mcp_session
from whisper_tui.transports.mcp.mcp_session import RequestKeys


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_session, "REMEMBERED", 5)


def test_an_id_that_is_used_again_has_another_name() -> None:
    keys = RequestKeys()
    names = [keys.of(1, "run", {"command": "ls"}), keys.of(1, "run", {"command": "pwd"})]
    names += [keys.of(1, "run", {"command": "ls"}) for _ in range(3)]
    assert len(set(names)) == 5


def test_a_request_that_is_sent_again_after_a_crash_has_its_name_however_many_were_before() -> None:
    before = RequestKeys()
    for number in range(100):
        before.of(number, "run", {"command": "ls"})
    assert before.of(100, "run", {"command": "ls"}) == RequestKeys().of(100, "run", {"command": "ls"})


@pytest.mark.parametrize("ids", [[7], [3, 2, 1], ["a"], ["b", 4, "5"], list(range(9)), ["-1", -1]], ids=str)
def test_no_name_is_given_out_twice_also_when_older_ones_are_forgotten(ids: list[int | str]) -> None:
    keys = RequestKeys()
    names = []
    for turn in range(4):
        for id_ in ids:
            names += [keys.of(id_, "run", {"command": command}) for command in ("ls", "pwd", "ls")]
        names += [keys.of(id_, "run", {"turn": turn, "number": number}) for number, id_ in enumerate(ids * 4)]
    assert len(set(names)) == len(names)


def test_no_more_names_are_kept_than_are_remembered() -> None:
    keys = RequestKeys()
    for number in range(100):
        keys.of(number, "run", {})
    assert len(keys._used) == 5
