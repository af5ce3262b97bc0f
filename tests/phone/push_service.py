"""A push service on loopback, which keeps what it is sent."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.phone.tls_front import certificate

NAME = "push.example"
CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"


class PushService:
    """Answers each request as a test wants it."""

    def __init__(self, port: int, trust: ssl.SSLContext) -> None:
        self.port = port
        self.trust = trust
        self.origin = f"https://{NAME}:{port}"
        self.answer = CREATED
        self.answers = True
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        """The first line, the headers and the rest of each request."""

    def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Where the name leads to, in the place of the internet."""
        assert (host, port) == (NAME, self.port)
        return ("127.0.0.1",)


@asynccontextmanager
async def push_service(directory: Path) -> AsyncIterator[PushService]:
    made: list[PushService] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
            first, *lines = head.strip().split("\r\n")
            service = made[0]
            if service.answer == b"":
                return
            if service.answers:
                writer.write(service.answer)
                await writer.drain()
            headers = dict(line.lower().split(": ", 1) if "uth" not in line else line.split(": ", 1) for line in lines)
            service.got.append((first, headers, await reader.read()))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    directory.mkdir()
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=certificate(NAME, directory))
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.load_verify_locations(directory / "front.pem")
    made.append(PushService(server.sockets[0].getsockname()[1], trust))
    try:
        yield made[0]
    finally:
        server.close()
