"""Who of the keepers waits is known to all of them without a word."""

import os
from collections.abc import Callable

from whisper_tui.supervisor.keeper import zygote
from whisper_tui.supervisor.keeper.zygote import KeeperTable


def in_child(work: Callable[[], object]) -> int:
    """The pid of a child that has done this and ended."""
    pid = os.fork()
    if not pid:
        work()
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def reserved(here: KeeperTable) -> int:
    place = here.reserve()
    assert place is not None
    return place


def test_the_parent_sees_the_state_of_a_keeper() -> None:
    here = KeeperTable()
    place, other = reserved(here), reserved(here)
    assert here.waiting == 2
    in_child(lambda: here.work(place))
    assert here.waiting == 1
    in_child(lambda: here.wait(place))
    in_child(lambda: here.leave(other))
    assert here.waiting == 1
    assert reserved(here) == other


def test_only_one_that_dies_while_it_waits_may_have_taken_a_job_with_it() -> None:
    here = KeeperTable()
    waits, works, left = reserved(here), reserved(here), reserved(here)
    dead = {
        waits: in_child(lambda: None),
        works: in_child(lambda: here.work(works)),
        left: in_child(lambda: here.leave(left)),
    }
    for place, pid in dead.items():
        here.assign(place, pid)
    assert {place: here.remove_dead(pid) for place, pid in dead.items()} == {waits: True, works: False, left: False}
    assert here.waiting == 0


def test_the_death_of_one_that_had_given_up_its_place_says_nothing_about_the_next_one_there() -> None:
    here = KeeperTable()
    place = reserved(here)
    here.assign(place, first := in_child(lambda: here.leave(place)))
    assert reserved(here) == place
    here.assign(place, in_child(lambda: None))
    assert not here.remove_dead(first)
    assert here.waiting == 1


def test_a_full_roster_takes_nobody() -> None:
    here = KeeperTable()
    assert len({reserved(here) for _ in range(zygote.SLOTS)}) == zygote.SLOTS
    assert here.reserve() is None
