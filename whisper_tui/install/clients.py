"""The clients that whisper_tui can be installed into."""

from typing import Protocol

from whisper_tui.install import claude, codex, gemini, opencode
from whisper_tui.install.wish import Fulfilment, Wish
from whisper_tui.model.errors import InvalidRequest


class Client(Protocol):
    """A module that knows one client's files."""

    NAME: str
    TITLE: str

    def fulfil(self, wish: Wish) -> Fulfilment:
        """The files as they are wanted. Raises `WhisperError`."""
        ...


CLIENTS: dict[str, Client] = {client.NAME: client for client in (claude, codex, gemini, opencode)}


def client_of(name: str) -> Client:
    """The client of that name. Raises `InvalidRequest`."""
    if name not in CLIENTS:
        raise InvalidRequest(f"there is no client {name!r}", hint=f"There are {', '.join(CLIENTS)}")
    return CLIENTS[name]
