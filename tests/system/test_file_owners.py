"""Whoever may change a file is known by its owner and its mode."""

import os
import stat

import pytest

from whisper_tui.system.file_owners import others_may_change

USER, FOREIGN, OWN_GROUP, SHARED_GROUP = 1000, 1001, 1000, 100
FILE, DIRECTORY = stat.S_IFREG, stat.S_IFDIR


def status(mode: int, owner: int = USER, group: int = SHARED_GROUP) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, owner, group, 0, 0, 0, 0))


@pytest.mark.parametrize(
    "found",
    [
        status(FILE | 0o600),
        status(FILE | 0o755),
        status(FILE | 0o644, owner=0),
        status(DIRECTORY | 0o755),
        status(DIRECTORY | stat.S_ISVTX | 0o777, owner=0),
    ],
)
def test_what_only_root_and_the_user_can_write_is_the_users(found: os.stat_result) -> None:
    assert not others_may_change(found, USER)


@pytest.mark.parametrize(
    "found",
    [
        status(FILE | 0o600, owner=FOREIGN),
        status(FILE | 0o620),
        status(FILE | 0o602),
        status(FILE | 0o664, owner=0),
        status(FILE | stat.S_ISVTX | 0o666),
        status(DIRECTORY | 0o777),
        status(DIRECTORY | stat.S_ISVTX | 0o777, owner=FOREIGN),
        status(FILE | 0o664, group=OWN_GROUP),
    ],
)
def test_what_anybody_else_can_write_is_not(found: os.stat_result) -> None:
    assert others_may_change(found, USER)


def test_a_group_in_which_nobody_else_is_counts_as_the_user_where_that_is_said() -> None:
    assert not others_may_change(status(FILE | 0o664, group=OWN_GROUP), USER, own_group=OWN_GROUP)
    assert others_may_change(status(FILE | 0o664), USER, own_group=OWN_GROUP)
    assert others_may_change(status(FILE | 0o666, group=OWN_GROUP), USER, own_group=OWN_GROUP)
