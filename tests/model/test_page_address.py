"""The address of the page for phones, as browsers write it, or why no passkey can belong to it."""

import pytest

from whisper_tui.model.errors import InvalidRequest
from whisper_tui.model.page_address import page_address


@pytest.mark.parametrize(
    ("given", "origin", "name"),
    [
        ("https://Box.example.ts.net/", "https://box.example.ts.net", "box.example.ts.net"),
        ("https://box.example:8443", "https://box.example:8443", "box.example"),
        ("https://box.example:443", "https://box.example", "box.example"),
        ("http://localhost:8765", "http://localhost:8765", "localhost"),
    ],
)
def test_an_origin_is_read_as_browsers_write_it(given: str, origin: str, name: str) -> None:
    assert (page_address(given).origin, page_address(given).rp_id) == (origin, name)


def test_requests_may_name_the_usual_port_in_their_host() -> None:
    assert page_address("https://box.example").hosts == {"box.example", "box.example:443"}
    assert page_address("http://localhost:8765").hosts == {"localhost:8765"}


@pytest.mark.parametrize(
    "given",
    ["", "box", "http://box.example", "https://10.0.0.1", "https://[::1]", "https://127.0.0.1:80", "ftp://box.example",
     "https://box.example/path", "https://me@box.example", "https://box.example:99999", "https://bö.example",
     "https://a..b", "https://box.example?x", "https://[::1"],
)  # fmt: skip
def test_an_address_without_passkeys_is_refused_in_a_sentence(given: str) -> None:
    with pytest.raises(InvalidRequest):
        page_address(given)
