"""`serve` shows the cockpit over HTTP and WebSocket, to whoever knows the token and nobody else."""

import asyncio
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import psutil
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.cli.conftest import Instance
from tests.outside import outside_only
from whisper_tui.cli import web_server
from whisper_tui.cli.web_server import MOST_COCKPITS, MOST_CONNECTIONS, CockpitSite

pytestmark = outside_only
BOUND_S = 60


class Served:
    """A cockpit that is served."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.process = instance.start("serve", "--port", "0", stdin=subprocess.DEVNULL)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r"The cockpit is at (http://(127\.0\.0\.1:\d+)/([\w-]{43})/)\n", line)
        assert found is not None, line
        self.address, self.host, self.token = found.groups()

    def cockpits(self) -> list[psutil.Process]:
        """The processes behind open pages."""
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if "whisper_tui.cli.cockpit_launcher" in child.cmdline():
                    found.append(child)
        return found


@pytest.fixture
def served(instance: Instance) -> Iterator[Served]:
    made = Served(instance)
    yield made
    made.process.send_signal(signal.SIGTERM)
    assert made.process.wait(timeout=BOUND_S) == 0


async def status(url: str, **headers: str) -> int:
    async with aiohttp.ClientSession() as browser, browser.get(url, headers=headers) as answer:
        return answer.status


class Page:
    """What a browser does with its connection."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.drawn = b""

    async def sees(self, words: str) -> None:
        """Wait, bounded, until these words were drawn since they were last looked for."""
        async with asyncio.timeout(BOUND_S):
            while words.encode() not in self.drawn:
                message = await self.socket.receive()
                assert message.type in {aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT}, self.drawn[-2000:]
                self.drawn += message.data if isinstance(message.data, bytes) else b""
        self.drawn = self.drawn.partition(words.encode())[2]

    async def types(self, keys: str) -> None:
        await self.socket.send_json(["stdin", keys])


@asynccontextmanager
async def page(served: Served) -> AsyncIterator[Page]:
    url = f"ws://{served.host}/{served.token}/ws?width=120&height=40"
    async with aiohttp.ClientSession() as browser, browser.ws_connect(url, origin=f"http://{served.host}") as socket:
        yield Page(socket)


async def until(condition) -> None:
    async with asyncio.timeout(BOUND_S):
        while not condition():
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_the_page_is_answered_to_whoever_knows_the_token(served: Served) -> None:
    async with aiohttp.ClientSession() as browser, browser.get(served.address) as answer:
        assert answer.status == 200
        text = await answer.text()
        policy = answer.headers["Content-Security-Policy"]
        assert answer.headers["Referrer-Policy"] == "no-referrer" and answer.headers["Cache-Control"] == "no-store"
    assert f'data-session-websocket-url="ws://{served.host}/{served.token}/ws"' in text
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "frame-ancestors 'none'" in policy
    assert not re.search(r'(?:src|href)="(?!static/|data:,|")', text)
    for file in re.findall(r'"(static/[^"]+)"', text):
        assert await status(served.address + file) == 200
    assert await status(served.address.replace("127.0.0.1", "localhost")) == 200


async def test_no_more_cockpits_are_served_than_a_bound(instance: Instance) -> None:
    site = CockpitSite(instance.home, "t" * 43)
    site._open = MOST_COCKPITS
    async with TestServer(site.application(), host="127.0.0.1") as server, aiohttp.ClientSession() as browser:
        site.port = server.port or 0
        async with browser.get(f"{site.address}ws") as answer:
            assert (answer.status, await answer.text()) == (503, "8 cockpits are open already: close one.\n")


@pytest.mark.slow
async def test_a_supervisor_of_another_user_is_not_used(served: Served) -> None:
    base = f"http://{served.host}"
    for path in ("/", "/nonsense/", f"/{served.token[:-1]}/", f"/{served.token}x/", "/nonsense/static/js/textual.js"):
        assert await status(base + path) in {403, 404}
    assert await status(served.address, Host="evil.example") == 403
    assert await status(served.address, Host=f"evil.example:{served.host.rpartition(':')[2]}") == 403
    assert await status(served.address, Origin="http://evil.example") == 403
    assert await status(served.address + "static/..%2f__init__.py") == 404
    assert await status(served.address + "static/nothing") == 404
    assert await status(served.address + "static/%00") == 404


