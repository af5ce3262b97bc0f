"""What is loaded beside other work."""

import asyncio
import itertools
import threading

import pytest

from whisper_tui.cli import compose
from whisper_tui.cli.compose import loaded


def test_a_stop_does_not_wait_for_what_is_still_being_loaded() -> None:
    never = threading.Event()

    async def begin() -> None:
        asyncio.create_task(loaded(never.wait)).add_done_callback(lambda _: None)
        await asyncio.sleep(0)

    stopping = threading.Thread(target=asyncio.run, args=(begin(),), daemon=True)
    stopping.start()
    stopping.join(30)
    stopped = not stopping.is_alive()
    never.set()
    assert stopped


async def test_the_result_or_the_error_of_loading_reaches_the_caller() -> None:
    assert await loaded(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        await loaded(lambda: 1 // 0)


class Unloaded(compose._LateMcpEndpoint):
    """An endpoint that only notes that it would be loaded."""

    def __init__(self) -> None:
        self.loaded = asyncio.Event()
        self._endpoint = None

    async def _load(self):
        self.loaded.set()


async def test_what_only_agents_need_is_loaded_once_the_supervisor_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Unloaded()
    used = itertools.chain(range(10), itertools.repeat(10))
    looks: list[bool] = []

    def process_time() -> float:
        looks.append(endpoint.loaded.is_set())
        return next(used)

    monkeypatch.setattr(compose, "REST_S", 0.01)
    monkeypatch.setattr(compose.time, "process_time", process_time)
    endpoint.prepare_at_rest()
    async with asyncio.timeout(60):
        await endpoint.loaded.wait()
    assert len(looks) > 10
    assert not any(looks)
