"""The token of agents over HTTP: made once, in a file that nobody else can read, or not used."""

import os
import stat

import pytest

from whisper_tui.model.errors import Unavailable
from whisper_tui.transports.mcp.http_site import STORED_AS, token_in


def test_the_token_is_made_once_and_nobody_else_can_read_it(tmp_path):
    token = token_in(tmp_path)
    assert len(token) > 40
    assert token_in(tmp_path) == token
    assert stat.S_IMODE((tmp_path / STORED_AS).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [STORED_AS]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_token_that_others_can_read_is_not_used(tmp_path, mode):
    token_in(tmp_path)
    (tmp_path / STORED_AS).chmod(mode)
    with pytest.raises(Unavailable, match="can be read by others"):
        token_in(tmp_path)


def test_a_token_that_is_a_link_or_empty_is_not_used(tmp_path):
    (tmp_path / "elsewhere").write_text("secret")
    (tmp_path / STORED_AS).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="cannot be used"):
        token_in(tmp_path)
    (tmp_path / STORED_AS).unlink()
    os.close(os.open(tmp_path / STORED_AS, os.O_CREAT | os.O_WRONLY, 0o600))
    with pytest.raises(Unavailable, match="is empty"):
        token_in(tmp_path)