@pytest.mark.slow
async def test_the_connection_wants_the_token_and_its_own_page(served: Served) -> None:
    good = f"http://{served.host}"
    async with aiohttp.ClientSession() as browser:
        for token, origin in (
            ("nonsense", good),
            (served.token, "http://evil.example"),
            (served.token, "null"),
            (served.token, good.replace("127.0.0.1", "localhost")),
            (served.token, None),
        ):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await browser.ws_connect(f"ws://{served.host}/{token}/ws", origin=origin)
            assert refused.value.status == 403
    assert served.cockpits() == []


@pytest.mark.slow
async def test_it_listens_on_loopback_alone(served: Served) -> None:
    listening = [c for c in psutil.Process(served.process.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert [c.laddr.ip for c in listening] == ["127.0.0.1"]


@pytest.mark.slow
async def test_a_call_is_approved_in_the_page_and_runs_on_without_it(instance: Instance, served: Served) -> None:
    call = instance.call("execute_command", command="echo", args=["through the page"])
    async with page(served) as browser:
        await browser.sees("Waiting for you")
        await browser.sees("through the page")
        # A key decides nothing while the call has not been on the screen for a moment.
        async with asyncio.timeout(BOUND_S):
            while call.poll() is None:
                await browser.types("a")
                await asyncio.sleep(0.1)
        assert instance.rows("show", "1")["exit_code"] == 0
        assert len(served.cockpits()) == 1
        await browser.socket.send_json(["resize", {"width": 80, "height": 24}])
        await browser.socket.send_str("nonsense")
        await browser.socket.send_json({"not": "a message"})
        await browser.socket.send_json(["ping", 7])
        await browser.types("H")
        await browser.sees("history")
    await until(lambda: served.cockpits() == [])
    assert instance.run("status").returncode == 0


@pytest.mark.slow
async def test_leaving_the_cockpit_closes_its_page(served: Served) -> None:
    async with page(served) as browser:
        await browser.sees("Waiting for you")
        await browser.types("q")
        async with asyncio.timeout(BOUND_S):
            while not (await browser.socket.receive()).type.name.startswith("CLOS"):
                pass
    await until(lambda: served.cockpits() == [])


@pytest.mark.slow
async def test_each_page_is_a_cockpit_of_its_own(served: Served) -> None:
    async with page(served) as one, page(served) as other:
        await one.sees("Waiting for you")
        await other.sees("Waiting for you")
        assert len(served.cockpits()) == 2
    await until(lambda: served.cockpits() == [])


@pytest.mark.slow
async def test_a_used_port_is_reported_in_a_sentence(instance: Instance, served: Served) -> None:
    port = served.host.rpartition(":")[2]
    answer = instance.run("serve", "--port", port)
    assert answer.returncode == 3
    assert answer.stderr.startswith(f"whisper-tui: Port {port} cannot be listened on")
    assert instance.run("serve", "--port", "99999").returncode == 2


@pytest.mark.slow
async def test_a_cockpit_does_not_outlive_the_server_of_its_page(instance: Instance) -> None:
    served = Served(instance)
    async with page(served) as browser:
        await browser.sees("Waiting for you")
        cockpits = served.cockpits()
        assert len(cockpits) == 1
        served.process.kill()
        await until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in cockpits))


@pytest.mark.slow
async def test_silent_connections_do_not_keep_other_clients_out(served: Served) -> None:
    host, port = served.host.split(":")
    silent = [await asyncio.open_connection(host, int(port)) for _ in range(MOST_CONNECTIONS + 20)]
    assert await status(served.address) == 200
    async with asyncio.timeout(BOUND_S):
        assert await silent[0][0].read() == b""  # The oldest gave way.
    assert len(psutil.Process(served.process.pid).net_connections()) <= MOST_CONNECTIONS + 2
    for _, writer in silent:
        writer.close()


async def test_a_client_that_sends_no_hello_is_disconnected(instance: Instance, monkeypatch) -> None:
    monkeypatch.setattr(web_server, "FIRST_REQUEST_WITHIN_S", 0.1)
    site = CockpitSite(instance.home, "t" * 43)
    runner = web.AppRunner(site.application(), access_log=None)
    await runner.setup()
    listening = await site.listen(runner, 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: ")
    async with asyncio.timeout(BOUND_S):
        assert await reader.read() == b""
    writer.close()
    listening.close()
    await runner.cleanup()
